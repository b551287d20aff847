//! Turns the headers of all units into who owns which address.
//!
//! `.debug_aranges` says it where compilers write it, which saves opening each unit; units that are
//! not in it say it themselves, in their root entry or else by their line program.

use std::ops::Range;

use flame_image::{ImageFile, Span, flatten};
use flame_profile::ImageAddress;
use gimli::{DebugInfoOffset, Dwarf, Unit, UnitType};
use rustc_hash::FxHashSet;

use super::effort::{Effort, Unreadable};
use super::opener::{Opener, read_len};
use crate::debug_info::Reader;

/// Stands for no unit among owners.
const NO_UNIT: u32 = u32::MAX;

/// The most units that are looked at; the largest programs have some hundred thousand.
const MAX_UNITS: usize = 1 << 22;

/// Which unit of debug information owns which address of the image.
#[derive(Debug, Default)]
pub(crate) struct UnitMap {
    /// Where the units start in `.debug_info`, sorted.
    offsets: Vec<u64>,
    /// Sorted. From each address on, up to the next one, no other unit has code.
    owners: Vec<(u64, u32)>,
}

/// Where an image has code. What linkers drop keeps its debug information, with addresses near 0.
#[derive(Debug, Default)]
pub(crate) struct CodeRanges(Vec<Range<u64>>);

impl CodeRanges {
    /// The executable segments; with none of them all addresses count as code.
    pub(crate) fn of(image: &ImageFile) -> CodeRanges {
        let code = image.segments().iter().filter(|segment| segment.executable);
        let range = |start: u64, len: u64| start..start.saturating_add(len);
        CodeRanges(code.map(|segment| range(segment.address.0, segment.memory_len.0)).collect())
    }

    #[cfg(test)]
    pub(super) fn one(code: Range<u64>) -> CodeRanges {
        CodeRanges(std::iter::once(code).collect())
    }

    /// Whether code is at an address, or right before it.
    pub(super) fn touches(&self, address: u64) -> bool {
        let near = |code: &Range<u64>| code.start <= address && address <= code.end;
        self.0.is_empty() || self.0.iter().any(near)
    }

    /// Whether a range is not empty and starts in code.
    pub(crate) fn has(&self, range: &gimli::Range) -> bool {
        let in_code = |code: &Range<u64>| code.contains(&range.begin);
        range.begin < range.end && (self.0.is_empty() || self.0.iter().any(in_code))
    }
}

impl UnitMap {
    /// Reads the headers of all units, up to the first that makes no sense.
    pub(crate) fn read(opener: &Opener<'_>, code: &CodeRanges) -> UnitMap {
        let dwarf = opener.dwarf();
        let effort = Effort::for_bytes(read_len(dwarf), 4);
        let mut offsets = Vec::new();
        let mut headers = dwarf.units();
        let mut rest = Vec::new();
        let (known, mut spans) = read_aranges(dwarf, code);
        while let Ok(Some(header)) = headers.next() {
            let Some(DebugInfoOffset(offset)) = header.debug_info_offset() else { continue };
            if offsets.len() >= MAX_UNITS {
                break;
            }
            let has_code = match header.type_() {
                // They have only what others refer to.
                UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial => false,
                _ => !known.contains(&(offset as u64)),
            };
            if has_code {
                rest.push(offset as u64);
            }
            offsets.push(offset as u64);
        }
        for offset in rest {
            let Ok(unit) = opener.open_at(offset) else { continue };
            let mut add = |range: &gimli::Range| spans.push((offset, range.begin..range.end));
            if unit_ranges(dwarf, &unit, code, &effort, &mut add).is_err() {
                break;
            }
        }
        let owners = owners(&spans, &offsets);
        UnitMap { offsets, owners }
    }

    /// A map of units that start at those offsets, which are sorted, without their code.
    pub(super) fn of_starts(offsets: Vec<u64>) -> UnitMap {
        UnitMap { offsets, owners: Vec::new() }
    }

    /// The unit that may have code at an address, by its number.
    pub(crate) fn owner(&self, address: ImageAddress) -> Option<u32> {
        let after = self.owners.partition_point(|(start, _)| *start <= address.0);
        let (_, unit) = *self.owners[..after].last()?;
        (unit != NO_UNIT).then_some(unit)
    }

    /// Where a unit starts in `.debug_info`.
    pub(crate) fn offset(&self, unit: u32) -> Option<u64> {
        self.offsets.get(unit as usize).copied()
    }

    /// How many bytes a unit has up to the next one; 0 for the last.
    pub(crate) fn unit_len(&self, unit: u32) -> u64 {
        let next = self.offsets.get(unit as usize + 1);
        next.zip(self.offset(unit)).map_or(0, |(next, start)| next - start)
    }

    /// Where the unit starts that holds an entry.
    pub(crate) fn start_of(&self, entry: u64) -> Option<u64> {
        let after = self.offsets.partition_point(|start| *start <= entry);
        self.offsets[..after].last().copied()
    }
}

/// A range of a unit, which is named by where it starts.
type UnitSpan = (u64, Range<u64>);

/// The units in `.debug_aranges` and their ranges.
fn read_aranges(dwarf: &Dwarf<Reader<'_>>, code: &CodeRanges) -> (FxHashSet<u64>, Vec<UnitSpan>) {
    let (mut known, mut spans) = (FxHashSet::default(), Vec::new());
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let unit = header.debug_info_offset().0 as u64;
        let mut entries = header.entries();
        // Errors end the entries of this unit by themselves, or only spoil one of them.
        while let Some(entry) = entries.next().transpose() {
            let range = entry.map(|entry| entry.range());
            if let Ok(range) = range
                && code.has(&range)
            {
                known.insert(unit);
                spans.push((unit, range.begin..range.end));
            }
        }
    }
    (known, spans)
}

/// The ranges that the root of a unit gives, or else its line program.
fn unit_ranges(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    code: &CodeRanges,
    effort: &Effort,
    add: &mut impl FnMut(&gimli::Range),
) -> Result<(), Unreadable> {
    let mut says_nothing = true;
    if let Ok(mut ranges) = dwarf.unit_ranges(unit) {
        while let Ok(Some(range)) = ranges.next() {
            effort.spend(1)?;
            says_nothing = false;
            if code.has(&range) {
                add(&range);
            }
        }
    }
    if let (true, Some(program)) = (says_nothing, &unit.line_program) {
        effort.spend(program.header().raw_program_buf().len())?;
        if let Ok((_, sequences)) = program.clone().sequences() {
            let ranges = sequences.iter();
            let ranges = ranges.map(|part| gimli::Range { begin: part.start, end: part.end });
            ranges.filter(|range| code.has(range)).for_each(|range| add(&range));
        }
    }
    Ok(())
}

/// Where the code of which unit starts. Where ranges overlap the smallest wins, then the first
/// unit; where two ranges of a unit have only a gap between them, it may have the gap too.
fn owners(spans: &[UnitSpan], offsets: &[u64]) -> Vec<(u64, u32)> {
    let number = |offset: &u64| u32::try_from(offsets.binary_search(offset).ok()?).ok();
    let to_span = |(unit, range): &UnitSpan| {
        Some(Span { start: range.start, end: range.end, value: number(unit)? })
    };
    // Of equal ranges the last one is seen.
    let spans: Vec<Span> = spans.iter().rev().filter_map(to_span).collect();
    let mut owners: Vec<(u64, u32)> = Vec::new();
    let mut end = 0;
    let mut show = |start: u64, unit: u32| match owners.last() {
        Some((_, last)) if *last == unit => {}
        _ => owners.push((start, unit)),
    };
    let flat = flatten(spans, |span| u64::MAX - (span.end - span.start));
    let mut flat = flat.into_iter().peekable();
    while let Some(span) = flat.next() {
        show(span.start, span.value);
        end = end.max(span.end);
        if flat.peek().is_none_or(|next| next.start > span.end && next.value != span.value) {
            show(span.end, NO_UNIT);
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spans: &[(u64, u64, u64)], expect: &[(u64, u32)]) {
        let spans: Vec<UnitSpan> =
            spans.iter().map(|(unit, start, end)| (*unit, *start..*end)).collect();
        assert_eq!(owners(&spans, &[0, 100, 200]), expect);
    }

    #[test]
    fn gaps_within_a_unit_are_closed_and_others_belong_to_nobody() {
        check(
            &[(0, 10, 20), (0, 24, 30), (100, 40, 50), (0, 50, 60)],
            &[(10, 0), (30, NO_UNIT), (40, 1), (50, 0), (60, NO_UNIT)],
        );
    }

    #[test]
    fn the_smallest_range_wins_then_the_first_unit() {
        check(
            &[(0, 0, 100), (100, 40, 50), (200, 40, 50)],
            &[(0, 0), (40, 1), (50, 0), (100, NO_UNIT)],
        );
    }

    #[test]
    fn an_address_has_the_owner_before_it() {
        let owners = vec![(10, 0), (30, NO_UNIT), (40, 1)];
        let map = UnitMap { offsets: vec![0, 100], owners };
        let owners = [9, 10, 29, 30, 39, 40, u64::MAX].map(|at| map.owner(ImageAddress(at)));
        assert_eq!(owners, [None, Some(0), Some(0), None, None, Some(1), Some(1)]);
        assert_eq!([0, 99, 100, 5000].map(|at| map.start_of(at)), [0, 0, 100, 100].map(Some));
    }
}
