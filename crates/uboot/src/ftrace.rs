//! trace.dat of version 6, which trace-cmd and kernelshark read: a header, and events in pages.
//!
//! How large the pages are stands before them, so that is found out first, while the records are
//! followed; nothing is held in memory. Source: trace-cmd.dat.v6(5).

mod header;
mod mended;
mod pages;
mod proftool;

pub(crate) use mended::Planning;
pub use mended::{FtracePlan, write_ftrace};

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

#[cfg(test)]
mod tests;
