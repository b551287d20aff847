//! Interpreters, allocators and debug files that another user has made or put where nobody answers: the
//! recording ends in time, small, and invents nothing for anybody else.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::hostile_files::StuckFs;
use crate::support::{
    Build, Ended, Folded, Running, Scratch, Target, flame, live, live_as_root, program,
    program_built, wait_within,
};

/// How long a recording of two seconds may take on a busy machine where files do not answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What flame may take of memory that is its own, in KiB.
const MAX_MEMORY_KIB: u64 = 300 << 10;

/// A command of somebody else's.
fn as_nobody(arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(arguments);
    command
}

/// Records with these arguments; the output and what flame said.
#[track_caller]
fn record(scratch: &Scratch, arguments: &[&str]) -> (Folded, String) {
    let path = scratch.file("out.folded");
    let _ = fs::remove_file(&path);
    let mut command = flame();
    command.args(["record", "-F", "199", "-d", "2s", "-o", &path]).args(arguments);
    let run = Running::new(&mut command);
    let mut most = 0;
    wait_within(PATIENCE, "flame to write its output", || {
        most = most.max(run.status_kib("RssAnon") + run.status_kib("RssShmem"));
        fs::exists(&path).unwrap()
    });
    let ended: Ended = run.end_within(PATIENCE).success();
    assert!(most < MAX_MEMORY_KIB, "{most} KiB");
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

fn is_script(frame: &str) -> bool {
    frame.ends_with("_[s]") || frame.contains(": not read in time]")
}

/// What runs in whose name: frames of an interpreter only where one runs.
#[test]
fn false_interpreters_of_others_cost_nobody_else_anything() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let mut targets = Vec::new();
    for language in ["python", "perl", "lua", "ruby", "php"] {
        let path = program_built(&format!("false_{language}.c"), Build::Exporting);
        for mode in ["circle", "names"] {
            targets.push(Target::spawn(&mut as_nobody(&[&path, mode, "600"])));
        }
    }
    let honest = Target::spawn(Command::new(program("shares.c")).arg("600"));
    targets.iter().chain([&honest]).for_each(|target| target.wait_for_cpu(0.1));
    // On a busy machine a recording has few samples of each, and an interpreter is known from the second on.
    let mut unseen = vec!["python", "perl", "lua", "ruby", "php"];
    let mut said = String::new();
    for _ in 0..4 {
        let (folded, now_said) = record(&scratch, &["-a"]);
        let honest = folded.of("shares");
        assert!(honest.with(&["main", "work"]) > 0, "{now_said}");
        assert_eq!(honest.with_any(is_script), 0, "{honest:?}");
        unseen.retain(|language| {
            let false_one = folded.of(&format!("false_{language}"));
            assert_eq!(false_one.with_any(|frame| frame.contains(char::is_control)), 0);
            false_one.with_any(is_script) == 0
        });
        assert!(!now_said.contains('\x1b'), "{now_said:?}");
        said = now_said;
        if unseen.is_empty() {
            break;
        }
    }
    assert!(unseen.is_empty(), "{unseen:?}: {said}");
}

/// An interpreter, with a program that computes for ever.
const INTERPRETERS: [(&str, &[&str]); 5] = [
    ("/usr/bin/python3", &["-S", "-c", "while True: pass"]),
    ("/usr/bin/perl", &["-e", "while (1) { $x++ }"]),
    ("/usr/bin/lua5.4", &["-e", "while true do end"]),
    ("/usr/bin/luajit", &["-joff", "-e", "while true do end"]),
    ("/usr/bin/php", &["-n", "-r", "while (true) {}"]),
];

#[test]
fn interpreters_on_a_file_system_that_does_not_answer_are_left_behind() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    // The file systems go first, or nobody could wait for the end of a process that waits for them.
    let (mut targets, mut mounts) = (Vec::new(), Vec::new());
    for (path, arguments) in INTERPRETERS.into_iter().filter(|(path, _)| fs::exists(path).unwrap())
    {
        let file = fs::canonicalize(path).unwrap();
        let name = path.rsplit('/').next().unwrap();
        let Some(files) = StuckFs::mount_as(&scratch, file.to_str().unwrap(), name) else { return };
        let program = files.program();
        let command = [&[program.as_str()], arguments].concat();
        targets.push(Target::spawn(&mut as_nobody(&command)));
        mounts.push(files);
    }
    let honest = Target::spawn(Command::new(program("shares.c")).arg("600"));
    targets.iter().for_each(|target| target.wait_for_cpu(0.2));
    mounts.iter_mut().for_each(StuckFs::stop);
    let pids: Vec<String> = targets.iter().chain([&honest]).map(Target::pid_text).collect();
    let pids: Vec<&str> = pids.iter().flat_map(|pid| ["-p", pid]).collect();
    let (folded, said) = record(&scratch, &pids);
    assert!(folded.with(&["main", "work"]) > 0, "{folded:?}\n{said}");
    assert_eq!(folded.with_any(is_script), 0, "{folded:?}");
    assert!(said.contains("was not waited for: its file system does not answer"), "{said}");
}

/// A Go program says of itself what its functions are: in its file.
#[test]
fn tables_of_go_on_a_file_system_that_does_not_answer_are_left_behind() {
    if !live_as_root() || !crate::go::has_go() {
        return;
    }
    let scratch = Scratch::new();
    let built = crate::go::build(&scratch, "rounds", &[]);
    // It ends when the file system has gone.
    let target;
    let Some(mut files) = StuckFs::mount(&scratch, &built) else { return };
    target = Target::spawn(&mut as_nobody(&[&files.program(), "600"]));
    target.wait_for_cpu(0.5);
    files.stop();
    let (folded, said) = record(&scratch, &["-p", &target.pid_text()]);
    assert!(folded.total() > 0, "{said}");
    assert_eq!(folded.with_any(|frame| frame.starts_with("main.")), 0, "{folded:?}");
    assert!(said.contains("was not waited for: its file system does not answer"), "{said}");
}

/// Two links lead from a program to files of debug information: both to one that does not answer.
#[test]
fn debug_files_that_do_not_answer_are_left_behind() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let run = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
    };
    let (path, id, link) = (scratch.file("linked"), scratch.file("id"), scratch.file("link"));
    let Some(mut files) = StuckFs::mount(&scratch, &program("shares.c")) else { return };
    for name in ["alternate.debug", "linked.debug"] {
        std::os::unix::fs::symlink(files.program(), scratch.file(name)).unwrap();
    }
    fs::write(&id, [b"alternate.debug\0", &[7_u8; 20][..]].concat()).unwrap();
    fs::write(&link, [b"linked.debug\0\0\0\0", &[7_u8; 4][..]].concat()).unwrap();
    let (alternate, debug) = (format!(".gnu_debugaltlink={id}"), format!(".gnu_debuglink={link}"));
    let source = program_built("shares.c", Build::Debug);
    run("objcopy", &["--add-section", &alternate, "--add-section", &debug, &source, &path]);
    let target = Target::spawn(Command::new(&path).arg("600"));
    files.stop();
    let (folded, said) = record(&scratch, &["-p", &target.pid_text()]);
    assert!(folded.with(&["main", "work"]) > 0, "{folded:?}\n{said}");
}

/// What `--mode alloc` says of a program that asks for memory with these words in front of it, and a
/// directory that has the C library.
#[track_caller]
fn refused_allocator(target: &Target) {
    let pid = target.pid_text();
    let mut command = flame();
    command.args([
        "record", "--mode", "alloc", "-d", "1s", "--format", "folded", "-o", "-", "-p", &pid,
    ]);
    let ended = Running::new(&mut command).end_within(PATIENCE);
    ended
        .error(1, &["no function malloc was found", "libc.so.6 lies on a file system that a user"]);
}

fn c_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
    line[line.find('/').unwrap()..].to_owned()
}

#[test]
fn an_allocator_on_a_file_system_that_does_not_answer_gets_no_breakpoints() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let target;
    let Some(mut files) = StuckFs::mount_as(&scratch, &c_library(), "libc.so.6") else { return };
    let directory = scratch.file("libc.so.6");
    let with = format!("LD_LIBRARY_PATH={directory}");
    let command = ["env", &with, &program("allocations.c"), "2000000000"];
    target = Target::spawn(&mut as_nobody(&command));
    target.wait_for_cpu(0.2);
    // Not even as long as it answers, since nobody knows for how long.
    refused_allocator(&target);
    files.stop();
    refused_allocator(&target);
    // Nor when the process does not see its file system any more.
    let unmounted = Command::new("umount").args(["-l", &directory]).status().unwrap();
    assert!(unmounted.success());
    refused_allocator(&target);
}

/// Whoever is root in a namespace of their own may put an overlay over the C library.
#[test]
fn an_allocator_in_a_container_of_a_users_gets_no_breakpoints() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let directories = ["lower", "upper", "work", "merged"].map(|name| scratch.file(name));
    for directory in &directories {
        fs::create_dir(directory).unwrap();
        std::os::unix::fs::chown(directory, Some(65534), Some(65534)).unwrap();
    }
    let [lower, upper, work, merged] = &directories;
    fs::copy(c_library(), format!("{lower}/libc.so.6")).unwrap();
    let script = format!(
        "mount -t overlay o -o lowerdir={lower},upperdir={upper},workdir={work},userxattr {merged} \
         || exec echo cannot; LD_LIBRARY_PATH={merged} exec {} 2000000000",
        program("allocations.c")
    );
    let probe = as_nobody(&["unshare", "-Urm", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        return;
    }
    let mut target = Target::spawn(&mut as_nobody(&["unshare", "-Urm", "sh", "-c", &script]));
    wait_within(PATIENCE, "the program in its container", || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap_or_default();
        maps.contains("allocations") && maps.contains("libc.so.6") || !target.is_running()
    });
    if !target.is_running() {
        return;
    }
    target.wait_for_cpu(0.1);
    refused_allocator(&target);
}
