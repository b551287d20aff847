//! The intervals of clocks that are bound to tasks, drawn anew after each sample by the reader of the CPU.
//!
//! A timer of a task runs only while the task does. So nobody gains by what the reader does to the order in which tasks
//! run, as on whole CPUs (see `pacer`): it is enough that no rhythm of the program is in step with the intervals.
//!
//! What a task starts inherits an event of its own, with the interval that is set then, and flame has no descriptor of it: that
//! interval stays, and is what its samples say that they stand for. Samples of the others say the mean of what is drawn.
//! So that all samples stand for the same, all intervals are shorter than asked for, and of the samples of short ones more
//! are left out. A task that is hardly sampled itself, as a shell, would leave one interval to all that it starts: it is drawn
//! anew before it is over whenever something else was sampled.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use flame_profile::{Cpu, Nanos, Tid, whole};

use crate::descriptor::Descriptor;
use crate::open::Plan;
use crate::pacing;
use crate::task_progress::Clocks;

/// The intervals, in parts of what is asked for.
const PARTS: [f64; 2] = [0.55, 1.0];

/// None that a task can leave to what it starts is shorter than what is asked for divided by that: who inherits it is sampled
/// so many times as often, for as long as it lives.
const LEAST: u64 = 3;

/// A reader that comes late finds a timer that has run on, and setting it makes the interval longer: only after so many
/// samples is it set all the same.
const MOST_LATE: u32 = 20;

/// So many tasks at a time are looked at whose intervals may be drawn before they are over.
const AT_ONCE: usize = 4;

/// What draws the intervals of tasks on one CPU.
#[derive(Debug)]
pub(crate) struct TaskIntervals {
    pub(crate) events: BTreeMap<Tid, Arc<Descriptor>>,
    cpu: Cpu,
    asked: Nanos,
    random: fastrand::Rng,
    late: u32,
    /// Whose interval was looked at last of those that may be drawn before they are over.
    last: Tid,
}

impl TaskIntervals {
    pub(crate) fn new(
        events: BTreeMap<Tid, Arc<Descriptor>>,
        cpu: Cpu,
        asked: Nanos,
        seed: Option<u64>,
    ) -> TaskIntervals {
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        TaskIntervals { events, cpu, asked, random, late: 0, last: Tid(0) }
    }

    /// Before the first samples, which are to come as soon as if there had been others before: a program's first
    /// milliseconds are its start.
    pub(crate) fn start(&mut self, plan: &Plan) {
        for event in self.events.values() {
            pacing::set(plan, event, rest_of_one(&mut self.random, self.asked));
        }
    }

    /// Draws the next interval of a task of which a sample has come: how old it is, and whether the task went on meanwhile.
    pub(crate) fn draw(
        &mut self,
        plan: &Plan,
        clocks: &mut Clocks,
        tid: Tid,
        (age, is_late): (Nanos, bool),
    ) {
        let Some(event) = self.events.get(&tid) else { return self.draw_before_end(plan, clocks) };
        self.late = if is_late { self.late + 1 } else { 0 };
        if !is_late || self.late > MOST_LATE {
            self.late = 0;
            let interval = draw(&mut self.random, self.asked);
            // It begins with the sample, which kept the task since.
            let passed = if is_late { Nanos(0) } else { age.min(Nanos(interval.0 / 2)) };
            let interval = interval.saturating_since(passed);
            pacing::set(plan, event, interval);
            clocks.set(tid, interval, passed);
        }
    }

    /// Draws the intervals of some tasks before they are over: something that they may have started was sampled, and what they
    /// start next is to have another one. It has to be before the shortest interval could be over, so that how long they are
    /// does not depend on when they are drawn; later the timer is set to what is left, which is another interval for others.
    fn draw_before_end(&mut self, plan: &Plan, clocks: &mut Clocks) {
        let behind = self.events.range((Bound::Excluded(self.last), Bound::Unbounded));
        let some = behind.chain(self.events.range(..=self.last)).take(AT_ONCE);
        let least = Nanos(self.asked.0 / LEAST);
        let latest = whole(PARTS[0] * self.asked.0 as f64) - least.0;
        for (tid, event) in some {
            self.last = *tid;
            let Some((passed, left)) = clocks.get(plan, self.cpu, *tid) else { continue };
            let left = match passed.0 < latest {
                true => draw(&mut self.random, self.asked).saturating_since(passed),
                false => left,
            };
            if left >= least {
                pacing::set(plan, event, left);
                clocks.set(*tid, left, passed);
            }
        }
    }
}

/// Whether a sample of that time is one too many, which says to stand for so much of the interval that is asked for. Readers and
/// the session come to the same answer, however late one of them is: it is drawn by the nanoseconds of the time.
pub(crate) fn is_surplus(asked: Nanos, time: Nanos, period: Option<u64>) -> bool {
    let drawn = fastrand::Rng::with_seed(time.0).f64() * asked.0 as f64;
    period.is_some_and(|period| drawn > period as f64)
}

/// The interval of events until one is drawn: their mean, which samples go on to say.
pub(crate) fn mean_of(asked: Nanos) -> Nanos {
    Nanos(whole((PARTS[0] + PARTS[1]) / 2.0 * asked.0 as f64))
}

fn draw(random: &mut fastrand::Rng, asked: Nanos) -> Nanos {
    let part = PARTS[0] + random.f64() * (PARTS[1] - PARTS[0]);
    Nanos(whole(part * asked.0 as f64))
}

/// What is left of an interval at any moment of it. Not too little: see [`LEAST`].
fn rest_of_one(random: &mut fastrand::Rng, asked: Nanos) -> Nanos {
    let one = loop {
        let one = draw(random, asked);
        // One is as likely to be met as it is long.
        if random.f64() * asked.0 as f64 <= one.0 as f64 {
            break one;
        }
    };
    Nanos(whole(random.f64() * one.0 as f64).max(asked.0 / LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Nanos = Nanos(10_000_000);

    #[test]
    fn intervals_are_drawn_about_the_mean_that_samples_say() {
        let mut random = fastrand::Rng::with_seed(3);
        let drawn: Vec<u64> = (0..10_000).map(|_| draw(&mut random, ASKED).0).collect();
        assert!(drawn.iter().all(|interval| (5_500_000..=10_000_000).contains(interval)));
        let mean = drawn.iter().sum::<u64>() / 10_000;
        assert!(mean.abs_diff(mean_of(ASKED).0) < 50_000, "{mean}");
    }

    #[test]
    fn the_first_interval_may_be_short() {
        let mut random = fastrand::Rng::with_seed(4);
        let first: Vec<u64> = (0..10_000).map(|_| rest_of_one(&mut random, ASKED).0).collect();
        let below = |part: f64| first.iter().filter(|one| (**one as f64) < part * 1e7).count();
        assert_eq!(below(0.333), 0);
        // As likely at each moment before the shortest interval is over: 10 / 7.75 of a tenth of them in each tenth.
        for (part, expect) in [(0.35, 4516_i64), (0.5, 6452), (1.01, 10_000)] {
            assert!((below(part) as i64 - expect).abs() < 200, "{part}: {}", below(part));
        }
    }

    /// Whatever interval a thread has inherited, its samples add up to its time.
    #[test]
    fn samples_that_stay_stand_for_the_interval_that_is_asked_for() {
        for period in [5_500_000, mean_of(ASKED).0, 10_000_000] {
            let times = (1..=10_000).map(|n| Nanos(n * period));
            let kept = times.filter(|time| !is_surplus(ASKED, *time, Some(period))).count() as u64;
            let (stand_for, time) = (kept * ASKED.0, 10_000 * period);
            assert!(stand_for.abs_diff(time) < time / 30, "{period}: {stand_for} of {time}");
        }
        assert!(!is_surplus(ASKED, Nanos(1), None));
    }
}
