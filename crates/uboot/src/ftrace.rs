//! trace.dat of version 6, which trace-cmd and kernelshark read: a header, and events in pages.
//!
//! How large the pages are stands before them, so the records are gone through once more than
//! there are outputs; nothing is held in memory. Source: trace-cmd.dat.v6(5).

mod header;
mod mended;
mod pages;
mod proftool;

use std::io::{self, Write};

use crate::error::UbootError;
pub use mended::write_ftrace;
use pages::Counted;

/// What the events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtraceKind {
    /// Each record as `function <-- caller`.
    Function,
    /// Entries and exits with depth and duration.
    FuncGraph,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Records of functions that the map does not have, which have no event.
    pub missing: u64,
    /// Records of functions that the rules exclude.
    pub excluded: u64,
    /// Where proftool gives up, in its own words; the file is as it leaves it.
    pub failure: Option<String>,
}

/// What goes through the records and writes an event for each.
type Pass<'p> = &'p mut dyn FnMut(&mut Counted<'_>) -> Result<Written, UbootError>;

/// Writes the header and, behind it, what a pass over the records writes. `symbols` are the text of
/// kallsyms.
fn write_file(
    symbols: &[u8],
    is_proftool: bool,
    pass: Pass<'_>,
    out: &mut dyn Write,
) -> Result<Written, UbootError> {
    let mut nothing = io::sink();
    let mut dry = Counted::new(&mut nothing, is_proftool);
    let outcome = pass(&mut dry)?;
    let size = dry.finish(outcome.failure.is_none())?;
    let header = header::Header { symbols, size, is_proftool, failed: outcome.failure.is_some() };
    let has_pages = outcome.events > 0 || outcome.failure.is_some();
    header.write(has_pages, out)?;
    let mut pages = Counted::new(out, is_proftool);
    let written = pass(&mut pages)?;
    pages.finish(written.failure.is_none())?;
    Ok(written)
}

#[cfg(test)]
mod tests;
