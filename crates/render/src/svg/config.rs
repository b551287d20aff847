//! What a picture looks like besides the tree: every option of `flame render` that ends in the SVG.

use super::attributes::NameAttributes;
use crate::colours::{ColourConfig, Rgb};
use crate::label::Shorten;

/// Wide enough to read on a laptop, narrow enough for a page.
pub const DEFAULT_WIDTH: u32 = 1200;
/// What stands over a graph when nothing better is known.
pub const DEFAULT_TITLE: &str = "Flame Graph";
/// Half a pixel: thinner boxes add ink but no information.
pub const DEFAULT_MIN_WIDTH: f64 = 0.5;
/// A row with the pixel that parts it from the next.
pub const DEFAULT_ROW_HEIGHT: u32 = 17;
/// Size of the text in boxes, in pixels.
pub const DEFAULT_FONT_SIZE: u32 = 12;
/// Fonts whose metrics are those of the table of widths.
pub const DEFAULT_FONTS: &str = "Verdana, 'DejaVu Sans', sans-serif";
/// Magenta, far from every hue of code; matches get an outline besides.
pub const DEFAULT_SEARCH_COLOUR: Rgb = Rgb(0xf0, 0x5f, 0xd8);
/// What stands before a name in the line of details.
pub const DEFAULT_NAME_TYPE: &str = "Function:";

/// The thinnest box that is drawn alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinWidth {
    /// In pixels, at least 0.01.
    Pixels(f64),
    /// In percent of the whole graph, from 0 to 100.
    Percent(f64),
}

/// Which way the boxes grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The root stands at the bottom.
    #[default]
    Up,
    /// The root stands on top: an icicle graph.
    Down,
}

/// What the SVG says and looks like besides the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct SvgConfig {
    /// The headline; also the title of the document.
    pub title: String,
    /// A smaller line under the title.
    pub subtitle: Option<String>,
    /// Width of the picture in pixels, [`DEFAULT_WIDTH`] by default; at least 200.
    pub width: u32,
    /// With scripts the picture is as wide as the window, or as what it stands in: the default.
    pub fluid: bool,
    /// Height of a row in pixels, [`DEFAULT_ROW_HEIGHT`] by default; 4 to 1000.
    pub row_height: u32,
    /// Boxes thinner than this are drawn as part of a run, [`DEFAULT_MIN_WIDTH`] pixels by default.
    /// They are in the data all the same.
    pub min_width: MinWidth,
    /// Draw frames that hardly any sample is as deep as, too; else what is above the last row of
    /// which the graph has a hundredth is one box for each tower, which a click shows.
    pub all_rows: bool,
    /// Fonts of all text, as CSS lists them; [`DEFAULT_FONTS`] by default.
    pub fonts: String,
    /// Size of the text in boxes in pixels, [`DEFAULT_FONT_SIZE`] by default; 4 to 100.
    pub font_size: u32,
    /// Width of every character in thousandths of the font's size; `None` = a table of widths of
    /// the default fonts.
    pub font_width: Option<u32>,
    /// What plain counts count, instead of what the profile says: `samples`.
    pub count_name: Option<String>,
    /// What stands before a name in the line of details; [`DEFAULT_NAME_TYPE`] by default.
    pub name_type: String,
    /// Which way the boxes grow.
    pub direction: Direction,
    /// How names are made to fit.
    pub shorten: Shorten,
    /// The colours of the boxes.
    pub colours: ColourConfig,
    /// Colour of what a search finds, [`DEFAULT_SEARCH_COLOUR`] by default.
    pub search_colour: Rgb,
    /// Colour of title, details and buttons; `None` = that of the page's theme.
    pub ui_colour: Option<Rgb>,
    /// Colour of an edge around every box; `None` = no edge.
    pub stroke_colour: Option<Rgb>,
    /// The function whose callers and callees the script shows at first, by its name as
    /// [`Label::is_called`](flame_profile::Label::is_called) knows it; the whole graph by default.
    pub around: Option<String>,
    /// Kept in the file as an XML comment and shown nowhere.
    pub notes: Option<String>,
    /// Attributes of single functions: links, identifiers, classes.
    pub attributes: NameAttributes,
    /// Whether the viewer is in the file; without it the picture is a still one, and the data of
    /// boxes that are not drawn is left out with it.
    pub script: bool,
    /// Break lines and indent, for people who read the file.
    pub pretty: bool,
    /// Lines at the foot: the profile's health, how it was taken.
    pub footer: Vec<String>,
}

impl Default for SvgConfig {
    fn default() -> SvgConfig {
        SvgConfig {
            title: DEFAULT_TITLE.to_owned(),
            subtitle: None,
            width: DEFAULT_WIDTH,
            fluid: true,
            row_height: DEFAULT_ROW_HEIGHT,
            min_width: MinWidth::Pixels(DEFAULT_MIN_WIDTH),
            all_rows: false,
            fonts: DEFAULT_FONTS.to_owned(),
            font_size: DEFAULT_FONT_SIZE,
            font_width: None,
            count_name: None,
            name_type: DEFAULT_NAME_TYPE.to_owned(),
            direction: Direction::Up,
            shorten: Shorten::UsefulEnd,
            colours: ColourConfig::default(),
            search_colour: DEFAULT_SEARCH_COLOUR,
            ui_colour: None,
            stroke_colour: None,
            around: None,
            notes: None,
            attributes: NameAttributes::default(),
            script: true,
            pretty: false,
            footer: Vec::new(),
        }
    }
}
