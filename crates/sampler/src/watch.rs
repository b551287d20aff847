//! Whether a reader looks at each sample as it comes, or at those of some time together.
//!
//! A look at each sample takes the CPU that it is of: at 999 Hz some 4 % here. That is worth it where something is to be read
//! while the thread stands still, a stack beyond its copy or what an interpreter runs. Where no sample wanted that for a while,
//! as of most native programs, the reader rests between looks, and looks at each again as soon as one wants it. What the
//! samples until then lacked is not read, and counted.

use flame_profile::{Hz, Nanos};

use crate::config::Rate;
use crate::open::Plan;

/// Up to so many samples a second each is looked at: that takes 0.5 % of a CPU at most at a hundred.
const ALWAYS: Hz = Hz(250);

/// For how long nothing was to be read before the reader rests. It misses the samples of one rest when that changes: one in
/// a hundred at most.
const QUIET: Nanos = Nanos(1_000_000_000);

/// A CPU that had no sample for so long is idle now and then. A reader that looks at each is not woken then.
const IDLE: Nanos = Nanos(20_000_000);

#[derive(Debug)]
pub(crate) struct Watch {
    may_rest: bool,
    rests: bool,
    /// When something was to be read last, or the CPU was idle.
    needed: Nanos,
    sampled: Nanos,
}

impl Watch {
    /// Of a reader that looks at each sample from now on.
    pub(crate) fn new(plan: &Plan, now: Nanos) -> Watch {
        let is_often = match plan.rate {
            Rate::Frequency(hz) => hz > ALWAYS,
            Rate::Period(period) => plan.event.is_clock() && period < 1_000_000_000 / ALWAYS.0,
        };
        let may_rest = plan.wake_at_samples && is_often;
        Watch { may_rest, rests: false, needed: now, sampled: now }
    }

    /// Whether samples may go unread: what comes is looked at some time later.
    pub(crate) fn rests(&self) -> bool {
        self.rests
    }

    /// Whether it matters what samples lack.
    pub(crate) fn may_rest(&self) -> bool {
        self.may_rest
    }

    /// Takes in a look: whether there were samples, and one that lacks something. Returns whether it rests from now on, if
    /// that changes.
    pub(crate) fn look(&mut self, now: Nanos, has_samples: bool, is_needed: bool) -> Option<bool> {
        if has_samples {
            self.sampled = now;
        }
        if is_needed || now.saturating_since(self.sampled) > IDLE {
            self.needed = now;
        }
        let rests = self.may_rest && now.saturating_since(self.needed) > QUIET;
        (std::mem::replace(&mut self.rests, rests) != rests).then_some(rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn watch(may_rest: bool) -> Watch {
        Watch { may_rest, rests: false, needed: Nanos(0), sampled: Nanos(0) }
    }

    #[test]
    fn it_rests_after_a_while_without_need_and_no_longer_than_that() {
        let mut watch = watch(true);
        assert!((1..=1000).all(|ms| watch.look(Nanos(ms * MS), true, false).is_none()));
        assert_eq!(watch.look(Nanos(1001 * MS), true, false), Some(true));
        assert_eq!(watch.look(Nanos(1011 * MS), true, false), None);
        assert!(watch.rests());
        assert_eq!(watch.look(Nanos(1021 * MS), true, true), Some(false));
        assert_eq!(watch.look(Nanos(2021 * MS), true, false), None);
        assert_eq!(watch.look(Nanos(2022 * MS), true, false), Some(true));
        // Idle.
        assert_eq!(watch.look(Nanos(2042 * MS), false, false), None);
        assert_eq!(watch.look(Nanos(2043 * MS), false, false), Some(false));
    }

    #[test]
    fn where_samples_are_few_each_is_looked_at() {
        let mut watch = watch(false);
        assert!((1..9000).all(|ms| watch.look(Nanos(ms * MS), true, false).is_none()));
    }
}
