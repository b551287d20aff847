//! Work that is shared.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::helpers::{count, helpers};

/// Runs `here` on this thread while `there` runs on so many others, as far as there are so many;
/// returns when all are done. What has to be done at all is up to `here`: `there` may start late.
/// Panics of both are passed on.
pub fn beside<T>(others: usize, there: impl Fn() + Sync, here: impl FnOnce() -> T) -> T {
    let others = others.min(count() - 1);
    let Some(helpers) = (others > 0).then(helpers).flatten() else { return here() };
    helpers.in_place_scope(|scope| {
        (0..others).for_each(|_| scope.spawn(|_| there()));
        here()
    })
}

/// Runs `there` on another thread while `here` runs on this one; one after the other where there is
/// no other. Panics of both are passed on.
pub fn join<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    let there = Mutex::new(Some(there));
    let other = Mutex::new(None);
    let run = || {
        // A statement of its own, so that the lock is free while the work is done.
        let there = lock(&there).take();
        if let Some(there) = there {
            let result = there();
            *lock(&other) = Some(result);
        }
    };
    let one = beside(1, run, here);
    run();
    let other = other.into_inner().unwrap_or_else(PoisonError::into_inner);
    (one, other.expect("it has run by now, here or there"))
}

/// Does the same to all items on this thread and others, and returns the results in the order of
/// the items. The next item goes to the thread that is free first. Panics are passed on.
pub fn map<T: Send, U: Send>(items: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let others = items.len().saturating_sub(1);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let items = Mutex::new(items.into_iter().enumerate());
    let take_turns = || {
        loop {
            let Some((at, item)) = lock(&items).next() else { break };
            let result = work(item);
            lock(&results).push((at, result));
        }
    };
    beside(others, take_turns, take_turns);
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Nothing is done under a lock that could leave things half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let work = |item: u64| {
            // The first ones take longest.
            (0..(1000 - item) * 100).fold(item, |sum, step| std::hint::black_box(sum ^ step ^ step))
        };
        assert_eq!(map(items.clone(), work), items);
        assert_eq!(map(Vec::new(), work), []);
        assert_eq!(map(vec![7], work), [7]);
    }

    #[test]
    fn as_many_items_are_in_work_as_there_are_threads() {
        // None gets past the barrier before all are there.
        let barrier = Barrier::new(count());
        let leaders = map(vec![(); count()], |()| barrier.wait().is_leader());
        assert_eq!(leaders.iter().filter(|leader| **leader).count(), 1);
        if count() > 1 {
            let barrier = Barrier::new(2);
            let wait = || barrier.wait().is_leader();
            let (one, other) = join(wait, wait);
            assert_ne!(one, other);
        }
    }

    #[test]
    fn both_results_come_back_and_can_be_shared_within() {
        let (one, two) = join(|| map(vec![1, 2], |n| n * 2), || map(vec![3, 4], |n| n * 2));
        assert_eq!((one, two), (vec![2, 4], vec![6, 8]));
    }

    #[test]
    fn a_panic_is_passed_on_and_the_threads_live_on() {
        let work = |item: u32| if item == 5 { panic!("five") } else { item };
        assert!(catch_unwind(AssertUnwindSafe(|| map((0..10).collect(), work))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| join(|| 1, || work(5)))).is_err());
        assert_eq!(map((0..5).collect(), work), [0, 1, 2, 3, 4]);
    }
}
