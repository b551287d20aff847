//! One output: a file replaced at once, stdout, or something else that takes bytes.
//!
//! A regular file is written beside its place and renamed into it ([`flame_own_files`]). What is no
//! regular file (a FIFO, a terminal, `/dev/stdout`) is opened as it is, and only once it is known to
//! be none. For root that is a trap in directories where others write, too, so then all links that
//! the path leads through, and what is there, must be root's or the calling user's own.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use caps::Capability;
use flame_doctor::rights::user_name;
use flame_own_files::{WriteWith, Written, buffered, is_same};
use nix::libc;

use super::Format;
use crate::message::{Failure, reason};
use crate::sudo::own_files;

/// Where an output goes.
#[derive(Debug)]
pub(super) enum Destination {
    Stdout,
    /// A regular file, or none yet.
    File(PathBuf),
    /// A device or FIFO: written as it is.
    Special(PathBuf),
}

impl Destination {
    /// Finds out what `path` is, and that it can be written.
    pub(super) fn prepare(path: &Path) -> Result<Destination, Failure> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout);
        }
        if path.file_name().is_none() {
            let status = own_files().find(path).and_then(|found| found.file.metadata());
            return Destination::special(path, &status.map_err(|error| unwritable(path, &error))?);
        }
        let place = own_files().find_place(path).map_err(|error| unwritable(path, &error))?;
        let is_there = place.look().map_err(|error| unwritable(path, &error))?.is_some();
        match is_there.then(|| own_files().find(path)) {
            Some(Ok(found)) => {
                let status = found.file.metadata().map_err(|error| unwritable(path, &error))?;
                if !status.is_file() {
                    return Destination::special(path, &status);
                }
                if found.is_open_file {
                    return Destination::open_file(path, &status);
                }
            }
            // A link that leads nowhere is replaced.
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unwritable(path, &error));
            }
            Some(Err(_)) | None => {}
        }
        place.probe().map_err(|error| unwritable(path, &error))?;
        Ok(Destination::File(path.to_owned()))
    }

    /// What is there and no regular file.
    fn special(path: &Path, status: &Metadata) -> Result<Destination, Failure> {
        let refused = |why: &str| Failure::new(format!("cannot write {}: {why}", path.display()));
        if status.is_dir() {
            return Err(refused("it is a directory")
                .or_try(format!("-o {}", path.join("flame.svg").display())));
        }
        if status.file_type().is_block_device() {
            return Err(refused("it is a disk"));
        }
        if let Some(owner) = own_files().stranger(status.uid()) {
            return Err(refused("it is not a regular file, or leads to one")
                .why(format!("{} put it there, and flame runs as root", user_name(owner)))
                .or_try("-o with a file in a directory of your own"));
        }
        Ok(Destination::Special(path.to_owned()))
    }

    /// A regular file that flame has open already, as `/dev/stdout` may be: nothing is to take its
    /// place.
    fn open_file(path: &Path, status: &Metadata) -> Result<Destination, Failure> {
        let stdout =
            own_files().find(Path::new("/proc/self/fd/1")).and_then(|found| found.file.metadata());
        match stdout {
            Ok(stdout) if is_same(&stdout, status) => Ok(Destination::Stdout),
            _ => Err(Failure::new(format!("cannot write {}: it is a file", path.display()))
                .why("flame replaces files, which it cannot do with one that is open")
                .or_try("-o with the path of the file")),
        }
    }

    /// The capabilities without which it cannot be written.
    pub(super) fn needed_capabilities(&self) -> Vec<Capability> {
        match self {
            Destination::Stdout => Vec::new(),
            // Opening a FIFO to see would wait for its reader.
            Destination::Special(_) => vec![Capability::CAP_DAC_OVERRIDE],
            Destination::File(path) => own_files().needed_capabilities(path),
        }
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

    /// The name for messages of what is in it.
    fn shown_name(&self) -> String {
        match self {
            Destination::Stdout => "stdout".to_owned(),
            _ => self.name(),
        }
    }

    /// Writes it; `None` for what is not a file. A reader that closes its pipe has seen enough.
    pub(super) fn write(&self, write: WriteWith<'_>) -> io::Result<Option<Written>> {
        let result = match self {
            Destination::File(path) => return own_files().replace(path, write).map(Some),
            Destination::Stdout => buffered(io::stdout().lock(), write),
            Destination::Special(path) => buffered(open_special(path)?, write),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            result => result.map(|()| None),
        }
    }
}

/// That these outputs show a recording whole; that it is shown at all where none is named.
pub(super) fn show_whole<'d>(all: impl Iterator<Item = &'d Destination>) -> String {
    match &*all.map(Destination::shown_name).collect::<Vec<String>>() {
        [] => "the recording is shown whole".to_owned(),
        [name] => format!("{name} shows the whole recording"),
        names => format!("{} show the whole recording", names.join(", ")),
    }
}

/// Opens what was not a regular file when the recording began. Should another one have taken its
/// place, it is not written to: it could be any.
fn open_special(path: &Path) -> io::Result<File> {
    let found = own_files().find(path)?;
    let status = found.file.metadata()?;
    let kind = status.file_type();
    let changed = kind.is_file() || kind.is_dir() || kind.is_block_device();
    if changed || own_files().stranger(status.uid()).is_some() {
        return Err(io::Error::other("another file took its place"));
    }
    OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(found.file.own_path())
}

/// The directory that a path names a file in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let folder = folder_of(path);
    let what = format!("cannot write {}: {}", path.display(), reason(error));
    match error.kind() {
        io::ErrorKind::NotFound if folder.is_dir() => Failure::new(what)
            .why(format!("no files can be made in {}", folder.display()))
            .or_try("-o with a file in another directory, such as /tmp/flame.svg"),
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
    use std::fs;

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
