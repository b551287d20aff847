//! Sizes of the picture. The viewer script gets the same numbers with the data.

use flame_profile::whole;

use super::config::{Direction, MinWidth, SvgConfig};
use crate::char_width::Widths;
use crate::layout::{Narrow, Units};

pub(super) const UNITS_PER_PIXEL: u32 = 100;
/// Blank to the left and right of the boxes.
pub(super) const MARGIN: u32 = 10;
/// Room above the boxes for the title, and for the subtitle where there is one.
const TITLE_ROOM: u32 = 44;
const SUBTITLE_ROOM: u32 = 18;
/// Below the boxes: the line of details, then the legend, then the footer.
pub(super) const DETAILS_Y: u32 = 20;
pub(super) const LEGEND_Y: u32 = 44;
pub(super) const FOOTER_Y: u32 = 66;
pub(super) const FOOTER_LINE: u32 = 16;
pub(super) const UI_FONT_SIZE: u32 = 12;
pub(super) const TITLE_SIZE: u32 = 17;
pub(super) const FOOTER_SIZE: u32 = 11;
/// Bold letters are wider than the table of widths says.
pub(super) const BOLD_PERCENT: u32 = 118;
/// Boxes from here on give up half a pixel at their right, so that neighbours stand apart.
pub(super) const GAP_FROM: Units = 200;
pub(super) const GAP: Units = 50;
/// Runs of thin boxes that are narrower would be a trace that nobody can see or point at, and there
/// are as many of them in a large graph as there are boxes.
const FAINT: Units = 20;
/// Narrower runs of thin boxes have one colour, that of the hatch from afar: there is no room for a
/// hatch to be seen, there are hundreds of them, and browsers take long to paint hatches.
pub(super) const HATCH_FROM: Units = 300;
/// Narrower boxes have square corners.
pub(super) const ROUND_FROM: Units = 600;
/// Between the left edge of a box and its text; half of it is kept free on the right.
pub(super) const LABEL_INDENT: Units = 300;
const MIN_PICTURE_WIDTH: u32 = 200;
/// Height of the line of details.
pub(super) const STATUS: u32 = 30;
/// A second line of details, which pictures of two profiles have.
pub(super) const MORE: u32 = 16;
/// From this width on graphs of two profiles stand beside each other.
pub(super) const BESIDE_FROM: u32 = 800;
/// Between graphs beside each other.
pub(super) const PANE_GAP: Units = 1600;
/// Room for the heading of a graph, and between that and the boxes.
pub(super) const PANE_HEAD: u32 = 20;
pub(super) const HEAD_GAP: u32 = 7;
/// Narrower columns under what vanished are left out: they would be dots without a hatch.
pub(super) const THINNEST_STRIP: Units = 300;

/// The sizes that a configuration chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Width of the picture in pixels.
    pub(super) width: u32,
    /// Room above the boxes.
    pub(super) top: u32,
    /// Height of a row with the pixel that parts it from the next, in pixels.
    pub(super) row: u32,
    /// Size of the text in boxes, in pixels.
    pub(super) font_size: u32,
    /// Widths of the characters in boxes.
    pub(super) widths: Widths,
    /// Thinner boxes are not drawn alone, and thinner runs of them not at all.
    pub(super) narrow: Narrow,
    /// Whether rows that hold hardly anything are drawn, too.
    pub(super) all_rows: bool,
    /// Which way the boxes grow.
    pub(super) direction: Direction,
    /// Room for more details.
    pub(super) more: u32,
}

impl Geometry {
    pub(super) fn of(config: &SvgConfig) -> Geometry {
        let width = config.width.clamp(MIN_PICTURE_WIDTH, 100_000);
        let frames = f64::from((width - 2 * MARGIN) * UNITS_PER_PIXEL);
        let min_width = match config.min_width {
            MinWidth::Pixels(pixels) => pixels * f64::from(UNITS_PER_PIXEL),
            MinWidth::Percent(percent) => frames * percent / 100.0,
        };
        let min_width = Units::try_from(whole(min_width.round())).unwrap_or(Units::MAX).max(1);
        let has_subtitle = config.subtitle.as_deref().is_some_and(|text| !text.is_empty());
        Geometry {
            width,
            top: TITLE_ROOM + if has_subtitle { SUBTITLE_ROOM } else { 0 },
            row: config.row_height.clamp(4, 1000),
            font_size: config.font_size.clamp(4, 100),
            widths: Widths { uniform: config.font_width.map(|width| width.max(1)) },
            narrow: Narrow { frame: min_width, run: min_width.min(FAINT) },
            all_rows: config.all_rows,
            direction: config.direction,
            more: 0,
        }
    }

    /// The width of the root's box.
    pub(super) fn frames_width(self) -> Units {
        (self.width - 2 * MARGIN) * UNITS_PER_PIXEL
    }

    /// The upper edge of the boxes at a depth, of `rows` in all, in a graph that starts at `top`.
    pub(super) fn box_top(self, top: u64, depth: u32, rows: u32) -> u64 {
        let row = match self.direction {
            Direction::Up => rows - 1 - depth,
            Direction::Down => depth,
        };
        top + u64::from(row) * u64::from(self.row)
    }

    /// Whether the root stands on top.
    pub(super) fn is_inverted(self) -> bool {
        self.direction == Direction::Down
    }

    /// From the upper edge of a box to the line that its text stands on: capitals, which are
    /// seven tenths of the font's size high, are in the middle.
    pub(super) fn baseline(self) -> u32 {
        (5 * (self.row - 1) + 36 * self.font_size / 10) / 10
    }

    /// Height of the whole picture in pixels, whose boxes end at `bottom`.
    pub(super) fn height(self, bottom: u64, footer_lines: usize) -> u64 {
        bottom + u64::from(self.footer_y()) + footer_lines as u64 * u64::from(FOOTER_LINE)
    }

    /// From the lower edge of the boxes to the first line of the footer.
    pub(super) fn footer_y(self) -> u32 {
        FOOTER_Y + self.more
    }

    /// The room for text in a box of that width, in thousandths of the font size.
    pub(super) fn label_room(self, width: Units) -> u32 {
        let inner = width.saturating_sub(LABEL_INDENT + LABEL_INDENT / 2);
        let room = u64::from(inner) * 10 / u64::from(self.font_size);
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}
