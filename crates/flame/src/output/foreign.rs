//! Whether a default name is somebody's own file, which flame does not overwrite unasked.

use std::io::Read;
use std::path::Path;

use crate::message::Failure;
use crate::sudo::own_files;

/// What every SVG of flame has near its start, and no other tool's.
const SVG_MARK: &[u8] = br#"class="flame-graph""#;

pub(super) fn is_flame_svg(bytes: &[u8]) -> bool {
    let start = bytes.get(..1000).unwrap_or(bytes);
    start.windows(SVG_MARK.len()).any(|window| window == SVG_MARK)
}

/// Whether there is something that flame did not write: another file, a link, a FIFO. Neither
/// followed nor opened, and no more of a file is read than is needed.
fn is_foreign(path: &Path) -> bool {
    let Ok(place) = own_files().find_place(path) else { return false };
    let found = match place.look() {
        Ok(None) => return false,
        Ok(Some(found)) => found,
        Err(_) => return true,
    };
    let mut start = Vec::new();
    // What cannot be read is not known to be flame's.
    let read = found.open().and_then(|opened| opened.file.take(1000).read_to_end(&mut start));
    read.is_err() || (!start.is_empty() && !is_flame_svg(&start))
}

/// The default name may well be somebody's own picture.
pub(super) fn refuse_foreign(path: &Path) -> Result<(), Failure> {
    if !is_foreign(path) {
        return Ok(());
    }
    Err(Failure::new(format!("cannot write {}: it exists already", path.display()))
        .why("flame did not write it, and does not overwrite such a file unasked")
        .or_try(format!("-o OTHER.svg, or --force to replace {}", path.display())))
}
