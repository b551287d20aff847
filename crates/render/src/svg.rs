//! A call tree into one self-contained SVG: the picture, the whole tree as data, and the viewer.
//!
//! The boxes that can be seen are drawn in the file, so that any image viewer shows them. All the
//! others ride along as data; the script redraws from those when the reader zooms or searches, so
//! nothing is lost to thinness. Whatever is needed to read the picture is a presentation
//! attribute, since some viewers drop scripts and style sheets alike.

mod data;
mod document;
mod frames;
mod geometry;
mod script;
mod xml;

use std::io::{self, Write};

use flame_profile::CallTree;

use crate::amount::ValueScale;
use crate::layout::layout;
use geometry::Geometry;

/// Wide enough to read on a laptop, narrow enough for a page.
pub const DEFAULT_WIDTH: u32 = 1200;
/// What stands over a graph when nothing better is known.
pub const DEFAULT_TITLE: &str = "Flame Graph";
/// Half a pixel: thinner boxes add ink but no information.
pub const DEFAULT_MIN_WIDTH: f64 = 0.5;

/// What the SVG says besides the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct SvgConfig {
    /// The headline; also the title of the document.
    pub title: String,
    /// A smaller line under the title.
    pub subtitle: Option<String>,
    /// Width of the picture in pixels, [`DEFAULT_WIDTH`] by default; at least 200. With scripts
    /// it follows the window.
    pub width: u32,
    /// Boxes thinner than this many pixels are drawn as part of a run, [`DEFAULT_MIN_WIDTH`] by
    /// default; at least 0.01. They are in the data all the same.
    pub min_width: f64,
    /// Lines at the foot: the profile's health, how it was taken.
    pub footer: Vec<String>,
}

impl Default for SvgConfig {
    fn default() -> SvgConfig {
        SvgConfig {
            title: DEFAULT_TITLE.to_owned(),
            subtitle: None,
            width: DEFAULT_WIDTH,
            min_width: DEFAULT_MIN_WIDTH,
            footer: Vec::new(),
        }
    }
}

/// Writes the flame graph of a tree.
///
/// The output is buffered here. It is well-formed XML whatever the names, title and footer hold.
///
/// # Errors
/// Those of `out`.
pub fn write_svg(tree: &CallTree, config: &SvgConfig, out: &mut impl Write) -> io::Result<()> {
    let geometry = Geometry::of(config);
    let cells = layout(tree, geometry.frames_width(), geometry.min_width);
    let rows = cells.iter().map(|cell| cell.depth + 1).max().unwrap_or(1);
    let scale = ValueScale::of(tree.value_type());
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let picture = document::Picture { tree, config, geometry, cells: &cells, rows, scale: &scale };
    picture.write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests;
