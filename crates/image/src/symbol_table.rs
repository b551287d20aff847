//! Turns the symbols of an image into disjoint ranges of addresses, each with one name.
//!
//! A symbol covers as many bytes as it says. One without a size, as hand-written assembly has them,
//! reaches to the next symbol or the end of its section. What no symbol covers has no name: the
//! last name before a gap says nothing about it.

use std::cmp::Reverse;

use flame_profile::{ImageAddress, Missing};
use object::Object;

use crate::disjoint::{Span, find, flatten};
use crate::image::ImageFile;
use crate::raw_symbol::{NameAt, RawSymbol, RawSymbols};

/// How much of two names is compared when nothing else tells aliases apart.
const COMPARED_NAME_LEN: usize = 256;

/// How many aliases of one address are looked at; real functions have a handful.
const COMPARED_ALIASES: usize = 64;

/// The names of an image by address.
#[derive(Debug, Default)]
pub struct SymbolTable {
    raw: RawSymbols,
    /// Sorted, disjoint; the value is a position in `best`.
    spans: Vec<Span>,
    /// The best name at each address where symbols start, with the address.
    best: Vec<(u64, NameAt)>,
    /// All names of addresses that have several, sorted by address.
    aliases: Vec<(u64, NameAt)>,
    is_stripped: bool,
}

/// A symbol that covers an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// As it stands in the file, mangled, without version.
    pub name: &'a [u8],
    /// Whether it is not the function of that name but a stub that jumps to it.
    pub is_stub: bool,
    /// The image address where it starts.
    start: u64,
}

impl Symbol<'_> {
    /// The address where it starts.
    pub fn start(&self) -> ImageAddress {
        ImageAddress(self.start)
    }
}

impl SymbolTable {
    /// Reads `.symtab` and `.dynsym`, of the companion as well; a table that makes no sense is as
    /// if it were absent.
    pub(crate) fn read(image: &ImageFile) -> SymbolTable {
        let mut raw = RawSymbols::new(image.search().budget.clone());
        let mut is_stripped = true;
        let companion = image.companion();
        // What is within the image says no more than a file with all that was stripped.
        let mini = if companion.is_none() { image.mini_debug_info() } else { None };
        for image in [Some(image), companion, mini.as_ref()].into_iter().flatten() {
            if let Some(elf) = image.elf() {
                raw.add_image(&elf, image.bytes());
                is_stripped &= elf.symbol_table().is_none();
            }
        }
        if is_stripped {
            raw.add_entry(image);
        }
        SymbolTable { is_stripped, ..SymbolTable::new(raw) }
    }

    fn new(mut raw: RawSymbols) -> SymbolTable {
        let mut symbols = std::mem::take(&mut raw.symbols);
        symbols.sort_by_key(|symbol| symbol.address);
        let best: Vec<RawSymbol> = symbols
            .chunk_by(|a, b| a.address == b.address)
            .filter_map(|aliases| best_alias(&raw, aliases))
            .collect();
        let several = symbols.chunk_by(|a, b| a.address == b.address).filter(|all| all.len() > 1);
        let aliases = several.flatten().map(|symbol| (symbol.address, symbol.name)).collect();
        let spans = add_unsized(flatten(sized_spans(&best), |span| span.start), &best);
        let best = best.iter().map(|symbol| (symbol.address, symbol.name)).collect();
        SymbolTable { raw, spans, best, aliases, is_stripped: false }
    }

    /// Why an address has no name that no symbol covers.
    pub fn missing(&self) -> Missing {
        if self.is_stripped { Missing::Stripped } else { Missing::NoSymbol }
    }

    /// The symbol that covers an address.
    pub fn lookup(&self, address: ImageAddress) -> Option<Symbol<'_>> {
        let id = find(&self.spans, address.0)?.value;
        let (start, at) = *self.best.get(id as usize)?;
        let name = self.raw.name(at);
        (!name.is_empty()).then_some(Symbol { name, is_stub: at.is_stub, start })
    }

    /// All names of functions, each with the address where it starts.
    pub fn iter(&self) -> impl Iterator<Item = (ImageAddress, &[u8])> {
        let all = self.best.iter().chain(&self.aliases).filter(|(_, name)| !name.is_stub);
        all.map(|(address, name)| (ImageAddress(*address), self.raw.name(*name)))
    }

    /// Whether the function that a symbol names has that other name as well.
    pub fn has_alias(&self, symbol: Symbol<'_>, name: &[u8]) -> bool {
        let first = self.aliases.partition_point(|(address, _)| *address < symbol.start);
        let aliases = self.aliases[first..].iter().take(COMPARED_ALIASES);
        aliases
            .take_while(|(address, _)| *address == symbol.start)
            .any(|(_, alias)| !alias.is_stub && self.raw.name(*alias) == name)
    }
}

/// One symbol for several at one address: the best name, and the largest size that any has. Where
/// some have a size the others are not names of that function: an empty part that the compiler split
/// off another one (`.cold`) may end up at the same address.
fn best_alias(raw: &RawSymbols, aliases: &[RawSymbol]) -> Option<RawSymbol> {
    if let [only] = aliases {
        return Some(*only);
    }
    let size = aliases.iter().map(|symbol| symbol.size).max()?;
    let candidates = || aliases.iter().filter(|symbol| symbol.size > 0 || size == 0);
    let rank = candidates().map(|symbol| symbol.rank).min()?;
    let best = candidates().filter(|symbol| symbol.rank == rank);
    let best = best.min_by_key(|symbol| preference(raw.name(symbol.name)))?;
    Some(RawSymbol { size, ..*best })
}

/// Orders names, the plainest first: one that exists, fewest leading underscores, shortest, then
/// by bytes so that the choice is always the same. `_Z` and `_R` begin mangled names.
fn preference(name: &[u8]) -> (bool, usize, usize, &[u8]) {
    let name = &name[..name.len().min(COMPARED_NAME_LEN)];
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    let mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    (name.is_empty(), if mangled { 0 } else { underscores }, name.len(), name)
}

/// The spans of symbols that have a size, kept within their sections.
fn sized_spans(symbols: &[RawSymbol]) -> Vec<Span> {
    let spans = symbols.iter().zip(0..).map(|(symbol, value)| {
        let end = symbol.address.saturating_add(symbol.size).min(symbol.section_end);
        Span { start: symbol.address, end, value }
    });
    spans.collect()
}

/// Fills gaps with the symbols without size that start in them. Those that start inside another
/// symbol are labels within a function and give no name of their own.
fn add_unsized(sized: Vec<Span>, symbols: &[RawSymbol]) -> Vec<Span> {
    let mut added = Vec::new();
    let starts = symbols.iter().skip(1).map(|next| next.address).chain([u64::MAX]);
    for ((symbol, next_symbol), value) in symbols.iter().zip(starts).zip(0..) {
        if symbol.size > 0 || find(&sized, symbol.address).is_some() {
            continue;
        }
        let end = next_symbol.min(symbol.section_end);
        added.push(Span { start: symbol.address, end, value });
    }
    let mut spans = sized;
    spans.append(&mut added);
    spans.sort_unstable_by_key(|span| (span.start, Reverse(span.end)));
    spans
}

#[cfg(test)]
mod tests;
