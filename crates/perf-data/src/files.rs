//! Files of the processes that a file tells of: those that are still what they were.
//!
//! A recording says of each image where it was and which it was: its inode, or its build ID. What
//! has its path by now may be another build, of which no name would be right.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use flame_events::{FileId, ImageKey};
use flame_image::{DebugSearch, FileAccess, Files, ImageFile, OpenFile};
use flame_profile::{Pid, Tid};
use flame_recorder::{Identity, LiveFiles, Namespace, TargetFiles, identity_of};

use crate::facts::Facts;
use crate::machine::is_this_machine;

/// The clock of jitdumps, which a recording has with `perf record -k mono` only.
pub(crate) const MONOTONIC: u32 = 1;

/// What is known of the recording's own file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// When it came to be: when the recording started.
    pub created: Option<SystemTime>,
    /// When it was written to its end.
    pub modified: Option<SystemTime>,
    /// Whose it is.
    pub owner: Option<u32>,
}

/// Files of the processes of a recording.
#[derive(Clone, Debug)]
pub(crate) struct RecordedFiles {
    pub(crate) facts: Facts,
    pub(crate) written: Written,
    /// The way to files of this machine.
    pub(crate) live: LiveFiles,
    /// Where `/` of the recorded machine is, if not here.
    pub(crate) sysroot: Option<PathBuf>,
    /// Directories of this machine, whatever the sysroot.
    pub(crate) own_directories: Vec<PathBuf>,
    /// The clock of the samples, by its number.
    pub(crate) clock: Option<u32>,
    /// How many files were taken on the word of who named the sysroot.
    pub(crate) unproven: Arc<AtomicU64>,
}

/// Opens files where the recorded machine's are.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) live: LiveFiles,
    pub(crate) sysroot: Option<PathBuf>,
    pub(crate) own_directories: Vec<PathBuf>,
}

impl FileAccess for Access {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        // Processes of those numbers are others by now.
        if path.starts_with("/proc") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let is_own = self.own_directories.iter().any(|own| path.starts_with(own));
        match &self.sysroot {
            Some(sysroot) if path.is_absolute() && !is_own => self.live.open_below(sysroot, path),
            _ => self.live.open(path),
        }
    }
}

impl RecordedFiles {
    fn access(&self) -> Files {
        let (sysroot, own_directories) = (self.sysroot.clone(), self.own_directories.clone());
        Files::new(Access { live: self.live.clone(), sysroot, own_directories })
    }

    fn is_same(&self, key: &ImageKey, path: &Path, found: &OpenFile) -> bool {
        let search = || DebugSearch { files: self.access(), ..DebugSearch::of(path) };
        let image = || ImageFile::of_file(path, found, search()).ok();
        let has = |expect: &[u8]| {
            let id = image().and_then(|image| image.build_id().map(|id| id.as_bytes().to_vec()));
            id.is_some_and(|id| is_same_id(expect, &id))
        };
        if let FileId::BuildId(id) = key.file {
            return has(id.as_bytes());
        }
        let expect = self.facts.build_ids.get(&*key.path);
        if self.sysroot.is_some() {
            if expect.is_none() {
                self.unproven.fetch_add(1, Ordering::Relaxed);
            }
            return expect.is_none_or(|id| has(id.as_bytes()));
        }
        let is_inode = match key.file {
            FileId::Inode { inode, .. } => found.status.inode == inode,
            _ => false,
        };
        let is_here = is_this_machine(&self.facts) != Some(false);
        match (expect, is_here && is_inode) {
            // perf asks for the build ID when the recording ends: where there is another file than
            // was mapped, and it came to be meanwhile, that is the ID of the other one.
            (Some(id), false) => has(id.as_bytes()) && !(is_here && self.came_meanwhile(found)),
            (Some(id), true) => has(id.as_bytes()),
            (None, true) => !self.is_younger(found.status.created.max(found.status.modified)),
            (None, false) => false,
        }
    }

    /// Whether something came to be after the recording.
    fn is_younger(&self, time: Option<SystemTime>) -> bool {
        let end = self.written.modified.unwrap_or_else(SystemTime::now);
        time.is_some_and(|time| time > end)
    }

    fn came_meanwhile(&self, found: &OpenFile) -> bool {
        let (Some(start), Some(end)) = (self.written.created, self.written.modified) else {
            return false;
        };
        found.status.created.is_some_and(|created| created >= start && created <= end)
    }
}

/// Whether build IDs are the same; a file has room for 20 bytes, and shorter ones are padded.
fn is_same_id(recorded: &[u8], found: &[u8]) -> bool {
    let padding = recorded.strip_prefix(found);
    padding.is_some_and(|padding| padding.iter().all(|byte| *byte == 0))
}

impl TargetFiles for RecordedFiles {
    fn of(&self, _: Pid) -> Files {
        self.access()
    }

    fn open_in_root(&self, _: Option<Pid>, path: &Path, _: Pid) -> io::Result<File> {
        let is_dump = path.extension().is_some_and(|ending| ending == "dump");
        let is_on_other_clock = is_dump && self.clock != Some(MONOTONIC);
        let is_elsewhere = self.sysroot.is_some() || is_this_machine(&self.facts) != Some(true);
        if is_elsewhere || is_on_other_clock {
            return Err(io::ErrorKind::NotFound.into());
        }
        let opened = self.live.open_unlinked(path)?;
        match self.is_younger(opened.status.created) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(opened.file),
        }
    }

    fn text(&self, _: Pid, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn threads(&self, _: Pid) -> Vec<(Tid, Vec<u8>)> {
        Vec::new()
    }

    fn identity(&self, pid: Pid) -> Identity {
        let own = || identity_of(Pid(std::process::id())).user;
        Identity {
            inner_pid: pid.0,
            user: self.written.owner.unwrap_or_else(own),
            group: 0,
            caught_signals: 0,
            started: None,
        }
    }

    fn namespace(&self, _: Pid) -> Namespace {
        Namespace::Unknown
    }

    fn is_mapped(&self, key: &ImageKey, path: &Path, found: &OpenFile) -> Option<bool> {
        Some(self.is_same(key, path, found))
    }

    /// The vdso of this kernel, where it is that of the recording.
    fn vdso(&self) -> Option<ImageFile> {
        let own = self.live.vdso()?;
        let id = own.build_id()?;
        let recorded = self.facts.build_ids.get(&b"[vdso]"[..]);
        let is_same = match recorded {
            Some(recorded) => is_same_id(recorded.as_bytes(), id.as_bytes()),
            None => crate::machine::is_this_release(&self.facts),
        };
        is_same.then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_may_be_padded() {
        for (recorded, found, expect) in [
            (&b"0123"[..], &b"0123"[..], true),
            (b"0123\0\0", b"0123", true),
            (b"0123", b"01234", false),
            (b"0123", b"0124", false),
            (b"0123xx", b"0123", false),
        ] {
            assert_eq!(is_same_id(recorded, found), expect, "{recorded:?} {found:?}");
        }
    }
}
