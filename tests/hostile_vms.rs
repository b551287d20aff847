//! Processes of another user that say of themselves what a Java VM says, and lie: about how much there
//! is, how it hangs together and when. Root's recording ends in time, small, and with its output.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::hostile_files::StuckFs;
use crate::support::{
    Build, Folded, Running, Scratch, Target, flame, incomplete_stacks, live_as_root, program,
    program_built, wait_until, wait_within,
};

/// What flame may take of memory that is its own, in KiB.
const MAX_MEMORY_KIB: u64 = 300 << 10;

/// How long a recording of a second may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// False VMs whose memory answers.
const MODES: [&str; 7] = ["names", "methods", "adapter", "blobs", "tables", "endless", "changing"];

/// Starts a false VM as another user.
fn false_vm(scratch: &Scratch, arguments: &[&str]) -> Target {
    let path = scratch.file("libjvm.so");
    if !fs::exists(&path).unwrap() {
        // Not written here: while another test forks, a file that is open for writing cannot be run.
        let mut install = Command::new("install");
        install.args(["-m755", &program_built("false_vm.c", Build::Exporting), &path]);
        assert!(install.status().unwrap().success());
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &path]).args(arguments);
    let mut target = Target::spawn(&mut command);
    assert_eq!(target.line(), "ready\n");
    target
}

/// Records with these arguments for a second; the output and what flame said.
#[track_caller]
fn record(scratch: &Scratch, arguments: &[&str]) -> (Folded, String) {
    let output = scratch.file("out.folded");
    let _ = fs::remove_file(&output);
    let mut command = flame();
    command.args(["record", "-F", "199", "-d", "1s", "-o", &output]).args(arguments);
    let run = Running::new(&mut command);
    let mut most = 0;
    wait_within(3 * PATIENCE, "flame to write its output", || {
        most = most.max(run.status_kib("RssAnon") + run.status_kib("RssShmem"));
        assert!(most < MAX_MEMORY_KIB, "{arguments:?}: {most} KiB");
        fs::exists(&output).unwrap()
    });
    let ended = run.end_within(PATIENCE).success();
    (Folded::parse(&fs::read_to_string(output).unwrap()), ended.stderr)
}

#[test]
fn false_java_vms_take_neither_memory_nor_time() {
    if !live_as_root() {
        return;
    }
    for mode in MODES {
        let scratch = Scratch::new();
        let target = false_vm(&scratch, &[mode, "600"]);
        target.wait_for_cpu(0.02);
        let (folded, said) = record(&scratch, &["-p", &target.pid_text()]);
        assert!(folded.total() > 0, "{mode}: {folded:?}\n{said}");
        // Where most of its stacks are unreadable, so are the methods that have the names.
        if mode == "names" && incomplete_stacks(&said) * 2 < folded.total() {
            assert!(said.contains("the limit for names of Java VMs was reached"), "{said}");
            // Written once for each stack, they would be a gigabyte.
            let longest = folded.stacks().map(|(stack, _)| stack.join(";").len()).max();
            assert!(longest.is_some_and(|len| len < 2 << 20), "{longest:?}");
            assert!(said.contains("KiB of names"), "{said}");
        }
    }
}

#[test]
fn false_java_vms_do_not_end_a_recording_of_the_machine() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let targets = MODES.map(|mode| false_vm(&scratch, &[mode, "600"]));
    targets.iter().for_each(|target| target.wait_for_cpu(0.02));
    let (folded, said) = record(&scratch, &["-a"]);
    assert!(folded.of("libjvm.so").total() > 0, "{folded:?}\n{said}");
}

/// Memory of a target may be a file of a file system that does not answer: the tables of its VM, too.
#[test]
fn a_java_vm_whose_tables_do_not_answer_is_left_behind() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let hole = scratch.file("hole");
    fs::File::create(&hole).unwrap().set_len(4 << 20).unwrap();
    let Some(mut files) = StuckFs::mount(&scratch, &hole) else { return };
    let word = "x".repeat(20 << 10);
    let mut target = false_vm(&scratch, &["stuck", "600", &files.program(), &word]);
    files.stop();
    target.go();
    target.wait_for_cpu(0.02);
    let (folded, said) = record(&scratch, &["-p", &target.pid_text()]);
    assert!(folded.total() > 0, "{folded:?}\n{said}");
    assert!(said.contains("was not waited for"), "{said}");
    // Nor are the words that it was started by, when another process is looked for.
    let path = scratch.file("honest-one");
    let mut install = Command::new("install");
    assert!(install.args(["-m755", &program("shares.c"), &path]).status().unwrap().success());
    let honest = Target::spawn(Command::new(&path).arg("600"));
    honest.wait_for_cpu(0.02);
    let (folded, said) = record(&scratch, &["-p", "honest-one"]);
    assert!(folded.with(&["main", "work"]) > 0, "{folded:?}\n{said}");
}

/// Somebody's process that says it is a Java VM, and its `/tmp`, which belongs to `user`.
fn vm_with_tmp(scratch: &Scratch, user: u32) -> Option<(Target, String)> {
    let (library, directory) = (scratch.file("libjvm.so"), scratch.file("tmp"));
    fs::copy("/proc/self/exe", &library).unwrap();
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(user), Some(user)).unwrap();
    let mut command = Command::new(program("hostile.c"));
    let mut target = Target::spawn(command.args(["fake-vm", "600", &library, &directory]));
    (target.line() != "cannot\n").then_some((target, directory))
}

fn asking(scratch: &Scratch, target: &Target) -> Running {
    let (output, pid) = (scratch.file("out.folded"), target.pid_text());
    let arguments = ["record", "--java", "-F", "99", "-d", "1s", "-o", &output, "-p", &pid];
    Running::new(flame().args(arguments))
}

#[test]
fn what_a_vm_answers_is_shown_as_text_and_only_its_own_socket_is_asked() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let Some((target, directory)) = vm_with_tmp(&scratch, 65534) else { return };
    let path = format!("{directory}/.java_pid{}", target.pid());
    let listener = UnixListener::bind(&path).unwrap();
    // Anybody may connect; but it is root's.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let ended = asking(&scratch, &target).end_within(PATIENCE).success();
    listener.set_nonblocking(true).unwrap();
    let asked = listener.accept().map(drop);
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock, "{}", ended.stderr);
    // The same as the VM's own.
    chown(&path, Some(65534), Some(65534)).unwrap();
    listener.set_nonblocking(false).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 64]).unwrap();
        let answer = format!("1\n\x1b]0;pwned\x07\u{202e}{}\n", "long".repeat(5000));
        // Whoever has read enough hangs up.
        let _ = stream.write_all(answer.as_bytes());
    });
    let ended = asking(&scratch, &target).end_within(PATIENCE).success();
    server.join().unwrap();
    let said = ended.stderr;
    assert!(said.contains("]0;pwned") && said.contains("longlong"), "{said}");
    let steers = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{2069}').contains(&c);
    assert!(!said.contains(steers), "{said:?}");
    assert!(said.lines().all(|line| line.chars().count() < 1200), "{said}");
}

#[test]
fn what_was_made_for_a_vm_goes_when_flame_is_killed() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let Some((target, directory)) = vm_with_tmp(&scratch, 65534) else { return };
    let files = || fs::read_dir(&directory).unwrap().count();
    let run = asking(&scratch, &target);
    wait_until("flame to ask the VM", || files() == 1);
    run.signal(Signal::SIGKILL);
    wait_until("the file to be removed", || files() == 0);
}
