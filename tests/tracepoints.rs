//! Tracepoints as events: counted exactly, filtered by the kernel, listed by name.

use std::fs;
use std::path::Path;

use crate::support::{Folded, Scratch, finish, flame, live_as_root, run};

/// Whether the kernel's tracepoints can be seen.
fn has_tracepoints() -> bool {
    let listed = Path::new("/sys/kernel/tracing/events/syscalls/sys_enter_read/id").exists();
    if !listed {
        println!("SKIP live: no tracefs in /sys/kernel/tracing");
    }
    live_as_root() && listed
}

/// Records the reads of a dd that reads so often, so many bytes each.
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
    assert!(said.contains("counted   100.0 % of 200 that happened"), "{said}");
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
    run(&["record", "-e", "cycles", "--filter", "a > 1", "--", "true"])
        .error(1, &["--filter", "tracepoints"]);
    if !has_tracepoints() {
        return;
    }
    let all = run(&["record", "--list-events"]).success();
    assert!(all.stdout.lines().any(|line| line == "sched:sched_switch"));
    run(&["record", "-e", "sched:sched_swich", "--", "true"])
        .error(2, &["sched:sched_swich", "sched:sched_switch"]);
    run(&["record", "-e", "sched:sched_switch", "--filter", "nonsense > 1", "--", "true"])
        .error(1, &["nonsense", "why:", "sched/sched_switch/format"]);
}
