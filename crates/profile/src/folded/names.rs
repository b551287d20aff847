//! Names as they stand in folded text, each with its label: a hash table made for this one use.
//!
//! A large file has hundreds of thousands of frames to look up, and what that costs are cache
//! misses: one for the slot and one for the name, which all stand in one buffer. (A general map
//! with boxed keys misses four times, which was a third of all the time of `flame render`.)

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::call_tree::LabelId;

/// Slots of a table that has grown for the first time; a power of two.
const FIRST_SLOTS: usize = 1 << 8;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where the name starts in the buffer.
    start: usize,
    len: u32,
    /// Upper half of the name's hash; the lower chooses the slot.
    hash: u32,
    label: Option<LabelId>,
}

const EMPTY: Slot = Slot { start: 0, len: 0, hash: 0, label: None };

/// A map from names to labels.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// None, or a power of two, at most half of them taken.
    slots: Vec<Slot>,
    count: usize,
    bytes: Vec<u8>,
}

impl Names {
    /// The label of a name.
    pub(super) fn get(&self, name: &[u8]) -> Option<LabelId> {
        let slot = self.slots.get(self.place(name, hash(name))?)?;
        slot.label
    }

    /// Adds a name that is not in the table.
    pub(super) fn insert(&mut self, name: &[u8], label: LabelId) {
        // A name of 4 GiB is not kept: it is looked up, and found in the tree, each time.
        let Ok(len) = u32::try_from(name.len()) else { return };
        if self.slots.len() <= self.count * 2 {
            self.grow();
        }
        let hash = hash(name);
        let Some(place) = self.place(name, hash) else { return };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.slots[place] = Slot { start, len, hash: (hash >> 32) as u32, label: Some(label) };
        self.count += 1;
    }

    /// Where the name is, or is to be; `None` in a table without slots.
    fn place(&self, name: &[u8], hash: u64) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        loop {
            let slot = &self.slots[place];
            let same = slot.hash == (hash >> 32) as u32 && slot.len as usize == name.len();
            if slot.label.is_none()
                || (same && self.bytes.get(slot.start..slot.start + name.len()) == Some(name))
            {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        for slot in old.into_iter().filter(|slot| slot.label.is_some()) {
            let name = &self.bytes[slot.start..slot.start + slot.len as usize];
            let mut place = hash(name) as usize & (slots - 1);
            while self.slots[place].label.is_some() {
                place = (place + 1) & (slots - 1);
            }
            self.slots[place] = slot;
        }
    }
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::TreeBuilder;
    use crate::frame::FrameKind;

    #[test]
    fn what_is_added_is_found_and_nothing_else() {
        let mut builder = TreeBuilder::new();
        let mut names = Names::default();
        assert_eq!(names.get(b""), None);
        let name = |number: usize| format!("{}{number}", "x".repeat(number % 40));
        let labels: Vec<LabelId> =
            (0..3000).map(|number| builder.label(&name(number), FrameKind::User)).collect();
        for (number, label) in labels.iter().enumerate() {
            assert_eq!(names.get(name(number).as_bytes()), None);
            names.insert(name(number).as_bytes(), *label);
        }
        for (number, label) in labels.iter().enumerate() {
            assert_eq!(names.get(name(number).as_bytes()), Some(*label));
        }
        names.insert(b"", labels[7]);
        assert_eq!(names.get(b""), Some(labels[7]));
        assert_eq!(names.get(b"3000"), None);
    }
}
