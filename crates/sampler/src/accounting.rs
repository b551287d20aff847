//! What the kernel counts of the target, to hold the samples against: CPU time, or how often the
//! event happened.
//!
//! For tasks it is an event that only counts (the task's clock, or the sampled event itself): it is
//! exact, is read where the samples begin and end, and includes threads and children that have come and
//! gone. It takes one descriptor a thread, on whatever CPU it runs. The CPU time of a control group
//! is what the kernel counts for the group; that of the whole machine what /proc/stat calls not idle,
//! in ticks of 10 ms, without what flame's readers ran. What happened there the sampling events count themselves.

use std::fs;

use flame_profile::{Cpu, Nanos};

use crate::cgroup::Cgroup;
use crate::descriptor::Descriptor;
use crate::session::{Events, Session};

/// Nanoseconds in a tick of /proc/stat: USER_HZ is 100 on every architecture that flame runs on.
const TICK: u64 = 10_000_000;

/// What measures the target, in the event's unit: nanoseconds for clocks.
#[derive(Debug)]
pub(crate) enum Accounted {
    /// Counting events of each thread, and what they had counted when the recording began.
    Tasks {
        /// The events.
        counters: Vec<Counter>,
        /// What they said at the beginning.
        start: u64,
    },
    /// What the sampling events count, which see nothing but the target.
    Samplers {
        /// What they had counted when the recording began.
        start: u64,
    },
    /// The busy time of those CPUs.
    Machine {
        /// The CPUs that are sampled.
        cpus: Vec<Cpu>,
        /// Busy and idle time when the recording began.
        start: (Nanos, Nanos),
    },
    /// The CPU time of a control group.
    Group {
        /// The group.
        group: Cgroup,
        /// What its tasks had used when the recording began.
        start: Nanos,
    },
    /// It cannot be known.
    Unknown,
}

/// A counting event of one thread and, where it inherits, what it starts.
#[derive(Debug)]
pub(crate) struct Counter(pub(crate) Descriptor);

impl Accounted {
    /// The busy time of CPUs from now on.
    pub(crate) fn of_machine(cpus: &[Cpu]) -> Accounted {
        Accounted::Machine { cpus: cpus.to_vec(), start: times(cpus).unwrap_or_default() }
    }

    /// The CPU time of a control group from now on.
    pub(crate) fn of_group(group: &Cgroup) -> Accounted {
        match group.cpu_time() {
            Some(start) => Accounted::Group { group: group.clone(), start },
            None => Accounted::Unknown,
        }
    }

    /// Counts from now on, whatever came before. `samplers` is what the sampling events have counted, and `readers` for
    /// how long flame's readers have run: right after samples, so that none hits them.
    pub(crate) fn begin(&mut self, samplers: u64, readers: Nanos) {
        match self {
            Accounted::Samplers { start } => *start = samplers,
            Accounted::Tasks { counters, start } => *start = sum(counters),
            Accounted::Machine { cpus, start } => {
                let (busy, idle) = times(cpus).unwrap_or(*start);
                *start = (busy.saturating_since(readers), idle);
            }
            Accounted::Group { group, start } => *start = group.cpu_time().unwrap_or(*start),
            Accounted::Unknown => {}
        }
    }

    /// A CPU came online and is sampled from now on; what it did before does not count.
    pub(crate) fn add_cpu(&mut self, cpu: Cpu) {
        if let Accounted::Machine { cpus, start } = self
            && !cpus.contains(&cpu)
        {
            let (busy, idle) = times(&[cpu]).unwrap_or_default();
            *start = (start.0 + busy, start.1 + idle);
            cpus.push(cpu);
        }
    }

    /// CPU time or occurrences since it began; `None` where the kernel does not say, as of CPUs that
    /// are offline. `samplers` and `readers` are as at the beginning.
    pub(crate) fn read(&self, samplers: impl FnOnce() -> u64, readers: Nanos) -> Option<u64> {
        Some(match self {
            Accounted::Tasks { counters, start } => sum(counters).saturating_sub(*start),
            Accounted::Samplers { start } => samplers().saturating_sub(*start),
            Accounted::Machine { cpus, start } => {
                times(cpus)?.0.saturating_since(readers).saturating_since(start.0).0
            }
            Accounted::Group { group, start } => group.cpu_time()?.saturating_since(*start).0,
            Accounted::Unknown => return None,
        })
    }
}

fn sum(counters: &[Counter]) -> u64 {
    counters.iter().map(|counter| counter.0.read::<1>().map_or(0, |[count]| count)).sum()
}

/// What samples of one of the CPU's counters stand for, and what it has counted meanwhile: both of all programs that
/// its events saw. Samples are missing where the kernel takes only so many a tick, and of what came since the last one.
#[derive(Clone, Copy, Debug)]
pub struct OfCounter {
    /// The sum of what each sample stands for.
    pub sampled: u64,
    /// The counter's own count, without flame's looks at its samples: none of them is hit by a sample, since each begins
    /// right after one.
    pub counted: u64,
}

impl Session {
    /// CPU time that the kernel accounted to the target since sampling began; `None` where it
    /// cannot be known.
    pub fn accounted(&self) -> Option<Nanos> {
        if self.plan.event.is_clock() { self.count().map(Nanos) } else { None }
    }

    /// How often the event happened in the target since sampling began, by the kernel's own counter;
    /// `None` for clocks and the CPU's events, and where it cannot be known.
    pub fn happened(&self) -> Option<u64> {
        if self.plan.event.is_occurrence() { self.count() } else { None }
    }

    pub(crate) fn count(&self) -> Option<u64> {
        if let Some(counted) = self.counted {
            return counted;
        }
        self.accounted.read(|| self.count_of_samplers(), self.readers.ran())
    }

    pub(crate) fn count_of_samplers(&self) -> u64 {
        match &self.events {
            Events::Cpus(samplers) => samplers.count(&self.plan),
            Events::Tasks(_) => 0,
        }
    }

    /// `None` of events that are no counters of the CPU.
    pub fn of_counter(&self) -> Option<OfCounter> {
        let is_counter = self.event().is_hardware();
        is_counter.then(|| OfCounter { sampled: self.sampled, counted: self.losses().count })
    }

    /// For how long the CPUs that are sampled had nothing to do since sampling began; `None` unless
    /// the whole machine is, and where one of them is offline.
    pub fn idle(&self) -> Option<Nanos> {
        match &self.accounted {
            Accounted::Machine { cpus, start } => Some(times(cpus)?.1.saturating_since(start.1)),
            _ => None,
        }
    }
}

/// For how long CPUs were busy and idle since boot; `None` where one of them is offline.
fn times(cpus: &[Cpu]) -> Option<(Nanos, Nanos)> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    Some((time_in(&stat, cpus, &BUSY)?, time_in(&stat, cpus, &IDLE)?))
}

/// Of `cpuN user nice system idle iowait irq softirq steal guest guest_nice`: all but idle and iowait
/// are work, and guest time is part of user time already. Steal is time in which the CPU was not
/// there; no sample can be taken of it.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];
const IDLE: [usize; 2] = [3, 4];

fn time_in(stat: &str, cpus: &[Cpu], wanted: &[usize]) -> Option<Nanos> {
    let (mut ticks, mut found) = (0, 0);
    for line in stat.lines() {
        let Some((cpu, times)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        if cpu.parse().is_ok_and(|cpu| cpus.contains(&Cpu(cpu))) {
            let times = times.split_ascii_whitespace().map(|time| time.parse().unwrap_or(0));
            let wanted = times.enumerate().filter(|(index, _)| wanted.contains(index));
            found += 1;
            ticks += wanted.map(|(_, time): (usize, u64)| time).sum::<u64>();
        }
    }
    (found == cpus.len()).then_some(Nanos(ticks.saturating_mul(TICK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_busy_idle_or_not_there() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                    cpu0 1 2 4 1000 2000 8 16 4000 1 0\n\
                    cpu1 100 0 0 0 0 0 0 0 0 0\n\
                    intr 5\n";
        let busy = |cpus: &[Cpu]| time_in(stat, cpus, &BUSY);
        assert_eq!(busy(&[Cpu(0)]), Some(Nanos(31 * TICK)), "without steal and guests");
        assert_eq!(busy(&[Cpu(0), Cpu(1)]), Some(Nanos(131 * TICK)));
        assert_eq!(busy(&[Cpu(0), Cpu(2)]), None, "one is offline");
        assert_eq!(time_in(stat, &[Cpu(0), Cpu(1)], &IDLE), Some(Nanos(3000 * TICK)));
    }

    #[test]
    fn what_readers_ran_is_no_time_that_samples_could_hit() {
        let mut time = Accounted::of_machine(&[Cpu(0)]);
        time.begin(0, Nanos(1 << 20));
        let readers = |ran| time.read(|| 0, Nanos((1 << 20) + ran)).unwrap();
        assert!(readers(0) < 60_000_000_000, "not what they ran before");
        assert_eq!(readers(u64::MAX >> 2), 0);
    }

    #[test]
    fn cpu_that_came_online_counts_from_then_on() {
        let mut time = Accounted::of_machine(&[]);
        time.add_cpu(Cpu(0));
        time.add_cpu(Cpu(0));
        let Accounted::Machine { cpus, start } = &time else { panic!("{time:?}") };
        assert_eq!(cpus, &[Cpu(0)]);
        assert!(*start <= times(&[Cpu(0)]).unwrap());
        assert!(time.read(|| 0, Nanos(0)).unwrap() < 60_000_000_000, "not what it did since boot");
    }
}
