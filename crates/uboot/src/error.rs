//! Why a trace, a map or a file of rules cannot be used.

use std::io;

/// Part of the input is not as it has to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UbootError {
    /// Reading or writing failed.
    #[error("input or output failed")]
    Io(#[from] io::Error),
    /// The bytes are not those of a trace.
    #[error("{0}")]
    NotATrace(String),
    /// The file has changed since its records were counted.
    #[error("it changed while it was read")]
    Changed,
    /// There is no calls chunk of that number, counted from 1.
    #[error("there is no calls chunk {asked}: the file has {have}")]
    NoSuchChunk {
        /// The number asked for.
        asked: usize,
        /// How many calls chunks there are.
        have: usize,
    },
    /// A line of a System.map that proftool refuses.
    #[error("line {0} is not ADDRESS TYPE NAME")]
    MapLine(u64),
    /// No symbol of the map is code.
    #[error("there is no text symbol in it (type t, T, w or W)")]
    NoTextSymbols,
    /// A line of a file of rules.
    #[error("line {line}: {problem}")]
    Rule {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// What proftool does not get through, in its own words.
    #[error("{0}")]
    Proftool(String),
}
