//! Threads that are not the target's, for readers: what is read of their stacks nobody wants.
//!
//! Who belongs to the target is found out when records are drained, later than readers look. So a
//! thread is read until it is known to be a stranger, and again when its number was given anew.

use std::sync::atomic::{AtomicU32, Ordering};

use flame_profile::Tid;

/// How many are known at once; each has one place, by its number.
const PLACES: usize = 4096;

/// Some of the strangers. Looking takes no lock.
#[derive(Debug)]
pub(crate) struct Strangers(Box<[AtomicU32]>);

impl Default for Strangers {
    fn default() -> Strangers {
        // 0 is the number of idle tasks, which have no stack to be read.
        Strangers((0..PLACES).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Strangers {
    /// Whether a thread is known not to be the target's.
    pub(crate) fn knows(&self, tid: Tid) -> bool {
        self.place(tid).is_some_and(|place| place.load(Ordering::Relaxed) == tid.0)
    }

    /// A thread that is not the target's.
    pub(crate) fn add(&self, tid: Tid) {
        if let Some(place) = self.place(tid) {
            place.store(tid.0, Ordering::Relaxed);
        }
    }

    /// A thread that has begun or ended.
    pub(crate) fn forget(&self, tid: Tid) {
        if let Some(place) = self.place(tid).filter(|_| self.knows(tid)) {
            place.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, tid: Tid) -> Option<&AtomicU32> {
        self.0.get(tid.0 as usize % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_known_until_their_number_is_given_anew() {
        let strangers = Strangers::default();
        let (one, other) = (Tid(4242), Tid(4242 + PLACES as u32));
        strangers.add(one);
        assert_eq!([one, other, Tid(1)].map(|tid| strangers.knows(tid)), [true, false, false]);
        strangers.forget(other);
        assert!(strangers.knows(one));
        strangers.add(other);
        assert_eq!([one, other].map(|tid| strangers.knows(tid)), [false, true]);
        strangers.forget(other);
        assert!(!strangers.knows(other));
    }
}
