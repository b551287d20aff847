//! A page over a folder of pictures: a thumbnail of each, its title and what it weighs, the newest
//! first. Pictures of other tools are left out, and said.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flame_own_files::is_refused;
use flame_render::{INDEX_MARK, IndexEntry, index_page};

use super::Written;
use super::foreign::is_flame_svg;
use super::picture::cannot;
use crate::message::Failure;
use crate::privileges;
use crate::sudo::own_files;

const NAME: &str = "index.html";
/// Until here every picture has its title and the first of its boxes, whatever its style sheet and
/// colours are.
const START: u64 = 1 << 20;
/// Writes the page into a folder. Also says how many `.svg` there are no pictures of flame's.
///
/// # Errors
/// When the folder cannot be read, has no picture, or has a page of somebody else.
pub(crate) fn write_index(folder: &Path, force: bool) -> Result<(Written, usize), Failure> {
    privileges::as_user(|| write(folder, force))
}

fn write(folder: &Path, force: bool) -> Result<(Written, usize), Failure> {
    let (mut entries, mut others) = (Vec::new(), 0);
    for file in fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))? {
        let path = file.map_err(|error| cannot("read", folder, &error))?.path();
        if path.extension().is_none_or(|ending| ending != "svg") {
            continue;
        }
        match read(&path).map_err(|error| cannot("read", &path, &error))? {
            Some(entry) => entries.push(entry),
            None => others += 1,
        }
    }
    if entries.is_empty() {
        let what = format!("no picture of flame's in {}", folder.display());
        return Err(Failure::new(what).or_try("flame render out.folded -o DIR/out.svg"));
    }
    entries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
    let path = folder.join(NAME);
    if !force && is_foreign(&path) {
        let what = format!("{} is not flame's", path.display());
        return Err(Failure::new(what).or_try("--force, to overwrite it"));
    }
    let page = index_page(&entries);
    let mut fill = |out: &mut dyn Write| out.write_all(page.as_bytes());
    let written = own_files().replace(&path, &mut fill);
    Ok((written.map_err(|error| cannot("write", &path, &error))?, others))
}

fn is_foreign(path: &Path) -> bool {
    match own_files().read(path) {
        Ok(bytes) => !String::from_utf8_lossy(&bytes).contains(INDEX_MARK),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// What the start of a picture says; `None` when it is not one of flame's.
fn read(path: &Path) -> io::Result<Option<IndexEntry>> {
    let file = match own_files().open_input(path) {
        Err(error) if is_refused(&error) => return Ok(None),
        file => file?,
    };
    let modified = file.metadata()?.modified()?;
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start)?;
    let name = path.file_name().unwrap_or_default().as_bytes();
    if !is_flame_svg(&start) {
        return Ok(None);
    }
    Ok(Some(IndexEntry::of(name, modified, &String::from_utf8_lossy(&start))))
}
