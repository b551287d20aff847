//! The files of folders.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flame_perf_data::recognise;

use crate::source::open_regular;

/// The files of a folder and of those in it, sorted; links to folders are not followed, and are files that cannot be
/// read, as are those that lead nowhere.
///
/// # Errors
/// What could not be looked into, and why.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut files = Vec::new();
    add(folder, &mut files)?;
    Ok(files)
}

fn add(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let of_folder = |error| (folder.to_owned(), error);
    let entries = fs::read_dir(folder).map_err(of_folder)?;
    let entries: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut entries = entries.map_err(of_folder)?;
    if is_of_perf(folder, &entries) {
        files.push(folder.join("data"));
        return Ok(());
    }
    entries.sort();
    for path in entries {
        let status = fs::symlink_metadata(&path).map_err(|error| (path.clone(), error))?;
        if status.is_dir() {
            add(&path, files)?;
        } else if fs::metadata(&path).map_or(true, |to| to.is_file() || to.is_dir()) {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether it is what `perf record --threads` or `--kcore` writes: one recording, whose other files are read
/// with the one that has the header.
fn is_of_perf(folder: &Path, entries: &[PathBuf]) -> bool {
    let has = |name: &str| entries.iter().any(|path| *path == folder.join(name));
    let is_perf_data = || {
        let mut start = [0; 16];
        let mut file = open_regular(&folder.join("data")).ok()?;
        file.read_exact(&mut start).ok()?;
        recognise(&start)
    };
    has("data") && (has("data.0") || has("kcore_dir")) && is_perf_data().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_perf_is_one_recording() {
        let folder = std::env::temp_dir().join(format!("flame-folder-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let perf = folder.join("perf.data");
        fs::create_dir_all(&perf).unwrap();
        let header = b"PERFILE2\x68\0\0\0\0\0\0\0";
        for (name, text) in [("data", &header[..]), ("data.0", b"x"), ("data.1", b"x")] {
            fs::write(perf.join(name), text).unwrap();
        }
        fs::write(folder.join("a.folded"), "a 1").unwrap();
        let expect = [folder.join("a.folded"), perf.join("data")];
        assert_eq!(files_in(&folder).unwrap(), expect);
        // Files that are only called so.
        fs::write(perf.join("data"), "a;b 1").unwrap();
        assert_eq!(files_in(&perf).unwrap().len(), 3);
        fs::remove_dir_all(&folder).unwrap();
    }
}
