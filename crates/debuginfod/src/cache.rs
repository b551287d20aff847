//! debuginfod's cache: a directory for each build id, with its file named `debuginfo`. An empty
//! file says that no server had it when it was made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use flame_profile::BuildId;

/// How long a note that no server has a file is believed: what debuginfod's clients do
/// (`cache_miss_s`).
pub const MISS_LIFETIME: Duration = Duration::from_secs(600);

/// The place of one file in the cache.
pub(crate) struct Slot {
    directory: PathBuf,
    path: PathBuf,
}

/// What is in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cached {
    /// The file.
    File,
    /// A note that no server has it.
    KnownAbsent,
    /// Nothing, or an old note.
    Nothing,
}

impl Slot {
    pub(crate) fn new(cache: &Path, id: &BuildId) -> Slot {
        let directory = cache.join(id.to_string());
        Slot { path: directory.join("debuginfo"), directory }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn look(&self) -> Cached {
        let Ok(status) = fs::metadata(&self.path) else { return Cached::Nothing };
        if status.len() > 0 {
            return Cached::File;
        }
        let made = status.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let age = SystemTime::now().duration_since(made).unwrap_or_default();
        if age < MISS_LIFETIME { Cached::KnownAbsent } else { Cached::Nothing }
    }

    /// Notes that no server has the file. What does not work is no loss.
    pub(crate) fn note_absence(&self) {
        let noted = self.begin().and_then(Unfinished::keep);
        if let Err(error) = noted {
            tracing::debug!(%error, path = ?self.path, "cannot note that a file is absent");
        }
    }

    /// A file beside the place, under a name of its own.
    pub(crate) fn begin(&self) -> io::Result<Unfinished> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("debuginfo.flame-{}-{number}", std::process::id());
        let path = self.directory.join(name);
        let mut options = OpenOptions::new();
        // Never follows a link that somebody put there.
        let open = options.write(true).create_new(true).mode(0o600).open(&path);
        let file = match open {
            // Left behind by a flame of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                options.open(&path)?
            }
            other => other?,
        };
        Ok(Unfinished { file, path, goal: self.path.clone(), is_kept: false })
    }
}

/// A file on its way into the cache; removed when it is not kept.
pub(crate) struct Unfinished {
    file: File,
    path: PathBuf,
    goal: PathBuf,
    is_kept: bool,
}

impl Unfinished {
    pub(crate) fn writer(&mut self) -> &mut File {
        &mut self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place, over an old note.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.goal)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}
