//! How a recording ends: signals, and the status of the command that was launched.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{
    Folded, Running, Scratch, Target, assert_count, assert_share, finish, flame, live,
    live_as_root, program, record_nowhere, start,
};

/// Attaches to a busy process, sends `signal` after 0.3 s of its time, and reads the result.
#[track_caller]
fn ended_by(signal: Signal) {
    let target = Target::start(&program("shares.c"), &["60"]);
    let scratch = Scratch::new();
    let (folded, svg) = (scratch.file("out.folded"), scratch.file("out.svg"));
    let pid = target.pid_text();
    let mut flame = start(&["record", "-F", "999", "-p", &pid, "-o", &folded, "-o", &svg]);
    flame.wait_for_events(1);
    target.wait_for_cpu(0.3);
    flame.signal(signal);
    flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
    assert_share(folded.with(&["main", "work", "alpha"]), folded.total(), 0.5, 0.01);
    assert!(fs::read_to_string(&svg).unwrap().trim_end().ends_with("</svg>"));
}

#[test]
fn interrupt_ends_the_recording_and_writes_everything() {
    if live() {
        ended_by(Signal::SIGINT);
    }
}

#[test]
fn terminate_ends_the_recording_and_writes_everything() {
    if live() {
        ended_by(Signal::SIGTERM);
    }
}

/// timeout(1) signals flame and flame's group, and of a terminal that goes away both the kernel and the shell tell.
#[test]
fn signals_that_come_twice_lose_no_recording() {
    if !live() {
        return;
    }
    let target = Target::start(&program("shares.c"), &["60"]);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let scratch = Scratch::new();
        let folded = scratch.file("out.folded");
        let pid = target.pid_text();
        let mut flame = start(&["record", "-F", "999", "-p", &pid, "-d", "60s", "-o", &folded]);
        flame.wait_for_events(1);
        target.wait_for_cpu(0.2);
        for _ in 0..3 {
            flame.signal(signal);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        flame.end().success();
        let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
        assert!(folded.with(&["main", "work", "alpha"]) > 0, "{signal}");
    }
}

/// nohup(1) ignores SIGHUP so that what it starts outlives the terminal.
#[test]
fn a_hangup_that_was_ignored_does_not_end_a_recording() {
    if !live() {
        return;
    }
    let target = Target::start(&program("shares.c"), &["60"]);
    let scratch = Scratch::new();
    let folded = scratch.file("out.folded");
    let mut command = Command::new("bash");
    let script = r#"trap '' HUP; exec "$FLAME" record -p "$TARGET" -d 60s -o "$OUT""#;
    command.args(["-c", script]).env("FLAME", env!("CARGO_BIN_EXE_flame"));
    command.env("TARGET", target.pid_text()).env("OUT", &folded);
    let mut flame = Running::new(&mut command);
    flame.wait_for_events(1);
    flame.signal(Signal::SIGHUP);
    target.wait_for_cpu(0.5);
    assert!(!fs::exists(&folded).unwrap(), "it ended by the first signal");
    flame.signal(Signal::SIGINT);
    flame.end().success();
    assert!(fs::exists(&folded).unwrap());
}

/// The reader of a CPU that a real-time program never leaves does not run while that does.
#[test]
fn a_real_time_program_that_never_waits_does_not_hold_a_recording() {
    if !live_as_root() {
        return;
    }
    let program = program("shares.c");
    let mut target = Command::new("chrt");
    target.args(["-f", "50", "taskset", "-c", "0", &program, "60"]);
    let mut target = Target::spawn(&mut target);
    assert!(target.line().starts_with("ready"));
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let arguments = ["record", "-a", "-F", "99", "-d", "1s", "-o", &path];
    let said = finish(flame().args(arguments)).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let line = said.lines().find(|line| line.contains(" samples of ")).unwrap();
    let seconds = line.split_once(" for ").and_then(|(_, rest)| rest.split_once(" s "));
    let seconds: f64 = seconds.unwrap().0.parse().unwrap();
    // A machine with more to do ends it late, but not for as long as the program runs.
    assert!(seconds < 20.0, "{seconds}");
    // It has 95 % of a CPU, the most that real-time programs get by default, or all of it. Other tests may run
    // the same program.
    assert!(folded.with(&["shares"]) > 60, "{said}");
}

/// A command in its own process group with flame, as a shell starts it at a terminal.
fn in_a_group(output: &str, command: &[&str]) -> Running {
    let mut flame = flame();
    flame.args(["record", "-F", "999", "-o", output, "--"]).args(command).process_group(0);
    let mut flame = Running::new(&mut flame);
    flame.wait_for_events(1);
    flame
}

/// Ctrl-C reaches flame and the command, which dies of it.
#[test]
fn interrupt_at_the_terminal_ends_a_launched_command_and_writes_everything() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let flame = in_a_group(&path, &[&program("shares.c"), "60"]);
    flame.wait_for_child_cpu(0.3);
    flame.signal_group(Signal::SIGINT);
    let ended = flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_share(folded.with(&["main", "work", "alpha"]), folded.total(), 0.5, 0.01);
    assert!(ended.stderr.contains("SIGINT"), "{}", ended.stderr);
}

/// It may have something to save, and nobody ends it meanwhile.
#[test]
fn a_command_that_handles_ctrl_c_has_the_time_to_end() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let script = "trap 'sleep 3; exit 7' INT; while :; do :; done";
    let flame = in_a_group(&scratch.file("out.folded"), &["sh", "-c", script]);
    flame.wait_for_child_cpu(0.1);
    flame.signal_group(Signal::SIGINT);
    let ended = flame.end().success();
    assert!(ended.stderr.contains("ended with exit status: 7"), "{}", ended.stderr);
}

/// Whoever presses Ctrl-C very early gets a result or an error, and not a silent death.
#[test]
fn interrupt_right_after_the_start_is_caught() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let flame = in_a_group(&scratch.file("out.folded"), &[&program("shares.c"), "60"]);
    flame.signal_group(Signal::SIGINT);
    let ended = flame.end();
    assert!(matches!(ended.code(), 0 | 1), "{}", ended.stderr);
}

/// A command that ignores Ctrl-C goes on, and so does flame; the second one ends flame.
#[test]
fn second_interrupt_quits_at_once() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let script = format!("trap '' INT; exec {} 60", program("shares.c"));
    let flame = in_a_group(&scratch.file("out.folded"), &["sh", "-c", &script]);
    flame.wait_for_child_cpu(0.1);
    flame.signal_group(Signal::SIGINT);
    flame.signal_group(Signal::SIGINT);
    let ended = flame.end();
    // 128 + SIGINT as a shell reports it, or dead of the signal itself. Where the first one was
    // enough to end the recording, everything has been written.
    assert!(matches!(ended.status.code(), Some(130 | 0) | None), "{ended:?}");
}

#[test]
fn status_of_the_command_is_reported_and_is_not_flames_own() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let ended = record_nowhere(&["--", &program, "0.1", "7"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("status: 7"), "{}", ended.stderr);
}

#[test]
fn forward_exit_passes_the_status_on() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    for (status, expect) in [("0", 0), ("7", 7), ("kill", 137)] {
        let ended = record_nowhere(&["--forward-exit", "--", &program, "0.1", status]);
        assert_eq!(ended.code(), expect, "{}", ended.stderr);
    }
}

#[test]
fn signal_that_killed_the_command_is_reported() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let ended = record_nowhere(&["--", &program, "0.1", "kill"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let said = &ended.stderr;
    assert!(said.contains("SIGKILL") || said.contains("signal 9"), "{said}");
}

#[test]
fn command_keeps_stdin_stdout_and_stderr() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    fs::write(scratch.file("in"), "from stdin\n").unwrap();
    let busy = program("exitcode.c");
    let script = format!("{busy} 0.1 0; cat; echo to stderr >&2");
    let mut command = Command::new("sh");
    let line = r#""$FLAME" record -q --format folded -o /dev/null -- sh -c "$SCRIPT" < in"#;
    command.args(["-c", line]).current_dir(scratch.path()).env("SCRIPT", script);
    let ended = finish(command.env("FLAME", env!("CARGO_BIN_EXE_flame"))).success();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("from stdin\n", "to stderr\n"));
}

/// What a program does first is left out, and children that it has by then are not.
#[test]
fn a_delay_leaves_out_how_a_program_starts() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let shares = program("shares.c");
    let script = format!("{shares} 0.2; (sleep 1.5; {shares} 0.3) & wait");
    let mut command = flame();
    command.args(["record", "-F", "999", "-D", "1s", "-o", &path, "--", "sh", "-c", &script]);
    finish(&mut command).success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_count(folded.with(&["main", "work"]), 0.3 * 999.0, 0.2);
    finish(flame().args(["record", "-D", "30s", "-o", &path, "--", "true"])).error(
        1,
        &["nothing was recorded: the recording ended before --delay was over", "has ended by then"],
    );
    // What says for how long to record does not begin before.
    let target = Target::start(&shares, &["60"]);
    let mut command = flame();
    command.args(["record", "-F", "999", "-D", "1s", "-o", &path, "-p", &target.pid_text()]);
    finish(command.args(["--", "sleep", "0.5"])).success();
}
