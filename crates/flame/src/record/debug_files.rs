//! Where debug files are looked for, and the fetching of those that are nowhere.
//!
//! Servers are asked only when DEBUGINFOD_URLS names some, and only for images that enough samples
//! are in: a download takes seconds, and nobody looks for the names of a thousandth.

#[cfg(feature = "debuginfod")]
mod fetching;

use std::path::PathBuf;

use flame_recorder::DebugPlaces;
use flame_symbolize::Budget;

use crate::cli::SymbolArgs;
use crate::symbols::{cache_home, is_environment_of_caller};
#[cfg(feature = "debuginfod")]
pub(super) use fetching::fetch_missing;

/// As the command line and the environment say.
pub(super) fn places(args: &SymbolArgs) -> DebugPlaces {
    let budget = Budget::default();
    DebugPlaces { directories: args.debug_dirs.clone(), cache: cache(), budget }
}

/// debuginfod's cache, where its own clients have it. Under sudo it is root's: what is in the
/// caller's place leads where the caller wants, and what root wrote there would be in the way.
fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("DEBUGINFOD_CACHE_PATH").filter(|value| !value.is_empty());
    match named.filter(|_| !is_environment_of_caller()) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(cache_home()?.join("debuginfod_client")),
    }
}

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
