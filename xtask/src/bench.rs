//! `cargo xtask bench`: flame's bars, measured beside the profilers that people use now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

mod accuracy;
mod compile;
pub(crate) mod diff;
pub(crate) mod fold;
pub(crate) mod matrix;
mod memory;
pub(crate) mod modes;
mod overhead;
mod process;
mod profiler;
mod random;
pub(crate) mod render;
mod rooted;
pub(crate) mod scripts;
mod slowdown;
mod source;
pub(crate) mod stacks;
mod symbols;
mod table;
mod target;
mod view;

use profiler::{PerfWay, Profiler};
use table::Table;

pub(crate) use view::view;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// CPU seconds of one overhead run.
    seconds: u64,
    /// Overhead runs of each kind; the median counts.
    rounds: usize,
    /// The two spans of the memory runs, in seconds.
    memory_seconds: (u64, u64),
    /// The one part to run; `None` = all.
    only: Option<String>,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { seconds: 10, rounds: 7, memory_seconds: (60, 300), only: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || -> Result<u64> {
                let text = words.next().with_context(|| format!("{word} needs a number"))?;
                text.parse().with_context(|| format!("{word}: {text} is not a number"))
            };
            match *word {
                "--seconds" => options.seconds = number()?,
                "--rounds" => options.rounds = usize::try_from(number()?)?,
                "--quick" => {
                    (options.seconds, options.rounds) = (3, 3);
                    options.memory_seconds = (10, 50);
                }
                "--only" => options.only = words.next().map(|name| (*name).to_owned()),
                other => bail!("no such option of bench record: {other}"),
            }
        }
        ensure!(options.seconds > 0 && options.rounds > 0, "seconds and rounds start at 1");
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

/// Runs the bars and prints one table.
pub(crate) fn record(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    in_directory(|directory| run(&options, directory))
}

/// Runs the programs of known truth and prints one table.
pub(crate) fn accuracy(words: &[&str]) -> Result<()> {
    let options = accuracy::Options::parse(words)?;
    in_directory(|directory| {
        let ways = [PerfWay::FramePointers, PerfWay::Machine, PerfWay::DwarfLargest];
        let profilers = profiler::find(&build_flame()?, &ways);
        let mut table = Table::new(profilers.iter().map(Profiler::name).collect());
        accuracy::measure(&profilers, directory, &options, &mut table)?;
        println!("{table}");
        profiler::missing(&profilers).iter().for_each(|missing| println!("{missing}"));
        Ok(())
    })
}

/// Looks up names with all tools and prints one table.
pub(crate) fn symbols(words: &[&str]) -> Result<()> {
    let options = symbols::Options::parse(words)?;
    in_directory(|directory| symbols::measure(&options, directory))
}

/// Gives a directory to a bench and removes it afterwards.
fn in_directory(bench: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("flame-bench-{}", std::process::id()));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let result = bench(&directory);
    // A bench that fails leaves its files, so that they can be looked at.
    if result.is_ok() {
        let _ = fs::remove_dir_all(&directory);
    } else {
        eprintln!("files are in {}", directory.display());
    }
    result
}

fn run(options: &Options, directory: &Path) -> Result<()> {
    let profilers = profiler::find(&build_flame()?, &[PerfWay::FramePointers, PerfWay::Dwarf]);
    let mut table = Table::new(profilers.iter().map(Profiler::name).collect());
    if options.wants("compile") {
        compile::measure(&profilers, directory, &mut table)?;
    }
    if options.wants("overhead") {
        overhead::measure(&profilers, directory, options.seconds, options.rounds, &mut table)?;
    }
    if options.wants("slowdown") {
        slowdown::measure(&profilers, directory, options.rounds, &mut table)?;
    }
    if options.wants("memory") {
        memory::measure(&profilers, directory, options.memory_seconds, &mut table)?;
    }
    println!("{table}");
    for missing in profiler::missing(&profilers).into_iter().chain(profiler::missing_scripts()) {
        println!("{missing}");
    }
    Ok(())
}

/// Builds flame as users have it, and says where it is; `FLAME_BENCH_FLAME` names another one.
pub(crate) fn build_flame() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("FLAME_BENCH_FLAME").map(PathBuf::from) {
        ensure!(path.is_file(), "FLAME_BENCH_FLAME={}: no such file", path.display());
        return Ok(path);
    }
    let mut command = cargo();
    command.args(["build", "--release", "--package", "flame"]);
    ensure!(command.status()?.success(), "flame could not be built");
    Ok(own_target()?.join("release/flame"))
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// The target directory: this program is `debug/xtask` in it.
fn own_target() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent);
    Ok(target.context("xtask is not in a target directory")?.to_owned())
}

/// Builds a program of `tests/programs` without frame pointers.
fn build_program(name: &str, directory: &Path) -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let output = directory.join(name);
    let mut command = Command::new("gcc");
    command.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&output);
    let status = command.arg(sources.join(format!("{name}.c"))).status();
    let status = status.context("gcc is needed: sudo apt-get install gcc libc6-dev")?;
    ensure!(status.success(), "{name}.c could not be built");
    Ok(output)
}

/// The value in the middle; `None` of nothing.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(*upper);
    }
    let lower = sorted.get(sorted.len() / 2 - 1)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_is_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["--seconds"]).is_err());
        assert!(Options::parse(&["--rounds", "0"]).is_err());
        assert_eq!(Options::parse(&["--seconds", "3"]).unwrap().seconds, 3);
    }
}
