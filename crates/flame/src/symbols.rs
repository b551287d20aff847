//! How this user's flame looks up names: the command line and the environment into a configuration.

use std::env;
use std::path::PathBuf;

use flame_image::Budget;
use flame_recorder::DebugPlaces;
use flame_symbolize::SymbolizeConfig;
use nix::unistd::{Uid, User};

/// With or without inlined functions.
pub(crate) fn config(no_inline: bool) -> SymbolizeConfig {
    SymbolizeConfig { inlined: !no_inline, ..SymbolizeConfig::default() }
}

/// Where debug files are looked for, as the command line and the environment say.
pub(crate) fn debug_places(directories: &[PathBuf]) -> DebugPlaces {
    let budget = Budget::default();
    DebugPlaces {
        directories: directories.iter().map(absolute).collect(),
        cache: debuginfod_cache(),
        budget,
    }
}

/// A path that the user named: the process that opens it is in another directory.
pub(crate) fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

/// debuginfod's cache, where its own clients have it. Under sudo it is root's: what is in the
/// caller's place leads where the caller wants, and what root wrote there would be in the way.
pub(crate) fn debuginfod_cache() -> Option<PathBuf> {
    let named = env::var_os("DEBUGINFOD_CACHE_PATH").filter(|value| !value.is_empty());
    match named.filter(|_| !is_environment_of_caller()) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(cache_home()?.join("debuginfod_client")),
    }
}

/// Whether sudo may have left the caller's environment, whose directories are not root's to use.
pub(crate) fn is_environment_of_caller() -> bool {
    env::var_os("SUDO_UID").is_some() && Uid::effective().is_root()
}

/// The directory for what can be had again of the user whom flame runs as.
pub(crate) fn cache_home() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    if !is_environment_of_caller() {
        let named = variable("XDG_CACHE_HOME");
        if let Some(home) = named.or_else(|| Some(variable("HOME")?.join(".cache"))) {
            return Some(home);
        }
    }
    let user = User::from_uid(Uid::effective()).ok().flatten()?;
    Some(user.dir.join(".cache"))
}
