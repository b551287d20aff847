//! Turns what the kernel said of a mapping into the file that is mapped, and no other one.
//!
//! The same path may be another file by now, or a file of another mount namespace. A file is
//! believed when its inode and device are those of the mapping. Overlay and btrfs file systems
//! report another device through stat than the kernel does for a mapping; there the device is
//! believed when flame's own mappings, or a process in flame's own namespace, showed that these two
//! are the same.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flame_events::{FileId, Found, ImageKey, parse_maps};
use flame_profile::{Missing, Pid};
use flame_symbolize::{ImageError, ImageFile};
use nix::libc;
use rustc_hash::FxHashSet;

use super::debug_files::DebugPlaces;

/// A device, as the kernel numbers it: major and minor.
type Device = (u32, u32);

/// Finds the files of mappings.
#[derive(Debug, Default)]
pub(super) struct MappedFiles {
    places: DebugPlaces,
    /// Pairs of what stat and what a mapping say of one device.
    aliases: Option<FxHashSet<(Device, Device)>>,
}

/// How the file system of a process relates to flame's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namespace {
    /// The same mounts and the same root.
    Ours,
    /// Others: `/proc/PID/root` is the way there.
    Other,
    /// The process has ended.
    Unknown,
}

/// Opens the file of an image as that process has it mapped, with its debug files where they
/// usually are.
pub(crate) fn open_file(key: &ImageKey, pid: Pid, found: &Found) -> Result<ImageFile, Missing> {
    if key.is_vdso() {
        return super::images::vdso().ok_or(Missing::FileUnreadable);
    }
    MappedFiles::default().open(key, pid, found)
}

impl MappedFiles {
    /// Has debug files looked for there.
    pub(super) fn look_for_debug_files(&mut self, places: DebugPlaces) {
        self.places = places;
    }

    /// Opens the file of an image as that process has it mapped.
    pub(super) fn open(
        &mut self,
        key: &ImageKey,
        pid: Pid,
        found: &Found,
    ) -> Result<ImageFile, Missing> {
        if !key.path.starts_with(b"/") {
            return Err(Missing::FileUnreadable);
        }
        let path = key.path.strip_suffix(b" (deleted)").unwrap_or(&key.path);
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let namespace = namespace(pid);
        let root = match namespace {
            Namespace::Other => PathBuf::from(format!("/proc/{pid}/root")),
            Namespace::Ours | Namespace::Unknown => PathBuf::from("/"),
        };
        let mut reason = Missing::FileUnreadable;
        for candidate in candidates(&root, path, pid, found) {
            let Ok(status) = fs::metadata(&candidate.path) else { continue };
            if !self.is_mapped(key.file, &status, candidate.namespace.unwrap_or(namespace)) {
                reason = Missing::FileReplaced;
                continue;
            }
            match ImageFile::open_with(&candidate.path, self.places.search(path, &root)) {
                Ok(file) => {
                    if namespace == Namespace::Other {
                        // Its root is gone when the process is: what is there is opened now.
                        let sources = file.sources();
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
    fn is_mapped(&mut self, mapped: FileId, status: &Metadata, namespace: Namespace) -> bool {
        let FileId::Inode { major, minor, inode } = mapped else { return true };
        if status.ino() != inode {
            return false;
        }
        let reported = (libc::major(status.dev()), libc::minor(status.dev()));
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

/// A path to try.
struct Candidate {
    path: PathBuf,
    /// What is known of the way there, if it is more than of the process.
    namespace: Option<Namespace>,
}

/// By its path where the process sees it; then through the kernel's links to what is mapped, which
/// lead to files that are deleted as well, but which not everybody may follow; then by the same
/// path in flame's own file system.
fn candidates(root: &Path, path: &Path, pid: Pid, found: &Found) -> Vec<Candidate> {
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
    candidates.push(link(format!("/proc/{pid}/map_files/{start:x}-{end:x}")));
    candidates.push(link(format!("/proc/{pid}/exe")));
    if root != Path::new("/") {
        candidates.push(Candidate { path: path.to_owned(), namespace: None });
    }
    candidates
}

fn namespace(pid: Pid) -> Namespace {
    let own = (fs::metadata("/proc/self/root/"), fs::metadata("/proc/self/ns/mnt"));
    let (root, mounts) =
        (fs::metadata(format!("/proc/{pid}/root/")), fs::metadata(format!("/proc/{pid}/ns/mnt")));
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (own, root, mounts) {
        ((Ok(own_root), Ok(own_mounts)), Ok(root), Ok(mounts)) => {
            let ours = same(&own_root, &root) && same(&own_mounts, &mounts);
            if ours { Namespace::Ours } else { Namespace::Other }
        }
        _ => Namespace::Unknown,
    }
}

/// What stat and the kernel say of the devices of flame's own code.
fn own_aliases() -> FxHashSet<(Device, Device)> {
    let maps = parse_maps(&fs::read("/proc/self/maps").unwrap_or_default());
    let alias = |mapping: &flame_events::ParsedMapping| {
        let FileId::Inode { major, minor, inode } = mapping.file else { return None };
        let status = fs::metadata(Path::new(std::ffi::OsStr::from_bytes(&mapping.path))).ok()?;
        let device = (libc::major(status.dev()), libc::minor(status.dev()));
        (status.ino() == inode).then_some((device, (major, minor)))
    };
    maps.iter().filter_map(alias).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_device_is_believed_only_where_the_devices_are_known_to_be_one() {
        let status = fs::metadata("/proc/self/exe").unwrap();
        let device = (libc::major(status.dev()), libc::minor(status.dev()));
        let file = |(major, minor): Device, inode| FileId::Inode { major, minor, inode };
        let other = (0xfff, 0xfffff);
        let mut files = MappedFiles::default();
        let mut check = |file, namespace, expect| {
            assert_eq!(files.is_mapped(file, &status, namespace), expect, "{file:?} {namespace:?}");
        };
        let inode = status.ino();
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
    fn flames_own_process_is_in_its_own_namespace() {
        assert_eq!(namespace(Pid(std::process::id())), Namespace::Ours);
        assert_eq!(namespace(Pid(u32::MAX)), Namespace::Unknown);
    }
}
