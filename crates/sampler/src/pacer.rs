//! When the next sample of each CPU is taken: at random, as likely at one moment as at any other.
//!
//! Two things bend what samples of a CPU say. A fixed interval beats with a program's own rhythm: one
//! that alternates two functions 99 times a second is seen at 99 Hz in one of them only. And each sample
//! wakes a reader, after which the scheduler chooses anew who runs: what it chooses runs first in the
//! interval, and who comes next has the end of it. Of five busy threads on a CPU, one that made system
//! calls was seen with 0.75 of its time at 999 Hz and 0.9 at 99 Hz, at a fixed interval and at intervals
//! from 0.5 to 1.5 of the mean alike.
//!
//! Both are over where the next sample is as likely in each moment, however long the last one ago:
//! intervals are drawn from the exponential distribution, anew after each sample. How many samples
//! come would vary by the root of their number, then; so after long intervals the rate is a little higher,
//! and lower after short ones. Nothing that the target does has a part in what is drawn.
//!
//! What flame sets when it gets to run depends on when it does: on a CPU that is idle, which it looks after now and
//! then, and beside tasks that go before it, an interval stays for many samples instead, and some of them are left out.
//!
//! Above a thousand samples a second nobody is woken by each, and intervals are drawn for batches.
//!
//! All times are on the clock by which the CPU's timer runs: for the events of a control group that
//! is the time in which its tasks run. What this module does not do is talk to the kernel: it says
//! what to set.

use flame_profile::{Nanos, whole};

/// When intervals were so short that there were this many samples too many, the rate is half of what it
/// should be, and as much higher when there were as many too few.
const SURPLUS: f64 = 15.0;

/// A CPU whose timer fired in vain so often in a row has nothing to do, and is looked after less often. What runs for
/// half of each mean interval or longer hardly ever leaves that many without a sample.
const SILENT_LOOKS: u32 = 20;

/// The intervals then, and where flame is kept away, in parts of the mean. They go on for many times, so that no single
/// one may be more likely than others: what begins in time with it would always be seen or never.
const STEADY: [f64; 2] = [0.5, 1.0];

/// For how long such an interval stays, in parts of [`STAYS`], or of [`STAYS_FOR`] mean intervals if that is longer.
/// Samples do not end it: what a burst does first would be seen too often, or what it does next too seldom.
const PARTS: [f64; 2] = [0.5, 1.5];
const STAYS: Nanos = Nanos(100_000_000);
const STAYS_FOR: u64 = 20;

/// The lowest and the highest rate of a batch of samples, in parts of the mean.
const RATES: [f64; 2] = [0.7, 1.3];

/// What is set is at least the mean divided by that, or so long. Code in the kernel may not be interrupted for some
/// hundred microseconds, and the timer goes on: at a 32nd of the mean of 999 Hz the samples of a program
/// that forks took longer than what they were of, and 640 came in a row. But what runs in a short turn right after a look is not
/// seen meanwhile: at an eighth of the mean of 249 Hz, threads that yield had half of their time. So it is less where flame looks
/// soon: so many times what it took at most to come lately. On an emulated machine, which takes a millisecond, rings were full.
const AT_LEAST: u64 = 8;
const SHORTEST: Nanos = Nanos(125_000);
const TIMES_LAG: u64 = 3;

/// By which part of it that fades with each sample.
const LAG_FADES: u64 = 16;

/// What it is taken for at first, in nanoseconds.
const UNKNOWN_LAG: u64 = 10_000_000;

/// A timer that is so late was not set when flame says.
const LATE: Nanos = Nanos(200_000);

/// Flame that sees a sample later than the mean divided by that is kept away by what runs.
const KEPT_AWAY: u64 = 8;

/// So many intervals that stay are set when it was kept away last: it will be so again.
const REMEMBERED: u32 = 5;

/// A timer that should have fired so long ago and left no sample fired in vain, or did not. What runs meanwhile is
/// not sampled; and the timer of who looks, on the same CPU, does not fire before.
pub(crate) const GRACE: Nanos = Nanos(20_000);

/// A batch is taken to last for at most this many mean intervals.
const LONGEST_BATCH: f64 = 1000.0;

/// What is set is at most this many times the mean.
const AT_MOST: u64 = 8;

/// Draws the intervals of one CPU.
#[derive(Debug)]
pub(crate) struct Pacer {
    mean: Nanos,
    /// Samples between two draws: 1 where flame looks after each.
    batch: u64,
    random: fastrand::Rng,
    schedule: Schedule,
}

/// What is set, and what came so far.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// When the interval was set last.
    set_at: Nanos,
    /// Samples since then.
    since_draw: u64,
    /// By how many samples more came in batches than should have, or, by the intervals drawn, than are to.
    surplus: f64,
    /// Whether the timer has not fired since its interval was set, as far as that is known.
    is_fresh: bool,
    /// Looks in a row that found no sample.
    silent_looks: u32,
    /// Until when the interval stays, if it does.
    stays_until: Option<Nanos>,
    /// Whether there was a sample since then, and whether flame was kept away from one.
    was_busy: bool,
    was_kept_away: bool,
    /// How many intervals that stay are still to be set.
    remembered: u32,
    /// For how long flame has run since the timer fired last.
    own: Nanos,
    /// The interval that is set, and when it was set or its timer fired last.
    interval: Nanos,
    since: Nanos,
    /// The interval that was set before.
    before: Nanos,
    /// How long after samples flame looked at most, of late.
    lag: u64,
}

impl Schedule {
    fn new(now: Nanos, first: Nanos) -> Schedule {
        let (set_at, since) = (now, now);
        Schedule {
            set_at,
            since_draw: 0,
            surplus: 0.0,
            is_fresh: true,
            silent_looks: 0,
            stays_until: None,
            was_busy: false,
            was_kept_away: false,
            remembered: 0,
            own: Nanos(0),
            interval: first,
            since,
            before: first,
            lag: UNKNOWN_LAG,
        }
    }
}

/// What was seen of a CPU since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Samples, of whatever task.
    pub(crate) samples: u64,
    /// The time of the last one, or of one too many behind it.
    pub(crate) last: Nanos,
    /// How far behind its time the last one came, if it is known when that was.
    pub(crate) late: Nanos,
    /// How often the timer should have fired in between and left no sample.
    pub(crate) passed: u64,
    /// How long the next sample is to wait besides, since the CPU was idle before this one. It stands for an
    /// interval, of which half passed before there was something to sample, on average.
    pub(crate) ahead: Nanos,
    /// Whether flame was kept away from a sample.
    pub(crate) was_kept_away: bool,
    /// Samples that are one too many.
    pub(crate) left_out: u64,
    /// Samples, one too many or not, that came before the interval was set that is set now.
    pub(crate) early: u64,
    /// Whether the kernel dropped records or stopped the event: how many samples there should have
    /// been is not known then.
    pub(crate) disturbed: bool,
    /// For how long flame itself has run on the CPU. It does so right after a sample, so that no
    /// sample ever hits it: that time is none in which samples are missing, or what else runs there
    /// would be sampled too often, by 7 % at 999 Hz.
    pub(crate) own: Nanos,
}

impl Pacer {
    /// For intervals of that mean, drawn once a `batch` of samples (at least 1), from a seed.
    pub(crate) fn new(mean: Nanos, batch: u64, seed: Option<u64>) -> Pacer {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Pacer { mean, batch: batch.max(1), random, schedule: Schedule::new(Nanos(0), mean) }
    }

    /// Starts; returns the first interval to set. In batches, where it stays until flame looks, it is one
    /// of those.
    pub(crate) fn start(&mut self, now: Nanos) -> Nanos {
        let first = match self.batch {
            1 => whole(-(1.0 - self.random.f64()).ln() * self.mean.0 as f64),
            _ => whole(self.mean.0 as f64 / self.draw_part(RATES)),
        };
        let first = self.at_least(first);
        // What came by now, in which the reader took its time to start, came by the interval that the event was opened with.
        self.schedule = Schedule { before: self.mean, ..Schedule::new(now, first) };
        first
    }

    /// Goes on in batches of so many samples, or sample by sample; returns the interval to set now.
    pub(crate) fn change(&mut self, batch: u64, now: Nanos) -> Nanos {
        self.batch = batch;
        let before = self.schedule.interval;
        let first = self.start(now);
        self.schedule.before = before;
        first
    }

    /// Takes in what was seen of the CPU; returns the interval to set now, if one is to be set.
    pub(crate) fn next(&mut self, seen: Seen, now: Nanos) -> Option<Nanos> {
        let mut state = self.schedule;
        state.set_at.0 += seen.own.0;
        state.own.0 += seen.own.0;
        // After early samples the timer has not fired since its interval was set: that stays.
        if seen.samples + seen.passed + seen.left_out == seen.early && !seen.disturbed {
            self.schedule = state;
            return None;
        }
        state.was_busy |= seen.samples + seen.left_out > 0 || seen.disturbed;
        state.was_kept_away |= seen.was_kept_away;
        if state.stays_until.is_some_and(|until| now < until) {
            self.schedule = state;
            return None;
        }
        let is_busy = std::mem::take(&mut state.was_busy);
        state.remembered = match std::mem::take(&mut state.was_kept_away) {
            true => REMEMBERED,
            false => state.remembered.saturating_sub(1),
        };
        state.silent_looks = if is_busy { 0 } else { state.silent_looks.saturating_add(1) };
        let is_steady = state.remembered > 0 || state.silent_looks >= SILENT_LOOKS;
        state.stays_until = None;
        let interval = match self.batch {
            1 if is_steady => Some(self.steady(&mut state, now)),
            1 if !is_busy => Some(self.after_silence(&mut state, now)),
            1 => Some(self.after_a_sample(&mut state, seen, now)),
            _ => self.for_a_batch(&mut state, seen, now),
        };
        if let Some(interval) = interval {
            (state.before, state.interval) = (state.interval, interval);
            (state.since, state.is_fresh, state.own) = (now, state.stays_until.is_none(), Nanos(0));
        }
        self.schedule = state;
        interval
    }

    /// The interval is set by now, on the clock of samples: where that took the kernel its time, nothing is overdue before.
    pub(crate) fn was_set(&mut self, now: Nanos) {
        self.schedule.since = self.schedule.since.max(now);
    }

    /// Takes note of a sample, and of when flame looked: what should have come before it, and did not, is written into
    /// `seen`. Returns whether the sample is one too many.
    ///
    /// A virtual machine's timer may leave no samples while its CPU is idle, and goes on at the
    /// interval that it was set to last; so does one that flame is late to look after. In a moment of
    /// that time a sample is as likely as the interval is short: of the samples of short ones some are
    /// left out, so that in each moment it is as likely as in any other.
    pub(crate) fn note(&mut self, time: Nanos, looked: Nanos, seen: &mut Seen) -> bool {
        let state = &mut self.schedule;
        seen.last = seen.last.max(time);
        let lag = looked.0.saturating_sub(time.0);
        state.lag = (state.lag - state.lag / LAG_FADES).max(lag);
        // It came while flame was at work on the one before, by the interval that went on meanwhile.
        let came_before = state.is_fresh && time < state.since;
        seen.early += u64::from(came_before && self.batch == 1);
        let is_left_out = match came_before {
            true => self.random.f64() * self.mean.0 as f64 > state.before.0 as f64,
            false => self.is_one_too_many(time, looked, seen),
        };
        let is_left_out = self.batch == 1 && is_left_out;
        seen.left_out += u64::from(is_left_out);
        is_left_out
    }

    /// The same for a sample of the interval that is set.
    fn is_one_too_many(&mut self, time: Nanos, looked: Nanos, seen: &mut Seen) -> bool {
        let state = &mut self.schedule;
        let interval = state.interval.0;
        let waited = time.0.saturating_sub(state.since.0);
        let (fired, off) = ((waited + interval / 8) / interval, (waited + interval / 8) % interval);
        state.since = state.since.max(time);
        let is_first = std::mem::take(&mut state.is_fresh);
        let own = std::mem::take(&mut state.own).0;
        // One that fires late, of a machine that stood still, is in step with nothing; and short
        // intervals begin later than flame says, when it was kept from setting them: the shortest are over as often by chance.
        let is_short = interval < self.mean.0 / AT_LEAST;
        let in_vain = fired >= 2 && off <= interval / 4 && waited >= interval + LATE.0 && !is_short;
        if in_vain {
            seen.passed += fired - 1;
        }
        if in_vain && state.stays_until.is_none() {
            seen.ahead = Nanos(interval / 2);
        }
        let is_by_a_time = is_first && !in_vain;
        seen.late = Nanos(if is_by_a_time { waited.saturating_sub(interval) } else { 0 });
        seen.was_kept_away |= looked.0 > time.0 + LATE.0.max(self.mean.0 / KEPT_AWAY);
        // While flame itself ran, nothing else could be sampled.
        let open = if fired > 1 { interval } else { interval.saturating_sub(own) };
        !is_by_a_time && self.random.f64() * self.mean.0 as f64 > open as f64
    }

    /// The same for what should have come by now. An interval that stays as it is through idle
    /// times may be in step with them: it, too, is to be drawn anew each time.
    pub(crate) fn note_silence(&mut self, now: Nanos, seen: &mut Seen) {
        let state = &mut self.schedule;
        let until = Nanos(now.0.saturating_sub(GRACE.0));
        let fired = until.0.saturating_sub(state.since.0) / state.interval.0;
        if fired > 0 {
            state.since.0 += fired * state.interval.0;
            (state.is_fresh, state.own) = (false, Nanos(0));
            seen.passed += fired;
        }
    }

    /// Whether an interval is drawn for each sample.
    pub(crate) fn is_for_each(&self) -> bool {
        self.batch == 1
    }

    /// The mean of the intervals.
    pub(crate) fn mean(&self) -> Nanos {
        self.mean
    }

    /// When to look, sample or not, where flame looks after each.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let state = self.schedule;
        let due = state.stays_until.unwrap_or(Nanos(state.since.0 + state.interval.0));
        Some(due).filter(|_| self.batch == 1)
    }

    /// An interval that stays: it does not depend on flame or on what is sampled when the next sample comes, so that each
    /// moment is as likely where flame does not run for long, be it since nothing is to be done or since it may not.
    fn steady(&mut self, state: &mut Schedule, now: Nanos) -> Nanos {
        let stays = STAYS.0.max(STAYS_FOR * self.mean.0) as f64;
        state.stays_until = Some(Nanos(now.0 + whole(self.draw_part(PARTS) * stays)));
        Nanos(whole(self.draw_part(STEADY) * self.mean.0 as f64))
    }

    /// The interval on a CPU that was idle when its timer fired. It began then, and not when flame came to look.
    fn after_silence(&mut self, state: &mut Schedule, now: Nanos) -> Nanos {
        let interval = whole(self.draw_interval(state) * self.mean.0 as f64);
        let interval = self.at_least(interval);
        let passed = now.0.saturating_sub(state.since.0);
        Nanos(interval.0.saturating_sub(passed).max(self.least() / 2))
    }

    /// The interval until the next sample. What passed since the last one was due, in the kernel and not in flame, is
    /// time in which no sample could come: the next is due the sooner.
    fn after_a_sample(&mut self, state: &mut Schedule, seen: Seen, now: Nanos) -> Nanos {
        let passed = now.0.saturating_sub(seen.last.0).saturating_sub(seen.own.0) + seen.late.0;
        // More than that is a CPU that was away.
        let mean =
            self.mean.0 - Some(passed).filter(|passed| *passed < self.mean.0 / 2).unwrap_or(0);
        let part = self.draw_interval(state);
        Nanos(self.at_least(whole(part * mean as f64)).0 + seen.ahead.0)
    }

    /// The interval of the samples until the next look. A batch lasts for a time, and not for a
    /// number of samples, which would make slow ones last longer: so it is the rate that is drawn,
    /// and its mean holds without a schedule, however late flame looks. The first sample comes a whole interval after it is set, wherever
    /// between two samples that was: half a sample a batch is lost by that, and allowed for. What
    /// is off all the same is made good by a tenth of the rate at most, lest a flame that is too
    /// slow for the samples that it gets is given more of them.
    fn for_a_batch(&mut self, state: &mut Schedule, seen: Seen, now: Nanos) -> Option<Nanos> {
        state.since_draw += seen.samples + seen.passed;
        let mean = self.mean.0 as f64;
        let lasted = now.0.saturating_sub(state.set_at.0) as f64;
        if lasted < self.batch as f64 * mean / 2.0 && !seen.disturbed {
            return None;
        }
        state.surplus += state.since_draw as f64 - lasted / mean;
        state.surplus = if seen.disturbed { 0.0 } else { state.surplus.clamp(-50.0, 50.0) };
        (state.since_draw, state.set_at) = (0, now);
        let rate = self.draw_part(RATES);
        let lasts = lasted.clamp(self.batch as f64 * mean, LONGEST_BATCH * mean);
        let interval = lasts / (lasts * rate / mean + 0.5);
        let interval = interval * (1.0 + (state.surplus / 100.0).clamp(-0.1, 0.1));
        Some(self.at_least(whole(interval)))
    }

    /// An interval, in parts of the mean.
    fn draw_interval(&mut self, state: &mut Schedule) -> f64 {
        let rate = 1.0 - state.surplus / (2.0 * SURPLUS);
        let least = self.least() as f64 / self.mean.0 as f64;
        let part = (-(1.0 - self.random.f64()).ln() / rate).max(least);
        state.surplus = (state.surplus + 1.0 - part).clamp(-SURPLUS, SURPLUS);
        part
    }

    /// Which part of its mean a rate takes.
    fn draw_part(&mut self, [least, most]: [f64; 2]) -> f64 {
        least + self.random.f64() * (most - least)
    }

    fn at_least(&self, interval: u64) -> Nanos {
        Nanos(interval.clamp(self.least(), self.mean.0 * AT_MOST))
    }

    fn least(&self) -> u64 {
        (self.mean.0 / AT_LEAST).min((TIMES_LAG * self.schedule.lag).max(SHORTEST.0))
    }
}

#[cfg(test)]
mod tests;
