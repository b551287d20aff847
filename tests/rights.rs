//! What flame may do at each stage beyond its user, in every thread; and what users who were given
//! capabilities with it can make of them.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::support::{
    Build, Ended, Running, Scratch, Target, finish, flame, live_as_root, program, program_built,
    wait_until,
};

/// The bits of capabilities in `/proc/PID/status`, by their numbers in capability.h.
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const FOWNER: u64 = 1 << 3;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const IPC_LOCK: u64 = 1 << 14;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYSLOG: u64 = 1 << 34;
const PERFMON: u64 = 1 << 38;
const CHECKPOINT_RESTORE: u64 = 1 << 40;

/// What only a recording has a use for.
const RECORDING: u64 = IPC_LOCK | SYS_PTRACE | SYS_ADMIN | SYSLOG | PERFMON | CHECKPOINT_RESTORE;
const ROOTS_FILES: u64 = CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | SETGID | SETUID;

/// That line of the status of each thread.
fn of_threads(flame: &Running, name: &str) -> Vec<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", flame.pid())).unwrap();
    // A thread may end meanwhile.
    let read = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let statuses = tasks.filter_map(|task| read(task.ok()?));
    let number = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        u64::from_str_radix(line.unwrap_or_default().trim(), 16).unwrap()
    };
    statuses.map(number).collect()
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Flame where everybody can run it, beside files that only root may read.
fn scene() -> Scratch {
    let scratch = Scratch::new();
    fs::copy(env!("CARGO_BIN_EXE_flame"), scratch.file("flame")).unwrap();
    let secrets = [
        ("secret", "secret;frames 3\n"),
        ("secret.map", "secret->rgb(1,2,3)\n"),
        ("secret.attr", "secret\tclass=a\n"),
    ];
    for (name, text) in secrets {
        fs::write(scratch.file(name), text).unwrap();
        fs::set_permissions(scratch.file(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::write(scratch.file("in.folded"), "a;b 1\n").unwrap();
    fs::create_dir(scratch.file("closed")).unwrap();
    fs::set_permissions(scratch.file("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    scratch
}

/// Runs flame there as `nobody` with those capabilities, as from a file that was given them.
fn as_nobody_with(scratch: &Scratch, capabilities: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(format!("--inh-caps={capabilities}"));
    command.arg(format!("--ambient-caps={capabilities}"));
    command.env("XDG_CACHE_HOME", "/dev/null").env_remove("DEBUGINFOD_URLS");
    command.arg("./flame").args(arguments).current_dir(scratch.path());
    command
}

#[track_caller]
fn refused(scratch: &Scratch, arguments: &[&str], file: &str) {
    let capabilities = "+dac_read_search,+dac_override,+fowner,+perfmon";
    let ended: Ended = finish(&mut as_nobody_with(scratch, capabilities, arguments));
    ended.error(1, &[file, "permission denied"]);
    assert!(!ended.stdout.contains("frames"), "{}", ended.stdout);
}

#[test]
fn files_that_a_user_names_are_opened_with_that_users_rights() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    let folded = ["--format", "folded", "-o", "-"];
    refused(&scratch, &[&["render", "secret"][..], &folded].concat(), "secret");
    refused(&scratch, &[&["diff", "in.folded", "secret"][..], &folded].concat(), "secret");
    for first in [&["render", "in.folded"][..], &["record"]] {
        let with = |more: &[&'static str]| -> Vec<&str> {
            let command: &[&str] = if first[0] == "record" { &["--", "true"] } else { &[] };
            [first, more, command].concat()
        };
        refused(&scratch, &with(&["-o", "a.svg", "--nameattr", "secret.attr"]), "secret.attr");
        refused(&scratch, &with(&["-o", "a.svg", "--cp=secret.map"]), "secret.map");
        refused(&scratch, &with(&["-o", "closed/a.svg"]), "closed/a.svg");
    }
    assert_eq!(fs::read_dir(scratch.file("closed")).unwrap().count(), 0);
}

#[test]
fn commands_that_do_not_record_keep_nothing_that_recording_takes() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    let fifo = scratch.file("fifo");
    nix::unistd::mkfifo(fifo.as_str(), Mode::from_bits_truncate(0o644)).unwrap();
    let folded = ["--format", "folded", "-o", "-"];
    for command in [&["render", "fifo"][..], &["fold", "fifo"], &["diff", "fifo", "in.folded"]] {
        let arguments = [command, &folded].concat();
        let mut roots = flame();
        roots.args(&arguments).current_dir(scratch.path());
        let capabilities = "+dac_read_search,+perfmon,+sys_ptrace,+syslog";
        // As root the kernel's names, for perf.data.
        let cases = [
            (roots, ROOTS_FILES | SYSLOG),
            (as_nobody_with(&scratch, capabilities, &arguments), 0),
        ];
        for (mut command, expect) in cases {
            let flame = Running::new(&mut command);
            // It waits for the other end of the FIFO.
            wait_until("flame to drop what it has no use for", || {
                let kept = ["CapPrm", "CapEff"].map(|name| of_threads(&flame, name));
                let is_only =
                    |sets: &Vec<u64>| !sets.is_empty() && sets.iter().all(|s| s & !expect == 0);
                kept.iter().all(is_only)
            });
            fs::write(&fifo, "a;b 1\n").unwrap();
            flame.end().success();
        }
    }
}

#[test]
fn no_thread_that_speaks_to_a_network_has_any_capability() {
    if !live_as_root() || !cfg!(feature = "debuginfod") {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let scratch = Scratch::new();
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let mut command = flame();
    command.env("DEBUGINFOD_URLS", format!("http://{}", server.local_addr().unwrap()));
    command.env("XDG_CACHE_HOME", scratch.path()).env_remove("DEBUGINFOD_CACHE_PATH");
    command.args(["record", "-F", "999", "-p", &target.pid_text()]);
    command.args(["-o", &scratch.file("out.folded")]);
    let mut flame = Running::new(&mut command);
    flame.wait_for_events(1);
    target.wait_for_cpu(0.2);
    flame.signal(Signal::SIGINT);
    // A server that takes its time, so that flame can be looked at.
    let (mut first, _) = server.accept().unwrap();
    let permitted = of_threads(&flame, "CapPrm");
    assert!(permitted.iter().all(|set| set & RECORDING == 0), "{permitted:x?}");
    // The thread that waits for the answer, and the one that started it.
    assert!(permitted.iter().filter(|set| **set == 0).count() >= 2, "{permitted:x?}");
    refuse(&mut first);
    std::thread::spawn(move || server.incoming().flatten().for_each(|mut next| refuse(&mut next)));
    flame.end().success();
}

/// Answers that there is no such file.
fn refuse(client: &mut TcpStream) {
    let _ = client.read(&mut [0; 4096]);
    let _ = client
        .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

#[test]
fn a_recording_of_who_is_not_root_keeps_nothing_when_it_is_over() {
    if !live_as_root() {
        return;
    }
    let scratch = scene();
    let fifo = scratch.file("out.folded");
    nix::unistd::mkfifo(fifo.as_str(), Mode::from_bits_truncate(0o666)).unwrap();
    fs::set_permissions(&fifo, fs::Permissions::from_mode(0o666)).unwrap();
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let capabilities = "+dac_read_search,+dac_override,+perfmon,+sys_ptrace,+syslog";
    let arguments = ["record", "-F", "999", "-p", &target.pid_text(), "-o", "out.folded"];
    let flame = Running::new(&mut as_nobody_with(&scratch, capabilities, &arguments));
    let recording = DAC_READ_SEARCH | PERFMON | SYS_PTRACE | SYSLOG;
    // The thread that listens for signals has none.
    let is_recording = |sets: Vec<u64>| {
        let with_rights = sets.iter().filter(|set| **set != 0);
        with_rights.clone().count() > 1 && with_rights.clone().all(|set| *set == recording)
    };
    wait_until("readers", || is_recording(of_threads(&flame, "CapPrm")));
    target.wait_for_cpu(0.2);
    flame.signal(Signal::SIGINT);
    // Writing waits for a reader.
    wait_until("flame to write", || of_threads(&flame, "CapPrm").iter().all(|set| *set == 0));
    let text = fs::read_to_string(&fifo).unwrap();
    assert!(text.contains("run_code"), "{text}");
    flame.end().success();
}

#[test]
fn flame_does_not_run_with_the_rights_of_its_files_owner() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    let copy = scratch.file("flame");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    // Where set-user-id counts.
    let mut command = as_nobody_with(&scratch, "-all", &["render", "secret", "-o", "-"]);
    let ended = finish(&mut command);
    if ended.stderr.contains("secret: permission denied") {
        return;
    }
    ended.error(1, &["flame does not run set-user-id", "why:", "try: sudo chmod ug-s"]);
}

/// Debug files are opened by another process, which has the capability to read others' programs. In a
/// container that is while recording, or what is there would be gone afterwards.
#[test]
fn directories_of_debug_files_are_read_with_that_users_rights() {
    if !live_as_root() {
        return;
    }
    let scratch = scene();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (path, closed) = (scratch.file("prog"), scratch.file("closed"));
    fs::create_dir(format!("{closed}/.build-id")).unwrap();
    let split = "cp $0 $1 && id=$(readelf -n $1 | sed -n 's/.*Build ID: //p') && cd $2/.build-id && \
                 d=$(echo $id | cut -c1-2) && mkdir $d && \
                 objcopy --only-keep-debug $1 $d/$(echo $id | cut -c3-).debug && strip $1";
    let source = program_built("shares.c", Build::Debug);
    let made = Command::new("sh").args(["-c", split, &source, &path, &closed]).status().unwrap();
    assert!(made.success());
    let capabilities = "+dac_read_search,+perfmon,+sys_ptrace";
    let named = |directory: &str, target: &[&str]| {
        let options = ["record", "-F", "199", "-d", "0.5s", "-o", "out.folded", "--debug-dir"];
        let arguments = [&options[..], &[directory], target].concat();
        finish(&mut as_nobody_with(&scratch, capabilities, &arguments)).success();
        let folded = fs::read_to_string(scratch.file("out.folded")).unwrap();
        fs::remove_file(scratch.file("out.folded")).unwrap();
        folded.contains(";alpha")
    };
    let mut container = Command::new("setpriv");
    container.args(["--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Urm"]);
    let container = Target::spawn(container.args([&path, "600"]));
    container.wait_for_cpu(0.1);
    let pid = container.pid_text();
    let targets = [&["--", "./prog", "0.3"][..], &["-p", &pid]];
    for target in targets {
        for directory in [closed.as_str(), "closed"] {
            assert!(!named(directory, target), "{directory} {target:?}");
        }
    }
    // Where they may read it, they get the names: also of a directory that is named from where they are.
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    for target in targets {
        for directory in [closed.as_str(), "closed"] {
            assert!(named(directory, target), "{directory} {target:?}");
        }
    }
}
