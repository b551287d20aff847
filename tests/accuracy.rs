//! Programs that profilers get wrong, sampled at 99 Hz, and held against the truth they compute:
//! tasks that live for less than a sampling period, and functions that alternate in step with it.
//!
//! # When a share is wrong
//!
//! Of `n` samples a share `p` has a standard error of `sqrt(p (1 - p) / n)`, if the samples are
//! independent of each other and of the program. The tests judge some 30 shares; at 3 standard
//! errors one of 370 right ones is beyond by chance, so that one run in twelve would fail for
//! nothing. Nor are the samples quite independent: with intervals drawn from 0.5 to 1.5 of the
//! period, a rhythm of one and a half cycles a period has 1.24 times the standard error (most
//! rhythms have less than once). Hence:
//!
//! - a share beyond 5 standard errors is wrong: by chance once in 1,700,000 shares, or in 18,000 at
//!   the worst rhythm;
//! - a share beyond 3 is measured again, with another seed, and must then be within 3: by chance it
//!   fails once in 137,000 shares, or in 4,000 at the worst rhythm.
//!
//! A sampler that is locked to the program is off by 10 to 20 standard errors in one run, as
//! `--fixed-period` shows.

use std::fs;
use std::time::Duration;

use crate::support::{Ended, Folded, Group, Running, Scratch, flame, live_as_root, program};

/// The sampling frequency, of which the programs know: flame takes it unless it is told another one.
const HZ: f64 = 99.0;

/// CPU seconds of a run.
const SECONDS: &str = "5";

/// How long a run may take where other programs have the CPUs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Standard errors beyond which a share is measured again.
const DOUBTFUL: f64 = 3.0;

/// Standard errors beyond which a share is wrong.
const WRONG: f64 = 5.0;

/// What CPU time must at least be seen.
const COVERAGE: f64 = 0.97;

/// Runs that are pooled at most before coverage is said to be too low.
const COVERAGE_RUNS: u32 = 4;

/// A share as it was sampled, with the truth.
#[derive(Clone, Debug)]
struct Share {
    name: String,
    part: u64,
    whole: u64,
    truth: f64,
}

impl Share {
    /// How far it is off, in standard errors.
    #[track_caller]
    fn off(&self) -> f64 {
        assert!(self.whole >= 100, "{} samples are too few for {self:?}", self.whole);
        let whole = self.whole as f64;
        let standard_error = (self.truth * (1.0 - self.truth) / whole).sqrt();
        (self.part as f64 / whole - self.truth) / standard_error
    }
}

/// Judges the shares that a recording with that seed gives, by the rule above.
#[track_caller]
fn judge(mut record: impl FnMut(u64) -> Vec<Share>) {
    let wrong = |shares: &[Share], allowed: f64| -> Vec<String> {
        let wrong = shares.iter().filter(|share| share.off().abs() > allowed);
        wrong.map(|share| format!("{:+.1} standard errors: {share:?}", share.off())).collect()
    };
    let first = record(1);
    assert_eq!(wrong(&first, WRONG), Vec::<String>::new(), "of {first:#?}");
    let doubtful = wrong(&first, DOUBTFUL);
    if doubtful.is_empty() {
        return;
    }
    let second = record(2);
    let again = |share: &Share| {
        let name = |doubtful: &Share| doubtful.name == share.name;
        first.iter().any(|first| name(first) && first.off().abs() > DOUBTFUL)
    };
    let (again, others): (Vec<Share>, Vec<Share>) = second.into_iter().partition(again);
    let mut still = wrong(&again, DOUBTFUL);
    still.extend(wrong(&others, WRONG));
    assert_eq!(still, Vec::<String>::new(), "in a second run; in the first {doubtful:#?}");
}

/// Records a program at 99 Hz with that seed: the samples, and what was said.
#[track_caller]
fn record(seed: u64, program: &[&str]) -> (Folded, Ended) {
    record_with(&["--seed", &seed.to_string()], program)
}

/// The same with other options.
#[track_caller]
fn record_with(options: &[&str], program: &[&str]) -> (Folded, Ended) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-o", &path]).args(options).arg("--").args(program);
    let ended = Running::new(&mut command).end_within(PATIENCE).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended)
}

/// The lines `NAME... CPU_SECONDS` that the program printed.
fn truth(ended: &Ended) -> Vec<(&str, f64)> {
    let lines = ended.stdout.lines().filter_map(|line| line.rsplit_once(' '));
    let truth: Vec<(&str, f64)> =
        lines.filter_map(|(name, seconds)| Some((name, seconds.parse().ok()?))).collect();
    assert!(truth.len() >= 2, "the program said {:?}", ended.stdout);
    truth
}

/// Samples and CPU seconds of `short_lived` in all.
#[derive(Debug, Default)]
struct Seen {
    samples: u64,
    seconds: f64,
}

fn short_lived(seed: u64) -> (Vec<Share>, Seen) {
    let (folded, ended) = record(seed, &[&program("short_lived.c"), SECONDS]);
    let mut functions = truth(&ended);
    let (word, seconds) = functions.pop().expect("it prints functions and the total");
    assert_eq!((word, functions.len()), ("total", 6), "{}", ended.stdout);
    let share = |(name, used): &(&str, f64)| Share {
        name: (*name).to_owned(),
        part: folded.with(&[name]),
        whole: folded.total(),
        truth: used / seconds,
    };
    let shares = functions.iter().map(share).collect();
    (shares, Seen { samples: folded.total(), seconds })
}

#[test]
fn tasks_of_less_than_a_period_have_their_share() {
    if !live_as_root() {
        return;
    }
    judge(|seed| short_lived(seed).0);
}

/// How many samples 5 CPU seconds give is a matter of chance, too: a CPU is looked at at random
/// times, at which the program may just not be there. The standard error is 1 % of the samples when
/// the program has the CPUs for itself, and 3 % when it has half of them; so runs are pooled until
/// they are at the bar, or too many.
#[test]
fn tasks_of_less_than_a_period_are_covered() {
    if !live_as_root() {
        return;
    }
    let mut seen = Seen::default();
    let mut coverage = Vec::new();
    for seed in 1..=COVERAGE_RUNS {
        let more = short_lived(u64::from(seed)).1;
        seen.samples += more.samples;
        seen.seconds += more.seconds;
        coverage.push(seen.samples as f64 / HZ / seen.seconds);
        if coverage.last().is_some_and(|coverage| *coverage >= COVERAGE) {
            return;
        }
    }
    panic!("coverage of 1, 2, ... pooled runs: {coverage:.3?}");
}

/// Records a thread a rhythm; the shares of each. A timer that is locked on can also see all of a
/// program that rests, or nothing: the number of samples must be right to its own standard error,
/// which is its root where the CPUs are looked at without regard to the program.
#[track_caller]
fn lockstep(seed: u64, seconds: &str, rhythms: &[&str]) -> Vec<Share> {
    let lockstep = program("lockstep.c");
    let (folded, ended) = record(seed, &[&[&lockstep, seconds], rhythms].concat());
    let total = truth(&ended).last().filter(|(name, _)| *name == "total").expect("the last line").1;
    let off = (folded.total() as f64 - total * HZ) / (total * HZ).sqrt();
    assert!(off.abs() <= WRONG, "{off:+.1} roots off: {} of {total} s", folded.total());
    shares(&folded, &ended, rhythms)
}

/// The shares of each thread of `lockstep` that `folded` shows.
fn shares(folded: &Folded, ended: &Ended, rhythms: &[&str]) -> Vec<Share> {
    let mut shares = Vec::new();
    for rhythm in rhythms {
        let thread = rhythm.split('=').next().unwrap();
        let of_thread = folded.of(thread);
        let steps = truth(ended).into_iter().filter_map(|(name, used)| {
            let (of, step) = name.split_once(' ')?;
            (of == thread).then_some((step, used))
        });
        let steps: Vec<(&str, f64)> = steps.collect();
        let used: f64 = steps.iter().map(|(_, used)| used).sum();
        let whole = steps.iter().map(|(step, _)| of_thread.with(&[step])).sum();
        for (step, seconds) in &steps {
            let (name, part) = (format!("{rhythm} {step}"), of_thread.with(&[step]));
            shares.push(Share { name, part, whole, truth: seconds / used });
        }
    }
    shares
}

/// Two rhythms at a time, since there are two CPUs nearly everywhere. What keeps to the clock is the
/// sharper test where other programs are in the way: a timer that is locked on sees the same step
/// whenever it sees the program at all.
#[track_caller]
fn check_rhythms(seconds: &str, rhythms: &[&str]) {
    if live_as_root() {
        judge(|seed| lockstep(seed, seconds, rhythms));
    }
}

#[test]
fn rhythm_of_the_sampling_frequency_is_not_locked_on() {
    check_rhythms(SECONDS, &["half=99:50,50:clock", "steps=99:50,30,15,5:clock"]);
}

#[test]
fn rhythm_in_cpu_time_is_not_locked_on() {
    check_rhythms(SECONDS, &["half=99:50,50", "double=198:50,50"]);
}

#[test]
fn rhythm_of_a_program_that_rests_is_not_locked_on() {
    check_rhythms("2.5", &["half=99:50,50:rest", "steps=49.5:50,30,15,5:rest"]);
    // Alone, so that its CPU is idle while it rests.
    check_rhythms("2.5", &["half=99:50,50:rest"]);
}

#[test]
fn rhythms_below_the_sampling_frequency_are_not_locked_on() {
    for rhythms in [["a=20:50,50", "b=33:50,50:clock"], ["a=49.5:50,50:clock", "b=66:50,50"]] {
        check_rhythms(SECONDS, &rhythms);
    }
}

#[test]
fn rhythms_above_the_sampling_frequency_are_not_locked_on() {
    let rhythms = [
        ["a=100:50,50", "b=150:50,50:clock"],
        ["a=198:50,30,15,5:clock", "b=250:50,50"],
        ["a=396:50,50:clock", "b=500:50,50:clock"],
    ];
    for rhythms in rhythms {
        check_rhythms(SECONDS, &rhythms);
    }
}

/// Without the right to sample by CPU: events that tasks inherit, whose intervals cannot be drawn anew.
#[test]
fn rhythm_of_the_sampling_frequency_is_not_locked_on_task_by_task() {
    if !live_as_root() {
        return;
    }
    let rhythms = ["half=99:70,30:clock", "double=198:70,30:clock"];
    judge(|seed| {
        let options = ["--per-task", "--seed", &seed.to_string()];
        let lockstep = program("lockstep.c");
        let (folded, ended) =
            record_with(&options, &[&[&*lockstep, SECONDS], &rhythms[..]].concat());
        shares(&folded, &ended, &rhythms)
    });
}

/// What the tests above are worth: at a fixed period the timer of a CPU sees one function only. The
/// moment that it starts at can be one where they change, within some microseconds: then once more.
#[test]
fn fixed_period_is_locked_on() {
    if !live_as_root() {
        return;
    }
    let rhythm = "half=99:50,50:clock";
    let pinned = ["taskset", "-c", "0", &program("lockstep.c"), "2", rhythm];
    let locked = || {
        let (folded, ended) = record_with(&["--fixed-period"], &pinned);
        shares(&folded, &ended, &[rhythm]).iter().all(|share| share.off().abs() > WRONG)
    };
    assert!(locked() || locked(), "lockstep.c is not in step with anything");
}

/// Its CPU's reader does not run while it does: samples come by whatever interval was drawn last, unless somebody else sets one.
#[test]
fn a_real_time_program_is_sampled_as_often_as_others() {
    if !live_as_root() {
        return;
    }
    let real_time = ["chrt", "-f", "50", &program("shares.c"), "1"];
    let (folded, ended) = record_with(&[], &real_time);
    let all = folded.with(&["work"]) as f64 / 99.0;
    assert!((0.8..1.2).contains(&all), "{all} s of one\n{}", ended.stderr);
}

/// It runs for 2.5 ms of each 5, and keeps flame away meanwhile.
#[test]
fn all_parts_of_the_bursts_of_a_real_time_program_have_their_share() {
    if !live_as_root() {
        return;
    }
    let rhythm = "burst=200:10,40,50:rest";
    judge(|seed| {
        let options = ["-F", "999", "--seed", &seed.to_string()];
        let program = ["chrt", "-f", "50", &program("lockstep.c"), "2", rhythm];
        let (folded, ended) = record_with(&options, &program);
        shares(&folded, &ended, &[rhythm])
    });
}

/// It stands still for 60 ms of each 100.
#[test]
fn a_program_with_a_quota_has_its_time() {
    if !live_as_root() {
        return;
    }
    let Some(group) = Group::with_quota(40) else {
        eprintln!("SKIP: no control group can limit CPU time");
        return;
    };
    let command = group.command(&[&program("shares.c"), "2"]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    judge(|seed| {
        let (folded, ended) = record_with(&["-F", "499", "--seed", &seed.to_string()], &command);
        let works = folded.with(&["work"]);
        let seconds = works as f64 / 499.0;
        assert!((1.85..2.15).contains(&seconds), "{seconds} s of two\n{}", ended.stderr);
        let share = |(name, truth): (&str, f64)| {
            let name = name.to_owned();
            Share { part: folded.with(&["work", &name]), name, whole: works, truth }
        };
        [("alpha", 0.5), ("beta", 0.3), ("omega", 0.2)].map(share).to_vec()
    });
}
