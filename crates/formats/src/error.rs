//! Why an input could not be read.

use std::io;

use flame_profile::FoldedError;

use crate::PprofError;
use crate::skipped::Place;

/// Why an input could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system could not read it, or its compressed data is broken from the start.
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    /// No format was recognised; here is what it looks like.
    #[error("it is in no format that flame knows: it {looks}")]
    UnknownFormat {
        /// A phrase that goes on after "it": `is already a picture or a web page`.
        looks: String,
    },
    /// The format is known, but what is there breaks its rules altogether.
    #[error("it cannot be read as {format}: {what}")]
    Broken {
        /// The format's name.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A part that cannot be read, where that is to be an error.
    #[error("{place} cannot be read: {reason}")]
    Strict {
        /// Where it is.
        place: Place,
        /// Why it cannot be read.
        reason: String,
    },
    /// There is no sample of the event that was asked for.
    #[error(transparent)]
    NoSuchEvent(#[from] NoSuchEvent),
    /// Samples are to be selected by what the input does not say of them.
    #[error("{option} cannot choose samples: {why}")]
    NotSaid {
        /// The option that chooses: `--time`.
        option: &'static str,
        /// What is not said, or not done: `folded text does not say when samples were taken`.
        why: &'static str,
    },
    /// It is not pprof, or breaks the rules of it.
    #[error(transparent)]
    Pprof(#[from] PprofError),
    /// Folded text that cannot be read on.
    #[error(transparent)]
    Folded(FoldedError),
}

/// An input has no sample of the event that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has no sample of {asked}, but of {others}")]
pub struct NoSuchEvent {
    /// What was asked for.
    pub asked: String,
    /// What it has, each with the number of samples.
    pub others: String,
}
