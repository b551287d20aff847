//! What had to give way, said once on stderr and kept with the profile.

use std::{fs, io};

use flame_message::{Note, group_thousands};
use flame_profile::{Health, Missing, Nanos, NotRead, Pid, Profile, ScriptEnd, StackEnd};
use flame_sampler::{Concession, MAX_STACK_COPY, Rate, Refusal, Refused, Session, Sessions};

use crate::failure::failure;
use crate::rights::{by_root, more_rights, paranoid};

/// Samples a second from which on what they cost is worth a word: a tenth of a CPU.
const COSTLY: u64 = 8000;

/// A word about kernel functions that have no names because their addresses are hidden.
pub fn of_hidden_kernel(health: &Health) -> Option<Note> {
    let hidden = |(_, missing): &(String, Missing)| *missing == Missing::KernelHidden;
    if !health.unnamed.keys().any(hidden) {
        return None;
    }
    let restrict = fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    let (why, mend) = match restrict.trim() {
        // To nobody.
        "2" => ("kernel.kptr_restrict is 2".to_owned(), by_root("sysctl kernel.kptr_restrict=1")),
        // To processes with CAP_SYSLOG.
        "1" => (
            "kernel.kptr_restrict is 1".to_owned(),
            format!("{}, or {}", by_root("sysctl kernel.kptr_restrict=0"), more_rights()),
        ),
        // To whom perf_event shows kernel code.
        _ => (paranoid(), rights_for_kernel_code()),
    };
    let text = format!("kernel functions have no names: addresses are hidden ({why})");
    Some(Note::new(text, mend))
}

fn rights_for_kernel_code() -> String {
    format!("{}, or {}", by_root("sysctl kernel.perf_event_paranoid=1"), more_rights())
}

/// What of a recording in progress was refused.
pub fn of_refusals(sessions: &Sessions) -> Vec<Note> {
    let note = |refusal: &Refusal| {
        let why = failure(&refusal.error);
        Note::plain(match refusal.what {
            Refused::Cpu(cpu) => {
                format!("CPU {cpu} came online and was not sampled: {}", why.what())
            }
            Refused::Occurrences => {
                format!("sampling stopped before the recording ended: {}", why.what())
            }
            Refused::Stacks(cpu) => format!(
                "CPU {cpu}: flame stopped reading script frames and stacks beyond their copy, since \
                 reading memory of a process took over a second: it is on a file system that does \
                 not answer, or the machine is very busy"
            ),
        })
    };
    sessions.all().iter().flat_map(Session::refusals).map(note).collect()
}

/// That what is shown is nothing, while another event of the recording did happen.
pub fn of_nothing_shown(profile: &Profile, shown: usize) -> Option<Note> {
    let is_nothing = |value: usize| profile.total(value).0 == 0;
    let names = profile.value_types().iter().map(|value| &value.name);
    // Each event has two values: its samples, and what they stand for.
    let mut events = names.enumerate().skip(1).step_by(2);
    let (_, other) = events.find(|(value, _)| !is_nothing(*value))?;
    // Of clocks the first of the two is shown.
    let name = &profile.value_types().get(shown | 1)?.name;
    is_nothing(shown).then(|| {
        Note::new(
            format!("{name} did not happen: what is shown of it is empty"),
            format!("--value {other}"),
        )
    })
}

/// A smaller part of the target's CPU time is not worth a word.
const SLOWED: f64 = 0.05;

/// Nor is a smaller part of the time that passed.
const NOTICED: f64 = 0.01;

/// Nor is a smaller part of what slowed it down.
const WORTH_SAYING: f64 = 0.1;

/// More stacks than one in so many that are not whole are worth a word.
const MANY: u64 = 20;

/// The same of samples that were not read in time.
const MANY_LATE: u64 = 50;

/// That larger copies would make many stacks whole, where nothing reads what copies lack.
pub fn of_short_copies(health: &Health) -> Option<Note> {
    let short = health.stack_ends.get(&StackEnd::CopyTooShort).copied()?;
    let all: u64 = health.stack_ends.values().sum();
    let unread = health.not_read.get(&NotRead::NoReader).copied().unwrap_or(0);
    let copy = health.stack_copies.mean_asked()?;
    let may_be_larger = copy.0 * 3 / 2 < MAX_STACK_COPY.0;
    (short > all / MANY && unread > 0 && may_be_larger).then(|| {
        Note::new(
            format!(
                "{} stacks go on beyond their copies of {} KiB",
                group_thousands(short),
                copy.0 / 1024
            ),
            format!("--call-graph dwarf,{}", MAX_STACK_COPY.0),
        )
    })
}

/// That what was not read in time is not missing at random.
pub fn of_late_readers(sessions: &Sessions, health: &Health) -> Option<Note> {
    let yields = sessions.all().iter().any(Session::readers_yield);
    let scripts = health.scripts.iter().filter(|((_, end), _)| *end == ScriptEnd::NotRead);
    let scripts: u64 = scripts.map(|(_, count)| count).sum();
    let stacks = health.not_read.get(&NotRead::Late).copied().unwrap_or(0);
    let late = scripts.max(stacks);
    (yields && late > health.samples / MANY_LATE).then(|| {
        Note::new(
            format!(
                "{} samples were not read in time, since flame may not go before the program. They are of some moments more than of \
                 others, such as those right after a wait: shares of functions of scripts, and below deep stacks, may be off",
                group_thousands(late)
            ),
            more_rights(),
        )
    })
}

/// What being recorded has cost the target, where that is much, and always for breakpoints. So many of its tasks have ended.
pub fn of_cost(
    sessions: &Sessions,
    profile: &Profile,
    accounted: Option<Nanos>,
    ended_tasks: u64,
) -> Option<Note> {
    let cost = |is_function: bool| {
        let all = sessions.all().iter().filter(|one| one.event().is_function() == is_function);
        let each = all.filter_map(|one| Some((one.happened()?, one.cost_of_occurrence())));
        each.fold((0, 0.0), |(count, seconds), (happened, cost)| {
            (count + happened, seconds + happened as f64 * cost.as_secs_f64())
        })
    };
    let samples = profile.health.samples + profile.health.stray_samples;
    let of_samples = sessions.all().iter().map(|one| one.cost_of_samples(samples)).min();
    let of_samples = of_samples.unwrap_or_default().as_secs_f64();
    let start: f64 = sessions.all().iter().map(|one| one.cost_of_start().as_secs_f64()).sum();
    let (calls, of_calls) = cost(true);
    let (events, of_events) = cost(false);
    let parts = [
        (of_calls, calls, "calls that hit a breakpoint"),
        (of_events, events, "events"),
        (of_samples, samples, "samples"),
        (ended_tasks as f64 * start, ended_tasks, "threads and processes that it started"),
    ];
    let all: f64 = parts.iter().map(|(seconds, ..)| seconds).sum();
    // It cannot be more than there was.
    let least = accounted.map_or(all, |time| time.as_secs_f64().min(all));
    let parts = parts.map(|(seconds, count, what)| (seconds * least / all.max(1e-9), count, what));
    let all = least;
    let share = accounted.map(|time| all / time.as_secs_f64().max(f64::MIN_POSITIVE));
    // Who waits nearly all the time is not kept from anything.
    let elapsed = profile.meta.duration.map_or(0.0, Nanos::as_secs_f64);
    let is_much = share.is_some_and(|share| share > SLOWED) && all > elapsed * NOTICED;
    if calls == 0 && !is_much {
        return None;
    }
    let shown = parts.iter().filter(|(seconds, ..)| *seconds > all * WORTH_SAYING);
    let shown = shown.map(|(seconds, count, what)| {
        format!("{} {what} ({seconds:.2} s)", group_thousands(*count))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let share = share.map_or_else(String::new, |share| {
        format!(", {:.0} % of its CPU time", (share * 100.0).min(100.0))
    });
    Some(Note::plain(format!("the target was slowed down by some {all:.2} s{share}: {shown}")))
}

/// The notes on what was opened; what was refused for several events is said once.
pub fn of_sessions(sessions: &Sessions) -> Vec<Note> {
    let mut conceded: Vec<&Concession> = Vec::new();
    for concession in sessions.all().iter().flat_map(Session::concessions) {
        if !conceded.contains(&concession) {
            conceded.push(concession);
        }
    }
    let note = |concession: &Concession| match concession {
        Concession::NoPmu => Note::plain(
            "no hardware counters on this machine: sampling cpu-clock instead of cycles",
        ),
        Concession::UserOnly => Note::new(
            format!("no permission for kernel code ({}): user code only", paranoid()),
            rights_for_kernel_code(),
        ),
        Concession::DescendantsDenied { count } => Note::new(
            format!("{count} processes below the target are left out: permission denied"),
            more_rights(),
        ),
        Concession::SmallerRing { ring, wanted } => Note::new(
            format!(
                "not allowed to lock more memory: ring buffers have {} KiB per CPU, and samples may be lost",
                ring.0 / 1024
            ),
            by_root(&format!("sysctl kernel.perf_event_mlock_kb={}", wanted.0 / 1024 + 4)),
        ),
    };
    let session = sessions.first();
    let fast = match session.rate() {
        Rate::Frequency(hz) if session.event().is_clock() && hz.0 >= COSTLY => {
            Some(Note::plain(format!(
                "at {hz} the sampling itself takes much of the target's time, 10 to 20 us a sample"
            )))
        }
        _ => None,
    };
    conceded.into_iter().map(note).chain(fast).chain(of_hidden_processes(session)).collect()
}

/// That nobody tells which files processes have their code of: they were there before, and are of others.
fn of_hidden_processes(session: &Session) -> Option<Note> {
    let is_hidden = |pid: &&Pid| {
        let root = fs::read_link(format!("/proc/{}/root", pid.0));
        root.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let count = session.taken().processes.iter().filter(is_hidden).count();
    (count > 0).then(|| {
        let text = format!(
            "no permission to look into {count} process{}: functions have no names there, and stacks end at once",
            if count == 1 { "" } else { "es" }
        );
        Note::new(text, more_rights())
    })
}

#[cfg(test)]
mod tests {
    use flame_profile::ByteLen;

    use super::*;

    #[test]
    fn larger_copies_are_advised_where_they_help() {
        let note = |short, unread, copy| {
            let mut health = Health::default();
            health
                .stack_ends
                .extend([(StackEnd::Root, 100 - short), (StackEnd::CopyTooShort, short)]);
            health.not_read.insert(NotRead::NoReader, unread);
            health.stack_copies.add(ByteLen(copy), ByteLen(copy));
            of_short_copies(&health).map(|note| note.text().to_owned())
        };
        let expect = "40 stacks go on beyond their copies of 32 KiB".to_owned();
        assert_eq!(note(40, 40, 32 << 10), Some(expect));
        assert_eq!(note(5, 5, 32 << 10), None);
        // A reader was there, or the copies are as large as they can be.
        assert_eq!(note(40, 0, 16 << 10), None);
        assert_eq!(note(40, 40, MAX_STACK_COPY.0), None);
    }
}
