//! What files take on a disk, as a profile: a frame is a folder, the innermost one a file.
//!
//! A folder may be somebody's who changes it meanwhile: each is opened by its name in the one above it, and
//! no link is followed. Other file systems are not entered, which keeps `/` from being `/proc`, too.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flame_profile::{FrameKind, Location, Profile, StackId, Thread, ThreadId, ValueType, readable};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use rustc_hash::FxBuildHasher;

/// What folders take on a disk, and what of them is not in it.
#[derive(Debug)]
pub struct DiskUsage {
    /// Bytes on the disk, sizes and numbers of files, by their paths.
    pub profile: Profile,
    /// The first paths that could not be read, and why.
    pub unreadable: Vec<(String, io::Error)>,
    /// How many there were.
    pub unreadable_count: u64,
    /// Where other file systems are mounted.
    pub others: Vec<String>,
    /// How many folders stand within more than [`MAX_DEPTH`].
    pub too_deep: u64,
    /// Further names of files that were counted already.
    pub again: u64,
}

/// A folder that was asked for cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", folder.display())]
pub struct DiskUsageError {
    /// The folder.
    pub folder: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// How many folders may stand within one another; deeper ones are counted. Each has an open file.
pub const MAX_DEPTH: usize = 256;
/// What `st_blocks` counts, in bytes: stat(2).
const BLOCK: u64 = 512;

/// A walk through folders.
struct Walk {
    found: DiskUsage,
    thread: ThreadId,
    device: u64,
    /// Files with several names that were met: device and inode.
    met: HashSet<(u64, u64), FxBuildHasher>,
}

/// The usage of these folders.
///
/// # Errors
/// When one of them cannot be read at all.
pub fn disk_usage(folders: &[PathBuf]) -> Result<DiskUsage, DiskUsageError> {
    let values = [("disk", "bytes"), ("size", "bytes"), ("files", "count")];
    let values = values.map(|(name, unit)| ValueType::new(name, unit)).to_vec();
    let mut profile = Profile::new(values);
    profile.default_value = 0;
    let name = profile.intern("[files]");
    let thread = profile.add_whole_thread(Thread { name, process: None, pid: None, tid: None });
    let found = DiskUsage {
        profile,
        unreadable: Vec::new(),
        unreadable_count: 0,
        others: Vec::new(),
        too_deep: 0,
        again: 0,
    };
    let mut walk = Walk { found, thread, device: 0, met: HashSet::default() };
    folders.iter().try_for_each(|folder| walk.begin(folder))?;
    Ok(walk.found)
}

impl Walk {
    fn begin(&mut self, folder: &Path) -> Result<(), DiskUsageError> {
        let shown = readable(folder.as_os_str().as_bytes()).into_owned();
        let refused =
            |error: Errno| DiskUsageError { folder: folder.to_owned(), source: error.into() };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = Dir::open(folder, flags, Mode::empty()).map_err(refused)?;
        let status = fstat(dir.as_fd()).map_err(refused)?;
        self.device = status.st_dev;
        let name = self.found.profile.intern(&shown);
        let thread = Thread { name, process: None, pid: None, tid: None };
        self.thread = self.found.profile.add_whole_thread(thread);
        self.folder(dir, &status, StackId::EMPTY, &shown, 1);
        Ok(())
    }

    /// Adds a folder with all that is in it.
    fn folder(
        &mut self,
        mut dir: Dir,
        status: &FileStat,
        stack: StackId,
        path: &str,
        depth: usize,
    ) {
        self.add(stack, [blocks(status), 0, 0]);
        let mut names: Vec<CString> = Vec::new();
        for entry in dir.iter() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => names.push(entry.file_name().to_owned()),
                Err(error) => return self.cannot_read(path, error),
            }
        }
        names.sort_unstable();
        for name in names {
            self.entry(&dir, &name, stack, path, depth);
        }
    }

    fn entry(&mut self, dir: &Dir, name: &CStr, stack: StackId, path: &str, depth: usize) {
        let shown = readable(name.to_bytes()).into_owned();
        let whole = || format!("{}/{shown}", path.trim_end_matches('/'));
        let status = match fstatat(dir.as_fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) => status,
            // Gone meanwhile.
            Err(Errno::ENOENT) => return,
            Err(error) => return self.cannot_read(&whole(), error),
        };
        if status.st_dev != self.device {
            self.found.others.push(whole());
            return;
        }
        let is_folder = kind(&status) == SFlag::S_IFDIR;
        if !is_folder && status.st_nlink > 1 && !self.met.insert((status.st_dev, status.st_ino)) {
            self.found.again += 1;
            return;
        }
        let frame = self.found.profile.add_frame(&shown, FrameKind::User);
        let location = self.found.profile.add_location(Location::named(frame));
        let stack = self.found.profile.push_stack(stack, location);
        if !is_folder {
            let size = u64::try_from(status.st_size).unwrap_or(0);
            self.add(stack, [blocks(&status), size, 1]);
            return;
        }
        if depth >= MAX_DEPTH {
            self.found.too_deep += 1;
            return self.add(stack, [blocks(&status), 0, 0]);
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match Dir::openat(dir.as_fd(), name, flags, Mode::empty()) {
            Ok(below) => self.folder(below, &status, stack, &whole(), depth + 1),
            Err(Errno::ENOENT) => {}
            Err(error) => {
                self.add(stack, [blocks(&status), 0, 0]);
                self.cannot_read(&whole(), error);
            }
        }
    }

    fn add(&mut self, stack: StackId, values: [u64; 3]) {
        self.found.profile.add_sample(self.thread, stack, &values);
    }

    fn cannot_read(&mut self, path: &str, error: Errno) {
        const NAMED: usize = 3;
        self.found.unreadable_count += 1;
        if self.found.unreadable.len() < NAMED {
            self.found.unreadable.push((path.to_owned(), error.into()));
        }
    }
}

fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT
}

/// What it takes on the disk.
fn blocks(status: &FileStat) -> u64 {
    u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(BLOCK)
}
