//! Who may record what, and whose the outputs are. Needs root to become somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::{
    Ended, Folded, Running, Scratch, Target, finish, flame, live_as_root, program, wait_until,
};

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

/// What has its CPU time in the kernel has no samples where those are not permitted, and a higher frequency
/// does not help.
#[test]
fn time_in_the_kernel_is_told_to_a_user_who_may_not_sample_it() {
    if !live_as_root() || paranoid() != 2 {
        return;
    }
    let scratch = Scratch::new();
    let copies = ["dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=40", "status=none"];
    let options = ["-F", "19", "-o", "out.folded", "--"];
    // One recording in twenty hits the start of the program, which is not in the kernel.
    let mut tries =
        (0..5).map(|_| as_nobody(&scratch, "shares.c", &[&options[..], &copies].concat()));
    let ended = tries.find(|ended| !ended.status.success()).expect("none is without samples");
    ended.error(1, &["no samples", "in the kernel", "may not sample", "try: sudo"]);
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

/// CAP_PERFMON is the right to sample it, not to look into it.
#[test]
fn process_of_another_user_that_is_only_sampled_has_no_names_and_says_so() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let target = Target::start(&program("shares.c"), &["60"]);
    let flame = scratch.file("flame");
    fs::copy(env!("CARGO_BIN_EXE_flame"), &flame).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+perfmon"]);
    command.args(["--ambient-caps=+perfmon", &flame, "record", "-d", "1s", "-o", "-"]);
    let said = finish(command.args(["-p", &target.pid_text()])).success().stderr;
    assert!(said.contains("no permission to look into 1 process"), "{said}");
    assert!(said.contains("cap_sys_ptrace"), "{said}");
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
fn modes_that_need_tracepoints_say_who_may_read_them() {
    if !live_as_root() || fs::metadata("/sys/kernel/tracing/events").is_err() {
        return;
    }
    for mode in ["wakeup", "offwake", "io", "syscalls", "locks"] {
        let scratch = Scratch::new();
        let ended = as_nobody(&scratch, "shares.c", &["--mode", mode, "--", "./shares", "0.1"]);
        ended.error(
            1,
            &["tracepoints are listed in", "only root", "why:", "try: sudo flame record"],
        );
    }
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

/// A browser of root's would show pages with all rights, and on nobody's desktop.
#[test]
fn browser_of_sudo_runs_as_who_called_it() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let seen = scratch.path().join("seen");
    fs::create_dir(&seen).unwrap();
    fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
    let done = seen.join("done").display().to_string();
    let script = format!(
        "#!/bin/sh\n{{ id -u; id -g; id -G; echo $HOME; }} >{done}.new\nmv {done}.new {done}\n"
    );
    fs::write(scratch.file("script"), script).unwrap();
    let browser = scratch.file("browser");
    // Not written here: while another test forks, a file that is open for writing cannot be run.
    let mut install = Command::new("install");
    install.args(["-m755", &scratch.file("script"), &browser]);
    assert!(install.status().unwrap().success());
    fs::write(scratch.file("in.folded"), "a;b 1\n").unwrap();
    let busy = program("exitcode.c");
    let cases: [&[&str]; 2] = [
        &["render", "in.folded", "--open", "-o", "render.svg"],
        &["record", "--open", "-o", "record.svg", "--as-root", "--", &busy, "0.1", "0"],
    ];
    for arguments in cases {
        let mut command = flame();
        command.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("BROWSER", &browser)]);
        finish(command.current_dir(scratch.path()).args(arguments)).success();
        wait_until("the browser to be started", || Path::new(&done).exists());
        let found = fs::read_to_string(&done).unwrap();
        assert_eq!(found, "65534\n65534\n65534\n/nonexistent\n", "{arguments:?}");
        fs::remove_file(&done).unwrap();
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

/// A program that takes root's home for its own reads and leaves files there, or fails.
#[test]
fn command_of_sudo_knows_itself_for_who_called_it() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let script = format!("{}; echo $HOME $USER $LOGNAME $SHELL", whoami(&scratch));
    let run = |more: &[&str], uid: &str| {
        let mut command = flame();
        command.envs([("SUDO_UID", uid), ("SUDO_GID", "65534")]);
        let roots = [("HOME", "/root"), ("USER", "root"), ("LOGNAME", "root"), ("SHELL", "/bin/x")];
        command.envs(roots).arg("record").args(["-o", "out.folded"]).args(more);
        command.args(["--", "sh", "-c", &script]).current_dir(scratch.path());
        let stdout = finish(&mut command).success().stdout;
        stdout.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(run(&[], "65534"), "/nonexistent nobody nobody /usr/sbin/nologin");
    // A user whom the database does not know.
    assert_eq!(run(&[], "54321"), "/");
    assert_eq!(run(&["--as-root"], "65534"), "/root root root /bin/x");
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

/// The bits of capabilities in `/proc/PID/status`, by their numbers in capability.h.
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const KILL: u64 = 1 << 5;
const IPC_LOCK: u64 = 1 << 14;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_NICE: u64 = 1 << 23;
const SYSLOG: u64 = 1 << 34;
const PERFMON: u64 = 1 << 38;
const CHECKPOINT_RESTORE: u64 = 1 << 40;

const RECORDING: u64 =
    DAC_READ_SEARCH | IPC_LOCK | SYS_PTRACE | SYS_NICE | SYSLOG | PERFMON | CHECKPOINT_RESTORE;

/// The number of a line of `/proc/PID/status`, hexadecimal for capabilities.
fn status(flame: &Running, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", flame.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    u64::from_str_radix(line.unwrap_or_default().trim(), 16).unwrap()
}

#[test]
fn capabilities_are_dropped_when_the_events_are_open_and_again_before_the_outputs() {
    if !live_as_root() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let scratch = Scratch::new();
    // Writing it waits for a reader, which lets flame be looked at meanwhile.
    let fifo = scratch.file("out.folded");
    nix::unistd::mkfifo(fifo.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = flame();
    command.args(["record", "-F", "999", "-p", &target.pid_text(), "-o", &fifo]);
    let flame = Running::new(&mut command);
    wait_until("flame to drop what it does not need to record", || {
        status(&flame, "CapEff") == RECORDING
    });
    assert_eq!(status(&flame, "CapPrm"), RECORDING | DAC_OVERRIDE);
    target.wait_for_cpu(0.2);
    flame.signal(nix::sys::signal::Signal::SIGINT);
    wait_until("flame to drop what it needed to record", || {
        status(&flame, "CapPrm") == DAC_READ_SEARCH | DAC_OVERRIDE
    });
    wait_until("flame to raise what it needs to write", || {
        status(&flame, "CapEff") == DAC_READ_SEARCH | DAC_OVERRIDE
    });
    assert_eq!(status(&flame, "NoNewPrivs"), 1);
    let folded = Folded::parse(&fs::read_to_string(&fifo).unwrap());
    assert!(folded.with_any(|frame| frame == "run_code") > 50, "{folded:?}");
    flame.end().success();
}

#[test]
fn only_what_outputs_need_is_kept_for_them() {
    if !live_as_root() {
        return;
    }
    let target = Target::start(&program("sleeper.c"), &[]);
    let scratch = Scratch::new();
    let mut command = flame();
    command.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
    command.args(["record", "-p", &target.pid_text(), "-o", &scratch.file("out.folded")]);
    let flame = Running::new(&mut command);
    // The directory is everybody's: nothing has to be overridden there, and only the file be
    // given to the caller.
    wait_until("flame to drop what it does not need", || {
        status(&flame, "CapPrm") == RECORDING | KILL | CHOWN
    });
    flame.signal(nix::sys::signal::Signal::SIGINT);
    flame.end();
}

#[test]
fn outputs_reach_a_directory_that_is_closed_to_all_but_its_owner() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let closed = scratch.file("closed");
    fs::create_dir(&closed).unwrap();
    std::os::unix::fs::chown(&closed, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let output = scratch.file("closed/out.folded");
    let script = whoami(&scratch);
    through_sudo(&scratch, &["-o", &output, "--as-root", "--", "sh", "-c", &script]).success();
    let metadata = fs::metadata(&output).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY));
}

#[test]
fn a_file_of_another_user_in_a_sticky_directory_is_replaced() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777))
        .unwrap();
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), None).unwrap();
    let output = scratch.file("out.folded");
    fs::write(&output, "old").unwrap();
    std::os::unix::fs::chown(&output, Some(1234), Some(1234)).unwrap();
    let script = whoami(&scratch);
    let arguments = ["record", "-o", &output, "--", "sh", "-c", &script];
    finish(flame().args(arguments)).success();
    assert_ne!(fs::read_to_string(&output).unwrap(), "old");
    assert_eq!(fs::metadata(&output).unwrap().uid(), 0);
}
