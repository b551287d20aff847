//! What recording costs the profiler itself in CPU time.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::process::Usage;
use super::profiler::Profiler;
use super::table::{Table, Unit};
use super::{build_program, median, process};

const FREQUENCIES: [(u32, &str); 2] = [(99, ""), (999, "< 2 %")];

/// Rounds of work that the first, short run does to find out how long one takes.
const TRIAL_ROUNDS: u64 = 20_000;

/// What the runs of one profiler at one frequency cost.
#[derive(Debug, Default)]
struct Runs {
    /// The profiler's own CPU time while it records, in percent of one core.
    steady: Vec<f64>,
    /// All of the profiler's own CPU time, in seconds.
    own: Vec<f64>,
}

/// Runs the same work under each profiler in turn, `rounds` times, so that a machine that gets
/// slower or faster meanwhile does so for all.
pub(crate) fn measure(
    profilers: &[Profiler],
    directory: &Path,
    seconds: u64,
    rounds: usize,
    table: &mut Table,
) -> Result<()> {
    let work = build_program("work", directory)?;
    let nanos = run_work(Command::new(&work).arg(TRIAL_ROUNDS.to_string()), directory)?.0;
    let work_rounds = (TRIAL_ROUNDS as f64 * seconds as f64 * 1e9 / nanos) as u64;
    let target = [work.into_os_string(), OsString::from(work_rounds.to_string())];
    for (hz, bar) in FREQUENCIES {
        eprintln!("== overhead: {rounds} rounds of {seconds} s at {hz} Hz");
        let mut runs: Vec<Runs> = profilers.iter().map(|_| Runs::default()).collect();
        for _ in 0..rounds {
            for (profiler, runs) in profilers.iter().zip(&mut runs) {
                let mut command = profiler.record(hz, directory, &target)?;
                let usage = run_work(&mut command, directory)?.1;
                runs.steady.extend(usage.steady_cpu.map(|cores| cores * 100.0));
                runs.own.push(usage.cpu_seconds);
            }
        }
        let column = |values: fn(&Runs) -> &[f64]| runs.iter().map(|r| median(values(r))).collect();
        let measure = format!("own CPU while recording at {hz} Hz, of one core");
        table.row(&measure, bar, Unit::Percent, column(|runs| &runs.steady));
        let measure = format!("own CPU in all, {seconds} s at {hz} Hz");
        table.row(&measure, "", Unit::Seconds, column(|runs| &runs.own));
    }
    Ok(())
}

/// The CPU time of the target in nanoseconds, and what ran it cost.
fn run_work(command: &mut Command, directory: &Path) -> Result<(f64, Usage)> {
    let usage = process::run(command, directory.join("overhead.log"))?;
    // Profilers may print besides what the target prints.
    let mut numbers = usage.stdout.lines().filter_map(|line| line.trim().parse::<f64>().ok());
    let nanos = numbers.next().with_context(|| format!("no CPU time in {:?}", usage.stdout))?;
    Ok((nanos, usage))
}
