//! Flame graphs as SVG and as text from a call tree.
//!
//! No files, no environment, no clock and no randomness: the same tree and configuration give the
//! same bytes. Names are hostile input everywhere: see [`flame_message::clean_name`].
//!
//! ```
//! use flame_profile::{CallTree, FrameKind, Location, Pid, Profile, StackId, Tid};
//! use flame_profile::{TreeOptions, ValueType};
//! use flame_render::{SvgConfig, TextConfig, write_svg, write_text};
//!
//! let mut profile = Profile::new(vec![ValueType::samples()]);
//! let thread = profile.add_thread("server", Pid(4242), Tid(4242));
//! let parse = profile.add_frame("parse_json", FrameKind::User);
//! let parse = profile.add_location(Location::named(parse));
//! let stack = profile.push_stack(StackId::EMPTY, parse);
//! profile.add_sample(thread, stack, &[7]);
//! let tree = CallTree::from_profile(&profile, &TreeOptions::default());
//!
//! let mut svg = Vec::new();
//! write_svg(&tree, &SvgConfig::default(), &mut svg)?;
//! let svg = String::from_utf8(svg)?;
//! assert!(svg.contains("<title>parse_json (7 samples, 100%)</title>"));
//!
//! let mut text = Vec::new();
//! write_text(&tree, &TextConfig::default(), &mut text)?;
//! assert!(String::from_utf8(text)?.contains("server → parse_json"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod char_width;
mod chart;
mod colours;
mod comparison;
mod diff;
mod export;
mod heat_map;
mod hottest;
mod index_page;
mod label;
mod layout;
mod lines;
mod scripts;
mod summary;
mod svg;
mod terminal;
mod text;
mod title;
mod tooltip;
mod towers;
mod whole;

#[cfg(test)]
mod test_trees;

pub use chart::{Chart, write_chart};
pub use colours::{
    Background, ColourConfig, DeltaColours, Hue, Language, Palette, Rgb, Variation, name_colours,
};
pub use comparison::{
    Comparison, ComparisonConfig, DEFAULT_LIMIT, Page, ProfileQuality, Quality, are_identical,
    are_strangers, diff_failure, doubts, gate_doubt, gate_failure, missing_function,
};
pub use diff::{ColourBy, DiffPicture, DiffView};
pub use export::{markdown_text, write_csv, write_json, write_markdown};
pub use heat_map::{HeatMap, write_heat_map};
pub use index_page::{INDEX_MARK, IndexEntry, index_page};
pub use label::Shorten;
pub use summary::{recording_footer, recording_summary};
pub use svg::{
    BoxAttributes, DEFAULT_FONT_SIZE, DEFAULT_FONTS, DEFAULT_MIN_WIDTH, DEFAULT_NAME_TYPE,
    DEFAULT_ROW_HEIGHT, DEFAULT_SEARCH_COLOUR, DEFAULT_TITLE, DEFAULT_WIDTH, Direction, MinWidth,
    NameAttributes, SvgConfig, write_diff_svg, write_svg,
};
pub use terminal::{ColourDepth, TerminalConfig, write_terminal};
pub use text::{DEFAULT_COLUMNS, DEFAULT_MIN_SHARE, DEFAULT_TOP, Report, TextConfig, write_text};
pub use title::titled;
