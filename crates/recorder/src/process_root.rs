//! Files at the paths that a process sees them at, found without trusting what it put there.
//!
//! A process may live in a container whose files belong to somebody else. Links are followed within
//! its root only and never at the end of a path, and nothing but a regular file is opened: to open
//! a FIFO or a device can hang, or do something.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use flame_image::{OpenFile, open_found};
use flame_profile::Pid;
use flame_sampler::live_task_of;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

/// The root directory of a process, or what is to be one.
#[derive(Debug)]
pub struct ProcessRoot(File);

/// Something in the file system that was found and not opened.
#[derive(Debug)]
pub struct FoundFile(File);

impl ProcessRoot {
    /// The root of a process that runs.
    pub fn of(pid: Pid) -> io::Result<ProcessRoot> {
        File::open(format!("/proc/{}/root", live_task_of(pid))).map(ProcessRoot)
    }

    /// flame's own.
    pub fn own() -> io::Result<ProcessRoot> {
        File::open("/").map(ProcessRoot)
    }

    /// A directory that has the files of another machine.
    pub fn at(directory: &Path) -> io::Result<ProcessRoot> {
        OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_PATH | OFlag::O_DIRECTORY).bits())
            .open(directory)
            .map(ProcessRoot)
    }

    /// The device that it is on.
    pub fn device(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.dev())
    }

    /// Finds what stands at an absolute path; a link there is found, not followed.
    pub fn find(&self, path: &Path) -> io::Result<FoundFile> {
        self.find_with(path, OFlag::O_NOFOLLOW)
    }

    /// Finds what an absolute path leads to, all links followed within the root.
    pub fn follow(&self, path: &Path) -> io::Result<FoundFile> {
        self.find_with(path, OFlag::empty())
    }

    fn find_with(&self, path: &Path, flags: OFlag) -> io::Result<FoundFile> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        loop {
            match openat2(&self.0, path, how) {
                Ok(found) => return Ok(FoundFile(found.into())),
                // The path was renamed while it was looked up.
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens the regular file at an absolute path.
    pub fn open(&self, path: &Path) -> io::Result<OpenFile> {
        self.find(path)?.open()
    }
}

impl FoundFile {
    /// What it is, and whose.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// What stands under a name in this directory, on its very file system: no link is followed, and
    /// nothing that was mounted over the name.
    pub fn child(&self, name: &str) -> io::Result<FoundFile> {
        self.open_child(name, OFlag::O_PATH, Mode::empty()).map(FoundFile)
    }

    /// Creates a file that must not exist in this directory, for its owner alone.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.open_child(
            name,
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL,
            Mode::S_IRUSR | Mode::S_IWUSR,
        )
    }

    /// Removes a file from this directory.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir)?)
    }

    fn open_child(&self, name: &str, flags: OFlag, mode: Mode) -> io::Result<File> {
        let within = ResolveFlag::RESOLVE_BENEATH
            | ResolveFlag::RESOLVE_NO_XDEV
            | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).mode(mode).resolve(within);
        loop {
            match openat2(&self.0, name, how) {
                Ok(file) => return Ok(file.into()),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A path by which this process reaches it, whatever stands at its own path now.
    pub fn own_path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// Opens it for reading if it is a regular file.
    pub fn open(&self) -> io::Result<OpenFile> {
        open_found(&self.0)
    }
}

impl From<OwnedFd> for FoundFile {
    /// Of a descriptor that was opened with `O_PATH`.
    fn from(found: OwnedFd) -> FoundFile {
        FoundFile(found.into())
    }
}

impl From<FoundFile> for OwnedFd {
    fn from(found: FoundFile) -> OwnedFd {
        found.0.into()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What opening gives: the file's text, or the kind of the error.
    fn read(root: &ProcessRoot, path: &Path) -> Result<String, io::ErrorKind> {
        let text = root.open(path).and_then(|opened| io::read_to_string(opened.file));
        text.map_err(|error| error.kind())
    }

    #[test]
    fn links_stay_within_the_root_and_are_not_followed_at_the_end() {
        let dir = std::env::temp_dir().join(format!("flame-root-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("real")).unwrap();
        std::fs::write(dir.join("real/file"), "inside").unwrap();
        symlink("/real", dir.join("tmp")).unwrap();
        symlink("file", dir.join("real/link")).unwrap();
        symlink("/etc", dir.join("outside")).unwrap();
        nix::unistd::mkfifo(&dir.join("real/fifo"), Mode::S_IRUSR).unwrap();
        let root = ProcessRoot(File::open(&dir).unwrap());
        let results = ["/tmp/file", "/tmp/link", "/tmp/fifo", "/outside/passwd", "/real"]
            .map(|path| read(&root, Path::new(path)));
        std::fs::remove_dir_all(&dir).unwrap();
        let refused = Err(io::ErrorKind::InvalidInput);
        let expect = [
            Ok("inside".to_owned()),
            refused.clone(),
            refused.clone(),
            Err(io::ErrorKind::NotFound),
            refused,
        ];
        assert_eq!(results, expect);
    }

    #[test]
    fn followed_links_stay_within_the_root() {
        let dir = std::env::temp_dir().join(format!("flame-below-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("usr/lib")).unwrap();
        std::fs::write(dir.join("usr/lib/file"), "inside").unwrap();
        symlink("/usr/lib", dir.join("lib")).unwrap();
        symlink("/lib/file", dir.join("link")).unwrap();
        symlink("/etc/passwd", dir.join("outside")).unwrap();
        let root = ProcessRoot::at(&dir).unwrap();
        let results = ["/lib/file", "/link", "/../../usr/lib/file", "/outside"].map(|path| {
            let opened = root.follow(Path::new(path)).and_then(|found| found.open());
            let text = opened.and_then(|opened| io::read_to_string(opened.file));
            text.map_err(|error| error.kind())
        });
        std::fs::remove_dir_all(&dir).unwrap();
        let inside = Ok("inside".to_owned());
        let expect = [inside.clone(), inside.clone(), inside, Err(io::ErrorKind::NotFound)];
        assert_eq!(results, expect);
    }
}
