//! Who wakes threads, and for how long they waited for that.

use std::fs;
use std::process::{Child, Command};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Folded, Scratch, Target, finish, flame, live_as_root, program, run};

/// For how long it is recorded, of each of two threads.
const SECONDS: f64 = 2.0;

/// A process that waits for another one's bytes, beside a thread that sleeps.
struct Pair {
    taker: Target,
    giver: Child,
    _scratch: Scratch,
}

impl Pair {
    fn start() -> Pair {
        let (program, scratch) = (program("wakes.c"), Scratch::new());
        let fifo = scratch.file("fifo");
        mkfifo(fifo.as_str(), Mode::S_IRWXU).unwrap();
        let giver = Command::new(&program).args(["give", &fifo, "60"]).spawn().unwrap();
        // The first CPU never is offline; of others that were, Linux 6.18 shows perf nothing any more that
        // interrupts do while they are idle, so that a sleeper there has no waker.
        let taker = Target::start("taskset", &["-c", "0", &program, "take", &fifo]);
        Pair { taker, giver, _scratch: scratch }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop(self.giver.kill());
        drop(self.giver.wait());
    }
}

fn record(mode: &str, target: &[&str]) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--mode", mode, "-o", &path]).args(target);
    let ended = finish(&mut command).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

/// Whether nearly all that a thread waited was ended by that waker. Beside others it waits for its CPU, too, of
/// which the recording of wakers alone says nothing.
#[track_caller]
fn assert_woken(folded: &Folded, thread: &str, by: &[&str], what: &str) {
    let woken = folded.with_in_order(&[&[thread], by].concat());
    let preempted = folded.with_in_order(&[thread, "[preempted]"]);
    let waited = folded.with_in_order(&[thread]) - preempted;
    assert!(woken * 100 >= waited * 95, "{woken} of {waited} ns: {what}");
    let seconds = waited as f64 / 1e9;
    assert!((0.7 * SECONDS..1.05 * SECONDS).contains(&seconds), "{seconds} s: {what}");
}

/// The giver is another process than the one that is recorded; what wakes a sleeper is the timer, whatever
/// ran when that came.
#[test]
fn threads_are_woken_by_who_writes_and_sleepers_by_a_timer() {
    if !live_as_root() {
        return;
    }
    let pair = Pair::start();
    let target = ["-d", "2s", "-p", &pair.taker.pid_text()];
    let (alone, said) = record("wakeup", &target);
    let what = format!("{alone:?}\n{said}");
    assert_woken(&alone, "taker", &["woken by giver", "main", "give_work"], &what);
    assert_woken(&alone, "napper", &["woken by an interrupt"], &what);
    // What is not shown, waiting for a CPU, is said.
    let off_cpu = said.lines().find(|line| line.contains("off CPU")).unwrap();
    let seconds = |part: &str| {
        let before = part.split_once(" s ").map_or(part, |(before, _)| before);
        before.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let mut parts = off_cpu.split(", ");
    let all = seconds(parts.next().unwrap());
    let after = parts.find(|part| part.contains("after the wakeup")).map_or(0.0, seconds);
    assert!((all - after - alone.total() as f64 / 1e9).abs() < 0.002, "{what}");
    // What the interrupt came upon had nothing to do with it.
    assert_eq!(alone.with_in_order(&["woken by an interrupt", "main"]), 0, "{what}");

    let (above, said) = record("offwake", &target);
    let what = format!("{above:?}\n{said}");
    let chain = ["main", "take_work", "--", "woken by giver", "main", "give_work"];
    assert_woken(&above, "taker", &chain, &what);
    assert_woken(&above, "napper", &["nap", "--", "woken by an interrupt"], &what);
    assert_eq!(above.with_in_order(&["take_work", "woken by an interrupt"]), 0, "{what}");
}

/// Threads of a program that is launched are not known when the events are opened.
#[test]
fn threads_that_are_started_later_are_followed() {
    if !live_as_root() {
        return;
    }
    let (folded, said) = record("offwake", &["--", &program("waits.c")]);
    let known = folded.with_in_order(&["in_lock", "--", "woken by waits"]) as f64;
    let all = folded.with_in_order(&["in_lock", "--"]) as f64;
    assert!(known > 0.9 * all && all > 0.0, "{known} of {all}: {folded:?}\n{said}");
}

/// Who waits for a disk may not be interrupted, and it is not another thread that wakes it. Beside others' new
/// programs that wake threads all the time, wakers may not be sampled; but none may be wrong.
#[test]
fn wakers_are_told_apart_by_the_state_of_who_waits() {
    if !live_as_root() {
        return;
    }
    let program = program("waits.c");
    let of = |mode, states| record(mode, &["--state", states, "--", &program]);
    let (asleep, said) = of("offwake", "S");
    let what = format!("{asleep:?}\n{said}");
    for (function, by) in [("in_naps", "woken by an interrupt"), ("in_lock", "woken by waits")] {
        let all = asleep.with_in_order(&[function, "--"]);
        let unknown = asleep.with_in_order(&[function, "--", "[waker not sampled]"]);
        assert!(all > 290_000_000, "{all} in {function}: {what}");
        assert_eq!(asleep.with_in_order(&[function, "--", by]), all - unknown, "{what}");
    }
    assert_eq!(asleep.with(&["in_disk"]), 0, "{what}");
    let (in_disk, said) = of("offwake", "D");
    let what = format!("{in_disk:?}\n{said}");
    assert!(in_disk.with(&["in_disk"]) > 0, "{what}");
    for other in ["in_naps", "in_lock", "in_pipe", "in_socket"] {
        assert_eq!(in_disk.with_in_order(&[other, "--"]), 0, "{what}");
    }
    let (alone, said) = of("wakeup", "S");
    let what = format!("{alone:?}\n{said}");
    let unknown = alone.with_any(|frame| frame.ends_with("not sampled]"));
    let by_main = alone.with_in_order(&["waits", "woken by waits", "main"]);
    assert!(by_main + unknown > 800_000_000, "{what}");
    let naps = alone.with_in_order(&["waits", "woken by an interrupt"]);
    assert!(naps + unknown > 450_000_000, "{what}");
    let asleep = alone.total();
    let (alone, said) = of("wakeup", "D");
    let what = format!("{alone:?}\n{said}");
    assert_eq!(alone.with_in_order(&["waits", "woken by waits"]), 0, "{what}");
    assert!((1..asleep / 2).contains(&alone.total()), "{what}");
}

#[test]
fn wakers_have_no_options_of_other_modes() {
    let refused =
        |options: &[&str]| run(&[&["record", "--mode"], options, &["--", "true"]].concat());
    refused(&["wakeup", "--state", "R"]).error(2, &["no waits in state R", "why:", "try:"]);
    refused(&["wall", "--state", "D"]).error(1, &["--state is for", "why:", "try:"]);
    refused(&["faults", "--state", "D"]).error(1, &["--state is for", "why:"]);
    for mode in ["wakeup", "offwake"] {
        run(&["record", "--mode", mode, "-k", "--", "true"]).error(1, &["has no -k and -u"]);
        run(&["record", "--mode", mode, "-C", "0", "--", "true"]).error(1, &["has no -C"]);
    }
}
