//! A call tree into one self-contained SVG: the picture, the whole tree as data, and the viewer.
//!
//! The boxes that can be seen are drawn in the file, so that any image viewer shows them. All the
//! others ride along as data; the script redraws from those when the reader zooms or searches, so
//! nothing is lost to thinness. Whatever is needed to read the picture is a presentation
//! attribute, since some viewers drop scripts and style sheets alike.

mod attributes;
mod config;
mod data;
mod document;
mod frames;
mod geometry;
mod paint;
mod script;
mod xml;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread;

use flame_profile::CallTree;

use crate::amount::ValueScale;
use crate::colours::Colours;
use crate::layout::layout;
pub use attributes::{BoxAttributes, NameAttributes};
pub use config::{
    DEFAULT_FONT_SIZE, DEFAULT_FONTS, DEFAULT_MIN_WIDTH, DEFAULT_NAME_TYPE, DEFAULT_ROW_HEIGHT,
    DEFAULT_SEARCH_COLOUR, DEFAULT_TITLE, DEFAULT_WIDTH, Direction, MinWidth, SvgConfig,
};
use geometry::Geometry;

/// Smaller trees are done with before a thread has started.
const WORTH_A_THREAD: usize = 5_000;

/// Writes the flame graph of a tree.
///
/// The output is buffered here. It is well-formed XML whatever the names, title and footer hold.
///
/// # Errors
/// Those of `out`.
pub fn write_svg(tree: &CallTree, config: &SvgConfig, out: &mut impl Write) -> io::Result<()> {
    let geometry = Geometry::of(config);
    let (cells, colours) = thread::scope(|scope| {
        let colours = || Colours::of(tree, &config.colours);
        let waiting = (tree.nodes().len() >= WORTH_A_THREAD).then(|| scope.spawn(colours));
        let cells = layout(tree, geometry.frames_width(), geometry.narrow);
        let colours = match waiting {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => colours(),
        };
        (cells, colours)
    });
    let rows = cells.iter().map(|cell| cell.depth + 1).max().unwrap_or(1);
    let scale = ValueScale::of_tree(tree, config.count_name.as_deref());
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let (cells, scale, colours) = (&cells[..], &scale, &colours);
    let picture = document::Picture { tree, config, geometry, cells, rows, scale, colours };
    picture.write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests;
