//! The files that `flame uboot` reads: the trace as a stream, map and rules whole.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use flame_render::clean_name;
use flame_uboot::{Reading, Rules, SymbolMap, Trace, UbootError};
use flate2::read::MultiGzDecoder;

use crate::message::{Failure, reason};

/// Bytes of which any can be read.
pub(super) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// A trace's bytes, wherever they are.
pub(super) type Bytes = Box<dyn ReadSeek>;

/// A path as messages show it.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    clean_name(&path.display().to_string()).into_owned()
}

/// Opens the file of a trace; what is no regular file, or is gzipped, is read into memory.
pub(super) fn open(path: &Path) -> Result<Bytes, Failure> {
    open_bytes(path).map_err(|error| unreadable(path, &error))
}

fn open_bytes(path: &Path) -> io::Result<Bytes> {
    let mut memory = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut memory)?;
        return inflated(Cursor::new(memory));
    }
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        file.read_to_end(&mut memory)?;
        return inflated(Cursor::new(memory));
    }
    inflated(file)
}

fn inflated(mut bytes: impl ReadSeek + 'static) -> io::Result<Bytes> {
    let mut start = Vec::new();
    bytes.by_ref().take(2).read_to_end(&mut start)?;
    bytes.seek(SeekFrom::Start(0))?;
    if start != [0x1f, 0x8b] {
        return Ok(Box::new(bytes));
    }
    let mut memory = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut memory)?;
    Ok(Box::new(Cursor::new(memory)))
}

/// Recognises a trace.
pub(super) fn trace(path: &Path) -> Result<Trace<Bytes>, Failure> {
    Trace::open(open(path)?).map_err(|error| wrong_trace(path, &error))
}

/// Reads a map for sites of so many bytes.
pub(super) fn map(path: &Path, site_len: u32) -> Result<SymbolMap, Failure> {
    let text = map_text(path)?;
    SymbolMap::parse(&text, site_len).map_err(|error| wrong_map(path, &error))
}

/// The text of a map.
pub(super) fn map_text(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let failure = unreadable(path, &error);
        match error.kind() {
            io::ErrorKind::NotFound => failure
                .why("the map names the functions; U-Boot's build writes it beside the image")
                .or_try("-m PATH/System.map, of the build that made the trace"),
            _ => failure,
        }
    })
}

/// Reads the rules of a file, if there is one.
pub(super) fn rules(path: Option<&Path>, reading: Reading) -> Result<Option<Rules>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = fs::read(path).map_err(|error| unreadable(path, &error))?;
    Rules::parse(&text, reading).map(Some).map_err(|error| {
        Failure::new(format!("cannot use the rules of {}", shown(path)))
            .why(clean_name(&error.to_string()))
            .or_try("lines such as exclude-func ^mem, or include-func printf")
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {}", shown(path), reason(error)))
}

/// A trace that cannot be used.
pub(super) fn wrong_trace(path: &Path, error: &UbootError) -> Failure {
    match error {
        UbootError::Io(error) => unreadable(path, error),
        UbootError::NoSuchChunk { have: 0, .. } => {
            Failure::new(format!("no calls in {}", shown(path)))
                .why("it has lists of functions only, as `trace funclist` writes them")
                .or_try("trace calls, on the target")
        }
        UbootError::NoSuchChunk { .. } => Failure::new(error.to_string()),
        _ => Failure::new(format!("cannot read {} as a U-Boot trace", shown(path)))
            .why(error.to_string()),
    }
}

/// A map that cannot be used.
pub(super) fn wrong_map(path: &Path, error: &UbootError) -> Failure {
    Failure::new(format!("cannot use the map {}", shown(path)))
        .why(error.to_string())
        .or_try("-m with the System.map of the build that made the trace")
}
