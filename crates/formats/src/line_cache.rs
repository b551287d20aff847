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

const FIRST_SLOTS: usize = 1 << 10;

impl LineCache {
    /// The number of a text that was there before.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.look(text, hash(text)).ok()
    }

    /// The number of a text, or the slot for it. There are slots.
    fn look(&self, text: &[u8], hash: u32) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.start == 0 {
                return Err(place);
            }
            let start = slot.start as usize - 1;
            if slot.hash == hash && self.bytes.get(start..start + slot.len as usize) == Some(text) {
                return Ok(slot.value);
            }
            place = (place + 1) & mask;
        }
    }

    /// The number of a text, which `make` gives where it is new.
    pub(crate) fn get_or(&mut self, text: &[u8], make: impl FnOnce() -> u32) -> u32 {
        let hash = hash(text);
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); FIRST_SLOTS];
        }
        let place = match self.look(text, hash) {
            Ok(value) => return value,
            Err(place) => place,
        };
        let value = make();
        let (start, len) = (u32::try_from(self.bytes.len() + 1), u32::try_from(text.len()));
        // Beyond 4 GiB of texts they are made each time.
        if let (Ok(start), Ok(len)) = (start, len) {
            self.bytes.extend_from_slice(text);
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

fn hash(text: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_once() {
        let mut cache = LineCache::default();
        for round in 0..2 {
            for number in 0..5000_u32 {
                let text = format!("{}{number}", "x".repeat(number as usize % 50));
                let found = cache.get_or(text.as_bytes(), || {
                    assert_eq!(round, 0);
                    number
                });
                assert_eq!(found, number);
            }
        }
        assert_eq!((cache.find(b"17"), cache.find(b"")), (None, None));
        assert_eq!(cache.get_or(b"", || 7), 7);
        assert_eq!(cache.find(b""), Some(7));
        assert_eq!(cache.get_or(b"", || 8), 7);
    }
}
