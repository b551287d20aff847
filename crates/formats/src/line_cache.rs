//! What lines stand for, found by their bytes: most lines of a profile were there before.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// A map from texts to numbers, made for texts that are nearly always known.
#[derive(Debug, Default)]
pub(crate) struct LineCache {
    /// None, or a power of two, at most half of them taken.
    slots: Vec<Slot>,
    count: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    len: u32,
    /// Where the text stands in the buffer, plus 1; 0 = free.
    start: u32,
    value: u32,
}

const MAX_KEPT: usize = 1 << 24;
const FIRST_SLOTS: usize = 1 << 10;

/// What a line is known by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineKey<'l> {
    /// All of it.
    Whole(&'l [u8]),
    /// What stands before and behind a part that makes no difference. It is not the key of another line
    /// that lacks that part.
    Around(&'l [u8], &'l [u8]),
}

/// Parts a key that is two: no line has it.
const GAP: u8 = b'\n';

impl LineKey<'_> {
    fn hash(self) -> u32 {
        let mut hasher = FxHasher::default();
        match self {
            LineKey::Whole(text) => hasher.write(text),
            LineKey::Around(before, behind) => {
                hasher.write(before);
                hasher.write(behind);
            }
        }
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn len(self) -> usize {
        match self {
            LineKey::Whole(text) => text.len(),
            LineKey::Around(before, behind) => before.len() + 1 + behind.len(),
        }
    }

    /// Whether `bytes`, of which there are as many as in the key, are the key.
    fn is(self, bytes: &[u8]) -> bool {
        match self {
            LineKey::Whole(text) => bytes == text,
            LineKey::Around(before, behind) => {
                bytes[before.len()] == GAP
                    && bytes[..before.len()] == *before
                    && bytes[before.len() + 1..] == *behind
            }
        }
    }

    fn push_to(self, bytes: &mut Vec<u8>) {
        match self {
            LineKey::Whole(text) => bytes.extend_from_slice(text),
            LineKey::Around(before, behind) => {
                bytes.extend_from_slice(before);
                bytes.push(GAP);
                bytes.extend_from_slice(behind);
            }
        }
    }
}

impl LineCache {
    /// Keeps the number of a line, unless 16 MiB of lines are kept: whose offsets differ, lines are no names.
    pub(crate) fn keep(&mut self, line: &[u8], value: u32) {
        if self.bytes.len() < MAX_KEPT {
            self.get_or(LineKey::Whole(line), || value);
        }
    }

    /// The number of a line that was there before.
    pub(crate) fn find(&self, key: LineKey<'_>) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.look(key, key.hash()).ok()
    }

    /// The number of a line, or the slot for it. There are slots.
    fn look(&self, key: LineKey<'_>, hash: u32) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.start == 0 {
                return Err(place);
            }
            if slot.hash == hash && slot.len as usize == key.len() {
                let start = slot.start as usize - 1;
                if key.is(&self.bytes[start..start + key.len()]) {
                    return Ok(slot.value);
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// The number of a line, which `make` gives where it is new.
    pub(crate) fn get_or(&mut self, key: LineKey<'_>, make: impl FnOnce() -> u32) -> u32 {
        let hash = key.hash();
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); FIRST_SLOTS];
        }
        let place = match self.look(key, hash) {
            Ok(value) => return value,
            Err(place) => place,
        };
        let value = make();
        let (start, len) = (u32::try_from(self.bytes.len() + 1), u32::try_from(key.len()));
        // Beyond 4 GiB of texts they are made each time.
        if let (Ok(start), Ok(len)) = (start, len) {
            key.push_to(&mut self.bytes);
            self.slots[place] = Slot { hash, len, start, value };
            self.count += 1;
            if self.count * 2 > self.slots.len() {
                self.grow();
            }
        }
        value
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut grown = vec![Slot::default(); mask + 1];
        for slot in self.slots.iter().filter(|slot| slot.start != 0) {
            let mut place = slot.hash as usize & mask;
            while grown[place].start != 0 {
                place = (place + 1) & mask;
            }
            grown[place] = *slot;
        }
        self.slots = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::LineKey::{Around, Whole};
    use super::*;

    #[test]
    fn texts_are_made_once() {
        let mut cache = LineCache::default();
        for round in 0..2 {
            for number in 0..5000_u32 {
                let text = format!("{}{number}", "x".repeat(number as usize % 50));
                let found = cache.get_or(Whole(text.as_bytes()), || {
                    assert_eq!(round, 0);
                    number
                });
                assert_eq!(found, number);
            }
        }
        assert_eq!((cache.find(Whole(b"17")), cache.find(Whole(b""))), (None, None));
        assert_eq!(cache.get_or(Whole(b""), || 7), 7);
        assert_eq!(cache.find(Whole(b"")), Some(7));
        assert_eq!(cache.get_or(Whole(b""), || 8), 7);
    }

    #[test]
    fn no_more_lines_are_kept_than_fit() {
        let mut cache = LineCache::default();
        let line = |number: usize| format!("{number:>4096}");
        for number in 0..MAX_KEPT / 4096 + 9 {
            cache.keep(line(number).as_bytes(), 7);
        }
        let find = |number| cache.find(Whole(line(number).as_bytes()));
        assert_eq!((find(MAX_KEPT / 4096 - 1), find(MAX_KEPT / 4096)), (Some(7), None));
    }

    #[test]
    fn keys_of_two_parts_are_none_of_one() {
        let keys = [Whole(b"ab"), Around(b"a", b"b"), Around(b"", b"ab"), Around(b"ab", b"")];
        let mut cache = LineCache::default();
        for (number, key) in (0..).zip(keys) {
            assert_eq!(cache.find(key), None);
            cache.get_or(key, || number);
        }
        for (number, key) in (0..).zip(keys) {
            assert_eq!(cache.find(key), Some(number));
        }
    }
}
