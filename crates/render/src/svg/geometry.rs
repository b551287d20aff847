//! Sizes of the picture. The viewer script gets the same numbers with the data.

use super::SvgConfig;
use crate::layout::Units;

pub(super) const UNITS_PER_PIXEL: u32 = 100;
/// Blank to the left and right of the boxes.
pub(super) const MARGIN: u32 = 10;
/// Height of a row with the pixel that parts it from the next.
pub(super) const ROW: u32 = 17;
/// Title and subtitle stand above the boxes.
pub(super) const TOP: u32 = 62;
/// Below the boxes: the line of details, then the legend, then the footer.
pub(super) const DETAILS_Y: u32 = 20;
pub(super) const LEGEND_Y: u32 = 44;
pub(super) const FOOTER_Y: u32 = 66;
pub(super) const FOOTER_LINE: u32 = 16;
pub(super) const FONT_SIZE: u32 = 12;
pub(super) const TITLE_SIZE: u32 = 17;
pub(super) const FOOTER_SIZE: u32 = 11;
/// Bold letters are wider than the table of widths says.
pub(super) const BOLD_PERCENT: u32 = 118;
/// Boxes from here on give up half a pixel at their right, so that neighbours stand apart.
pub(super) const GAP_FROM: Units = 200;
pub(super) const GAP: Units = 50;
/// Narrower boxes have square corners.
pub(super) const ROUND_FROM: Units = 600;
/// Between the left edge of a box and its text; half of it is kept free on the right.
pub(super) const LABEL_INDENT: Units = 300;
const MIN_PICTURE_WIDTH: u32 = 200;

/// The sizes that a configuration chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Width of the picture in pixels.
    pub(super) width: u32,
    /// Thinner boxes are not drawn alone.
    pub(super) min_width: Units,
}

impl Geometry {
    pub(super) fn of(config: &SvgConfig) -> Geometry {
        let width = config.width.clamp(MIN_PICTURE_WIDTH, 100_000);
        // A cast from a float saturates, and takes what is no number for 0.
        let min_width = (config.min_width * f64::from(UNITS_PER_PIXEL)).round() as Units;
        Geometry { width, min_width: min_width.max(1) }
    }

    /// The width of the root's box.
    pub(super) fn frames_width(self) -> Units {
        (self.width - 2 * MARGIN) * UNITS_PER_PIXEL
    }

    /// Height of the whole picture in pixels.
    pub(super) fn height(self, rows: u32, footer_lines: usize) -> u64 {
        let frames = u64::from(TOP) + u64::from(rows) * u64::from(ROW);
        frames + u64::from(FOOTER_Y) + footer_lines as u64 * u64::from(FOOTER_LINE)
    }
}

/// The room for text in a box of that width, in thousandths of the font size.
pub(super) fn label_room(width: Units) -> u32 {
    let inner = width.saturating_sub(LABEL_INDENT + LABEL_INDENT / 2);
    inner * 10 / FONT_SIZE
}
