//! Processes that were there before the recording: their children, their threads, what they used,
//! and how they are named.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{self, Signal};

use crate::support::{
    Ended, Folded, NOWHERE, Running, Scratch, Target, assert_count, assert_share, finish, flame,
    live, live_as_root, program, record_nowhere, start,
};

/// Attaches with these arguments to a target that `go` lets work until it ends.
#[track_caller]
fn attached(target: &mut Target, arguments: &[&str]) -> (Folded, Ended) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut flame: Running = start(&[&["record", "-o", &path], arguments].concat());
    flame.wait_for_recording();
    target.go();
    target.wait_for_end();
    let ended = flame.end_within(Duration::from_secs(300)).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended)
}

/// The number behind `coverage` in a summary.
#[track_caller]
fn coverage(said: &str) -> f64 {
    let line = said.lines().find_map(|line| line.trim_start().strip_prefix("coverage"));
    let line = line.unwrap_or_else(|| panic!("no coverage in:\n{said}"));
    line.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn workers_of_a_server_are_recorded_with_it() {
    if !live_as_root() {
        return;
    }
    for options in [&[][..], &["--per-task"]] {
        let mut target = Target::start(&program("prefork.c"), &["3", "0.3", "0.4"]);
        let pid = target.pid_text();
        let arguments = [&["-F", "999", "-p", &pid], options].concat();
        let (folded, ended) = attached(&mut target, &arguments);
        assert_count(folded.with(&["main", "serve"]), 3.0 * 0.4 * 999.0, 0.15);
        assert_count(folded.with(&["main", "lead"]), 0.4 * 999.0, 0.15);
        assert_eq!(folded.with(&["warm_up"]), 0);
        assert!(ended.stderr.contains("4 processes, 4 threads"), "{}", ended.stderr);
        // What the workers had used before they were waited for is not the recording's.
        let coverage = coverage(&ended.stderr);
        assert!((85.0..115.0).contains(&coverage), "{}", ended.stderr);
        assert!(!ended.stderr.contains("not seen"), "{}", ended.stderr);
    }
}

#[test]
fn workers_can_be_left_out() {
    if !live_as_root() {
        return;
    }
    let mut target = Target::start(&program("prefork.c"), &["3", "1", "0.5"]);
    let pid = target.pid_text();
    let (folded, ended) = attached(&mut target, &["-F", "999", "--no-children", "-p", &pid]);
    assert_eq!(folded.with(&["main", "serve"]), 0);
    assert_count(folded.with(&["main", "lead"]), 0.5 * 999.0, 0.15);
    assert!(ended.stderr.contains("1 process, 1 thread\n"), "{}", ended.stderr);
    assert!((80.0..120.0).contains(&coverage(&ended.stderr)), "{}", ended.stderr);
}

#[test]
fn number_of_a_thread_means_its_process_and_it_is_said() {
    if !live_as_root() {
        return;
    }
    for options in [&[][..], &["--per-task"]] {
        let mut target = Target::start(&program("threads.c"), &["0.3", "wait"]);
        let tid = target.threads_named("early").remove(0);
        let arguments = [&["-F", "999", "-p", &tid], options].concat();
        let (folded, ended) = attached(&mut target, &arguments);
        assert!(folded.of("early").total() > 300, "{folded:?}");
        let said = format!("{tid} is a thread of process {}", target.pid());
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("-t {tid}")), "{}", ended.stderr);
    }
}

#[test]
fn doctor_takes_the_number_of_a_thread() {
    if !live() {
        return;
    }
    let target = Target::start(&program("threads.c"), &["60", "wait"]);
    let tid = target.threads_named("early").remove(0);
    let said = finish(flame().args(["doctor", "--json", "-p", &tid])).stdout;
    assert!(said.contains(&format!("\"pid\":{},", target.pid())), "{said}");
}

#[test]
fn processes_are_named_as_people_type_them() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let server = scratch.file("server-of-test");
    fs::copy(program("prefork.c"), &server).unwrap();
    let mut target = Target::start(&server, &["2", "0", "0.3"]);
    let (folded, _) = attached(&mut target, &["--freq", "999", "--pid", "server-of-test"]);
    assert_count(folded.with(&["main", "serve"]), 2.0 * 0.3 * 999.0, 0.15);
    let pair: Vec<Target> = (0..2).map(|_| Target::start(&server, &["1", "0", "0.1"])).collect();
    let ended = record_nowhere(&["-p", "server-of-test", "--duration", "100ms"]);
    ended.error(2, &["server-of-test", "neither one process nor one tree", "why:", "try:", "-p "]);
    let lines = format!("{}\n{}\n", pair[0].pid(), pair[1].pid());
    let ended = record_nowhere(&["-p", &lines, "-d", "100ms"]);
    assert!(ended.stderr.contains("no samples were taken"), "{}", ended.stderr);
    record_nowhere(&["-p", "no-such-program"]).error(1, &["no process has that name", "try:"]);
    record_nowhere(&["-p", ""]).error(2, &["empty list"]);
}

#[test]
fn command_needs_no_dashes_and_keeps_its_own_options() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let ended = record_nowhere(&["-F", "999", "-g", &program, "0.1", "3"]).success();
    assert!(ended.stderr.contains("-g is not needed"), "{}", ended.stderr);
    assert!(ended.stderr.contains("exit status: 3"), "{}", ended.stderr);
    let ended = record_nowhere(&["sh", "-c", &format!("{program} 0.1 4"), "-p", "x"]).success();
    assert!(ended.stderr.contains("exit status: 4"), "{}", ended.stderr);
    record_nowhere(&["4242"]).error(1, &["4242", "try:", "-p 4242"]);
}

/// `-p PID -- sleep 5`, as perf says how long.
#[test]
fn command_beside_a_target_says_how_long() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let target = Target::start(&program("shares.c"), &["60"]);
    let pid = target.pid_text();
    let timer = program("exitcode.c");
    let arguments = ["record", "-F", "999", "-o", &path, "-p", &pid, "--", &timer, "0.3", "0"];
    finish(flame().args(arguments)).success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.roots(), ["shares"]);
    assert_share(folded.with(&["main", "work"]), folded.total(), 1.0, 0.03);
}

#[test]
fn no_samples_have_their_reason() {
    if !live_as_root() {
        return;
    }
    let why = |arguments: &[&str], reason: &str| {
        record_nowhere(arguments).error(1, &["no samples were taken", "why:", reason, "try:"]);
    };
    let stopped = Target::start(&program("shares.c"), &["60"]);
    let stop = |signal| {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(stopped.pid()).unwrap());
        signal::kill(pid, signal).unwrap();
    };
    stop(Signal::SIGSTOP);
    let pid = stopped.pid_text();
    why(&["-p", &pid, "-d", "200ms"], "is stopped, by a signal or a debugger");
    stop(Signal::SIGCONT);
    let sleeper = Target::start(&program("sleeper.c"), &[]);
    why(&["-p", &sleeper.pid_text(), "-d", "200ms"], "the target slept");
    why(&["-F", "1", "--", "true"], "the program was short-lived");
    if std::thread::available_parallelism().map_or(1, usize::from) > 1 {
        let program = program("exitcode.c");
        // `taskset` itself may run on CPU 0 for a millisecond: too short for so few samples a second.
        let on_one = ["taskset", "-c", "1", &program, "1", "0"];
        why(&[&["-F", "9", "-C", "0", "--"], &on_one[..]].concat(), "only CPU 0 is recorded");
    }
    let status = ["--forward-exit", "-F", "1", "--", "sh", "-c", "exit 3"];
    let ended = record_nowhere(&status);
    assert_eq!(ended.code(), 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("no samples were taken"), "{}", ended.stderr);
}

#[test]
fn frame_pointers_are_not_said_to_be_incomplete() {
    if !live() {
        return;
    }
    let program = program("shares.c");
    let ended = record_nowhere(&["-F", "499", "--call-graph", "fp", "--", &program, "0.3"]);
    let said = ended.success().stderr;
    assert!(said.contains("not known: frame pointers do not tell"), "{said}");
    assert!(!said.contains("0.00 %"), "{said}");
}

/// What is set up before is not part of a recording, however long that takes.
#[test]
fn recording_of_a_machine_begins_when_all_is_set_up() {
    if !live_as_root() {
        return;
    }
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(Target::spawn(Command::new("sleep").arg("300")));
    }
    let mut command = flame();
    command.args(["record", "-a", "-F", "199", "-d", "1s"]).args(NOWHERE);
    // All that runs on the machine gets its names.
    let said = Running::new(&mut command).end_within(Duration::from_secs(300)).success().stderr;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let line = said.lines().find_map(|line| line.split_once(" % of ")).unwrap().1;
    let seconds: f64 = line.split_ascii_whitespace().next().unwrap().parse().unwrap();
    // `cpu-clock at 199 Hz for 1.0 s on host`
    let how = said.lines().find(|line| line.contains(" Hz for "));
    let duration = how.unwrap().split_once(" for ").unwrap().1;
    let duration = duration.split_ascii_whitespace().next().unwrap();
    let duration: f64 = duration.parse().unwrap();
    // /proc/stat counts in ticks, and the duration is rounded.
    let most = (duration + 0.1) * cpus as f64;
    assert!(seconds <= most, "{seconds} s of CPU time in {duration} s\n{said}");
}
