//! Who may record what, and whose the outputs are. Needs root to become somebody else.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::support::{Ended, Folded, Scratch, Target, finish, flame, live_as_root, program};

const NOBODY: u32 = 65534;

/// Copies flame and a program to where every user reaches them, and runs flame as `nobody`.
#[track_caller]
fn as_nobody(scratch: &Scratch, source: &str, arguments: &[&str]) -> Ended {
    let name = source.split('.').next().unwrap();
    for (from, to) in [(env!("CARGO_BIN_EXE_flame"), "flame"), (&program(source), name)] {
        fs::copy(from, scratch.file(to)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "./flame", "record"]);
    finish(command.args(arguments).current_dir(scratch.path()))
}

fn paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn user_without_rights_gets_user_stacks_of_own_processes_and_is_told() {
    if !live_as_root() || paranoid() != 2 {
        return;
    }
    let scratch = Scratch::new();
    let arguments = ["-F", "999", "-o", "out.folded", "--", "./shares", "0.5"];
    let ended = as_nobody(&scratch, "shares.c", &arguments).success();
    assert!(ended.stderr.contains("kernel"), "{}", ended.stderr);
    assert!(ended.stderr.contains("perf_event_paranoid"), "{}", ended.stderr);
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    assert_eq!(folded.with_any(|frame| frame.ends_with("_[k]")), 0);
    crate::support::assert_share(folded.with(&["main", "work"]), folded.total(), 1.0, 0.03);
}

#[test]
fn process_of_another_user_is_refused_with_the_command_that_works() {
    if !live_as_root() {
        return;
    }
    let target = Target::start(&program("sleeper.c"), &[]);
    let pid = target.pid_text();
    let scratch = Scratch::new();
    let ended = as_nobody(&scratch, "shares.c", &["-p", &pid, "-d", "100ms"]);
    let retry = format!("sudo flame record -p {pid}");
    ended.error(1, &[&pid, "permission denied", "why:", "user root", "try:", &retry]);
}

#[test]
fn whole_machine_without_rights_names_the_smallest_change_that_works() {
    if !live_as_root() || paranoid() < 1 {
        return;
    }
    let scratch = Scratch::new();
    let ended = as_nobody(&scratch, "shares.c", &["-a", "-d", "100ms"]);
    ended.error(1, &["permission denied", "why:", "perf_event_paranoid", "try:"]);
    assert!(ended.stderr.contains("setcap") || ended.stderr.contains("sudo"), "{}", ended.stderr);
}

#[test]
fn kernel_stacks_without_rights_are_refused_when_asked_for() {
    if !live_as_root() || paranoid() < 2 {
        return;
    }
    let scratch = Scratch::new();
    let ended = as_nobody(&scratch, "shares.c", &["-k", "--", "./shares", "0.1"]);
    ended.error(1, &["kernel", "why:", "perf_event_paranoid", "try:"]);
}

/// Runs flame as sudo would have started it for `nobody`.
fn through_sudo(scratch: &Scratch, arguments: &[&str]) -> Ended {
    let mut command = flame();
    command.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("SUDO_USER", "nobody")]);
    finish(command.current_dir(scratch.path()).arg("record").args(arguments))
}

/// What a command prints that says who runs it, after enough work for samples.
fn whoami(scratch: &Scratch) -> String {
    let busy = scratch.file("exitcode");
    fs::copy(program("exitcode.c"), &busy).unwrap();
    format!("{busy} 0.1 0; id -u; id -g; id -G")
}

#[test]
fn outputs_of_sudo_belong_to_who_called_it() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let script = whoami(&scratch);
    let arguments = ["-o", "out.svg", "-o", "out.folded", "-o", "out.pb.gz"];
    through_sudo(&scratch, &[&arguments[..], &["--", "sh", "-c", &script]].concat()).success();
    for name in ["out.svg", "out.folded", "out.pb.gz"] {
        let metadata = fs::metadata(scratch.file(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY), "{name}");
    }
}

#[test]
fn command_of_sudo_runs_as_who_called_it() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let script = whoami(&scratch);
    let ended = through_sudo(&scratch, &["-o", "out.folded", "--", "sh", "-c", &script]).success();
    assert_eq!(ended.stdout, "65534\n65534\n65534\n");
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    assert!(folded.of("exitcode").total() >= 5, "{folded:?}");
}

#[test]
fn command_of_sudo_runs_as_root_on_demand() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let script = whoami(&scratch);
    let arguments = ["--as-root", "-o", "out.folded", "--", "sh", "-c", &script];
    let ended = through_sudo(&scratch, &arguments).success();
    assert_eq!(ended.stdout.lines().next(), Some("0"));
    assert_eq!(fs::metadata(scratch.file("out.folded")).unwrap().uid(), NOBODY);
}

/// A link that another user planted must not let root write where that user could not.
#[test]
fn link_in_a_shared_directory_is_not_followed_for_another_user() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let precious = Scratch::new();
    fs::write(precious.file("file"), "precious").unwrap();
    std::os::unix::fs::symlink(precious.file("file"), scratch.file("flame.svg")).unwrap();
    let script = whoami(&scratch);
    let ended = through_sudo(&scratch, &["--", "sh", "-c", &script]);
    assert_ne!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(fs::read_to_string(precious.file("file")).unwrap(), "precious");
}
