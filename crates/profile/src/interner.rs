//! Strings stored once and named by a small id.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::ids::StrId;

/// An append-only set of distinct strings; ids count up from 0 in order of first use.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    strings: IndexSet<Box<str>, FxBuildHasher>,
}

impl StringTable {
    /// The id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> StrId {
        if let Some(index) = self.strings.get_index_of(text) {
            return StrId::from_index(index);
        }
        StrId::from_index(self.strings.insert_full(text.into()).0)
    }

    /// The string of an id; empty for an id of another table that this one does not reach.
    pub fn text(&self, id: StrId) -> &str {
        self.strings.get_index(id.index()).map_or("", |text| text)
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.strings.iter().map(|text| &**text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::default();
        assert!(table.is_empty());
        let main = table.intern("main");
        let other = table.intern("parse_json");
        assert_eq!(table.intern("main"), main);
        assert_ne!(main, other);
        assert_eq!((table.text(main), table.text(other), table.len()), ("main", "parse_json", 2));
        assert!(!table.is_empty() && table.iter().eq(["main", "parse_json"]));
    }
}
