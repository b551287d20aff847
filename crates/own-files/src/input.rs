//! Opens what is read as a profile: anything may be one, but for root neither what strangers lead it
//! to nor what strangers may keep it waiting with.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use flame_doctor::rights::user_name;
use flame_recorder::FoundFile;
use nix::sys::statfs::{
    DEBUGFS_MAGIC, FsType, PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC, statfs,
};
use nix::unistd::Uid;

use crate::find::{Found, OwnFiles, StrangersLink};

/// The file system of pipes without a name, as of `<(command)` (linux/magic.h).
const PIPEFS_MAGIC: FsType = FsType(0x5049_5045);

/// Those whose files may wait for the kernel to say more.
const OF_KERNEL: [FsType; 4] = [DEBUGFS_MAGIC, PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC];

/// Why root does not read what stands there.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("it is a FIFO; {} put it there, and flame runs as root", user_name(*.owner))]
    StrangersFifo { owner: u32 },
    #[error("it is a link to a file of the kernel, which may never end")]
    LinkToKernel,
}

/// Whether an error says that root does not read or write there because of who put what there.
pub fn is_refused(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<StrangersLink>() || inner.is::<Refused>())
}

impl OwnFiles {
    /// Opens a file that may be of any kind, as the kernel does; for root only what
    /// [`OwnFiles::check_input`] lets through. What is opened is what was looked at.
    ///
    /// # Errors
    /// Those of the system, and those for which [`is_refused`] holds.
    pub fn open_input(self, path: &Path) -> io::Result<File> {
        if !Uid::effective().is_root() {
            return File::open(path);
        }
        File::open(self.find_input(path)?.own_path())
    }

    /// Checks without opening it what stands at a path: for root no link on the way and no FIFO may be
    /// a stranger's, and a link must not end at a file of procfs, sysfs, tracefs or debugfs.
    ///
    /// # Errors
    /// Those of the system, and those for which [`is_refused`] holds.
    pub fn check_input(self, path: &Path) -> io::Result<()> {
        if Uid::effective().is_root() { self.find_input(path).map(drop) } else { Ok(()) }
    }

    fn find_input(self, path: &Path) -> io::Result<FoundFile> {
        let Found { file, is_open_file } = self.find(path)?;
        let status = file.metadata()?;
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let system = || statfs(file.own_path().as_str()).map(|system| system.filesystem_type());
        if status.file_type().is_fifo()
            && let Some(owner) = self.stranger(status.uid())
            && system()? != PIPEFS_MAGIC
        {
            return refused(Refused::StrangersFifo { owner });
        }
        let is_link = || fs::symlink_metadata(path).is_ok_and(|status| status.is_symlink());
        if status.is_file() && !is_open_file && is_link() && OF_KERNEL.contains(&system()?) {
            return refused(Refused::LinkToKernel);
        }
        Ok(file)
    }
}
