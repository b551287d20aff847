//! The most recent lookups, so that most records need no search.

/// The hash of a key has this many bits; there is one place for each.
const BITS: u32 = 12;

/// A small table without chains: a new entry takes the place of the one that was there.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    places: Vec<(u64, V)>,
}

impl<V: Copy + Default> Default for Recent<V> {
    fn default() -> Recent<V> {
        // An entry is told by its key alone, so a place is empty while it holds one that belongs
        // elsewhere: the hash of 0 is 0, and that of 1 is not.
        let mut places = vec![(0, V::default()); 1 << BITS];
        places[0].0 = 1;
        Recent { places }
    }
}

impl<V: Copy> Recent<V> {
    /// What was kept of a key, if nothing took its place since.
    pub(crate) fn find(&self, key: u64) -> Option<V> {
        let (kept, value) = self.places[place(key)];
        (kept == key).then_some(value)
    }

    pub(crate) fn keep(&mut self, key: u64, value: V) {
        self.places[place(key)] = (key, value);
    }
}

/// The upper bits of a product depend on all bits of a key.
fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_before_it_was_kept() {
        let mut recent = Recent::default();
        for (key, value) in [(0, 'a'), (1, 'b'), (16, 'c'), (u64::MAX, 'd')] {
            assert_eq!(recent.find(key), None);
            recent.keep(key, value);
            assert_eq!(recent.find(key), Some(value));
        }
    }

    #[test]
    fn what_has_the_same_place_is_not_mixed_up() {
        let mut recent = Recent::default();
        let other = (65..).find(|other| place(*other) == place(64)).unwrap();
        recent.keep(64, 'a');
        assert_eq!(recent.find(other), None);
        recent.keep(other, 'b');
        assert_eq!((recent.find(64), recent.find(other)), (None, Some('b')));
    }
}
