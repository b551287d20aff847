//! The files that `flame uboot` reads: the trace as a stream, map and rules whole.

use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use flame_formats::{is_packed, read_unpacked};
use flame_uboot::{
    Reading, Rules, SymbolMap, Trace, unreadable, unreadable_map, wrong_map, wrong_rules,
    wrong_trace,
};

use crate::inputs::shown_path;
use crate::message::Failure;
use crate::sudo::own_files;

/// Bytes of which any can be read.
pub(super) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// A trace's bytes, wherever they are.
pub(super) type Bytes = Box<dyn ReadSeek>;

/// This many bytes tell whether a file is packed.
const PACKED_START: u64 = 6;

/// A path as messages show it.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    shown_path(path)
}

/// Refuses stdin for more than one of the files that are read.
pub(super) fn check_stdin(paths: &[Option<&Path>]) -> Result<(), Failure> {
    match paths.iter().flatten().filter(|path| **path == Path::new("-")).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::usage("stdin can be read only once")),
    }
}

/// Opens the file of a trace, and says what is wrong with its end if it is packed; what is packed,
/// or is not a regular file, is read into memory.
pub(super) fn open(path: &Path) -> Result<(Bytes, Option<String>), Failure> {
    let whole = |path| -> io::Result<(Bytes, Option<String>)> {
        let (bytes, trouble) = read_unpacked(reader(path)?)?;
        Ok((Box::new(Cursor::new(bytes)), trouble.map(|trouble| broken_end(&trouble))))
    };
    let as_it_is = || -> io::Result<Option<Bytes>> {
        if path == Path::new("-") || !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let (mut file, mut start) = (own_files().open_input(path)?, Vec::new());
        (&mut file).take(PACKED_START).read_to_end(&mut start)?;
        file.seek(SeekFrom::Start(0))?;
        Ok((!is_packed(&start)).then(|| Box::new(file) as Bytes))
    };
    let opened = as_it_is().and_then(|file| match file {
        Some(file) => Ok((file, None)),
        None => whole(path),
    });
    opened.map_err(|error| unreadable(&shown(path), &error))
}

fn reader(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let is_stdin = path == Path::new("-");
    Ok(if is_stdin { Box::new(io::stdin()) } else { Box::new(own_files().open_input(path)?) })
}

/// A file that is small, whole; it may be packed, and stdin.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    match read_unpacked(reader(path)?)? {
        (bytes, None) => Ok(bytes),
        (_, Some(trouble)) => Err(io::Error::other(broken_end(&trouble))),
    }
}

fn broken_end(trouble: &str) -> String {
    format!("its compressed data is damaged or truncated: {trouble}")
}

/// Recognises a trace, and says what is wrong with its end if it is packed.
pub(super) fn trace(path: &Path) -> Result<(Trace<Bytes>, Option<String>), Failure> {
    let (bytes, trouble) = open(path)?;
    let trace = Trace::open(bytes).map_err(|error| wrong_trace(&shown(path), &error))?;
    Ok((trace, trouble))
}

/// Reads a map for sites of this many bytes.
pub(super) fn map(path: &Path, site_len: u32) -> Result<SymbolMap, Failure> {
    let text = map_text(path)?;
    SymbolMap::parse(&text, site_len).map_err(|error| wrong_map(&shown(path), &error))
}

/// The text of a map.
pub(super) fn map_text(path: &Path) -> Result<Vec<u8>, Failure> {
    read_whole(path).map_err(|error| unreadable_map(&shown(path), &error))
}

/// Reads the rules of a file, if there is one.
pub(super) fn rules(path: Option<&Path>, reading: Reading) -> Result<Option<Rules>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = read_whole(path).map_err(|error| unreadable(&shown(path), &error))?;
    let rules = Rules::parse(&text, reading);
    rules.map(Some).map_err(|error| wrong_rules(&shown(path), &error))
}
