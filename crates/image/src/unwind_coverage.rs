//! Turns an image into how much of its code has unwind tables: stacks end where there are none.
//!
//! Sources: elf(5), "String and symbol tables".

use std::collections::BTreeMap;

use flame_profile::{ImageAddress, readable};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use crate::image::ImageFile;

/// Where symbols do not say what functions there are, so many places of the code are tried.
const PLACES: u64 = 4096;

/// How much of a program compilers and linkers add by themselves that has no tables and that no
/// symbol tells apart in a stripped one: some 250 bytes.
const START_FILES: u64 = 512;

/// How much of an image's code has unwind tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwindCoverage {
    /// Functions that symbols name, or where there are no symbols, places that were tried.
    pub functions: u64,
    /// How many of them have no entry in any table.
    pub without: u64,
    /// Bytes of code in all of them, and in those without an entry.
    pub bytes: u64,
    /// Bytes of code in those without an entry.
    pub bytes_without: u64,
    /// The largest function without an entry.
    pub largest: Option<String>,
}

impl UnwindCoverage {
    /// The share of the code that has no tables, 0 to 1; 0 where there is no code.
    pub fn share_without(&self) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.bytes_without as f64 / self.bytes as f64 }
    }
}

impl ImageFile {
    /// How much of its code has unwind tables, its own or those of its debug file.
    ///
    /// Functions are those of symbols that have a length: what compilers and linkers add by
    /// themselves (`_init`, `deregister_tm_clones`) has none, and nothing is called from there.
    pub fn unwind_coverage(&self) -> UnwindCoverage {
        let mut functions = BTreeMap::new();
        for image in [Some(self), self.companion()].into_iter().flatten() {
            add_functions(image, &mut functions);
        }
        let mut coverage =
            UnwindCoverage { functions: 0, without: 0, bytes: 0, bytes_without: 0, largest: None };
        if functions.is_empty() {
            self.try_places(&mut coverage);
            return coverage;
        }
        let mut longest = 0;
        for (start, (len, name)) in functions {
            coverage.functions += 1;
            coverage.bytes = coverage.bytes.saturating_add(len);
            if self.function_range(ImageAddress(start)).is_some() {
                continue;
            }
            coverage.without += 1;
            coverage.bytes_without = coverage.bytes_without.saturating_add(len);
            if len > longest {
                longest = len;
                coverage.largest = Some(name);
            }
        }
        coverage
    }

    /// Tries places of the sections with code, each as far from the next.
    fn try_places(&self, coverage: &mut UnwindCoverage) {
        let Some(elf) = self.elf() else { return };
        for section in elf.sections().filter(|section| section.name() == Ok(".text")) {
            let step = section.size().div_ceil(PLACES).max(1);
            let mut at = 0;
            while at < section.size() {
                coverage.functions += 1;
                coverage.bytes = coverage.bytes.saturating_add(step);
                let address = section.address().saturating_add(at);
                if self.function_range(ImageAddress(address)).is_none() {
                    coverage.without += 1;
                    coverage.bytes_without = coverage.bytes_without.saturating_add(step);
                }
                at = at.saturating_add(step);
            }
        }
        coverage.bytes_without = coverage.bytes_without.saturating_sub(START_FILES);
    }
}

/// Adds the functions of both symbol tables: their lengths and names by their starts.
fn add_functions(image: &ImageFile, functions: &mut BTreeMap<u64, (u64, String)>) {
    let Some(elf) = image.elf() else { return };
    let is_code = |index| {
        elf.section_by_index(index).is_ok_and(|section| section.kind() == SectionKind::Text)
    };
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        if !is_function || !symbol.section_index().is_some_and(is_code) {
            continue;
        }
        let name = || readable(symbol.name_bytes().unwrap_or_default()).into_owned();
        functions.entry(symbol.address()).or_insert_with(|| (symbol.size(), name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::build::{SOURCE, Workshop, many_functions};

    /// A function of 16 bytes beside those that the compiler makes tables for.
    const ASSEMBLY: &str = "
        .text
        .globl bare
        .type bare, @function
    bare: .fill 15, 1, 0x90
        ret
        .size bare, . - bare
        .section .note.GNU-stack
    ";

    #[test]
    fn functions_without_tables_are_counted() {
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let shop = Workshop::new("unwind-coverage");
        shop.write("a.c", SOURCE);
        shop.write("b.s", ASSEMBLY);
        shop.write("many.c", &many_functions());
        let built = shop.run_all(
            "gcc -O2 -o whole a.c
             gcc -O2 -o part a.c b.s
             gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -o none a.c
             strip -o bare whole
             gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -o long a.c many.c
             strip -o stripped long",
        );
        if !built {
            return;
        }
        let coverage = |name: &str| ImageFile::open(&shop.path(name)).unwrap().unwind_coverage();
        let whole = coverage("whole");
        // _start, main and hidden.
        assert_eq!((whole.functions, whole.without, whole.largest), (3, 0, None));
        let part = coverage("part");
        assert_eq!((part.functions, part.without, part.bytes_without), (4, 1, 16));
        assert_eq!(part.largest.as_deref(), Some("bare"));
        let none = coverage("none");
        assert_eq!((none.functions, none.without), (3, 2), "_start is the C library's");
        assert_eq!(coverage("bare").bytes_without, 0, "what the linker adds does not count");
        let stripped = coverage("stripped");
        assert!(stripped.share_without() > 0.9, "{stripped:?}");
    }
}
