//! What can be recorded: a command, processes, threads, CPUs, the machine; and who joins later.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{
    Build, Folded, Group, NOWHERE, Running, Scratch, Target, assert_count, assert_share, finish,
    flame, live, live_as_root, program, program_built, record, record_nowhere, run, start,
    wait_until,
};

/// Attaches, runs `work` once flame has its perf events, ends it with Ctrl-C, reads the result.
#[track_caller]
fn attached(arguments: &[&str], work: impl FnOnce(&mut Running)) -> Folded {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let all: Vec<&str> = ["record", "-F", "999", "-o", &path].into_iter().collect();
    let mut flame = start(&[&all, arguments].concat());
    flame.wait_for_recording();
    work(&mut flame);
    flame.signal(Signal::SIGINT);
    flame.end().success();
    Folded::parse(&fs::read_to_string(&path).unwrap())
}

#[test]
fn launched_command_is_sampled_from_start_to_end() {
    if !live() {
        return;
    }
    let folded = record(&["-F", "999", "--", &program("shares.c"), "1"]);
    assert_eq!(folded.roots(), ["shares"]);
    // One second of CPU time, and some milliseconds for the loader.
    assert_count(folded.total(), 999.0, 0.1);
    for (function, share) in [("alpha", 0.5), ("beta", 0.3), ("omega", 0.2)] {
        let weight = folded.with(&["main", "work", function]);
        assert_share(weight, folded.total(), share, 0.01);
    }
}

#[test]
fn attaching_does_not_stop_or_end_the_process() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("shares.c"), &["60"]);
    let pid = target.pid_text();
    let folded = attached(&["-p", &pid], |_| target.wait_for_cpu(0.5));
    assert!(target.is_running());
    assert_eq!(folded.roots(), ["shares"]);
    let total = folded.total();
    assert!(total >= 400, "{total} samples of 0.5 s at 999 Hz");
    assert_share(folded.with(&["main", "work", "alpha"]), total, 0.5, 0.01);
    assert_share(folded.with(&["main", "work", "omega"]), total, 0.2, 0.01);
}

#[test]
fn several_processes_are_recorded_into_one_profile() {
    if !live() {
        return;
    }
    let first = Target::start(&program("shares.c"), &["60"]);
    let second = Target::start(&program("threads.c"), &["60"]);
    let pids = format!("{},{}", first.pid(), second.pid());
    let folded = attached(&["-p", &pids], |_| {
        first.wait_for_cpu(0.3);
        second.wait_for_cpu(0.3);
    });
    assert_eq!(folded.roots_besides("threads"), ["early", "late", "shares"]);
}

#[test]
fn a_process_that_is_named_twice_is_sampled_once() {
    if !live() {
        return;
    }
    let busy = Target::start(&program("shares.c"), &["60"]);
    let twice = format!("{0},{0}", busy.pid());
    let folded = record(&["-F", "999", "-d", "500ms", "-p", &twice]);
    // One thread cannot give more than 999 samples a second; twice, it would be some 1,000 here.
    assert!((1..=600).contains(&folded.total()), "{} samples in half a second", folded.total());
}

#[test]
fn threads_of_before_and_after_the_attach_are_recorded_under_their_names() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program_built("threads.c", Build::Static), &["0.3", "wait"]);
    let pid = target.pid_text();
    let folded = {
        let scratch = Scratch::new();
        let path = scratch.file("out.folded");
        let mut flame = start(&["record", "-F", "999", "-p", &pid, "-o", &path]);
        flame.wait_for_recording();
        target.go();
        target.wait_for_end();
        flame.end().success();
        Folded::parse(&fs::read_to_string(&path).unwrap())
    };
    for name in ["early", "late"] {
        let of_name = folded.of(name);
        let (thread, work) = (format!("{name}_thread"), format!("{name}_work"));
        // Two threads that use 0.3 s each.
        assert_count(of_name.total(), 2.0 * 0.3 * 999.0, 0.15);
        let rooted = of_name.with(&["start_thread", &thread, &work]);
        assert_share(rooted, of_name.total(), 1.0, 0.02);
    }
}

#[test]
fn no_inherit_leaves_out_threads_that_start_later() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("threads.c"), &["0.3", "wait"]);
    let pid = target.pid_text();
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut flame = start(&["record", "-F", "999", "--no-inherit", "-p", &pid, "-o", &path]);
    flame.wait_for_recording();
    target.go();
    target.wait_for_end();
    flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_count(folded.of("early").total(), 2.0 * 0.3 * 999.0, 0.15);
    assert_eq!(folded.with_any(|frame| frame.starts_with("late")), 0);
}

#[test]
fn one_thread_is_recorded_without_its_siblings() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("threads.c"), &["0.4", "wait"]);
    let tid = target.threads_named("early").remove(0);
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut flame = start(&["record", "-F", "999", "-t", &tid, "-o", &path]);
    flame.wait_for_recording();
    target.go();
    target.wait_for_end();
    flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.roots(), ["early"]);
    assert_count(folded.total(), 0.4 * 999.0, 0.15);
}

/// /proc shows neither memory nor files of such a process by its own number.
#[test]
fn a_process_whose_main_thread_has_ended_is_recorded_with_names() {
    if !live() {
        return;
    }
    let target = Target::start(&program("threads.c"), &["60", "leave"]);
    let pid = target.pid_text();
    wait_until("the main thread has ended", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") Z ")
    });
    for rights in [&[][..], &["--per-task"]] {
        let folded = record(&[&["-F", "999", "-d", "1", "-p", &pid], rights].concat());
        let worked = folded.with(&["early_work"]) + folded.with(&["late_work"]);
        assert_share(worked, folded.total(), 1.0, 0.02);
    }
}

/// A child that forks, and then executes another program: the names of all three phases.
#[test]
fn children_are_followed_through_fork_and_exec() {
    if !live() {
        return;
    }
    let program = program("forkexec.c");
    let scratch = Scratch::new();
    let other = scratch.file("renamed");
    fs::copy(&program, &other).unwrap();
    let folded = record(&["-F", "999", "--", &program, "0.3", &other]);
    assert_eq!(folded.roots(), ["forkexec", "renamed"]);
    let (before, after) = (folded.of("forkexec"), folded.of("renamed"));
    assert_count(before.with(&["main", "in_parent"]), 0.3 * 999.0, 0.15);
    assert_count(before.with(&["main", "before_exec"]), 0.3 * 999.0, 0.15);
    assert_eq!(before.with(&["after_exec"]), 0);
    assert_count(after.with(&["main", "after_exec"]), 0.3 * 999.0, 0.15);
    assert_eq!(after.with(&["before_exec"]) + after.with(&["in_parent"]), 0);
}

#[test]
fn no_inherit_leaves_out_children() {
    if !live() {
        return;
    }
    let program = program("forkexec.c");
    let folded = record(&["-F", "999", "--no-inherit", "--", &program, "0.3", "/bin/true"]);
    assert_count(folded.with(&["main", "in_parent"]), 0.3 * 999.0, 0.15);
    assert_eq!(folded.with(&["before_exec"]), 0);
}

#[test]
fn end_of_the_target_ends_the_recording() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("threads.c"), &["0.2", "wait"]);
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut flame =
        start(&["record", "-F", "999", "-d", "10m", "-p", &target.pid_text(), "-o", &path]);
    flame.wait_for_recording();
    target.go();
    // Nobody tells flame to stop, and 10 minutes are longer than the patience of the tests.
    flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.roots_besides("threads"), ["early", "late"]);
}

#[test]
fn duration_ends_the_recording_before_the_target() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("shares.c"), &["60"]);
    record_nowhere(&["-d", "100ms", "-p", &target.pid_text()]).success();
    assert!(target.is_running());
}

/// A copy of a program under a name that nothing else on the machine has.
fn renamed(scratch: &Scratch, source: &str, name: &str) -> String {
    let path = scratch.file(name);
    fs::copy(program(source), &path).unwrap();
    path
}

#[test]
fn whole_machine_shows_a_process_that_nobody_named() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let busy = renamed(&scratch, "shares.c", "stranger");
    let folded = attached(&["-a"], |_| {
        finish(Command::new(&busy).arg("0.5")).success();
    });
    let stranger = folded.of("stranger");
    assert_count(stranger.total(), 0.5 * 999.0, 0.15);
    assert_share(stranger.with(&["main", "work", "beta"]), stranger.total(), 0.3, 0.01);
}

/// The idle and iowait time of all CPUs since boot, in nanoseconds.
fn idle_time() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let all: Vec<f64> = stat.lines().next().unwrap().split(' ').flat_map(str::parse).collect();
    (all[3] + all[4]) * 1e7
}

/// What the kernel accounted while flame recorded is between what it did within that time and around it.
#[test]
fn time_without_anything_to_do_is_shown_where_that_is_asked_for() {
    run(&["record", "--idle", "-p", "1"]).error(2, &["--idle is for all processes: -a"]);
    run(&["record", "-a", "--idle", "-e", "page-faults"]).error(2, &["-e cpu-clock"]);
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let before = idle_time();
    let arguments = ["record", "-a", "--idle", "--value", "cpu", "-o", &path];
    let mut flame = start(&arguments);
    flame.wait_for_recording();
    let (begun, target) = (idle_time(), program("sleeper.c"));
    finish(Command::new(&target).arg("0.5"));
    let ended = idle_time();
    flame.signal(Signal::SIGINT);
    flame.end().success();
    let after = idle_time();
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let idle = folded.of("swapper").with(&["[idle]"]) as f64;
    // Ticks of 10 ms for each CPU, at each end.
    let ticks = 2e7 * std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let range = ended - begun - ticks..=after - before + ticks;
    assert!(range.contains(&idle), "{idle} is not in {range:?}");
}

/// Programs pinned to two CPUs, one of which is recorded.
#[test]
fn a_cpu_is_recorded_without_the_others() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if !live_as_root() || cpus < 2 {
        return;
    }
    let scratch = Scratch::new();
    let pinned = |cpu: &str, name: &str| {
        let program = renamed(&scratch, "exitcode.c", name);
        Target::spawn(Command::new("taskset").args(["-c", cpu, &program, "60"]))
    };
    let (on_recorded, on_other) = (pinned("1", "on-recorded"), pinned("0", "on-other"));
    let folded = attached(&["-C", "1"], |_| {
        on_recorded.wait_for_cpu(0.3);
        on_other.wait_for_cpu(0.3);
    });
    assert!(folded.of("on-recorded").total() >= 100, "{folded:?}");
    assert_eq!(folded.of("on-other").total(), 0);
}

#[test]
fn environment_and_arguments_reach_the_command() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let said = scratch.file("said");
    let busy = program("exitcode.c");
    let script = format!("{busy} 0.1 0; printf '%s|%s|%s' \"$0\" \"$1\" \"$WORD\" > {said}");
    let mut command = flame();
    command.env("WORD", "of mouth").arg("record").args(NOWHERE);
    finish(command.args(["--", "sh", "-c", &script, "-d", "two words"])).success();
    assert_eq!(fs::read_to_string(&said).unwrap(), "-d|two words|of mouth");
}

#[test]
fn control_group_is_recorded_alone() {
    if !live_as_root() {
        return;
    }
    let Some(group) = Group::new() else {
        eprintln!("SKIP: control groups of version 2 are not mounted");
        return;
    };
    let inside = group.command(&[&program("shares.c"), "1"]);
    let mut member = Command::new(&inside[0])
        .args(&inside[1..])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut stranger = Command::new(program("exitcode.c")).args(["1", "0"]).spawn().unwrap();
    let folded = record(&["-F", "999", "-G", group.name(), "-d", "700ms"]);
    member.wait().unwrap();
    stranger.wait().unwrap();
    assert!(folded.roots().contains(&"shares"), "{:?}", folded.roots());
    assert!(!folded.roots().contains(&"exitcode"), "another group's process");
}
