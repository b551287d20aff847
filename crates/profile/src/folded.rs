//! Folded text: `outermost;...;leaf WEIGHT`, one line a stack; read and written.
//!
//! The format is what stackcollapse scripts write and flamegraph.pl, inferno and speedscope read.
//! It has no quoting and no comments to speak of; [`FoldedReader`] says what is understood.

mod count;
mod line;
mod names;
mod read;
mod root;
mod write;

pub use read::{Columns, FoldedError, FoldedReader};
pub use write::{Annotations, write_folded};
