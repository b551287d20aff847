//! What can go wrong with a browser.

use std::path::PathBuf;
use std::time::Duration;

/// Why the browser did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No browser is installed where [`crate::find_browser`] looks.
    #[error("no Chromium found; install chromium, or set FLAME_CHROMIUM to its path")]
    NotFound,
    /// The browser could not be started.
    #[error("cannot start {path}")]
    Start {
        /// The program.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The pipe to the browser is closed: it ended, or it crashed.
    #[error("the browser ended while waiting for {waiting_for}")]
    Gone {
        /// The method or event.
        waiting_for: String,
    },
    /// The browser did not answer in time.
    #[error("no answer within {limit:?} to {waiting_for}")]
    Timeout {
        /// The method or event.
        waiting_for: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The browser refused a command.
    #[error("{method}: {message}")]
    Refused {
        /// The command.
        method: String,
        /// The browser's reason.
        message: String,
    },
    /// A script threw.
    #[error("script threw: {message}")]
    Script {
        /// What it threw.
        message: String,
    },
    /// An answer did not have the expected shape.
    #[error("unexpected answer to {method}: {answer}")]
    Answer {
        /// The command.
        method: String,
        /// The answer as JSON.
        answer: String,
    },
    /// A file could not be read or written.
    #[error("cannot access {path}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
