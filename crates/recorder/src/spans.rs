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
    /// The end of its thread may have been among records that were lost.
    is_doubtful: bool,
}

impl<S> Default for Spans<S> {
    fn default() -> Self {
        Spans { open: FxHashMap::default() }
    }
}

impl<S> Spans<S> {
    /// A thread was sampled as it began something, as one of so many.
    pub(crate) fn began(&mut self, now: Nanos, tid: Tid, weight: u64, sample: S) {
        let open = Open { since: now, weight, sample, is_doubtful: false };
        self.open.insert(tid, open);
    }

    /// A thread has ended what it began: the sample of that, if there was one, and what it stands for.
    pub(crate) fn ended(&mut self, now: Nanos, tid: Tid) -> Option<(S, Nanos)> {
        self.open.remove(&tid).map(|open| open.until(now))
    }

    /// Records of ends were lost: what is open would last until something else ends. How many are left
    /// out.
    pub(crate) fn lost_ends(&mut self) -> u64 {
        let count = self.open.len() as u64;
        self.open.clear();
        count
    }

    /// Records of beginnings were lost, and with them maybe those of threads that ended: what such a
    /// thread had begun would stay open for ever.
    pub(crate) fn lost_threads(&mut self) {
        self.open.values_mut().for_each(|open| open.is_doubtful = true);
    }

    /// The recording is over: what is open has lasted until then, but for what may have ended unseen.
    /// How much of that there was comes second.
    pub(crate) fn finish(&mut self, now: Nanos) -> (Vec<(S, Nanos)>, u64) {
        let all = self.open.len();
        let mut open: Vec<(Tid, Open<S>)> =
            self.open.drain().filter(|(_, open)| !open.is_doubtful).collect();
        open.sort_unstable_by_key(|(tid, _)| *tid);
        let left_out = (all - open.len()) as u64;
        (open.into_iter().map(|(_, open)| open.until(now)).collect(), left_out)
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
        assert_eq!(spans.finish(Nanos(20)), (vec![("write", Nanos(9))], 0));
    }

    #[test]
    fn what_may_have_ended_unseen_is_left_out() {
        let mut spans = Spans::default();
        spans.began(Nanos(30), Tid(1), 1, "read");
        assert_eq!(spans.lost_ends(), 1);
        assert_eq!(spans.ended(Nanos(90), Tid(1)), None);
        // Threads may have ended: one goes on, of the other nothing more is heard.
        spans.began(Nanos(100), Tid(1), 1, "read");
        spans.began(Nanos(100), Tid(2), 1, "write");
        spans.lost_threads();
        assert_eq!(spans.ended(Nanos(110), Tid(1)), Some(("read", Nanos(10))));
        spans.began(Nanos(120), Tid(3), 1, "poll");
        assert_eq!(spans.finish(Nanos(130)), (vec![("poll", Nanos(10))], 1));
    }
}
