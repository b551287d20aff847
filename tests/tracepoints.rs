//! Tracepoints as events: counted exactly, filtered by the kernel, listed by name.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::support::{
    Folded, Scratch, Target, finish, flame, live_as_root, program, run, wait_until,
};

/// Whether the kernel's tracepoints can be seen.
pub(crate) fn has_tracepoints() -> bool {
    let listed = Path::new("/sys/kernel/tracing/events/syscalls/sys_enter_read/id").exists();
    if !listed {
        println!("SKIP live: no tracefs in /sys/kernel/tracing");
    }
    live_as_root() && listed
}

/// Records the reads of a dd that reads so often, this many bytes each.
#[track_caller]
fn reads(options: &[&str], times: u32, bytes: u32) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-e", "syscalls:sys_enter_read", "-o", &path]).args(options);
    command.args(["--", "dd", "if=/dev/zero", "of=/dev/null"]);
    let (count, size) = (format!("count={times}"), format!("bs={bytes}"));
    let ended = finish(command.args([count, size])).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

#[test]
fn each_occurrence_that_the_filter_lets_through_is_a_sample() {
    if !has_tracepoints() {
        return;
    }
    let (folded, said) = reads(&["--filter", "count == 777"], 200, 777);
    assert_eq!(folded.total(), 200, "{said}");
    assert_eq!(folded.with(&["read"]), 200);
    assert!(
        said.contains("counted   200 that happened; samples alone add up to 100.0 %"),
        "{said}"
    );
    // The loader and the locale's files are read, too.
    let (folded, said) = reads(&[], 200, 777);
    assert!((201..300).contains(&folded.total()), "{said}");
}

#[test]
fn a_flood_of_occurrences_is_counted_and_sampled() {
    if !has_tracepoints() {
        return;
    }
    let (folded, said) = reads(&["--filter", "count == 777"], 400_000, 777);
    assert!(said.contains("the target was slowed down by some "), "{said}");
    assert!(said.contains("400,000 events ("), "{said}");
    assert_eq!(folded.total(), 400_000, "{said}");
    let samples = said.lines().find_map(|line| line.split_once(" samples of "));
    let samples: u64 = samples.unwrap().0.replace(',', "").parse().unwrap();
    assert!(samples < 100_000, "{said}");
}

#[test]
fn events_are_listed_and_wrong_names_and_filters_are_explained() {
    let listed = run(&["record", "--list-events", "faults"]).success();
    assert!(listed.stdout.lines().any(|line| line == "page-faults"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("cycles"));
    run(&["record", "--list-events", "no-such"]).error(1, &["no-such"]);
    let matched = run(&["record", "--list-events", "page-*s"]).success();
    assert_eq!(matched.stdout, "page-faults\n");
    run(&["record", "-e", "cycles", "--filter", "a > 1", "--", "true"])
        .error(1, &["--filter", "tracepoints"]);
    if !has_tracepoints() {
        return;
    }
    let all = run(&["record", "--list-events"]).success();
    assert!(all.stdout.lines().any(|line| line == "sched:sched_switch"));
    assert!(!all.stdout.contains("uprobe:"));
    // Functions that can be sampled as they are listed.
    let listed = run(&["record", "--list-events", "fsync"]).success().stdout;
    let function = listed.lines().find(|line| line.ends_with("libc.so.6:fsync")).unwrap();
    let dd = ["dd", "if=/dev/null", "of=/dev/null", "conv=fsync"];
    let recording = ["record", "-e", function, "--format", "folded", "-o", "-", "--"];
    let folded = Folded::parse(&run(&[&recording[..], &dd].concat()).stdout);
    assert_eq!((folded.with(&["fsync"]), folded.total()), (1, 1), "{folded:?}");
    run(&["record", "-e", "sched:sched_swich", "--", "true"])
        .error(2, &["sched:sched_swich", "sched:sched_switch"]);
    run(&["record", "-e", "sched:sched_switch", "--filter", "nonsense > 1", "--", "true"])
        .error(1, &["nonsense", "why:", "sched/sched_switch/format"]);
}

/// On the whole machine, too, large calls are sampled one by one, and what flame itself reads before the recording begins
/// is not part of it.
#[test]
fn rare_large_transfers_count_once_on_the_whole_machine() {
    if !has_tracepoints() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-a", "--mode", "io", "-o", &path, "--"]);
    command.args(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=60"]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let seen = folded.with_any(|frame| frame == "dd" || frame.starts_with("dd-"));
    let share = seen as f64 / f64::from((2 * 60) << 20);
    assert!((0.99..1.015).contains(&share), "{share} of what dd read and wrote\n{said}");
}

/// Records `transfers N` in a mode; what it wrote, and what it said.
#[track_caller]
fn transfers(mode: &[&str], times: u32) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--value", "io", "-o", &path]).args(mode);
    command.args(["--", &program("transfers.c"), &times.to_string()]);
    let said = finish(&mut command).success().stderr;
    (Folded::parse(&fs::read_to_string(&path).unwrap()), said)
}

/// How much of what happened flame says that its samples stand for, in percent.
#[track_caller]
fn counted(said: &str) -> f64 {
    let counted = said.lines().find_map(|line| line.trim().strip_prefix("counted")).unwrap();
    let (_, share) = counted.split_once("add up to ").unwrap();
    share.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn bytes_that_are_read_and_written_are_counted() {
    if !has_tracepoints() {
        return;
    }
    let (folded, said) = transfers(&["--mode", "io"], 100);
    let of = |function: &str| folded.with(&[function]);
    assert_eq!([of("small"), of("large"), of("slow")], [10_000, 40_960, 10], "{said}");
    assert_eq!(of("piped"), 9_000, "{said}");
    let (folded, said) = transfers(&["--mode", "io"], 200_000);
    // A burst of 0.4 s overflows the rings where flame does not get its CPU; it says so.
    if counted(&said) < 90.0 {
        return;
    }
    let share = |function: &str, truth: u64| folded.with(&[function]) as f64 / truth as f64;
    let (small, large) = (share("small", 20_000_000), share("large", 81_920_000));
    // What is lost of the first burst makes the rest stand for more.
    let off = if said.contains("lost      0 records") { 0.1 } else { 0.25 };
    assert!(
        (small - 1.0).abs() < off && (large - 1.0).abs() < 3.0 * off,
        "{small} {large}\n{said}"
    );
    let (folded, said) = transfers(&["--mode", "io", "--measure", "count"], 200_000);
    let share = folded.with(&["small"]) as f64 / 200_000.0;
    // The same: beside others 74 % were counted, and 95 % of the small ones.
    let off = if counted(&said) < 98.0 { 0.1 } else { 0.02 };
    assert!((share - 1.0).abs() < off || counted(&said) < 90.0, "{share}\n{said}");
}

#[test]
fn calls_take_from_their_entry_to_their_return() {
    if !has_tracepoints() {
        return;
    }
    let (folded, said) = transfers(&["--mode", "io", "--measure", "latency"], 100);
    let slow = folded.with(&["slow"]) as f64 / 200e6;
    assert!((0.95..1.5).contains(&slow), "{slow} of 200 ms\n{said}");
    assert!(folded.with(&["small"]) < 20_000_000, "{said}");
}

/// What a copy of a stack lacks is read while its thread waits in the call, and a sample of the call's end does not replace it.
#[test]
fn stacks_of_calls_beyond_their_copies_are_read() {
    if !has_tracepoints() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let options = ["--mode", "syscalls", "--measure", "latency", "-o", &path];
    let command = ["--", &program("waits.c"), "deep", "2"];
    let ended = run(&[&["record"][..], &options, &command].concat()).success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let cut = folded.with(&["[truncated stack]"]) as f64 / folded.total() as f64;
    assert!(cut < 0.2 && folded.with(&["main", "in_deep"]) > 0, "{cut} is cut\n{}", ended.stderr);
}

/// Neither what sampling takes is part of a call, nor does a call that was sampled stand for others that were longer or
/// shorter: a thread is in calls for as long as it lives, at most.
#[test]
fn calls_are_as_long_among_many_as_among_few() {
    if !has_tracepoints() {
        return;
    }
    let begun = Instant::now();
    let (folded, said) = transfers(&["--mode", "io", "--measure", "latency"], 400_000);
    let elapsed = begun.elapsed().as_nanos();
    assert!(u128::from(folded.total()) < elapsed, "{folded:?} of {elapsed} ns\n{said}");
    assert!(said.contains(" calls took "), "{said}");
    // On a busy machine small ones that lost their CPU for as long may be shared out to them.
    let slow = folded.with(&["slow"]) as f64 / 200e6;
    assert!((0.95..3.0).contains(&slow), "{slow} of 200 ms\n{said}");
    let (small, large) = (folded.with(&["small"]), folded.with(&["large"]));
    // Those of the last milliseconds are lost where the buffer is full of small ones, which is said.
    let has_lost = !said.contains("lost      0 records");
    assert!(small > large && (large > 0 || has_lost), "{folded:?}\n{said}");
}

/// A process does not return from the call that ends it: that call lasts until then, and not until the
/// recording's end.
#[test]
fn calls_of_threads_that_end_end_with_them() {
    if !has_tracepoints() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; sleep 1";
    let mut command = flame();
    command.args(["record", "--mode", "syscalls", "--measure", "latency", "--value", "syscalls"]);
    let said = finish(command.args(["-o", &path, "--", "sh", "-c", script])).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    // They have lived for some milliseconds each.
    assert!(folded.of("true").total() < 500_000_000, "{folded:?}\n{said}");
    // The beginning of the shell's wait may be among the calls that are not sampled.
    assert!(folded.total() > 0, "{said}");
}

#[test]
fn waits_for_locks_are_told_from_other_calls() {
    if !has_tracepoints() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--mode", "locks", "-o", &path, "--", &program("waits.c")]);
    let ended = finish(&mut command).success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let truth = ended.stdout.lines().find_map(|line| line.strip_prefix("in_lock ")).unwrap();
    let share = folded.with(&["in_lock"]) as f64 / truth.parse::<f64>().unwrap();
    assert!((0.95..1.1).contains(&share), "{share} of {truth}: {folded:?}\n{}", ended.stderr);
    assert_eq!(folded.with(&["in_naps"]) + folded.with(&["in_pipe"]), 0, "{folded:?}");
}

/// Who has waited for a lock since before the recording makes no call of it.
#[test]
fn what_did_not_happen_is_told_with_what_shows_more() {
    if !has_tracepoints() {
        return;
    }
    let target = Target::start(&program("threads.c"), &["60", "wait"]);
    wait_until("threads that wait", || target.threads_named("early").len() == 2);
    let did_not = ["no samples", "did not happen", "try: a longer recording, while"];
    for (mode, more) in [("mmap", None), ("locks", Some("try: --mode off-cpu"))] {
        let ended = run(&["record", "--mode", mode, "-d", "100ms", "-p", &target.pid_text()]);
        ended.error(1, &did_not.into_iter().chain(more).collect::<Vec<_>>());
        assert!(!ended.stderr.contains("cpu-clock"), "{}", ended.stderr);
    }
}

#[test]
fn fields_and_ways_to_measure_are_checked() {
    if !has_tracepoints() {
        return;
    }
    let check = |options: &[&str], says: &str| {
        let ended = run(&[&["record"], options, &["--", "true"]].concat());
        assert!(ended.code() != 0 && ended.stderr.contains(says), "{}", ended.stderr);
    };
    let read = ["-e", "syscalls:sys_exit_read", "--weight"];
    check(
        &[&read[..], &["bytes"]].concat(),
        "has no numeric field 'bytes': it has __syscall_nr, ret",
    );
    check(&["-e", "cpu-clock", "--weight", "ret"], "--weight takes a field of a tracepoint");
    check(&["--mode", "cpu", "--measure", "bytes"], "--measure is for --mode io");
    check(&["--mode", "syscalls", "--measure", "bytes"], "--mode io");
    let latency = ["--measure", "latency"];
    check(&[&read[..], &["ret"], &latency].concat(), "--measure is for --mode io");
    let pair = ["--pair", "syscalls:sys_enter_read,syscalls:sys_exit_read"];
    check(&[&pair[..], &latency].concat(), "--measure is for --mode io");
    check(&["--pair", "syscalls:sys_enter_read"], "--pair takes two events");
}
