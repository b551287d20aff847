//! Turns the entries of a unit into functions, what is inlined in them, and where each has code.

use std::borrow::Cow;

use gimli::{Abbreviation, AttributeValue, EntriesRaw, RangeListsOffset, UnitRef};

use super::effort::{Effort, Unreadable};
use super::file_names::FileNames;
use super::map::CodeRanges;
use super::names::{NameReader, Naming};
use super::scopes::{Scopes, is_scope};
use super::text::text;
use crate::debug_info::Reader;

/// The most functions and inlined calls of one unit, and the most ranges of them. The largest units
/// that compilers write have some hundred thousand.
const MAX_PARTS: usize = 1 << 20;

/// How deep inlined calls are followed. Compilers stay below 100.
const MAX_DEPTH: usize = 256;

/// A function, or a call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The linkage name where there is one, else the plain name with its scopes: a number of
    /// [`Found::names`].
    pub(crate) name: Option<u32>,
    /// What it was inlined into: a node before this one; `None` for functions.
    pub(crate) parent: Option<u32>,
    /// Where it was called, for what was inlined: a number of [`FileNames`].
    pub(crate) call_file: Option<u32>,
    /// The line there, from 1; 0 where it is not known.
    pub(crate) call_line: u32,
}

/// Code of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) node: u32,
    /// The function that it is in, itself or inlined.
    pub(crate) function: u32,
    /// 0 for functions, 1 for what is inlined right into one.
    pub(crate) depth: u32,
}

/// What a walk found, in the order of the entries.
#[derive(Debug, Default)]
pub(crate) struct Found<'d> {
    pub(crate) names: Vec<Cow<'d, [u8]>>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parts: Vec<Part>,
}

/// An entry whose children are read.
#[derive(Clone, Copy)]
struct Open {
    depth: isize,
    /// The node, its function and its depth of inlining; `None` within what has no code.
    inside: Option<(u32, u32, u32)>,
}

/// What the attributes of a function or an inlined call say.
#[derive(Default)]
struct Entry<'d> {
    /// Where it stands in its unit.
    at: usize,
    naming: Naming<'d>,
    low: Option<u64>,
    high: Option<u64>,
    len: Option<u64>,
    ranges: Option<RangeListsOffset>,
    call_file: Option<u64>,
    call_line: u32,
}

/// A walk over the entries of one unit.
pub(crate) struct Walk<'w, 'u, 'd> {
    unit: UnitRef<'u, Reader<'d>>,
    names: NameReader<'u, 'd>,
    files: &'w mut FileNames<'u, 'd>,
    code: &'w CodeRanges,
    effort: &'w Effort,
    open: Vec<Open>,
    scopes: Scopes<'d>,
    found: Found<'d>,
}

impl<'w, 'u, 'd> Walk<'w, 'u, 'd> {
    pub(crate) fn new(
        unit: UnitRef<'u, Reader<'d>>,
        names: NameReader<'u, 'd>,
        files: &'w mut FileNames<'u, 'd>,
        code: &'w CodeRanges,
        effort: &'w Effort,
    ) -> Walk<'w, 'u, 'd> {
        let (open, scopes, found) = (Vec::new(), Scopes::default(), Found::default());
        Walk { unit, names, files, code, effort, open, scopes, found }
    }

    /// Reads all entries. What stands before an entry that makes no sense counts.
    ///
    /// # Errors
    /// When they ask for too much work.
    pub(crate) fn run(mut self) -> Result<Found<'d>, Unreadable> {
        match self.read_all() {
            Ok(()) | Err(Unreadable::Dwarf(_)) => {
                Ok(Found { names: self.names.into_names(&self.scopes), ..self.found })
            }
            Err(exhausted) => Err(exhausted),
        }
    }

    fn read_all(&mut self) -> Result<(), Unreadable> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (at, depth) = (entries.next_offset().0, entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            self.scopes.pass(at, depth);
            while self.open.last().is_some_and(|open| open.depth >= depth) {
                self.open.pop();
            }
            self.effort.spend(abbreviation.attributes().len())?;
            match abbreviation.tag() {
                gimli::DW_TAG_subprogram => {
                    let entry = self.entry(at, &mut entries, abbreviation)?;
                    self.enter(at, depth, abbreviation, &entry.naming);
                    let inside = self.add(&entry, None)?;
                    // Without code of its own it keeps its children from the function around it.
                    self.open.push(Open { depth, inside });
                }
                gimli::DW_TAG_inlined_subroutine => {
                    let parent = self.open.last().and_then(|open| open.inside);
                    let Some(parent) = parent else {
                        entries.skip_attributes(abbreviation.attributes())?;
                        continue;
                    };
                    let entry = self.entry(at, &mut entries, abbreviation)?;
                    if let Some(inside) = self.add(&entry, Some(parent))? {
                        self.open.push(Open { depth, inside: Some(inside) });
                    }
                }
                tag if is_scope(tag) => {
                    let entry = self.entry(at, &mut entries, abbreviation)?;
                    self.enter(at, depth, abbreviation, &entry.naming);
                }
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        Ok(())
    }

    /// Notes that what follows stands inside an entry, if anything does.
    fn enter(&mut self, at: usize, depth: isize, entry: &Abbreviation, naming: &Naming<'d>) {
        if entry.has_children() {
            let name = naming.plain.and_then(|name| text(self.unit.dwarf, self.unit.unit, name));
            self.scopes.enter(at, depth, entry.tag(), name.unwrap_or_default());
        }
    }

    fn entry(
        &self,
        at: usize,
        entries: &mut EntriesRaw<'_, Reader<'d>>,
        abbreviation: &Abbreviation,
    ) -> Result<Entry<'d>, Unreadable> {
        let mut entry = Entry { at, ..Entry::default() };
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute_inline(*specification)?;
            match attribute.name() {
                gimli::DW_AT_low_pc => entry.low = self.address(attribute.value()),
                gimli::DW_AT_high_pc => match attribute.value() {
                    AttributeValue::Udata(len) => entry.len = Some(len),
                    value => entry.high = self.address(value),
                },
                gimli::DW_AT_ranges => {
                    entry.ranges = self.unit.attr_ranges_offset(attribute.value()).ok().flatten();
                }
                gimli::DW_AT_call_file => {
                    // Before DWARF 5 the number 0 stands for no file.
                    let version = self.unit.header.version();
                    if let AttributeValue::FileIndex(file) = attribute.value() {
                        entry.call_file = Some(file).filter(|file| *file > 0 || version >= 5);
                    }
                }
                gimli::DW_AT_call_line => {
                    let line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
                    entry.call_line = line.unwrap_or(0);
                }
                _ => entry.naming.take(&attribute),
            }
        }
        Ok(entry)
    }

    fn address(&self, value: AttributeValue<Reader<'d>>) -> Option<u64> {
        self.unit.attr_address(value).ok().flatten()
    }

    /// Adds an entry with its code; what its children are inside of, `None` if it has no code.
    fn add(
        &mut self,
        entry: &Entry<'d>,
        parent: Option<(u32, u32, u32)>,
    ) -> Result<Option<(u32, u32, u32)>, Unreadable> {
        let number = u32::try_from(self.found.nodes.len()).map_err(|_| Unreadable::Exhausted)?;
        let depth = parent.map_or(0, |(_, _, depth)| depth.saturating_add(1));
        let function = parent.map_or(number, |(_, function, _)| function);
        if depth as usize > MAX_DEPTH {
            return Ok(None);
        }
        let before = self.found.parts.len();
        self.add_parts(entry, Part { start: 0, end: 0, node: number, function, depth })?;
        if self.found.parts.len() == before {
            return Ok(None);
        }
        let name = self.names.name(entry.at, entry.naming, self.effort)?;
        let call_file = entry.call_file.and_then(|file| self.files.number(file));
        let parent = parent.map(|(node, _, _)| node);
        self.found.nodes.push(Node { name, parent, call_file, call_line: entry.call_line });
        Ok(Some((number, function, depth)))
    }

    fn add_parts(&mut self, entry: &Entry<'d>, part: Part) -> Result<(), Unreadable> {
        if let Some(list) = entry.ranges {
            let mut ranges = self.unit.ranges(list)?;
            // A list that ends in an error has what stands before it.
            while let Ok(Some(range)) = ranges.next() {
                self.effort.spend(1)?;
                self.add_part(range, part)?;
            }
        } else if let (Some(begin), Some(end)) =
            (entry.low, entry.high.or_else(|| entry.low?.checked_add(entry.len?)))
        {
            self.add_part(gimli::Range { begin, end }, part)?;
        }
        Ok(())
    }

    fn add_part(&mut self, range: gimli::Range, part: Part) -> Result<(), Unreadable> {
        if !self.code.has(&range) {
            return Ok(());
        }
        if self.found.parts.len() >= MAX_PARTS {
            return Err(Unreadable::Exhausted);
        }
        self.found.parts.push(Part { start: range.begin, end: range.end, ..part });
        Ok(())
    }
}
