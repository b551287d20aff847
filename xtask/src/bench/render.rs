//! `cargo xtask bench render`: folded text to SVG, the whole process, beside those who draw it now.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};

use super::table::{Table, Unit};
use super::{build_flame, median, stacks};

/// Distinct stacks of the inputs.
const SIZES: [u64; 2] = [20_000, 200_000];
/// Runs of each program, one after the other in turn; the median counts.
pub(super) const ROUNDS: usize = 21;
/// Rounds in which flamegraph.pl takes part, which takes half a minute each.
const SLOW_ROUNDS: usize = 3;

/// A program that turns folded files into something on stdout.
pub(super) struct Renderer {
    pub(super) name: &'static str,
    pub(super) command: Vec<PathBuf>,
    pub(super) rounds: usize,
}

/// What one run cost.
pub(super) struct Cost {
    pub(super) wall: f64,
    pub(super) cpu: f64,
    pub(super) peak_rss: f64,
}

/// Runs the bars and prints one table.
pub(crate) fn run() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("flame-bench-{}", std::process::id()));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let result = measure(&directory);
    let _ = fs::remove_dir_all(&directory);
    result
}

fn measure(directory: &Path) -> Result<()> {
    let renderers = find(&build_flame()?);
    let mut table = Table::new(renderers.iter().map(|renderer| renderer.name).collect());
    for count in SIZES {
        let input = directory.join(format!("{count}.folded"));
        let mut out = BufWriter::new(File::create(&input)?);
        stacks::write(count, &mut out)?;
        drop(out);
        let bytes = fs::metadata(&input)?.len() as f64;
        let costs = costs(&renderers, &[&input], directory)?;
        let row = |of| medians(&costs, of);
        let what = format!("{count} stacks, {:.0} MB", bytes / 1e6);
        table.row(
            &format!("{what}: time"),
            "1/5 of inferno, 1/40 of Perl",
            Unit::Seconds,
            row(|c| c.wall),
        );
        table.row(&format!("{what}: CPU"), "", Unit::Seconds, row(|c| c.cpu));
        let limit = format!("{:.1} MiB", 1.5 * bytes / f64::from(1 << 20));
        table.row(&format!("{what}: memory"), &limit, Unit::MiB, row(|c| c.peak_rss));
    }
    println!("{table}");
    Ok(())
}

/// What the rounds of all programs cost, taken in turn.
pub(super) fn costs(
    renderers: &[Renderer],
    inputs: &[&Path],
    directory: &Path,
) -> Result<Vec<Vec<Cost>>> {
    let mut costs: Vec<Vec<Cost>> = renderers.iter().map(|_| Vec::new()).collect();
    for round in 0..renderers.iter().map(|renderer| renderer.rounds).max().unwrap_or(0) {
        for (renderer, costs) in renderers.iter().zip(&mut costs) {
            if round < renderer.rounds {
                costs.push(cost(renderer, inputs, directory)?);
            }
        }
    }
    Ok(costs)
}

/// The median of one cost of each program.
pub(super) fn medians(costs: &[Vec<Cost>], of: fn(&Cost) -> f64) -> Vec<Option<f64>> {
    costs.iter().map(|costs| median(&costs.iter().map(of).collect::<Vec<_>>())).collect()
}

fn find(flame: &Path) -> Vec<Renderer> {
    let words = |words: &[&Path]| words.iter().map(|word| word.to_path_buf()).collect();
    let mut found = vec![Renderer {
        name: "flame",
        command: words(&[flame, Path::new("render")]),
        rounds: ROUNDS,
    }];
    let inferno = std::env::var_os("FLAME_BENCH_INFERNO").map(PathBuf::from);
    let inferno = inferno.unwrap_or_else(|| PathBuf::from("inferno-flamegraph"));
    if Command::new(&inferno).arg("--version").output().is_ok() {
        found.push(Renderer { name: "inferno", command: vec![inferno], rounds: ROUNDS });
    } else {
        println!("no inferno-flamegraph: cargo install inferno, or FLAME_BENCH_INFERNO=PATH");
    }
    let script =
        std::env::var_os("FLAMEGRAPH_DIR").map(|dir| Path::new(&dir).join("flamegraph.pl"));
    match script.filter(|script| script.is_file()) {
        Some(script) => found.push(Renderer {
            name: "flamegraph.pl",
            command: vec![PathBuf::from("perl"), script],
            rounds: SLOW_ROUNDS,
        }),
        None => println!("no flamegraph.pl: FLAMEGRAPH_DIR=DIRECTORY says where it is"),
    }
    found
}

/// Runs a program to its end, and once more to see its memory.
fn cost(renderer: &Renderer, inputs: &[&Path], directory: &Path) -> Result<Cost> {
    let output = directory.join("out.svg");
    let cpu = || -> Result<f64> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
    };
    let mut command = Command::new(&renderer.command[0]);
    command.args(&renderer.command[1..]).args(inputs);
    // Emptying the file of the program before is not a cost of this one.
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
    let before = cpu()?;
    let start = Instant::now();
    let status = command.status().with_context(|| renderer.name)?;
    let wall = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{} failed: {status}", renderer.name);
    Ok(Cost { wall, cpu: cpu()? - before, peak_rss: peak(renderer, inputs)? })
}

/// The largest resident size in MiB; looked at all the time, since runs are short.
fn peak(renderer: &Renderer, inputs: &[&Path]) -> Result<f64> {
    let mut command = Command::new(&renderer.command[0]);
    command.args(&renderer.command[1..]).args(inputs);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut most: u64 = 0;
    while child.try_wait()?.is_none() {
        most = most.max(super::process::high_water(child.id()).unwrap_or(0));
    }
    Ok(most as f64 / f64::from(1 << 20))
}
