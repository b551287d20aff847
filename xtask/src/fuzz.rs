//! `cargo xtask fuzz`: every parser under libFuzzer for some seconds.
//!
//! Coverage comes from LLVM by flags that stable Rust takes, so no nightly toolchain is needed. The
//! build has a directory of its own, `target/fuzz`, since it instruments all dependencies; inputs
//! that reached new code stay in `target/fuzz/corpus` for the next run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// What instruments a build the way libFuzzer reads it.
const RUSTFLAGS: &str = "-Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The targets, and how many bytes their inputs have at most.
const TARGETS: &[(&str, u32)] = &[
    ("records", 4096),
    ("maps", 4096),
    ("perf_data", 4096),
    ("perf_map", 4096),
    ("jitdump", 4096),
    ("hotspot", 4096),
    ("interpreters", 8192),
    ("folded", 4096),
    ("formats", 8192),
    ("kallsyms", 4096),
    ("elf", 40960),
    ("debug_files", 40960),
    ("pclntab", 4096),
    ("demangle", 4096),
    ("unwind", 24576),
    ("pprof", 4096),
    ("uboot", 4096),
];

/// What is built with its own checks. Dependencies are built as they ship: some of them let numbers
/// wrap and find out afterwards.
const CHECKED: &[&str] = &[
    "flame-events",
    "flame-formats",
    "flame-hotspot",
    "flame-interpreters",
    "flame-pclntab",
    "flame-perf-data",
    "flame-profile",
    "flame-symbolize",
    "flame-uboot",
    "flame-unwind",
    "flame-fuzz",
];

/// How long a target runs unless told otherwise.
const SECONDS: u32 = 5;

/// Where things are.
struct Places {
    programs: PathBuf,
    seeds: PathBuf,
    corpus: PathBuf,
    findings: PathBuf,
}

/// Runs the targets that the words of the command line ask for: `[--seconds N] [TARGET]`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (seconds, words) = match words {
        ["--seconds", number, rest @ ..] => {
            let seconds = number.parse().with_context(|| format!("{number} is not a number"))?;
            ensure!(seconds > 0, "seconds start at 1");
            (seconds, rest)
        }
        other => (SECONDS, other),
    };
    let wanted: Vec<_> = match words {
        [] => TARGETS.iter().collect(),
        [name] => TARGETS.iter().filter(|(target, _)| target == name).collect(),
        _ => bail!("one target, or none for all"),
    };
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    ensure!(!wanted.is_empty(), "no such target; there are {}", names.join(", "));
    // A short run takes less time than to optimize what it runs.
    let places = build(if seconds < SECONDS { "1" } else { "3" })?;
    // What one target finds does not keep the others from finding more.
    let mut failed = Vec::new();
    for (name, max_len) in wanted {
        if let Err(error) = fuzz(&places, name, *max_len, seconds) {
            eprintln!("fuzz {name}: {error:#}");
            failed.push(*name);
        }
    }
    ensure!(failed.is_empty(), "inputs were found that fail: {}", failed.join(", "));
    Ok(())
}

/// Builds the targets, optimized so far, and writes the inputs to start from.
fn build(level: &str) -> Result<Places> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in a workspace")?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let target = top.join("target/fuzz");
    let host = host()?;
    let mut build = Command::new(&cargo);
    // With a target named, build scripts and procedural macros are left without the flags.
    build.args(["build", "--quiet", "--release", "--bins", "--package", "flame-fuzz"]);
    // What makes one program small takes minutes for each of many.
    for setting in ["lto=false", &format!("opt-level={level}")] {
        build.args(["--config", &format!("profile.release.{setting}")]);
    }
    build.args(["--features", "fuzzing", "--target", &host, "--target-dir"]).arg(&target);
    build.env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS").current_dir(top);
    for package in CHECKED {
        for check in ["debug-assertions", "overflow-checks"] {
            build.args(["--config", &format!("profile.release.package.{package}.{check}=true")]);
        }
    }
    ensure!(build.status().context("cannot run cargo")?.success(), "cannot build the targets");

    let places = Places {
        programs: target.join(host).join("release"),
        seeds: target.join("seeds"),
        corpus: target.join("corpus"),
        findings: target.join("findings"),
    };
    let mut seeds = Command::new(&cargo);
    seeds.args(["run", "--quiet", "--package", "flame-fuzz", "--example", "seeds", "--"]);
    seeds.arg(&places.seeds).current_dir(top);
    ensure!(seeds.status().context("cannot run cargo")?.success(), "cannot write the seeds");
    Ok(places)
}

/// The triple that rustc builds for by itself.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8(output.stdout).context("rustc -vV prints text")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Runs one target and prints a line of what it did.
fn fuzz(places: &Places, name: &str, max_len: u32, seconds: u32) -> Result<()> {
    let program = places.programs.join(format!("fuzz-{name}"));
    let corpus = places.corpus.join(name);
    fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
    fs::create_dir_all(&places.findings).with_context(|| places.findings.display().to_string())?;
    let start = Instant::now();
    let mut command = Command::new(&program);
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={max_len}"));
    command.args(["-rss_limit_mb=1024", "-timeout=10", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/{name}-", places.findings.display()));
    command.arg(&corpus).arg(places.seeds.join(name));
    let output = command.output().with_context(|| program.display().to_string())?;
    if !output.status.success() {
        return Err(finding(&program, &output));
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let runs = number_behind(&log, "stat::number_of_executed_units: ");
    let coverage = number_behind(&log, " cov: ");
    let elapsed = start.elapsed().as_secs_f64();
    println!("fuzz {name:9} {runs:>9} inputs, {coverage:>6} places reached, {elapsed:.0} s");
    Ok(())
}

/// What libFuzzer wrote, and how to see it again.
fn finding(program: &Path, output: &Output) -> anyhow::Error {
    let log = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = log.lines().rev().take(40).collect();
    for line in tail.iter().rev() {
        eprintln!("{line}");
    }
    match log.split_once("Test unit written to ").and_then(|(_, rest)| rest.lines().next()) {
        Some(file) => {
            anyhow::anyhow!("an input fails: {file}; to repeat it: {} {file}", program.display())
        }
        None => anyhow::anyhow!("{} ended with {}", program.display(), output.status),
    }
}

/// The word behind the last `key` of a log; empty without one.
fn number_behind<'a>(log: &'a str, key: &str) -> &'a str {
    let rest = log.rsplit_once(key).map_or("", |(_, rest)| rest);
    rest.split_whitespace().next().unwrap_or("")
}
