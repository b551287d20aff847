//! Turns a stripped image into the file that holds what was stripped from it.
//!
//! Looked for where distributions and linkers put it: by build id below `/usr/lib/debug`, and under
//! the name in `.gnu_debuglink` beside the image. A file counts only when its build id is that of
//! the image; the checksum of the link is not read.
//!
//! Sources: GDB's manual, "Debugging Information in Separate Files".

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flame_profile::BuildId;
use object::Object;

use crate::image::ImageFile;

/// Where packages of debug information put their files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The companion of an image that was opened at `path`, if it is stripped and has one.
pub(crate) fn find_companion(image: &ImageFile, path: &Path) -> Option<ImageFile> {
    let build_id = image.build_id()?;
    let elf = image.elf()?;
    if elf.section_by_name(".debug_info").is_some() {
        return None;
    }
    let link = elf.gnu_debuglink().ok().flatten().map(|(name, _checksum)| OsStr::from_bytes(name));
    let candidates = candidates(path, build_id, link);
    let mut images = candidates.iter().filter_map(|path| ImageFile::open(path).ok());
    images.find(|found| found.build_id() == Some(build_id))
}

/// The paths to try, in this order.
fn candidates(path: &Path, build_id: &BuildId, link: Option<&OsStr>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let id = build_id.to_string();
    if let Some((directory, file)) = id.split_at_checked(2).filter(|(_, file)| !file.is_empty()) {
        paths.push(PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{directory}/{file}.debug")));
    }
    // A link is a name, never a path that leads elsewhere.
    let link = link.filter(|link| Path::new(link).file_name() == Some(link));
    if let (Some(link), Some(directory)) = (link, path.parent()) {
        paths.push(directory.join(link));
        paths.push(directory.join(".debug").join(link));
        if let Ok(below_root) = directory.strip_prefix("/") {
            paths.push(Path::new(DEBUG_ROOT).join(below_root).join(link));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_gdb() {
        let build_id = BuildId::from_bytes(&[0xab, 0xcd, 0xef]).unwrap();
        let path = Path::new("/usr/bin/less");
        let build_id_path = "/usr/lib/debug/.build-id/ab/cdef.debug";
        assert_eq!(
            candidates(path, &build_id, Some(OsStr::new("less.debug"))),
            [
                Path::new(build_id_path),
                Path::new("/usr/bin/less.debug"),
                Path::new("/usr/bin/.debug/less.debug"),
                Path::new("/usr/lib/debug/usr/bin/less.debug"),
            ]
        );
        for link in ["../../etc/shadow", "/etc/shadow", "..", ""] {
            let candidates = candidates(path, &build_id, Some(OsStr::new(link)));
            assert_eq!(candidates, [Path::new(build_id_path)], "{link}");
        }
        let short = BuildId::from_bytes(&[0xab]).unwrap();
        assert_eq!(candidates(path, &short, None), Vec::<PathBuf>::new());
    }
}
