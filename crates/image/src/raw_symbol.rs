//! Turns the ELF tables `.symtab` and `.dynsym` into symbols of code, names still in the tables.
//!
//! Which of them covers an address is decided in [`crate::symbol_table`].
//!
//! Sources: gABI chapter 4 "Symbol Table"; ELF for the Arm architecture, "Mapping symbols".

use std::ops::Range;

use flame_profile::SharedBytes;
use object::SectionIndex;
use object::elf;
use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym, SymbolTable};
use object::{Object, ObjectSection};

use crate::budget::{Budget, Claim};
use crate::entry;
use crate::image::ImageFile;
use crate::plt::{self, Stub};

/// The longest name in bytes, mangled or not. Names of deeply nested templates reach some
/// thousands; the time that a demangler takes can grow faster than the length.
pub const MAX_NAME_LEN: usize = 16 * 1024;

/// What a symbol takes in memory, in bytes, with the tables that are made of it.
const SYMBOL_LEN: u64 = 96;

/// The rank of stubs among aliases; see [`rank`] for those of symbols.
const STUB_RANK: u8 = 6;

/// The worst rank: of names that come from the place alone.
const PLACE_RANK: u8 = 7;

/// Names of code by its place, as a string table.
const PLACE_NAMES: &[u8] = b"\0_init\0_fini\0_dl_runtime_resolve\0_start\0main\0";

/// Sections that are one function, and where in [`PLACE_NAMES`] its name is: the psABI has the
/// linker put the pieces of these two there.
const FUNCTION_SECTIONS: [(&str, u32); 2] = [(".init", 1), (".fini", 7)];

/// Where the name of what the head of `.plt` jumps to is.
const RESOLVER: u32 = 13;

/// Where the names of the two functions are that every program of the C library has.
const START: u32 = 33;
const MAIN: u32 = 40;

/// A symbol of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawSymbol {
    /// First image address.
    pub(crate) address: u64,
    /// In bytes; 0 where the assembler was not told.
    pub(crate) size: u64,
    /// End of the section that holds it, which it cannot exceed.
    pub(crate) section_end: u64,
    /// The lower, the better the name among aliases, as far as the tables' flags tell.
    pub(crate) rank: u8,
    /// Where the name is.
    pub(crate) name: NameAt,
}

/// A name in one of several string tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameAt {
    pub(crate) table: u8,
    pub(crate) offset: u32,
    /// Whether what has the name is not the function but a stub that jumps to it.
    pub(crate) is_stub: bool,
}

/// Symbols with the string tables that hold their names.
#[derive(Debug, Default)]
pub(crate) struct RawSymbols {
    pub(crate) symbols: Vec<RawSymbol>,
    strings: Vec<SharedBytes>,
    /// The string table that is [`PLACE_NAMES`], once there is one.
    places: Option<u8>,
    budget: Budget,
    /// For `symbols`, and what is made of them.
    claims: Vec<Claim>,
}

impl RawSymbols {
    /// None yet; those that come are claimed from there.
    pub(crate) fn new(budget: Budget) -> RawSymbols {
        RawSymbols { budget, ..RawSymbols::default() }
    }

    /// Adds the symbols of both tables of an image, in the order of the file.
    pub(crate) fn add_image(&mut self, elf: &object::File<'_>, bytes: &SharedBytes) {
        match elf {
            object::File::Elf32(elf) => self.add_elf(elf, bytes),
            object::File::Elf64(elf) => self.add_elf(elf, bytes),
            _ => {}
        }
    }

    fn add_elf<E: FileHeader>(&mut self, elf: &ElfFile<'_, E>, bytes: &SharedBytes) {
        let code = code_sections(elf);
        for table in [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()] {
            if table.is_empty() {
                continue;
            }
            let Some(strings) = string_table(elf, table.string_section(), bytes) else { continue };
            let index = self.add_strings(strings);
            self.add_table(elf.endian(), table, &code, index);
            if std::ptr::eq(table, elf.elf_dynamic_symbol_table()) {
                self.symbols
                    .extend(plt::stubs(elf).into_iter().map(|stub| stub_symbol(stub, index)));
            }
        }
        self.add_places(elf);
    }

    /// Adds what has a name although it was stripped: the function that all pieces of `.init` are,
    /// the one of `.fini`, and the head of `.plt`, which calls the loader when a function is called
    /// for the first time.
    fn add_places<E: FileHeader>(&mut self, elf: &ElfFile<'_, E>) {
        let mut add = |address: u64, len: u64, name, is_stub| {
            self.add_place(address..address.saturating_add(len), name, is_stub);
        };
        for (name, offset) in FUNCTION_SECTIONS {
            if let Some(section) = elf.section_by_name(name) {
                add(section.address(), section.size(), offset, false);
            }
        }
        if let Some((address, len)) = plt::head(elf) {
            add(address, len, RESOLVER, true);
        }
    }

    /// Adds `_start` and `main` of a program that was stripped of all other names.
    pub(crate) fn add_entry(&mut self, image: &ImageFile) {
        let Some(main) = entry::main_function(image) else { return };
        for (function, name) in [(image.entry(), START), (main, MAIN)] {
            if let Some(range) = image.function_range(function) {
                self.add_place(range.start.0..range.end.0, name, false);
            }
        }
    }

    fn add_place(&mut self, range: Range<u64>, offset: u32, is_stub: bool) {
        let table = *self.places.get_or_insert_with(|| {
            self.strings.push(SharedBytes::from(PLACE_NAMES.to_vec()));
            u8::try_from(self.strings.len() - 1).unwrap_or(u8::MAX)
        });
        self.symbols.push(RawSymbol {
            address: range.start,
            size: range.end.saturating_sub(range.start),
            section_end: range.end,
            rank: PLACE_RANK,
            name: NameAt { table, offset, is_stub },
        });
    }

    fn add_table<'data, E: FileHeader>(
        &mut self,
        endian: E::Endian,
        table: &SymbolTable<'data, E>,
        code: &[Option<(u64, u64)>],
        strings: u8,
    ) {
        let Some(mut claim) = self.budget.claim(table.len() as u64 * SYMBOL_LEN) else { return };
        let before = self.symbols.len();
        for symbol in table.iter() {
            let Some(rank) = rank(symbol.st_type(), symbol.st_bind()) else { continue };
            let section = usize::from(symbol.st_shndx(endian).0);
            let Some(&Some((start, end))) = code.get(section) else { continue };
            let address: u64 = symbol.st_value(endian).into();
            if !(start..end).contains(&address) {
                continue;
            }
            let name = NameAt { table: strings, offset: symbol.st_name(endian), is_stub: false };
            if symbol.st_type() == elf::STT_NOTYPE && is_no_function(self.name(name)) {
                continue;
            }
            let size = symbol.st_size(endian).into();
            self.symbols.push(RawSymbol { address, size, section_end: end, rank, name });
        }
        claim.shrink_to((self.symbols.len() - before) as u64 * SYMBOL_LEN);
        self.claims.push(claim);
    }

    /// Adds a string table; its number.
    pub(crate) fn add_strings(&mut self, strings: SharedBytes) -> u8 {
        self.strings.push(strings);
        // Each image adds at most a handful.
        u8::try_from(self.strings.len() - 1).unwrap_or(u8::MAX)
    }

    /// The bytes of a name without its version (`memcpy@@GLIBC_2.14`), cut after
    /// [`MAX_NAME_LEN`]; empty where there is none.
    pub(crate) fn name(&self, at: NameAt) -> &[u8] {
        let table: &[u8] = self.strings.get(usize::from(at.table)).map_or(&[], |table| table);
        let Some(rest) = table.get(at.offset as usize..) else { return &[] };
        let rest = &rest[..rest.len().min(MAX_NAME_LEN)];
        let len = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        rest[..len].split(|byte| *byte == b'@').next().unwrap_or(&[])
    }
}

/// A stub as a symbol; a symbol of its own at the same address is preferred.
fn stub_symbol(stub: Stub, strings: u8) -> RawSymbol {
    RawSymbol {
        address: stub.address,
        size: stub.len,
        section_end: u64::MAX,
        rank: STUB_RANK,
        name: NameAt { table: strings, offset: stub.name, is_stub: true },
    }
}

/// For each section by its number, where it stands in the image if it holds code.
fn code_sections<E: FileHeader>(elf: &ElfFile<'_, E>) -> Vec<Option<(u64, u64)>> {
    let endian = elf.endian();
    let sections = elf.elf_section_table().iter();
    sections
        .map(|section| {
            let start: u64 = section.sh_addr(endian).into();
            let end = start.checked_add(section.sh_size(endian).into())?;
            section.sh_flags(endian).contains(elf::SHF_EXECINSTR).then_some((start, end))
        })
        .collect()
}

/// The string table that is a section of its own, as shared bytes.
fn string_table<E: FileHeader>(
    elf: &ElfFile<'_, E>,
    section: SectionIndex,
    bytes: &SharedBytes,
) -> Option<SharedBytes> {
    let section = elf.elf_section_table().section(section).ok()?;
    let (start, len) = section.file_range(elf.endian())?;
    let start = usize::try_from(start).ok()?;
    bytes.slice(start..start.checked_add(usize::try_from(len).ok()?)?)
}

/// How good a name a symbol of that type and binding is among aliases, the lower the better;
/// `None` when it does not name code.
///
/// A type counts most: markers that linkers put at the start of a section are global as well.
fn rank(kind: elf::SymbolType, bind: elf::SymbolBind) -> Option<u8> {
    let kind = match kind {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => 0,
        elf::STT_NOTYPE => 3,
        _ => return None,
    };
    let bind = match bind {
        elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    };
    Some(kind + bind)
}

/// Whether an untyped symbol is a mark of tools and not a label that somebody wrote: Arm's mapping
/// symbols (`$x`), local labels (`.L12`) and annotations (`.annobin_...`).
fn is_no_function(name: &[u8]) -> bool {
    matches!(name.first(), None | Some(b'$' | b'.'))
}
