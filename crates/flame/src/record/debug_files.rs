//! Where debug files are looked for, and the fetching of those that are nowhere.
//!
//! Servers are asked only when DEBUGINFOD_URLS names some, and only for images that enough samples
//! are in: a download takes seconds, and nobody looks for the names of a thousandth.

#[cfg(feature = "debuginfod")]
mod fetching;

use std::path::{Path, PathBuf};

use flame_symbolize::{Budget, DebugSearch, Files};

use crate::cli::SymbolArgs;
use crate::symbols::{cache_home, is_environment_of_caller};
#[cfg(feature = "debuginfod")]
pub(super) use fetching::fetch_missing;

/// What all images of a recording have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct DebugPlaces {
    directories: Vec<PathBuf>,
    cache: Option<PathBuf>,
    budget: Budget,
}

impl DebugPlaces {
    /// As the command line and the environment say.
    pub(super) fn of(args: &SymbolArgs) -> DebugPlaces {
        let budget = Budget::default();
        DebugPlaces { directories: args.debug_dirs.clone(), cache: cache(), budget }
    }

    /// For an image at that path of a process whose `/` is at `root`; opened that way.
    pub(super) fn search(&self, path: &Path, root: &Path, files: Files) -> DebugSearch {
        DebugSearch {
            path: path.to_owned(),
            root: root.to_owned(),
            directories: self.directories.clone(),
            cache: self.cache.clone(),
            files,
            budget: self.budget.clone(),
        }
    }

    /// What has to be said of files that there was no room for.
    pub(super) fn note(&self) -> Option<String> {
        let refused = self.budget.refused();
        (refused > 0).then(|| {
            format!("{refused} parts of files were left out: too large, or packed beyond belief")
        })
    }
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
    _: &super::collector::Collected,
    _quiet: bool,
    _: crate::terminal::Paint,
    _: &super::signals::StopSignals,
) -> Option<String> {
    None
}
