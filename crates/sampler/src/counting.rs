//! Which occurrences of an event are sampled, and how many each sample stands for.
//!
//! An event that is not a clock (page faults, context switches) may happen ten times a second or a
//! million times. While it is rare, each occurrence in the target's tasks is sampled. Once it floods,
//! events are bound to CPUs, or opened anew for the tasks, at a period that follows the rate: the
//! kernel's counter of the target, divided by the frequency asked for. The kernel's own frequency
//! mode is not used: its period follows whatever happens on the CPU, and lags behind.
//!
//! A fixed period beats with a program's own pattern: of one that takes three faults here and one
//! there, every fourth fault is always of the same place. So the period is a prime, drawn anew from
//! 0.5 to 1.5 of its mean, and each sample stands for the period that brought it.
//!
//! `PERF_EVENT_IOC_PERIOD` on a software event has two traps (perf_swevent_set_period in
//! kernel/events/core.c; measured in docs/perf-events.md): the very next occurrence is sampled, and
//! the interval behind that is still the one before.
//!
//! flame sets periods at moments that may be in step with the program: of two threads that wake each other, always while the
//! same one runs. So how many samples there are between two settings is drawn, and nothing stands for what an interval
//! lost that was broken off: the first sample, if it does, is always of the same thread, which came out with 54 %.
//!
//! ```text
//!   period 10     set 7
//!   ---s---------s--|-s---------s------s------s
//!                     1         10     7      7      what a sample stands for
//! ```
//!
//! What this module does not do is talk to the kernel.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use flame_profile::{Nanos, whole};

/// As long as there are no more occurrences a second, each is sampled.
const EVERY: u64 = 1000;

/// This many at once are not a flood: a program that starts takes some hundred page faults.
const BURST: u64 = 300;

/// Samples a second of one CPU at most, those of other tasks included: 10 us each.
const MOST_OF_A_CPU: u64 = 2000;

/// The mean period of all CPUs' occurrences before anything is known of them: a machine that compiles
/// has 100,000 page faults a second.
pub(crate) const FIRST_MEAN: f64 = 64.0;

/// How often the rate is looked at.
const BETWEEN_LOOKS: Nanos = Nanos(100_000_000);

/// How often events of tasks, whose period cannot be set, are opened anew with another one.
const BETWEEN_DRAWS: Nanos = Nanos(1_000_000_000);

/// The same of breakpoints, which are slow to go.
const BETWEEN_RARE_DRAWS: Nanos = Nanos(15_000_000_000);

/// Samples between two draws on a CPU. Each setting wakes the next interval up at a moment that flame
/// chooses, which may be in step with the program: few samples are to hang on one.
const BATCH: RangeInclusive<u64> = 16..=48;

/// The least period but one, and the least mean of what is drawn: a program may well do three, five or seven things in
/// turn, and with a period that divides these it is sampled in some of them only.
const LEAST_PERIOD: u64 = 11;
const LEAST_DRAWN: f64 = 14.0;

/// The shortest and the longest period that is drawn, in parts of the mean.
const PERIODS: [f64; 2] = [0.5, 1.5];

/// Follows the samples of all CPUs and says what each stands for.
#[derive(Debug)]
pub(crate) struct Counting {
    frequency: u64,
    random: fastrand::Rng,
    stage: Stage,
    lanes: Vec<Lane>,
    /// Samples that are older are not the recording's.
    since: Nanos,
    /// Samples so far, while each occurrence was one, and the time of the first.
    seen: u64,
    first: Nanos,
    /// How far the last samples came faster than they may.
    flood: u64,
    last_look: Nanos,
    /// The mean period that the target's rate asks for.
    mean: f64,
    /// When the counter was read last, and what it said.
    measured: (Nanos, u64),
    drawn_at: Nanos,
    between_draws: Nanos,
    /// That of CPUs that come.
    first_period: u64,
}

/// How samples are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Each occurrence is one.
    Every,
    /// Events of CPUs, whose periods are set.
    Cpus,
    /// Events of tasks, opened with a period.
    Tasks,
}

/// The samples of one CPU.
#[derive(Debug)]
struct Lane {
    /// Samples that were seen and not released yet: their times and what they stand for.
    weights: VecDeque<(Nanos, u64)>,
    /// How many of them came with the last look.
    fresh: usize,
    period: u64,
    turn: Turn,
    /// Samples since the period was set, and how many there are to be before it is set anew.
    since_set: u64,
    batch: u64,
    /// The mean period that all the occurrences on this CPU ask for.
    least: f64,
    /// Occurrences that samples stood for since the rate was looked at.
    passed: u64,
}

/// Where a CPU stands after its period was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The next occurrence after that time is sampled because the period was set.
    Trigger {
        set_at: Nanos,
        old: u64,
    },
    /// The next sample comes after the old period.
    First {
        old: u64,
    },
    Steady,
}

impl Lane {
    fn new(period: u64) -> Lane {
        Lane {
            weights: VecDeque::new(),
            fresh: 0,
            period,
            turn: Turn::Steady,
            since_set: 0,
            batch: *BATCH.start(),
            least: 1.0,
            passed: 0,
        }
    }

    /// What the next sample stands for; 0 for one that is to be left out.
    fn weight(&mut self, time: Nanos) -> u64 {
        match self.turn {
            Turn::Trigger { set_at, old } if time > set_at => {
                self.turn = Turn::First { old };
                // It has happened; it is one.
                1
            }
            Turn::Trigger { old, .. } => old,
            Turn::First { old } => {
                self.turn = Turn::Steady;
                old
            }
            Turn::Steady => self.period,
        }
    }
}

impl Counting {
    /// For samples at that frequency (at least 1), from a seed.
    pub(crate) fn new(frequency: u64, seed: Option<u64>) -> Counting {
        Counting {
            frequency: frequency.max(1),
            random: seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            stage: Stage::Every,
            lanes: Vec::new(),
            since: Nanos(0),
            seen: 0,
            first: Nanos(0),
            flood: 0,
            last_look: Nanos(0),
            mean: 1.0,
            measured: (Nanos(0), 0),
            drawn_at: Nanos(0),
            between_draws: BETWEEN_DRAWS,
            first_period: 1,
        }
    }

    /// Opens events of tasks anew less often.
    pub(crate) fn draw_rarely(&mut self) {
        self.between_draws = BETWEEN_RARE_DRAWS;
    }

    /// Samples a second that are wanted.
    pub(crate) fn frequency(&self) -> u64 {
        self.frequency
    }

    /// How samples are chosen now.
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Counts from now on.
    pub(crate) fn begin(&mut self, now: Nanos) {
        (self.since, self.first, self.last_look, self.measured.0) = (now, now, now, now);
    }

    /// Takes in a sample of the ring at that position.
    pub(crate) fn see(&mut self, lane: usize, time: Nanos) {
        let lane = self.lane(lane);
        let weight = lane.weight(time);
        lane.weights.push_back((time, weight));
        lane.fresh += 1;
        lane.since_set += 1;
        lane.passed += weight;
        if self.stage == Stage::Every && time >= self.since {
            if self.seen == 0 {
                self.first = time;
            }
            self.seen += 1;
            self.flood += 1;
        }
    }

    fn lane(&mut self, position: usize) -> &mut Lane {
        while self.lanes.len() <= position {
            self.lanes.push(Lane::new(self.first_period));
        }
        &mut self.lanes[position]
    }

    /// Whether occurrences come too fast for each to be sampled. To be asked once a look.
    pub(crate) fn is_flooded(&mut self, now: Nanos) -> bool {
        let allowed = self.frequency.max(EVERY) * now.saturating_since(self.last_look).0;
        self.flood = self.flood.saturating_sub(allowed / 1_000_000_000);
        self.last_look = now;
        self.stage == Stage::Every && self.flood > BURST
    }

    /// Lets the samples of the last look stand for all that happened and was not seen before, of
    /// which there were `count` in all: the kernel takes no more than some hundred in a clock tick.
    pub(crate) fn spread(&mut self, count: u64) {
        let fresh: u64 = self.lanes.iter().map(|lane| lane.fresh as u64).sum();
        let total = count.saturating_sub(self.seen.saturating_sub(fresh)).max(fresh);
        let (mut index, mut given) = (0, 0);
        for lane in &mut self.lanes {
            for (_, weight) in lane.weights.iter_mut().rev().take(lane.fresh) {
                index += 1;
                let until = share(total, index, fresh);
                (*weight, given) = (until - given, until);
            }
        }
    }

    /// Samples every Nth occurrence on all CPUs from the start, however many there will be.
    pub(crate) fn start_anywhere(&mut self, mean: f64, now: Nanos) -> u64 {
        self.start(Stage::Cpus, None, now);
        self.mean = mean.max(1.0);
        self.set_all(now)
    }

    /// Goes on with samples of every Nth occurrence; returns the first period. Of the
    /// occurrences so far there were `count` in all, if that is known.
    pub(crate) fn start(&mut self, stage: Stage, count: Option<u64>, now: Nanos) -> u64 {
        let count = count.unwrap_or(self.seen);
        let seconds = now.saturating_since(self.first).as_secs_f64().max(0.001);
        self.mean = (count as f64 / seconds / self.frequency as f64).max(1.0);
        self.measured = (now, count);
        self.stage = stage;
        self.set_all(now)
    }

    /// One period for all CPUs.
    fn set_all(&mut self, now: Nanos) -> u64 {
        let period = self.draw(self.mean);
        self.first_period = period;
        for lane in &mut self.lanes {
            (lane.period, lane.turn) = (period, Turn::Steady);
        }
        self.drawn_at = now;
        period
    }

    /// Whether it is time to read the counter.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now.saturating_since(self.measured.0) >= BETWEEN_LOOKS
    }

    /// Follows the rate of the target, by its counter, and that of each CPU.
    pub(crate) fn measure(&mut self, count: Option<u64>, now: Nanos) {
        let seconds = now.saturating_since(self.measured.0).as_secs_f64();
        let sampled = self.lanes.iter().map(|lane| lane.passed).sum();
        let happened = count.map_or(sampled, |count| count.saturating_sub(self.measured.1));
        let wanted = (happened as f64 / seconds / self.frequency as f64).max(1.0);
        // What rises is followed at once, what falls not: a burst may be followed by another.
        self.mean = wanted.max(self.mean / 2.0);
        for lane in &mut self.lanes {
            let wanted = lane.passed as f64 / seconds / MOST_OF_A_CPU as f64;
            lane.least = wanted.max(lane.least / 2.0);
            lane.passed = 0;
        }
        self.measured = (now, count.unwrap_or(0));
    }

    /// The period to set for the event of a CPU now, if one is to be set.
    pub(crate) fn next_period(&mut self, position: usize, now: Nanos) -> Option<u64> {
        let mean = self.mean;
        let lane = self.lane(position);
        // Between two readings of the counter a burst is noticed by its samples.
        let burst = lane.passed as f64 / MOST_OF_A_CPU as f64 / BETWEEN_LOOKS.as_secs_f64();
        let mean = mean.max(lane.least).max(burst);
        let (period, turn, since_set) = (lane.period, lane.turn, lane.since_set);
        let is_stuck = match turn {
            Turn::Trigger { .. } => false,
            Turn::First { old } => old as f64 > 4.0 * spaced(mean),
            Turn::Steady => period as f64 > 4.0 * spaced(mean),
        };
        let had_turn = turn == Turn::Steady && since_set >= lane.batch;
        if !(had_turn || is_stuck) || (mean < 2.0 && period == 1) {
            return None;
        }
        let (new, batch) = (self.draw(mean), self.random.u64(BATCH));
        let lane = self.lane(position);
        (lane.period, lane.since_set, lane.batch) = (new, 0, batch);
        // Each occurrence is a sample then, whatever came before.
        lane.turn =
            if new == 1 { Turn::Steady } else { Turn::Trigger { set_at: now, old: period } };
        Some(new)
    }

    /// The period to open the events of tasks anew with, if it is time to.
    pub(crate) fn next_opening(&mut self, now: Nanos) -> Option<u64> {
        let period = self.lanes.first().map_or(1, |lane| lane.period) as f64;
        let passed: u64 = self.lanes.iter().map(|lane| lane.passed).sum();
        let burst = passed as f64 / self.frequency as f64 / BETWEEN_LOOKS.as_secs_f64();
        let is_late = now.saturating_since(self.drawn_at) >= self.between_draws && self.mean >= 2.0;
        let is_wrong =
            self.mean.max(burst / 4.0) > 4.0 * period || period > 8.0 * spaced(self.mean);
        if !is_late && !is_wrong {
            return None;
        }
        self.mean = self.mean.max(burst);
        Some(self.set_all(now))
    }

    /// The samples that were seen so far are no longer new.
    pub(crate) fn end_look(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.fresh = 0);
    }

    /// What the sample of that time stands for; 0 for one that is to be left out. Samples of a CPU
    /// are to be asked about in their order.
    pub(crate) fn weight_of(&mut self, lane: usize, time: Nanos) -> u64 {
        let Some(lane) = self.lanes.get_mut(lane) else { return 1 };
        while lane.weights.front().is_some_and(|(seen, _)| *seen < time) {
            lane.weights.pop_front();
        }
        match lane.weights.front() {
            Some((seen, weight)) if *seen == time => {
                let weight = *weight;
                lane.weights.pop_front();
                weight
            }
            // It came between the look and the release.
            _ => lane.period,
        }
    }

    fn draw(&mut self, mean: f64) -> u64 {
        if mean < 2.0 {
            return 1;
        }
        drawn_prime(mean, &mut self.random)
    }
}

/// The mean of the periods that are drawn where so many are wanted.
fn spaced(mean: f64) -> f64 {
    if mean < 2.0 { mean } else { mean.max(LEAST_DRAWN) }
}

/// A prime that no small number of things in turn is in step with.
pub(crate) fn drawn_prime(mean: f64, random: &mut fastrand::Rng) -> u64 {
    let part = PERIODS[0] + random.f64() * (PERIODS[1] - PERIODS[0]);
    prime_from(whole(part * mean.max(LEAST_DRAWN)).max(LEAST_PERIOD))
}

/// `total * index / of`, rounded down.
fn share(total: u64, index: u64, of: u64) -> u64 {
    let part = u128::from(total) * u128::from(index) / u128::from(of.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The smallest odd prime that is not below a number.
fn prime_from(number: u64) -> u64 {
    let is_prime =
        |n: u64| (3..).step_by(2).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    let mut odd = number.clamp(3, 1 << 32) | 1;
    while !is_prime(odd) {
        odd += 2;
    }
    odd
}

#[cfg(test)]
mod tests;
