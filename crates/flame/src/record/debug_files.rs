//! The fetching of debug files that are nowhere.
//!
//! Servers are asked only when DEBUGINFOD_URLS names some, and only for images that enough samples
//! are in: a download takes seconds, and nobody looks for the names of a thousandth.

#[cfg(feature = "debuginfod")]
mod fetching;

#[cfg(feature = "debuginfod")]
pub(super) use fetching::fetch_missing;

/// Without the feature nothing is fetched.
#[cfg(not(feature = "debuginfod"))]
pub(super) fn fetch_missing(
    _: &[flame_recorder::SeenImage<'_>],
    _samples: u64,
    _quiet: bool,
    _: crate::terminal::Paint,
    _: &super::signals::StopSignals,
) -> Option<String> {
    None
}
