//! A CPU that goes offline and comes back while it is being recorded.
//!
//! A binary of its own: cargo runs one after the other, and no other test may run beside this one.
//! For the same reason it has its own few lines to start a program and flame.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The switch of the second CPU; the first has none on most machines.
const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";

const HZ: f64 = 999.0;

/// Whether the test can run; says so on the real stderr where it cannot.
fn possible() -> bool {
    let root = nix::unistd::geteuid().is_root();
    let online = fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "1");
    let writable = root && fs::OpenOptions::new().write(true).open(SWITCH).is_ok();
    if !(writable && online) {
        let _ = writeln!(std::io::stderr(), "SKIP live: no CPU can be taken offline here");
    }
    writable && online
}

/// CPU 1 while it is offline; it is online again on drop.
struct Offline;

impl Offline {
    fn take() -> Offline {
        let offline = Offline;
        fs::write(SWITCH, "0").expect("root may switch CPUs");
        offline
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        // A failure shows as a CPU that is missing, which is checked.
        let _ = fs::write(SWITCH, "1");
    }
}

/// A directory that is removed on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn build(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/lockstep.c");
    let program = directory.join("lockstep");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&program).arg(source);
    assert!(command.status().expect("gcc is there").success());
    program
}

/// CPU seconds of the process that flame has launched, to 10 ms.
fn child_cpu(flame: &Child) -> Option<f64> {
    let pid = flame.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let child = children.split_ascii_whitespace().next()?;
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn wait_for_child_cpu(flame: &Child, seconds: f64) {
    let begin = Instant::now();
    while child_cpu(flame).is_none_or(|used| used < seconds) {
        assert!(begin.elapsed() < Duration::from_secs(300), "the program does not run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number behind a word of some text.
fn number_behind(text: &str, word: &str) -> f64 {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(word));
    let number = rest.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {word:?} in:\n{text}"))
}

/// What flame said and wrote of two busy threads of that many CPU seconds each, one CPU of which was away in between,
/// from when they had used one until they had used `until`.
fn record_without_a_cpu(seconds: &str, until: f64) -> (Output, String) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let name = format!("flame-hotplug-{}-{seconds}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    fs::create_dir(&scratch.0).expect("the directory is new");
    let output = scratch.0.join("out.folded");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flame"));
    command.args(["record", "-F", "999", "-o"]).arg(&output).arg("--").arg(build(&scratch.0));
    command.args([seconds, "one=77:50,50", "two=77:50,50"]);
    let flame = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let flame = flame.expect("flame starts");
    wait_for_child_cpu(&flame, 1.0);
    let offline = Offline::take();
    wait_for_child_cpu(&flame, until);
    drop(offline);
    let ended = flame.wait_with_output().expect("flame can be waited for");
    assert!(fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "1"), "CPU 1 is gone");
    (ended, fs::read_to_string(&output).unwrap_or_default())
}

/// The recording goes on where it can, and what is missing shows in the coverage.
#[test]
fn cpu_that_goes_offline_neither_ends_a_recording_nor_hides_what_is_missing() {
    if !possible() {
        return;
    }
    // One CPU is seen all the time; what runs on the other right before it goes may count a little more.
    check("2", 2.0, 0.45);
}

/// flame looks once a second: what one of two CPUs does in one of five seconds may be missing.
#[test]
fn cpu_that_is_back_at_once_is_sampled_again() {
    if !possible() {
        return;
    }
    check("5", 1.0, 0.82);
}

/// What the samples stand for is at least that part of the CPU time, and what flame says.
#[track_caller]
fn check(seconds: &str, until: f64, least: f64) {
    let (ended, folded) = record_without_a_cpu(seconds, until);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success() && !said.contains("panicked"), "{}\n{said}", ended.status);
    let total = number_behind(&String::from_utf8_lossy(&ended.stdout), "total ");
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    let coverage = weights.sum::<u64>() as f64 / HZ / total;
    assert!((least..=1.12).contains(&coverage), "coverage {coverage:.3}\n{said}");
    let claimed = number_behind(&said, "coverage ") / 100.0;
    // What the kernel accounts to the program has what moving its threads took, which the program does not know.
    assert!((claimed - coverage).abs() <= 0.05, "{claimed:.3} said, {coverage:.3} seen\n{said}");
}
