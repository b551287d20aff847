//! Turns paths into open files: the one way by which images and their debug files are reached.
//!
//! Whoever reads files of strangers may want another one than the system's own, with a deadline: a
//! file system may be a process (FUSE) or a machine (NFS) that never answers. Then every call on its
//! files waits for ever, reading mapped memory included.
//!
//! Sources: openat(2) for `O_PATH`, statfs(2), fcntl(2) for leases, fuse(4).

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use nix::sys::statfs::{
    FUSE_SUPER_MAGIC, FsType, HUGETLBFS_MAGIC, NFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    fstatfs,
};

/// Kinds of file systems without a disk that keep files and may say that they have no room.
const KEEP_FILES: [FsType; 6] =
    [FUSE_SUPER_MAGIC, HUGETLBFS_MAGIC, NFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, RAMFS, TMPFS_MAGIC];

/// linux/magic.h.
const RAMFS: FsType = FsType(0x8584_58f6);

/// The variables of the firmware, for which there is limited room.
const EFIVARFS: FsType = FsType(0xde5e_81e4);

/// How long the holder of a lease has to give it up.
const LEASE_PATIENCE: Duration = Duration::from_millis(500);
const LEASE_POLL: Duration = Duration::from_millis(10);

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its device, as stat has it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// The id of the user whom it belongs to.
    pub owner: u32,
    /// Its length in bytes.
    pub len: u64,
    /// When other bytes were last written into it; `None` where the file system does not know.
    pub modified: Option<SystemTime>,
    /// When anything of it was last changed (ctime), in nanoseconds since 1970: nobody can set that.
    pub changed: u64,
    /// When it came to be; `None` where the file system does not know.
    pub created: Option<SystemTime>,
}

impl From<&Metadata> for FileStatus {
    fn from(metadata: &Metadata) -> FileStatus {
        FileStatus {
            device: metadata.dev(),
            inode: metadata.ino(),
            owner: metadata.uid(),
            len: metadata.len(),
            modified: metadata.modified().ok(),
            changed: changed(metadata),
            created: metadata.created().ok(),
        }
    }
}

fn changed(metadata: &Metadata) -> u64 {
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(metadata.ctime()).saturating_mul(1_000_000_000) + part(metadata.ctime_nsec())
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file, or a copy of it.
    pub file: File,
    /// What is known of the file, not of its copy.
    pub status: FileStatus,
}

/// A way to open files.
pub trait FileAccess: fmt::Debug + Send + Sync {
    /// Opens the regular file at a path.
    ///
    /// # Errors
    /// What the system says; `InvalidInput` for what is not a regular file.
    fn open(&self, path: &Path) -> io::Result<OpenFile>;
}

/// How files are opened; clones share everything. The default asks the system, and waits for it.
#[derive(Clone, Debug)]
pub struct Files(Arc<dyn FileAccess>);

impl Files {
    /// Opens them that way.
    pub fn new(access: impl FileAccess + 'static) -> Files {
        Files(Arc::new(access))
    }

    /// Opens the regular file at a path.
    ///
    /// # Errors
    /// As [`FileAccess::open`].
    pub fn open(&self, path: &Path) -> io::Result<OpenFile> {
        self.0.open(path)
    }
}

impl Default for Files {
    fn default() -> Files {
        Files::new(Direct)
    }
}

impl PartialEq for Files {
    fn eq(&self, other: &Files) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Files {}

/// The system's own way.
#[derive(Debug)]
struct Direct;

impl FileAccess for Direct {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let flags = nix::libc::O_PATH | nix::libc::O_CLOEXEC;
        open_found(&OpenOptions::new().read(true).custom_flags(flags).open(path)?)
    }
}

/// Opens for reading what was found (`O_PATH`), if it is a regular file of a file system that keeps
/// files: to open a FIFO, a device or a file of the kernel's own can hang, or do something. Closing
/// tracefs' `free_buffer` frees the machine's trace buffers.
///
/// # Errors
/// What the system says; `InvalidInput` for what is not such a file, and `WouldBlock` for one on
/// which another process holds a lease.
pub fn open_found(found: &File) -> io::Result<OpenFile> {
    let metadata = found.metadata()?;
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !metadata.is_file() {
        return refused("not a regular file");
    }
    if !keeps_files(found, &metadata)? {
        return refused("a file of the kernel's own");
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let end = Instant::now() + LEASE_PATIENCE;
    let file = loop {
        // Whoever holds a lease on a file may keep a blocking open waiting for 45 s.
        match OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(LEASE_POLL);
            }
            opened => break opened?,
        }
    };
    Ok(OpenFile { file, status: FileStatus::from(&metadata) })
}

/// Whether a file system keeps what is written into its files. Those that only show something of the
/// kernel lie on no disk and say that they have no room; so do some kinds that do keep files.
fn keeps_files(found: &File, metadata: &Metadata) -> io::Result<bool> {
    if nix::libc::major(metadata.dev()) != 0 {
        return Ok(true);
    }
    let system = fstatfs(found)?;
    let kind = system.filesystem_type();
    Ok(KEEP_FILES.contains(&kind) || (system.blocks() > 0 && kind != EFIVARFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernels_own_are_not_opened() {
        for path in ["/proc/self/maps", "/proc/self/environ", "/sys/kernel/notes"] {
            let error = Files::default().open(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert!(Files::default().open(Path::new("/proc/self/exe")).is_ok());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = std::env::temp_dir().join(format!("flame-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("file"), "text").unwrap();
        nix::unistd::mkfifo(&directory.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let files = Files::default();
        let found = ["file", "fifo", "", "none"].map(|name| files.open(&directory.join(name)));
        std::fs::remove_dir_all(&directory).unwrap();
        let [file, others @ ..] = found;
        let OpenFile { file, status } = file.unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "text");
        assert_eq!((status.len, status.owner), (4, nix::unistd::geteuid().as_raw()));
        let kinds = others.map(|found| found.unwrap_err().kind());
        let refused = io::ErrorKind::InvalidInput;
        assert_eq!(kinds, [refused, refused, io::ErrorKind::NotFound]);
    }
}
