//! Where debug files are looked for.

use std::path::{Path, PathBuf};

use flame_image::{Budget, DebugSearch, Files};

/// What all images of a recording have in common.
#[derive(Clone, Debug, Default)]
pub struct DebugPlaces {
    /// Directories to look into before the usual ones.
    pub directories: Vec<PathBuf>,
    /// The directory that fetched files are in.
    pub cache: Option<PathBuf>,
    /// How many bytes may be unpacked, of all images together.
    pub budget: Budget,
}

impl DebugPlaces {
    /// For an image at that path of a process whose `/` is at `root`; opened that way.
    pub fn search(&self, path: &Path, root: &Path, files: Files) -> DebugSearch {
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
    pub fn note(&self) -> Option<String> {
        let refused = self.budget.refused();
        (refused > 0).then(|| {
            format!(
                "{refused} parts of files were left out: too large, or compressed more than \
                     is plausible"
            )
        })
    }
}
