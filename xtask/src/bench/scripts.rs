//! `cargo xtask bench scripts`: programs in Python, Ruby and PHP that know who calls whom, recorded by flame and by the
//! profilers made for these languages.
//!
//! One process of a program runs on, and profilers attach to it in turn; in between is a span without any. So all of them
//! see the same program under the same load, and what each costs it is held against the span right before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::slowdown::Chunks;
use super::table::{Table, Unit};
use super::{median, process};

mod chains;
mod peers;

use chains::{Seen, Truth};
use peers::Peer;

/// What a profiler gets to attach before the span that counts, and after it to end by itself.
const BEFORE: Duration = Duration::from_millis(2000);
const AFTER: Duration = Duration::from_millis(1000);

/// How often one looks at whether the program stands still.
const LOOK: Duration = Duration::from_millis(1);

const FREQUENCIES: [u32; 2] = [99, 999];

/// A program, and what runs it.
struct Case {
    language: &'static str,
    interpreter: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    part: &'static str,
}

const CASES: [Case; 4] = [
    Case {
        language: "python",
        interpreter: "/usr/bin/python3",
        options: &[],
        script: "script.py",
        part: "callbacks",
    },
    Case {
        language: "python",
        interpreter: "/usr/bin/python3",
        options: &[],
        script: "script.py",
        part: "deep",
    },
    Case {
        language: "ruby",
        interpreter: "/usr/bin/ruby",
        options: &["--disable-gems"],
        script: "script.rb",
        part: "callbacks",
    },
    Case {
        language: "php",
        interpreter: "/usr/bin/php",
        options: &[],
        script: "script.php",
        part: "callbacks",
    },
];

/// What the command line asks for.
struct Options {
    /// The span that counts of each recording.
    span: Duration,
    /// Recordings of each kind.
    rounds: usize,
    /// The one language to record; `None` = all.
    only: Option<String>,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { span: Duration::from_secs(4), rounds: 5, only: None };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("{} needs a value", pair.concat()) };
            match *name {
                "--seconds" => {
                    options.span =
                        Duration::from_secs(value.parse().with_context(|| (*name).to_owned())?)
                }
                "--rounds" => options.rounds = value.parse().with_context(|| (*name).to_owned())?,
                "--only" => options.only = Some((*value).to_owned()),
                other => bail!("no such option of bench scripts: {other}"),
            }
        }
        let known = |only: &str| CASES.iter().any(|case| case.language == only);
        ensure!(options.rounds > 0 && !options.span.is_zero(), "seconds and rounds start at 1");
        ensure!(options.only.as_deref().is_none_or(known), "--only: python, ruby or php");
        Ok(options)
    }
}

/// What one profiler reached at one frequency.
#[derive(Debug, Default)]
struct Reached {
    seen: Seen,
    /// Extra CPU time of the same work in each pair of spans, in percent.
    slower: Vec<f64>,
    /// How much of the time the program was stopped for the profiler, in percent.
    stopped: Vec<f64>,
    /// The profiler's own CPU time while it records, in percent of one CPU.
    own: Vec<f64>,
    peak_rss: u64,
}

/// Runs all cases and prints a table of each.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let flame = super::build_flame()?;
    super::in_directory(|directory| {
        let wanted =
            |case: &&Case| options.only.as_deref().is_none_or(|only| only == case.language);
        for case in CASES.iter().filter(wanted) {
            if !Path::new(case.interpreter).exists() {
                println!("{} is missing", case.interpreter);
                continue;
            }
            println!("{}", measure(case, &flame, directory, &options)?);
        }
        peers::missing().iter().for_each(|missing| println!("{missing}"));
        Ok(())
    })
}

fn measure(case: &Case, flame: &Path, directory: &Path, options: &Options) -> Result<Table> {
    let peers = peers::find(case.language, flame);
    let truth = Truth::of(case.language);
    let mut table = Table::new(peers.iter().map(|peer| peer.name).collect());
    let mut command = Command::new(case.interpreter);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs").join(case.script);
    let chunks = Chunks::start(command.args(case.options).arg(script).args([case.part, "chunks"]))?;
    for hz in FREQUENCIES {
        eprintln!("== {} {}: {} rounds at {hz} Hz", case.language, case.part, options.rounds);
        let mut reached: Vec<Reached> = peers.iter().map(|_| Reached::default()).collect();
        for _ in 0..options.rounds {
            for (peer, reached) in peers.iter().zip(&mut reached) {
                record(peer, hz, (&chunks, options.span), (&truth, directory), reached)?;
            }
        }
        for (peer, reached) in peers.iter().zip(&reached).filter(|(_, r)| r.seen.wrong > 0) {
            eprintln!("   {}: {}", peer.name, reached.seen.worst());
        }
        let name =
            |measure: &str| format!("{} `{}` at {hz} Hz: {measure}", case.language, case.part);
        let column = |value: &dyn Fn(&Reached) -> Option<f64>| reached.iter().map(value).collect();
        let seen = |value: fn(&Seen) -> f64| move |reached: &Reached| Some(value(&reached.seen));
        let mut row = |measure: &str, bar, unit, cells| table.row(&name(measure), bar, unit, cells);
        row("samples", "", Unit::Count, column(&seen(|seen| seen.all() as f64)));
        row("whole script stacks", ">= 97 %", Unit::Complete, column(&seen(Seen::whole_share)));
        row("samples with impossible chains", "0", Unit::Count, column(&seen(|s| s.wrong as f64)));
        let (slow, own) = if hz < 500 { ("<= 1 %", "") } else { ("<= 5 %", "<= 3 %") };
        row("target's extra CPU time", slow, Unit::Percent, column(&|r| median(&r.slower)));
        row("target stopped, of the time", "0", Unit::Percent, column(&|r| median(&r.stopped)));
        row("own CPU while recording", own, Unit::Percent, column(&|r| median(&r.own)));
        let mib = |reached: &Reached| Some(reached.peak_rss as f64 / f64::from(1 << 20));
        row("peak memory", "", Unit::MiB, column(&mib));
    }
    Ok(table)
}

/// One span without the profiler and one with it.
fn record(
    peer: &Peer,
    hz: u32,
    (chunks, span): (&Chunks, Duration),
    (truth, directory): (&Truth, &Path),
    reached: &mut Reached,
) -> Result<()> {
    let alone = chunks.window(span)?;
    let output: PathBuf = directory.join("output.folded");
    let whole = span + BEFORE + AFTER;
    let mut command = peer.attach(hz, chunks.pid(), whole, &output);
    let log = directory.join("profiler.log");
    let (pid, has_ended) = (chunks.pid(), AtomicBool::new(false));
    let (usage, recorded, stopped) = thread::scope(|scope| {
        let running = scope.spawn(|| process::run(&mut command, log.clone()));
        let looking = scope.spawn(|| stopped_share(pid, &has_ended));
        thread::sleep(BEFORE);
        let recorded = chunks.window(span);
        has_ended.store(true, Ordering::Relaxed);
        (running.join(), recorded, looking.join())
    });
    let usage = usage.expect("it does not panic").with_context(|| peer.name)?;
    reached.slower.push((recorded? / alone - 1.0) * 100.0);
    reached.stopped.extend(stopped.expect("it does not panic"));
    reached.own.extend(usage.steady_cpu.map(|cpus| cpus * 100.0));
    reached.peak_rss = reached.peak_rss.max(usage.peak_rss);
    let said = fs::read_to_string(&log).unwrap_or_default();
    let text = fs::read_to_string(&output).with_context(|| format!("{}: {said}", peer.name))?;
    reached.seen.add(peer, &text, truth);
    reached.seen.lost += peer.lost(&said, &usage.stdout);
    Ok(())
}

/// In how many of the looks at a process it was stopped by who traces it, in percent; `None` without any look.
fn stopped_share(pid: u32, has_ended: &AtomicBool) -> Option<f64> {
    thread::sleep(BEFORE);
    let (mut looks, mut stopped) = (0_u64, 0_u64);
    while !has_ended.load(Ordering::Relaxed) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let state =
            stat.rsplit_once(')').and_then(|(_, fields)| fields.trim_start().chars().next());
        looks += 1;
        stopped += u64::from(matches!(state, Some('t' | 'T')));
        thread::sleep(LOOK);
    }
    (looks > 0).then(|| stopped as f64 / looks as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_refused() {
        let is_known = |words: &[&str]| Options::parse(words).is_ok();
        assert!(is_known(&[]) && is_known(&["--rounds", "2", "--only", "php"]));
        for words in [&["--rounds"][..], &["--rounds", "0"], &["--only", "cobol"], &["--fast", "1"]]
        {
            assert!(!is_known(words), "{words:?}");
        }
    }
}
