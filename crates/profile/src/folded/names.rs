//! Names as they stand in folded text, each with its label: a hash table made for this one use.
//!
//! A large file has hundreds of thousands of frames to look up, and what that costs are cache
//! misses: one for the slot and one for the name, which all stand in one buffer. So names are looked
//! up many at a time: first all slots are read, then the first byte of all names, and the core waits
//! for many of them at once. Only then names are compared. (One at a time they were a quarter of
//! all the time of `flame render`.)

use std::hash::Hasher;
use std::hint::black_box;

use rustc_hash::FxHasher;

use crate::call_tree::LabelId;

/// Slots of a table that has grown for the first time; a power of two.
const FIRST_SLOTS: usize = 1 << 8;
/// Bytes that names have on the average, roughly.
const NAME_LEN: usize = 32;
/// Bytes of a name's length, which stands before the name.
const LENGTH: usize = size_of::<u32>();

/// Small, so that the table stays in a core's own cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The name's hash, of which the lowest bits choose the slot.
    hash: u32,
    /// Where the name stands in the buffer, its length first.
    start: u32,
    /// The position of its label, or [`FREE`].
    label: u32,
}

/// A name that is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashedName<'t> {
    pub(super) text: &'t [u8],
    hash: u32,
}

impl<'t> HashedName<'t> {
    pub(super) fn new(text: &'t [u8]) -> HashedName<'t> {
        HashedName { text, hash: hash(text) }
    }
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
    /// Makes room for this many names, as far as that costs nothing when they do not come.
    pub(super) fn reserve(&mut self, names: usize) {
        self.bytes.reserve(names * (NAME_LEN + LENGTH));
    }

    /// The label of a name.
    pub(super) fn get(&self, name: &HashedName<'_>) -> Option<LabelId> {
        let slot = self.slots.get(self.place(name)?)?;
        (slot.label != FREE).then(|| LabelId::from_index(slot.label))
    }

    /// The labels of many names, in their order, into `out`, which is cleared first.
    pub(super) fn get_all(&self, names: &[HashedName<'_>], out: &mut Vec<Option<LabelId>>) {
        out.clear();
        let Some(mask) = self.slots.len().checked_sub(1) else {
            out.resize(names.len(), None);
            return;
        };
        let starts = names.iter().map(|name| self.slots[name.hash as usize & mask].start as usize);
        let first_bytes = starts.filter_map(|start| self.bytes.get(start + LENGTH));
        black_box(first_bytes.fold(0_u8, |sum, byte| sum ^ byte));
        out.extend(names.iter().map(|name| self.get(name)));
    }

    /// Adds a name that is not in the table.
    pub(super) fn insert(&mut self, name: &HashedName<'_>, label: LabelId) {
        let (start, len) = (u32::try_from(self.bytes.len()), u32::try_from(name.text.len()));
        // Beyond 4 GiB of names the others are found in the tree, each time.
        let (Ok(start), Ok(len)) = (start, len) else { return };
        let Some(label) = u32::try_from(label.index()).ok().filter(|label| *label != FREE) else {
            return;
        };
        if self.slots.len() * 3 <= self.count * 4 {
            self.grow();
        }
        let Some(place) = self.place(name) else { return };
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(name.text);
        self.slots[place] = Slot { hash: name.hash, start, label };
        self.count += 1;
    }

    /// Where the name is, or is to be; `None` in a table without slots.
    fn place(&self, name: &HashedName<'_>) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = name.hash as usize & mask;
        loop {
            let slot = &self.slots[place];
            let same = slot.hash == name.hash;
            if slot.label == FREE || (same && self.name(slot) == name.text) {
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
            let mut place = slot.hash as usize & (slots - 1);
            while grown[place].label != FREE {
                place = (place + 1) & (slots - 1);
            }
            grown[place] = *slot;
        }
        self.slots = grown;
    }
}

/// The lower half of the hash, which is the better one.
fn hash(name: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
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
        assert_eq!(names.get(&HashedName::new(b"")), None);
        let texts: Vec<String> =
            (0..3000).map(|number| format!("{}{number}", "x".repeat(number % 40))).collect();
        let hashed: Vec<HashedName<'_>> =
            texts.iter().map(|text| HashedName::new(text.as_bytes())).collect();
        let mut found = Vec::new();
        names.get_all(&hashed, &mut found);
        assert_eq!(found, [None; 3000]);
        let labels: Vec<LabelId> =
            texts.iter().map(|text| builder.label(text, FrameKind::User)).collect();
        for (name, label) in hashed.iter().zip(&labels) {
            assert_eq!(names.get(name), None);
            names.insert(name, *label);
        }
        names.get_all(&hashed, &mut found);
        assert!(found.iter().zip(&labels).all(|(found, label)| *found == Some(*label)));
        names.insert(&HashedName::new(b""), labels[7]);
        names.get_all(&[HashedName::new(b"3000"), HashedName::new(b"")], &mut found);
        assert_eq!(found, [None, Some(labels[7])]);
    }

    #[test]
    fn names_of_one_hash_are_told_apart() {
        let mut names = Names::default();
        let [one, other] =
            ["parse", "write"].map(|text| HashedName { text: text.as_bytes(), hash: 7 });
        names.insert(&one, LabelId::from_index(3));
        assert_eq!([names.get(&one), names.get(&other)], [Some(LabelId::from_index(3)), None]);
        names.insert(&other, LabelId::from_index(4));
        assert_eq!(names.get(&other), Some(LabelId::from_index(4)));
    }
}
