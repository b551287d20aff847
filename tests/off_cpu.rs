//! Time off CPU, held against what programs measured of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::scripts;
use crate::support::{
    Build, Ended, Folded, Scratch, Target, finish, flame, live, live_as_root, program,
    program_built, run, start, wait_until,
};

const SECOND: u64 = 1_000_000_000;

/// The functions of waits.c of which it says for how long they waited.
const MEASURED: [&str; 8] =
    ["in_disk", "in_lock", "in_naps", "in_ping", "in_pipe", "in_pong", "in_rest", "in_socket"];

/// Two times that were measured apart: to 2 %, or 1 ms and what a busy machine puts between two
/// readings of a clock.
#[track_caller]
fn assert_time(seen: u64, truth: u64, what: &str) {
    let allowed = (truth / 50).max(1_000_000) + 1_000_000;
    assert!(seen.abs_diff(truth) <= allowed, "{what}: {seen} ns of {truth}");
}

/// The same of a function. On a busy machine its thread may be preempted between the function and the readings of
/// two clocks, of which the truth is made: flame says for how long.
#[track_caller]
fn assert_time_of(folded: &Folded, function: &str, truth: u64, what: &str) {
    let seen = folded.with(&[function]);
    let preempted = |name: &&str| folded.with_in_order(&[name, "[preempted]"]);
    let outside = folded.with(&["[preempted]"]) - MEASURED.iter().map(preempted).sum::<u64>();
    let at_most_missing = truth.saturating_sub(seen).min(outside);
    assert_time(seen, truth - at_most_missing, what);
}

/// Records a program; what it wrote to stdout, and the folded waits.
#[track_caller]
fn waits(options: &[&str], arguments: &[&str]) -> (Ended, Folded) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--mode", "off-cpu", "-o", &path]).args(options);
    let ended = finish(command.arg("--").args(arguments)).success();
    (ended, Folded::parse(&fs::read_to_string(&path).unwrap()))
}

/// What the program says of its functions.
fn truth(ended: &Ended) -> BTreeMap<&str, u64> {
    let lines = ended.stdout.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, time)| (name, time.parse().unwrap())).collect()
}

/// Holds each function's waits against what the program says of it.
#[track_caller]
fn check_functions(ended: &Ended, folded: &Folded, expect: &[&str]) {
    let truth = truth(ended);
    assert!(truth.keys().eq(expect), "{}", ended.stdout);
    for (name, time) in truth {
        // Interrupts, of which a disk makes many, are in no thread's CPU time.
        if name == "in_disk" {
            assert!((1..=time).contains(&folded.with(&[name])), "{name} in\n{}", ended.stderr);
            continue;
        }
        assert_time_of(folded, name, time, &format!("{name} in\n{}", ended.stderr));
    }
}

#[test]
fn sleeps_locks_pipes_sockets_and_disks_have_their_times() {
    if !live() {
        return;
    }
    let program = program("waits.c");
    let by_cpu = waits(&[], &[&program]);
    let by_task = waits(&["--per-task"], &[&program]);
    for (ended, folded) in [by_cpu, by_task] {
        let functions = ["in_disk", "in_lock", "in_naps", "in_pipe", "in_socket"];
        check_functions(&ended, &folded, &functions);
        assert_eq!(folded.roots(), ["waits"]);
        assert_eq!(folded.with_any(|frame| frame.starts_with("[waits not")), 0);
        assert!(ended.stderr.contains("waits in"), "{}", ended.stderr);
    }
}

/// Who waits for a disk may not be interrupted; the other waits may.
#[test]
fn waits_are_told_apart_by_state() {
    if !live_as_root() {
        return;
    }
    let program = program("waits.c");
    let (ended, folded) = waits(&["--state", "D"], &[&program]);
    let in_disk = folded.with(&["in_disk"]);
    assert!((1..=truth(&ended)["in_disk"]).contains(&in_disk), "{}", ended.stderr);
    let (ended, folded) = waits(&["--state", "S,I"], &[&program]);
    let truth = truth(&ended);
    for name in ["in_lock", "in_naps", "in_pipe", "in_socket"] {
        assert_time(folded.with(&[name]), truth[name], &format!("{name} in\n{}", ended.stderr));
    }
    let refused = |options: &[&str], why| {
        let mut command = flame();
        command.args(["record", "--mode", "off-cpu", "--state"]).args(options);
        finish(command.args(["--", "true"])).error(2, &[why]);
    };
    refused(&["X"], "no thread waits in state 'X'");
    refused(&[""], "--state names no state");
    refused(&["D", "-F", "99"], "--state takes neither -F nor -c");
}

/// Only some of the switches are sampled then; the long naps before must not stand for short waits, and the
/// long wait after them, of which the switch is hardly ever sampled, must be seen all the same.
/// What a switch itself takes, some microseconds, is time off CPU to flame and CPU time to the
/// scheduler.
#[test]
fn a_flood_of_short_waits_and_a_long_one_keep_their_times() {
    if !live() {
        return;
    }
    let (ended, folded) = waits(&[], &[&program("waits.c"), "flood", "2"]);
    let truth = truth(&ended);
    for name in ["in_naps", "in_rest"] {
        assert_time_of(&folded, name, truth[name], &ended.stderr);
    }
    let short = folded.total() - folded.with(&["in_naps"]) - folded.with(&["in_rest"]);
    let share = short as f64 / (truth["in_ping"] + truth["in_pong"]) as f64;
    assert!((0.98..1.4).contains(&share), "{share} of the truth\n{}", ended.stderr);
    let unknown = folded.with(&["[waits not sampled]"]) as f64 / short as f64;
    assert!(unknown < 0.3, "{unknown} has no stack\n{}", ended.stderr);
    assert!(ended.stderr.contains(" waits sampled"), "{}", ended.stderr);
    // Tens of thousands of switches a second, at 3 us each, are more than a twentieth of what two threads run.
    assert!(ended.stderr.contains("the target was slowed down"), "{}", ended.stderr);
}

/// Some of the waits are sampled, and those are some 25 us shorter: their CPU does not fall asleep.
#[test]
fn waits_in_turn_have_their_shares_whatever_their_lengths() {
    if !live() {
        return;
    }
    let (ended, folded) = waits(&["-F", "199"], &[&program("waits.c"), "turns", "2"]);
    let truth = truth(&ended);
    let all = truth.values().sum::<u64>() as f64;
    let seen = truth.keys().map(|name| folded.with(&[name])).sum::<u64>() as f64;
    for (name, time) in &truth {
        let (share, expect) = (folded.with(&[name]) as f64 / seen, *time as f64 / all);
        let far = (share - expect).abs();
        assert!(far < 0.08, "{name} has {share} of {expect}\n{}", ended.stderr);
    }
    assert!(seen / folded.total() as f64 > 0.9, "{}", ended.stderr);
}

/// One wait of a hundred, and half of the time: nearly all are looked at while they last. Those that are not, on a busy machine, may
/// have been of another function that waits about as long, and flame says how far that may be off: from half a percent of all on.
#[test]
fn rare_long_waits_among_many_short_ones_are_seen() {
    if !live() {
        return;
    }
    let (ended, folded) = waits(&["-F", "199"], &[&program("waits.c"), "rare", "2"]);
    let truth = truth(&ended);
    // What a busy machine keeps flame from looking at.
    let unsampled = folded.with(&["[waits not sampled]"]);
    assert!(unsampled * 4 < folded.total(), "{}", ended.stderr);
    let seen = folded.with(&["in_40_ms"]);
    let missing = truth["in_40_ms"].saturating_sub(seen).min(unsampled);
    assert_time(seen + missing, truth["in_40_ms"], &ended.stderr);
    let said = ended.stderr.split_once("each within");
    let said = said.map_or(0.0, |(_, rest)| seconds_before(rest, " s, "));
    let allowed = 4.0 * said.max(folded.total() as f64 * 0.005e-9) + unsampled as f64 / 1e9;
    for name in ["in_12_ms", "in_15_ms"] {
        let (seen, truth) = (folded.with(&[name]) as f64 / 1e9, truth[name] as f64 / 1e9);
        assert!((seen - truth).abs() < allowed, "{name}: {seen} of {truth} s\n{}", ended.stderr);
    }
}

/// Who is looked at while it waits has no known frame pointer, and the buffer of the function that it waits in is full of
/// frames of other callers. The long waits are looked at, and none of them may go to who waits for a short time only.
#[test]
fn frames_of_earlier_calls_are_not_taken_for_those_that_wait() {
    if !cfg!(target_arch = "x86_64") || !live() {
        return;
    }
    let program = program_built("buffer.c", Build::CountedFromPointers);
    let (ended, folded) = waits(&["-F", "199"], &[&program, "2"]);
    let truth = truth(&ended);
    let (long, short) = (truth["in_rare"], truth["in_often"]);
    let told = format!("{} in\n{}", ended.stdout, ended.stderr);
    // Those that were sampled stand for the others.
    assert!(folded.with(&["in_often"]) <= short + short / 10, "{told}");
    let seen = folded.with(&["in_rare"]);
    assert!(seen <= long + long / 20, "{seen}: {told}");
    assert!(seen + folded.with(&["[truncated stack]"]) >= long - long / 20, "{seen}: {told}");
    assert_eq!(folded.with(&["in_rare", "in_often"]), 0, "{told}");
    // It is by a guess that these stacks are whole, not by chance.
    assert!(seen * 2 > long && ended.stderr.contains("with guessed frames"), "{seen}: {told}");
}

/// What a copy of a stack lacks is read while its thread waits: whether it is full, ends before a page that is not there, or
/// is of a stack for signal handlers.
#[test]
fn stacks_beyond_their_copies_are_read() {
    if !live_as_root() {
        return;
    }
    for what in ["deep", "unwritten", "handler"] {
        let function = format!("in_{what}");
        let (ended, folded) = waits(&[], &[&program("waits.c"), what, "2"]);
        assert_time_of(&folded, &function, truth(&ended)[&*function], &ended.stderr);
        let cut = folded.with(&["[truncated stack]"]) as f64 / folded.total() as f64;
        assert!(cut < 0.2, "{what}: {cut} of the time is cut\n{}", ended.stderr);
    }
}

#[test]
fn who_waits_all_the_time_has_waited_all_the_time() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("threads.c"), &["60", "wait"]);
    let scratch = Scratch::new();
    let (path, text) = (scratch.file("out.folded"), scratch.file("out.pb.gz"));
    let pid = target.pid_text();
    let named = || target.threads_named("early").len() == 2;
    wait_until("two threads that wait", named);
    let out = ["-o", &path, "-o", &text];
    run(&[&["record", "--mode", "off-cpu", "-p", &pid, "-d", "1"][..], &out].concat()).success();
    assert!(target.is_running());
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.roots(), ["early", "threads"]);
    assert_eq!(folded.total(), folded.with_any(|frame| frame.starts_with("[waiting since before")));
    for (root, outermost, threads) in [("threads", "main", 1), ("early", "start_thread", 2)] {
        let whole = folded.of(root).with(&[outermost]);
        assert_eq!(whole, folded.of(root).total(), "{}", fs::read_to_string(&path).unwrap());
        let seen = folded.of(root).total() as f64 / (threads * SECOND) as f64;
        assert!((1.0..1.2).contains(&seen), "{seen} s of one in a thread of {root}");
    }
}

/// Thirty thousand switches a second: sampled one by one, they would fill the buffers before flame could
/// look after them, and with the records most of the time would be lost.
#[test]
fn hundreds_of_threads_that_wait_all_the_time_have_waited_all_the_time() {
    if !live_as_root() {
        return;
    }
    let mut target = Target::start(&program("naps.c"), &["300"]);
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let record = ["record", "--mode", "off-cpu", "-p", &target.pid_text(), "-d", "2", "-o", &path];
    let ended = run(&record).success();
    assert!(target.is_running());
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let elapsed = seconds_before(&ended.stderr, " s on ");
    let left_out = match ended.stderr.contains("(at most ") {
        true => seconds_before(&ended.stderr, " s)"),
        false => 0.0,
    };
    let seen = folded.total() as f64 / SECOND as f64;
    let all = 301.0 * elapsed;
    assert!(seen + left_out > 0.9 * all, "{seen} + {left_out} of {all} s\n{}", ended.stderr);
    assert!(seen > 0.6 * all, "{seen} of {all} s\n{}", ended.stderr);
    let known = folded.with(&["naps"]) as f64 / folded.total() as f64;
    assert!(known > 0.4, "{known} of it in its function\n{}", ended.stderr);
}

/// The number in front of the first occurrence of some text.
fn seconds_before(text: &str, unit: &str) -> f64 {
    let (before, _) = text.split_once(unit).unwrap_or_else(|| panic!("{text}"));
    let number = before.rsplit(|c: char| c != '.' && !c.is_ascii_digit()).next();
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// What runs and what waits is all there is: the CPU time of a thread that sleeps for half of its
/// time, and its waits, are the time that passed.
#[test]
fn a_thread_that_is_preempted_is_told_from_one_that_waits() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program("shares.c");
    let mut rival = Command::new("taskset");
    let rival = Target::spawn(rival.args(["-c", "0", &program, "60"]));
    let mut target = Command::new("taskset");
    let target = Target::spawn(target.args(["-c", "0", &program, "60"]));
    rival.wait_for_cpu(0.1);
    target.wait_for_cpu(0.1);
    let before = target.cpu_seconds();
    let mut flame = start(&["record", "--mode", "off-cpu", "-p", &target.pid_text(), "-o", &path]);
    flame.wait_for_recording();
    std::thread::sleep(Duration::from_secs(2));
    flame.signal(Signal::SIGINT);
    let ended = flame.end().success();
    let ran = target.cpu_seconds() - before;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let preempted = folded.with(&["[preempted]"]);
    assert_time(preempted, folded.total(), &ended.stderr);
    let seconds = preempted as f64 / SECOND as f64;
    assert!(seconds > 0.5, "preempted for {seconds} s, ran for {ran} s\n{}", ended.stderr);
}

#[test]
fn limits_leave_out_waits_and_say_how_many() {
    if !live() {
        return;
    }
    let program = program("waits.c");
    let (ended, folded) = waits(&["--min-block", "100ms"], &[&program]);
    assert_eq!(folded.with(&["in_naps"]), 0, "{}", ended.stderr);
    assert!(folded.with(&["in_pipe"]) > SECOND / 4);
    assert!(ended.stderr.contains("of other lengths left out"), "{}", ended.stderr);
    let (_, folded) = waits(&["--max-block", "100ms"], &[&program]);
    assert!(folded.with(&["in_naps"]) > SECOND / 4);
    // It may be preempted for a moment.
    assert!(folded.with(&["in_pipe"]) < SECOND / 100, "{folded:?}");
    let none = ["record", "--mode", "off-cpu", "--min-block", "1h", "--", &program];
    run(&none).error(1, &["no samples", "shorter or longer", "--min-block"]);
}

#[test]
fn what_off_cpu_does_not_have_is_refused() {
    run(&["record", "--mode", "off-cpu", "-u", "--", "true"]).error(1, &["off-cpu", "-u", "why:"]);
    run(&["record", "--mode", "off-cpu", "-C", "0"]).error(1, &["off-cpu", "-C", "why:"]);
    run(&["record", "--min-block", "1ms", "--mode", "cpu", "--", "true"])
        .error(1, &["--min-block", "why:", "no waits"]);
    run(&["record", "--min-block", "1ms", "--mode", "wall", "--", "true"])
        .error(1, &["--min-block", "why:", "all the time"]);
    let no_wait = ["--min-block", "2ms", "--max-block", "1ms", "--", "true"];
    run(&[&["record", "--mode", "off-cpu"], &no_wait[..]].concat()).error(2, &["no wait is both"]);
    run(&["record", "--mode", "off-cpu", "-e", "cycles", "--", "true"]).error(2, &["--mode"]);
}

/// What a function of a script waited for is read as its thread leaves the CPU. Waits that are over sooner are not
/// taken for read.
#[test]
fn functions_of_scripts_have_the_times_that_they_wait() {
    let python = "/usr/bin/python3";
    if !live_as_root() || !scripts::has(python) {
        return;
    }
    let script = scripts::script("waits.py");
    let (ended, folded) = waits(&[], &[python, script.to_str().unwrap()]);
    let is_of = |frame: &str, function| scripts::scripted(frame) == Some((function, "waits.py"));
    for (function, truth) in truth(&ended) {
        let seen = folded.with_any(|frame| is_of(frame, function));
        let told = format!("{function}: {seen} ns of {truth} in\n{}", ended.stderr);
        assert!(seen <= truth + truth / 50 + 2_000_000, "{told}");
        // Some short waits are left undisturbed, and are over when they are looked at.
        let least = if function == "short_naps" { truth / 20 } else { truth / 10 * 7 };
        assert!(seen >= least, "{told}");
    }
    scripts::check_chains(&folded, scripts::scripted, |caller, (function, file)| {
        let by = |callers: &[&str]| caller.is_some_and(|(caller, _)| callers.contains(caller));
        match *function {
            _ if *file != "waits.py" => true,
            "<module>" => caller.is_none(),
            "main" => by(&["<module>"]),
            "deep" => by(&["measured", "deep"]),
            "deep_rests" => by(&["deep"]),
            "measured" => by(&["main", "Thread.run"]),
            _ => by(&["measured"]),
        }
    });
}

/// A script that has waited since before the recording makes no sample: its thread is looked at.
#[test]
fn functions_of_scripts_that_wait_already_are_read() {
    let python = "/usr/bin/python3";
    if !live_as_root() || !scripts::has(python) {
        return;
    }
    let script = scripts::script("waits.py");
    let target = Target::start(python, &[script.to_str().unwrap(), "rest"]);
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let pid = target.pid_text();
    let rests = || {
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", nix::libc::SYS_clock_nanosleep))
    };
    wait_until("a script that rests", rests);
    let mut command = flame();
    command.args(["record", "--mode", "off-cpu", "-p", &pid, "-d", "1s", "-o", &path]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let is_rest = |frame: &str| scripts::scripted(frame) == Some(("long_rest", "waits.py"));
    assert_eq!(folded.with_any(is_rest), folded.total(), "{folded:?}\n{said}");
    let line = said.lines().find_map(|line| line.trim().strip_prefix("python    100 % of "));
    assert!(line.is_some_and(|line| line.ends_with(" s with whole script stacks")), "{said}");
}
