//! One output: a file replaced at once, stdout, or something else that takes bytes.
//!
//! A regular file is written beside its final place under a temporary name and renamed: whoever
//! reads it sees the old or the new one whole, a full disk leaves the old one, and a link that
//! somebody put there is replaced, not followed.
//!
//! What is no regular file (a FIFO, a terminal, `/dev/stdout`) is opened as it is. For root that is
//! a trap in directories where others write, too, so then all that the path leads through must be
//! root's or the calling user's own, and what was opened must still be what it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use caps::Capability;
use nix::libc;
use nix::unistd::{Uid, fchown};

use super::{Format, WriteWith};
use crate::message::rights::user_name;
use crate::message::{Failure, reason};
use crate::{privileges, sudo};

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
            Ok(status) if status.file_type().is_block_device() => {
                Err(refused("it is a disk".to_owned()))
            }
            Ok(status) if !status.is_file() => {
                if let Some(owner) = untrusted_owner(path, status.uid()) {
                    let what = refused("it is no regular file, or leads to one".to_owned());
                    return Err(what
                        .why(format!("{} put it there, and flame runs as root", user_name(owner)))
                        .or_try("-o with a file in a directory of your own"));
                }
                Ok(Destination::Special(path.to_owned()))
            }
            _ => {
                probe(path).map_err(|error| unwritable(path, &error))?;
                Ok(Destination::File(path.to_owned()))
            }
        }
    }

    /// The capabilities without which it cannot be written: found out by trying.
    pub(super) fn needed_capabilities(&self) -> Vec<Capability> {
        let mut needed = Vec::new();
        match self {
            Destination::Stdout => {}
            // Opening a FIFO to see would wait for its reader.
            Destination::Special(_) => needed.push(Capability::CAP_DAC_OVERRIDE),
            Destination::File(path) => {
                let attempt = || probe(path);
                if privileges::without(&[Capability::CAP_DAC_OVERRIDE], attempt).is_err() {
                    needed.push(Capability::CAP_DAC_OVERRIDE);
                }
                if sudo::invoking_user().is_some() {
                    needed.push(Capability::CAP_CHOWN);
                }
                if is_foreign_in_sticky_folder(path) {
                    needed.push(Capability::CAP_FOWNER);
                }
            }
        }
        needed
    }

    /// Whether the ending of its name says the format.
    pub(super) fn is_ended(&self) -> bool {
        match self {
            Destination::Stdout => false,
            Destination::File(path) | Destination::Special(path) => {
                Format::of_ending(path).is_some()
            }
        }
    }

    /// Whether it is a picture for servers, which send it with `Content-Encoding: gzip`, and for
    /// image viewers: browsers do not open one from a disk.
    pub(super) fn is_compressed_picture(&self) -> bool {
        match self {
            Destination::Stdout => false,
            Destination::File(path) | Destination::Special(path) => {
                path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svgz"))
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
            Destination::Special(path) => buffered(open_special(path)?, write),
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

/// The user other than root and the caller, for whom root must not open that path: who owns the
/// link that stands there, or what it leads to. `None` for flame that does not run as root.
fn untrusted_owner(path: &Path, owner: u32) -> Option<u32> {
    if !Uid::effective().is_root() {
        return None;
    }
    let caller = sudo::invoking_user().map(|user| user.uid);
    let link = fs::symlink_metadata(path).map(|status| status.uid()).ok();
    let is_trusted = |uid: u32| uid == 0 || Some(uid) == caller;
    [link, Some(owner)].into_iter().flatten().find(|uid| !is_trusted(*uid))
}

/// Opens what was no regular file when the recording began. Should it have become one, it is not
/// written to: it could be any.
fn open_special(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    let status = file.metadata()?;
    let changed = status.is_file() || status.file_type().is_block_device();
    match changed || untrusted_owner(path, status.uid()).is_some() {
        true => Err(io::Error::other("another file took its place")),
        false => Ok(file),
    }
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

/// Whether there is a file already that only its owner, or that of the directory, may replace, and
/// flame is neither.
fn is_foreign_in_sticky_folder(path: &Path) -> bool {
    let me = Uid::effective().as_raw();
    let folder = fs::metadata(folder_of(path)).ok();
    let guarded = |folder: fs::Metadata| folder.mode() & libc::S_ISVTX != 0 && folder.uid() != me;
    let owner = fs::symlink_metadata(path).ok().map(|status| status.uid());
    folder.is_some_and(guarded) && owner.is_some_and(|owner| owner != me)
}

/// The directory that a path names a file in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
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
    let folder = folder_of(path);
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
    fn a_fifo_that_became_a_file_is_not_written_to() {
        let folder = folder("became-a-file");
        let (path, victim) = (folder.join("out.svg"), folder.join("victim"));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(&victim, "precious").unwrap();
        let destination = Destination::prepare(&path).unwrap();
        assert!(matches!(destination, Destination::Special(_)), "{destination:?}");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let error = destination.write(&mut |out| out.write_all(b"new")).unwrap_err();
        assert_eq!(error.to_string(), "another file took its place");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn devices_stay_outputs() {
        for path in ["/dev/null", "/dev/stdout"] {
            let destination = Destination::prepare(Path::new(path));
            // Where a test's stdout goes is not known.
            assert!(destination.is_ok(), "{path}: {destination:?}");
        }
    }

    #[test]
    fn a_missing_folder_is_found_before_anything_is_written() {
        let failure = Destination::prepare(Path::new("/no/such/folder/out.svg")).unwrap_err();
        assert_eq!(failure.code, 1);
    }
}
