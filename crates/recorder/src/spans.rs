//! Times between two events of a thread: a system call's entry and its return.
//!
//! Each entry and each return is recorded, so that the time of each call is known, and some returns are sampled
//! with their stacks. What sampling takes is outside of the call then: it begins when the call is over.
//!
//! Long calls are rare among short ones, and of a flood few returns are sampled. But who takes long is switched away
//! meanwhile, and switches are sampled, too: all of them, as long as they are not a flood themselves.

use flame_events::SwitchTo;
use flame_profile::{Nanos, OffCpuTime, Pid, Tid};
use rustc_hash::FxHashMap;

use crate::config::Waits;
use crate::off_cpu::{OffCpu, Spell};

/// The event that is sampled, with stacks: it ends the interval.
const SAMPLED_END: usize = 0;
/// A thread is switched away within an interval: sampled with stacks, too.
const SWITCH: usize = 1;
/// The event that begins the interval, recorded each time; the one behind it is each end, and one behind that begins
/// what ends in the same way and is not asked for.
const BEGIN: usize = 2;
const END: usize = 3;

/// Follows what threads have begun. `S` is a sample.
#[derive(Debug)]
pub(crate) struct Spans<S> {
    /// A thread is away while it is between the two events.
    between: OffCpu<S>,
    /// Whether callers are missing of a sample.
    lacks: fn(&S) -> bool,
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
            SAMPLED_END | SWITCH => None,
            BEGIN => Some(Edge::Begin),
            END => Some(Edge::End),
            _ => Some(Edge::Other),
        }
    }
}

impl<S: Clone> Spans<S> {
    pub(crate) fn new(lacks: fn(&S) -> bool) -> Spans<S> {
        Spans { between: OffCpu::new(Waits::default()), lacks, over: FxHashMap::default() }
    }

    /// Threads between the two events, which can be looked at.
    pub(crate) fn between(&mut self) -> &mut OffCpu<S> {
        &mut self.between
    }

    /// What is to be said of them.
    pub(crate) fn notes(&self) -> Vec<String> {
        let sums = self.between.sums();
        let OffCpuTime { time, waits, sampled, unpaired, .. } = sums;
        let seconds = time.as_secs_f64();
        let within = sums.deviation_share().map_or_else(String::new, |share| {
            let (percent, off) = (share * 100.0, sums.deviation.as_secs_f64());
            format!(
                ": each box is within some {off:.3} s, {percent:.1} % of the time (one standard deviation)"
            )
        });
        let all =
            format!("{waits} calls took {seconds:.3} s; {sampled} of them were sampled{within}");
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

    /// A thread was sampled: at the end of an interval, or when it was switched away within one, which shows where the
    /// interval is unless its end was sampled, too.
    pub(crate) fn sampled(&mut self, now: Nanos, tid: Tid, event: usize, sample: S) {
        if event == SWITCH {
            // Once it is over, it is none of it.
            if !self.over.contains_key(&tid) {
                self.between.sampled_within(tid, sample);
            }
        } else if let Some(over) = self.over.get_mut(&tid) {
            over.sample = Some(sample);
        } else if self.between.waits(tid) {
            self.over.insert(tid, Over { at: now, is_recorded: false, sample: Some(sample) });
        }
    }

    /// What was over is, with its sample if there is one.
    fn close(&mut self, tid: Tid) -> Vec<Spell<S>> {
        let Some(over) = self.over.remove(&tid) else { return Vec::new() };
        if let Some(sample) = over.sample {
            self.between.sampled_at_end(tid, sample, self.lacks);
        }
        self.between.came_back(over.at, tid)
    }

    /// A thread left its CPU, or came back. A short call in which it was preempted stays one of the short ones.
    pub(crate) fn switched(&mut self, now: Nanos, tid: Tid, to: SwitchTo) {
        self.between.is_kept(now, tid, to == SwitchTo::Preempted);
    }

    /// A thread begins.
    pub(crate) fn started(&mut self, tid: Tid) {
        self.over.remove(&tid);
        self.between.started(tid);
    }

    /// A thread has ended: so has what it had begun, the call by which it ended among it.
    pub(crate) fn ended(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        // What is over already is not what went on until now.
        if !self.over.contains_key(&tid) {
            self.recorded_end(now, tid);
        }
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
        // None was found waiting.
        spells.extend(self.between.finish(now, |_, _| None));
        spells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::off_cpu::SpellStack;

    const THREAD: (Pid, Tid) = (Pid(7), Tid(8));

    fn lacks(sample: &&str) -> bool {
        *sample == "truncated"
    }

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
        let mut spans = Spans::new(lacks);
        assert_eq!(spans.recorded(Nanos(5), THREAD, Edge::End), []);
        for (sampled, recorded) in [(15, 19), (19, 15)] {
            spans.recorded(Nanos(10), THREAD, Edge::Begin);
            if sampled < recorded {
                spans.sampled(Nanos(sampled), THREAD.1, SAMPLED_END, "read");
            }
            assert_eq!(spans.recorded(Nanos(recorded), THREAD, Edge::End), []);
            if sampled > recorded {
                spans.sampled(Nanos(sampled), THREAD.1, SAMPLED_END, "read");
            }
            let spells = spans.recorded(Nanos(30), THREAD, Edge::Other);
            assert_eq!(stacks(spells), [(5, Some("read"))]);
        }
        assert_eq!((spans.between.sums().time, spans.between.sums().waits), (Nanos(10), 2));
        assert_eq!(spans.finish(Nanos(90)), []);
    }

    /// Where a thread waits its stack can be read on beyond the copy; at the end of the call it is copied only.
    #[test]
    fn a_truncated_sample_of_the_end_does_not_replace_a_whole_one_of_the_same_call() {
        for (at_end, expect) in [("truncated", "whole"), ("read", "read")] {
            let mut spans = Spans::new(lacks);
            spans.recorded(Nanos(10), THREAD, Edge::Begin);
            spans.sampled(Nanos(12), THREAD.1, SWITCH, "whole");
            spans.sampled(Nanos(15), THREAD.1, SAMPLED_END, at_end);
            spans.recorded(Nanos(15), THREAD, Edge::End);
            let spells = spans.recorded(Nanos(30), THREAD, Edge::Other);
            assert_eq!(stacks(spells), [(5, Some(expect))]);
        }
    }

    /// Waking others in futex(2) ends as waiting there does, and is not asked for.
    #[test]
    fn a_sample_of_what_has_not_begun_is_not_that_of_what_ended_before() {
        let mut spans = Spans::new(lacks);
        spans.recorded(Nanos(10), THREAD, Edge::Begin);
        spans.recorded(Nanos(15), THREAD, Edge::End);
        spans.sampled(Nanos(18), THREAD.1, SAMPLED_END, "wakes");
        assert_eq!(spans.recorded(Nanos(19), THREAD, Edge::End), []);
        assert_eq!(stacks(spans.finish(Nanos(20))), [(5, None)]);
    }

    #[test]
    fn what_has_no_sample_is_shared_out_and_what_goes_on_lasts_until_the_end() {
        let mut spans = Spans::new(lacks);
        for (start, is_sampled) in [(100, false), (200, true), (300, false)] {
            spans.recorded(Nanos(start), THREAD, Edge::Begin);
            spans.recorded(Nanos(start + 20), THREAD, Edge::End);
            if is_sampled {
                spans.sampled(Nanos(start + 21), THREAD.1, SAMPLED_END, "read");
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
    fn the_last_interval_of_a_thread_is_its_own() {
        let mut spans = Spans::new(lacks);
        spans.recorded(Nanos(10), THREAD, Edge::Begin);
        spans.recorded(Nanos(15), THREAD, Edge::End);
        spans.sampled(Nanos(15), THREAD.1, SAMPLED_END, "sleeps");
        assert_eq!(stacks(spans.ended(Nanos(90), THREAD.1)), [(5, Some("sleeps"))]);
    }

    #[test]
    fn what_may_have_ended_unseen_is_left_out() {
        let mut spans: Spans<&str> = Spans::new(lacks);
        spans.recorded(Nanos(10), THREAD, Edge::Begin);
        spans.lost(2);
        assert_eq!(spans.recorded(Nanos(90), THREAD, Edge::End), []);
        // Threads may have ended: one goes on, of the other nothing more is heard.
        spans.recorded(Nanos(100), THREAD, Edge::Begin);
        spans.recorded(Nanos(100), (Pid(7), Tid(9)), Edge::Begin);
        spans.lost(SAMPLED_END);
        spans.sampled(Nanos(110), THREAD.1, SAMPLED_END, "read");
        assert_eq!(stacks(spans.recorded(Nanos(111), THREAD, Edge::Other)), [(10, Some("read"))]);
        assert_eq!(spans.finish(Nanos(130)), []);
        assert_eq!(spans.between.sums().unpaired, 2);
    }

    /// Else its time would be that of a long call, of which none was sampled.
    #[test]
    fn a_short_call_in_which_its_thread_was_preempted_is_short() {
        let mut spans: Spans<&str> = Spans::new(lacks);
        let tid = THREAD.1;
        spans.recorded(Nanos(20), THREAD, Edge::Begin);
        spans.switched(Nanos(21), tid, SwitchTo::Preempted);
        spans.switched(Nanos(5000), tid, SwitchTo::Running);
        spans.recorded(Nanos(5001), THREAD, Edge::End);
        spans.recorded(Nanos(6000), THREAD, Edge::Begin);
        spans.recorded(Nanos(6002), THREAD, Edge::End);
        spans.sampled(Nanos(6003), tid, SAMPLED_END, "read");
        // Who waits takes its time.
        spans.recorded(Nanos(7000), THREAD, Edge::Begin);
        spans.switched(Nanos(7001), tid, SwitchTo::Waiting);
        spans.switched(Nanos(9000), tid, SwitchTo::Running);
        spans.recorded(Nanos(9001), THREAD, Edge::End);
        // Where a CPU was lost, that is sampled, and stands for what is like it.
        spans.recorded(Nanos(9100), THREAD, Edge::Begin);
        spans.sampled(Nanos(9101), tid, SWITCH, "preempted");
        spans.switched(Nanos(9101), tid, SwitchTo::Preempted);
        spans.switched(Nanos(9110), tid, SwitchTo::Running);
        spans.recorded(Nanos(9111), THREAD, Edge::End);
        let all = stacks(spans.ended(Nanos(9500), tid));
        assert_eq!(all, [(4981 + 11, Some("preempted")), (2001, None)]);
    }

    /// Of calls that last a switch is sampled, whether their end is or not.
    #[test]
    fn who_was_switched_away_was_where_that_was_sampled() {
        let mut spans: Spans<&str> = Spans::new(lacks);
        for (start, end) in [(100, None), (1000, Some("end"))] {
            spans.recorded(Nanos(start), THREAD, Edge::Begin);
            spans.sampled(Nanos(start + 10), THREAD.1, SWITCH, "waits");
            spans.recorded(Nanos(start + 500), THREAD, Edge::End);
            if let Some(end) = end {
                spans.sampled(Nanos(start + 501), THREAD.1, SAMPLED_END, end);
            }
            // Its next switch is none of that call any more.
            spans.sampled(Nanos(start + 600), THREAD.1, SWITCH, "later");
            let spells = stacks(spans.recorded(Nanos(start + 700), THREAD, Edge::Other));
            assert_eq!(spells, [(500, Some(end.unwrap_or("waits")))]);
        }
    }
}
