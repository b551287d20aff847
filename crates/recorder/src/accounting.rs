//! What the kernel knows of a recording besides its samples: the CPU time that it accounted to the
//! target, what it dropped, and how often the event happened.

use std::fs;
use std::ops::AddAssign;

use flame_profile::{
    Coverage, FrameKind, Health, Location, Nanos, Occurrences, Pid, Profile, StackId, Tid, whole,
};
use flame_sampler::{Losses, OfCounter, SamplerConfig, Scope, Sessions, Target};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::config::{EVENT_VALUE, SAMPLES_VALUE};
use crate::script_sums::ScriptSums;

/// Nanoseconds in a tick of /proc/PID/stat.
const TICK: u64 = 10_000_000;

/// What a source knows besides its events. The default knows nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    losses: Losses,
    /// For how long other events had the counter.
    multiplexed: Nanos,
    /// Whether tasks are seen however short they live.
    sees_short_tasks: bool,
    /// The CPU time of the target, where samples stand for CPU time.
    pub(crate) accounted: Option<Nanos>,
    /// How often each event happened.
    happened: Vec<Happened>,
    /// For how long CPUs had nothing to do, where the whole machine is sampled by a clock.
    idle: Option<Nanos>,
}

/// How often an event happened.
#[derive(Clone, Copy, Debug, Default)]
struct Happened {
    /// In the target. Nothing where that was not counted.
    count: Option<u64>,
    /// The same of a counter of the CPU, in all programs that it saw, and what the samples of them stand for.
    of_counter: Option<OfCounter>,
    /// Whether N was chosen on the way, of which every Nth is sampled.
    chooses_period: bool,
}

impl Happened {
    /// How often it happened in the target, whose samples stand for `sampled`. Of what a counter of the CPU saw, as large
    /// a share is missing in all programs.
    fn in_target(self, sampled: u64) -> Option<u64> {
        let Some(OfCounter { sampled: of_all, counted }) = self.of_counter else {
            return self.count;
        };
        let count = u128::from(sampled) * u128::from(counted) / u128::from(of_all.max(1));
        u64::try_from(count).ok()
    }
}

impl Tally {
    /// What live sessions know.
    pub(crate) fn of_sessions(sessions: &Sessions) -> Tally {
        let (first, all) = (sessions.first(), sessions.all());
        let mut losses = Losses::default();
        let mut multiplexed = Nanos(0);
        for session in all {
            multiplexed = multiplexed.max(session.multiplexed());
            losses += session.losses();
        }
        let happened = all.iter().map(|session| Happened {
            count: session.happened(),
            of_counter: session.of_counter(),
            chooses_period: session.chooses_period(),
        });
        Tally {
            losses,
            multiplexed,
            sees_short_tasks: first.scope() == Scope::Cpus,
            accounted: first.accounted(),
            happened: happened.collect(),
            idle: first.idle(),
        }
    }

    /// The same, where samples stand for the time behind an event and not for events.
    pub(crate) fn of_waits(self) -> Tally {
        Tally { happened: Vec::new(), ..self }
    }

    /// The time in which CPUs had nothing to do, as a task of its own. No sample is taken of it: it is
    /// what the kernel accounted, and as many samples as would have been taken.
    pub(crate) fn add_idle(&self, profile: &mut Profile) {
        let (Some(idle), Some(interval)) = (self.idle, profile.meta.period) else { return };
        // The kernel's name for what runs then.
        let thread = profile.add_thread("swapper", Pid(0), Tid(0));
        let mark = profile.add_frame("[idle]", FrameKind::Mark);
        let location = profile.add_location(Location::named(mark));
        let stack = profile.push_stack(StackId::EMPTY, location);
        let mut values = vec![0; profile.value_types().len()];
        (values[SAMPLES_VALUE], values[EVENT_VALUE]) = (idle.0 / interval.max(1), idle.0);
        profile.add_sample(thread, stack, &values);
        // They were left out of what was sampled, and are part of this.
        profile.health.idle_samples = 0;
    }

    /// Adds it to a profile, whose health has what LOST records told of. Those miss the end of a
    /// recording; what the events say misses nothing, but not every kernel counts it.
    ///
    /// What samples stand for is changed in `scripts`, too.
    pub(crate) fn complete(
        &self,
        Sampled { time: sampled, counted, adds_up }: Sampled<'_>,
        scripts: &mut ScriptSums,
        profile: &mut Profile,
    ) {
        let health: &mut Health = &mut profile.health;
        let lost = self.losses.lost;
        health.lost_records = health.lost_records.max(lost.total());
        (health.lost_samples, health.lost_side_band) = (lost.samples, lost.side_band);
        health.throttled_time = self.losses.throttled;
        health.stray_samples = self.losses.stray_samples;
        health.multiplexed_time = self.multiplexed;
        if self.sees_short_tasks {
            health.short_tasks = 0;
        }
        if let Some(accounted) = self.accounted {
            let sampled = sampled.unwrap_or_else(|| Nanos(profile.total(EVENT_VALUE).0));
            profile.health.coverage = Some(Coverage { sampled, accounted });
        }
        // Where the period was chosen on the way, samples stand for all occurrences from then on, in
        // the proportions in which they came: a period is broken off now and then, and the kernel
        // takes only so many samples in a tick.
        let values = profile.value_types().len();
        let (mut all, mut happened_in_all, mut variance) = (Counted::default(), 0, 0.0);
        let mut least = None::<Occurrences>;
        for (event, happened) in self.happened.iter().enumerate().take(values / 2) {
            let value = 2 * event + EVENT_VALUE;
            let of_samples = counted.get(event).copied().unwrap_or_default();
            let sampled = of_samples.sum;
            let Some(count) = happened.in_target(sampled) else { continue };
            let effective = of_samples.effective();
            let of_event = Occurrences { event, sampled, happened: count, effective };
            let is_less = |least: Occurrences| of_event.fraction() < least.fraction();
            if least.is_none_or(is_less) {
                least = Some(of_event);
            }
            all += of_samples;
            happened_in_all += count;
            let is_scaled = happened.chooses_period && sampled > 0;
            // A counter's samples come after each N, not one in N by chance.
            if happened.of_counter.is_none() {
                variance += of_samples.variance(is_scaled.then_some(count));
            }
            if is_scaled {
                // The same as the count, unless samples stand for what a field adds up to.
                let before = profile.total(value).0;
                let total = u128::from(before) * u128::from(count);
                let total = u64::try_from(total / u128::from(sampled)).unwrap_or(u64::MAX);
                profile.scale(value, total);
                scripts.scale(event, (before, total));
                if let Some(timeline) = &mut profile.timeline {
                    *timeline = timeline.scaled(event, before, total);
                }
            }
        }
        if adds_up && least.is_some() {
            let (sampled, happened, effective) = (all.sum, happened_in_all, all.effective());
            least = Some(Occurrences { event: 0, sampled, happened, effective });
        }
        profile.health.occurrences = least;
        // Of several values it would not be said which it is.
        if least.is_some() && (adds_up || self.happened.len() == 1) {
            profile.health.standard_error = whole(variance.sqrt());
        }
        if adds_up {
            profile.add_up_pairs();
        }
    }
}

/// What is known of samples as they were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled<'c> {
    /// The CPU time that they stood for, where they stand for something else by now.
    pub(crate) time: Option<Nanos>,
    /// For how many occurrences of each event they stand.
    pub(crate) counted: &'c [Counted],
    /// Whether those of all events are one value.
    pub(crate) adds_up: bool,
}

/// For how many occurrences the samples of an event stand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    sum: u64,
    /// Sums over all samples of what each stands for, times the amount of one occurrence to the power of 0, 1 and 2.
    sums: [f64; 3],
    /// The same with the square of what each stands for.
    squares: [f64; 3],
}

impl Counted {
    /// A sample that stands for so many occurrences of so much each.
    pub(crate) fn add(&mut self, weight: u64, each: u64) {
        self.sum += weight;
        let (mut first, mut second) = (weight as f64, (weight as f64).powi(2));
        for (sum, square) in self.sums.iter_mut().zip(&mut self.squares) {
            *sum += first;
            *square += second;
            first *= each as f64;
            second *= each as f64;
        }
    }

    /// How many samples of equal weight would tell as much.
    fn effective(self) -> u64 {
        let square = self.squares[0];
        if square > 0.0 { whole((self.sum as f64).powi(2) / square) } else { 0 }
    }

    /// The variance of the amount, 0 where each occurrence was sampled. `happened` is how many there were, if the amount is
    /// scaled by that: then only how far amounts differ from their mean makes it uncertain.
    fn variance(self, happened: Option<u64>) -> f64 {
        let scaled = happened.filter(|_| self.sum > 0);
        let mean = scaled.map_or(0.0, |_| self.sums[1] / self.sums[0]);
        // What was lost is stood for by the other samples.
        let scale = scaled.map_or(1.0, |happened| (happened as f64 / self.sum as f64).max(1.0));
        let about_mean =
            |[none, once, twice]: [f64; 3]| twice - 2.0 * mean * once + mean * mean * none;
        (scale * scale * about_mean(self.squares) - scale * about_mean(self.sums)).max(0.0)
    }
}

impl AddAssign for Counted {
    fn add_assign(&mut self, other: Counted) {
        self.sum += other.sum;
        let pairs = self.sums.iter_mut().zip(other.sums);
        for (sum, of_other) in pairs.chain(self.squares.iter_mut().zip(other.squares)) {
            *sum += of_other;
        }
    }
}

/// What the kernel accounted to whole processes, with the part that they spent in the kernel.
///
/// An event that counts CPU time task by task misses what is spent before a task's first switch
/// and behind the end of its event in exit: 14 us a task. What is accounted to processes misses
/// that not, but knows of children only once they were waited for, and here in ticks of 10 ms where
/// it is not a launched program. So the larger of both is taken.
#[derive(Debug)]
pub enum ProcessTimes {
    /// Of processes that ran already, from what they had at the beginning.
    Attached {
        /// The processes.
        pids: Vec<Pid>,
        /// Whether all that they had started is among them. If not, the time of an ended child may
        /// be of long before the recording: processes are given it when they wait for the child.
        whole: bool,
        /// Their times at the beginning.
        start: Times,
        /// What they had since then when they were last there: a process that ends takes it along.
        last: Times,
    },
    /// Of this process's children: the launched program, once it was waited for, and those that it
    /// waited for.
    Launched {
        /// The times of all that were waited for at the beginning.
        start: Times,
    },
    /// Not to be had.
    Unknown,
}

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    kernel: u64,
    all: u64,
}

impl ProcessTimes {
    /// Counts from now on.
    ///
    /// `pids` are the processes that were taken, and `whole` says whether all below them are. Of
    /// some CPUs only nothing is known.
    pub(crate) fn begin(config: &SamplerConfig, pids: &[Pid]) -> ProcessTimes {
        let whole = config.descendants && config.inherit;
        match &config.target {
            _ if config.cpus.is_some() => ProcessTimes::Unknown,
            Target::Processes(_) => {
                let pids = pids.to_vec();
                let last = Times::default();
                ProcessTimes::Attached { start: sum(&pids, whole), last, whole, pids }
            }
            Target::Launched(_) => {
                ProcessTimes::Launched { start: of_children().unwrap_or_default() }
            }
            _ => ProcessTimes::Unknown,
        }
    }

    /// Looks at processes that ran already, while they are there.
    pub(crate) fn look(&mut self) {
        if let ProcessTimes::Attached { pids, whole, start, last } = self {
            let now = sum(pids, *whole).since(*start);
            *last = if now.all > last.all { now } else { *last };
        }
    }

    /// The larger of what events counted and what was accounted to processes, as far as that is
    /// known.
    pub(crate) fn at_least(&self, counted: Option<Nanos>) -> Option<Nanos> {
        let slack = match self {
            // Four fields were cut to whole ticks, at the beginning and at the end.
            ProcessTimes::Attached { pids, .. } => 4 * TICK * pids.len() as u64,
            ProcessTimes::Launched { .. } => 0,
            ProcessTimes::Unknown => return counted,
        };
        let accounted = Nanos(self.times().all.saturating_sub(slack));
        counted.map(|counted| counted.max(accounted))
    }

    /// The CPU time that was accounted to the target's processes, if it is known and there was some.
    pub fn all(&self) -> Option<Nanos> {
        Some(Nanos(self.times().all)).filter(|all| all.0 > 0)
    }

    fn times(&self) -> Times {
        match self {
            ProcessTimes::Attached { last, .. } => *last,
            ProcessTimes::Launched { start } => of_children().unwrap_or_default().since(*start),
            ProcessTimes::Unknown => Times::default(),
        }
    }

    /// The share that was spent in the kernel, from 0 to 1. `None` where it cannot be known; of a
    /// launched program it is once that was waited for.
    pub fn kernel_share(&self) -> Option<f64> {
        let Times { kernel, all } = self.times();
        (all > 0).then(|| kernel as f64 / all as f64)
    }
}

impl Times {
    fn since(self, start: Times) -> Times {
        let since = |now: u64, start: u64| now.saturating_sub(start);
        Times { kernel: since(self.kernel, start.kernel), all: since(self.all, start.all) }
    }
}

/// The times of processes, those of their ended children included if `whole`: a child that was
/// among the processes keeps its part when it ends and is waited for.
fn sum(pids: &[Pid], whole: bool) -> Times {
    let stat = |pid: &Pid| fs::read(format!("/proc/{pid}/stat")).ok();
    let times = pids.iter().filter_map(|pid| times_of(&stat(pid)?, whole));
    times.fold(Times::default(), |sum, times| Times {
        kernel: sum.kernel + times.kernel,
        all: sum.all + times.all,
    })
}

/// A process's times, with those of ended children if asked for: `pid (name) state ...`, then utime,
/// stime, cutime and cstime as fields 14 to 17 of proc(5).
fn times_of(stat: &[u8], with_children: bool) -> Option<Times> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let fields = rest.split_ascii_whitespace().skip(11).take(4);
    let mut ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    if !with_children {
        ticks.iter_mut().skip(2).for_each(|ticks| *ticks = 0);
    }
    let [user, kernel, children_user, children_kernel] = ticks.as_slice() else { return None };
    let kernel = kernel + children_kernel;
    Some(Times { kernel: kernel * TICK, all: (kernel + user + children_user) * TICK })
}

fn of_children() -> Option<Times> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let kernel = u64::try_from(usage.system_time().num_microseconds()).ok()?;
    let user = u64::try_from(usage.user_time().num_microseconds()).ok()?;
    Some(Times { kernel: kernel * 1000, all: (kernel + user) * 1000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(samples: &[(u64, u64)]) -> Counted {
        let mut counted = Counted::default();
        samples.iter().for_each(|(weight, each)| counted.add(*weight, *each));
        counted
    }

    #[test]
    fn a_sum_is_as_sure_as_it_was_sampled() {
        // Each occurrence is a sample.
        assert_eq!(counted(&[(1, 10), (1, 1000)]).variance(Some(2)), 0.0);
        // How many there are of one size says what they add up to.
        assert_eq!(counted(&[(10, 100); 5]).variance(Some(50)), 0.0);
        // Otherwise each of the five stands for ten: 5 * 10 * 9 * 100².
        assert_eq!(counted(&[(10, 100); 5]).variance(None), 4_500_000.0);
        // Half of the occurrences have one size, half another one, 45 off the mean: 4 * 10 * 9 * 45².
        let two_sizes = counted(&[(10, 10), (10, 100), (10, 10), (10, 100)]);
        assert_eq!(two_sizes.variance(Some(40)), 729_000.0);
        // What was lost makes it less sure.
        assert!(two_sizes.variance(Some(80)) > 2.0 * two_sizes.variance(Some(40)));
        assert!(counted(&[(1, 10), (1, 1000)]).variance(Some(4)) > 0.0);
    }

    #[test]
    fn of_what_a_counter_saw_as_much_is_missing_in_all_programs() {
        let in_target = |of_all, counted| {
            let of_counter = Some(OfCounter { sampled: of_all, counted });
            Happened { of_counter, ..Happened::default() }.in_target(30)
        };
        assert_eq!(in_target(60, 80), Some(40));
        assert_eq!(in_target(60, 40), Some(20));
        assert_eq!(Happened::default().in_target(30), None);
    }

    #[test]
    fn a_process_that_is_gone_has_had_the_time_that_it_was_seen_to_have() {
        let gone = Pid(u32::MAX >> 1);
        let last = Times { kernel: TICK, all: 3 * TICK };
        let (start, whole) = (Times { kernel: TICK, all: TICK }, true);
        let mut times = ProcessTimes::Attached { pids: vec![gone], whole, start, last };
        times.look();
        assert_eq!(times.all(), Some(Nanos(3 * TICK)));
        assert_eq!(times.kernel_share(), Some(1.0 / 3.0));
    }

    #[test]
    fn kernel_time_is_read_behind_a_name_with_parentheses() {
        let stat = b"42 (a) b) (c) S 1 42 42 0 -1 4194304 100 0 0 0 30 20 7 5 20 0 1 0 999";
        assert_eq!(times_of(stat, true), Some(Times { kernel: 25 * TICK, all: 62 * TICK }));
        assert_eq!(times_of(stat, false), Some(Times { kernel: 20 * TICK, all: 50 * TICK }));
        assert_eq!(times_of(b"42 (a) S 1", true), None);
    }
}
