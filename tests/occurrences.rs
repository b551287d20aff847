//! Events that are counted: what samples stand for, held against the program's own count and the
//! kernel's.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::support::{
    Ended, Folded, Scratch, Target, assert_share, finish, flame, live, live_as_root, program, start,
};

/// What a recording of `occurrences` says.
struct Recorded {
    folded: Folded,
    truth: BTreeMap<String, u64>,
    /// Samples, and what they stand for in all.
    samples: u64,
    /// As many of equal weight would tell as much.
    effective: u64,
    happened: u64,
    said: String,
}

impl Recorded {
    fn of(ended: Ended, folded: &str) -> Recorded {
        let said = ended.stderr;
        let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
        let samples =
            said.lines().find_map(|line| Some(number(line.split_once(" samples of ")?.0)));
        let of = said.lines().find_map(|line| line.split_once(" that happened"));
        let happened = of.and_then(|(line, _)| Some(number(line.rsplit_once(' ')?.1)));
        let uneven = of.and_then(|(_, rest)| rest.strip_suffix(" samples of equal weight"));
        let effective = uneven.and_then(|rest| Some(number(rest.rsplit_once(' ')?.1)));
        let samples = samples.unwrap_or_else(|| panic!("no number of samples in:\n{said}"));
        let truth = ended.stdout.lines().filter_map(|line| line.split_once(' '));
        let truth = truth.filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)));
        Recorded {
            folded: Folded::parse(&fs::read_to_string(folded).unwrap()),
            truth: truth.collect(),
            samples,
            effective: effective.unwrap_or(samples),
            happened: happened.unwrap_or_else(|| panic!("nothing is counted in:\n{said}")),
            said,
        }
    }

    /// Asserts that the sum is what the kernel counted, that what the functions did is in it to
    /// 1 % besides `slack`, and that their shares are those that they counted themselves.
    #[track_caller]
    fn check(&self, slack: f64) {
        assert_eq!(self.folded.total(), self.happened, "{}", self.said);
        let parts = ["in_three", "in_one"].map(|name| self.folded.with(&["main", name]));
        let (seen, truth) = (parts.iter().sum::<u64>(), self.truth.values().sum::<u64>());
        let allowed = truth as f64 * (0.01 + slack) + 2.0;
        assert!((seen as f64 - truth as f64).abs() <= allowed, "{seen} of {truth}\n{}", self.said);
        // As many as there are, taken for samples of equal weight.
        let samples = self.effective.min(seen);
        let three = u128::from(samples) * u128::from(parts[0]) / u128::from(seen);
        assert_share(u64::try_from(three).unwrap(), samples.max(50), 0.75, 0.01);
    }
}

/// Launches `occurrences`, recorded with those options.
#[track_caller]
fn launched(options: &[&str], kind: &str, rate: &str, seconds: &str) -> Recorded {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-o", &path]).args(options);
    command.args(["--", &program("occurrences.c"), kind, rate, seconds]);
    Recorded::of(finish(&mut command).success(), &path)
}

#[test]
fn page_faults_are_in_their_right_places_at_any_rate() {
    if !live() {
        return;
    }
    for (rate, seconds) in [("40", "2"), ("3000", "2"), ("50000", "1.5"), ("1000000", "1.5")] {
        launched(&["-e", "page-faults"], "faults", rate, seconds).check(0.0);
    }
}

/// A busy CPU is taken away from the program now and then, which is a switch, too.
#[test]
fn context_switches_are_in_their_right_places_at_any_rate() {
    if !live_as_root() {
        return;
    }
    for (rate, seconds) in [("40", "2"), ("3000", "2"), ("1000000", "1.5")] {
        let recorded = launched(&["-e", "context-switches"], "switches", rate, seconds);
        assert_eq!(recorded.folded.total(), recorded.happened, "{}", recorded.said);
        let [three, one] = ["in_three", "in_one"].map(|name| recorded.folded.with(&["main", name]));
        // Beside others main is preempted so often that not all switches are sampled, and few samples are of these two.
        let part = |of: u64, all: u64, part: u64| of * part / all.max(1);
        let samples = part(recorded.samples, recorded.folded.total(), three + one);
        if rate == "40" && samples < 50 {
            continue;
        }
        assert_share(part(samples, three + one, three), samples, 0.75, 0.03);
    }
}

#[test]
fn every_occurrence_is_a_sample_or_is_said_to_be_missing() {
    if !live() {
        return;
    }
    let recorded = launched(&["-e", "page-faults", "-c", "1"], "faults", "50000", "0.5");
    let missing = recorded.happened - recorded.folded.total().min(recorded.happened);
    let share = recorded.folded.total() as f64 / recorded.happened as f64;
    // What a ring had no room for, and what the kernel left out of a tick, are both in the line.
    let said = format!("{:.1} % of", share * 100.0);
    assert!(recorded.said.contains(&said), "{missing} missing\n{}", recorded.said);
    assert!(recorded.folded.total() <= recorded.happened, "{}", recorded.said);
}

#[test]
fn occurrences_of_a_running_process_are_those_since_the_beginning() {
    if !live_as_root() {
        return;
    }
    for options in [&[][..], &["--per-task"]] {
        let program = program("occurrences.c");
        let mut target = Target::start(&program, &["faults", "20000", "1.5", "wait"]);
        let scratch = Scratch::new();
        let path = scratch.file("out.folded");
        let pid = target.pid_text();
        let mut arguments = vec!["record", "-e", "page-faults", "-o", &path, "-p", &pid];
        arguments.extend(options);
        let mut flame = start(&arguments);
        flame.wait_for_recording();
        target.go();
        let mut truth = target.line();
        truth += &target.line();
        target.wait_for_end();
        let mut ended = flame.end().success();
        ended.stdout = truth;
        Recorded::of(ended, &path).check(0.0);
    }
}

/// Children that fault some hundred times each, among which none may be overlooked for its
/// shortness; without the right to watch CPUs that cannot be had.
#[test]
fn short_lived_processes_have_their_share_of_page_faults() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program("occurrences.c");
    let script = "for n in $(seq 150); do \"$0\" faults 1000000 0.002 >/dev/null; done";
    let mut command = flame();
    command.args(["record", "-F", "99", "-e", "page-faults", "-o", &path, "--", "sh", "-c"]);
    finish(command.args([script, &program])).success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let children = folded.of("occurrences").total();
    // The shell's own are those of 150 forks.
    assert!(children as f64 >= 0.5 * folded.total() as f64, "{folded:?}");
    assert!(folded.with(&["main", "in_three"]) > folded.with(&["main", "in_one"]), "{folded:?}");
}

#[test]
fn whole_machine_counts_what_all_programs_do() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let busy = scratch.file("faulty");
    fs::copy(program("occurrences.c"), &busy).unwrap();
    let mut flame = start(&["record", "-e", "page-faults", "-a", "-o", &path]);
    flame.wait_for_recording();
    let done = Command::new(&busy).args(["faults", "1000000", "1"]).output().unwrap();
    flame.signal(nix::sys::signal::Signal::SIGINT);
    let mut ended = flame.end_within(Duration::from_secs(300)).success();
    ended.stdout = String::from_utf8(done.stdout).unwrap();
    let recorded = Recorded::of(ended, &path);
    let faulty = recorded.folded.of("faulty");
    let [three, one] = ["in_three", "in_one"].map(|name| faulty.with(&["main", name]));
    let truth: u64 = recorded.truth.values().sum();
    let ratio = (three + one) as f64 / truth as f64;
    assert!((0.8..1.25).contains(&ratio), "{three} + {one} of {truth}\n{}", recorded.said);
}

/// On the CPU of the target, flame's own calls are among those that are counted: one for each sample would make each Nth call of
/// the target each (N-1)th, of two or four places always the same half.
#[test]
fn places_that_do_the_same_in_turn_have_equal_shares() {
    if !live_as_root() {
        return;
    }
    for number in ["2", "3", "4", "5", "7"] {
        let scratch = Scratch::new();
        let path = scratch.file("out.folded");
        let mut command = Command::new("taskset");
        command.args(["-c", "0", flame().get_program().to_str().unwrap(), "record"]);
        command.args(["--mode", "syscalls", "--measure", "count", "-o", &path, "--"]);
        command.args([&program("in_turn.c"), number, "1"]);
        let recorded = Recorded::of(finish(&mut command).success(), &path);
        let all: u64 = recorded.truth.values().sum();
        for (name, count) in &recorded.truth {
            let part = u128::from(recorded.folded.with(&["main", name]));
            let samples = u128::from(recorded.effective.min(recorded.samples));
            let part = u64::try_from(part * samples / u128::from(all)).unwrap();
            let expect = *count as f64 / all as f64;
            assert_share(part, recorded.effective.min(recorded.samples), expect, 0.01);
        }
    }
}
