//! `cargo xtask vm`: flame on machines that the developer does not have, in QEMU: kernels of the
//! distribution, another processor, one CPU or 32. What cannot be had is skipped, and said.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

mod answer;
mod boot;
mod cases;
mod costs;
mod initramfs;
mod machine;
mod modes;
mod packages;
mod rights;
mod truth;

use answer::Answer;
use initramfs::Root;
use machine::{Arch, Machine};

/// Packages, roots and what the machines leave behind.
const PLACE: &str = "target/vm";

/// Where the table goes.
const PAGE: &str = "docs/machines.md";

/// What a row of the table begins with of a case that is not as it should be.
const FAILED: &str = "**failed**";

/// How it went on one machine.
struct Outcome {
    machine: String,
    system: String,
    cases: Vec<(String, Result<String>)>,
}

/// What is asked for.
#[derive(Default)]
struct Options<'a> {
    short: bool,
    write: bool,
    only: Option<&'a str>,
    /// A flame for the machines whose processor it is for; for others it is built.
    flame: Option<&'a Path>,
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
    let mut sections = sections(&fs::read_to_string(PAGE).unwrap_or_default());
    let mut outcomes = Vec::new();
    let mut roots: Vec<(Arch, Root)> = Vec::new();
    for mut machine in machines {
        machine.cases.retain(|case| {
            options.cases.is_empty() || options.cases.iter().any(|part| case.name.contains(part))
        });
        if machine.cases.is_empty() {
            continue;
        }
        if let Err(why) = possible(&directory, &machine, options.flame, &mut roots) {
            eprintln!("SKIP {}: {why:#}", machine.name);
            continue;
        }
        let root = roots.iter().find(|(arch, _)| *arch == machine.arch).context("just built")?;
        let outcome = visit(&directory, &machine, &root.1)?;
        let before = sections.remove(machine.name).unwrap_or_default();
        let section = section(&outcome, &before);
        println!("{section}");
        sections.insert(machine.name.to_owned(), section);
        outcomes.push(outcome);
        if options.write {
            fs::write(PAGE, page(&sections))?;
        }
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
            "--flame" => {
                let file: &'a str = words.next().context("--flame takes a file")?;
                options.flame = Some(Path::new(file));
            }
            "--case" => options.cases.push(words.next().context("--case takes a part of a name")?),
            other => anyhow::bail!("unknown option {other}"),
        }
    }
    Ok(options)
}

/// Builds what the machine needs, as far as that was not done.
fn possible(
    directory: &Path,
    machine: &Machine,
    flame: Option<&Path>,
    roots: &mut Vec<(Arch, Root)>,
) -> Result<()> {
    let others = [machine.arch.qemu()[0], "cpio", "apt-get"];
    for program in others.iter().chain(machine.arch.builders()) {
        let mut there = Command::new(program);
        there.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        there.status().ok().with_context(|| format!("{program} is not installed"))?;
    }
    packages::kernel(directory, machine.arch, machine.kernel)?;
    if !roots.iter().any(|(arch, _)| *arch == machine.arch) {
        let built = flame.filter(|flame| Arch::of(flame) == Some(machine.arch));
        roots.push((machine.arch, Root::build(directory, machine.arch, built)?));
    }
    Ok(())
}

/// Boots a machine and judges what its cases left behind.
fn visit(directory: &Path, machine: &Machine, root: &Root) -> Result<Outcome> {
    let kernel = packages::kernel(directory, machine.arch, machine.kernel)?;
    let image = directory.join(format!("{}.cpio.gz", machine.name));
    root.pack(&machine.cases, &image)?;
    eprint!("== {}, Linux {}:", machine.name, kernel.release);
    let answers = directory.join("answers").join(machine.name);
    let visit = boot::run(machine, &kernel, &image, &answers)?;
    eprintln!(" ({:.0} s)", visit.seconds);
    let judge = |(number, case): (usize, &cases::Case)| {
        let place = visit.cases.get(&format!("{number:02}-{}", case.name));
        let finding = match place {
            Some(place) => {
                let (knows_levels, on_host_clock) =
                    (visit.knows_levels, machine.options.is_empty());
                (case.check)(&Answer { directory: place.clone(), knows_levels, on_host_clock })
            }
            None => Err(anyhow::anyhow!("it left nothing behind")),
        };
        (case.name.clone(), finding)
    };
    Ok(Outcome {
        machine: machine.name.to_owned(),
        system: format!(
            "Linux {}, {}, {} CPUs, {} MB{}",
            kernel.release,
            machine.arch.debian(),
            machine.cpus,
            machine.megabytes,
            machine.options.iter().map(|word| format!(" {word}")).collect::<String>()
        ),
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

/// What happened on one machine, as a part of the page. Cases that were not tried now keep what stands
/// in the part that was there.
fn section(outcome: &Outcome, before: &str) -> String {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for row in before.lines().filter(|line| line.starts_with("| ")) {
        let name = row.split(' ').nth(1).unwrap_or_default();
        rows.insert(name.to_owned(), row.to_owned());
    }
    rows.remove("case");
    let date = first_line("date", &["-uI"]);
    for (name, finding) in &outcome.cases {
        let found = match finding {
            Ok(found) => found.clone(),
            Err(error) => format!("{FAILED}: {error:#}"),
        };
        let found = found.replace('|', "/").replace('\n', " / ");
        rows.insert(name.clone(), format!("| {name} | {found} | {date} |"));
    }
    let passed = rows.values().filter(|row| !row.contains(FAILED)).count();
    let rows: Vec<String> = rows.into_values().collect();
    format!(
        "## {}\n\n{}: {passed} of {} cases passed.\n\n\
         | case | result | date |\n|---|---|---|\n{}\n",
        outcome.machine,
        outcome.system,
        rows.len(),
        rows.join("\n"),
    )
}

/// What a page says of each machine that was visited.
fn sections(page: &str) -> BTreeMap<String, String> {
    let mut sections = BTreeMap::new();
    for part in page.split("\n## ").skip(1) {
        let name = part.lines().next().unwrap_or_default();
        if name != "Not tried" {
            let found = part.split("\nNot tried: ").next().unwrap_or(part).trim_end();
            sections.insert(name.to_owned(), format!("## {found}\n"));
        }
    }
    sections
}

/// The last visit of each machine of the matrix, as a page.
fn page(sections: &BTreeMap<String, String>) -> String {
    let mut page = format!(
        "# Machines\n\nWhat `flame` {} does on other kernels and processors, in {}\nwithout KVM. Made by \
         `cargo xtask vm --write`; the cases are defined in `xtask/src/vm/cases.rs`.\n\
         Where `-icount` stands, the machine's clock goes on with its instructions, so what else the host does changes\n\
         nothing. Elsewhere all CPUs have one thread of the host, and what one of them does makes the timers of the others late:\n\
         there the coverage is shown and not judged. Guessed frames are marked as such in the profile; in all `shares` cases, at\n\
         least 99 % of the stacks reach `main`, or where a goroutine begins.\n",
        env!("CARGO_PKG_VERSION"),
        first_line("qemu-system-x86_64", &["--version"]),
    );
    let mut missing = Vec::new();
    for machine in machine::all(false) {
        match sections.get(machine.name) {
            Some(section) => {
                page += &format!("\n{section}");
                let is_new = |name: &&str| !section.contains(&format!("\n| {name} |"));
                let names = machine.cases.iter().map(|case| case.name.as_str());
                let others: Vec<&str> = names.filter(is_new).collect();
                if !others.is_empty() {
                    let _ = write!(page, "\nNot tried: {}.\n", others.join(", "));
                }
            }
            None => missing.push(machine.name),
        }
    }
    if !missing.is_empty() {
        let _ = write!(page, "\n## Not tried\n\n{}\n", missing.join(", "));
    }
    page
}

fn first_line(program: &str, options: &[&str]) -> String {
    let said = Command::new(program).args(options).output().map(|output| output.stdout);
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    said.lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_what_was_found_before() {
        let before = include_str!("../../docs/machines.md");
        let sections = sections(before);
        assert!(!sections.is_empty());
        let after = page(&sections);
        let rows = |page: &str| page.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(rows(&after), rows(before));
        assert_eq!(super::sections(&after), sections);
    }
}
