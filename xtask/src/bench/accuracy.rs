//! How right a profile is: programs that compute what they do, recorded by each profiler.
//!
//! The programs are those of `tests/programs` that print the CPU time of their functions. Only what
//! a profiler says of these functions is compared; what else the program's processes do counts for
//! coverage.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::process::Usage;
use super::profiler::Profiler;
use super::table::{Table, Unit};
use super::{build_program, process};

mod alone;
mod seen;

use alone::Alone;
use seen::{Program, Seen};

/// What the command line asks for.
#[derive(Debug)]
pub(super) struct Options {
    /// CPU seconds of each program.
    seconds: u64,
    /// The one kind of cases to run; `None` = all.
    only: Option<String>,
}

impl Options {
    /// Reads the words behind `bench accuracy`.
    pub(super) fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { seconds: 5, only: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--seconds" => options.seconds = value.parse().context("--seconds")?,
                "--only" => options.only = Some((*value).to_owned()),
                other => bail!("no such option of bench accuracy: {other}"),
            }
        }
        let known =
            |only: &str| alone::KINDS.contains(&only) || CASES.iter().any(|case| case.kind == only);
        ensure!(options.seconds > 0, "seconds start at 1");
        ensure!(options.only.as_deref().is_none_or(known), "--only: no such cases");
        Ok(options)
    }

    fn wants_kind(&self, kind: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == kind)
    }
}

/// A program with its arguments and the frequency it is recorded at.
#[derive(Debug)]
struct Case {
    kind: &'static str,
    /// The head of its rows.
    name: &'static str,
    program: &'static str,
    /// What stands behind the seconds on the command line.
    arguments: &'static [&'static str],
    hz: u32,
    /// The functions from which on a stack is rooted, whatever the libraries call above them.
    bases: &'static [&'static str],
    /// The names that its threads have.
    threads: &'static [&'static str],
    bars: Bars,
    /// Whether stacks and costs are told, too; they are the same for cases that are alike.
    costs: bool,
}

/// What flame has to reach; empty where there is no bar.
#[derive(Debug)]
struct Bars {
    coverage: &'static str,
    rooted: &'static str,
    copied: &'static str,
}

const NO_BARS: Bars = Bars { coverage: "", rooted: "", copied: "" };

const fn rhythm(name: &'static str, arguments: &'static [&'static str], costs: bool) -> Case {
    Case {
        kind: "rhythm",
        name,
        program: "lockstep",
        arguments,
        hz: 99,
        bases: &["run"],
        threads: &["lockstep", "rhythm"],
        bars: NO_BARS,
        costs,
    }
}

const CASES: &[Case] = &[
    Case {
        kind: "short-lived",
        name: "tasks of 0.4 ms",
        program: "short_lived",
        arguments: &[],
        hz: 99,
        bases: &["main", "chain", "short_thread"],
        threads: &["short_lived"],
        bars: Bars { coverage: ">= 97 %", ..NO_BARS },
        costs: true,
    },
    rhythm("50/50 at 99 Hz", &["rhythm=99:50,50:clock"], true),
    rhythm("50/50 at 198 Hz", &["rhythm=198:50,50:clock"], false),
    rhythm("50/30/15/5 at 99 Hz", &["rhythm=99:50,30,15,5:clock"], false),
    rhythm("50/50 at 99 Hz of CPU time", &["rhythm=99:50,50"], false),
    rhythm("50/50 at 99 Hz, half the time asleep", &["rhythm=99:50,50:rest"], false),
    Case {
        kind: "stacks",
        name: "deep and wide, at 999 Hz",
        program: "wide_deep",
        arguments: &[],
        hz: 999,
        bases: &["main"],
        threads: &["wide_deep"],
        bars: Bars { rooted: ">= 99.9 %", copied: "<= 16 KiB", ..NO_BARS },
        costs: true,
    },
];

/// What one profiler made of one case.
#[derive(Debug)]
struct Outcome {
    seen: Seen,
    /// CPU seconds by function, as the program measured them.
    truth: BTreeMap<String, f64>,
    /// CPU seconds of all its processes.
    total: f64,
    hz: u32,
    bytes: u64,
    /// Stack copied a sample in KiB, where the profiler says it.
    copied_kib: Option<f64>,
    usage: Usage,
}

/// Records every case with every profiler.
pub(super) fn measure(
    profilers: &[Profiler],
    directory: &Path,
    options: &Options,
    table: &mut Table,
) -> Result<()> {
    for case in CASES.iter().filter(|case| options.wants_kind(case.kind)) {
        eprintln!("== {}: {} {} {:?}", case.name, case.program, options.seconds, case.arguments);
        let path = build_program(case.program, directory)?;
        let program = Program::read(&path, case.bases, case.threads)?;
        let mut target = vec![path.into_os_string(), options.seconds.to_string().into()];
        target.extend(case.arguments.iter().map(OsString::from));
        let mut outcomes = Vec::new();
        for profiler in profilers {
            let outcome = record(profiler, case, &program, &target, directory);
            let what = || format!("{} on {}", profiler.name(), case.name);
            outcomes.push(outcome.with_context(what)?);
        }
        rows(case, &outcomes, table);
    }
    let flame = profilers.iter().find_map(|profiler| match profiler {
        Profiler::Flame(path) => Some(path),
        _ => None,
    });
    let flame = flame.context("flame is one of the profilers")?;
    Alone { flame, directory, options, columns: profilers.len(), table }.measure()
}

fn rows(case: &Case, outcomes: &[Outcome], table: &mut Table) {
    let mut row = |measure: &str, bar: &str, unit: Unit, cell: fn(&Outcome) -> Option<f64>| {
        let cells = outcomes.iter().map(cell).collect();
        table.row(&format!("{}: {measure}", case.name), bar, unit, cells);
    };
    row("largest error of a share, in points", "", Unit::Number, |o| Some(o.error()?.points));
    row("the same in standard errors", "<= 3", Unit::Number, |o| Some(o.error()?.deviations));
    row("coverage", case.bars.coverage, Unit::Share, |o| Some(o.coverage()));
    if !case.costs {
        return;
    }
    row("rooted", case.bars.rooted, Unit::Complete, |o| o.seen.rooted_percent());
    if !case.bars.copied.is_empty() {
        let copied = |o: &Outcome| Some(o.copied_kib? / 1024.0);
        row("stack copied per sample", case.bars.copied, Unit::MiB, copied);
    }
    row("data on disk", "", Unit::MiB, |o| Some(o.bytes as f64 / f64::from(1 << 20)));
    row("own CPU in all", "", Unit::Seconds, |o| Some(o.usage.cpu_seconds));
}

fn record(
    profiler: &Profiler,
    case: &Case,
    program: &Program,
    target: &[OsString],
    directory: &Path,
) -> Result<Outcome> {
    let mut command = profiler.record(case.hz, directory, target)?;
    let log = directory.join(format!("{}.log", profiler.slug()));
    let usage = process::run(&mut command, log.clone())?;
    let copied_kib = copied_kib(&fs::read_to_string(log).unwrap_or_default());
    let (truth, total) = truth(&usage.stdout)?;
    let output = profiler.output(directory);
    let mut files = vec![output.clone()];
    if matches!(profiler, Profiler::Flame(_)) {
        files.push(directory.join("flame.svg"));
    }
    let mut bytes = 0;
    for file in files {
        bytes += fs::metadata(&file).with_context(|| file.display().to_string())?.len();
    }
    let functions: Vec<&str> = truth.keys().map(String::as_str).collect();
    let seen = seen::read(profiler, &output, program, &functions)?;
    // What perf recorded of the deepest stacks is hundreds of megabytes.
    fs::remove_file(&output).with_context(|| output.display().to_string())?;
    Ok(Outcome { seen, truth, total, hz: case.hz, bytes, copied_kib, usage })
}

/// The number in flame's line `copied    12.3 of 16 KiB a stack on average`.
fn copied_kib(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.trim_start().strip_prefix("copied "))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The lines `[THREAD] FUNCTION CPU_SECONDS` and `total CPU_SECONDS` among what was printed.
fn truth(stdout: &str) -> Result<(BTreeMap<String, f64>, f64)> {
    let mut truth = BTreeMap::new();
    for line in stdout.lines() {
        let mut words = line.split(' ').rev();
        if let (Some(seconds), Some(name)) = (words.next(), words.next())
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            truth.insert(name.to_owned(), seconds);
        }
    }
    let total = truth.remove("total").with_context(|| format!("no total in {stdout:?}"))?;
    ensure!(!truth.is_empty() && total > 0.0, "no functions in {stdout:?}");
    Ok((truth, total))
}

/// How far the worst share is from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ShareError {
    /// In percent points.
    points: f64,
    /// In standard errors that such a share has among so many independent samples.
    deviations: f64,
}

impl Outcome {
    /// The worst share of a function; `None` where there are no samples of any.
    fn error(&self) -> Option<ShareError> {
        share_error(&self.seen.by_function, &self.truth)
    }

    /// The CPU time that the samples stand for, in percent of what was used.
    fn coverage(&self) -> f64 {
        self.seen.samples as f64 / f64::from(self.hz) / self.total * 100.0
    }
}

/// Shares are those among the functions of known CPU time.
fn share_error(
    samples: &BTreeMap<String, u64>,
    truth: &BTreeMap<String, f64>,
) -> Option<ShareError> {
    let all = samples.values().sum::<u64>() as f64;
    let used: f64 = truth.values().sum();
    let error = |(function, seconds): (&String, &f64)| {
        let expect = seconds / used;
        let share = samples.get(function).copied().unwrap_or(0) as f64 / all;
        let standard_error = (expect * (1.0 - expect) / all).sqrt();
        let error = (share - expect).abs();
        ShareError { points: error * 100.0, deviations: error / standard_error }
    };
    let errors = truth.iter().filter(|_| all > 0.0).map(error);
    errors.max_by(|a, b| a.deviations.total_cmp(&b.deviations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_is_read_with_and_without_threads() {
        let (truth, total) = truth("half first 1.5\nhalf second 0.5\nready\ntotal 2.25\n").unwrap();
        assert_eq!(total, 2.25);
        assert_eq!(truth, BTreeMap::from([("first".to_owned(), 1.5), ("second".to_owned(), 0.5)]));
        assert!(super::truth("total 1.0\n").is_err());
        assert!(super::truth("alpha 1.0\n").is_err());
    }

    #[test]
    fn error_is_that_of_the_share_that_is_worst_by_its_standard_error() {
        let truth = BTreeMap::from([("a".to_owned(), 3.0), ("b".to_owned(), 1.0)]);
        let samples = BTreeMap::from([("a".to_owned(), 100), ("b".to_owned(), 0)]);
        let error = share_error(&samples, &truth).unwrap();
        assert!((error.points - 25.0).abs() < 1e-9, "{error:?}");
        // sqrt(0.75 * 0.25 / 100) = 0.0433
        assert!((error.deviations - 5.7735).abs() < 1e-4, "{error:?}");
        assert_eq!(share_error(&BTreeMap::new(), &truth), None);
    }

    #[test]
    fn copied_stack_is_read_from_the_summary() {
        let said = "4 samples\n  copied    30.1 of 64 KiB a stack on average, 26.5 % read on\n";
        assert_eq!(copied_kib(said), Some(30.1));
        assert_eq!(copied_kib("  complete  100 % of stacks\n"), None);
    }

    #[test]
    fn unknown_options_and_cases_are_refused() {
        assert!(Options::parse(&["--only", "nothing"]).is_err());
        assert!(Options::parse(&["--seconds"]).is_err());
        assert!(Options::parse(&["--seconds", "0"]).is_err());
        assert!(Options::parse(&["--fast", "1"]).is_err());
        let options = Options::parse(&["--seconds", "3", "--only", "rhythm"]).unwrap();
        assert_eq!((options.seconds, options.only.as_deref()), (3, Some("rhythm")));
    }
}
