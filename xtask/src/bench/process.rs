//! A command that runs beside a watch of what it costs: CPU time, and peak memory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};

/// How often the memory of a running command is read; its peak is the kernel's own count, so only
/// what is reached after the last look is missed.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// Seconds between two looks at the CPU time, to the nanosecond, of a running command.
const LOOK_INTERVAL: f64 = 0.1;

/// The kernel counts CPU time in /proc in ticks of this length, on every Linux that cargo runs on.
const TICK: f64 = 0.01;

/// What one run of a command cost.
#[derive(Debug)]
pub(crate) struct Usage {
    /// CPU time of the command itself in seconds, to 10 ms, without that of its children.
    pub(crate) cpu_seconds: f64,
    /// CPU seconds of the command itself a second of the middle of its run: what it costs while it
    /// records, without its start and its end. `None` of runs that are too short to tell.
    pub(crate) steady_cpu: Option<f64>,
    /// The largest resident size of the command itself, in bytes.
    pub(crate) peak_rss: u64,
    /// When it ended.
    pub(crate) end: SystemTime,
    /// What it, or its child, wrote to standard output.
    pub(crate) stdout: String,
}

/// Runs a command to its end; its stderr is kept for the error.
pub(crate) fn run(command: &mut Command, log: PathBuf) -> Result<Usage> {
    run_reading(command, Stdio::null(), log)
}

/// The same for a command that reads its standard input.
pub(crate) fn run_reading(command: &mut Command, input: Stdio, log: PathBuf) -> Result<Usage> {
    let stderr = fs::File::create(&log).with_context(|| log.display().to_string())?;
    command.stdin(input).stdout(Stdio::piped()).stderr(stderr);
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut pipe = child.stdout.take().context("stdout is a pipe")?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text);
        text
    });
    let pid = child.id();
    let mut peak_rss = 0;
    let mut looks: Vec<(f64, f64)> = Vec::new();
    let mut readers = 0.0_f64;
    // Its times can still be read when it has ended, until somebody waits for it.
    let cpu_seconds = loop {
        let (state, seconds) = times(pid).context("the command's entry in /proc")?;
        if state == "Z" {
            break seconds + readers;
        }
        peak_rss = peak_rss.max(high_water(pid).unwrap_or(0));
        let now = start.elapsed().as_secs_f64();
        if looks.last().is_none_or(|(last, _)| now - last >= LOOK_INTERVAL)
            && let Some((own, of_readers)) = threads_cpu(pid)
        {
            looks.push((now, own + of_readers));
            readers = of_readers.max(readers);
        }
        thread::sleep(WATCH_INTERVAL);
    };
    let (end, wall_seconds) = (SystemTime::now(), start.elapsed().as_secs_f64());
    let steady_cpu = steady(&looks, wall_seconds);
    let status = child.wait()?;
    let stdout = reader.join().unwrap_or_default();
    check(command, status, &log)?;
    Ok(Usage { cpu_seconds, steady_cpu, peak_rss, end, stdout })
}

fn check(command: &Command, status: ExitStatus, log: &PathBuf) -> Result<()> {
    let said = fs::read_to_string(log).unwrap_or_default();
    ensure!(status.success(), "{command:?}: {status}\n{said}");
    Ok(())
}

/// The state of a process and the CPU time of all its threads in seconds.
fn times(pid: u32) -> Option<(String, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and brackets; the fields behind it start with the state.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(((*fields.first()?).to_owned(), ticks as f64 * TICK))
}

/// The CPU time in seconds that all threads of a process have now, and that of the processes in its
/// memory: flame's readers, which have its name.
fn threads_cpu(pid: u32) -> Option<(f64, f64)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let (mut own, mut readers) = (0.0, 0.0);
    for task in tasks.filter_map(|task| Some(task.ok()?.path())) {
        own += seconds_of(&task).unwrap_or(0.0);
        let children = fs::read_to_string(task.join("children")).unwrap_or_default();
        for child in children.split_ascii_whitespace().map(|pid| Path::new("/proc").join(pid)) {
            if fs::read_to_string(child.join("comm")).is_ok_and(|comm| comm == "flame\n") {
                readers += seconds_of(&child).unwrap_or(0.0);
            }
        }
    }
    Some((own, readers))
}

/// The CPU time of a task, by its directory in /proc.
fn seconds_of(task: &Path) -> Option<f64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// CPU seconds a second between a third and three quarters of a run of that many seconds.
fn steady(looks: &[(f64, f64)], wall_seconds: f64) -> Option<f64> {
    let (from, to) = (wall_seconds / 3.0, wall_seconds * 0.75);
    let first = looks.iter().find(|(time, _)| *time >= from)?;
    let last = looks.iter().rev().find(|(time, _)| *time <= to)?;
    let span = last.0 - first.0;
    (span >= 3.0 * LOOK_INTERVAL).then(|| (last.1 - first.1) / span)
}

/// The largest resident size that a process has had so far, in bytes.
pub(super) fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_cost_leaves_out_start_and_end() {
        let looks: Vec<(f64, f64)> = (0..100)
            .map(|at| (f64::from(at) / 10.0, 5.0 + f64::from(at) / 1000.0))
            .map(|(time, cpu)| if time < 3.0 { (time, 0.0) } else { (time, cpu) })
            .collect();
        let steady = steady(&looks, 10.0).unwrap();
        assert!((steady - 0.01).abs() < 1e-9, "{steady}");
    }

    #[test]
    fn short_runs_have_no_steady_part() {
        assert_eq!(steady(&[(0.0, 0.0), (0.1, 0.1)], 0.2), None);
    }
}
