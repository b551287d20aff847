//! Turns what the kernel said of a mapping into the file that is mapped, and no other one.
//!
//! The same path may be another file by now, or a file of another mount namespace. A file is
//! believed when its inode and device are those of the mapping. Overlay and btrfs file systems
//! report another device through stat than the kernel does for a mapping; there the device is
//! believed when flame's own mappings, or a process in flame's own namespace, showed that these two
//! are the same.
//!
//! When a process has ended, the inode of its file may have been given to a new one, or other bytes
//! written into it. Both show in the times of the file that is there: it is younger than the sample
//! that wants its names.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flame_events::{FileId, Found, ImageKey, parse_maps};
use flame_image::{FileStatus, ImageError, ImageFile};
use flame_profile::{Missing, Nanos, Pid, Tid};
use flame_sampler::live_task_of;
use flame_symbolize::Sources;
use nix::libc;
use rustc_hash::FxHashSet;

use super::clock::to_monotonic;
use super::debug_places::DebugPlaces;
use crate::SharedFiles;
use crate::target::Namespace;

/// A device, as the kernel numbers it: major and minor.
type Device = (u32, u32);

/// Finds the files of mappings.
#[derive(Debug)]
pub(super) struct MappedFiles {
    places: DebugPlaces,
    files: SharedFiles,
    /// Pairs of what stat and what a mapping say of one device.
    aliases: Option<FxHashSet<(Device, Device)>>,
}

/// When a file came to be, and its bytes; `None` where the file system does not know.
#[derive(Clone, Copy, Debug)]
struct FileTimes {
    created: Option<SystemTime>,
    modified: Option<SystemTime>,
}

/// Code that was seen in a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'f> {
    pub(super) pid: Pid,
    pub(super) found: &'f Found,
    /// When it was mapped for certain, on the clock of samples; `None` = it is.
    pub(super) time: Option<Nanos>,
}

/// Opens the file of an image as that process has it mapped, with its debug files where they
/// usually are.
pub fn open_file(
    key: &ImageKey,
    pid: Pid,
    found: &Found,
    files: &SharedFiles,
) -> Result<ImageFile, Missing> {
    if key.is_vdso() {
        return files.vdso().ok_or(Missing::FileUnreadable);
    }
    MappedFiles::new(files.clone()).open(key, Seen { pid, found, time: None })
}

impl MappedFiles {
    /// Opened that way.
    pub(super) fn new(files: SharedFiles) -> MappedFiles {
        MappedFiles { files, places: DebugPlaces::default(), aliases: None }
    }

    /// Has debug files looked for there.
    pub(super) fn look_for_debug_files(&mut self, places: DebugPlaces) {
        self.places = places;
    }

    /// Opens the file of an image as that process has it mapped.
    pub(super) fn open(&mut self, key: &ImageKey, seen: Seen<'_>) -> Result<ImageFile, Missing> {
        let pid = seen.pid;
        if !key.path.starts_with(b"/") {
            return Err(Missing::FileUnreadable);
        }
        let path = key.path.strip_suffix(b" (deleted)").unwrap_or(&key.path);
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let namespace = self.files.namespace(pid);
        let live_task = live_task_of(pid);
        let root = match namespace {
            Namespace::Other => PathBuf::from(format!("/proc/{live_task}/root")),
            Namespace::Ours | Namespace::Unknown => PathBuf::from("/"),
        };
        let files = self.files.of(pid);
        let mut reason = Missing::FileUnreadable;
        for candidate in candidates(&root, path, live_task, seen.found) {
            let opened = match files.open(&candidate.path) {
                Ok(opened) => opened,
                // It is the same file by every path.
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(_) => continue,
            };
            let is_known = self.files.is_mapped(key, &candidate.path, &opened);
            let is_mapped = is_known.unwrap_or_else(|| {
                let status = &opened.status;
                self.is_mapped(key.file, status, candidate.namespace.unwrap_or(namespace))
                    && !FileTimes::of(status).are_after(seen.time, namespace)
            });
            if !is_mapped {
                reason = Missing::FileReplaced;
                continue;
            }
            let search = self.places.search(path, &root, self.files.debug_files_of(pid));
            match ImageFile::of_file(&candidate.path, &opened, search) {
                Ok(file) => {
                    if namespace == Namespace::Other {
                        // Its root is gone when the process is: what is there is opened now.
                        let sources = Sources::of(&file);
                        tracing::debug!(?sources, "in another mount namespace");
                    }
                    return Ok(file);
                }
                Err(ImageError::Open { .. }) => {}
                Err(error) => return Err(error.missing()),
            }
        }
        Err(reason)
    }

    /// Whether a file is the one that was mapped.
    fn is_mapped(&mut self, mapped: FileId, status: &FileStatus, namespace: Namespace) -> bool {
        let FileId::Inode { major, minor, inode, .. } = mapped else {
            // A build ID has been compared already, where it was known.
            return mapped == FileId::None;
        };
        if status.inode != inode {
            return false;
        }
        let reported = (libc::major(status.device), libc::minor(status.device));
        let pair = (reported, (major, minor));
        if pair.0 == pair.1 {
            return true;
        }
        let aliases = self.aliases.get_or_insert_with(own_aliases);
        match namespace {
            // Reached through the process itself, or where it looks as well: the same path in the
            // same namespace with the same inode is the same file.
            Namespace::Ours => {
                aliases.insert(pair);
                true
            }
            Namespace::Other | Namespace::Unknown => aliases.contains(&pair),
        }
    }
}

impl FileTimes {
    fn of(status: &FileStatus) -> FileTimes {
        FileTimes { created: status.created, modified: status.modified }
    }

    /// Whether the file came to be after its code was seen, or other bytes into it. As long as the
    /// process runs, what is written into the file is what it executes.
    ///
    /// File systems round times down, never up; a time to come says that somebody set the clock.
    fn are_after(self, seen: Option<Nanos>, namespace: Namespace) -> bool {
        let Some(seen) = seen else { return false };
        let now = SystemTime::now();
        let is_after = |time: Option<SystemTime>| {
            let Some(time) = time.filter(|time| *time <= now) else { return false };
            let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            to_monotonic(Nanos::from(since_1970)) > seen
        };
        is_after(self.created) || (namespace == Namespace::Unknown && is_after(self.modified))
    }
}

/// A path to try.
struct Candidate {
    path: PathBuf,
    /// What is known of the way there, if it is more than of the process.
    namespace: Option<Namespace>,
}

/// By its path where the process sees it; then through the kernel's links to what is mapped, which
/// lead to files that are deleted as well, but which not everybody may follow; then by the same
/// path in flame's own file system.
fn candidates(root: &Path, path: &Path, live_task: Tid, found: &Found) -> Vec<Candidate> {
    let (start, end) = (found.mapping.start.0, found.mapping.end.0);
    let link = |path: String| Candidate {
        path: PathBuf::from(path),
        // Whatever the path, this is the process's own file.
        namespace: Some(Namespace::Ours),
    };
    let mut candidates = vec![Candidate {
        path: root.join(path.strip_prefix("/").unwrap_or(path)),
        namespace: (root != Path::new("/")).then_some(Namespace::Ours),
    }];
    candidates.push(link(format!("/proc/{live_task}/map_files/{start:x}-{end:x}")));
    candidates.push(link(format!("/proc/{live_task}/exe")));
    if root != Path::new("/") {
        candidates.push(Candidate { path: path.to_owned(), namespace: None });
    }
    candidates
}

/// What stat and the kernel say of the devices of flame's own code.
fn own_aliases() -> FxHashSet<(Device, Device)> {
    let maps = parse_maps(&fs::read("/proc/self/maps").unwrap_or_default());
    let alias = |mapping: &flame_events::ParsedMapping| {
        let FileId::Inode { major, minor, inode, .. } = mapping.file else { return None };
        let status = fs::metadata(Path::new(std::ffi::OsStr::from_bytes(&mapping.path))).ok()?;
        let device = (libc::major(status.dev()), libc::minor(status.dev()));
        (status.ino() == inode).then_some((device, (major, minor)))
    };
    maps.iter().filter_map(alias).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_of_another_device_is_believed_only_where_the_devices_are_known_to_be_one() {
        let status = FileStatus::from(&fs::metadata("/proc/self/exe").unwrap());
        let device = (libc::major(status.device), libc::minor(status.device));
        let generation = Some(1);
        let file =
            |(major, minor): Device, inode| FileId::Inode { major, minor, inode, generation };
        let other = (0xfff, 0xfffff);
        let mut files = MappedFiles::new(Arc::new(crate::LiveFiles::default()));
        let mut check = |file, namespace, expect| {
            assert_eq!(files.is_mapped(file, &status, namespace), expect, "{file:?} {namespace:?}");
        };
        let inode = status.inode;
        for namespace in [Namespace::Ours, Namespace::Other, Namespace::Unknown] {
            check(FileId::None, namespace, true);
            check(file(device, inode), namespace, true);
            check(file(device, inode + 1), namespace, false);
            check(file(other, inode + 1), namespace, false);
        }
        check(file(other, inode), Namespace::Other, false);
        check(file(other, inode), Namespace::Unknown, false);
        // A live process in flame's own namespace shows that the two are the same device.
        check(file(other, inode), Namespace::Ours, true);
        check(file(other, inode), Namespace::Other, true);
        check(file((0xffe, 1), inode), Namespace::Unknown, false);
    }

    #[test]
    fn a_file_that_is_younger_than_what_was_seen_is_another_one() {
        let now = SystemTime::now();
        let ago = |seconds| Some(now - Duration::from_secs(seconds));
        let seen = |seconds| {
            let since_1970 = (now - Duration::from_secs(seconds)).duration_since(UNIX_EPOCH);
            Some(to_monotonic(Nanos::from(since_1970.unwrap())))
        };
        let to_come = Some(now + Duration::from_secs(3600));
        let check = |times: (Option<SystemTime>, Option<SystemTime>), seen, expect: [bool; 2]| {
            let (created, modified) = times;
            let times = FileTimes { created, modified };
            let found = [Namespace::Ours, Namespace::Unknown].map(|n| times.are_after(seen, n));
            assert_eq!(found, expect, "{times:?} {seen:?}");
        };
        // What runs executes what was written; of what has ended the bytes are gone.
        check((ago(9), ago(9)), seen(5), [false, false]);
        check((ago(9), ago(3)), seen(5), [false, true]);
        check((ago(3), ago(3)), seen(5), [true, true]);
        // Copied with its old times, or by a tool that keeps them.
        check((ago(3), ago(9)), seen(5), [true, true]);
        // Somebody set the clock; a file system that does not know; the process runs now.
        check((to_come, to_come), seen(5), [false, false]);
        check((None, None), seen(5), [false, false]);
        check((ago(3), ago(3)), None, [false, false]);
    }
}
