//! The bytes of a pprof file into its tables, checked and indexed by id.
//!
//! Samples are left where they are, since what they refer to may stand behind them.

use std::borrow::Cow;
use std::collections::HashMap;

use flame_profile::readable;
use prost::Message;
use prost::encoding::decode_varint;

use super::error::PprofError;
use super::proto::{self, field};
use super::wire::{Value, fields};

/// How many entries a table may have: some hundred times what large programs have, and few enough
/// that a file of short entries cannot take many times its own size in memory.
pub(super) const MAX_ENTRIES: usize = 1 << 24;

/// Everything in a file but its samples.
#[derive(Debug, Default)]
pub(super) struct Tables<'b> {
    pub(super) value_types: Vec<proto::ValueType>,
    pub(super) mappings: Table<proto::Mapping>,
    pub(super) locations: Table<proto::Location>,
    pub(super) functions: Table<proto::Function>,
    pub(super) strings: Vec<&'b [u8]>,
    pub(super) time_nanos: i64,
    pub(super) duration_nanos: i64,
    pub(super) period_type: proto::ValueType,
    pub(super) period: i64,
    pub(super) comments: Vec<i64>,
    pub(super) default_sample_type: i64,
}

impl<'b> Tables<'b> {
    /// Decodes and checks; `file` is uncompressed.
    pub(super) fn parse(file: &'b [u8]) -> Result<Tables<'b>, PprofError> {
        let mut tables = Tables::default();
        for entry in fields(file) {
            let entry = entry?;
            match entry.value {
                Value::Bytes(bytes) => tables.message(entry.number, bytes, entry.offset)?,
                Value::Varint(value) => tables.number(entry.number, value.cast_signed())?,
                Value::Fixed => {}
            }
        }
        tables.mappings.index("mapping")?;
        tables.locations.index("location")?;
        tables.functions.index("function")?;
        Ok(tables)
    }

    fn message(&mut self, number: u32, bytes: &'b [u8], at: usize) -> Result<(), PprofError> {
        match number {
            field::SAMPLE_TYPE => push(&mut self.value_types, decode(bytes, at)?, "sample types"),
            field::MAPPING => push(&mut self.mappings.entries, decode(bytes, at)?, "mappings"),
            field::LOCATION => push(&mut self.locations.entries, decode(bytes, at)?, "locations"),
            field::FUNCTION => push(&mut self.functions.entries, decode(bytes, at)?, "functions"),
            field::STRING => push(&mut self.strings, bytes, "strings"),
            field::PERIOD_TYPE => {
                self.period_type = decode(bytes, at)?;
                Ok(())
            }
            field::COMMENT => self.packed_comments(bytes, at),
            _ => Ok(()),
        }
    }

    fn number(&mut self, number: u32, value: i64) -> Result<(), PprofError> {
        match number {
            field::TIME_NANOS => self.time_nanos = value,
            field::DURATION_NANOS => self.duration_nanos = value,
            field::PERIOD => self.period = value,
            field::COMMENT => push(&mut self.comments, value, "comments")?,
            field::DEFAULT_SAMPLE_TYPE => self.default_sample_type = value,
            _ => {}
        }
        Ok(())
    }

    fn packed_comments(&mut self, mut bytes: &[u8], offset: usize) -> Result<(), PprofError> {
        while !bytes.is_empty() {
            let comment = decode_varint(&mut bytes)
                .map_err(|error| PprofError::Wire { offset, source: Some(error) })?;
            push(&mut self.comments, comment.cast_signed(), "comments")?;
        }
        Ok(())
    }

    /// The string of an index; bytes that are not UTF-8 become `\xNN`, as in folded text. Index 0 is always
    /// the empty string, as pprof has it.
    pub(super) fn string(&self, index: i64) -> Result<Cow<'b, str>, PprofError> {
        let text = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        match text {
            Some(text) => Ok(readable(text)),
            None if index == 0 => Ok(Cow::Borrowed("")),
            None => Err(PprofError::Dangling { table: "string", id: index.into() }),
        }
    }

    /// The string of an index, or `None` where it is the empty one, which stands for "absent".
    pub(super) fn present_string(&self, index: i64) -> Result<Option<Cow<'b, str>>, PprofError> {
        self.string(index).map(|text| Some(text).filter(|text| !text.is_empty()))
    }
}

fn push<T>(table: &mut Vec<T>, entry: T, name: &'static str) -> Result<(), PprofError> {
    if table.len() >= MAX_ENTRIES {
        return Err(PprofError::TooMany { table: name, limit: MAX_ENTRIES });
    }
    table.push(entry);
    Ok(())
}

fn decode<M: Message + Default>(bytes: &[u8], offset: usize) -> Result<M, PprofError> {
    M::decode(bytes).map_err(|error| PprofError::Wire { offset, source: Some(error) })
}

/// Entries that others refer to by id.
#[derive(Debug)]
pub(super) struct Table<T> {
    /// In the order of the file.
    pub(super) entries: Vec<T>,
    /// Positions in `entries` of ids up to their number, which is all of them in most files;
    /// `u32::MAX` = none.
    dense: Vec<u32>,
    /// Positions of the other ids.
    sparse: HashMap<u64, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { entries: Vec::new(), dense: Vec::new(), sparse: HashMap::new() }
    }
}

impl<T: HasId> Table<T> {
    fn index(&mut self, table: &'static str) -> Result<(), PprofError> {
        self.dense = vec![u32::MAX; self.entries.len() + 1];
        for (entry, position) in self.entries.iter().zip(0..) {
            let id = entry.id();
            let known = match usize::try_from(id).ok().and_then(|id| self.dense.get_mut(id)) {
                Some(slot) => std::mem::replace(slot, position) != u32::MAX,
                None => self.sparse.insert(id, position).is_some(),
            };
            if known || id == 0 {
                return Err(PprofError::BadId { table, id });
            }
        }
        Ok(())
    }

    /// The position of the entry with that id.
    pub(super) fn position(&self, id: u64) -> Option<usize> {
        let dense = usize::try_from(id).ok().and_then(|id| self.dense.get(id));
        let position = match dense {
            Some(position) => *position,
            None => *self.sparse.get(&id)?,
        };
        usize::try_from(position).ok().filter(|position| *position < self.entries.len())
    }
}

/// An entry that others refer to by id.
pub(super) trait HasId {
    /// Its id in the file.
    fn id(&self) -> u64;
}

impl HasId for proto::Mapping {
    fn id(&self) -> u64 {
        self.id
    }
}

impl HasId for proto::Location {
    fn id(&self) -> u64 {
        self.id
    }
}

impl HasId for proto::Function {
    fn id(&self) -> u64 {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ids: &[u64]) -> Result<Table<proto::Function>, PprofError> {
        let entries = ids.iter().map(|id| proto::Function { id: *id, ..Default::default() });
        let mut table = Table { entries: entries.collect(), ..Table::default() };
        table.index("function").map(|()| table)
    }

    #[test]
    fn ids_are_found_in_any_order_and_size() {
        let table = table(&[3, u64::MAX, 1, 400]).unwrap();
        let find = |id| table.position(id);
        assert_eq!(
            [find(3), find(u64::MAX), find(1), find(400)],
            [Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!([find(0), find(2), find(4), find(5), find(401)], [None; 5]);
    }

    #[test]
    fn ids_are_unique_and_not_zero() {
        for (ids, bad) in [(&[1, 0][..], 0), (&[2, 1, 2], 2), (&[77, 77], 77)] {
            let error = table(ids).unwrap_err();
            assert_eq!(error.to_string(), format!("the function id {bad} is 0 or not unique"));
        }
    }
}
