//! Names for addresses of a large program, by flame and by the tools that people use for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::process::run_reading;
use super::table::{Table, Unit};
use super::{cargo, median, own_target};

/// How many addresses are looked up.
const ADDRESSES: u64 = 10_000;

const MIB: f64 = 1024.0 * 1024.0;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    /// Runs of each tool; the median counts.
    rounds: usize,
    /// The program whose addresses are looked up; `None` = the one in `xtask/subject`.
    program: Option<PathBuf>,
}

impl Options {
    /// Reads `[--rounds N] [--program FILE]`.
    pub(crate) fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { rounds: 5, program: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--rounds" => options.rounds = value()?.parse().context("--rounds")?,
                "--program" => options.program = Some(PathBuf::from(value()?)),
                other => bail!("no such option of bench symbols: {other}"),
            }
        }
        ensure!(options.rounds > 0, "rounds start at 1");
        Ok(options)
    }
}

/// A program that reads addresses and prints names.
struct Tool {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
}

/// What the median of some runs cost.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
    peak_mib: f64,
}

/// Runs all tools and prints one table.
pub(crate) fn measure(options: &Options, directory: &Path) -> Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build_subject()?,
    };
    let questions = directory.join("addresses");
    fs::write(&questions, addresses(&program)?)?;
    let tools = tools(&program)?;
    let mut table = Table::new(tools.iter().map(|tool| tool.name).collect());
    let costs: Vec<Option<Cost>> =
        tools.iter().map(|tool| cost(tool, &questions, directory, options.rounds).ok()).collect();
    ensure!(costs[0].is_some(), "the example `names` cannot name {}", program.display());
    let size = fs::metadata(&program)?.len() as f64 / MIB;
    let what = format!("{ADDRESSES} addresses of a {size:.0} MiB program");
    let row = |cost: fn(Cost) -> f64| costs.iter().map(|cell| cell.map(cost)).collect();
    table.row(&format!("{what}: time"), "< 2 s", Unit::Seconds, row(|cost| cost.seconds));
    table.row("CPU time of that", "", Unit::Seconds, row(|cost| cost.cpu_seconds));
    table.row("peak memory", "< 300 MiB", Unit::MiB, row(|cost| cost.peak_mib));
    println!("{table}");
    Ok(())
}

/// flame first, then those of the others that are installed.
fn tools(program: &Path) -> Result<Vec<Tool>> {
    let mut command = cargo();
    command.args(["build", "--release", "--package", "flame-symbolize", "--examples"]);
    ensure!(command.status()?.success(), "the examples of flame-symbolize could not be built");
    let examples = own_target()?.join("release/examples");
    let program = program.to_string_lossy().into_owned();
    let tool = |name, program: PathBuf, flags: &[&str], image: &str| {
        let arguments = flags.iter().copied().chain([image]).map(str::to_owned).collect();
        Tool { name, program, arguments }
    };
    let mut tools = vec![
        tool("flame", examples.join("names"), &[], &program),
        tool("addr2line crate", examples.join("plain_addr2line"), &[], &program),
    ];
    for (name, command) in [("binutils", "addr2line"), ("llvm-addr2line", "llvm-addr2line")] {
        let found = Command::new(command).arg("--version").output();
        if found.is_ok_and(|output| output.status.success()) {
            tools.push(tool(name, PathBuf::from(command), &["-afiCe"], &program));
        } else {
            println!("{name} is not installed");
        }
    }
    Ok(tools)
}

fn cost(tool: &Tool, questions: &Path, directory: &Path, rounds: usize) -> Result<Cost> {
    let (mut seconds, mut cpu, mut peak) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut command = Command::new(&tool.program);
        command.args(&tool.arguments);
        let input = Stdio::from(File::open(questions)?);
        let start = Instant::now();
        let usage = run_reading(&mut command, input, directory.join("log"))?;
        seconds.push(start.elapsed().as_secs_f64());
        cpu.push(usage.cpu_seconds);
        peak.push(usage.peak_rss as f64 / MIB);
        let answered = usage.stdout.lines().filter(|line| line.starts_with("0x")).count();
        ensure!(answered > 9_900, "{} answered {answered} questions only", tool.name);
    }
    let middle = |values: &[f64]| median(values).context("there is at least one round");
    Ok(Cost { seconds: middle(&seconds)?, cpu_seconds: middle(&cpu)?, peak_mib: middle(&peak)? })
}

fn build_subject() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("subject/Cargo.toml");
    let target = own_target()?.join("bench-subject");
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(&target).env_remove("CARGO_TARGET_DIR");
    ensure!(command.status()?.success(), "the program of xtask/subject could not be built");
    Ok(target.join("release/subject"))
}

/// Random addresses of the program's code, sorted, the same each time.
fn addresses(program: &Path) -> Result<String> {
    let output = Command::new("readelf").arg("-SW").arg(program).output();
    let output = output.context("readelf is needed: sudo apt-get install binutils")?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let (start, len) = text_section(&listing).context("the program has no .text")?;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        start + random % len
    };
    let mut addresses: Vec<u64> = (0..ADDRESSES).map(|_| next()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses.iter().map(|address| format!("{address:x}\n")).collect())
}

/// Address and length of `.text` in what `readelf -SW` prints.
fn text_section(listing: &str) -> Option<(u64, u64)> {
    let line = listing.lines().find(|line| line.contains("] .text "))?;
    let mut words = line.split_once("] .text ")?.1.split_ascii_whitespace().skip(1);
    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
    let (start, _offset, len) = (number()?, number()?, number()?);
    Some((start, len)).filter(|_| len > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_in_a_listing() {
        let listing = "  [15] .plt.got  PROGBITS 0000000000001030 001030 000008 08  AX  0   0  8\n  \
             [16] .text     PROGBITS 0000000000001040 001040 0f2a31 00  AX  0   0 16\n";
        assert_eq!(text_section(listing), Some((0x1040, 0xf_2a31)));
        assert_eq!(text_section("There are no sections in this file.\n"), None);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(Options::parse(&["--fast"]).is_err());
        assert!(Options::parse(&["--rounds", "0"]).is_err());
        assert_eq!(Options::parse(&["--rounds", "3"]).unwrap().rounds, 3);
    }
}
