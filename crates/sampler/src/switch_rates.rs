//! How often each thread is switched, and every how many of its switches one is sampled.
//!
//! One period for all threads would be that of the busiest: a thread that waits for a second now and
//! then would never be sampled beside one that hands bytes to and fro. So threads that are switched
//! seldom are sampled at each switch, and the others share what is left.

use std::collections::BTreeMap;

use flame_profile::{Nanos, Tid};

use crate::counting::drawn_prime;
use crate::occurrences::MOST_DRAWN;

/// Fewer samples a second than that of a busy thread say little.
const LEAST: f64 = 50.0;

/// Samples a second of all busy threads, where there are so many that each gets less: a sample takes
/// some 10 us, and a tenth of a millisecond where a script is read.
const MOST: f64 = 4000.0;

/// Below that mean period each switch is sampled.
const LEAST_MEAN: f64 = 4.0;

/// How often the rates are looked at.
const BETWEEN_LOOKS: Nanos = Nanos(100_000_000);

/// A flood is looked at from its beginning, more or less.
const CALM: Nanos = Nanos(20_000_000);

/// How long switches are counted.
const COUNTED: Nanos = Nanos(1_000_000_000);

/// How often periods are drawn anew, for each event that is opened for that, and at most: so that a thread that is in step
/// with one is with another one soon, and opening takes half of a percent of a CPU.
const BETWEEN_DRAWS: u64 = 10_000_000;
const MOST_OFTEN: u64 = 100_000_000;

/// Follows the switches of threads.
#[derive(Debug)]
pub(crate) struct SwitchRates {
    /// Samples a second of all threads together.
    frequency: f64,
    since: Nanos,
    looked_at: Nanos,
    drawn_at: Nanos,
    /// Whether there were far too many samples, or too few: what was counted before says little then.
    is_outdated: bool,
    counts: BTreeMap<Tid, u64>,
    periods: BTreeMap<Tid, u64>,
    random: fastrand::Rng,
}

impl SwitchRates {
    pub(crate) fn new(frequency: u64, seed: Option<u64>) -> SwitchRates {
        SwitchRates {
            frequency: frequency.max(1) as f64,
            since: Nanos(0),
            looked_at: Nanos(0),
            drawn_at: Nanos(0),
            is_outdated: true,
            counts: BTreeMap::new(),
            periods: BTreeMap::new(),
            random: seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
        }
    }

    /// Counts from now on.
    pub(crate) fn begin(&mut self, now: Nanos) {
        (self.since, self.looked_at) = (now, now);
        self.counts.clear();
    }

    /// Forgets what was before a flood, which would make it look slower than it is. To be asked once a
    /// look, as long as each switch is sampled.
    pub(crate) fn forget(&mut self, now: Nanos) {
        if now.saturating_since(self.since) >= CALM {
            self.begin(now);
        }
    }

    /// A thread was switched, away from its CPU or back.
    pub(crate) fn see(&mut self, tid: Tid) {
        *self.counts.entry(tid).or_default() += 1;
    }

    /// Whether so many events are to be opened with other periods: there come far too many samples, or far
    /// too few of a thread, or it is time to draw. Where that takes long, far too many are what it is done for.
    pub(crate) fn is_time(&mut self, now: Nanos, events: usize) -> bool {
        if now.saturating_since(self.looked_at) < BETWEEN_LOOKS {
            return false;
        }
        self.looked_at = now;
        let share = self.share(now);
        let seconds = self.seconds(now);
        let sampled = |(tid, count): (&Tid, &u64)| rate(*count, seconds) / self.period(*tid) as f64;
        let samples: f64 = self.counts.iter().map(sampled).sum();
        let too_few = |(tid, period): (&Tid, &u64)| {
            let count = self.counts.get(tid).copied().unwrap_or(0);
            *period as f64 > 8.0 * (rate(count, seconds) / share).max(1.0)
        };
        let between = (events as u64).saturating_mul(BETWEEN_DRAWS).max(MOST_OFTEN);
        let is_late = now.saturating_since(self.drawn_at).0 >= between;
        let is_flooded = samples > 4.0 * self.frequency.max(share * self.counts.len() as f64);
        let is_calm = self.periods.iter().any(too_few);
        self.is_outdated = is_flooded || is_calm;
        let is_due = is_calm || is_late && !self.periods.is_empty();
        is_flooded || is_due && events <= MOST_DRAWN
    }

    /// Draws the periods of all threads anew.
    pub(crate) fn draw(&mut self, now: Nanos) {
        let (share, seconds) = (self.share(now), self.seconds(now));
        self.periods.clear();
        for (tid, count) in &self.counts {
            let mean = rate(*count, seconds) / share;
            if mean >= LEAST_MEAN {
                self.periods.insert(*tid, drawn_prime(mean, &mut self.random));
            }
        }
        self.drawn_at = now;
        if self.is_outdated || now.saturating_since(self.since) >= COUNTED {
            self.begin(now);
        }
    }

    /// N, where every Nth switch of a thread is sampled.
    pub(crate) fn period(&self, tid: Tid) -> u64 {
        self.periods.get(&tid).copied().unwrap_or(1)
    }

    fn seconds(&self, now: Nanos) -> f64 {
        now.saturating_since(self.since).as_secs_f64().max(0.001)
    }

    /// How many samples a second each busy thread gets, so that all together get the frequency: what
    /// the others do not need is theirs.
    fn share(&self, now: Nanos) -> f64 {
        let seconds = self.seconds(now);
        let mut rates: Vec<f64> = self.counts.values().map(|count| rate(*count, seconds)).collect();
        rates.sort_unstable_by(f64::total_cmp);
        let mut left = self.frequency;
        for (index, rate) in rates.iter().enumerate() {
            let fair = left / (rates.len() - index) as f64;
            if *rate > fair {
                return fair.max(LEAST.min(MOST / (rates.len() - index) as f64));
            }
            left -= rate;
        }
        f64::INFINITY
    }
}

/// Switches away a second: each comes with a return.
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / 2.0 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn switched(rates: &mut SwitchRates, counts: &[(u32, u64)]) {
        for (tid, count) in counts {
            (0..2 * count).for_each(|_| rates.see(Tid(*tid)));
        }
    }

    #[test]
    fn rare_switches_are_all_sampled_and_busy_threads_share_the_rest() {
        let mut rates = SwitchRates::new(1000, Some(1));
        rates.begin(Nanos(0));
        switched(&mut rates, &[(1, 3), (2, 100), (3, 40_000), (4, 80_000)]);
        assert!(rates.is_time(Nanos(SECOND), 20));
        rates.draw(Nanos(SECOND));
        assert_eq!([1, 2].map(|tid| rates.period(Tid(tid))), [1, 1]);
        // 448 samples a second each.
        assert!((44..=137).contains(&rates.period(Tid(3))));
        assert!((89..=269).contains(&rates.period(Tid(4))));
    }

    /// A thread that does a few things in turn is sampled in each of them.
    #[test]
    fn no_period_is_in_step_with_short_cycles() {
        let mut rates = SwitchRates::new(1000, Some(1));
        for busy in (1..400).map(|n| n * 250) {
            rates.begin(Nanos(0));
            switched(&mut rates, &[(1, busy)]);
            rates.draw(Nanos(SECOND));
            let period = rates.period(Tid(1));
            let is_in_step = [2, 3, 5, 7].iter().any(|cycle| period.is_multiple_of(*cycle));
            assert!(!is_in_step && (busy < 6000 || period > 1), "{busy}: {period}");
        }
    }

    /// A thousand threads, each switched a hundred times a second, do not make fifty thousand samples.
    #[test]
    fn many_busy_threads_share_what_can_be_sampled() {
        let mut rates = SwitchRates::new(99, Some(1));
        rates.begin(Nanos(0));
        let counts: Vec<(u32, u64)> = (1..=1000).map(|tid| (tid, 100)).collect();
        switched(&mut rates, &counts);
        assert!(rates.is_time(Nanos(SECOND), 2000));
        rates.draw(Nanos(SECOND));
        let samples: f64 =
            counts.iter().map(|(tid, n)| *n as f64 / rates.period(Tid(*tid)) as f64).sum();
        assert!((2000.0..=8000.0).contains(&samples), "{samples}");
        // That some get too few is no reason to open all events anew.
        switched(&mut rates, &counts[..500]);
        assert!(!rates.is_time(Nanos(2 * SECOND), 2000) && rates.is_time(Nanos(3 * SECOND), 20));
    }

    #[test]
    fn nothing_is_changed_while_samples_are_as_many_as_wanted() {
        let mut rates = SwitchRates::new(1000, Some(1));
        rates.begin(Nanos(0));
        switched(&mut rates, &[(1, 300), (2, 300)]);
        assert!(!rates.is_time(Nanos(SECOND), 20));
        switched(&mut rates, &[(1, 30_000)]);
        // Not before the next look.
        assert!(!rates.is_time(Nanos(SECOND + 1), 20));
        assert!(rates.is_time(Nanos(2 * SECOND), 20));
        rates.draw(Nanos(2 * SECOND));
        switched(&mut rates, &[(1, 1500), (2, 15)]);
        assert!(!rates.is_time(Nanos(2 * SECOND + SECOND / 10), 20));
        // It has calmed down.
        rates.begin(Nanos(3 * SECOND));
        switched(&mut rates, &[(1, 10)]);
        assert!(rates.is_time(Nanos(3 * SECOND + SECOND / 2), 20));
        rates.draw(Nanos(3 * SECOND + SECOND / 2));
        assert_eq!(rates.period(Tid(1)), 1);
        assert!(!rates.is_time(Nanos(9 * SECOND), 20));
    }
}
