//! `flame record --list-events`: what `-e` takes.

use std::io::{self, Write};
use std::process::ExitCode;

use flame_sampler::{event_names, pmu_events, tracepoints};

use crate::cli::Cli;
use crate::message::{self, Failure};

/// Prints the events whose names hold a text, one a line.
pub(super) fn list(text: &str, cli: &Cli) -> Result<ExitCode, Failure> {
    let mut names: Vec<String> = event_names().into_iter().map(str::to_owned).collect();
    names.extend(pmu_events());
    match tracepoints() {
        Ok(points) => names.extend(points),
        Err(error) => message::warn(&format!("without tracepoints: {error}"), cli.color),
    }
    names.retain(|name| name.contains(text));
    if names.is_empty() {
        return Err(Failure::new(format!("no event has '{text}' in its name"))
            .or_try("flame record --list-events"));
    }
    // Who reads only the first lines has seen enough.
    let _ = io::stdout().write_all((names.join("\n") + "\n").as_bytes());
    Ok(ExitCode::SUCCESS)
}
