//! A regular file that is written beside its place, and renamed into it.
//!
//! It has no name until it is whole, so nothing is left of it when flame is killed; then it has one
//! that nobody can guess. Where the filesystem or the lack of /proc forbids that (`O_TMPFILE` in
//! open(2)), it has this name from the start.
//!
//! Whoever reads the place sees the old or the new file whole, a full disk leaves the old one, and a
//! link that somebody put there is replaced, not followed. Others who may write to the directory can
//! take away what is being written, but they cannot keep it from being made, choose what it becomes,
//! or lose anything of their own.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use caps::Capability;
use flame_doctor::rights::without;
use flame_recorder::FoundFile;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, linkat, unlinkat};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::find::{OwnFiles, Place};

/// How often another name is tried where one is taken.
const TRIES: usize = 16;

/// For everybody whom the umask leaves in.
const EVERYBODYS: Mode = Mode::from_bits_truncate(0o666);
const OWNERS_ONLY: Mode = Mode::from_bits_truncate(0o600);

/// What writes a file.
pub type WriteWith<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// A file that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The path as it was given.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
}

impl Place {
    /// What stands there, of a link the link itself; `None` for nothing.
    pub fn look(&self) -> io::Result<Option<FoundFile>> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&self.folder, &*self.name, flags, Mode::empty()) {
            Ok(found) => Ok(Some(found.into())),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Tries whether a file can be made there.
    pub fn probe(&self) -> io::Result<()> {
        self.create(OWNERS_ONLY).map(drop)
    }

    fn create(&self, mode: Mode) -> io::Result<New<'_>> {
        match self.create_unnamed(mode) {
            Some(new) => Ok(new),
            None => self.create_named(mode),
        }
    }

    fn create_unnamed(&self, mode: Mode) -> Option<New<'_>> {
        let flags = OFlag::O_WRONLY | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        let file: File = openat(&self.folder, ".", flags, mode).ok()?.into();
        let can_be_named = fs::symlink_metadata(descriptor_path(&file)).is_ok();
        can_be_named.then_some(New { file, name: None, place: self, is_kept: false })
    }

    fn create_named(&self, mode: Mode) -> io::Result<New<'_>> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let (file, name) = with_free_name(|name| openat(&self.folder, name, flags, mode))?;
        Ok(New { file: file.into(), name: Some(name), place: self, is_kept: false })
    }
}

/// Tries names that nobody can guess until one is free.
fn with_free_name<T>(make: impl Fn(&str) -> nix::Result<T>) -> io::Result<(T, String)> {
    let mut tries = 0;
    loop {
        let name = format!(".flame-{}.tmp", random_word()?);
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EEXIST) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where the kernel shows what a descriptor has open.
fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A file on the way to its place; removed when it does not get there.
struct New<'p> {
    file: File,
    /// Its name as long as it is not in its place; `None` while it has none.
    name: Option<String>,
    place: &'p Place,
    is_kept: bool,
}

impl New<'_> {
    /// Puts it into its place.
    fn keep(mut self, files: OwnFiles) -> io::Result<()> {
        let folder = &self.place.folder;
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let path = descriptor_path(&self.file);
                let follow = AtFlags::AT_SYMLINK_FOLLOW;
                with_free_name(|name| linkat(AT_FDCWD, &path, folder, name, follow))?.1
            }
        };
        self.name = Some(name.clone());
        if !self.is_at(&name)? {
            return Err(io::Error::other("somebody put another file there"));
        }
        if let Some((user, group)) = files.caller {
            fchown(&self.file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        renameat(folder, &*name, folder, &*self.place.name)?;
        self.is_kept = true;
        match self.is_at(&self.place.name)? {
            true => Ok(()),
            false => Err(io::Error::other("somebody put another file there")),
        }
    }

    /// Whether that name is still this file's.
    fn is_at(&self, name: impl AsRef<Path>) -> io::Result<bool> {
        let there = fstatat(&self.place.folder, name.as_ref(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let id = |status: FileStat| (status.st_dev, status.st_ino);
        Ok(id(there) == id(fstat(self.file.as_fd())?))
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        // What others put there in the meantime is theirs.
        let Some(name) = self.name.as_deref().filter(|_| !self.is_kept) else { return };
        if self.is_at(name).unwrap_or(false) {
            let _ = unlinkat(&self.place.folder, name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Writes through a buffer.
///
/// # Errors
/// What writing fails with.
pub fn buffered(out: impl Write, write: WriteWith<'_>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    write(&mut out)?;
    out.flush()
}

impl OwnFiles {
    /// Writes a file and gives it to the user who called sudo.
    ///
    /// # Errors
    /// What was there before is still there.
    pub fn replace(self, path: &Path, write: WriteWith<'_>) -> io::Result<Written> {
        self.put(path, EVERYBODYS, write)
    }

    fn put(self, path: &Path, mode: Mode, write: WriteWith<'_>) -> io::Result<Written> {
        let place = self.find_place(path)?;
        let new = place.create(mode)?;
        buffered(&new.file, write)?;
        let len = new.file.metadata()?.len();
        new.keep(self)?;
        Ok(Written { path: path.to_owned(), len })
    }

    /// Writes what cannot be had again into the first of some directories that has room for it, for its
    /// owner's eyes only.
    ///
    /// # Errors
    /// None has.
    pub fn save_in(
        self,
        folders: &[PathBuf],
        path: &Path,
        write: WriteWith<'_>,
    ) -> io::Result<Written> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("flame-{}-{name}", random_word()?);
        let mut result = Err(io::ErrorKind::NotFound.into());
        for folder in folders {
            result = std::path::absolute(folder.join(&name))
                .and_then(|path| self.put(&path, OWNERS_ONLY, write));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// The capabilities without which a file cannot be written there: found out by trying.
    pub fn needed_capabilities(self, path: &Path) -> Vec<Capability> {
        let mut needed = Vec::new();
        let attempt = || self.find_place(path)?.probe();
        if without(&[Capability::CAP_DAC_OVERRIDE], attempt).is_err() {
            needed.push(Capability::CAP_DAC_OVERRIDE);
        }
        if self.caller.is_some() {
            needed.push(Capability::CAP_CHOWN);
        }
        if self.is_foreign_in_sticky_folder(path).unwrap_or(false) {
            needed.push(Capability::CAP_FOWNER);
        }
        needed
    }

    /// Whether there is a file already that only its owner, or that of the directory, may replace, and
    /// this process's user is neither.
    fn is_foreign_in_sticky_folder(self, path: &Path) -> io::Result<bool> {
        let me = Uid::effective().as_raw();
        let place = self.find_place(path)?;
        let Some(file) = place.look()? else { return Ok(false) };
        let folder: Metadata = File::from(place.folder).metadata()?;
        let is_guarded = folder.mode() & libc::S_ISVTX != 0 && folder.uid() != me;
        Ok(is_guarded && file.metadata()?.uid() != me)
    }
}

/// Sixteen digits that nobody can guess.
fn random_word() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty directory, and the place `out` in it.
    fn place(name: &str) -> (PathBuf, Place) {
        let folder = std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let place = OwnFiles::default().find_place(&folder.join("out")).unwrap();
        (folder, place)
    }

    #[test]
    fn what_others_put_there_is_neither_removed_nor_published() {
        let (folder, place) = place("strangers-file");
        let new = place.create_named(EVERYBODYS).unwrap();
        let theirs = folder.join(new.name.as_ref().unwrap());
        fs::remove_file(&theirs).unwrap();
        fs::write(&theirs, "theirs").unwrap();
        let error = new.keep(OwnFiles::default()).unwrap_err();
        assert_eq!(error.to_string(), "somebody put another file there");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert!(!folder.join("out").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_not_kept_is_removed() {
        let (folder, place) = place("not-kept");
        place.probe().unwrap();
        drop(place.create_named(EVERYBODYS).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        place.create_named(EVERYBODYS).unwrap().keep(OwnFiles::default()).unwrap();
        assert!(folder.join("out").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_not_whole_has_no_name() {
        let (folder, place) = place("no-name");
        let names = || {
            let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        let Some(mut new) = place.create_unnamed(EVERYBODYS) else {
            let _ = writeln!(io::stderr(), "SKIP: files have names from the start here");
            return;
        };
        new.file.write_all(b"first").unwrap();
        assert!(names().is_empty(), "{:?}", names());
        new.keep(OwnFiles::default()).unwrap();
        let mut new = place.create_unnamed(EVERYBODYS).unwrap();
        new.file.write_all(b"second").unwrap();
        assert_eq!(fs::read(folder.join("out")).unwrap(), b"first");
        new.keep(OwnFiles::default()).unwrap();
        assert_eq!((names().len(), fs::read(folder.join("out")).unwrap()), (1, b"second".to_vec()));
        fs::remove_dir_all(folder).unwrap();
    }
}
