//! File systems and files that a target chose to keep flame waiting, or to fill its memory: the
//! recording ends in time, with its output, and says what it did not wait for.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::perf_data::has_perf;
use crate::support::{
    Folded, Running, Scratch, Target, finish, flame, live, live_as_root, program, wait_until,
};

/// How long a recording of a second may take on a busy machine where files do not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file system whose program stops answering; gone on drop.
pub(crate) struct StuckFs {
    server: Option<Target>,
    directory: String,
    name: String,
}

impl StuckFs {
    /// Mounts it with one file, `program`; `None` where the kernel has no FUSE.
    pub(crate) fn mount(scratch: &Scratch, file: &str) -> Option<StuckFs> {
        StuckFs::mount_as(scratch, file, "program")
    }

    /// The same with another name of the file, below a directory for it.
    pub(crate) fn mount_as(scratch: &Scratch, file: &str, name: &str) -> Option<StuckFs> {
        if !fs::exists("/dev/fuse").unwrap() {
            return None;
        }
        let directory = scratch.file(if name == "program" { "mnt" } else { name });
        fs::create_dir(&directory).unwrap();
        let server = Target::start(&program("stuck_fs.c"), &[file, &directory, name]);
        Some(StuckFs { server: Some(server), directory, name: name.to_owned() })
    }

    /// The path of its file.
    pub(crate) fn program(&self) -> String {
        format!("{}/{}", self.directory, self.name)
    }

    /// From now on nothing is answered.
    pub(crate) fn stop(&mut self) {
        let server = self.server.as_mut().unwrap();
        server.go();
        assert_eq!(server.line(), "stuck\n");
    }
}

impl Drop for StuckFs {
    fn drop(&mut self) {
        // Whoever waits is let go when the program has ended.
        drop(self.server.take());
        let _ = Command::new("umount").args(["-l", &self.directory]).status();
    }
}

/// A program that computes from a file system that does not answer any more.
struct Stuck {
    target: Target,
    _files: StuckFs,
    scratch: Scratch,
}

impl Stuck {
    fn start() -> Option<Stuck> {
        let scratch = Scratch::new();
        let mut files = StuckFs::mount(&scratch, &program("shares.c"))?;
        let target = Target::spawn(Command::new(files.program()).arg("600"));
        target.wait_for_cpu(0.2);
        files.stop();
        Some(Stuck { target, _files: files, scratch })
    }

    /// Records with these arguments; the output and what flame said.
    #[track_caller]
    fn record(&self, arguments: &[&str]) -> (Folded, String) {
        let path = self.scratch.file("out.folded");
        let mut command = flame();
        command.args(["record", "-F", "199", "-o", &path]).args(arguments);
        let ended = Running::new(&mut command).end_within(PATIENCE).success();
        (Folded::parse(&fs::read_to_string(path).unwrap()), ended.stderr)
    }
}

#[test]
fn a_file_system_that_does_not_answer_is_left_behind() {
    if !live_as_root() {
        return;
    }
    let Some(stuck) = Stuck::start() else { return };
    let pid = stuck.target.pid_text();
    let (folded, said) = stuck.record(&["-d", "2s", "-p", &pid]);
    assert!(folded.with_any(|frame| frame.starts_with("[program+0x")) > 0, "{folded:?}");
    assert!(
        said.contains("/mnt/program (of user 0) was not waited for: its file system"),
        "{said}"
    );
}

#[test]
fn the_second_interrupt_ends_flame_while_a_file_system_does_not_answer() {
    if !live_as_root() {
        return;
    }
    let Some(stuck) = Stuck::start() else { return };
    let mut command = flame();
    let arguments = ["record", "-F", "199", "--format", "folded", "-o", "/dev/null", "-p"];
    let mut run = Running::new(command.args(arguments).arg(stuck.target.pid_text()));
    run.wait_for_events(1);
    stuck.target.wait_for_cpu(0.3);
    run.signal(Signal::SIGINT);
    std::thread::yield_now();
    run.signal(Signal::SIGINT);
    // Either the recording had ended in between, or the second signal has ended flame: it ends.
    let ended = run.end_within(PATIENCE);
    assert!([0, 1, 130].contains(&ended.code()), "{}", ended.stderr);
}

/// A program whose stack goes on in a file that is not answered for.
struct StuckStack {
    _files: StuckFs,
    target: Target,
    scratch: Scratch,
}

impl StuckStack {
    fn start() -> Option<StuckStack> {
        let scratch = Scratch::new();
        let hole = scratch.file("hole");
        fs::File::create(&hole).unwrap().set_len(4 << 20).unwrap();
        let mut files = StuckFs::mount(&scratch, &hole)?;
        let mut command = Command::new(program("hostile.c"));
        let mut target = Target::spawn(command.args(["file-stack", "600", &files.program()]));
        target.line();
        files.stop();
        target.go();
        target.wait_for_cpu(0.1);
        Some(StuckStack { _files: files, target, scratch })
    }
}

#[test]
fn a_stack_on_a_file_system_that_does_not_answer_is_left_behind() {
    if !live_as_root() {
        return;
    }
    let Some(stuck) = StuckStack::start() else { return };
    let other = Target::spawn(Command::new(program("shares.c")).arg("600"));
    let path = stuck.scratch.file("out.folded");
    let (pids, others) = (stuck.target.pid_text(), other.pid_text());
    let mut command = flame();
    command.args(["record", "-F", "199", "-d", "2s", "-o", &path, "-p", &pids, "-p", &others]);
    let ended = Running::new(&mut command).end_within(PATIENCE).success();
    let folded = Folded::parse(&fs::read_to_string(path).unwrap());
    assert!(folded.with(&["main", "work"]) > 5, "{folded:?}");
    assert!(folded.with_any(|frame| frame == "elsewhere") > 5, "{folded:?}\n{}", ended.stderr);
}

#[test]
fn the_second_interrupt_ends_flame_while_a_stack_does_not_answer() {
    if !live_as_root() {
        return;
    }
    let Some(stuck) = StuckStack::start() else { return };
    let mut command = flame();
    let arguments = ["record", "-F", "199", "--format", "folded", "-o", "/dev/null", "-p"];
    let mut run = Running::new(command.args(arguments).arg(stuck.target.pid_text()));
    run.wait_for_events(1);
    stuck.target.wait_for_cpu(0.5);
    run.signal(Signal::SIGINT);
    std::thread::yield_now();
    run.signal(Signal::SIGINT);
    let ended = run.end_within(PATIENCE);
    assert!([0, 1, 130].contains(&ended.code()), "{}", ended.stderr);
}

/// A second recording must not find less because the first one left a process behind.
#[test]
fn files_of_others_are_read_while_one_does_not_answer() {
    if !live_as_root() {
        return;
    }
    let Some(stuck) = Stuck::start() else { return };
    let other = Target::spawn(Command::new(program("shares.c")).arg("600"));
    let path = stuck.scratch.file("out.folded");
    let (pids, others) = (stuck.target.pid_text(), other.pid_text());
    let mut command = flame();
    command.args(["record", "-F", "199", "-o", &path, "-p", &pids, "-p", &others]);
    let mut run = Running::new(&mut command);
    run.wait_for_events(1);
    // What is used while flame waits for the file may be lost.
    other.wait_for_cpu(1.0);
    run.signal(Signal::SIGINT);
    run.end_within(PATIENCE).success();
    let folded = Folded::parse(&fs::read_to_string(path).unwrap());
    assert!(folded.with(&["main", "work"]) > 5, "{folded:?}");
}

/// What perf.data names is opened when it is read, by root as a rule.
#[test]
fn files_that_perf_data_names_are_not_waited_for() {
    if !live_as_root() || !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let Some(mut files) = StuckFs::mount(&scratch, &program("shares.c")) else { return };
    let recording = scratch.file("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-B", "-F", "499", "-e", "cpu-clock", "-g", "-o", &recording, "--"]);
    let ran = perf.args([&files.program(), "0.3"]).stderr(Stdio::null()).status().unwrap();
    assert!(ran.success());
    files.stop();
    let ended = Running::new(flame().args(["fold", &recording])).end_within(PATIENCE).success();
    assert!(Folded::parse(&ended.stdout).total() > 50, "{}", ended.stdout);
    let said = "/mnt/program was not waited for: its file system does not answer";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

/// A directory with the files of another machine has links that are right there, and lead elsewhere
/// here.
#[test]
fn a_sysroot_leads_nowhere_else() {
    if !live() || !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let (recording, path) = (scratch.file("perf.data"), scratch.file("shares"));
    fs::copy(program("shares.c"), &path).unwrap();
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-B", "-F", "499", "-e", "cpu-clock", "-o", &recording, "--"]);
    assert!(perf.args([&path, "0.3"]).stderr(Stdio::null()).status().unwrap().success());
    let root = scratch.file("root");
    let inside = format!("{root}{path}");
    fs::create_dir_all(Path::new(&inside).parent().unwrap()).unwrap();
    // On that machine the link leads to a file that this one has, too.
    std::os::unix::fs::symlink(program("shares.c"), &inside).unwrap();
    let fold = |root: &str| {
        let ended = finish(flame().args(["fold", "--sysroot", root, &recording])).success();
        Folded::parse(&ended.stdout)
    };
    let folded = fold(&root);
    assert_eq!(folded.with_any(|frame| frame == "alpha"), 0, "{folded:?}");
    let there = format!("{root}{}", program("shares.c"));
    fs::create_dir_all(Path::new(&there).parent().unwrap()).unwrap();
    fs::copy(&path, there).unwrap();
    let folded = fold(&root);
    assert!(folded.with_any(|frame| frame == "alpha") > 20, "{folded:?}");
}

/// Symbols of some kilobytes that promise 250 MiB, in twelve programs at a time.
#[test]
fn packed_symbols_of_many_programs_fill_no_memory() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let bomb = scratch.file("zeros");
    fs::File::create(&bomb).unwrap().set_len(250 << 20).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    };
    if !run("xz", &["-0", &bomb]) {
        return;
    }
    let packed = format!(".gnu_debugdata={bomb}.xz");
    let mut targets = Vec::new();
    for number in 0..12 {
        let path = scratch.file(&format!("packed-{number}"));
        // Each is a file of its own, with bytes of its own.
        assert!(run("objcopy", &["-S", "--add-section", &packed, &program("shares.c"), &path]));
        targets.push(Target::spawn(Command::new(path).arg("600")));
    }
    targets.iter().for_each(|target| target.wait_for_cpu(0.02));
    let mut command = flame();
    let path = scratch.file("out.folded");
    command.args(["record", "-F", "499", "-d", "2s", "-o", &path]);
    targets.iter().for_each(|target| {
        command.args(["-p", &target.pid_text()]);
    });
    let run = Running::new(&mut command);
    let mut most = 0;
    wait_until("flame to end", || {
        most = most.max(run.status_kib("RssAnon") + run.status_kib("RssShmem"));
        fs::exists(&path).unwrap()
    });
    let ended = run.end_within(PATIENCE).success();
    let folded = Folded::parse(&fs::read_to_string(path).unwrap());
    assert!(folded.roots().len() >= 6, "{folded:?}");
    assert!(ended.stderr.contains("compressed more than is plausible"), "{}", ended.stderr);
    assert!(most < 300 << 10, "{most} KiB");
}

/// A link with a checksum makes the file that it names be read as a whole, and a hole costs nobody
/// anything but whoever reads it.
#[test]
fn a_debug_file_of_terabytes_is_not_read_for_its_checksum() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (path, debug) = (scratch.file("linked"), scratch.file("linked.debug"));
    let run = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
    };
    let source = program("shares.c");
    run("objcopy", &["--only-keep-debug", "-R", ".note.gnu.build-id", &source, &debug]);
    let link = format!("--add-gnu-debuglink={debug}");
    run("objcopy", &["-S", "-R", ".note.gnu.build-id", &link, &source, &path]);
    let file = fs::OpenOptions::new().write(true).open(&debug).unwrap();
    // As far as the file system lets it grow.
    let grown = (36..=42).rev().find(|bits| file.set_len(1 << bits).is_ok());
    assert!(grown.is_some());
    let output = scratch.file("out.folded");
    let arguments = ["record", "-F", "499", "-o", &output, "--", &path, "0.3"];
    finish(flame().args(arguments)).success();
    let folded = Folded::parse(&fs::read_to_string(output).unwrap());
    assert!(folded.total() > 20, "{folded:?}");
}

/// Whoever says that it is a Java VM chooses what its `/tmp` is; flame makes nothing there that the
/// user of the VM could not have made.
#[test]
fn a_vm_leads_flame_to_no_directory_of_roots() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let (library, directory) = (scratch.file("libjvm.so"), scratch.file("of-root"));
    fs::copy("/proc/self/exe", &library).unwrap();
    fs::create_dir(&directory).unwrap();
    let mut command = Command::new(program("hostile.c"));
    let mut target = Target::spawn(command.args(["fake-vm", "600", &library, &directory]));
    if target.line() == "cannot\n" {
        return;
    }
    target.wait_for_cpu(0.1);
    let changed = || fs::metadata(&directory).unwrap().modified().unwrap();
    let before = changed();
    let output = scratch.file("out.folded");
    let pid = target.pid_text();
    let arguments = ["record", "--java", "-F", "499", "-d", "1s", "-o", &output, "-p", &pid];
    let ended = finish(flame().args(arguments)).success();
    assert!(ended.stderr.contains("did not name its methods"), "{}", ended.stderr);
    // Nothing was made there, not even for a moment.
    assert_eq!(changed(), before, "{}", ended.stderr);
    // And where it may, the file is gone in the end.
    std::os::unix::fs::chown(&directory, Some(65534), Some(65534)).unwrap();
    finish(flame().args(arguments)).success();
    assert!(changed() > before);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

/// Where the kernel is in memory must not be in a file that others may read.
#[test]
fn no_output_says_where_the_kernel_is() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let names = ["out.svg", "out.folded", "out.txt", "out.pb.gz"];
    let mut command = flame();
    command.args(["record", "-F", "999", "--threads"]);
    names.iter().for_each(|name| {
        command.args(["-o", &scratch.file(name)]);
    });
    finish(command.args(["--", &program("syscalls.c"), "0.3"])).success();
    for name in &names[..3] {
        let text = fs::read_to_string(scratch.file(name)).unwrap();
        assert!(text.contains("sys"), "no kernel frames in {name}:\n{text}");
        assert!(!text.contains("+0xfffff"), "{name}:\n{text}");
    }
    let file = fs::File::open(scratch.file("out.pb.gz")).unwrap();
    let mut raw = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut raw).unwrap();
    // A number of the kernel's half takes ten bytes in a protocol buffer, which end like this; those
    // of mappings that span everything are all ones.
    let is_high = |bytes: &[u8]| {
        let (low, high) = bytes.split_at(5);
        high == [0xff, 0xff, 0xff, 0xff, 0x01]
            && low.iter().all(|byte| *byte >= 0x80)
            && low != [0xff; 5]
    };
    assert_eq!(raw.windows(10).find(|bytes| is_high(bytes)), None);
}
