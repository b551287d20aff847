//! `cargo xtask vm`: flame on the kernels that distributions ship, in QEMU. What cannot be had is
//! skipped, and said.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

mod answer;
mod boot;
mod cases;
mod initramfs;
mod machine;
mod packages;
mod rights;

use answer::Answer;
use initramfs::Root;
use machine::Machine;
use packages::Kernel;

/// Packages, roots and what the machines leave behind.
const PLACE: &str = "target/vm";

/// Where the table goes.
const PAGE: &str = "docs/machines.md";

/// How it went on one machine.
struct Outcome {
    machine: String,
    system: String,
    seconds: f64,
    cases: Vec<(String, Result<String>)>,
}

/// What is asked for.
#[derive(Default)]
struct Options<'a> {
    short: bool,
    write: bool,
    only: Option<&'a str>,
    cases: Vec<&'a str>,
}

/// Runs the matrix, or a part of it.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let options = parse(options)?;
    let directory = std::env::current_dir()?.join(PLACE);
    fs::create_dir_all(&directory)?;
    let mut machines = machine::all(options.short);
    machines.retain(|machine| options.only.is_none_or(|only| machine.name == only));
    ensure!(!machines.is_empty(), "no machine is called so");
    let root = match possible().and_then(|()| Root::build(&directory)) {
        Ok(root) => root,
        Err(why) => {
            eprintln!("SKIP machines: {why:#}");
            return Ok(());
        }
    };
    let mut outcomes = Vec::new();
    let mut skipped = Vec::new();
    for mut machine in machines {
        let wanted = |name: &str| options.cases.iter().any(|part| name.contains(part));
        machine.cases.retain(|case| options.cases.is_empty() || wanted(&case.name));
        match packages::kernel(&directory, machine.kernel) {
            Ok(kernel) => outcomes.push(visit(&directory, &machine, &kernel, &root)?),
            Err(why) => {
                eprintln!("SKIP {}: {why:#}", machine.name);
                skipped.push(format!("{}: {why:#}", machine.name));
            }
        }
    }
    let page = page(&outcomes, &skipped);
    println!("{page}");
    if options.write {
        fs::write(PAGE, page)?;
    }
    let failed: Vec<String> = outcomes.iter().flat_map(failures).collect();
    ensure!(failed.is_empty(), "not as it should be:\n  {}", failed.join("\n  "));
    Ok(())
}

fn parse<'a>(words: &[&'a str]) -> Result<Options<'a>> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--short" => options.short = true,
            "--write" => options.write = true,
            "--machine" => options.only = Some(words.next().context("--machine takes a name")?),
            "--case" => options.cases.push(words.next().context("--case takes a part of a name")?),
            other => anyhow::bail!("unknown option {other}"),
        }
    }
    Ok(options)
}

/// Whether the programs are there that this takes.
fn possible() -> Result<()> {
    ensure!(std::env::consts::ARCH == "x86_64", "the machines are x86-64, this one is not");
    for program in ["qemu-system-x86_64", "busybox", "cpio", "gcc", "apt-get"] {
        let mut there = Command::new("which");
        let there = there.arg(program).stdout(Stdio::null()).status()?;
        ensure!(there.success(), "{program} is not installed");
    }
    Ok(())
}

/// Boots a machine and judges what its cases left behind.
fn visit(directory: &Path, machine: &Machine, kernel: &Kernel, root: &Root) -> Result<Outcome> {
    let image = directory.join(format!("{}.cpio.gz", machine.name));
    root.pack(&machine.cases, &image)?;
    eprint!("== {}, Linux {}:", machine.name, kernel.release);
    let answers = directory.join("answers").join(machine.name);
    let visit = boot::run(machine, kernel, &image, &answers)?;
    eprintln!(" ({:.0} s)", visit.seconds);
    let judge = |(number, case): (usize, &cases::Case)| {
        let place = visit.cases.get(&format!("{number:02}-{}", case.name));
        let finding = match place {
            Some(place) => {
                let knows_levels = visit.knows_levels;
                (case.check)(&Answer { directory: place.clone(), knows_levels })
            }
            None => Err(anyhow::anyhow!("it left nothing behind")),
        };
        (case.name.clone(), finding)
    };
    Ok(Outcome {
        machine: machine.name.to_owned(),
        system: format!(
            "Linux {}, {} CPUs, {} MB",
            kernel.release, machine.cpus, machine.megabytes
        ),
        seconds: visit.seconds,
        cases: machine.cases.iter().enumerate().map(judge).collect(),
    })
}

fn failures(outcome: &Outcome) -> Vec<String> {
    let failed = outcome.cases.iter().filter_map(|(name, finding)| {
        let error = finding.as_ref().err()?;
        Some(format!("{} {name}: {error:#}", outcome.machine))
    });
    failed.collect()
}

/// Everything as a page.
fn page(outcomes: &[Outcome], skipped: &[String]) -> String {
    let mut page = format!(
        "# Machines\n\nWhat `flame` {} does on other kernels and processors, each in QEMU ({}) without \
         KVM. Made by\n`cargo xtask vm --write` on {}; the cases are in `xtask/src/vm/cases.rs`.\n",
        env!("CARGO_PKG_VERSION"),
        first_line("qemu-system-x86_64", "--version"),
        first_line("date", "-uI"),
    );
    for outcome in outcomes {
        let passed = outcome.cases.iter().filter(|(_, finding)| finding.is_ok()).count();
        let _ = write!(
            page,
            "\n## {}\n\n{}: {passed} of {} cases, in {:.0} s.\n\n| case | found |\n|---|---|\n",
            outcome.machine,
            outcome.system,
            outcome.cases.len(),
            outcome.seconds
        );
        for (name, finding) in &outcome.cases {
            let found = match finding {
                Ok(found) => found.clone(),
                Err(error) => format!("**not as it should be**: {error:#}"),
            };
            let _ = writeln!(page, "| {name} | {} |", found.replace('|', "/").replace('\n', " / "));
        }
    }
    if !skipped.is_empty() {
        let _ = write!(page, "\n## Skipped\n\n- {}\n", skipped.join("\n- "));
    }
    page
}

fn first_line(program: &str, option: &str) -> String {
    let said = Command::new(program).arg(option).output().map(|output| output.stdout);
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    said.lines().next().unwrap_or("unknown").to_owned()
}
