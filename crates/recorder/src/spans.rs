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
/// The event that begins the interval, recorded each time; the one behind it is each end, and one behind that begins
/// what ends in the same way and is not asked for.
const BEGIN: usize = 1;
const END: usize = 2;

/// Follows what threads have begun. `S` is a sample.
#[derive(Debug)]
pub(crate) struct Spans<S> {
    /// A thread is away while it is between the two events.
    between: OffCpu<S>,
    /// Threads whose interval is over, until it is known whether that was sampled: the kernel tells the two events at one
    /// place in either order.
    over: FxHashMap<Tid, Over<S>>,
}

/// The end of an interval.
#[derive(Debug)]
struct Over<S> {
    at: Nanos,
    /// Whether the event that is recorded each time has told of it.
    is_recorded: bool,
    sample: Option<S>,
}

/// What an event without a stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
    /// Something else begins.
    Other,
}

impl Edge {
    /// What the event at that position is; `None` where it is sampled, with stacks.
    pub(crate) fn of_event(position: usize) -> Option<Edge> {
        match position {
            SAMPLED_END => None,
            BEGIN => Some(Edge::Begin),
            END => Some(Edge::End),
            _ => Some(Edge::Other),
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
            Edge::Other => self.close(tid),
            Edge::End => self.recorded_end(now, tid),
        }
    }

    fn recorded_end(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        match self.over.get_mut(&tid) {
            // The end of something that has not begun: what was sampled since may be that.
            Some(over) if over.is_recorded => {
                over.sample = None;
                self.close(tid)
            }
            Some(over) => {
                over.is_recorded = true;
                Vec::new()
            }
            None => {
                if self.between.waits(tid) {
                    self.over.insert(tid, Over { at: now, is_recorded: true, sample: None });
                }
                Vec::new()
            }
        }
    }

    /// A thread was sampled at the end of an interval.
    pub(crate) fn sampled(&mut self, now: Nanos, tid: Tid, sample: S) {
        if let Some(over) = self.over.get_mut(&tid) {
            over.sample = Some(sample);
        } else if self.between.waits(tid) {
            self.over.insert(tid, Over { at: now, is_recorded: false, sample: Some(sample) });
        }
    }

    /// What was over is, with its sample if there is one.
    fn close(&mut self, tid: Tid) -> Vec<Spell<S>> {
        let Some(over) = self.over.remove(&tid) else { return Vec::new() };
        if let Some(sample) = over.sample {
            // Whatever was seen of it on the way.
            self.between.looked_at(Nanos(0), tid, sample);
        }
        self.between.came_back(over.at, tid)
    }

    /// A thread begins.
    pub(crate) fn started(&mut self, tid: Tid) {
        self.over.remove(&tid);
        self.between.started(tid);
    }

    /// A thread has ended: so has what it had begun, the call by which it ended among it.
    pub(crate) fn ended(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        self.recorded_end(now, tid);
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
        for (sampled, recorded) in [(15, 19), (19, 15)] {
            spans.recorded(Nanos(10), THREAD, Edge::Begin);
            if sampled < recorded {
                spans.sampled(Nanos(sampled), THREAD.1, "read");
            }
            assert_eq!(spans.recorded(Nanos(recorded), THREAD, Edge::End), []);
            if sampled > recorded {
                spans.sampled(Nanos(sampled), THREAD.1, "read");
            }
            let spells = spans.recorded(Nanos(30), THREAD, Edge::Other);
            assert_eq!(stacks(spells), [(5, Some("read"))]);
        }
        assert_eq!((spans.between.sums().time, spans.between.sums().waits), (Nanos(10), 2));
        assert_eq!(spans.finish(Nanos(90)), []);
    }

    /// Waking others in futex(2) ends as waiting there does, and is not asked for.
    #[test]
    fn a_sample_of_what_has_not_begun_is_not_that_of_what_ended_before() {
        let mut spans = Spans::new();
        spans.recorded(Nanos(10), THREAD, Edge::Begin);
        spans.recorded(Nanos(15), THREAD, Edge::End);
        spans.sampled(Nanos(18), THREAD.1, "wakes");
        assert_eq!(spans.recorded(Nanos(19), THREAD, Edge::End), []);
        assert_eq!(stacks(spans.finish(Nanos(20))), [(5, None)]);
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
        spans.sampled(Nanos(110), THREAD.1, "read");
        assert_eq!(stacks(spans.recorded(Nanos(111), THREAD, Edge::Other)), [(10, Some("read"))]);
        assert_eq!(spans.finish(Nanos(130)), []);
        assert_eq!(spans.between.sums().unpaired, 2);
    }
}
