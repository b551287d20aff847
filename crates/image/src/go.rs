//! Finds the table that Go programs carry (`.gopclntab`) in an image, by its section or by how it
//! begins, and what belongs to it.
//!
//! Position-independent programs have it among the data that is relocated, where linkers other than
//! Go's own leave words to relocations that the file has 0 for. What the runtime knows of its module
//! (`runtime.moduledata`) begins with the place of the table, by which it is found.
//!
//! Sources: `cmd/link/internal/ld/pcln.go`, `data.go` and `symtab.go` of Go; `debug/buildinfo`.

use flame_pclntab::{GoTable, InlineTrees, ModuleData, find_table, looks_like_table};
use flame_profile::{ImageAddress, SharedBytes};
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use crate::image::{ImageFile, Section, Segment};

/// What sections of the table are called.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Sections that only programs of Go have.
const SIGNS: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// The most places that are looked at as module data; a program has one or two words with the place
/// of the table.
const MAX_CANDIDATES: usize = 64;

/// The table of an image, if it is a program of Go.
pub(crate) fn find(image: &ImageFile) -> Option<GoTable> {
    let table = table_section(image)?;
    let module = module_data(image, &table);
    let by_section = || image.elf()?.section_by_name(".text").map(|text| text.address());
    let text = module.map(|module| module.text).or_else(by_section)?;
    let parsed = GoTable::parse(table.bytes, text)?;
    Some(match module.and_then(|module| inline_trees(image, module)) {
        Some(trees) => parsed.with_inlined(trees),
        None => parsed,
    })
}

fn table_section(image: &ImageFile) -> Option<Section> {
    let named = SECTIONS.iter().find_map(|name| image.section(name));
    if let Some(section) = named.filter(|section| looks_like_table(&section.bytes)) {
        return Some(section);
    }
    let has_no_sections = image.elf()?.sections().next().is_none();
    if !has_no_sections && !SIGNS.iter().any(|name| image.has_section(name)) {
        return None;
    }
    data_segments(image).find_map(|(segment, bytes)| {
        // The pages of a segment are aligned, its first byte need not be.
        let skipped = segment.address.0.wrapping_neg() % 8;
        let skipped = usize::try_from(skipped).ok()?;
        let at = skipped.checked_add(find_table(bytes.get(skipped..)?)?)?;
        let address = segment.address.0.checked_add(u64::try_from(at).ok()?)?;
        Some(Section { address: ImageAddress(address), bytes: bytes.slice(at..bytes.len())? })
    })
}

/// The segments with what the file has of them.
fn all_segments(image: &ImageFile) -> impl Iterator<Item = (&Segment, SharedBytes)> {
    let stored = |segment: &Segment| image.stored(segment.offset, segment.file_len);
    image.segments().iter().filter_map(move |segment| Some((segment, stored(segment)?)))
}

/// Those that hold no code.
fn data_segments(image: &ImageFile) -> impl Iterator<Item = (&Segment, SharedBytes)> {
    all_segments(image).filter(|(segment, _)| !segment.executable)
}

fn module_data(image: &ImageFile, table: &Section) -> Option<ModuleData> {
    let read = |place: u64, word: &dyn Fn(u64) -> Option<u64>| {
        let word = |index: usize| word(place.checked_add(8 * u64::try_from(index).ok()?)?);
        ModuleData::read(&table.bytes, table.address, word)
    };
    let in_file = data_segments(image).find_map(|(segment, bytes)| {
        let word = |address: u64| {
            let at = usize::try_from(address.checked_sub(segment.address.0)?).ok()?;
            Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        };
        let places = words_equal_to(&bytes, segment.address.0, table.address.0);
        places.take(MAX_CANDIDATES).find_map(|place| read(place, &word))
    });
    in_file.or_else(|| {
        let relocated = relocated_words(image, table.address.0)?;
        let places = relocated.places.iter();
        places.take(MAX_CANDIDATES).find_map(|place| {
            read(*place, &|address| {
                let stored = || image.loaded_word(address);
                relocated.words.get(&address).copied().or_else(stored)
            })
        })
    })
}

/// The addresses of aligned words that hold a value.
fn words_equal_to(bytes: &[u8], start: u64, value: u64) -> impl Iterator<Item = u64> {
    let skipped = start.wrapping_neg() % 8;
    let aligned = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..));
    let (words, _) = aligned.unwrap_or_default().as_chunks::<8>();
    let value = value.to_le_bytes();
    let found = words.iter().zip(0_u64..).filter(move |(word, _)| **word == value);
    found.map(move |(_, index)| start.wrapping_add(skipped).wrapping_add(8 * index))
}

/// Words that the loader writes.
struct Relocated {
    /// Those that hold the value that was asked for.
    places: Vec<u64>,
    /// Words behind these places, as far as module data reaches.
    words: FxHashMap<u64, u64>,
}

/// The words that relocations set to a value, and those behind.
fn relocated_words(image: &ImageFile, value: u64) -> Option<Relocated> {
    let elf = image.elf()?;
    let addends = || {
        let relocations = elf.dynamic_relocations().into_iter().flatten();
        relocations.map(|(place, relocation)| (place, relocation.addend().cast_unsigned()))
    };
    let places = addends().filter(|(_, addend)| *addend == value);
    let places: Vec<u64> = places.map(|(place, _)| place).take(MAX_CANDIDATES).collect();
    let len = 8 * ModuleData::WORDS as u64;
    let is_near = |address: u64| {
        places.iter().any(|place| address.checked_sub(*place).is_some_and(|by| by < len))
    };
    let words = addends().filter(|(address, _)| is_near(*address)).collect();
    (!places.is_empty()).then_some(Relocated { places, words })
}

/// The segment that the trees of inlined calls are in.
fn inline_trees(image: &ImageFile, module: ModuleData) -> Option<InlineTrees> {
    // Go 1.16 and 1.17 have addresses of it, which lie where the table is.
    let holds = |segment: &Segment| {
        let inside = module.data.checked_sub(segment.address.0);
        inside.is_some_and(|inside| inside < segment.file_len.0)
    };
    let segments = || data_segments(image);
    let (segment, bytes) = match module.data {
        0 => segments().max_by_key(|(_, bytes)| bytes.len())?,
        _ => all_segments(image).find(|(segment, _)| holds(segment))?,
    };
    Some(InlineTrees { bytes, address: segment.address, base: module.data })
}
