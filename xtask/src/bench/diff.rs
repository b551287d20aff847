//! `cargo xtask bench diff`: two folded files compared, beside those who do that now.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::render::{ROUNDS, Renderer, costs, medians};
use super::table::{Table, Unit};
use super::{build_flame, in_directory, stacks};

/// Distinct stacks of the earlier file; the later has nine of ten of them.
const STACKS: u64 = 200_000;
/// Rounds in which difffolded.pl takes part, which takes seconds each.
const SLOW_ROUNDS: usize = 3;

/// Runs the bar and prints one table.
pub(crate) fn run() -> Result<()> {
    in_directory(measure)
}

fn measure(directory: &Path) -> Result<()> {
    let (before, after) = (directory.join("before.folded"), directory.join("after.folded"));
    let mut text = Vec::new();
    stacks::write(STACKS, &mut text)?;
    fs::write(&before, &text)?;
    write_later(&text, &after)?;
    drop(text);
    let programs = find(&build_flame()?);
    let costs = costs(&programs, &[&before, &after], directory)?;
    let row = |of| medians(&costs, of);
    let mut table = Table::new(programs.iter().map(|program| program.name).collect());
    let bytes = fs::metadata(&before)?.len() + fs::metadata(&after)?.len();
    let what = format!("{STACKS} stacks, {:.0} MB of both", bytes as f64 / 1e6);
    table.row(&format!("{what}: time"), "SVG: 1/5 of inferno", Unit::Seconds, row(|c| c.wall));
    table.row("CPU time of that", "", Unit::Seconds, row(|c| c.cpu));
    table.row("peak memory", "", Unit::MiB, row(|c| c.peak_rss));
    println!("{table}");
    Ok(())
}

/// The program a week later: a tenth of the stacks is gone, a third of the others has another
/// weight.
fn write_later(text: &[u8], path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let end = line.iter().rposition(|byte| *byte == b' ').unwrap_or(line.len());
        let weight = String::from_utf8_lossy(&line[end..]).trim().parse::<u64>().unwrap_or(1);
        match number % 10 {
            0 => {}
            1..=3 => {
                out.write_all(&line[..end])?;
                writeln!(out, " {}", weight * (5 + number as u64 % 11) / 10 + 1)?;
            }
            _ => out.write_all(line)?,
        }
    }
    out.flush()?;
    ensure!(fs::metadata(path)?.len() > 0, "the later file is empty");
    Ok(())
}

fn find(flame: &Path) -> Vec<Renderer> {
    let flame = |format: &str| {
        let words = ["diff", "--format", format].map(PathBuf::from);
        [flame.to_owned()].into_iter().chain(words).collect()
    };
    let mut found = vec![
        Renderer { name: "flame, SVG", command: flame("svg"), rounds: ROUNDS },
        Renderer { name: "flame, table", command: flame("txt"), rounds: ROUNDS },
        Renderer { name: "flame, folded", command: flame("folded"), rounds: ROUNDS },
    ];
    let inferno = std::env::var_os("FLAME_BENCH_INFERNO_DIFF").map(PathBuf::from);
    let inferno = inferno.unwrap_or_else(|| PathBuf::from("inferno-diff-folded"));
    if Command::new(&inferno).arg("--version").output().is_ok() {
        found.push(Renderer { name: "inferno, folded", command: vec![inferno], rounds: ROUNDS });
    } else {
        println!("no inferno-diff-folded: cargo install inferno, or FLAME_BENCH_INFERNO_DIFF=PATH");
    }
    let script =
        std::env::var_os("FLAMEGRAPH_DIR").map(|dir| Path::new(&dir).join("difffolded.pl"));
    match script.filter(|script| script.is_file()) {
        Some(script) => found.push(Renderer {
            name: "difffolded.pl",
            command: vec![PathBuf::from("perl"), script],
            rounds: SLOW_ROUNDS,
        }),
        None => println!("no difffolded.pl: FLAMEGRAPH_DIR=DIRECTORY says where it is"),
    }
    found
}
