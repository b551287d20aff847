//! Whether memory grows with time: a steady load over a short and a long span.

use std::ffi::OsString;
use std::path::Path;
use std::thread;

use anyhow::{Result, anyhow};

use super::profiler::Profiler;
use super::table::{Table, Unit};
use super::{build_program, process};

const HZ: u32 = 999;

/// Records the same load over both spans; the profilers run side by side, since it is not their
/// speed that counts here.
pub(crate) fn measure(
    profilers: &[Profiler],
    directory: &Path,
    (short, long): (u64, u64),
    table: &mut Table,
) -> Result<()> {
    let load = build_program("shares", directory)?.into_os_string();
    let mut peaks = Vec::new();
    for seconds in [short, long] {
        eprintln!("== memory: {seconds} s of a steady load at {HZ} Hz");
        let target = [load.clone(), OsString::from(seconds.to_string())];
        let column = side_by_side(profilers, directory, &target)?;
        let cells = column.iter().map(|peak| Some(*peak)).collect();
        let measure = format!("peak memory, {seconds} s of CPU time");
        table.row(&measure, "", Unit::MiB, cells);
        peaks.push(column);
    }
    let growth = |at: usize| Some((peaks.get(1)?.get(at)? / peaks.first()?.get(at)? - 1.0) * 100.0);
    let cells = (0..profilers.len()).map(growth).collect();
    let measure = format!("growth of memory, {short} s to {long} s");
    table.row(&measure, "<= 10 %", Unit::Percent, cells);
    Ok(())
}

/// The peak memory of each profiler in MiB.
fn side_by_side(profilers: &[Profiler], directory: &Path, target: &[OsString]) -> Result<Vec<f64>> {
    let peak = |profiler: &Profiler| -> Result<f64> {
        let mut command = profiler.record(HZ, directory, target)?;
        let log = directory.join(format!("memory-{}.log", profiler.slug()));
        let usage = process::run(&mut command, log)?;
        Ok(usage.peak_rss as f64 / f64::from(1 << 20))
    };
    thread::scope(|scope| {
        let runs: Vec<_> =
            profilers.iter().map(|profiler| scope.spawn(|| peak(profiler))).collect();
        let results = runs.into_iter();
        results.map(|run| run.join().map_err(|_| anyhow!("a measuring thread died"))?).collect()
    })
}
