//! Runs the flame binary and collects what it said.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::target::{PATIENCE, cpu_seconds, wait_within};
use super::{Folded, Scratch, wait_until};

/// The options of an output that is thrown away.
pub(crate) const NOWHERE: [&str; 4] = ["--format", "folded", "-o", "/dev/null"];

/// A finished run of flame.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The exit code.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        let message = || panic!("flame ended by a signal ({}):\n{}", self.status, self.stderr);
        self.status.code().unwrap_or_else(message)
    }

    /// Asserts that flame succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> Ended {
        assert!(self.status.success(), "flame: {}\n{}", self.status, self.stderr);
        self
    }

    /// Asserts an exit code and that the message has `error:`, then each of `parts`, in order.
    #[track_caller]
    pub(crate) fn error(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code(), code, "stderr:\n{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        let mut rest = self.stderr.as_str();
        for part in ["error: "].iter().chain(parts) {
            let at = rest.find(part);
            let at = at.unwrap_or_else(|| panic!("{part:?} is not in order in:\n{}", self.stderr));
            rest = &rest[at + part.len()..];
        }
    }
}

/// The flame binary, with no environment that could change what it does.
pub(crate) fn flame() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flame"));
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "NO_COLOR", "RUST_LOG", "DEBUGINFOD_URLS"] {
        command.env_remove(name);
    }
    // Not a directory: what one test run fetched must not help the next.
    command.env("XDG_CACHE_HOME", "/dev/null");
    // Extensions of the machine change what PHP does: a debugger runs no code as PHP itself would.
    command.env("PHP_INI_SCAN_DIR", "");
    command
}

/// Runs flame to its end.
#[track_caller]
pub(crate) fn run(arguments: &[&str]) -> Ended {
    finish(flame().args(arguments))
}

/// Records with these arguments and throws the result away: for what flame says.
#[track_caller]
pub(crate) fn record_nowhere(arguments: &[&str]) -> Ended {
    finish(flame().arg("record").args(NOWHERE).args(arguments))
}

/// Runs a command (flame, or something around it) to its end.
#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Ended {
    Running::new(command).end()
}

/// Starts flame.
pub(crate) fn start(arguments: &[&str]) -> Running {
    Running::new(flame().args(arguments))
}

/// Records with these arguments into a folded file, and reads it.
#[track_caller]
pub(crate) fn record(arguments: &[&str]) -> Folded {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let ended = finish(flame().args(["record", "-o", &path]).args(arguments)).success();
    let text = fs::read_to_string(&path);
    Folded::parse(&text.unwrap_or_else(|error| panic!("{path}: {error}\n{}", ended.stderr)))
}

/// A flame that is running; killed on drop.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub(crate) fn new(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("flame starts");
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Running { child, stdout, stderr }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it holds at least that many perf events: it records, or is about to.
    #[track_caller]
    pub(crate) fn wait_for_events(&mut self, count: usize) {
        let directory = format!("/proc/{}/fd", self.child.id());
        wait_until("flame to open its perf events", || {
            let ended = self.child.try_wait().unwrap();
            assert_eq!(ended, None, "flame ended before it opened its perf events");
            let files = fs::read_dir(&directory).unwrap();
            let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
            links.filter(|link| link.as_os_str() == "anon_inode:[perf_event]").count() >= count
        });
    }

    /// Waits until it records: then a flame of root's is more urgent than others. Of another user's only
    /// the first event can be waited for.
    #[track_caller]
    pub(crate) fn wait_for_recording(&mut self) {
        if !nix::unistd::geteuid().is_root() {
            return self.wait_for_events(1);
        }
        let path = format!("/proc/{}/stat", self.child.id());
        wait_until("flame to record", || {
            let ended = self.child.try_wait().unwrap();
            assert_eq!(ended, None, "flame ended before it recorded");
            let stat = fs::read_to_string(&path).unwrap_or_default();
            // The fields behind the name start with the third; the nice value is the nineteenth.
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            fields.split_ascii_whitespace().nth(16).is_some_and(|nice| nice.starts_with('-'))
        });
    }

    /// Waits until the command that it launched has used that much CPU time, in seconds.
    #[track_caller]
    pub(crate) fn wait_for_child_cpu(&self, seconds: f64) {
        wait_until("the command to use CPU time", || {
            self.first_child().and_then(cpu_seconds).is_some_and(|used| used >= seconds)
        });
    }

    /// How many files it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// A line of its /proc/PID/status in KiB, for example `VmHWM`; 0 when it has ended.
    pub(crate) fn status_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    }

    /// Whether the command that it launched is running.
    pub(crate) fn has_child(&self) -> bool {
        self.first_child().is_some()
    }

    fn first_child(&self) -> Option<u32> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        // Readers that have ended are left until flame ends.
        let runs = |child: &u32| {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
        };
        children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).find(runs)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        signal::kill(pid, signal).unwrap();
    }

    /// Signals its whole process group, as a terminal does; it must lead one.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        signal::killpg(group, signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    /// The same for recordings that take their time on a busy machine.
    #[track_caller]
    pub(crate) fn end_within(mut self, patience: Duration) -> Ended {
        let mut status = None;
        wait_within(patience, "flame to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let text = |thread: &mut Option<JoinHandle<String>>| {
            thread.take().expect("taken once").join().expect("the reader does not panic")
        };
        Ended {
            status: status.expect("it has ended"),
            stdout: text(&mut self.stdout),
            stderr: text(&mut self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The share of whole stacks that a summary says, in percent.
#[track_caller]
pub(crate) fn complete_share(stderr: &str) -> f64 {
    let line = stderr.lines().find_map(|line| line.trim().strip_prefix("complete"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{stderr}"))
}

/// How many stacks are not whole by what a summary says: the counts behind the share of those that are.
#[track_caller]
pub(crate) fn incomplete_stacks(stderr: &str) -> u64 {
    let line = stderr.lines().find_map(|line| line.trim().strip_prefix("complete"));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    let reasons = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let reasons = reasons.map_or("", |(reasons, _)| reasons).split(", ");
    reasons.filter_map(|reason| reason.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// How many stacks a reader should have read on and could not, by what a summary says: on a busy machine
/// it comes too late, and what is not looked at soon has no room any more.
pub(crate) fn unread_stacks(stderr: &str) -> u64 {
    let Some(line) = stderr.lines().find_map(|line| line.trim().strip_prefix("copied")) else {
        return 0;
    };
    // `14.8 of 16 KiB a stack on average, 48.6 % read on from the process; stacks without ...: 52 would have ...`
    const BUSY: [&str; 2] = ["would have been read too late", "read but not kept"];
    let parts = line.split(": ").flat_map(|part| part.split(", "));
    let parts = parts.filter(|part| BUSY.iter().any(|reason| part.contains(reason)));
    parts.filter_map(|part| part.split(' ').next()?.replace(',', "").parse::<u64>().ok()).sum()
}
