//! `cargo xtask bench modes`: what each `--mode` costs a program that does nothing but what the mode looks at, beside
//! what perf would be asked for the same.
//!
//! That is the worst case: a real program does other things between. Runs without a profiler come before each with
//! one, and the median of such pairs counts.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::table::{Table, Unit};
use super::{build_flame, build_program, in_directory, median};

const ROUNDS: usize = 5;

/// Seconds of a run.
const SECONDS: &str = "2";

/// How perf copies stacks, as flame does.
const STACKS: [&str; 2] = ["--call-graph", "dwarf,16384"];

/// A mode, what the program does, and what perf is asked for instead; nothing where it has no such thing.
const MODES: [(&str, &str, &[&str]); 13] = [
    ("cpu", "compute", &["record", "-F", "99"]),
    ("off-cpu", "pipe", &["record", "-e", "sched:sched_switch"]),
    ("wall", "pipe", &[]),
    ("wakeup", "pipe", &["record", "-e", "sched:sched_waking"]),
    ("offwake", "pipe", &["record", "-e", "sched:sched_switch,sched:sched_waking"]),
    ("faults", "fault", &["record", "-e", "page-faults", "-c", "1"]),
    ("io", "read", &["record", "-e", "syscalls:sys_exit_read"]),
    ("syscalls", "read", &["trace", "-s"]),
    ("syscalls", "read", &["record", "-e", "raw_syscalls:sys_enter"]),
    ("mmap", "map", &["record", "-e", "syscalls:sys_enter_mmap"]),
    ("locks", "lock", &["record", "-e", "syscalls:sys_enter_futex,syscalls:sys_exit_futex"]),
    ("alloc", "malloc", &[]),
    ("brk", "malloc", &["record", "-e", "syscalls:sys_exit_brk"]),
];

/// Measures all modes and prints a table.
pub(crate) fn run() -> Result<()> {
    in_directory(|directory| {
        let (flame, program) = (build_flame()?, build_program("throughput", directory)?);
        let mut table = Table::new(vec!["flame", "perf"]);
        for (mode, load, perf) in MODES {
            let of_flame = |command: &mut Command| {
                command
                    .arg("record")
                    .args(["-q", "--mode", mode, "-o"])
                    .arg(directory.join("out.folded"));
            };
            let of_perf = |command: &mut Command| {
                command.args(perf);
                if perf.first() == Some(&"record") {
                    command.args(STACKS).args(["-q", "-o"]).arg(directory.join("perf.data"));
                } else {
                    command.arg("-o").arg(directory.join("perf.trace"));
                }
            };
            let mut losses = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                let alone = operations(&mut Command::new(&program), load)?;
                let mut recorded = vec![(&flame, &of_flame as &dyn Fn(&mut Command))];
                let perf_program = Path::new("perf").to_path_buf();
                if !perf.is_empty() {
                    recorded.push((&perf_program, &of_perf));
                }
                for ((profiler, options), losses) in recorded.into_iter().zip(&mut losses) {
                    let mut command = Command::new(profiler);
                    options(&mut command);
                    command.arg("--").arg(&program);
                    if let Ok(operations) = operations(&mut command, load) {
                        losses.push((1.0 - operations / alone) * 100.0);
                    }
                }
            }
            let asked = if perf.is_empty() { "none" } else { &perf.join(" ") };
            let measure = format!("--mode {mode}, {load}; perf {asked}");
            table.row(&measure, "", Unit::Percent, losses.iter().map(|of| median(of)).collect());
        }
        println!("{table}");
        Ok(())
    })
}

/// How often in a second the program did what it does.
fn operations(command: &mut Command, load: &str) -> Result<f64> {
    let output = command.args([load, SECONDS]).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    numbers.next().with_context(|| format!("no number of operations by {command:?}: {text:?}"))
}
