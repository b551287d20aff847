//! Which waits of a thread are sampled alike: only those may stand for each other.

use std::collections::BTreeMap;

use flame_profile::{Nanos, Pid};

use super::lengths::Lengths;

/// Of waits that last this long it may be known by a look where they were, though they were not sampled.
pub(crate) const LONG_WAIT: Nanos = Nanos(5_000_000);

/// What is sampled in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A wait.
    Wait,
    /// A time of being preempted.
    Preempted,
    /// Something that has begun, in which the CPU was lost.
    Switched,
    /// What lasts so long that it is looked at: by factors of two of [`LONG_WAIT`].
    Long { octave: u32, is_switched: bool },
}

impl Kind {
    pub(super) fn of(duration: Nanos, is_switched: bool, preempted: bool) -> Kind {
        let octave = (duration.0 / LONG_WAIT.0).checked_ilog2();
        match octave.filter(|_| is_switched || !preempted) {
            Some(octave) => Kind::Long { octave, is_switched },
            None if is_switched => Kind::Switched,
            None if preempted => Kind::Preempted,
            None => Kind::Wait,
        }
    }

    pub(super) fn is_preempted(self) -> bool {
        self == Kind::Preempted
    }

    /// How soon after its begin something of this kind must have been looked at for that to count; `None` where no look does.
    /// Nobody can look at all in time where many threads wait, and who waits longer is more likely looked at: what counts must
    /// not depend on it.
    pub(super) fn last_look(self) -> Option<Nanos> {
        match self {
            Kind::Long { octave, .. } => Some(Nanos(LONG_WAIT.0 << octave)),
            _ => None,
        }
    }
}

/// What of a thread was not handed out yet.
#[derive(Debug)]
pub(super) struct KeptBack<S> {
    pub(super) pid: Pid,
    pub(super) lengths: BTreeMap<Kind, Lengths<S>>,
}

impl<S> KeptBack<S> {
    pub(super) fn of(pid: Pid) -> KeptBack<S> {
        KeptBack { pid, lengths: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_are_of_a_kind_with_those_up_to_twice_as_long() {
        let kind = |ms: u64, is_switched, preempted| {
            Kind::of(Nanos(ms * 1_000_000), is_switched, preempted)
        };
        let long = |octave, is_switched| Kind::Long { octave, is_switched };
        assert_eq!(
            [4, 5, 9, 10, 19].map(|ms| kind(ms, false, false)),
            [Kind::Wait, long(0, false), long(0, false), long(1, false), long(1, false)]
        );
        assert_eq!(kind(4, true, false), Kind::Switched);
        assert_eq!(kind(40, true, false), long(3, true));
        assert_eq!(kind(240, false, true), Kind::Preempted, "nobody looks at who could go on");
        assert_eq!(long(1, false).last_look(), Some(Nanos(10_000_000)));
        assert_eq!(Kind::Wait.last_look(), None);
    }
}
