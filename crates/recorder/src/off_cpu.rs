//! Time that threads spend off their CPUs: each switch away is paired with the return.
//!
//! The kernel samples a thread as it leaves its CPU, which shows where it waits, and then says of
//! each switch whether the thread waits or was preempted. The sample stands for the time until the
//! thread runs again.
//!
//! Of a thread that switches very often only some switches are sampled, but each is told of, so that
//! the sum is always known. What passed unsampled is shared out among the thread's samples of about the
//! same length (see lengths.rs) and kind (see kinds.rs), by their times: so a
//! long wait never stands for short ones nor they for it, whatever happened to be sampled.

use flame_profile::{Nanos, OffCpuTime, Pid, Tid, whole};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::config::{States, Waits, Wakers};
pub(crate) use kinds::LONG_WAIT;
use kinds::{KeptBack, Kind};
use lengths::{Sampled, Shares};

mod kinds;
mod lengths;

/// Follows the threads of a recording. `S` is a sample that does not know yet for how long.
///
/// Where it is asked for, samples of who wakes threads are paired with the wait that they end. What was
/// sampled is then what has both, and what is left of a class is shared out among those.
#[derive(Debug)]
pub(crate) struct OffCpu<S> {
    kept: Waits,
    begun: Nanos,
    away: FxHashMap<Tid, Away<S>>,
    /// Since when it is not known of threads whether they have a CPU.
    unseen: FxHashMap<Tid, Nanos>,
    /// They may be switched away once more, for ever.
    ended: FxHashSet<Tid>,
    /// By thread.
    kept_back: FxHashMap<Tid, KeptBack<S>>,
    sums: OffCpuTime,
    /// How far the time of a part of all may be off, by what was not sampled: the variance.
    variance: f64,
}

/// A thread that has left its CPU, or is about to.
#[derive(Debug)]
struct Away<S> {
    pid: Pid,
    since: Option<Nanos>,
    preempted: bool,
    before: bool,
    /// For how long it was kept from its CPU while it could have gone on, and since when it is: where it is known
    /// apart that something has begun.
    kept: Nanos,
    kept_since: Option<Nanos>,
    /// It lost its CPU since it has begun something: that is sampled whatever else is.
    is_switched: bool,
    /// It was found waiting in a state that is asked for.
    found: bool,
    sample: Option<S>,
    /// Somebody tried to look at it.
    is_looked_at: bool,
    /// Where it was then, and when that was: right if it had not run by then.
    looked_at: Option<(Nanos, S)>,
    /// When it was woken, and who did it.
    woken: Option<(Nanos, S)>,
    /// The end of its thread may have been among records that were lost.
    is_doubtful: bool,
    /// How often its thread had got a CPU when it was found waiting, before the recording.
    turns: Option<u64>,
    /// Its return may have been among records that were lost; it has not, if its thread got no CPU since.
    is_lost: bool,
}

impl<S> Away<S> {
    fn since(pid: Pid, since: Nanos) -> Away<S> {
        Away {
            pid,
            since: Some(since),
            preempted: false,
            before: false,
            kept: Nanos(0),
            kept_since: None,
            is_switched: false,
            found: false,
            sample: None,
            is_looked_at: false,
            looked_at: None,
            woken: None,
            is_doubtful: false,
            turns: None,
            is_lost: false,
        }
    }

    /// Found waiting when the recording begins.
    fn found(pid: Pid, now: Nanos, turns: Option<u64>) -> Away<S> {
        Away { before: true, found: true, turns, ..Away::since(pid, now) }
    }

    /// Whether it was not over when its thread showed up again.
    fn is_unseen(&self) -> bool {
        !self.before || self.is_lost
    }

    /// What is known of it when it is over, and whether that does not depend on how long it lasted: a look counts until
    /// `last_look`, if at all, while of what was sampled it does not matter when it was.
    fn seen(self, now: Nanos, last_look: Option<Nanos>, wakers: Wakers) -> (Seen<S>, bool) {
        let is_known = self.before || self.sample.is_some();
        let counts = |time| time < now && (is_known || last_look.is_some());
        let looked_at = self.looked_at.filter(|(time, _)| counts(*time));
        let is_late = looked_at.as_ref().is_some_and(|(time, _)| last_look < Some(*time));
        let stack = looked_at.map(|(_, sample)| sample).or(self.sample);
        let stack = stack.filter(|_| wakers != Wakers::Alone);
        (Seen { stack, waker: self.woken.map(|(_, waker)| waker) }, is_known || !is_late)
    }

    /// Whether it waits, nobody knows where, and nobody has looked. A sample may lack what matters.
    fn is_somewhere(&self, lacks: impl Fn(&S) -> bool) -> bool {
        let is_sampled = self.sample.as_ref().is_some_and(|sample| !lacks(sample));
        let is_known = is_sampled || self.is_looked_at;
        self.since.is_some() && !self.preempted && !is_known
    }
}

/// What was sampled of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen<S> {
    /// Where the thread waited.
    pub(crate) stack: Option<S>,
    /// Who woke it.
    pub(crate) waker: Option<S>,
}

/// A time that a thread spent off CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spell<S> {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) duration: Nanos,
    /// It could have gone on.
    pub(crate) preempted: bool,
    /// The recording ended before.
    pub(crate) is_over: bool,
    pub(crate) stack: SpellStack<S>,
}

/// What a thread did when it left its CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpellStack<S> {
    /// It was before the recording. Who was looked at and had not run by then has a sample.
    Before(Seen<S>),
    /// None of that class was sampled of the thread any more.
    NotSampled,
    Sampled(Seen<S>),
}

impl<S: Clone> OffCpu<S> {
    pub(crate) fn new(kept: Waits) -> OffCpu<S> {
        OffCpu {
            kept,
            begun: Nanos(0),
            away: FxHashMap::default(),
            unseen: FxHashMap::default(),
            ended: FxHashSet::default(),
            kept_back: FxHashMap::default(),
            sums: OffCpuTime::default(),
            variance: 0.0,
        }
    }

    /// Which waits are shown, if not all.
    pub(crate) fn states(&self) -> Option<States> {
        self.kept.states
    }

    /// What is known so far.
    pub(crate) fn sums(&self) -> OffCpuTime {
        let deviation = Nanos(whole(self.variance.sqrt()));
        OffCpuTime { deviation, ..self.sums }
    }

    /// How many waits were not sampled so far.
    pub(crate) fn unsampled_waits(&self) -> u64 {
        self.sums.waits - self.sums.sampled
    }

    /// The recording begins, while these threads wait already; how often they got a CPU by then.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        waiting: impl IntoIterator<Item = (Pid, Tid, Option<u64>)>,
    ) {
        self.begun = now;
        let found = |(pid, tid, turns)| (tid, Away::found(pid, now, turns));
        self.away.extend(waiting.into_iter().map(found));
    }

    /// Whether to look at a thread, which waits and of which it is not known where: once a wait.
    pub(crate) fn is_to_be_looked_at(&mut self, tid: Tid, lacks: impl Fn(&S) -> bool) -> bool {
        let away = self.away.get_mut(&tid).filter(|away| away.is_somewhere(lacks));
        away.map(|away| away.is_looked_at = true).is_some()
    }

    /// Whether the wait of a thread has a sample, whatever that lacks.
    pub(crate) fn is_sampled(&self, tid: Tid) -> bool {
        self.away.get(&tid).is_some_and(|away| away.sample.is_some())
    }

    /// Threads that have waited at least that long, and of which it is not known where. Where only
    /// some states are shown, they are in others.
    pub(crate) fn wait_somewhere(
        &self,
        now: Nanos,
        long: Nanos,
        lacks: impl Fn(&S) -> bool,
    ) -> Vec<(Pid, Tid)> {
        if self.kept.states.is_some() {
            return Vec::new();
        }
        let is_long = |away: &Away<S>| away.since.is_some_and(|t| now.saturating_since(t) >= long);
        let away = self.away.iter().filter(|(_, away)| away.is_somewhere(&lacks) && is_long(away));
        let mut all: Vec<(Pid, Tid)> = away.map(|(tid, away)| (away.pid, *tid)).collect();
        all.sort_unstable();
        all
    }

    /// A thread was looked at while it waited, as far as is known: if it does not run until then, that was
    /// where.
    pub(crate) fn looked_at(&mut self, now: Nanos, tid: Tid, sample: S) {
        if let Some(away) = self.away.get_mut(&tid) {
            away.looked_at = Some((now, sample));
        }
    }

    /// What a thread has begun was sampled, whatever was seen of it on the way.
    pub(crate) fn sampled_within(&mut self, tid: Tid, sample: S) {
        if let Some(away) = self.away.get_mut(&tid) {
            (away.sample, away.looked_at) = (Some(sample), None);
        }
    }

    /// The end of what a thread has begun was sampled: that says where it was, unless it lacks what was seen on the way.
    pub(crate) fn sampled_at_end(&mut self, tid: Tid, sample: S, lacks: impl Fn(&S) -> bool) {
        let Some(away) = self.away.get_mut(&tid) else { return };
        if !lacks(&sample) {
            self.sampled_within(tid, sample);
        } else {
            away.sample.get_or_insert(sample);
        }
    }

    /// A thread was sampled, on its way from its CPU.
    pub(crate) fn sampled(&mut self, pid: Pid, tid: Tid, sample: S) {
        if !self.counts(pid, tid) {
            return;
        }
        let away = Away { since: None, sample: Some(sample), ..Away::since(pid, Nanos(0)) };
        let earlier = self.away.insert(tid, away);
        if let Some(away) = earlier.filter(Away::is_unseen) {
            self.leave_out(tid, &away);
        }
    }

    /// A thread has left its CPU.
    pub(crate) fn left(&mut self, now: Nanos, pid: Pid, tid: Tid, preempted: bool) {
        if !self.counts(pid, tid) {
            return;
        }
        let earlier = self.away.remove(&tid);
        // With a time it is of an earlier switch, from which the thread came back unseen.
        let unseen = |away: &Away<S>| away.since.is_some();
        if let Some(away) = earlier.as_ref().filter(|away| unseen(away) && away.is_unseen()) {
            self.leave_out(tid, away);
        }
        self.is_seen(now, tid);
        let before = now < self.begun;
        let found = before && earlier.as_ref().is_some_and(|away| away.found);
        let sample = earlier.filter(|away| !unseen(away)).and_then(|away| away.sample);
        self.away.insert(tid, Away { preempted, before, found, sample, ..Away::since(pid, now) });
    }

    /// A thread that has begun something is kept from its CPU from now on, or no longer.
    pub(crate) fn is_kept(&mut self, now: Nanos, tid: Tid, kept: bool) {
        let Some(away) = self.away.get_mut(&tid) else { return };
        away.is_switched = true;
        match (kept, away.kept_since) {
            (true, _) => away.kept_since = Some(now),
            (false, Some(since)) => {
                away.kept.0 += now.saturating_since(since).0;
                away.kept_since = None;
            }
            (false, None) => {}
        }
    }

    /// Whether a thread waits to be woken.
    pub(crate) fn waits(&self, tid: Tid) -> bool {
        let waits =
            |away: &Away<S>| away.since.is_some() && !away.preempted && away.woken.is_none();
        self.away.get(&tid).is_some_and(waits)
    }

    /// A thread that waits was woken.
    pub(crate) fn woken(&mut self, now: Nanos, tid: Tid, waker: S) {
        if let Some(away) = self.away.get_mut(&tid) {
            away.woken = Some((now, waker));
        }
    }

    /// A thread runs again: what is known of times off CPU by that.
    pub(crate) fn came_back(&mut self, now: Nanos, tid: Tid) -> Vec<Spell<S>> {
        let away = self.away.remove(&tid);
        away.iter().filter(|away| away.is_lost).for_each(|away| self.leave_out(tid, away));
        self.is_seen(now, tid);
        let away = away.filter(|away| !away.is_lost);
        away.map_or_else(Vec::new, |away| self.spells(now, tid, away, false))
    }

    /// What an end of a wait tells; with `is_over`, it is that of the recording.
    fn spells(&mut self, now: Nanos, tid: Tid, away: Away<S>, is_over: bool) -> Vec<Spell<S>> {
        let (pid, preempted) = (away.pid, away.preempted);
        let Some(since) = away.since else {
            self.sums.unpaired += 1;
            return Vec::new();
        };
        let wakers = self.kept.wakers;
        // Of another state than those that are asked for.
        if self.kept.states.is_some() && !away.found && away.sample.is_none() {
            return Vec::new();
        }
        // Who could have gone on is not woken.
        if now <= self.begun || preempted && wakers == Wakers::Alone {
            return Vec::new();
        }
        let duration = now.saturating_since(since.max(self.begun));
        if duration < self.kept.shortest || duration > self.kept.longest {
            self.sums.left_out += 1;
            return Vec::new();
        }
        self.sums.time.0 += duration.0;
        let spell = |time, stack| {
            let duration = Nanos(time);
            vec![Spell { pid, tid, duration, preempted, is_over, stack }]
        };
        let asleep = match &away.woken {
            Some((woken, _)) if wakers == Wakers::Alone => {
                woken.saturating_since(since.max(self.begun))
            }
            _ => duration,
        };
        let kind = Kind::of(duration, away.is_switched, preempted);
        let (before, own) = (away.before, duration.0.saturating_sub(away.kept.0));
        let last_look = kind.last_look().map(|age| since.max(self.begun) + age);
        let (seen, is_fair) = away.seen(now, last_look, wakers);
        // Where the recording ends it stands for itself.
        let is_known = seen.stack.is_some() && (is_fair || is_over);
        if before {
            self.sums.before.0 += duration.0;
            return spell(asleep.0, SpellStack::Before(seen));
        }
        self.sums.waits += 1;
        self.sums.preempted.0 += if preempted { duration.0 } else { 0 };
        let is_sampled = match wakers {
            Wakers::Unknown => is_known,
            Wakers::Alone => seen.waker.is_some() || is_over,
            Wakers::Above => is_known && (seen.waker.is_some() || preempted || is_over),
        };
        self.sums.sampled += u64::from(is_sampled);
        // What was not sampled meanwhile is over, and longer or shorter.
        if is_sampled && is_over {
            return spell(asleep.0, SpellStack::Sampled(seen));
        }
        let sampled = Sampled { seen, time: duration.0, own, shown: asleep.0 };
        let kept_back = self.kept_back.entry(tid).or_insert_with(|| KeptBack::of(pid));
        let lengths = kept_back.lengths.entry(kind).or_default();
        if !is_sampled {
            lengths.not_sampled(sampled);
            return Vec::new();
        }
        let shares = lengths.sampled(sampled);
        self.variance += lengths.take_variance();
        shared_out(pid, tid, preempted, shares).collect()
    }

    /// A thread has ended: it does not come back from its last switch. What was not sampled of it.
    pub(crate) fn ended(&mut self, tid: Tid) -> Vec<Spell<S>> {
        self.away.remove(&tid);
        self.ended.insert(tid);
        self.unsampled(tid)
    }

    /// What of a thread was not handed out yet.
    fn unsampled(&mut self, tid: Tid) -> Vec<Spell<S>> {
        let Some(KeptBack { pid, lengths }) = self.kept_back.remove(&tid) else {
            return Vec::new();
        };
        let mut spells = Vec::new();
        for (kind, mut lengths) in lengths {
            spells.extend(shared_out(pid, tid, kind.is_preempted(), lengths.rest()));
            self.variance += lengths.take_variance();
        }
        let unknown = spells.iter().filter(|spell| matches!(spell.stack, SpellStack::NotSampled));
        self.sums.not_sampled.0 += unknown.map(|spell| spell.duration.0).sum::<u64>();
        spells
    }

    /// A thread begins, maybe with the number of one that has ended.
    pub(crate) fn started(&mut self, tid: Tid) {
        self.ended.remove(&tid);
        self.away.remove(&tid);
    }

    /// Records were lost, maybe those of threads that came back.
    pub(crate) fn lost(&mut self) {
        let away = std::mem::take(&mut self.away);
        away.into_iter().for_each(|(tid, away)| {
            if away.turns.is_some() {
                self.away.insert(tid, Away { is_lost: true, ..away });
            } else {
                self.leave_out(tid, &away);
            }
        });
    }

    /// It is not known when a thread came back.
    fn leave_out(&mut self, tid: Tid, away: &Away<S>) {
        self.sums.unpaired += 1;
        if let Some(since) = away.since {
            self.unseen.entry(tid).or_insert(since.max(self.begun));
        }
    }

    /// Now it is known again whether a thread has a CPU.
    fn is_seen(&mut self, now: Nanos, tid: Tid) {
        let since = self.unseen.remove(&tid);
        self.sums.missed.0 += since.map_or(0, |since| now.saturating_since(since).0);
    }

    /// Records were lost, maybe those of threads that ended: who is away then counts if it comes back.
    pub(crate) fn doubt(&mut self) {
        self.away.values_mut().for_each(|away| away.is_doubtful = true);
    }

    /// The recording is over. Who waits has waited so far.
    ///
    /// `turns` says how often a thread has got a CPU by now.
    pub(crate) fn finish(
        &mut self,
        now: Nanos,
        turns: impl Fn(Pid, Tid) -> Option<u64>,
    ) -> Vec<Spell<S>> {
        let away = std::mem::take(&mut self.away);
        let mut all: Vec<(Tid, Away<S>)> = away.into_iter().collect();
        all.sort_unstable_by_key(|(tid, _)| *tid);
        // One that was sampled last of all has not even left.
        all.retain(|(_, away)| away.since.is_some());
        let stayed =
            |(tid, away): &(Tid, Away<S>)| !away.is_lost || turns(away.pid, *tid) == away.turns;
        let is_known = |entry: &mut (Tid, Away<S>)| !entry.1.is_doubtful && stayed(entry);
        let known = all.extract_if(.., is_known).collect::<Vec<_>>();
        all.iter().for_each(|(tid, away)| self.leave_out(*tid, away));
        let unseen = std::mem::take(&mut self.unseen).into_values();
        self.sums.missed.0 += unseen.map(|since| now.saturating_since(since).0).sum::<u64>();
        let spells = known.into_iter().flat_map(|(tid, away)| self.spells(now, tid, away, true));
        let mut spells: Vec<Spell<S>> = spells.collect();
        let mut left: Vec<Tid> = self.kept_back.keys().copied().collect();
        left.sort_unstable();
        spells.extend(left.into_iter().flat_map(|tid| self.unsampled(tid)));
        spells
    }

    /// The idle task of a CPU does not wait, and a thread that has given up its number does not come back.
    pub(crate) fn counts(&self, pid: Pid, tid: Tid) -> bool {
        pid.0 != 0 && tid.0 != u32::MAX && !self.ended.contains(&tid)
    }
}

/// What was kept back of a thread, as it is shown.
fn shared_out<S>(
    pid: Pid,
    tid: Tid,
    preempted: bool,
    shares: Shares<S>,
) -> impl Iterator<Item = Spell<S>> {
    shares.into_iter().map(move |(seen, time)| {
        let duration = Nanos(time);
        let stack = seen.map_or(SpellStack::NotSampled, SpellStack::Sampled);
        Spell { pid, tid, duration, preempted, is_over: false, stack }
    })
}

#[cfg(test)]
mod tests;
