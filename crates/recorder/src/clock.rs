//! Turns times of files into times of samples.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flame_profile::Nanos;
use nix::time::{ClockId, clock_gettime};

/// How often two clocks are read to compare them.
const CLOCK_READINGS: usize = 3;

/// A time of files on the clock of samples.
pub(super) fn to_monotonic(time: Nanos) -> Nanos {
    let monotonic = || {
        Nanos::from(
            clock_gettime(ClockId::CLOCK_MONOTONIC)
                .map_or_else(|_| Duration::default(), Duration::from),
        )
    };
    // flame may be put to sleep between two clocks: the closest of some readings counts.
    let readings = (0..CLOCK_READINGS).map(|_| {
        let before = monotonic();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (monotonic().saturating_since(before), before, Nanos::from(since_1970))
    });
    let (_, now, since_1970) = readings.min().unwrap_or_default();
    now.saturating_since(since_1970.saturating_since(time))
}
