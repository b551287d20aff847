//! Turns paths into open files: the one way by which images and their debug files are reached.
//!
//! Whoever reads files of strangers may want another one than the system's own, with a deadline: a
//! file system may be a process (FUSE) or a machine (NFS) that never answers. Then every call on its
//! files waits for ever, reading mapped memory included.
//!
//! Sources: openat(2) for `O_PATH`, fuse(4).

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

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

/// Opens for reading what was found (`O_PATH`), if it is a regular file: to open a FIFO or a device
/// can hang, or do something.
///
/// # Errors
/// What the system says; `InvalidInput` for what is not a regular file.
pub fn open_found(found: &File) -> io::Result<OpenFile> {
    let metadata = found.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    Ok(OpenFile { file, status: FileStatus::from(&metadata) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
