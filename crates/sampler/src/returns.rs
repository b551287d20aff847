//! When threads got a CPU again: what was read of one that waits is right if it had none until then.

use std::collections::BTreeSet;

use flame_profile::{Nanos, Tid};

/// The times at which threads got a CPU, as far as samples of before are still to be released.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    all: BTreeSet<(Tid, Nanos)>,
    /// When it was looked at last what readers are done with, and up to when that was.
    looked: (Nanos, Nanos),
    /// Samples up to then were released.
    released: Nanos,
}

impl Returns {
    /// A thread got a CPU.
    pub(crate) fn note(&mut self, tid: Tid, time: Nanos) {
        self.all.insert((tid, time));
    }

    /// Up to when samples may be released: those that readers were done with by the last look, if all records
    /// of that time are there. Readers are done with those up to `done` now.
    pub(crate) fn horizon(&mut self, now: Nanos, settled: Nanos, done: Nanos) -> Nanos {
        let (looked, done_then) = self.looked;
        if looked <= settled {
            (self.released, self.looked) = (done_then, (now, done));
        }
        self.released
    }

    /// Whether a thread that left its CPU at `left` had none until `until`.
    pub(crate) fn rested(&self, tid: Tid, left: Nanos, until: Nanos) -> bool {
        left <= until && self.all.range((tid, left)..=(tid, until)).next().is_none()
    }

    /// Leaves what was up to that time.
    pub(crate) fn forget_until(&mut self, time: Nanos) {
        self.all.retain(|(_, returned)| *returned > time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_rests_until_it_gets_a_cpu() {
        let mut returns = Returns::default();
        returns.note(Tid(7), Nanos(10));
        returns.note(Tid(7), Nanos(20));
        returns.note(Tid(8), Nanos(13));
        let rested = |left, until| returns.rested(Tid(7), Nanos(left), Nanos(until));
        assert!(rested(11, 19) && rested(21, 90));
        assert!(!rested(11, 20) && !rested(5, 12) && !rested(5, 30));
        // What is not known of it.
        assert!(!rested(19, 18));
        returns.forget_until(Nanos(10));
        assert!(returns.rested(Tid(7), Nanos(5), Nanos(12)));
    }

    #[test]
    fn what_was_read_until_a_look_is_released_when_records_of_then_are_there() {
        let mut returns = Returns::default();
        let horizons = [(20, 15), (21, 16), (30, 28), (50, 48)]
            .map(|(now, done)| returns.horizon(Nanos(now), Nanos(now - 5), Nanos(done)));
        assert_eq!(horizons, [0, 0, 15, 28].map(Nanos));
    }
}
