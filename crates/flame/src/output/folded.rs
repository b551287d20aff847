//! Folded text, made by one thread and written by another: each takes about half of the time.

use std::io::{self, Write};

use flame_profile::{Annotations, FoldedText, FoldedTree};

use super::file::Destination;
use super::{Format, Outputs};

impl Outputs {
    /// Whether all outputs have that format, and none is a file that something is said of.
    pub(crate) fn are_printed_as(&self, format: Format) -> bool {
        let mut files = self.files.iter();
        files.all(|(file, of)| *of == format && !matches!(file, Destination::File(_)))
    }
}

/// Does what [`flame_profile::write_folded`] does.
pub(crate) fn write_folded(
    tree: &(impl FoldedTree + Sync),
    annotations: Annotations,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = FoldedText::new(tree, annotations);
    let mut lines = text.lines();
    flame_threads::ahead(|| lines.next_lines(), |lines| out.write_all(&lines))
}
