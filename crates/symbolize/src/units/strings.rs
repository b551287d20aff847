//! Turns names and paths into small numbers, the same for equal ones.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::index_file::IndexFile;

/// All strings of one file may take so many bytes; what is beyond has no name.
const MAX_LEN: usize = 256 << 20;

/// The number of a string, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StringId(pub(crate) u32);

impl StringId {
    /// No string.
    pub(crate) const NONE: StringId = StringId(u32::MAX);
}

/// The strings of one file, shared by the threads that read it: those of an index that was stored
/// before, then new ones.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    stored: Option<IndexFile>,
    new: Mutex<New>,
}

#[derive(Debug, Default)]
struct New {
    /// The numbers of the stored ones, from the first string on that is asked for.
    stored: Option<FxHashMap<Vec<u8>, u32>>,
    texts: IndexSet<Arc<[u8]>, FxBuildHasher>,
    len: usize,
}

impl Strings {
    /// Those of an index, to which others can be added.
    pub(crate) fn of_index(index: IndexFile) -> Strings {
        Strings { stored: Some(index), new: Mutex::default() }
    }

    /// The numbers of some strings, in their order. Called once for many, since threads wait for
    /// each other here.
    pub(crate) fn intern_all(
        &self,
        texts: impl Iterator<Item = impl AsRef<[u8]>>,
    ) -> Vec<StringId> {
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = self.stored.as_ref();
        if let (Some(index), None) = (stored, &new.stored) {
            let numbered = (0..index.string_count()).filter_map(|id| Some((index.string(id)?, id)));
            new.stored = Some(numbered.map(|(text, id)| (text.to_vec(), id)).collect());
        }
        let first = stored.map_or(0, IndexFile::string_count);
        texts.map(|text| new.intern(text.as_ref(), first)).collect()
    }

    /// The string of that number.
    pub(crate) fn text(&self, id: StringId) -> Option<Arc<[u8]>> {
        let first = self.stored.as_ref().map_or(0, IndexFile::string_count);
        let Some(index) = id.0.checked_sub(first) else {
            return self.stored.as_ref()?.string(id.0).map(Arc::from);
        };
        let new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.texts.get_index(index as usize).cloned()
    }

    /// The new strings, in the order of their numbers.
    pub(crate) fn new_texts(&self) -> Vec<Arc<[u8]>> {
        let new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.texts.iter().cloned().collect()
    }
}

impl New {
    fn intern(&mut self, text: &[u8], first: u32) -> StringId {
        if let Some(id) = self.stored.as_ref().and_then(|stored| stored.get(text)) {
            return StringId(*id);
        }
        let known = self.texts.get_index_of(text);
        let index = known.or_else(|| {
            self.len = self.len.checked_add(text.len()).filter(|len| *len <= MAX_LEN)?;
            Some(self.texts.insert_full(Arc::from(text)).0)
        });
        let id = index.and_then(|index| u32::try_from(index).ok()?.checked_add(first));
        id.map_or(StringId::NONE, StringId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number() {
        let strings = Strings::default();
        let ids = strings.intern_all(["main", "run", "main", ""].iter());
        assert_eq!(ids, [0, 1, 0, 2].map(StringId));
        assert_eq!(strings.text(ids[1]).as_deref(), Some(&b"run"[..]));
        assert_eq!(strings.text(StringId::NONE), None);
        let all: Vec<_> = strings.new_texts().iter().map(|text| text.to_vec()).collect();
        assert_eq!(all, [&b"main"[..], b"run", b""]);
    }
}
