//! Processes that tests attach to, and waiting for what they and flame do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for anything before it fails, on a machine that has the time.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until `test` holds; fails with `what` when it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, test: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, test);
}

/// The same for what takes longer. A machine that has other work to do is given more time: programs
/// here run until they have used so much CPU time.
#[track_caller]
pub(crate) fn wait_within(patience: Duration, what: &str, mut test: impl FnMut() -> bool) {
    let start = Instant::now();
    while !test() {
        let waited = start.elapsed();
        let is_over = waited >= patience && waited >= patience.mul_f64(crowding());
        assert!(!is_over, "waited {waited:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many tasks there are for each CPU, by the load of the last minute; 1 at least.
fn crowding() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    (load / cpus).max(1.0)
}

/// A running program that has said `ready`; killed on drop.
#[derive(Debug)]
pub(crate) struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Target {
    /// Starts the program and waits for its first line, `ready`.
    #[track_caller]
    pub(crate) fn start(path: &str, arguments: &[&str]) -> Target {
        let mut target = Target::spawn(Command::new(path).args(arguments));
        let line = target.line();
        assert!(line.starts_with("ready"), "{path} said {line:?}");
        target
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Starts a command without waiting for a word of it.
    pub(crate) fn spawn(command: &mut Command) -> Target {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("program starts");
        let stdin = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Target { child, stdin, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The same as text, for command lines.
    pub(crate) fn pid_text(&self) -> String {
        self.pid().to_string()
    }

    /// The ids of its threads of that name.
    pub(crate) fn threads_named(&self, name: &str) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let tasks = tasks.map(|task| task.unwrap().path());
        let named = tasks.filter(|task| {
            fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        });
        named.map(|task| task.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// Lets a program go on that waits for a line.
    pub(crate) fn go(&mut self) {
        let stdin = self.stdin.as_mut().expect("stdin is a pipe");
        stdin.write_all(b"go\n").unwrap();
        stdin.flush().unwrap();
    }

    /// CPU time that all its threads have used, in seconds, to 10 ms.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.pid()).expect("the target runs")
    }

    /// Waits until it has used `seconds` more of CPU time.
    #[track_caller]
    pub(crate) fn wait_for_cpu(&self, seconds: f64) {
        let start = self.cpu_seconds();
        wait_until("CPU time of the target", || self.cpu_seconds() - start >= seconds);
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) {
        wait_until("the end of the target", || self.child.try_wait().unwrap().is_some());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time that all threads of a process have used, in seconds, to 10 ms; `None` of no process.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in the second field may hold blanks; the fields behind it start with the third.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}
