//! Time that threads spend off their CPUs: each switch away is paired with the return.
//!
//! The kernel samples a thread as it leaves its CPU, which shows where it waits, and then says of
//! each switch whether the thread waits or was preempted. The sample stands for the time until the
//! thread runs again.
//!
//! Of a thread that switches very often only some switches are sampled, but each is told of, so that
//! the sum is always known. What passed unsampled is shared out among the thread's samples of about the
//! same length (each factor of four is a class of its own, for waiting and for being preempted), by
//! their times: so a long wait never stands for short ones nor they for it, whatever happened to be
//! sampled.

use std::collections::BTreeMap;

use flame_profile::{Nanos, OffCpuTime, Pid, Tid};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::config::Waits;

/// Follows the threads of a recording. `S` is a sample that does not know yet for how long.
#[derive(Debug)]
pub(crate) struct OffCpu<S> {
    kept: Waits,
    begun: Nanos,
    away: FxHashMap<Tid, Away<S>>,
    /// They may be switched away once more, for ever.
    ended: FxHashSet<Tid>,
    /// By thread.
    classes: FxHashMap<Tid, (Pid, Classes<S>)>,
    sums: OffCpuTime,
}

/// A thread that has left its CPU, or is about to.
#[derive(Debug)]
struct Away<S> {
    pid: Pid,
    since: Option<Nanos>,
    preempted: bool,
    before: bool,
    sample: Option<S>,
    /// When a thread that waited before was looked at, for `sample`.
    looked_at: Nanos,
}

/// By whether the thread was preempted, and by the logarithm of the length.
type Classes<S> = BTreeMap<(bool, u32), Class<S>>;

/// So many samples of a class share what was not sampled meanwhile.
const BATCH: usize = 16;

/// Times of about the same length.
#[derive(Debug)]
struct Class<S> {
    /// What was not sampled since the last batch.
    unsampled: u64,
    /// Samples since the last batch, with their own times.
    batch: Vec<(S, u64)>,
    /// The last sample of the last batch.
    last: Option<S>,
}

impl<S> Default for Class<S> {
    fn default() -> Self {
        Class { unsampled: 0, batch: Vec::new(), last: None }
    }
}

impl<S: Clone> Class<S> {
    /// The samples of a batch, each with its part of what was not sampled.
    fn shared_out(&mut self) -> Vec<(S, u64)> {
        let sampled: u128 = self.batch.iter().map(|(_, time)| u128::from(*time)).sum();
        let total = sampled + u128::from(std::mem::take(&mut self.unsampled));
        let (mut seen, mut given) = (0, 0);
        let mut batch = std::mem::take(&mut self.batch);
        for (_, time) in &mut batch {
            seen += u128::from(*time);
            let until = u64::try_from(total * seen / sampled.max(1)).unwrap_or(u64::MAX);
            (*time, given) = (until - given, until);
        }
        self.last = batch.last().map(|(sample, _)| sample.clone());
        batch
    }
}

/// A time that a thread spent off CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spell<S> {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) duration: Nanos,
    /// It could have gone on.
    pub(crate) preempted: bool,
    pub(crate) stack: SpellStack<S>,
}

/// What a thread did when it left its CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpellStack<S> {
    /// It was before the recording. Who was looked at and had not run by then has a sample.
    Before(Option<S>),
    /// None of that class was sampled of the thread any more.
    NotSampled,
    Sampled(S),
}

impl<S: Clone> OffCpu<S> {
    pub(crate) fn new(kept: Waits) -> OffCpu<S> {
        OffCpu {
            kept,
            begun: Nanos(0),
            away: FxHashMap::default(),
            ended: FxHashSet::default(),
            classes: FxHashMap::default(),
            sums: OffCpuTime::default(),
        }
    }

    /// What is known so far.
    pub(crate) fn sums(&self) -> OffCpuTime {
        self.sums
    }

    /// The recording begins, while these threads wait already.
    pub(crate) fn begin(&mut self, now: Nanos, waiting: impl IntoIterator<Item = (Pid, Tid)>) {
        self.begun = now;
        for (pid, tid) in waiting {
            let (since, looked_at) = (Some(now), Nanos(0));
            let away = Away { pid, since, preempted: false, before: true, sample: None, looked_at };
            self.away.insert(tid, away);
        }
    }

    /// Whether a thread waits that did so before the recording.
    pub(crate) fn waits_since_before(&self, tid: Tid) -> bool {
        self.away.get(&tid).is_some_and(|away| away.before)
    }

    /// A thread that waited when the recording began was looked at: if it does not run until then,
    /// that was where.
    pub(crate) fn looked_at(&mut self, now: Nanos, tid: Tid, sample: S) {
        if let Some(away) = self.away.get_mut(&tid).filter(|away| away.before) {
            (away.looked_at, away.sample) = (now, Some(sample));
        }
    }

    /// A thread was sampled, on its way from its CPU.
    pub(crate) fn sampled(&mut self, pid: Pid, tid: Tid, sample: S) {
        if !self.counts(pid, tid) {
            return;
        }
        let sample = Some(sample);
        let (since, looked_at) = (None, Nanos(0));
        let away = Away { pid, since, preempted: false, before: false, sample, looked_at };
        let earlier = self.away.insert(tid, away);
        self.sums.unpaired += u64::from(earlier.is_some_and(|away| !away.before));
    }

    /// A thread has left its CPU.
    pub(crate) fn left(&mut self, now: Nanos, pid: Pid, tid: Tid, preempted: bool) {
        if !self.counts(pid, tid) {
            return;
        }
        let earlier = self.away.remove(&tid);
        // With a time it is of an earlier switch, from which the thread came back unseen.
        let unseen = |away: &Away<S>| away.since.is_some();
        self.sums.unpaired += u64::from(earlier.as_ref().is_some_and(|a| unseen(a) && !a.before));
        let sample = earlier.filter(|away| !unseen(away)).and_then(|away| away.sample);
        let before = now < self.begun;
        let (since, looked_at) = (Some(now), Nanos(0));
        let away = Away { pid, since, preempted, before, sample, looked_at };
        self.away.insert(tid, away);
    }

    /// A thread runs again: what is known of times off CPU by that.
    pub(crate) fn came_back(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        let away = self.away.remove(&tid);
        away.map_or_else(Vec::new, |away| self.spells(now, tid, away))
    }

    fn spells(&mut self, now: Nanos, tid: Tid, away: Away<S>) -> Vec<Spell<S>> {
        let Some(since) = away.since else {
            self.sums.unpaired += 1;
            return Vec::new();
        };
        let duration = now.saturating_since(since.max(self.begun));
        if duration < self.kept.shortest || duration > self.kept.longest {
            self.sums.left_out += 1;
            return Vec::new();
        }
        self.sums.time.0 += duration.0;
        let (pid, preempted) = (away.pid, away.preempted);
        let spell = |duration, stack| Spell { pid, tid, duration, preempted, stack };
        if away.before {
            self.sums.before.0 += duration.0;
            let seen = away.sample.filter(|_| away.looked_at < now);
            return vec![spell(duration, SpellStack::Before(seen))];
        }
        self.sums.waits += 1;
        self.sums.preempted.0 += if preempted { duration.0 } else { 0 };
        self.sums.sampled += u64::from(away.sample.is_some());
        // So far all were sampled.
        if self.sums.sampled == self.sums.waits {
            let stack = away.sample.map(SpellStack::Sampled);
            return stack.map(|stack| spell(duration, stack)).into_iter().collect();
        }
        let length = duration.0.checked_ilog2().unwrap_or(0) / 2;
        let (_, classes) = self.classes.entry(tid).or_insert((pid, BTreeMap::new()));
        let class = classes.entry((preempted, length)).or_default();
        match away.sample {
            Some(sample) => class.batch.push((sample, duration.0)),
            None => class.unsampled += duration.0,
        }
        if class.batch.len() < BATCH {
            return Vec::new();
        }
        let shared_out = class.shared_out().into_iter();
        shared_out.map(|(sample, time)| spell(Nanos(time), SpellStack::Sampled(sample))).collect()
    }

    /// A thread has ended: it does not come back from its last switch. What was not sampled of it.
    pub(crate) fn ended(&mut self, tid: Tid) -> Vec<Spell<S>> {
        self.away.remove(&tid);
        self.ended.insert(tid);
        self.unsampled(tid)
    }

    /// What of a thread was not handed out yet.
    fn unsampled(&mut self, tid: Tid) -> Vec<Spell<S>> {
        let Some((pid, classes)) = self.classes.remove(&tid) else { return Vec::new() };
        let mut spells = Vec::new();
        for ((preempted, _), mut class) in classes {
            let spell = |(stack, time)| Spell { pid, tid, duration: Nanos(time), preempted, stack };
            let sampled = |(sample, time)| spell((SpellStack::Sampled(sample), time));
            if !class.batch.is_empty() {
                spells.extend(class.shared_out().into_iter().map(sampled));
            } else if class.unsampled > 0 {
                let stack = class.last.map_or(SpellStack::NotSampled, SpellStack::Sampled);
                spells.push(spell((stack, class.unsampled)));
            }
        }
        spells
    }

    /// A thread begins, maybe with the number of one that has ended.
    pub(crate) fn started(&mut self, tid: Tid) {
        self.ended.remove(&tid);
        self.away.remove(&tid);
    }

    /// Records were lost, maybe those of threads that came back.
    pub(crate) fn lost(&mut self) {
        self.sums.unpaired += self.away.len() as u64;
        self.away.clear();
    }

    /// The recording is over. Who waits has waited so far.
    pub(crate) fn finish(&mut self, now: Nanos) -> Vec<Spell<S>> {
        let away = std::mem::take(&mut self.away);
        let mut all: Vec<(Tid, Away<S>)> = away.into_iter().collect();
        all.sort_unstable_by_key(|(tid, _)| *tid);
        // One that was sampled last of all has not even left.
        all.retain(|(_, away)| away.since.is_some());
        let spells = all.into_iter().flat_map(|(tid, away)| self.spells(now, tid, away));
        let mut spells: Vec<Spell<S>> = spells.collect();
        let mut left: Vec<Tid> = self.classes.keys().copied().collect();
        left.sort_unstable();
        spells.extend(left.into_iter().flat_map(|tid| self.unsampled(tid)));
        spells
    }

    /// The idle task of a CPU does not wait, and who has given up its number does not come back.
    pub(crate) fn counts(&self, pid: Pid, tid: Tid) -> bool {
        pid.0 != 0 && tid.0 != u32::MAX && !self.ended.contains(&tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    const TID: Tid = Tid(8);

    fn begun_at(now: u64, waiting: &[Tid]) -> OffCpu<&'static str> {
        let mut all = OffCpu::new(Waits::default());
        all.begin(Nanos(now), waiting.iter().map(|tid| (PID, *tid)));
        all
    }

    fn spell(duration: u64, stack: SpellStack<&'static str>) -> Vec<Spell<&'static str>> {
        vec![Spell { pid: PID, tid: TID, duration: Nanos(duration), preempted: false, stack }]
    }

    #[test]
    fn a_sample_stands_for_the_time_until_its_thread_runs_again() {
        let mut all = begun_at(10, &[]);
        all.sampled(PID, TID, "read");
        all.left(Nanos(20), PID, TID, false);
        assert_eq!(all.came_back(Nanos(50), TID), spell(30, SpellStack::Sampled("read")));
        all.sampled(PID, TID, "loop");
        all.left(Nanos(60), PID, TID, true);
        let preempted = all.came_back(Nanos(61), TID);
        assert!(preempted[0].preempted);
        assert_eq!(preempted[0].stack, SpellStack::Sampled("loop"));
        assert_eq!(all.came_back(Nanos(70), TID), []);
        let OffCpuTime { time, preempted, waits, sampled, unpaired, .. } = all.sums();
        assert_eq!((time, preempted, waits, sampled, unpaired), (Nanos(31), Nanos(1), 2, 2, 0));
    }

    #[test]
    fn what_was_not_sampled_is_shared_out_among_those_of_its_length() {
        let mut all = begun_at(0, &[]);
        let mut wait = |start: u64, duration, sample: Option<&'static str>| {
            sample.into_iter().for_each(|sample| all.sampled(PID, TID, sample));
            all.left(Nanos(start), PID, TID, false);
            all.came_back(Nanos(start + duration), TID)
        };
        assert_eq!(wait(10, 70, Some("first")), spell(70, SpellStack::Sampled("first")));
        assert_eq!(wait(100, 90, None), []);
        assert_eq!(wait(200, 5000, None), []);
        assert_eq!(wait(6000, 80, Some("short")), []);
        assert_eq!(wait(7000, 160, Some("twice")), []);
        assert_eq!(wait(8000, 150, None), []);
        let left = all.finish(Nanos(9000));
        let expect =
            [("short", 160), ("twice", 320)].map(|(name, time)| (time, SpellStack::Sampled(name)));
        let expect = expect.into_iter().chain([(5000, SpellStack::NotSampled)]);
        let expect: Vec<_> = expect.flat_map(|(time, stack)| spell(time, stack)).collect();
        assert_eq!(left, expect);
        let OffCpuTime { time, waits, sampled, .. } = all.sums();
        assert_eq!((time, waits, sampled), (Nanos(5550), 6, 3));
    }

    #[test]
    fn a_full_batch_is_handed_out_at_once_and_its_last_stands_for_the_end() {
        let mut all = begun_at(0, &[]);
        all.left(Nanos(1), PID, TID, false);
        assert_eq!(all.came_back(Nanos(20), TID), []);
        let mut spells = Vec::new();
        for at in 1..=BATCH as u64 {
            all.sampled(PID, TID, "read");
            all.left(Nanos(100 * at), PID, TID, false);
            spells.extend(all.came_back(Nanos(100 * at + 19), TID));
        }
        assert_eq!(spells.len(), BATCH);
        let sum: u64 = spells.iter().map(|spell| spell.duration.0).sum();
        assert_eq!(sum, 19 * (BATCH as u64 + 1));
        all.left(Nanos(5000), PID, TID, false);
        assert_eq!(all.came_back(Nanos(5020), TID), []);
        assert_eq!(all.ended(TID), spell(20, SpellStack::Sampled("read")));
    }

    #[test]
    fn what_began_before_the_recording_counts_from_its_beginning() {
        let mut all = begun_at(10, &[TID]);
        assert_eq!(all.came_back(Nanos(15), TID), spell(5, SpellStack::Before(None)));
        let mut all = begun_at(10, &[]);
        all.left(Nanos(2), PID, TID, false);
        assert_eq!(all.came_back(Nanos(15), TID), spell(5, SpellStack::Before(None)));
        // It was looked at, while it waited or later.
        for (at, seen) in [(14, Some("poll")), (15, None)] {
            let mut all = begun_at(10, &[TID]);
            all.looked_at(Nanos(at), TID, "poll");
            assert_eq!(all.came_back(Nanos(15), TID), spell(5, SpellStack::Before(seen)));
        }
        // It was about to wait when it was looked at.
        let mut all = begun_at(10, &[TID]);
        all.sampled(PID, TID, "read");
        all.left(Nanos(12), PID, TID, false);
        assert_eq!(all.came_back(Nanos(15), TID), spell(3, SpellStack::Sampled("read")));
        assert_eq!(all.sums().unpaired, 0);
    }

    #[test]
    fn who_still_waits_at_the_end_has_waited_until_then_and_the_dead_do_not() {
        let mut all = begun_at(10, &[]);
        all.sampled(PID, TID, "read");
        all.left(Nanos(20), PID, TID, false);
        let dead = Tid(9);
        assert_eq!(all.ended(dead), []);
        all.sampled(PID, dead, "exit");
        all.left(Nanos(20), PID, dead, false);
        assert_eq!(all.finish(Nanos(90)), spell(70, SpellStack::Sampled("read")));
        all.started(dead);
        all.sampled(PID, dead, "born again");
        all.left(Nanos(95), PID, dead, false);
        assert_eq!(all.finish(Nanos(99)).len(), 1);
    }

    #[test]
    fn lost_records_make_no_long_waits() {
        let mut all = begun_at(10, &[]);
        all.sampled(PID, TID, "read");
        all.left(Nanos(20), PID, TID, false);
        all.lost();
        assert_eq!(all.came_back(Nanos(5000), TID), []);
        // A return that was not seen, in front of another switch.
        all.sampled(PID, TID, "read");
        all.left(Nanos(6000), PID, TID, false);
        all.sampled(PID, TID, "write");
        all.left(Nanos(7000), PID, TID, false);
        assert_eq!(all.came_back(Nanos(7001), TID), spell(1, SpellStack::Sampled("write")));
        assert_eq!((all.sums().unpaired, all.sums().time), (2, Nanos(1)));
        // The same, of switches that were not sampled.
        all.left(Nanos(8000), PID, TID, false);
        all.left(Nanos(9000), PID, TID, false);
        assert_eq!(all.came_back(Nanos(9007), TID), []);
        assert_eq!((all.sums().unpaired, all.sums().time), (3, Nanos(8)));
    }

    #[test]
    fn idle_tasks_do_not_wait_and_limits_leave_out() {
        let (shortest, longest) = (Nanos(5), Nanos(10));
        let kept = Waits { shortest, longest, ..Waits::default() };
        let mut all = OffCpu::new(kept);
        for (tid, duration) in [(1, 4), (2, 5), (3, 10), (4, 11)] {
            let pid = Pid(tid);
            all.sampled(pid, Tid(tid), "read");
            all.left(Nanos(100), pid, Tid(tid), false);
            let shown = !all.came_back(Nanos(100 + duration), Tid(tid)).is_empty();
            assert_eq!(shown, (5..=10).contains(&duration));
        }
        assert_eq!(all.sums().left_out, 2);
        all.sampled(Pid(0), Tid(0), "idle");
        all.left(Nanos(200), Pid(0), Tid(0), false);
        assert_eq!(all.came_back(Nanos(207), Tid(0)), []);
    }
}
