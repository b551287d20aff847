//! Why a file could not be read.

use std::io;

/// Why a perf.data file could not be read. What is broken within its records is no reason: it is
/// counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// The system could not read it.
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    /// Its header breaks the rules.
    #[error("it is not a perf.data file that can be read: {0}")]
    Broken(&'static str),
    /// There is no such event.
    #[error("no event {asked} in it: it has {others}")]
    NoSuchEvent {
        /// What was asked for.
        asked: String,
        /// What it has.
        others: String,
    },
}
