//! The functions and lines of one unit in a form that is searched as it is stored.
//!
//! Numbers are little-endian and addresses count from the lowest one of the unit:
//!
//! ```text
//! lowest address u64 | nodes u32 | segments u32 | rows u32
//! node     name, parent, file of the call, line of the call          (u32 each)
//! segment  start, end, node                                           sorted, disjoint
//! row      start, file, line                                          sorted; up to the next row
//! ```
//!
//! Names and files are numbers of [`super::Strings`]. A segment says which function, or inlined
//! call, is the innermost one there; its parents are the others.

use flame_profile::ImageAddress;

use super::strings::StringId;

const HEADER_LEN: usize = 20;
/// Stands for no parent, no file and no name.
const NONE: u32 = u32::MAX;

/// How many frames one address has at most; see [`super::walk`] for what compilers write.
const MAX_FRAMES: usize = 512;

/// A function at an address, by the numbers of its strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableFrame {
    pub(crate) name: StringId,
    /// Of the address for the innermost frame, of the call for the others.
    pub(crate) file: StringId,
    /// From 1; 0 where it is not known.
    pub(crate) line: u32,
}

/// A node, a segment and a row as [`write_table`] takes them.
pub(crate) type NodeRecord = [u32; 4];
pub(crate) type Record = [u32; 3];

/// A table, read in place. Whatever the bytes are, nothing but wrong answers comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitTable<'a> {
    lowest: u64,
    nodes: &'a [[u8; 16]],
    segments: &'a [[u8; 12]],
    rows: &'a [[u8; 12]],
}

/// Writes a table; `segments` and `rows` are sorted.
pub(crate) fn write_table(
    lowest: u64,
    nodes: &[NodeRecord],
    segments: &[Record],
    rows: &[Record],
) -> Vec<u8> {
    let len = HEADER_LEN + size_of_val(nodes) + size_of_val(segments) + size_of_val(rows);
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&lowest.to_le_bytes());
    for count in [nodes.len(), segments.len(), rows.len()] {
        // Units are bounded far below.
        out.extend_from_slice(&u32::try_from(count).unwrap_or(0).to_le_bytes());
    }
    let numbers = nodes.iter().flatten().chain(segments.iter().flatten());
    for number in numbers.chain(rows.iter().flatten()) {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out
}

impl<'a> UnitTable<'a> {
    /// The table that those bytes are, to their last; `None` when they are none.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<UnitTable<'a>> {
        let (lowest, rest) = bytes.split_first_chunk::<8>()?;
        let (counts, rest) = rest.split_first_chunk::<12>()?;
        let [nodes, segments, rows] = words(counts).map(|count| count as usize);
        let (nodes, rest) = rest.split_at_checked(nodes.checked_mul(16)?)?;
        let (segments, rest) = rest.split_at_checked(segments.checked_mul(12)?)?;
        let (rows, rest) = rest.split_at_checked(rows.checked_mul(12)?)?;
        rest.is_empty().then_some(UnitTable {
            lowest: u64::from_le_bytes(*lowest),
            nodes: nodes.as_chunks().0,
            segments: segments.as_chunks().0,
            rows: rows.as_chunks().0,
        })
    }

    /// The address that the others count from.
    pub(crate) fn lowest(&self) -> u64 {
        self.lowest
    }

    /// The functions at an address, innermost first; nothing where the unit has none. A single
    /// frame without a name has only a line. `out` is cleared first.
    pub(crate) fn frames(&self, address: ImageAddress, out: &mut Vec<TableFrame>) {
        out.clear();
        let offset = address.0.checked_sub(self.lowest).and_then(|at| u32::try_from(at).ok());
        let Some(offset) = offset else { return };
        let (mut file, mut line) = self.line(offset).unwrap_or((NONE, 0));
        let mut node = self.segment(offset);
        if node.is_none() && line > 0 {
            out.push(TableFrame { name: StringId::NONE, file: StringId(file), line });
        }
        while let Some(number) = node
            && out.len() < MAX_FRAMES
        {
            let Some(record) = self.nodes.get(number as usize) else { break };
            let [name, parent, call_file, call_line] = node_words(record);
            out.push(TableFrame { name: StringId(name), file: StringId(file), line });
            (file, line) = (call_file, call_line);
            // Parents stand before their children, so that no damage makes this a circle.
            node = Some(parent).filter(|parent| *parent < number);
        }
    }

    fn segment(&self, offset: u32) -> Option<u32> {
        let [_, end, node] = last_at(self.segments, offset)?;
        (offset < end).then_some(node)
    }

    fn line(&self, offset: u32) -> Option<(u32, u32)> {
        let [_, file, line] = last_at(self.rows, offset)?;
        Some((file, line))
    }
}

/// The last record that starts at `offset` or before.
fn last_at(records: &[[u8; 12]], offset: u32) -> Option<Record> {
    let after = records.partition_point(|record| words(record)[0] <= offset);
    records[..after].last().map(words)
}

fn words(record: &[u8; 12]) -> Record {
    let word = |at: usize| {
        u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
    };
    [word(0), word(4), word(8)]
}

fn node_words(record: &[u8; 16]) -> NodeRecord {
    let [a, b, c, d] = *record.as_chunks::<4>().0 else { return [NONE; 4] };
    [a, b, c, d].map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `main` with `turn` inlined, and `twist` inlined into that.
    fn table() -> Vec<u8> {
        let nodes = [[7, NONE, NONE, 0], [8, 0, 1, 10], [9, 1, 1, 7]];
        let segments = [[0, 16, 0], [16, 20, 2], [20, 24, 1], [24, 40, 0]];
        let rows = [[0, 1, 9], [16, 2, 3], [24, 1, 11], [40, NONE, 0], [64, 1, 90], [80, NONE, 0]];
        write_table(0x1000, &nodes, &segments, &rows)
    }

    #[track_caller]
    fn check(address: u64, expect: &[(u32, u32, u32)]) {
        let bytes = table();
        let mut frames = vec![TableFrame { name: StringId(0), file: StringId(0), line: 0 }];
        UnitTable::parse(&bytes).unwrap().frames(ImageAddress(address), &mut frames);
        let frames: Vec<_> = frames.iter().map(|f| (f.name.0, f.file.0, f.line)).collect();
        assert_eq!(frames, expect, "{address:#x}");
    }

    #[test]
    fn frames_are_innermost_first_each_with_its_place() {
        check(0x1000, &[(7, 1, 9)]);
        check(0x1010, &[(9, 2, 3), (8, 1, 7), (7, 1, 10)]);
        check(0x1014, &[(8, 2, 3), (7, 1, 10)]);
        check(0x1027, &[(7, 1, 11)]);
    }

    #[test]
    fn outside_of_functions_there_are_lines_or_nothing() {
        check(0xfff, &[]);
        check(0x1028, &[]);
        check(0x1040, &[(NONE, 1, 90)]);
        check(0x1050, &[]);
        check(u64::MAX, &[]);
    }

    #[test]
    fn bytes_that_are_cut_or_too_many_are_no_table() {
        let bytes = table();
        for len in 0..bytes.len() {
            assert!(UnitTable::parse(&bytes[..len]).is_none(), "{len}");
        }
        assert!(UnitTable::parse(&[&bytes[..], &[0]].concat()).is_none());
    }

    #[test]
    fn damage_gives_answers_that_end() {
        let bytes = table();
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            let Some(table) = UnitTable::parse(&bytes) else { continue };
            let mut frames = Vec::new();
            for address in 0x1000..0x1060 {
                table.frames(ImageAddress(address), &mut frames);
                assert!(frames.len() <= 3, "{frames:?}");
            }
        }
    }
}
