//! When the next sample of each CPU is taken: at random intervals around the mean.
//!
//! A fixed interval beats with a program's own rhythm: one that alternates two functions 99 times
//! a second is seen at 99 Hz in one of them only. So the interval is drawn anew from 0.5 to 1.5
//! times its mean, after each sample where samples are few, and for a batch of them where they are
//! many. The draws do not depend on what the target does, so each sample stands for the mean.
//!
//! An interval that is set anew begins when it is set, which is later than the sample by as long as
//! flame took to wake up; and a timer that flame was too late for has gone on with the old interval.
//! Both would bend the mean. So the pacer keeps to a schedule instead:
//!
//! ```text
//!   scheduled   |     d1     |  d2  |      d3      |      each sample uses up one point of it
//!   samples     s0           s1     .
//!   flame           wakes up --^ sets what is left until the end of d2
//! ```
//!
//! All times are on the clock by which the CPU's timer runs: for the events of a control group that
//! is the time in which its tasks run. What this module does not do is talk to the kernel: it says
//! what to set.

use flame_profile::Nanos;

/// The shortest and the longest interval that is drawn, in parts of the mean.
const INTERVALS: [f64; 2] = [0.5, 1.5];

/// The same of rates, of batches of samples: how many samples come varies by them.
const RATES: [f64; 2] = [0.7, 1.3];

/// What is set is at least the mean divided by that: a schedule that is behind is caught up with
/// soon, but not in a burst.
const AT_LEAST: u64 = 8;

/// A schedule that is behind by more intervals than that is given up: the CPU was away. One that is
/// ahead never is, or every time that flame came late to an interval drawn short would leave more
/// samples than there should be.
const FORGIVEN: u64 = 8;

/// A timer that should have fired so long ago and left no sample fired in vain, or did not.
pub(crate) const GRACE: Nanos = Nanos(1_000_000);

/// A batch is taken to last for at most so many mean intervals.
const LONGEST_BATCH: f64 = 1000.0;

/// What is set is at most so many times the mean.
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

/// What is to come, and what came so far.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// When the next sample is due, where flame looks after each.
    due: Nanos,
    /// When the interval was set last.
    set_at: Nanos,
    /// Samples since then.
    since_draw: u64,
    /// By how many samples more came in batches than should have.
    surplus: f64,
    /// The interval that is set, and when it was set or its timer fired last.
    interval: Nanos,
    since: Nanos,
}

impl Schedule {
    fn new(now: Nanos, first: Nanos) -> Schedule {
        let due = Nanos(now.0 + first.0);
        Schedule { due, set_at: now, since_draw: 0, surplus: 0.0, interval: first, since: now }
    }
}

/// What was seen of a CPU since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Samples, of whatever task.
    pub(crate) samples: u64,
    /// The time of the last one.
    pub(crate) last: Nanos,
    /// How often the timer should have fired in between and left no sample, and until when: see
    /// [`Pacer::passed`].
    pub(crate) passed: u64,
    pub(crate) passed_until: Nanos,
    /// Whether the kernel dropped records or stopped the event: how many samples there should have
    /// been is not known then.
    pub(crate) disturbed: bool,
    /// For how long flame itself has run on the CPU. It does so right after a sample, so that no
    /// sample ever hits it: on its schedule that time does not pass, or what else runs there would
    /// be sampled too often, by 7 % at 999 Hz.
    pub(crate) own: Nanos,
}

impl Pacer {
    /// For intervals of that mean, drawn once a `batch` of samples (at least 1), from a seed.
    pub(crate) fn new(mean: Nanos, batch: u64, seed: Option<u64>) -> Pacer {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Pacer { mean, batch: batch.max(1), random, schedule: Schedule::new(Nanos(0), mean) }
    }

    /// Starts the schedule; returns the first interval to set. It is anything up to a whole one, so
    /// that all moments of a recording are as likely to be sampled; in batches, where it stays until
    /// flame looks, it is one of those.
    pub(crate) fn start(&mut self, now: Nanos) -> Nanos {
        let first = match self.batch {
            1 => (self.random.f64() * self.mean.0 as f64) as u64,
            _ => (self.mean.0 as f64 / self.draw_part(RATES)) as u64,
        };
        let first = self.at_least(first);
        self.schedule = Schedule::new(now, first);
        first
    }

    /// Takes in what was seen of the CPU; returns the interval to set now, if one is to be set.
    pub(crate) fn next(&mut self, seen: Seen, now: Nanos) -> Option<Nanos> {
        let mut state = self.schedule;
        state.due.0 += seen.own.0;
        state.set_at.0 += seen.own.0;
        if seen.samples + seen.passed == 0 && !seen.disturbed {
            self.schedule = state;
            return None;
        }
        let interval = match self.batch {
            1 => Some(self.after_a_sample(&mut state, seen, now)),
            _ => self.for_a_batch(&mut state, seen, now),
        };
        if let Some(interval) = interval {
            (state.interval, state.since) = (interval, now);
        }
        self.schedule = state;
        interval
    }

    /// Takes note of a sample: what should have come before it, and did not, is written into `seen`.
    /// Returns whether the sample is a stray one, which no point of the schedule is behind.
    ///
    /// A virtual machine's timer may leave no samples while its CPU is idle, and goes on at the
    /// interval that it was set to last, which may be short. What comes by that when a task runs
    /// there again is stray; what was due in between must not be made up for in that task: together
    /// they had one that rests half of the time come out with 1.4 times its CPU time.
    pub(crate) fn note(&mut self, time: Nanos, seen: &mut Seen) -> bool {
        let state = &mut self.schedule;
        let interval = state.interval.0;
        let waited = time.0.saturating_sub(state.since.0);
        let (fired, off) = ((waited + interval / 8) / interval, (waited + interval / 8) % interval);
        state.since = state.since.max(time);
        // One that fires late, of a machine that stood still, is in step with nothing; and short
        // intervals begin later than flame says, when it was kept from setting them.
        if fired < 2 || off > interval / 4 || waited < interval + GRACE.0 {
            return false;
        }
        seen.passed += fired - 1;
        seen.passed_until = seen.passed_until.max(time);
        self.batch == 1
    }

    /// The same for what should have come by now. An interval that stays as it is through idle
    /// times may be in step with them: it, too, is to be drawn anew each time.
    pub(crate) fn note_silence(&mut self, now: Nanos, seen: &mut Seen) {
        let state = &mut self.schedule;
        let until = Nanos(now.0.saturating_sub(GRACE.0));
        let fired = until.0.saturating_sub(state.since.0) / state.interval.0;
        if fired > 0 {
            state.since.0 += fired * state.interval.0;
            seen.passed += fired;
            seen.passed_until = seen.passed_until.max(until);
        }
    }

    /// When the next sample is due, where flame looks after each.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let due = Nanos(self.schedule.since.0 + self.schedule.interval.0);
        Some(due).filter(|_| self.batch == 1)
    }

    /// What is left until the next point of the schedule.
    fn after_a_sample(&mut self, state: &mut Schedule, seen: Seen, now: Nanos) -> Nanos {
        for _ in 0..seen.samples {
            state.due.0 += self.draw();
        }
        if seen.passed_until.0.saturating_sub(state.due.0) <= FORGIVEN * self.mean.0 {
            while state.due < seen.passed_until {
                state.due.0 += self.draw();
            }
        }
        let behind = now.0.saturating_sub(state.due.0);
        if seen.disturbed || behind > FORGIVEN * self.mean.0 {
            state.due = Nanos(seen.last.0.max(now.0.saturating_sub(self.mean.0)) + self.draw());
        }
        self.at_least(state.due.0.saturating_sub(now.0))
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
        Some(self.at_least(interval as u64))
    }

    /// An interval.
    fn draw(&mut self) -> u64 {
        (self.draw_part(INTERVALS) * self.mean.0 as f64) as u64
    }

    /// Which part of its mean an interval or a rate takes.
    fn draw_part(&mut self, [least, most]: [f64; 2]) -> f64 {
        least + self.random.f64() * (most - least)
    }

    fn at_least(&self, interval: u64) -> Nanos {
        Nanos(interval.clamp(self.mean.0 / AT_LEAST, self.mean.0 * AT_MOST))
    }
}

#[cfg(test)]
mod tests;
