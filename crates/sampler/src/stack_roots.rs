//! Where stacks of threads were seen to end, told by who unwinds them to those who read them.
//!
//! What lies behind a stack is often memory, too, of which a reader that does not know better reads 1 MiB
//! while the thread stands still: of a build with rustc two stacks in three were read so. A stack that
//! was unwound to its root says where it ends, and the thread's next one most likely ends there as well.
//! Where it does not, it comes out truncated, is counted as such, and what was known of the thread is
//! forgotten.
//!
//! Readers must not wait: a thread has one place, which holds all that is known of it in one word.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flame_profile::{ProcessAddress, Tid};

use crate::rest::MOST;

/// How many threads are known at once; each has one place, by its number.
const PLACES: usize = 4096;

/// Numbers of threads are below 2^22.
const TID_BITS: u32 = 22;

/// Ends are kept in units of so many bytes, rounded up: addresses of user space fit into the other bits.
const UNIT: u64 = 64;

/// What the code that a thread begins with may look at behind its own frame: the program's arguments.
const BEHIND: u64 = 256;

/// What is known of threads.
#[derive(Debug)]
pub struct StackRoots {
    places: Box<[AtomicU64]>,
    are_wanted: AtomicBool,
}

impl Default for StackRoots {
    fn default() -> StackRoots {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        StackRoots { places, are_wanted: AtomicBool::new(false) }
    }
}

impl StackRoots {
    /// A stack of that thread was unwound to its root, whose stack pointer is given.
    pub fn note(&self, tid: Tid, root: ProcessAddress) {
        let end = root.0.saturating_add(BEHIND).div_ceil(UNIT);
        let fits = tid.0 < 1 << TID_BITS && end < 1 << (u64::BITS - TID_BITS);
        if let (Some(place), true) = (self.place(tid), fits) {
            place.store(end << TID_BITS | u64::from(tid.0), Ordering::Relaxed);
        }
    }

    /// A stack goes on beyond its copy, and there is nobody who reads it on.
    pub fn want_readers(&self) {
        self.are_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether there is such a stack.
    pub(crate) fn want_some(&self) -> bool {
        self.are_wanted.load(Ordering::Relaxed)
    }

    /// A stack of that thread went on behind what was read of it.
    pub fn forget(&self, tid: Tid) {
        if let Some(place) = self.place(tid) {
            let _ = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| {
                (tid_of(known) == tid).then_some(0)
            });
        }
    }

    /// Where the stack of a thread that stands at an address is likely to end; `None` where that is not
    /// known, and for addresses on other stacks.
    pub fn of(&self, tid: Tid, stack_pointer: ProcessAddress) -> Option<ProcessAddress> {
        let known = self.place(tid)?.load(Ordering::Relaxed);
        let end = (known >> TID_BITS) * UNIT;
        let is_near = end.checked_sub(stack_pointer.0).is_some_and(|len| len <= MOST as u64);
        (known != 0 && tid_of(known) == tid && is_near).then_some(ProcessAddress(end))
    }

    fn place(&self, tid: Tid) -> Option<&AtomicU64> {
        self.places.get(tid.0 as usize % PLACES)
    }
}

fn tid_of(known: u64) -> Tid {
    Tid((known & ((1 << TID_BITS) - 1)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_ends_where_it_was_seen_to_end() {
        let roots = StackRoots::default();
        let (one, other) = (Tid(4_194_303), Tid(4_194_303 - PLACES as u32));
        let root = 0x7fff_ffff_e123;
        let end = roots.of(one, ProcessAddress(root));
        assert_eq!(end, None);
        roots.note(one, ProcessAddress(root));
        let of = |tid, at| roots.of(tid, ProcessAddress(at)).map(|end| end.0);
        let end = (root + BEHIND).next_multiple_of(UNIT);
        assert_eq!(of(one, root), Some(end));
        assert_eq!(of(one, end - MOST as u64), Some(end));
        // On other stacks, and of another thread in the same place.
        assert_eq!([of(one, end - MOST as u64 - 1), of(one, end + 1), of(other, root)], [None; 3]);
        roots.forget(other);
        assert_eq!(of(one, root), Some(end));
        roots.note(other, ProcessAddress(root));
        assert_eq!([of(one, root), of(other, root)], [None, Some(end)]);
        roots.forget(other);
        assert_eq!(of(other, root), None);
    }

    #[test]
    fn what_does_not_fit_is_not_known() {
        let roots = StackRoots::default();
        for (tid, root) in [(1 << TID_BITS, 0x7000), (7, u64::MAX), (7, UNIT << 42)] {
            roots.note(Tid(tid), ProcessAddress(root));
            assert_eq!(roots.of(Tid(tid), ProcessAddress(root)), None, "{tid} {root:#x}");
        }
    }
}
