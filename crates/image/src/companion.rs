//! Turns an image into the other files that hold parts of it: what was stripped from it, what `dwz`
//! moved out of several debug files, and the small symbol table that some distributions leave.
//!
//! A file counts only when it is shown to belong to the image: its build id is the image's, or,
//! where one of them has none, the checksum in the image's link is that of the file. A build id is
//! believed without the checksum, which takes reading the whole file.
//!
//! Sources: GDB's manual, "Debugging Information in Separate Files" and "MiniDebugInfo"; DWARF 5,
//! section 7.3.6.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flame_profile::BuildId;
use gimli::{EndianSlice, Reader as _};
use lzma_rust2::XzReader;
use object::Object;

use crate::budget::longest_plausible;
use crate::debug_search::DebugSearch;
use crate::image::ImageFile;

/// How many bytes of `.gnu_debugdata` there is room for before more are needed. Real ones have some
/// hundred kilobytes: the symbols of one file.
const FIRST_LEN: u64 = 256 << 10;

/// The most memory for decompressing it, in KiB: the format allows dictionaries of 4 GiB, `xz -9`
/// uses 64 MiB.
const MAX_XZ_MEMORY: u32 = 128 << 10;

/// The file with the debug information that was stripped from an image, if it was.
pub(crate) fn find_companion(image: &ImageFile, search: &DebugSearch) -> Option<ImageFile> {
    let elf = image.elf()?;
    if elf.section_by_name(".debug_info").is_some() {
        return None;
    }
    let by_id = image.build_id().map(|id| search.by_build_id(id)).unwrap_or_default();
    let same_id = |found: &ImageFile| found.build_id() == image.build_id();
    if let Some(found) = open_all(by_id, search).find(|found| has_names(found) && same_id(found)) {
        return Some(found);
    }
    let (link, checksum) = elf.gnu_debuglink().ok().flatten()?;
    let mut found = open_all(search.by_link(OsStr::from_bytes(link)), search);
    found.find(|found| has_names(found) && belongs(image, found, checksum))
}

/// A file that has the name and the place of an image's debug information and does not belong to
/// it; to be asked where no companion was found.
pub fn refused_companion(image: &ImageFile) -> Option<PathBuf> {
    let elf = image.elf()?;
    let (link, checksum) = elf.gnu_debuglink().ok().flatten()?;
    let search = image.search();
    let mut found = open_all(search.by_link(OsStr::from_bytes(link)), search);
    let found = found.find(|found| has_names(found) && !belongs(image, found, checksum))?;
    found.path().map(Path::to_owned)
}

/// The file with what several debug files have in common, as the one that `dwz` made smaller names
/// it.
pub(crate) fn find_supplement(debug: &ImageFile) -> Option<ImageFile> {
    let (link, id) = alternate_link(debug)?;
    let paths = debug.search().by_alternate_link(&link, debug.place().unwrap_or(&link), &id);
    open_all(paths, debug.search()).find(|found| {
        found.build_id() == Some(&id) || supplementary_id(found).as_ref() == Some(&id)
    })
}

/// The supplementary file that a debug file refers to: its path and its identity.
pub fn alternate_link(debug: &ImageFile) -> Option<(PathBuf, BuildId)> {
    if let Some((path, id)) = debug.elf()?.gnu_debugaltlink().ok().flatten() {
        return Some((path_of(path), BuildId::from_bytes(id)?));
    }
    let (is_supplement, path, id) = debug_sup(debug)?;
    (!is_supplement).then_some((path, id))
}

/// How a supplementary file of DWARF 5 calls itself.
fn supplementary_id(file: &ImageFile) -> Option<BuildId> {
    let (is_supplement, _, id) = debug_sup(file)?;
    is_supplement.then_some(id)
}

/// `.debug_sup`: whether this is the supplementary file, the path of the other one, and the
/// identity that both have.
fn debug_sup(file: &ImageFile) -> Option<(bool, PathBuf, BuildId)> {
    let section = file.section(".debug_sup")?;
    let mut reader = EndianSlice::new(&section.bytes, file.endian());
    let _version = reader.read_u16().ok()?;
    let is_supplement = reader.read_u8().ok()? != 0;
    let path = path_of(reader.read_null_terminated_slice().ok()?.slice());
    let len = usize::try_from(reader.read_uleb128().ok()?).ok()?;
    let id = BuildId::from_bytes(reader.split(len).ok()?.slice())?;
    Some((is_supplement, path, id))
}

/// The symbols in `.gnu_debugdata`: an ELF file within the file, compressed.
pub(crate) fn mini_debug_info(image: &ImageFile) -> Option<ImageFile> {
    let section = image.section(".gnu_debugdata")?;
    let packed = section.bytes.len() as u64;
    // It does not say how long it becomes; symbols become some five times as long.
    let most = longest_plausible(packed);
    let claim = image.search().budget.claim_unpacked(packed, most)?;
    let mut bytes = Vec::with_capacity(usize::try_from(most.min(FIRST_LEN)).ok()?);
    let reader = XzReader::new_mem_limit(&*section.bytes, true, MAX_XZ_MEMORY);
    let len = reader.take(most.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    if len as u64 > most {
        image.search().budget.refuse();
        return None;
    }
    bytes.shrink_to_fit();
    ImageFile::within(claim.keep(bytes), image).ok()
}

/// Whether a file has what an image may lack. A stripped image that links to its own name has not.
fn has_names(found: &ImageFile) -> bool {
    let has = |elf: object::File<'_>| {
        elf.section_by_name(".debug_info").is_some() || elf.symbol_table().is_some()
    };
    found.elf().is_some_and(has)
}

fn belongs(image: &ImageFile, found: &ImageFile, checksum: u32) -> bool {
    match (image.build_id(), found.build_id()) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => {
            let len = found.bytes().len() as u64;
            image.search().budget.may_check(len) && crc32fast::hash(found.bytes()) == checksum
        }
    }
}

/// Those of the files that are images, opened one after the other as they are asked for.
fn open_all(paths: Vec<PathBuf>, search: &DebugSearch) -> impl Iterator<Item = ImageFile> {
    let open = |path: PathBuf| ImageFile::open_with(&path, search.clone()).ok();
    paths.into_iter().filter_map(open)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::build::{SOURCE, Workshop};
    use crate::testing::elf::TestElf;

    #[test]
    fn mini_debug_info_that_is_cut_or_damaged_is_as_if_absent() {
        let shop = Workshop::new("mini-damaged");
        shop.write("a.c", SOURCE);
        if !shop.run_all("gcc -O2 -o mini a.c\nxz -9 mini") {
            return;
        }
        let whole = std::fs::read(shop.path("mini.xz")).unwrap();
        let open = |bytes: &[u8]| {
            let sections = [(".gnu_debugdata", 0, bytes)];
            let elf = TestElf { sections: &sections, ..Default::default() };
            mini_debug_info(&ImageFile::from_bytes(elf.to_bytes()).unwrap()).is_some()
        };
        assert!(open(&whole));
        let steps = (0..whole.len()).step_by(7);
        assert_eq!(steps.filter(|len| open(&whole[..*len])).count(), 0);
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        assert!(!open(&damaged), "the checks of the format are made");
    }

    #[test]
    fn more_mini_debug_info_than_any_file_has_is_refused() {
        let shop = Workshop::new("mini-bomb");
        let file = std::fs::File::create(shop.path("zeros")).unwrap();
        file.set_len(256 << 20).unwrap();
        if shop.run("xz -0 zeros") {
            let bytes = std::fs::read(shop.path("zeros.xz")).unwrap();
            let sections = [(".gnu_debugdata", 0, &bytes[..])];
            let elf = TestElf { sections: &sections, ..Default::default() };
            assert!(mini_debug_info(&ImageFile::from_bytes(elf.to_bytes()).unwrap()).is_none());
        }
    }
}
