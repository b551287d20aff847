//! The files of folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a folder and of those in it, sorted; links to folders are not followed.
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
    entries.sort();
    for path in entries {
        let status = fs::symlink_metadata(&path).map_err(|error| (path.clone(), error))?;
        if status.is_dir() {
            add(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}
