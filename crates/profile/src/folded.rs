//! Folded text: `outermost;...;leaf WEIGHT`, one line a stack; read and written.
//!
//! The format is what stackcollapse scripts write and flamegraph.pl, inferno and speedscope read.
//! It has no quoting and no comments to speak of; [`FoldedReader`] says what is understood.

mod count;
mod line;
mod names;
mod parts;
mod read;
mod root;
mod skipped;
mod sorted;
mod write;

pub use parts::{FoldedPart, FoldedParts};
pub use read::{Columns, FoldedError, FoldedReader, MAX_LINE};
pub use root::FirstFrames;
pub use skipped::{NO_COUNT, SkippedLine, TOO_LONG};
pub use sorted::LineCounts;
pub use write::{Annotations, FoldedLines, FoldedText, FoldedTree, write_folded};
