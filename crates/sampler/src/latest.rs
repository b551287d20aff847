//! The samples that a reader has seen since it looked last, as far as their stacks are still worth reading.

use std::time::Duration;

use flame_profile::{Nanos, Pid};

use crate::rest::Wanted;

/// Of how many threads that left their CPU the stacks are read at a look: one thread that wakes another and waits for
/// its answer is followed by that one within 20 us.
const MOST_WAITS: usize = 8;

/// For how long such a reader lets threads go on undisturbed after one look in [`UNDISTURBED`]: who waits for a thread
/// that it goes before waits longer. If it went before each, no wait of the usual length would be sampled.
const UNDISTURBED_FOR: Duration = Duration::from_micros(500);
const UNDISTURBED: u8 = 4;

/// How long it stays away where nobody was met who has an interpreter.
const NOTHING_TO_READ: Duration = Duration::from_millis(10);

/// A sample that is read on.
pub(crate) type Sampled = (Nanos, Pid, Option<Wanted>);

/// The samples of a look that are read on.
#[derive(Debug)]
pub(crate) struct Latest {
    samples: [Option<Sampled>; MOST_WAITS],
    count: usize,
    /// Only the stack of the last one stands still.
    is_one: bool,
}

impl Latest {
    pub(crate) fn new(is_one: bool) -> Latest {
        Latest { samples: [None; MOST_WAITS], count: 0, is_one }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, sample: Sampled) {
        let at = if self.is_one { 0 } else { self.count % MOST_WAITS };
        self.samples[at] = Some(sample);
        self.count += 1;
    }

    /// For how long threads are left alone behind them.
    pub(crate) fn rest(&self, random: &mut fastrand::Rng) -> Duration {
        let is_read = self.count == 0 || self.in_order().any(|(.., wanted)| wanted.is_some());
        match (is_read, random.u8(..UNDISTURBED)) {
            (false, _) => NOTHING_TO_READ,
            (true, 0) => UNDISTURBED_FOR,
            (true, _) => Duration::ZERO,
        }
    }

    /// Whether one of them is of a goroutine, which may have left its stack for another one.
    pub(crate) fn have_goroutine(&self) -> bool {
        self.in_order().any(|(.., wanted)| wanted.is_some_and(|wanted| wanted.is_of_goroutine()))
    }

    /// In the order in which they came.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Sampled> + '_ {
        let (newer, older) = self.samples.split_at(self.count % MOST_WAITS);
        older.iter().chain(newer).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(latest: &Latest) -> Vec<u64> {
        latest.in_order().map(|(time, ..)| time.0).collect()
    }

    #[test]
    fn the_last_ones_stay_in_their_order() {
        let (mut one, mut more) = (Latest::new(true), Latest::new(false));
        assert!(one.is_empty() && times(&more).is_empty());
        for time in 1..=11 {
            let sample = (Nanos(time), Pid(7), None);
            one.add(sample);
            more.add(sample);
            let first = time.saturating_sub(MOST_WAITS as u64 - 1).max(1);
            assert_eq!(times(&more), (first..=time).collect::<Vec<u64>>());
        }
        assert_eq!(times(&one), [11]);
        assert!(!more.is_empty());
    }
}
