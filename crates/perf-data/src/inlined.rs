//! Inlined functions of frames that were printed as text: an address, a symbol with its offset, and a file.
//!
//! What the address means depends on the version of perf: an address in the image, an offset in the file, or an
//! address of the process. It is only believed if the file of that path has the printed symbol there, at the printed
//! offset: a file that was built anew since has not.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flame_image::{Files, ImageFile};
use flame_profile::{FileOffset, ImageAddress};
use flame_symbolize::{SymbolFrame, Symbolized, demangle, symbolize_image};

use crate::files::Access;
use crate::read::Names;

/// Files are mapped at multiples of it, at least.
const PAGE: u64 = 4096;

/// A frame as `perf script` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedFrame<'t> {
    /// Its address.
    pub address: u64,
    /// Its function.
    pub symbol: &'t [u8],
    /// How far the address lies behind its start, where that was printed.
    pub offset: Option<u64>,
    /// Whether it has called another function, and the address is that behind the call.
    pub is_caller: bool,
}

/// What stands at frames of a file, innermost first, from its debug information; `None` for frames that this
/// file does not have.
pub fn inlined_frames(
    names: &Names,
    path: &[u8],
    frames: &[PrintedFrame<'_>],
) -> Vec<Option<Vec<SymbolFrame>>> {
    let Some(image) = open(names, Path::new(OsStr::from_bytes(path))) else {
        return vec![None; frames.len()];
    };
    let mut functions = None;
    let mut place = |frame: &PrintedFrame<'_>| {
        let address = place(&image, frame, &mut functions)?;
        Some(ImageAddress(address.0 - u64::from(frame.is_caller)))
    };
    let places: Vec<Option<ImageAddress>> = frames.iter().map(&mut place).collect();
    let mut addresses: Vec<ImageAddress> = places.iter().flatten().copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    let answers = symbolize_image(&image, &addresses, &names.symbols);
    let answer = |address: ImageAddress| match &answers[addresses.binary_search(&address).ok()?] {
        Symbolized::Frames(frames) => Some(frames.clone()),
        Symbolized::Unknown(_) => None,
    };
    places.into_iter().map(|place| place.and_then(answer)).collect()
}

fn open(names: &Names, path: &Path) -> Option<ImageFile> {
    let (live, sysroot) = (names.files.clone(), names.sysroot.clone());
    let files = Files::new(Access { live, sysroot, own_directories: names.own_directories() });
    let search = names.debug_places.search(path, Path::new("/"), files.clone());
    let opened = files.open(path).ok()?;
    ImageFile::of_file(path, &opened, search).ok()
}

/// Where the functions of an image start, by the names that perf prints.
type Functions = HashMap<String, Vec<ImageAddress>>;

/// Where a frame is in an image that has its function there.
fn place(
    image: &ImageFile,
    frame: &PrintedFrame<'_>,
    functions: &mut Option<Functions>,
) -> Option<ImageAddress> {
    let wanted = plain(&String::from_utf8_lossy(frame.symbol)).to_owned();
    let has_it = |address: &ImageAddress| {
        // What follows the last call of a function may lie behind its end.
        let within = address.0.checked_sub(u64::from(frame.is_caller));
        let symbol = within.and_then(|within| image.symbols().lookup(ImageAddress(within)));
        symbol.is_some_and(|symbol| {
            let offset = address.0.checked_sub(symbol.start().0);
            let name = String::from_utf8_lossy(symbol.name);
            frame.offset.is_none_or(|printed| offset == Some(printed))
                && (plain(&demangle(&name)) == wanted
                    || image.symbols().has_alias(symbol, frame.symbol))
        })
    };
    let in_file = image.to_image_address(FileOffset(frame.address));
    let as_printed = [Some(ImageAddress(frame.address)), in_file];
    if let Some(found) = as_printed.into_iter().flatten().find(has_it) {
        return Some(found);
    }
    let offset = frame.offset?;
    let functions = functions.get_or_insert_with(|| by_name(image));
    let starts = functions.get(&wanted)?.iter();
    let mut found = starts
        .filter_map(|start| Some(ImageAddress(start.0.checked_add(offset)?)))
        .filter(|address| address.0 % PAGE == frame.address % PAGE && has_it(address));
    let only = found.next()?;
    found.all(|other| other == only).then_some(only)
}

fn by_name(image: &ImageFile) -> Functions {
    let mut functions = Functions::new();
    for (start, name) in image.symbols().iter() {
        let name = String::from_utf8_lossy(name);
        functions.entry(plain(&demangle(&name)).to_owned()).or_default().push(start);
    }
    functions
}

/// A name without parameters, which perf leaves out, and without what compilers put behind names.
fn plain(name: &str) -> &str {
    let name = name.split(" [clone ").next().unwrap_or(name);
    let end = name
        .char_indices()
        .find(|(at, sign)| *sign == '(' && *at > 0 && !name[..*at].ends_with("operator"));
    let name = end.map_or(name, |(at, _)| &name[..at]);
    name.split('.').next().filter(|start| !start.is_empty()).unwrap_or(name)
}
