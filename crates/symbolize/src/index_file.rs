//! The tables of an image's units in one file, for the next time the same image is met.
//!
//! Numbers are little-endian. One checksum covers the directory, one all strings, and each table has
//! its own, so that a lookup reads little more than what it needs:
//!
//! ```text
//! magic | checksum of the directory u32 | its length u32
//! directory:
//!   units u32 | owners u32 | tables u32 | strings u32 | place of the strings u64 | checksum u32
//!   key: its length u32 and bytes
//!   start of each unit in .debug_info u64
//!   owner of addresses: from that address on u64, unit u32
//!   table: unit u32, place in the file u64, length u32, checksum u32        sorted by unit
//!   string: length u32
//! tables
//! strings, to the end of the file
//! ```
//!
//! Other versions of flame have another magic or key and give other files.

use std::borrow::Cow;
use std::sync::Arc;

use flame_profile::SharedBytes;

use crate::units::table::write_table;
use crate::units::{StringId, UnitMap};

/// Ends in the number of this format, which is raised when tables are made otherwise.
const MAGIC: &[u8; 8] = b"flamix\0\x02";

/// What stands before the key.
const FIXED_LEN: usize = MAGIC.len() + 2 * 4 + 4 * 4 + 8 + 4 + 4;

/// The longest key in bytes.
const MAX_KEY: usize = 256;

/// The largest file that is written. The tables are about a fifth of the debug information.
const MAX_LEN: usize = 512 << 20;

/// An index that was read, in place.
#[derive(Clone, Debug)]
pub(crate) struct IndexFile {
    bytes: SharedBytes,
    units: Part,
    owners: Part,
    tables: Part,
    /// Where each string ends, counted from the first one.
    string_ends: Arc<[u32]>,
    strings: SharedBytes,
}

/// Records of one kind.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    count: usize,
    size: usize,
}

/// What an index is written from.
pub(crate) struct Contents<'a> {
    /// What tells the image from all others.
    pub(crate) key: &'a [u8],
    pub(crate) map: &'a UnitMap,
    /// The index that is extended.
    pub(crate) old: Option<&'a IndexFile>,
    /// Tables by the numbers of their units.
    pub(crate) new_tables: &'a [(u32, Vec<u8>)],
    /// Strings that follow on the old ones.
    pub(crate) new_strings: &'a [Arc<[u8]>],
}

impl IndexFile {
    /// The index that those bytes are; `None` when they are damaged or of another image.
    pub(crate) fn parse(bytes: SharedBytes, key: &[u8]) -> Option<IndexFile> {
        let mut reader = Numbers { bytes: bytes.strip_prefix(MAGIC)? };
        let (checksum, len) = (reader.u32()?, reader.u32()? as usize);
        if crc32fast::hash(reader.bytes.get(..len)?) != checksum {
            return None;
        }
        let counts = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
        let (strings_start, strings_checksum) =
            (usize::try_from(reader.u64()?).ok()?, reader.u32()?);
        let key_len = reader.u32()? as usize;
        if reader.bytes.get(..key_len)? != key {
            return None;
        }
        let mut start = FIXED_LEN + key_len;
        let mut part = |count: u32, size: usize| -> Option<Part> {
            let part = Part { start, count: count as usize, size };
            start = start.checked_add(part.count.checked_mul(size)?)?;
            Some(part)
        };
        let (units, owners) = (part(counts[0], 8)?, part(counts[1], 12)?);
        let (tables, lens) = (part(counts[2], 20)?, part(counts[3], 4)?);
        if start != MAGIC.len() + 8 + len {
            return None;
        }
        let strings = bytes.slice(strings_start..bytes.len())?;
        if crc32fast::hash(&strings) != strings_checksum {
            return None;
        }
        let mut end = 0_u32;
        let lens = bytes.get(lens.start..start)?.as_chunks().0;
        let ends = lens.iter().map(|len| {
            end = end.checked_add(u32::from_le_bytes(*len))?;
            Some(end)
        });
        let string_ends = ends.collect::<Option<Arc<[u32]>>>()?;
        Some(IndexFile { bytes, units, owners, tables, string_ends, strings })
    }

    /// How many bytes the file has.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Puts the checksums of an index in that they should be, where they have a place; those of
    /// tables are left as they are.
    pub(crate) fn put_checksums(bytes: &mut [u8]) {
        const STRINGS_AT: usize = FIXED_LEN - 8;
        let number = |at: usize| -> Option<usize> {
            let (number, _) = bytes.get(at..)?.split_first_chunk()?;
            Some(u32::from_le_bytes(*number) as usize)
        };
        let strings = number(STRINGS_AT - 8).and_then(|start| bytes.get(start..));
        let strings = strings.map(crc32fast::hash);
        let len = number(MAGIC.len() + 4);
        if let (Some(strings), Some(place)) = (strings, bytes.get_mut(STRINGS_AT..STRINGS_AT + 4)) {
            place.copy_from_slice(&strings.to_le_bytes());
        }
        let directory = len.and_then(|len| bytes.get(MAGIC.len() + 8..)?.get(..len));
        if let Some(checksum) = directory.map(crc32fast::hash) {
            bytes[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Who owns which address.
    pub(crate) fn map(&self) -> Option<UnitMap> {
        let records = |part: Part| (0..part.count).map(move |index| self.record(part, index));
        let offsets: Option<Vec<u64>> = records(self.units).map(|mut unit| unit.u64()).collect();
        let owner = |mut owner: Numbers<'_>| Some((owner.u64()?, owner.u32()?));
        let owners: Option<Vec<_>> = records(self.owners).map(owner).collect();
        UnitMap::from_parts(offsets?, owners?)
    }

    /// The table of a unit, if it was stored and is not damaged.
    pub(crate) fn table(&self, unit: u32) -> Option<&[u8]> {
        let (mut low, mut high) = (0, self.tables.count);
        while low < high {
            let middle = low.midpoint(high);
            let mut record = self.record(self.tables, middle);
            match record.u32()?.cmp(&unit) {
                std::cmp::Ordering::Equal => return self.stored(record),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// How many strings there are; their numbers start at 0.
    pub(crate) fn string_count(&self) -> u32 {
        u32::try_from(self.string_ends.len()).unwrap_or(u32::MAX)
    }

    /// A string.
    pub(crate) fn string(&self, id: u32) -> Option<&[u8]> {
        let end = *self.string_ends.get(id as usize)?;
        let before = id.checked_sub(1).and_then(|before| self.string_ends.get(before as usize));
        self.strings.get(before.map_or(0, |start| *start as usize)..end as usize)
    }

    fn unit_numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.tables.count).filter_map(|index| self.record(self.tables, index).u32())
    }

    /// The bytes that a record of place, length and checksum stands for.
    fn stored(&self, mut record: Numbers<'_>) -> Option<&[u8]> {
        let start = usize::try_from(record.u64()?).ok()?;
        let (len, checksum) = (record.u32()? as usize, record.u32()?);
        let bytes = self.bytes.get(start..start.checked_add(len)?)?;
        (crc32fast::hash(bytes) == checksum).then_some(bytes)
    }

    /// A record; an empty one beyond the last.
    fn record(&self, part: Part, index: usize) -> Numbers<'_> {
        let start = part.start.saturating_add(index.saturating_mul(part.size));
        let inside = Some(start).filter(|_| index < part.count);
        let bytes = inside.and_then(|start| self.bytes.get(start..start + part.size));
        Numbers { bytes: bytes.unwrap_or(&[]) }
    }
}

impl<'a> Contents<'a> {
    /// The file, as the parts that it is made of; `None` when it would be too large.
    pub(crate) fn to_parts(&self) -> Option<Vec<Cow<'a, [u8]>>> {
        let (tables, strings) = (self.tables(), self.strings()?);
        let (offsets, owners) = self.map.parts();
        let records = offsets.len() * 8 + owners.len() * 12 + tables.len() * 20 + strings.len() * 4;
        let head = FIXED_LEN + self.key.len() + records;
        let strings_start = tables.iter().try_fold(head, |at, (_, t)| at.checked_add(t.len()))?;
        let len = strings.iter().try_fold(strings_start, |at, s| at.checked_add(s.len()))?;
        if len > MAX_LEN || self.key.len() > MAX_KEY {
            return None;
        }
        let mut out = Vec::with_capacity(head);
        out.extend_from_slice(MAGIC);
        // The checksum, which comes last.
        put(&mut out, &[0, u32::try_from(head - MAGIC.len() - 8).ok()?]);
        for count in [offsets.len(), owners.len(), tables.len(), strings.len()] {
            put(&mut out, &[u32::try_from(count).ok()?]);
        }
        out.extend_from_slice(&(strings_start as u64).to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        strings.iter().for_each(|string| checksum.update(string));
        put(&mut out, &[checksum.finalize(), u32::try_from(self.key.len()).ok()?]);
        out.extend_from_slice(self.key);
        offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
        for (address, unit) in owners {
            out.extend_from_slice(&address.to_le_bytes());
            put(&mut out, &[*unit]);
        }
        let mut place = head as u64;
        // All lengths are below that of the whole.
        let len_of = |part: &[u8]| u32::try_from(part.len()).unwrap_or(0);
        for (unit, table) in &tables {
            put(&mut out, &[*unit]);
            out.extend_from_slice(&place.to_le_bytes());
            put(&mut out, &[len_of(table), crc32fast::hash(table)]);
            place += table.len() as u64;
        }
        strings.iter().for_each(|string| put(&mut out, &[len_of(string)]));
        let checksum = crc32fast::hash(&out[MAGIC.len() + 8..]);
        out[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&checksum.to_le_bytes());
        let bodies = tables.iter().map(|(_, table)| *table).chain(strings.iter().copied());
        let parts = std::iter::once(Cow::Owned(out));
        Some(parts.chain(bodies.map(Cow::Borrowed)).collect())
    }

    /// Old and new tables, sorted by unit; old ones that are damaged are left out.
    fn tables(&self) -> Vec<(u32, &'a [u8])> {
        let old = self
            .old
            .into_iter()
            .flat_map(|old| old.unit_numbers().filter_map(|unit| Some((unit, old.table(unit)?))));
        let new = self.new_tables.iter().map(|(unit, table)| (*unit, &**table));
        let mut tables: Vec<(u32, &[u8])> = new.chain(old).collect();
        tables.sort_by_key(|(unit, _)| *unit);
        tables.dedup_by_key(|(unit, _)| *unit);
        tables
    }

    /// Old and new strings; `None` when there are too many.
    fn strings(&self) -> Option<Vec<&'a [u8]>> {
        let old =
            self.old.into_iter().flat_map(|old| (0..old.string_count()).map(|id| old.string(id)));
        let new = self.new_strings.iter().map(|string| Some(&**string));
        let strings: Option<Vec<&[u8]>> = old.chain(new).collect();
        strings.filter(|strings| strings.len() < StringId::NONE.0 as usize)
    }
}

/// An index of one unit, for fuzz targets to start from.
pub(crate) fn sample(key: &[u8]) -> Vec<u8> {
    const ROWS: [[u32; 3]; 3] = [[0, 2, 9], [8, 2, 3], [16, u32::MAX, 0]];
    let map = UnitMap::from_parts(vec![0], vec![(0x1000, 0)]).unwrap_or_default();
    let nodes = [[0, u32::MAX, u32::MAX, 0], [1, 0, 2, 10]];
    let table = write_table(0x1000, &nodes, &[[0, 8, 0], [8, 16, 1]], &ROWS);
    let strings = ["main", "turn", "a.c"].map(|text| Arc::from(text.as_bytes()));
    let new_tables = [(0, table)];
    let contents =
        Contents { key, map: &map, old: None, new_tables: &new_tables, new_strings: &strings };
    contents.to_parts().unwrap_or_default().concat()
}

fn put(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// Numbers read one after the other.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    bytes: &'a [u8],
}

impl Numbers<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }
}

#[cfg(test)]
mod tests;
