//! Turns one unit into its table.

use gimli::{Unit, UnitRef};

use super::effort::Unreadable;
use super::file_names::FileNames;
use super::lines::{Row, read_rows};
use super::map::{CodeRanges, UnitMap};
use super::names::NameReader;
use super::opener::Opener;
use super::split_unit::SplitUnit;
use super::strings::{StringId, Strings};
use super::table::{NodeRecord, Record, write_table};
use super::walk::{Found, Part, Walk};
use crate::debug_info::Reader;
use crate::disjoint::{Span, find, flatten};

/// How many pieces of functions one inlined call may reach over.
const MAX_PIECES: usize = 8;

/// The most spans of a unit that are put on top of each other.
const MAX_SPANS: usize = 1 << 22;

/// A table, as [`super::table::UnitTable`] reads it.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    /// Whether it was made of the file alone that has the unit, and of dwz's.
    pub(crate) is_whole: bool,
}

/// Reads the unit that starts at an offset of `.debug_info`. Of a skeleton the functions are those of
/// the split unit that it stands for, where that can be found.
///
/// # Errors
/// When it cannot be opened or is beyond all bounds.
pub(crate) fn build_unit(
    opener: &Opener<'_>,
    map: &UnitMap,
    code: &CodeRanges,
    offset: u64,
    strings: &Strings,
) -> Result<Built, Unreadable> {
    let unit = opener.open_at(offset)?;
    let unit_ref = UnitRef::new(opener.dwarf(), &unit);
    let split = SplitUnit::open(opener, unit_ref);
    // Compilers leave lines with the skeleton; split units name files by the same numbers.
    let mut files = FileNames::new(unit_ref);
    let rows = read_rows(unit_ref, &mut files, code, opener.rows())?;
    let (names, unit_ref, effort) = match &split {
        Some(split) => (split.names(), split.unit(), split.walking()),
        None => (NameReader::new(opener, map, unit_ref), unit_ref, opener.walking()),
    };
    let found = Walk::new(unit_ref, names, &mut files, code, effort).run()?;
    let bytes = write(&found, &rows, &files, strings);
    Ok(Built { bytes, is_whole: is_whole(&unit) })
}

/// Whether a unit is no skeleton, whose entries are in another file: that file may be found, or be
/// another one, the next time.
fn is_whole(unit: &Unit<Reader<'_>>) -> bool {
    unit.dwo_id.is_none()
}

fn write(found: &Found<'_>, rows: &[Row], files: &FileNames<'_, '_>, strings: &Strings) -> Vec<u8> {
    let segments = segments(&found.parts);
    let starts = segments.iter().map(|span| span.start).chain(rows.iter().map(|row| row.start));
    let lowest = starts.min().unwrap_or(0);
    let files = strings.intern_all(files.paths.iter());
    let names = strings.intern_all(found.names.iter());
    let file = |number: Option<u32>| {
        number.and_then(|number| files.get(number as usize)).map_or(StringId::NONE.0, |id| id.0)
    };
    let nodes: Vec<NodeRecord> = found
        .nodes
        .iter()
        .map(|node| {
            let name = node.name.and_then(|name| names.get(name as usize).copied());
            let name = name.unwrap_or(StringId::NONE);
            let parent = node.parent.unwrap_or(u32::MAX);
            [name.0, parent, file(node.call_file), node.call_line]
        })
        .collect();
    // What is 4 GiB away from the start of its unit is left out.
    let near = |at: u64| u32::try_from(at - lowest).ok();
    let segments: Vec<Record> = segments
        .iter()
        .map_while(|span| Some([near(span.start)?, near(span.end)?, span.value]))
        .collect();
    let rows: Vec<Record> =
        rows.iter().map_while(|row| Some([near(row.start)?, file(row.file), row.line])).collect();
    write_table(lowest, &nodes, &segments, &rows)
}

/// Which node is the innermost one where: sorted, disjoint.
///
/// Where functions overlap, which happens when linkers fold equal ones, one of them is seen with
/// what is inlined into it, and nothing of the other.
fn segments(parts: &[Part]) -> Vec<Span> {
    let to_span = |part: &Part, start, end| Span { start, end, value: part.node };
    let functions = parts.iter().filter(|part| part.depth == 0);
    let functions: Vec<Span> = functions.map(|part| to_span(part, part.start, part.end)).collect();
    let functions = flatten(functions, |span| u64::MAX - u64::from(span.value));
    let mut depths: Vec<(u32, u32)> = Vec::with_capacity(parts.len());
    let mut inside: Vec<Span> = functions.clone();
    for part in parts {
        depths.push((part.node, part.depth));
        if part.depth == 0 {
            continue;
        }
        // Where a part reaches over several functions, of which hostile files make many, those
        // beyond the first few are left alone.
        let mut at = part.start;
        for _ in 0..MAX_PIECES {
            let Some(seen) = find(&functions, at).filter(|_| at < part.end) else { break };
            let end = seen.end.min(part.end);
            if seen.value == part.function && inside.len() < MAX_SPANS {
                inside.push(to_span(part, at, end));
            }
            at = end;
        }
    }
    depths.dedup();
    let depth = |span: &Span| match depths.binary_search_by_key(&span.value, |(node, _)| *node) {
        Ok(index) => u64::from(depths[index].1),
        Err(_) => 0,
    };
    // Of equal depth, which would be damage, the later one is on top.
    flatten(inside, |span| depth(span) << 32 | u64::from(span.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts as (start, end, node, function, depth).
    #[track_caller]
    fn check(parts: &[(u64, u64, u32, u32, u32)], expect: &[(u64, u64, u32)]) {
        let part = |&(start, end, node, function, depth): &(u64, u64, u32, u32, u32)| Part {
            start,
            end,
            node,
            function,
            depth,
        };
        let parts: Vec<Part> = parts.iter().map(part).collect();
        let seen: Vec<_> =
            segments(&parts).iter().map(|span| (span.start, span.end, span.value)).collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn the_innermost_call_is_seen() {
        check(
            &[(0, 40, 0, 0, 0), (10, 30, 1, 0, 1), (20, 25, 2, 0, 2)],
            &[(0, 10, 0), (10, 20, 1), (20, 25, 2), (25, 30, 1), (30, 40, 0)],
        );
    }

    #[test]
    fn of_functions_at_one_place_the_first_is_seen_with_its_own_calls() {
        check(
            &[(0, 40, 0, 0, 0), (10, 20, 1, 0, 1), (0, 40, 2, 2, 0), (30, 35, 3, 2, 1)],
            &[(0, 10, 0), (10, 20, 1), (20, 40, 0)],
        );
    }

    #[test]
    fn calls_outside_of_their_function_are_not_seen() {
        check(&[(0, 20, 0, 0, 0), (10, 30, 1, 0, 1)], &[(0, 10, 0), (10, 20, 1)]);
        check(&[(20, 30, 0, 0, 0), (0, 10, 1, 0, 1)], &[(20, 30, 0)]);
    }
}
