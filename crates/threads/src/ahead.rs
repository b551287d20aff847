//! Work that another thread does ahead.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, TryLockError};

use crate::share::{beside, lock};

/// This many items wait at most, so that memory does not grow where this thread is the slower one.
const MOST_AHEAD: usize = 8;

/// Gives `take` on this thread what `make` makes, in that order, until `make` has nothing more or
/// `take` fails.
///
/// Another thread makes items ahead while `take` is at work; until it has started, and where there is none, they
/// are made here. It is not asked for two items only. `make` may be called again after its end. Panics of
/// both are passed on.
///
/// # Errors
/// Those of `take`.
pub fn ahead<T: Send, E>(
    mut make: impl FnMut() -> Option<T> + Send,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    for _ in 0..2 {
        let Some(item) = make() else { return Ok(()) };
        take(item)?;
    }
    let make = Mutex::new(make);
    let (there, here) = sync_channel(MOST_AHEAD);
    let there = Mutex::new(Some(there));
    let make_ahead = || {
        // A statement of its own, so that the lock is free meanwhile. The end of the channel is that of the
        // items, or of this thread.
        let channel = lock(&there).take();
        let mut make = lock(&make);
        while let (Some(channel), Some(item)) = (&channel, make()) {
            if channel.send(item).is_err() {
                break;
            }
        }
    };
    let take_all = || {
        // Ends here, so that the other thread learns when nothing more is taken.
        let here = here;
        loop {
            let item = match make.try_lock() {
                // Nobody makes anything now, but the other thread may have.
                Ok(mut make) => here.try_recv().ok().or_else(&mut *make),
                Err(TryLockError::WouldBlock) => here.recv().ok(),
                Err(TryLockError::Poisoned(_)) => None,
            };
            let Some(item) = item else { return Ok(()) };
            take(item)?;
        }
    };
    beside(1, make_ahead, take_all)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn work(steps: u64) {
        (0..steps).for_each(|step| _ = black_box(step));
    }

    /// The numbers below `end`, each of which takes so many steps.
    fn numbers(end: u64, steps: u64) -> impl FnMut() -> Option<u64> + Send {
        let mut next = 0;
        move || {
            work(steps);
            next += 1;
            (next <= end).then_some(next - 1)
        }
    }

    #[test]
    fn items_come_in_order_whoever_is_slower() {
        for (end, making, taking) in
            [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (300, 100_000, 0), (300, 0, 100_000)]
        {
            let mut found = Vec::new();
            let take = |item| {
                work(taking);
                found.push(item);
                Ok::<(), ()>(())
            };
            ahead(numbers(end, making), take).unwrap();
            assert!(found.iter().copied().eq(0..end), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_taken_after_a_failure() {
        for failing in [0, 1, 2, 40] {
            let mut taken = 0;
            let take = |item| {
                taken += 1;
                if item == failing { Err(item) } else { Ok(()) }
            };
            assert_eq!(ahead(numbers(1_000_000, 0), take), Err(failing));
            assert_eq!(taken, failing + 1);
        }
    }

    #[test]
    fn a_panic_of_either_is_passed_on() {
        let make = |panics_at: u64| {
            let mut numbers = numbers(1000, 1000);
            move || numbers().inspect(|item| assert!(*item != panics_at))
        };
        for panics_at in [0, 1, 30] {
            let take = |item| if item == panics_at { panic!("taken") } else { Ok::<(), ()>(()) };
            let all = catch_unwind(AssertUnwindSafe(|| ahead(make(u64::MAX), take)));
            assert!(all.is_err());
            let all =
                catch_unwind(AssertUnwindSafe(|| ahead(make(panics_at), |_| Ok::<(), ()>(()))));
            assert!(all.is_err());
        }
    }
}
