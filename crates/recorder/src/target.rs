//! What a recorder gets from processes besides their events: files and memory.
//!
//! Of processes of this machine it comes from [`LiveFiles`](crate::LiveFiles). Where events come from
//! a file, the processes of their numbers are others, or none: [`Absent`].

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use flame_events::ImageKey;
use flame_image::{FileAccess, Files, ImageFile, OpenFile};
use flame_profile::{Pid, ProcessAddress, Tid};

/// Who a process is, for the files that it writes.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What it calls itself: its number in the innermost PID namespace.
    pub inner_pid: u32,
    /// The user whom its files belong to.
    pub user: u32,
    /// Their group.
    pub group: u32,
    /// The signals that it has handlers for: bit N - 1 for signal N.
    pub caught_signals: u64,
    /// When it started, to a clock tick; `None` when that is not known.
    pub started: Option<SystemTime>,
}

/// How the file system of a process relates to that of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// The same mounts and the same root.
    Ours,
    /// Others: `/proc/PID/root` is the way there.
    Other,
    /// The process has ended.
    Unknown,
}

/// Files of targets, and what is known of who wrote them.
pub trait TargetFiles: Debug + Send + Sync {
    /// The way to open files of a process, and what belongs to them.
    fn of(&self, pid: Pid) -> Files;

    /// The same of debug files of its images, whose directories whoever runs this may have named.
    fn debug_files_of(&self, pid: Pid) -> Files {
        self.of(pid)
    }

    /// Opens the regular file at an absolute path as a process sees it, or, without one, as this
    /// process does; `pid` is the process that is the reason to ask. No link is followed at the end.
    ///
    /// # Errors
    /// There is none, it is none, or it was not waited for.
    fn open_in_root(&self, root: Option<Pid>, path: &Path, pid: Pid) -> io::Result<File>;

    /// The text of a file in the directory of a process in /proc: some are read from its memory,
    /// which may be anything.
    ///
    /// # Errors
    /// It cannot be read.
    fn text(&self, pid: Pid, name: &str) -> io::Result<Vec<u8>>;

    /// The threads of a process, with their names.
    fn threads(&self, pid: Pid) -> Vec<(Tid, Vec<u8>)>;

    /// Who a process is.
    fn identity(&self, pid: Pid) -> Identity;

    /// How its file system relates to ours.
    fn namespace(&self, pid: Pid) -> Namespace;

    /// Whether a file that was found at `path` is the one that was mapped, where somebody knows;
    /// else its device, inode and times tell.
    fn is_mapped(&self, _key: &ImageKey, _path: &Path, _found: &OpenFile) -> Option<bool> {
        None
    }

    /// The vdso of the kernel that the processes run on.
    fn vdso(&self) -> Option<ImageFile>;

    /// The recording is over: what running processes have is not asked for any more.
    fn recording_is_over(&self) {}
}

/// Memory of targets.
pub trait TargetMemory: Debug + Send + Sync {
    /// Fills `bytes` with what stands at an address now.
    ///
    /// # Errors
    /// The process is gone, or its memory not for this user to read.
    fn read(&self, pid: Pid, address: ProcessAddress, bytes: &mut [u8]) -> io::Result<()>;
}

/// Nothing of any process: the events come from another machine, or from long ago.
///
/// ```
/// use flame_profile::{Pid, ProcessAddress};
/// use flame_recorder::{Absent, TargetFiles, TargetMemory};
///
/// let own = Pid(std::process::id());
/// assert!(Absent.text(own, "maps").is_err() && Absent.threads(own).is_empty());
/// assert!(Absent.read(own, ProcessAddress(0x1000), &mut [0; 8]).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Absent;

impl TargetFiles for Absent {
    fn of(&self, _: Pid) -> Files {
        Files::new(Absent)
    }

    fn open_in_root(&self, _: Option<Pid>, _: &Path, _: Pid) -> io::Result<File> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn text(&self, _: Pid, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn threads(&self, _: Pid) -> Vec<(Tid, Vec<u8>)> {
        Vec::new()
    }

    fn identity(&self, pid: Pid) -> Identity {
        Identity { inner_pid: pid.0, user: 0, group: 0, caught_signals: 0, started: None }
    }

    fn namespace(&self, _: Pid) -> Namespace {
        Namespace::Unknown
    }

    fn vdso(&self) -> Option<ImageFile> {
        None
    }
}

impl TargetMemory for Absent {
    fn read(&self, _: Pid, _: ProcessAddress, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl FileAccess for Absent {
    fn open(&self, _: &Path) -> io::Result<OpenFile> {
        Err(io::ErrorKind::NotFound.into())
    }
}
