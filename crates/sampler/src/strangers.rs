//! Threads that are not the target's, for readers: what is read of their stacks nobody wants.
//!
//! Who belongs to the target is found out when records are drained, later than readers look. So a
//! thread is read until it is known to be a stranger, and again when its number was given anew. All threads of
//! a process that is not the target's are strangers, those that it starts later among them: a compiler
//! may start hundreds a second, each with a stack of which 1 MiB would be read.

use std::sync::atomic::{AtomicU32, Ordering};

use flame_profile::{Pid, Tid};

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
    fn knows(&self, tid: Tid) -> bool {
        self.place(tid).is_some_and(|place| place.load(Ordering::Relaxed) == tid.0)
    }

    /// Whether a thread, or all of its process, is known not to be the target's.
    pub(crate) fn know(&self, pid: Pid, tid: Tid) -> bool {
        self.knows(tid) || self.knows(Tid(pid.0))
    }

    /// A process that is not the target's, and one of its threads. It goes by the number of its first thread.
    pub(crate) fn add_process(&self, pid: Pid, tid: Tid) {
        self.add(Tid(pid.0));
        self.add(tid);
    }

    /// A thread that is not the target's.
    fn add(&self, tid: Tid) {
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

    #[test]
    fn threads_that_strangers_start_are_strangers() {
        let strangers = Strangers::default();
        let (pid, first, later) = (Pid(40), Tid(42), Tid(43));
        let know = || [first, later].map(|tid| strangers.know(pid, tid));
        assert_eq!(know(), [false, false]);
        strangers.add_process(pid, first);
        strangers.forget(later);
        assert_eq!((know(), strangers.know(Pid(41), later)), ([true, true], false));
        // Another process has the number.
        strangers.forget(Tid(40));
        assert_eq!(know(), [true, false]);
    }
}
