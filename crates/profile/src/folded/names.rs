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
/// Bytes of a name's length, which stands before the name.
const LENGTH: usize = size_of::<u32>();

/// Small, so that the table stays in a core's own cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Upper half of the name's hash; the lower chooses the slot.
    hash: u32,
    /// Where the name stands in the buffer, its length first.
    start: u32,
    /// The position of its label, or [`FREE`].
    label: u32,
}

const FREE: u32 = u32::MAX;
const EMPTY: Slot = Slot { hash: 0, start: 0, label: FREE };

/// A map from names to labels.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// None, or a power of two, at most three quarters of them taken.
    slots: Vec<Slot>,
    count: usize,
    bytes: Vec<u8>,
}

impl Names {
    /// The label of a name.
    pub(super) fn get(&self, name: &[u8]) -> Option<LabelId> {
        let slot = self.slots.get(self.place(name, hash(name))?)?;
        (slot.label != FREE).then(|| LabelId::from_index(slot.label))
    }

    /// Adds a name that is not in the table.
    pub(super) fn insert(&mut self, name: &[u8], label: LabelId) {
        let (start, len) = (u32::try_from(self.bytes.len()), u32::try_from(name.len()));
        // Beyond 4 GiB of names the others are found in the tree, each time.
        let (Ok(start), Ok(len)) = (start, len) else { return };
        let Some(label) = u32::try_from(label.index()).ok().filter(|label| *label != FREE) else {
            return;
        };
        if self.slots.len() * 3 <= self.count * 4 {
            self.grow();
        }
        let hash = hash(name);
        let Some(place) = self.place(name, hash) else { return };
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(name);
        self.slots[place] = Slot { hash: (hash >> 32) as u32, start, label };
        self.count += 1;
    }

    /// Where the name is, or is to be; `None` in a table without slots.
    fn place(&self, name: &[u8], hash: u64) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        loop {
            let slot = &self.slots[place];
            let same = slot.hash == (hash >> 32) as u32;
            if slot.label == FREE || (same && self.name(slot) == name) {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
    }

    fn name(&self, slot: &Slot) -> &[u8] {
        let rest = self.bytes.get(slot.start as usize..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk::<LENGTH>() else { return &[] };
        rest.get(..u32::from_ne_bytes(*len) as usize).unwrap_or_default()
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        let mut grown = vec![EMPTY; slots];
        for slot in self.slots.iter().filter(|slot| slot.label != FREE) {
            let mut place = hash(self.name(slot)) as usize & (slots - 1);
            while grown[place].label != FREE {
                place = (place + 1) & (slots - 1);
            }
            grown[place] = *slot;
        }
        self.slots = grown;
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
