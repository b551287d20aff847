//! What stands at a path that the user named, found without being led astray by whoever else may
//! write to the directories on the way.
//!
//! A path is gone through name by name, each of them looked at and not opened (`O_PATH`). For root
//! a link is a trap where others can put one: it is followed only if it belongs to root or to the
//! user who called sudo. What is opened in the end is what was looked at.
//!
//! Not for what targets brought along ([`flame_recorder::ProcessRoot`]).
//!
//! Sources: open(2) for `O_PATH`, symlink(7) and proc(5) for links that the kernel follows itself.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use flame_doctor::rights::user_name;
use flame_recorder::FoundFile;
use nix::fcntl::{AT_FDCWD, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::Uid;

/// How many links one path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

/// The longest file beside a profile that is read whole, in bytes.
const MAX_LEN: u64 = 64 << 20;

/// Somebody whom root does not trust put a link there.
#[derive(Debug, thiserror::Error)]
#[error("it leads through a link; {} put it there, and flame runs as root", user_name(*.owner))]
pub(crate) struct StrangersLink {
    owner: u32,
}

/// The files of this user, and for root of the one who called sudo.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnFiles {
    /// The numbers of the user who called sudo and of the group; files are given to them.
    pub caller: Option<(u32, u32)>,
}

/// What stands at the end of a path.
#[derive(Debug)]
pub struct Found {
    /// Not opened yet.
    pub file: FoundFile,
    /// Whether the way there led through a link of the kernel's own to what a process has open, as
    /// `/dev/stdout` does.
    pub is_open_file: bool,
}

/// The directory that a path names a file in, and the name.
#[derive(Debug)]
pub struct Place {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
}

impl OwnFiles {
    /// Finds what stands at a path, following links that can be trusted.
    pub fn find(self, path: &Path) -> io::Result<Found> {
        let mut walk = Walk::begin(path, self)?;
        while let Some(name) = walk.names.pop() {
            walk.enter(&name)?;
        }
        Ok(Found { file: FoundFile::from(walk.at), is_open_file: walk.through_proc })
    }

    /// Finds the directory of a path; what stands at its last name, a link or nothing, is not looked at.
    pub fn find_place(self, path: &Path) -> io::Result<Place> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = self.find(folder.unwrap_or(Path::new(".")))?;
        Ok(Place { folder: found.file.into(), name })
    }

    /// Reads a file that says something about profiles: a regular one, of a length that makes sense.
    pub fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.find(path)?.file.open()?.file.take(MAX_LEN + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_LEN {
            return Err(io::Error::other(format!("larger than {} MB", MAX_LEN >> 20)));
        }
        Ok(bytes)
    }

    /// The user for whom root must not open a file of that owner: anybody but root and the user who
    /// called sudo. `None` for flame that does not run as root.
    pub fn stranger(self, owner: u32) -> Option<u32> {
        let caller = self.caller.map(|(user, _)| user);
        (Uid::effective().is_root() && owner != 0 && Some(owner) != caller).then_some(owner)
    }
}

/// A path on the way to its end.
struct Walk {
    files: OwnFiles,
    at: OwnedFd,
    /// What is left, the next name last.
    names: Vec<OsString>,
    links: usize,
    through_proc: bool,
}

impl Walk {
    fn begin(path: &Path, files: OwnFiles) -> io::Result<Walk> {
        let start = if path.is_absolute() { "/" } else { "." };
        let at = openat(AT_FDCWD, start, found_flags(), Mode::empty())?;
        let mut walk = Walk { files, at, names: Vec::new(), links: 0, through_proc: false };
        walk.put_before(path);
        Ok(walk)
    }

    /// Goes through those names first.
    fn put_before(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.names.extend(names);
    }

    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let flags = found_flags() | OFlag::O_NOFOLLOW;
        let next = openat(&self.at, name, flags, Mode::empty())?;
        let status = fstat(&next)?;
        if SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT != SFlag::S_IFLNK {
            self.at = next;
            return Ok(());
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(nix::errno::Errno::ELOOP.into());
        }
        if let Some(owner) = self.files.stranger(status.st_uid) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, StrangersLink { owner }));
        }
        if fstatfs(&next)?.filesystem_type() == PROC_SUPER_MAGIC {
            // Its text is not where it leads.
            self.at = openat(&self.at, name, found_flags(), Mode::empty())?;
            self.through_proc = true;
            return Ok(());
        }
        let goal = PathBuf::from(readlinkat(&next, OsStr::from_bytes(b""))?);
        if goal.is_absolute() {
            self.at = openat(AT_FDCWD, "/", found_flags(), Mode::empty())?;
        }
        self.put_before(&goal);
        Ok(())
    }
}

fn found_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_CLOEXEC
}

/// Whether two descriptions are of the same file.
pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory of its own, with `real/file` in it.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("real")).unwrap();
        fs::write(folder.join("real/file"), "text").unwrap();
        folder
    }

    fn text(path: &Path) -> Result<String, io::ErrorKind> {
        OwnFiles::default()
            .read(path)
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|error| error.kind())
    }

    #[test]
    fn own_links_are_followed_as_the_kernel_does() {
        let dir = folder("own-links");
        symlink(dir.join("real"), dir.join("absolute")).unwrap();
        symlink("absolute/../real/./file", dir.join("relative")).unwrap();
        symlink("circle", dir.join("circle")).unwrap();
        symlink("nowhere", dir.join("dangling")).unwrap();
        nix::unistd::mkfifo(&dir.join("fifo"), Mode::S_IRWXU).unwrap();
        let names = ["absolute/file", "relative", "real", "fifo", "dangling", "real/file/x"];
        let found = names.map(|name| text(&dir.join(name)));
        let circle = OwnFiles::default().find(&dir.join("circle")).unwrap_err().raw_os_error();
        fs::remove_dir_all(&dir).unwrap();
        let yes = || Ok("text".to_owned());
        let special = || Err(io::ErrorKind::InvalidInput);
        let (missing, no_folder) = (io::ErrorKind::NotFound, io::ErrorKind::NotADirectory);
        let expect = [yes(), yes(), special(), special(), Err(missing), Err(no_folder)];
        assert_eq!((found, circle), (expect, Some(nix::libc::ELOOP)));
    }

    #[test]
    fn root_follows_no_link_of_a_stranger_anywhere_in_a_chain() {
        if !Uid::effective().is_root() {
            return;
        }
        let dir = folder("strangers-links");
        symlink("real", dir.join("theirs")).unwrap();
        std::os::unix::fs::lchown(dir.join("theirs"), Some(65534), None).unwrap();
        symlink("theirs/file", dir.join("ours")).unwrap();
        symlink("theirs", dir.join("folder")).unwrap();
        let found = ["theirs/file", "ours", "folder/file", "real/file"];
        let found = found.map(|name| text(&dir.join(name)));
        let place =
            OwnFiles::default().find_place(&dir.join("folder/new")).unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        let refused = || Err(io::ErrorKind::InvalidInput);
        assert_eq!(found, [refused(), refused(), refused(), Ok("text".to_owned())]);
        assert!(place.ends_with("put it there, and flame runs as root"), "{place}");
    }

    #[test]
    fn what_is_open_is_found_through_the_kernels_own_links() {
        let dir = folder("open-files");
        let file = File::open(dir.join("real/file")).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        fs::remove_dir_all(&dir).unwrap();
        let found = OwnFiles::default().find(Path::new(&path)).unwrap();
        assert!(found.is_open_file);
        assert!(is_same(&found.file.metadata().unwrap(), &file.metadata().unwrap()));
    }
}
