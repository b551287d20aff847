//! Turns numbered steps into results, on as many threads as there are, each with a state of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Stack of each thread: demanglers recurse. Only what is touched costs memory.
const STACK_LEN: usize = 16 << 20;

/// The results of the steps from 0 to `count`, with their numbers and in any order. Steps that
/// panic, and those after them of the same thread, have none.
pub(super) fn in_parallel<S, T: Send>(
    threads: usize,
    count: usize,
    new_state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<(usize, T)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut state, mut done) = (new_state(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return done;
            }
            done.push((number, step(&mut state, number)));
        }
    };
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().stack_size(STACK_LEN).spawn_scoped(scope, work);
        let workers: Vec<_> = (0..threads.min(count)).map_while(|i| spawn(i).ok()).collect();
        // Where not even one thread can be had, the work is done here.
        let mut done = if workers.is_empty() { work() } else { Vec::new() };
        done.extend(workers.into_iter().filter_map(|worker| worker.join().ok()).flatten());
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_done_once_by_any_number_of_threads() {
        for threads in [0, 1, 3, 100] {
            let mut done = in_parallel(threads, 20, || (), |(), number| number * number);
            done.sort_unstable();
            assert_eq!(done, (0..20).map(|n| (n, n * n)).collect::<Vec<_>>(), "{threads}");
        }
    }
}
