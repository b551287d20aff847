//! What is known about how a profile was taken.

use crate::units::{Hz, Nanos};

/// Circumstances of a recording; all absent for a profile read from bare folded text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The event that triggered the samples, in perf's spelling, for example `cpu-clock`.
    pub event: Option<String>,
    /// The sampling frequency asked for; `None` when a period was.
    pub frequency: Option<Hz>,
    /// The sampling period in the event's unit (nanoseconds for clocks).
    pub period: Option<u64>,
    /// When the recording started: nanoseconds since 1970-01-01 UTC.
    pub start: Option<Nanos>,
    /// How long it lasted.
    pub duration: Option<Nanos>,
    /// The machine's host name.
    pub host: Option<String>,
    /// The command line that was profiled, or the target's description.
    pub target: Option<String>,
    /// The command that recorded it, quoted so that a shell takes it as it was.
    pub command: Option<String>,
    /// What wrote the profile, for example `flame 0.1.0`.
    pub producer: Option<String>,
}
