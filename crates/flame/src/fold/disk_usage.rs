//! What files take on a disk, as a profile: a frame is a folder, the innermost one a file.
//!
//! A folder may be somebody's who changes it meanwhile: each is opened by its name in the one above it, and
//! no link is followed. Other file systems are not entered, which keeps `/` from being `/proc`, too.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flame_profile::{FrameKind, Location, Profile, StackId, Thread, ThreadId, ValueType, readable};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use rustc_hash::FxBuildHasher;

use crate::inputs::shown_path;
use crate::message::{Failure, reason};

/// How many folders may stand within one another; deeper ones are counted. Each has an open file.
const MAX_DEPTH: usize = 256;
/// What `st_blocks` counts, in bytes: stat(2).
const BLOCK: u64 = 512;

/// A walk through folders.
struct Walk {
    profile: Profile,
    thread: ThreadId,
    device: u64,
    /// Files with several names that were met: device and inode.
    met: HashSet<(u64, u64), FxBuildHasher>,
    again: u64,
    unreadable: Vec<String>,
    unreadable_count: u64,
    others: Vec<String>,
    too_deep: u64,
}

/// The usage of these folders.
pub(super) fn of_folders(folders: &[PathBuf]) -> Result<Profile, Failure> {
    if folders.is_empty() {
        return Err(Failure::usage("no folder to look into").or_try("flame fold --files /var"));
    }
    let values = [("disk", "bytes"), ("size", "bytes"), ("files", "count")];
    let values = values.map(|(name, unit)| ValueType::new(name, unit)).to_vec();
    let mut profile = Profile::new(values);
    profile.default_value = 0;
    let name = profile.intern("[files]");
    let thread = profile.add_whole_thread(Thread { name, process: None, pid: None, tid: None });
    let mut walk = Walk {
        profile,
        thread,
        device: 0,
        met: HashSet::default(),
        again: 0,
        unreadable: Vec::new(),
        unreadable_count: 0,
        others: Vec::new(),
        too_deep: 0,
    };
    folders.iter().try_for_each(|folder| walk.begin(folder))?;
    Ok(walk.finish())
}

impl Walk {
    fn begin(&mut self, folder: &Path) -> Result<(), Failure> {
        let shown = shown_path(folder);
        let refused = |error: Errno| {
            let reason = reason(&error.into());
            Failure::new(format!("cannot read {shown}: {reason}"))
        };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = Dir::open(folder, flags, Mode::empty()).map_err(refused)?;
        let status = fstat(dir.as_fd()).map_err(refused)?;
        self.device = status.st_dev;
        let name = self.profile.intern(&shown);
        let thread = Thread { name, process: None, pid: None, tid: None };
        self.thread = self.profile.add_whole_thread(thread);
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
            self.others.push(whole());
            return;
        }
        let is_folder = kind(&status) == SFlag::S_IFDIR;
        if !is_folder && status.st_nlink > 1 && !self.met.insert((status.st_dev, status.st_ino)) {
            self.again += 1;
            return;
        }
        let frame = self.profile.add_frame(&shown, FrameKind::User);
        let location = self.profile.add_location(Location::named(frame));
        let stack = self.profile.push_stack(stack, location);
        if !is_folder {
            let size = u64::try_from(status.st_size).unwrap_or(0);
            self.add(stack, [blocks(&status), size, 1]);
            return;
        }
        if depth >= MAX_DEPTH {
            self.too_deep += 1;
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
        self.profile.add_sample(self.thread, stack, &values);
    }

    fn cannot_read(&mut self, path: &str, error: Errno) {
        const NAMED: usize = 3;
        self.unreadable_count += 1;
        if self.unreadable.len() < NAMED {
            self.unreadable.push(format!("{path} ({})", reason(&error.into())));
        }
    }

    fn finish(mut self) -> Profile {
        let notes = &mut self.profile.health.notes;
        if self.unreadable_count > 0 {
            let named = self.unreadable.join(", ");
            notes.push(format!("cannot be read: {}: {named}", self.unreadable_count));
        }
        if !self.others.is_empty() {
            let (count, first) = (self.others.len(), &self.others[0]);
            notes.push(format!("other file systems left out: {count}, {first} among them"));
        }
        if self.too_deep > 0 {
            notes.push(format!("folders within more than {MAX_DEPTH}: {}", self.too_deep));
        }
        if self.again > 0 {
            notes.push(format!("further names of files that were already counted: {}", self.again));
        }
        self.profile
    }
}

fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT
}

/// What it takes on the disk.
fn blocks(status: &FileStat) -> u64 {
    u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(BLOCK)
}
