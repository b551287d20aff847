//! A compilation at 999 Hz: rooted stacks, and the wait from its end to the picture.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::process::{self, Usage};
use super::profiler::{Profiler, flamegraph_dir};
use super::rooted::{self, Rooted};
use super::source;
use super::table::{Table, Unit};

const HZ: u32 = 999;

/// What one profiler made of the compilation.
#[derive(Debug, Default)]
struct Outcome {
    rooted: Rooted,
    seconds_to_result: Option<f64>,
    seconds_to_picture: Option<f64>,
    megabytes: Option<f64>,
}

/// Records the compilation with each profiler.
pub(crate) fn measure(profilers: &[Profiler], directory: &Path, table: &mut Table) -> Result<()> {
    let source = source::find(directory)?;
    eprintln!("== compile: gcc -O2 -c {} at {HZ} Hz", source.display());
    let mut outcomes = Vec::new();
    for profiler in profilers {
        let outcome = record(profiler, &source, directory);
        outcomes.push(outcome.with_context(|| format!("{} on a compilation", profiler.name()))?);
    }
    let column = |cell: fn(&Outcome) -> Option<f64>| outcomes.iter().map(cell).collect();
    table.row("cc1: samples", "", Unit::Count, column(|o| Some(o.rooted.samples as f64)));
    table.row("cc1: rooted stacks", ">= 99.5 %", Unit::Complete, column(|o| o.rooted.percent()));
    let wait = "cc1: target's end to profiler's exit";
    table.row(wait, "", Unit::Seconds, column(|o| o.seconds_to_result));
    let wait = "cc1: target's end to SVG on disk";
    table.row(wait, "< 0.5 s", Unit::Seconds, column(|o| o.seconds_to_picture));
    table.row("cc1: data on disk", "", Unit::MiB, column(|o| o.megabytes));
    Ok(())
}

fn record(profiler: &Profiler, source: &Path, directory: &Path) -> Result<Outcome> {
    let end = directory.join("end");
    // The time is noted by the target itself, as the last thing that it does.
    let script = "gcc -O2 -w -c \"$1\" -o /dev/null && date +%s.%N > \"$2\"";
    let words = ["sh", "-c", script, "sh"].map(OsString::from);
    let target = [&words[..], &[source.into(), end.clone().into()]].concat();
    let mut command = profiler.record(HZ, directory, &target)?;
    let usage = process::run(&mut command, directory.join(format!("{}.log", profiler.slug())))?;
    let seconds_to_result = Some(since_end(&end, &usage)?);
    let seconds_to_picture = match profiler {
        Profiler::Flame(_) => seconds_to_result,
        Profiler::Perf(perf, _) => {
            draw(perf, &profiler.output(directory))?.zip(seconds_to_result).map(|(a, b)| a + b)
        }
        // It has no picture but the one in a browser.
        Profiler::Samply(_) => None,
    };
    let output = profiler.output(directory);
    let bytes = fs::metadata(&output).with_context(|| output.display().to_string())?.len();
    Ok(Outcome {
        rooted: rooted::count(profiler, directory)?,
        seconds_to_result,
        seconds_to_picture,
        megabytes: Some(bytes as f64 / f64::from(1 << 20)),
    })
}

/// Seconds from what the target noted to the end of the profiler.
fn since_end(noted: &Path, usage: &Usage) -> Result<f64> {
    let text = fs::read_to_string(noted).context("the target's note of its end")?;
    let noted = Duration::from_secs_f64(text.trim().parse()?);
    Ok(usage.end.duration_since(UNIX_EPOCH + noted).map_or(0.0, |span| span.as_secs_f64()))
}

/// Seconds that `perf script | stackcollapse-perf.pl | flamegraph.pl` takes, where they are.
fn draw(perf: &Path, data: &Path) -> Result<Option<f64>> {
    let Some(scripts) = flamegraph_dir() else {
        return Ok(None);
    };
    let svg = fs::File::create(data.with_extension("svg"))?;
    let start = Instant::now();
    let mut script = Command::new(perf)
        .args(["script", "-i"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let from_script = script.stdout.take().context("stdout is a pipe")?;
    let mut collapse = Command::new("perl")
        .arg(scripts.join("stackcollapse-perf.pl"))
        .stdin(from_script)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let from_collapse = collapse.stdout.take().context("stdout is a pipe")?;
    let mut draw = Command::new("perl")
        .arg(scripts.join("flamegraph.pl"))
        .stdin(from_collapse)
        .stdout(svg)
        .stderr(Stdio::null())
        .spawn()?;
    for (name, child) in [("perf script", &mut script), ("stackcollapse-perf.pl", &mut collapse)] {
        ensure!(child.wait()?.success(), "{name} failed");
    }
    ensure!(draw.wait()?.success(), "flamegraph.pl failed");
    Ok(Some(start.elapsed().as_secs_f64()))
}
