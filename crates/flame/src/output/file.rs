//! One output: a file replaced at once, stdout, or something else that takes bytes.
//!
//! A regular file is written beside its final place under a temporary name and renamed: whoever
//! reads it sees the old or the new one whole, a full disk leaves the old one, and a link that
//! somebody put there is replaced, not followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::unistd::fchown;

use super::WriteWith;
use crate::message::{Failure, reason};
use crate::sudo;

/// Where an output goes.
#[derive(Debug)]
pub(super) enum Destination {
    Stdout,
    /// A regular file, or none yet.
    File(PathBuf),
    /// A device or FIFO: written as it is.
    Special(PathBuf),
}

/// A file that was written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The path as it was given.
    pub(crate) path: PathBuf,
    /// Its length in bytes.
    pub(crate) len: u64,
}

impl Destination {
    /// Finds out what `path` is, and that it can be written.
    pub(super) fn prepare(path: &Path) -> Result<Destination, Failure> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout);
        }
        let refused = |why: String| Failure::new(format!("cannot write {}: {why}", path.display()));
        match fs::metadata(path) {
            Ok(status) if status.is_dir() => Err(refused("it is a directory".to_owned())
                .or_try(format!("-o {}", path.join("flame.svg").display()))),
            Ok(status) if !status.is_file() => Ok(Destination::Special(path.to_owned())),
            _ => {
                probe(path).map_err(|error| unwritable(path, &error))?;
                Ok(Destination::File(path.to_owned()))
            }
        }
    }

    /// The name for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Destination::Stdout => "to stdout".to_owned(),
            Destination::File(path) | Destination::Special(path) => path.display().to_string(),
        }
    }

    /// Writes it; `None` for what is no file. A reader that closes its pipe has seen enough.
    pub(super) fn write(&self, write: WriteWith<'_>) -> io::Result<Option<Written>> {
        let result = match self {
            Destination::File(path) => return replace(path, write).map(Some),
            Destination::Stdout => buffered(io::stdout().lock(), write),
            Destination::Special(path) => {
                buffered(OpenOptions::new().write(true).open(path)?, write)
            }
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            result => result.map(|()| None),
        }
    }
}

fn buffered(out: impl Write, write: WriteWith<'_>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    write(&mut out)?;
    out.flush()
}

/// The name under which a file is written before it takes its place.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Creates a file that nobody else has and that is no link.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path)
}

/// Whether a file can be created where `path` is to be.
fn probe(path: &Path) -> io::Result<()> {
    let temporary = temporary(path);
    drop(create(&temporary)?);
    fs::remove_file(&temporary)
}

fn replace(path: &Path, write: WriteWith<'_>) -> io::Result<Written> {
    let temporary = temporary(path);
    let result = (|| {
        let file = create(&temporary)?;
        if let Some(user) = sudo::invoking_user() {
            let (uid, gid) = sudo::owner_ids(&user);
            fchown(&file, Some(uid), Some(gid))?;
        }
        buffered(&file, write)?;
        let len = file.metadata()?.len();
        fs::rename(&temporary, path)?;
        Ok(Written { path: path.to_owned(), len })
    })();
    if result.is_err() {
        // It may not even have been created.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let what = format!("cannot write {}: {}", path.display(), reason(error));
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(what)
            .why(format!("there is no directory {}", folder.display()))
            .or_try(format!("mkdir -p {}", folder.display())),
        io::ErrorKind::PermissionDenied => Failure::new(what)
            .why(format!("the directory {} is not writable for you", folder.display()))
            .or_try("-o with a file in another directory, such as /tmp/flame.svg"),
        _ => Failure::new(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = folder("failed-write");
        let path = folder.join("out.svg");
        fs::write(&path, "old").unwrap();
        let destination = Destination::prepare(&path).unwrap();
        let error = destination.write(&mut |out| {
            out.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = folder("link");
        let (path, victim) = (folder.join("out.svg"), folder.join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let destination = Destination::prepare(&path).unwrap();
        let written = destination.write(&mut |out| out.write_all(b"new")).unwrap().unwrap();
        assert_eq!((written.len, fs::read_to_string(&path).unwrap()), (3, "new".to_owned()));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_missing_folder_is_found_before_anything_is_written() {
        let failure = Destination::prepare(Path::new("/no/such/folder/out.svg")).unwrap_err();
        assert_eq!(failure.code, 1);
    }
}
