//! A call tree into one self-contained SVG: the picture, the whole tree as data, and the viewer.
//!
//! The boxes that can be seen are drawn in the file, so that any image viewer shows them. All the
//! others ride along as data; the script redraws from those when the reader zooms or searches, so
//! nothing is lost to thinness. Whatever is needed to read the picture is a presentation
//! attribute, since some viewers drop scripts and style sheets alike.

mod around;
mod attributes;
mod chunks;
mod config;
mod data;
mod describe;
mod document;
mod frames;
mod geometry;
mod paint;
mod panes;
mod script;
mod subject;
mod xml;

use std::io::{self, Write};

use flame_diff::DiffTree;
use flame_message::ValueScale;
use flame_profile::CallTree;

use crate::colours::Colours;
use crate::diff::{self, DiffPicture, Sides};
pub use attributes::{BoxAttributes, NameAttributes};
pub use config::{
    DEFAULT_FONT_SIZE, DEFAULT_FONTS, DEFAULT_MIN_WIDTH, DEFAULT_NAME_TYPE, DEFAULT_ROW_HEIGHT,
    DEFAULT_SEARCH_COLOUR, DEFAULT_TITLE, DEFAULT_WIDTH, Direction, MinWidth, SvgConfig,
};
use geometry::Geometry;
use panes::Panes;
use subject::Subject;
pub(crate) use xml::escape;

/// Smaller trees are done with before a thread has started.
const WORTH_A_THREAD: usize = 5_000;

/// Writes the flame graph of a tree.
///
/// The output is buffered here. It is well-formed XML whatever the names, title and footer hold.
///
/// # Errors
/// Those of `out`.
pub fn write_svg(tree: &CallTree, config: &SvgConfig, out: &mut impl Write) -> io::Result<()> {
    let scale = ValueScale::of_tree(tree, config.count_name.as_deref());
    write(Subject::One(tree), config, &scale, || Colours::of(tree, &config.colours), out)
}

/// Writes what changed between two profiles as one flame graph, or as three linked ones.
///
/// Everything that one of the sides has is in the file, however it is looked at first: the reader
/// can turn to other widths and to colours by the other change. `config` says the rest, as for
/// [`write_svg`]; of its colours [`ColourConfig::delta`](crate::ColourConfig::delta) is used. Names
/// and totals of both sides stand at the foot before its footer.
///
/// # Errors
/// Those of `out`.
pub fn write_diff_svg(
    tree: &DiffTree,
    picture: &DiffPicture,
    config: &SvgConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    let sides = Sides::new(tree, *picture, config.count_name.as_deref());
    let colours = || diff::colours(&sides, config.colours.delta);
    write(Subject::Two(&sides), config, &sides.scale, colours, out)
}

fn write(
    subject: Subject<'_>,
    config: &SvgConfig,
    scale: &ValueScale,
    colours: impl FnOnce() -> Colours + Send,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut geometry = Geometry::of(config);
    if subject.sides().is_some() {
        geometry.more = geometry::MORE;
    }
    let colours = || (colours(), subject.one().and_then(describe::hottest));
    let (panes, (colours, hottest)) = &if subject.len() < WORTH_A_THREAD {
        (Panes::of(subject, geometry), colours())
    } else {
        flame_threads::join(|| Panes::of(subject, geometry), colours)
    };
    let hottest = hottest.as_deref();
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    document::Picture { subject, config, geometry, panes, scale, colours, hottest }
        .write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests;
