//! Rows that were compiled before, by module and address.

use flame_profile::ImageAddress;
use rustc_hash::FxHashMap;

use crate::code::ModuleId;
use crate::compile::Compiled;
use crate::row::{LongRow, Row};

/// How many rows are kept; at 64 bytes each, and what a hash table leaves free, below 8 MiB. When
/// it is full all are dropped, which costs less to know than to do: about 1 µs a row.
const MAX_ROWS: usize = 100_000;

/// Which question a row answers. The byte before a return address may be an instruction, too, of
/// which the tables say something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) module: ModuleId,
    pub(crate) address: ImageAddress,
    /// Whether `address` is a return address, which is looked up one byte before.
    pub(crate) is_return: bool,
}

/// The cache. Starts small and grows with the distinct addresses that were walked through.
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    rows: FxHashMap<RowKey, Row>,
    long_rows: Vec<LongRow>,
}

impl RowCache {
    /// The row for an address, which `compile` makes if it is not known. `None` from it stands for
    /// "the tables say nothing", which is remembered too.
    #[inline]
    pub(crate) fn row(&mut self, key: RowKey, compile: impl FnOnce() -> Option<Compiled>) -> Row {
        match self.rows.get(&key) {
            Some(row) => *row,
            None => self.insert(key, compile()),
        }
    }

    fn insert(&mut self, key: RowKey, compiled: Option<Compiled>) -> Row {
        if self.rows.len() >= MAX_ROWS {
            self.rows.clear();
            self.long_rows.clear();
        }
        let row = match compiled {
            None => Row::NoInfo,
            Some(Compiled::Outermost) => Row::Outermost,
            Some(Compiled::NotCalled) => Row::NotCalled,
            Some(Compiled::OtherStack) => Row::OtherStack,
            Some(Compiled::Short(row)) => Row::Short(row),
            Some(Compiled::Long(row)) => {
                // There are never more long rows than MAX_ROWS.
                let position = u32::try_from(self.long_rows.len()).unwrap_or(u32::MAX);
                self.long_rows.push(row);
                Row::Long(position)
            }
        };
        self.rows.insert(key, row);
        row
    }

    /// A long row by the number that [`Row::Long`] has.
    pub(crate) fn long_row(&self, number: u32) -> Option<&LongRow> {
        self.long_rows.get(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_starts_anew() {
        let mut cache = RowCache::default();
        let key = |module, address| RowKey {
            module: ModuleId(module),
            address: ImageAddress(address),
            is_return: false,
        };
        for address in 0..MAX_ROWS as u64 {
            cache.row(key(0, address), || None);
        }
        let known = cache.row(key(0, 7), || Some(Compiled::Outermost));
        assert_eq!(known, Row::NoInfo);
        cache.row(key(1, 7), || None);
        let forgotten = cache.row(key(0, 7), || Some(Compiled::Outermost));
        assert_eq!(forgotten, Row::Outermost);
        assert_eq!(cache.rows.len(), 2);
    }

    #[test]
    fn an_instruction_is_not_the_return_address_behind_it() {
        let mut cache = RowCache::default();
        let key = |is_return| RowKey { module: ModuleId(0), address: ImageAddress(7), is_return };
        cache.row(key(true), || Some(Compiled::Outermost));
        assert_eq!(cache.row(key(false), || None), Row::NoInfo);
    }
}
