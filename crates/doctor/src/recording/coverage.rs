//! What of the target's CPU time the samples stand for, and why not for all of it.

use flame_message::{Failure, Note};
use flame_profile::{Coverage, Health, Hz, Nanos, Occurrences, Profile};
use flame_recorder::ProcessTimes;
use flame_sampler::{PerTask, Privilege, Rate, Scope, Session};

use crate::rights::{is_root, more_rights};

/// Less than this is worth a word, and is an error with `--strict`.
const ENOUGH: f64 = 0.95;

/// More than this is worth one, too.
const TOO_MUCH: f64 = 1.1;

/// So many tasks of a recording that have fewer samples than [`FEW_SAMPLES`] each have much of their time in their starts.
const MANY_TASKS: u64 = 5;

/// Fewer say little.
const FEW_SAMPLES: u64 = 30;

/// How far below 1 the coverage may be by chance alone: two standard errors. Of a CPU's random
/// moments, as many hit the target as it has a share of the CPU, more or less; a target that never
/// leaves its CPUs is met every time.
fn chance(profile: &Profile, session: &Session) -> f64 {
    let (Some(coverage), Some(duration)) = (profile.health.coverage, profile.meta.duration) else {
        return 0.0;
    };
    // Those that the time would have; of several events, most samples may be of others.
    let accounted = coverage.accounted.as_secs_f64();
    let samples = match session.rate() {
        Rate::Frequency(Hz(hz)) => accounted * hz as f64,
        Rate::Period(nanoseconds) => accounted * 1e9 / nanoseconds as f64,
    };
    let samples = samples.max(1.0);
    if session.scope() != Scope::Cpus {
        return 1.0 / samples;
    }
    let time = duration.as_secs_f64() * session.cpu_count().max(1) as f64;
    let elsewhere = 1.0 - (accounted / time).clamp(0.0, 1.0);
    2.0 * (elsewhere / samples).sqrt()
}

/// Says which share of the CPU time was not seen and why, where it is worth a word. So many tasks
/// of the target have ended.
pub fn unseen(
    profile: &Profile,
    session: &Session,
    times: &ProcessTimes,
    ended_tasks: u64,
) -> Option<Note> {
    let health = &profile.health;
    let Some(coverage) = health.coverage else { return uncounted(health) };
    let missing = 1.0 - coverage.fraction();
    let chance = chance(profile, session);
    if coverage.accounted == Nanos(0) {
        return None;
    }
    // A few say nothing: the kernel's own count may be of another tick.
    if coverage.fraction() > TOO_MUCH + chance && health.samples >= FEW_SAMPLES {
        return Some(Note::plain(format!(
            "the samples stand for {:.1} % more CPU time than the kernel counted for the target: \
             its total is too high by that, and shares may be off",
            -missing * 100.0
        )));
    }
    if missing <= 1.0 - ENOUGH + chance {
        return None;
    }
    let mut reasons = Vec::new();
    if session.privilege() == Privilege::User {
        let share = times.kernel_share();
        if share.is_none_or(|share| share >= 0.005) {
            let share =
                share.map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0));
            reasons.push(format!("it was in the kernel{share}, and only user code is sampled"));
        }
    }
    // What ended cannot have had more than an interval each.
    let interval = profile.meta.period.unwrap_or(u64::MAX);
    let of_ended = ended_tasks.saturating_mul(interval) as f64;
    let is_of_ended = of_ended >= missing * coverage.accounted.0 as f64 / 2.0;
    let short_lived = short_lived(health, session.scope(), ended_tasks);
    reasons.extend(short_lived.filter(|_| is_of_ended || health.short_tasks > 0));
    if health.has_losses() {
        reasons.push("records were lost or events stopped".to_owned());
    }
    if session.was_kept_away() {
        let why =
            "flame was kept from its CPUs, by real-time tasks or by the host of a virtual machine";
        reasons.push(why.to_owned());
    }
    let reasons = if reasons.is_empty() {
        "samples are missing, and it is not known why (on virtual machines, timers come too late \
         for work that takes less than some 50 us at a time)"
            .to_owned()
    } else {
        reasons.join("; ")
    };
    let text = format!("{:.1} % of the target's CPU time was not seen: {reasons}", missing * 100.0);
    let mend = match session.scope() {
        Scope::Tasks(PerTask::NoPermission) => Some(match is_root() {
            true => more_rights(),
            false => format!("sudo flame record ..., or {}", more_rights()),
        }),
        Scope::Tasks(PerTask::AskedFor) if ended_tasks > 0 && is_of_ended => {
            Some("without --per-task".to_owned())
        }
        _ => None,
    };
    Some(Note::plain(text).or_try(mend))
}

/// Says that starts of tasks were not seen where those are much of what there is. So many tasks of the target have ended.
pub fn of_starts(profile: &Profile, session: &Session, ended_tasks: u64) -> Option<Note> {
    let Rate::Frequency(Hz(hz)) = session.rate() else { return None };
    let is_by_task = session.scope() != Scope::Cpus && session.event().is_clock();
    let is_much = profile.health.samples < FEW_SAMPLES.saturating_mul(ended_tasks);
    (is_by_task && ended_tasks >= MANY_TASKS && is_much).then(|| {
        let interval = 1000.0 / hz.max(1) as f64;
        Note::plain(format!(
            "{ended_tasks} threads and processes have ended. What each did in the first {:.1} to {interval:.1} ms of its CPU \
             time was not seen, and those that one thread has started may have been sampled at the same moments of their \
             lives: shares may be off",
            interval / 2.0
        ))
        .or_try(match session.scope() {
            Scope::Tasks(PerTask::AskedFor) => Some("without --per-task".to_owned()),
            _ if is_root() => Some(more_rights()),
            _ => Some(format!("sudo flame record ..., or {}", more_rights())),
        })
    })
}

/// Says that what happened while nothing was sampled has no stack, where that is much.
fn uncounted(health: &Health) -> Option<Note> {
    let missing = 1.0 - health.occurrences?.fraction();
    (missing > 1.0 - ENOUGH).then(|| {
        Note::plain(format!(
            "{:.1} % of the events were not seen: the total is that of the kernel's count of them, the \
             shares are those of the events that were seen",
            missing * 100.0
        ))
    })
}

/// What sampling task by task does not see of those that have ended.
fn short_lived(health: &Health, scope: Scope, ended_tasks: u64) -> Option<String> {
    match (scope, health.short_tasks, ended_tasks) {
        (Scope::Cpus, _, _) | (_, _, 0) => None,
        (_, 0, 1) => Some(
            "of the one task that ended, up to an interval between two samples is missing"
                .to_owned(),
        ),
        (_, 0, ended) => Some(format!(
            "of each of the {ended} tasks that ended, up to an interval between two samples is \
             missing"
        )),
        (_, 1, _) => Some(
            "one task ended before its first sample, which only sampling by CPU would have seen"
                .to_owned(),
        ),
        (_, unseen, _) => Some(format!(
            "{unseen} tasks ended before their first sample, which only sampling by CPU would have seen"
        )),
    }
}

/// What `--strict` does not let pass: a coverage that is below 95 % by more than chance can explain,
/// and any loss.
pub fn strict(profile: &Profile, session: &Session) -> Option<Failure> {
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
    let mut failure = Failure::new("the profile is incomplete, and --strict was given");
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
        let seen = Occurrences { event: 0, sampled: 90, happened: 100, effective: 90 };
        assert!(!is_whole(&Health { occurrences: Some(seen), ..Health::default() }, 0.0));
    }

    #[test]
    fn events_that_were_not_seen_are_told_of() {
        let told = |sampled| {
            let occurrences =
                Some(Occurrences { event: 0, sampled, happened: 100, effective: sampled });
            uncounted(&Health { occurrences, ..Health::default() })
        };
        let note = told(80).expect("a fifth is much");
        assert!(note.text().starts_with("20.0 % of the events were not seen"), "{}", note.text());
        assert!(told(97).is_none());
        assert!(told(103).is_none());
    }
}
