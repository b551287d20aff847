//! Times between two events of a thread: a system call's entry and its return.

use flame_profile::{Nanos, Tid};
use rustc_hash::FxHashMap;

/// Follows what has begun. `S` is the sample that began it.
#[derive(Debug)]
pub(crate) struct Spans<S> {
    open: FxHashMap<Tid, Open<S>>,
}

/// What has begun and not ended.
#[derive(Debug)]
struct Open<S> {
    since: Nanos,
    /// For how many it stands.
    weight: u64,
    sample: S,
}

impl<S> Default for Spans<S> {
    fn default() -> Self {
        Spans { open: FxHashMap::default() }
    }
}

impl<S> Spans<S> {
    /// A thread was sampled as it began something, as one of so many.
    pub(crate) fn began(&mut self, now: Nanos, tid: Tid, weight: u64, sample: S) {
        self.open.insert(tid, Open { since: now, weight, sample });
    }

    /// A thread has ended what it began: the sample of that, if there was one, and what it stands for.
    pub(crate) fn ended(&mut self, now: Nanos, tid: Tid) -> Option<(S, Nanos)> {
        self.open.remove(&tid).map(|open| open.until(now))
    }

    /// Records were lost, maybe of ends: what is open would last until something else ends. How many
    /// are left out.
    pub(crate) fn lost(&mut self) -> u64 {
        let count = self.open.len() as u64;
        self.open.clear();
        count
    }

    /// The recording is over: what is open has lasted until then.
    pub(crate) fn finish(&mut self, now: Nanos) -> Vec<(S, Nanos)> {
        let mut open: Vec<(Tid, Open<S>)> = self.open.drain().collect();
        open.sort_unstable_by_key(|(tid, _)| *tid);
        open.into_iter().map(|(_, open)| open.until(now)).collect()
    }
}

impl<S> Open<S> {
    fn until(self, now: Nanos) -> (S, Nanos) {
        let duration = now.saturating_since(self.since).0.saturating_mul(self.weight);
        (self.sample, Nanos(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_weighed_by_what_its_sample_stands_for() {
        let mut spans = Spans::default();
        assert_eq!(spans.ended(Nanos(5), Tid(1)), None);
        spans.began(Nanos(10), Tid(1), 3, "read");
        spans.began(Nanos(11), Tid(2), 1, "write");
        assert_eq!(spans.ended(Nanos(15), Tid(1)), Some(("read", Nanos(15))));
        assert_eq!(spans.ended(Nanos(16), Tid(1)), None);
        assert_eq!(spans.finish(Nanos(20)), [("write", Nanos(9))]);
        spans.began(Nanos(30), Tid(1), 1, "read");
        assert_eq!(spans.lost(), 1);
        assert_eq!(spans.ended(Nanos(90), Tid(1)), None);
    }
}
