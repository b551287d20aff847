//! What of the target's CPU time the samples stand for, and why not for all of it.

use std::fs;

use flame_profile::{Coverage, Health, Nanos, Occurrences, Pid, Profile};
use flame_recorder::EVENT_VALUE;
use flame_sampler::{Losses, PerTask, Privilege, SamplerConfig, Scope, Session, Target};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::notes::Note;
use crate::message::Failure;
use crate::message::rights::{is_root, more_rights};

/// Less than this is worth a word, and is an error with `--strict`.
const ENOUGH: f64 = 0.95;

/// Nanoseconds in a tick of /proc/PID/stat.
const TICK: u64 = 10_000_000;

/// Adds what the kernel dropped. What LOST records told of is in `health` and misses the end of a
/// recording; what the events say misses nothing, but not every kernel counts it.
pub(super) fn add_losses(health: &mut Health, session: &Session, losses: Losses) {
    health.lost_records = health.lost_records.max(losses.lost_records);
    health.throttled_time = losses.throttled;
    health.stray_samples = losses.stray_samples;
    if session.event().is_hardware() {
        health.multiplexed_time = losses.enabled.saturating_since(losses.running);
    }
    if session.scope() == Scope::Cpus {
        health.short_tasks = 0;
    }
}

/// CPU time is comparable with what the kernel accounted only where samples stand for CPU time; what
/// is counted one by one with what it counted.
pub(super) fn add(profile: &mut Profile, session: &Session, accounted: Option<Nanos>) {
    add_occurrences(profile, session);
    if let (true, Some(accounted)) = (session.event().is_clock(), accounted) {
        let sampled = Nanos(profile.total(EVENT_VALUE).0);
        profile.health.coverage = Some(Coverage { sampled, accounted });
    }
}

/// Says how many of the occurrences that the kernel counted the samples stand for. Where flame chose
/// the period, samples stand for all of them from then on, in the proportions in which they came: a
/// period is broken off now and then, and the kernel takes only so many samples in a tick.
fn add_occurrences(profile: &mut Profile, session: &Session) {
    let Some(happened) = session.happened() else { return };
    let sampled = profile.total(EVENT_VALUE).0;
    profile.health.occurrences = Some(Occurrences { sampled, happened });
    if session.chooses_period() {
        profile.scale(EVENT_VALUE, happened);
    }
}

/// What the kernel accounted to whole processes, with the part that they spent in the kernel.
///
/// An event that counts CPU time task by task misses what is spent before a task's first switch
/// and behind the end of its event in exit: 14 us a task. What is accounted to processes misses
/// that not, but knows of children only once they were waited for, and here in ticks of 10 ms where
/// it is not a launched program. So the larger of both is taken.
#[derive(Debug)]
pub(super) enum ProcessTimes {
    /// Of processes that ran already, from what they had at the beginning.
    Attached {
        /// The processes.
        pids: Vec<Pid>,
        /// Whether all that they had started is among them. If not, the time of an ended child may
        /// be of long before the recording: processes are given it when they wait for the child.
        whole: bool,
        /// Their times at the beginning.
        start: Times,
    },
    /// Of flame's children: the launched program and those that it waited for.
    Launched,
    /// Not to be had.
    Unknown,
}

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    kernel: u64,
    all: u64,
}

impl ProcessTimes {
    /// Counts from now on.
    ///
    /// `pids` are the processes that were taken, and `whole` says whether all below them are. Of
    /// some CPUs only nothing is known.
    pub(super) fn begin(config: &SamplerConfig, pids: &[Pid]) -> ProcessTimes {
        let whole = config.descendants && config.inherit;
        match &config.target {
            _ if config.cpus.is_some() => ProcessTimes::Unknown,
            Target::Processes(_) => {
                let pids = pids.to_vec();
                ProcessTimes::Attached { start: sum(&pids, whole), whole, pids }
            }
            Target::Launched(_) => ProcessTimes::Launched,
            _ => ProcessTimes::Unknown,
        }
    }

    /// The larger of what events counted and what was accounted to processes, as far as that is for
    /// the same time: what a launched program used is known once it `has_ended`.
    pub(super) fn at_least(&self, counted: Option<Nanos>, has_ended: bool) -> Option<Nanos> {
        let slack = match self {
            // Four fields were cut to whole ticks, at the beginning and at the end.
            ProcessTimes::Attached { pids, .. } => 4 * TICK * pids.len() as u64,
            ProcessTimes::Launched if has_ended => 0,
            _ => return counted,
        };
        let accounted = Nanos(self.times().all.saturating_sub(slack));
        counted.map(|counted| counted.max(accounted))
    }

    fn times(&self) -> Times {
        match self {
            ProcessTimes::Attached { pids, whole, start } => {
                let now = sum(pids, *whole);
                let since = |now: u64, start: u64| now.saturating_sub(start);
                Times { kernel: since(now.kernel, start.kernel), all: since(now.all, start.all) }
            }
            ProcessTimes::Launched => of_children().unwrap_or_default(),
            ProcessTimes::Unknown => Times::default(),
        }
    }

    /// The share that was spent in the kernel, from 0 to 1. `None` where it cannot be known.
    fn kernel_share(&self) -> Option<f64> {
        let Times { kernel, all } = self.times();
        (all > 0).then(|| kernel as f64 / all as f64)
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

/// How far below 1 the coverage may be by chance alone: two standard errors. Of a CPU's random
/// moments, as many hit the target as it has a share of the CPU, more or less; a target that never
/// leaves its CPUs is met every time.
pub(super) fn chance(profile: &Profile, session: &Session) -> f64 {
    let (Some(coverage), Some(duration)) = (profile.health.coverage, profile.meta.duration) else {
        return 0.0;
    };
    let samples = profile.health.samples.max(1) as f64;
    if session.scope() != Scope::Cpus {
        return 1.0 / samples;
    }
    let time = duration.as_secs_f64() * session.cpu_count().max(1) as f64;
    let elsewhere = 1.0 - (coverage.accounted.as_secs_f64() / time).clamp(0.0, 1.0);
    2.0 * (elsewhere / samples).sqrt()
}

/// Says which share of the CPU time was not seen and why, where it is worth a word. So many tasks
/// of the target have ended.
pub(super) fn unseen(
    profile: &Profile,
    session: &Session,
    times: &ProcessTimes,
    ended_tasks: u64,
) -> Option<Note> {
    let health = &profile.health;
    let coverage = health.coverage?;
    let missing = 1.0 - coverage.fraction();
    if missing <= 1.0 - ENOUGH + chance(profile, session) || coverage.accounted == Nanos(0) {
        return None;
    }
    let mut reasons = Vec::new();
    if session.privilege() == Privilege::User {
        let share = times.kernel_share();
        let share = share.map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0));
        reasons.push(format!("it was in the kernel{share}, and only user code is sampled"));
    }
    reasons.extend(short_lived(health, session.scope(), ended_tasks));
    if health.has_losses() {
        reasons.push("records were lost or events stopped".to_owned());
    }
    let reasons =
        if reasons.is_empty() { "too few samples".to_owned() } else { reasons.join("; ") };
    let text = format!("{:.1} % of the target's CPU time was not seen: {reasons}", missing * 100.0);
    let mend = match session.scope() {
        Scope::Tasks(PerTask::NoPermission) => Some(match is_root() {
            true => more_rights(),
            false => format!("sudo flame record ..., or {}", more_rights()),
        }),
        Scope::Tasks(PerTask::AskedFor) if ended_tasks > 0 => Some("without --per-task".to_owned()),
        _ => None,
    };
    Some(Note::plain(text).or_try(mend))
}

/// What sampling task by task does not see of those that have ended.
fn short_lived(health: &Health, scope: Scope, ended_tasks: u64) -> Option<String> {
    match (scope, health.short_tasks, ended_tasks) {
        (Scope::Cpus, _, _) | (_, _, 0) => None,
        (_, 0, ended) => Some(format!(
            "of each of the {ended} tasks that ended, up to an interval between two samples is \
             missing"
        )),
        (_, unseen, _) => Some(format!(
            "{unseen} tasks ended before their first sample, which only sampling by CPU sees"
        )),
    }
}

/// What `--strict` does not let pass: a coverage that is below 95 % by more than chance can explain,
/// and any loss.
pub(super) fn strict(profile: &Profile, session: &Session) -> Option<Failure> {
    let sees_all = session.scope() == Scope::Cpus && session.privilege() != Privilege::User;
    let health = &profile.health;
    (!is_whole(health, chance(profile, session))).then(|| not_whole(health, sees_all))
}

fn is_whole(health: &Health, chance: f64) -> bool {
    let occurrences = health.occurrences.map_or(1.0, Occurrences::fraction);
    let coverage = health.coverage.map_or(occurrences, Coverage::fraction);
    coverage >= ENOUGH - chance && !health.has_losses()
}

/// `sees_all` says whether more rights would not show more.
fn not_whole(health: &Health, sees_all: bool) -> Failure {
    let mut failure = Failure::new("the profile is not whole, and --strict was given");
    failure = failure.why(health.one_line());
    match health.has_losses() {
        true => failure.or_try("a lower frequency (-F), or a smaller stack copy (--call-graph)"),
        false if sees_all => failure.or_try("a longer recording, or a higher frequency (-F)"),
        false if is_root() => failure,
        false => {
            failure.or_try("sudo flame record ..., which sees the kernel and short-lived tasks")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_time_is_read_behind_a_name_with_parentheses() {
        let stat = b"42 (a) b) (c) S 1 42 42 0 -1 4194304 100 0 0 0 30 20 7 5 20 0 1 0 999";
        assert_eq!(times_of(stat, true), Some(Times { kernel: 25 * TICK, all: 62 * TICK }));
        assert_eq!(times_of(stat, false), Some(Times { kernel: 20 * TICK, all: 50 * TICK }));
        assert_eq!(times_of(b"42 (a) S 1", true), None);
    }

    #[test]
    fn strict_lets_whole_profiles_pass_only() {
        let whole = Coverage { sampled: Nanos(95), accounted: Nanos(100) };
        let mut health = Health { coverage: Some(whole), ..Health::default() };
        assert!(is_whole(&health, 0.0));
        health.lost_records = 1;
        assert!(!is_whole(&health, 0.0));
        let less = Coverage { sampled: Nanos(94), accounted: Nanos(100) };
        let health = Health { coverage: Some(less), ..Health::default() };
        assert!(!is_whole(&health, 0.0));
        assert!(is_whole(&health, 0.02));
        let seen = Occurrences { sampled: 90, happened: 100 };
        assert!(!is_whole(&Health { occurrences: Some(seen), ..Health::default() }, 0.0));
    }
}
