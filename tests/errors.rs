//! Every message says what happened, why, and what to do; 1 = flame failed, 2 = usage.

use std::fs;
use std::process::Command;

use crate::support::{
    NOWHERE, Scratch, Target, finish, flame, live, live_as_root, program, record_nowhere, run,
};

/// A process id that nobody has: one more than the largest there can be.
fn no_such_pid() -> String {
    let most = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    (most.trim().parse::<u32>().unwrap() - 1).to_string()
}

#[test]
fn no_such_process() {
    let pid = no_such_pid();
    for option in ["-p", "-t"] {
        record_nowhere(&[option, &pid]).error(1, &[&pid, "no such", "try:"]);
    }
}

#[test]
fn command_not_found() {
    let ended = record_nowhere(&["--", "no-such-command-anywhere"]);
    ended.error(1, &["no-such-command-anywhere", "not found"]);
}

#[test]
fn command_that_is_no_program() {
    let scratch = Scratch::new();
    let path = scratch.file("plain");
    fs::write(&path, "not a program\n").unwrap();
    record_nowhere(&["--", &path]).error(1, &[&path, "permission denied"]);
}

#[test]
fn samples_of_a_sleeper_are_none_and_the_message_says_why() {
    if !live() {
        return;
    }
    let target = Target::start(&program("sleeper.c"), &[]);
    let pid = target.pid_text();
    let scratch = Scratch::new();
    let output = scratch.file("out.svg");
    let ended = run(&["record", "-p", &pid, "-d", "200ms", "-o", &output]);
    ended.error(1, &["no samples", "why:", "try:"]);
    assert!(ended.stderr.contains("slept") || ended.stderr.contains("CPU"), "{}", ended.stderr);
}

#[test]
fn frequency_above_the_limit_names_the_sysctl() {
    let most = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    let most: u64 = most.trim().parse().unwrap();
    let above = (most + 1).to_string();
    let ended = record_nowhere(&["-F", &above, "--", "true"]);
    ended.error(1, &[&above, "why:", "perf_event_max_sample_rate", "try:"]);
}

#[test]
fn out_of_file_descriptors() {
    if !live() {
        return;
    }
    let target = Target::start(&program("threads.c"), &["60"]);
    // The hard limit, too: flame raises the soft one by itself.
    let script =
        r#"ulimit -n 10; exec "$FLAME" record -p "$TARGET" -d 100ms --format folded -o /dev/null"#;
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("FLAME", env!("CARGO_BIN_EXE_flame"));
    let ended = finish(command.env("TARGET", target.pid_text()));
    ended.error(1, &["file", "why:", "try:", "prlimit --nofile"]);
}

#[test]
fn usage_errors_are_status_2_and_name_the_culprit() {
    for (arguments, culprit) in [
        (&["record"][..], ""),
        (&["record", "--no-such-option", "--", "true"], "--no-such-option"),
        (&["record", "-F", "often", "--", "true"], "often"),
        (&["record", "-F", "0", "--", "true"], "0"),
        (&["record", "-F", "99", "-c", "1000", "--", "true"], "--period"),
        (&["record", "-d", "soon", "--", "true"], "soon"),
        (&["record", "-p", "12x", "-d", "1s"], "12x"),
        (&["record", "-p", "", "-d", "1s"], "empty list"),
        (&["record", "-p", "0", "-d", "1s"], "0"),
        (&["record", "-t", "one", "-d", "1s"], "one"),
        (&["record", "-a", "-p", "1"], "--all"),
        (&["record", "-k", "-u", "--", "true"], "-k"),
        (&["record", "-C", "3-1", "-d", "1s"], "3-1"),
        (&["record", "--call-graph", "lbr", "--", "true"], "lbr"),
        (&["record", "--call-graph", "dwarf,0", "--", "true"], "dwarf,0"),
        (&["record", "--call-graph", "dwarf,100000", "--", "true"], "100000"),
        (&["record", "-o", "out.xyz", "--", "true"], "xyz"),
        (&["recrod"], "recrod"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code(), 2, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(culprit), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("error:"), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}

#[test]
fn help_goes_to_stdout_and_the_short_one_fits_a_screen() {
    for arguments in [&["-h"][..], &["--help"], &["record", "-h"], &["record", "--help"]] {
        let ended = run(arguments).success();
        assert_eq!(ended.stderr, "", "{arguments:?}");
        assert!(ended.stdout.contains("record"), "{arguments:?}: {}", ended.stdout);
    }
    let lines = run(&["record", "-h"]).stdout.lines().count();
    assert!(lines <= 50, "`flame record -h` has {lines} lines");
    assert!(run(&["record", "--help"]).stdout.contains("flame record -p"), "no example");
}

#[test]
fn version_is_that_of_the_workspace() {
    let ended = run(&["--version"]).success();
    assert_eq!(ended.stdout.trim(), concat!("flame ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn cpu_that_does_not_exist() {
    if !live_as_root() {
        return;
    }
    let ended = record_nowhere(&["-C", "4095", "-d", "100ms"]);
    assert!(matches!(ended.code(), 1 | 2));
    ended.error(ended.code(), &["4095"]);
}

/// The perf events of a user are limited by locked memory; the limit of the ring is per user and
/// CPU, so an unprivileged user that may lock nothing gets smaller rings before an error.
#[test]
fn locked_memory_limit_shrinks_the_ring_or_names_the_sysctl() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_for_everybody(&scratch);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--memlock=0:0"]);
    let flame = scratch.file("flame");
    fs::copy(env!("CARGO_BIN_EXE_flame"), &flame).unwrap();
    command.args([&flame, "record"]).args(NOWHERE).args(["--", &program, "0.1", "0"]);
    let ended = finish(command.current_dir(scratch.path()));
    if mlock_kb() < 516 {
        // The administrator gave less than the kernel's default: it may be too little for any ring.
        if !ended.status.success() {
            ended.error(1, &["why:", "perf_event_mlock_kb", "try:"]);
        }
        return;
    }
    let said = ended.success().stderr;
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim() == "-1" {
        // Nobody's memory is limited then.
        return;
    }
    assert!(said.contains("kernel.perf_event_mlock_kb="), "{said}");
    assert!(said.contains("samples of"), "{said}");
}

/// What the kernel lets every user lock for perf events, in KiB a CPU.
fn mlock_kb() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").unwrap();
    text.trim().parse().unwrap()
}

/// A copy of `exitcode` where every user may reach it.
fn program_for_everybody(scratch: &Scratch) -> String {
    let path = scratch.file("exitcode");
    fs::copy(program("exitcode.c"), &path).unwrap();
    path
}

#[test]
fn nothing_but_flame_is_needed() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let mut command = flame();
    command.env_clear().arg("record").args(NOWHERE).args(["--", &program, "0.1", "0"]);
    finish(&mut command).success();
}
