//! Whether the tables of an ELF file have lengths that real ones have.
//!
//! Readers go through notes, symbols, relocations, stubs, frame descriptions and section headers
//! entry by entry. That a
//! table lies within its file is not a bound: a file with a hole may be terabytes long and take no
//! room on disk, and going through it would take hours. A file with such a table is refused as a
//! whole; nobody but its author has it.

use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};

/// A linked file has some dozens of sections; object files of large units have 100,000.
const MAX_SECTIONS: usize = 1 << 18;

/// A linked file has some ten segments.
const MAX_SEGMENTS: usize = 1 << 12;

/// 16 million symbols or relocations; Chromium with all its debug information has 2 million.
const MAX_TABLE_LEN: u64 = 384 << 20;

/// 4 million stubs, or as many notes; the notes of a core file are no concern here.
const MAX_SMALL_LEN: u64 = 64 << 20;

/// Whether going through the tables of that file ends in time.
pub(crate) fn has_plausible_tables(file: &object::File<'_>) -> bool {
    match file {
        object::File::Elf32(elf) => is_plausible(elf),
        object::File::Elf64(elf) => is_plausible(elf),
        _ => true,
    }
}

fn is_plausible<E: FileHeader>(elf: &ElfFile<'_, E>) -> bool {
    let endian = elf.endian();
    let (sections, segments) = (elf.elf_section_table(), elf.elf_program_headers());
    if sections.len() > MAX_SECTIONS || segments.len() > MAX_SEGMENTS {
        return false;
    }
    let section_fits = |section: &E::SectionHeader| {
        let kind = section.sh_type(endian);
        let name = sections.section_name(endian, section).unwrap_or_default();
        let len: u64 = section.sh_size(endian).into();
        match kind {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM | elf::SHT_RELA | elf::SHT_REL => {
                len <= MAX_TABLE_LEN
            }
            elf::SHT_NOTE => len <= MAX_SMALL_LEN,
            _ if name.starts_with(b".plt") => len <= MAX_SMALL_LEN,
            // Zeros, as holes have them, end `.eh_frame`, and are skipped here.
            _ if name == b".debug_frame" => len <= MAX_TABLE_LEN,
            _ => true,
        }
    };
    let segment_fits = |segment: &E::ProgramHeader| {
        let len: u64 = segment.p_filesz(endian).into();
        segment.p_type(endian) != elf::PT_NOTE || len <= MAX_SMALL_LEN
    };
    sections.iter().all(section_fits) && segments.iter().all(segment_fits)
}
