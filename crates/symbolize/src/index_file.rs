//! The tables of an image's units in one file, for the next time the same image is met.
//!
//! Numbers are little-endian; all parts but the last two are covered by one checksum, each table
//! and each string has its own, so that a lookup reads only what it needs:
//!
//! ```text
//! magic | checksum of what follows, up to the tables u32 | its length u32
//! units u32 | owners u32 | tables u32 | strings u32 | key: its length u32 and bytes
//! start of each unit in .debug_info u64
//! owner of addresses: from that address on u64, unit u32
//! table: unit u32, place in the file u64, length u32, checksum u32          sorted by unit
//! string: place in the file u64, length u32, checksum u32
//! tables, strings
//! ```
//!
//! Other versions of flame have another magic or key and give other files.

use std::borrow::Cow;

use flame_profile::SharedBytes;

use crate::units::{StringId, UnitMap};

/// Ends in the number of this format.
const MAGIC: &[u8; 8] = b"flamix\0\x01";

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
    strings: Part,
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
    pub(crate) new_strings: &'a [std::sync::Arc<[u8]>],
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
        let key_len = reader.u32()? as usize;
        if reader.bytes.get(..key_len)? != key {
            return None;
        }
        let mut start = MAGIC.len() + 4 * 7 + key_len;
        let mut part = |count: u32, size: usize| -> Option<Part> {
            let part = Part { start, count: count as usize, size };
            start = start.checked_add(part.count.checked_mul(size)?)?;
            Some(part)
        };
        let (units, owners) = (part(counts[0], 8)?, part(counts[1], 12)?);
        let (tables, strings) = (part(counts[2], 20)?, part(counts[3], 16)?);
        let whole = start == MAGIC.len() + 8 + len;
        whole.then_some(IndexFile { bytes, units, owners, tables, strings })
    }

    /// How many bytes the file has.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
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
        u32::try_from(self.strings.count).unwrap_or(u32::MAX)
    }

    /// A string, if it is not damaged.
    pub(crate) fn string(&self, id: u32) -> Option<&[u8]> {
        self.stored(self.record(self.strings, id as usize))
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
    /// The file, as the parts that it is made of; `None` when it would be too large or the old one
    /// is damaged.
    pub(crate) fn to_parts(&self) -> Option<Vec<Cow<'a, [u8]>>> {
        let (tables, strings) = (self.tables(), self.strings()?);
        let (offsets, owners) = self.map.parts();
        let directory = 4 * 5 + self.key.len() + offsets.len() * 8 + owners.len() * 12;
        let directory = directory + tables.len() * 20 + strings.len() * 16;
        let bodies = || tables.iter().map(|(_, table)| *table).chain(strings.iter().copied());
        let borrowed = bodies().map(Cow::Borrowed);
        let head = MAGIC.len() + 8 + directory;
        let len = bodies().try_fold(head, |len, body| len.checked_add(body.len()))?;
        if len > MAX_LEN || self.key.len() > MAX_KEY {
            return None;
        }
        let mut out = Vec::with_capacity(head);
        out.extend_from_slice(MAGIC);
        // The checksum, which comes last.
        put(&mut out, &[0, u32::try_from(directory).ok()?]);
        let counts = [offsets.len(), owners.len(), tables.len(), strings.len(), self.key.len()];
        for count in counts {
            put(&mut out, &[u32::try_from(count).ok()?]);
        }
        out.extend_from_slice(self.key);
        offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
        for (address, unit) in owners {
            out.extend_from_slice(&address.to_le_bytes());
            put(&mut out, &[*unit]);
        }
        let mut place = head as u64;
        let mut put_place = |out: &mut Vec<u8>, body: &[u8]| {
            out.extend_from_slice(&place.to_le_bytes());
            // Bounded by the length of the whole.
            put(out, &[u32::try_from(body.len()).unwrap_or(0), crc32fast::hash(body)]);
            place += body.len() as u64;
        };
        for (unit, table) in &tables {
            put(&mut out, &[*unit]);
            put_place(&mut out, table);
        }
        strings.iter().for_each(|string| put_place(&mut out, string));
        let checksum = crc32fast::hash(&out[MAGIC.len() + 8..]);
        out[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&checksum.to_le_bytes());
        Some(std::iter::once(Cow::Owned(out)).chain(borrowed).collect())
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

    /// Old and new strings; `None` when an old one is damaged, because tables count them.
    fn strings(&self) -> Option<Vec<&'a [u8]>> {
        let old =
            self.old.into_iter().flat_map(|old| (0..old.string_count()).map(|id| old.string(id)));
        let new = self.new_strings.iter().map(|string| Some(&**string));
        let strings: Option<Vec<&[u8]>> = old.chain(new).collect();
        strings.filter(|strings| strings.len() < StringId::NONE.0 as usize)
    }
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
