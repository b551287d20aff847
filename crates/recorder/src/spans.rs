//! Times between two events of a thread: a system call's entry and its return.
//!
//! Each entry and each return is recorded, so that the time of each call is known, and some returns are sampled
//! with their stacks. What sampling takes is outside of the call then: it begins when the call is over.

use flame_profile::{Nanos, OffCpuTime, Pid, Tid};
use rustc_hash::FxHashMap;

use crate::config::Waits;
use crate::off_cpu::{OffCpu, Spell};

/// The event that is sampled, with stacks: it ends the interval.
const SAMPLED_END: usize = 0;
/// The event that begins the interval, recorded each time; the one behind it is each end.
const BEGIN: usize = 1;

/// Follows what threads have begun. `S` is a sample.
#[derive(Debug)]
pub(crate) struct Spans<S> {
    /// A thread is away while it is between the two events.
    between: OffCpu<S>,
    /// Threads whose interval is over, and since when. A sample of that may follow: the kernel tells the two events at
    /// one place in either order.
    over: FxHashMap<Tid, Nanos>,
}

/// What an event without a stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

impl Edge {
    /// What the event at that position is; `None` where it is sampled, with stacks.
    pub(crate) fn of_event(position: usize) -> Option<Edge> {
        match position {
            SAMPLED_END => None,
            BEGIN => Some(Edge::Begin),
            _ => Some(Edge::End),
        }
    }
}

impl<S: Clone> Spans<S> {
    pub(crate) fn new() -> Spans<S> {
        Spans { between: OffCpu::new(Waits::default()), over: FxHashMap::default() }
    }

    /// Threads between the two events, which can be looked at.
    pub(crate) fn between(&mut self) -> &mut OffCpu<S> {
        &mut self.between
    }

    /// What is to be said of them.
    pub(crate) fn notes(&self) -> Vec<String> {
        let OffCpuTime { time, waits, sampled, unpaired, .. } = self.between.sums();
        let seconds = time.as_secs_f64();
        let all = format!("{waits} calls took {seconds:.3} s; {sampled} of them were sampled");
        let left_out = format!("{unpaired} calls whose end may have been lost are left out");
        [(waits, all), (unpaired, left_out)]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(_, note)| note)
            .collect()
    }

    /// A thread was at the beginning or the end of an interval: what is known by that.
    pub(crate) fn recorded(
        &mut self,
        now: Nanos,
        (pid, tid): (Pid, Tid),
        edge: Edge,
    ) -> Vec<Spell<S>> {
        match edge {
            Edge::Begin => {
                let spells = self.close(tid);
                self.between.left(now, pid, tid, false);
                spells
            }
            Edge::End => {
                if self.between.waits(tid) {
                    self.over.entry(tid).or_insert(now);
                }
                Vec::new()
            }
        }
    }

    /// A thread was sampled at the end of an interval.
    pub(crate) fn sampled(&mut self, now: Nanos, tid: Tid, sample: S) -> Vec<Spell<S>> {
        // Whatever was seen of it on the way.
        self.between.looked_at(Nanos(0), tid, sample);
        self.over.entry(tid).or_insert(now);
        self.close(tid)
    }

    /// An interval that is over has no sample.
    fn close(&mut self, tid: Tid) -> Vec<Spell<S>> {
        let end = self.over.remove(&tid);
        end.map_or_else(Vec::new, |end| self.between.came_back(end, tid))
    }

    /// A thread begins.
    pub(crate) fn started(&mut self, tid: Tid) {
        self.over.remove(&tid);
        self.between.started(tid);
    }

    /// A thread has ended: so has what it had begun, the call by which it ended among it.
    pub(crate) fn ended(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        self.over.entry(tid).or_insert(now);
        let mut spells = self.close(tid);
        spells.extend(self.between.ended(tid));
        spells
    }

    /// Records of an event were lost: where it is not the sampled one, of beginnings or ends. With that one, ends of
    /// threads may have been lost.
    pub(crate) fn lost(&mut self, event: usize) {
        match Edge::of_event(event) {
            None => self.between.doubt(),
            Some(_) => {
                self.over.clear();
                self.between.lost();
            }
        }
    }

    /// The recording is over: what has begun has lasted until then, but for what may have ended unseen.
    pub(crate) fn finish(&mut self, now: Nanos) -> Vec<Spell<S>> {
        let mut over: Vec<Tid> = self.over.keys().copied().collect();
        over.sort_unstable();
        let mut spells: Vec<_> = over.into_iter().flat_map(|tid| self.close(tid)).collect();
        spells.extend(self.between.finish(now));
        spells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::off_cpu::SpellStack;

    const THREAD: (Pid, Tid) = (Pid(7), Tid(8));

    fn stacks(spells: Vec<Spell<&'static str>>) -> Vec<(u64, Option<&'static str>)> {
        let stack = |stack| match stack {
            SpellStack::Sampled(seen) | SpellStack::Before(seen) => seen.stack,
            SpellStack::NotSampled => None,
        };
        spells.into_iter().map(|spell| (spell.duration.0, stack(spell.stack))).collect()
    }

    /// The same call, whose end is told of by the sample first or by the other record.
    #[test]
    fn an_interval_ends_with_the_first_that_tells_of_its_end() {
        let mut spans = Spans::new();
        assert_eq!(spans.recorded(Nanos(5), THREAD, Edge::End), []);
        for sample_is_first in [true, false] {
            spans.recorded(Nanos(10), THREAD, Edge::Begin);
            let (first, second) = (Nanos(15), Nanos(19));
            let spells = if sample_is_first {
                let spells = spans.sampled(first, THREAD.1, "read");
                assert_eq!(spans.recorded(second, THREAD, Edge::End), []);
                spells
            } else {
                assert_eq!(spans.recorded(first, THREAD, Edge::End), []);
                spans.sampled(second, THREAD.1, "read")
            };
            assert_eq!(stacks(spells), [(5, Some("read"))], "{sample_is_first}");
        }
        assert_eq!((spans.between.sums().time, spans.between.sums().waits), (Nanos(10), 2));
        assert_eq!(spans.finish(Nanos(90)), []);
    }

    #[test]
    fn what_has_no_sample_is_shared_out_and_what_goes_on_lasts_until_the_end() {
        let mut spans = Spans::new();
        for (start, is_sampled) in [(100, false), (200, true), (300, false)] {
            spans.recorded(Nanos(start), THREAD, Edge::Begin);
            spans.recorded(Nanos(start + 20), THREAD, Edge::End);
            if is_sampled {
                spans.sampled(Nanos(start + 21), THREAD.1, "read");
            }
        }
        spans.recorded(Nanos(400), (Pid(7), Tid(9)), Edge::Begin);
        let all = stacks(spans.finish(Nanos(500)));
        assert_eq!(all, [(60, Some("read")), (100, None)]);
        // The other thread has not ended: it goes on for as long as it is followed.
        spans.recorded(Nanos(600), THREAD, Edge::Begin);
        assert_eq!(stacks(spans.ended(Nanos(640), THREAD.1)), [(40, None)]);
    }

    #[test]
    fn what_may_have_ended_unseen_is_left_out() {
        let mut spans: Spans<&str> = Spans::new();
        spans.recorded(Nanos(10), THREAD, Edge::Begin);
        spans.lost(2);
        assert_eq!(spans.recorded(Nanos(90), THREAD, Edge::End), []);
        // Threads may have ended: one goes on, of the other nothing more is heard.
        spans.recorded(Nanos(100), THREAD, Edge::Begin);
        spans.recorded(Nanos(100), (Pid(7), Tid(9)), Edge::Begin);
        spans.lost(SAMPLED_END);
        assert_eq!(stacks(spans.sampled(Nanos(110), THREAD.1, "read")), [(10, Some("read"))]);
        assert_eq!(spans.finish(Nanos(130)), []);
        assert_eq!(spans.between.sums().unpaired, 2);
    }
}
