//! What only flame is asked: events that are counted, by how often they come, and rhythms where
//! events are bound to tasks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::super::table::{Table, Unit};
use super::super::{build_program, process};
use super::share_error;

/// Rates of the events a second that are asked of the program.
const RATES: [&str; 6] = ["10", "100", "1000", "10000", "100000", "1000000"];

/// Records with flame; the weight of each of `functions`, and the lines `NAME NUMBER` printed.
fn record(
    flame: &Path,
    directory: &Path,
    options: &[&str],
    target: &[OsString],
    functions: &[&str],
) -> Result<(BTreeMap<String, u64>, BTreeMap<String, f64>, u64)> {
    let folded = directory.join("flame.folded");
    let mut command = Command::new(flame);
    command.args(["record", "--force", "-o"]).arg(&folded).args(options).arg("--").args(target);
    let log = directory.join("flame.log");
    let usage = process::run(&mut command, log.clone())?;
    let said = fs::read_to_string(&log)?;
    let samples = said.lines().find_map(|line| line.split_once(" samples of "));
    let samples = samples.context("no number of samples")?.0.replace(',', "").parse()?;
    let mut seen = BTreeMap::new();
    for line in fs::read_to_string(&folded)?.lines() {
        let (frames, weight) = line.rsplit_once(' ').context("a line of folded text")?;
        let weight: u64 = weight.parse()?;
        let of = functions.iter().find(|name| frames.split(';').any(|frame| frame == **name));
        if let Some(name) = of {
            *seen.entry((*name).to_owned()).or_default() += weight;
        }
    }
    let mut truth = BTreeMap::new();
    for line in usage.stdout.lines() {
        let mut words = line.split(' ').rev();
        if let (Some(number), Some(name)) = (words.next(), words.next())
            && functions.contains(&name)
        {
            truth.insert(name.to_owned(), number.parse()?);
        }
    }
    Ok((seen, truth, samples))
}

/// Adds the rows; other profilers have none.
pub(super) fn measure(
    flame: &Path,
    directory: &Path,
    seconds: u64,
    columns: usize,
    table: &mut Table,
) -> Result<()> {
    let mut row = |measure: String, bar: &str, value: f64| {
        let mut cells = vec![Some(value)];
        cells.resize(columns, None);
        table.row(&measure, bar, Unit::Number, cells);
    };
    let program = build_program("occurrences", directory)?;
    for (kind, event) in [("faults", "page-faults"), ("switches", "context-switches")] {
        for rate in RATES {
            let words = [program.as_os_str(), kind.as_ref(), rate.as_ref()];
            let mut target: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            target.push(seconds.to_string().into());
            let functions = ["in_three", "in_one"];
            let (seen, truth, samples) =
                record(flame, directory, &["-e", event], &target, &functions)?;
            let (sum, all) = (seen.values().sum::<u64>(), truth.values().sum::<f64>());
            let head = format!("{event}, {rate} a second asked, {all:.0} happened");
            let off = (sum as f64 / all - 1.0).abs() * 100.0;
            row(format!("{head}: sum off, in percent"), "<= 1", off);
            // As many samples as there are, each of the weight that they have on the average.
            let scale = samples.min(sum) as f64 / sum.max(1) as f64;
            let scaled = seen.into_iter().map(|(name, w)| (name, (w as f64 * scale) as u64));
            let error = share_error(&scaled.collect(), &truth).context("no samples")?;
            row(format!("{head}: share off, in standard errors"), "<= 3", error.deviations);
        }
    }
    let program = build_program("lockstep", directory)?;
    for rhythm in ["rhythm=99:70,30:clock", "rhythm=198:70,30:clock"] {
        let target = [program.clone().into(), seconds.to_string().into(), rhythm.into()];
        let options = ["-F", "99", "--per-task"];
        let functions = ["first", "second"];
        let (seen, truth, _) = record(flame, directory, &options, &target, &functions)?;
        let error = share_error(&seen, &truth).context("no samples")?;
        row(format!("task by task, {rhythm}: in standard errors"), "<= 3", error.deviations);
    }
    Ok(())
}
