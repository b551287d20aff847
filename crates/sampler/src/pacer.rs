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
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 1.5;

/// What is set is at least the mean divided by that: a schedule that is behind is caught up with
/// soon, but not in a burst.
const AT_LEAST: u64 = 8;

/// A schedule that is behind by more batches than that is given up: the CPU was away. One that is
/// ahead never is, or every time that flame came late to an interval drawn short would leave more
/// samples than there should be.
const FORGIVEN: u64 = 8;

/// What is set is at most so many times the mean.
const AT_MOST: u64 = 8;

/// Draws the intervals of all CPUs.
#[derive(Debug)]
pub(crate) struct Pacer {
    mean: Nanos,
    /// Samples of a CPU between two draws: 1 where flame looks after each.
    batch: u64,
    random: fastrand::Rng,
    lanes: Vec<Lane>,
}

/// The state of one CPU.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// When the next sample is due.
    due: Nanos,
    /// Samples since the last draw.
    since_draw: u64,
}

/// What was seen of a CPU since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Samples, of whatever task.
    pub(crate) samples: u64,
    /// The time of the last one.
    pub(crate) last: Nanos,
    /// Whether the kernel dropped records or stopped the event: how many samples there should have
    /// been is not known then.
    pub(crate) disturbed: bool,
}

impl Pacer {
    /// For intervals of that mean, drawn once a `batch` of samples (at least 1), from a seed.
    pub(crate) fn new(mean: Nanos, batch: u64, seed: Option<u64>) -> Pacer {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Pacer { mean, batch: batch.max(1), random, lanes: Vec::new() }
    }

    /// Starts the schedule of one more CPU; returns the first interval to set. It is anything up to
    /// a whole one, so that all moments of a recording are as likely to be sampled.
    pub(crate) fn start(&mut self, now: Nanos) -> Nanos {
        let part = self.random.f64();
        let first = self.at_least((part * self.mean.0 as f64) as u64);
        self.lanes.push(Lane { due: Nanos(now.0 + first), since_draw: 0 });
        Nanos(first)
    }

    /// Starts the schedule of a CPU anew that came back, or of one more; returns the interval to set.
    pub(crate) fn restart(&mut self, lane: usize, now: Nanos) -> Nanos {
        match self.lanes.get_mut(lane) {
            Some(state) => {
                *state = Lane { due: Nanos(now.0 + self.mean.0), since_draw: 0 };
                self.mean
            }
            None => self.start(now),
        }
    }

    /// Takes in what was seen of a CPU; returns the interval to set now, if one is to be set.
    pub(crate) fn next(&mut self, lane: usize, seen: Seen, now: Nanos) -> Option<Nanos> {
        let mut state = *self.lanes.get(lane)?;
        if seen.samples == 0 && !seen.disturbed {
            return None;
        }
        for _ in 0..seen.samples {
            state.due.0 += self.draw();
        }
        state.since_draw += seen.samples;
        let far = FORGIVEN * self.mean.0.saturating_mul(self.batch);
        let behind = now.0.saturating_sub(state.due.0);
        if seen.disturbed || behind > far {
            state.due = Nanos(seen.last.0.max(now.0.saturating_sub(self.mean.0)) + self.draw());
        }
        let set = (state.since_draw >= self.batch || seen.disturbed).then(|| {
            state.since_draw = 0;
            self.interval(state, seen.samples, now)
        });
        self.lanes[lane] = state;
        set
    }

    /// The interval until the next draw, before which about as many samples will come as before.
    fn interval(&mut self, state: Lane, samples: u64, now: Nanos) -> Nanos {
        let left = state.due.0 as i128 - i128::from(now.0);
        if self.batch == 1 {
            return Nanos(self.at_least(u64::try_from(left).unwrap_or(0)));
        }
        // All samples up to the next draw come at this interval: it is drawn, and what the schedule
        // is ahead or behind by is spread over them.
        let drawn = i128::from(self.draw());
        let ahead = left - i128::from(self.mean.0);
        let interval = drawn + ahead / i128::from(samples.max(self.batch));
        Nanos(self.at_least(u64::try_from(interval).unwrap_or(0)))
    }

    fn draw(&mut self) -> u64 {
        let part = SHORTEST + self.random.f64() * (LONGEST - SHORTEST);
        (part * self.mean.0 as f64) as u64
    }

    fn at_least(&self, interval: u64) -> u64 {
        interval.clamp(self.mean.0 / AT_LEAST, self.mean.0 * AT_MOST)
    }
}

#[cfg(test)]
mod tests;
