//! `flame record --list-events`: what `-e` takes.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use flame_image::ImageFile;
use flame_sampler::{event_names, pmu_events, tracepoints};
use glob::Pattern;

use crate::cli::Cli;
use crate::message::{self, Failure};

/// Prints the events whose names hold a text, or match one with `*` or `?` in it, one a line.
pub(super) fn list(text: &str, cli: &Cli) -> Result<ExitCode, Failure> {
    let mut names: Vec<String> = event_names().into_iter().map(str::to_owned).collect();
    names.extend(pmu_events());
    let points = tracepoints();
    match &points {
        Ok(points) => names.extend_from_slice(points),
        Err(error) => message::warn(&format!("without tracepoints: {error}"), cli.color),
    }
    names.retain(|name| is_asked(name, text));
    // Calls of functions are tracepoints that flame makes. There are thousands of functions.
    if points.is_ok() && !text.is_empty() {
        names.extend(functions_of_libc(text));
    }
    if names.is_empty() {
        return Err(Failure::new(format!("no event has '{text}' in its name"))
            .or_try("flame record --list-events"));
    }
    // Who reads only the first lines has seen enough.
    let _ = io::stdout().write_all((names.join("\n") + "\n").as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn is_asked(name: &str, text: &str) -> bool {
    let pattern = Pattern::new(text).ok().filter(|_| text.contains(['*', '?']));
    pattern.map_or_else(|| name.contains(text), |pattern| pattern.matches(name))
}

/// The functions of flame's own C library whose names hold a text, as events.
fn functions_of_libc(text: &str) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let libc = paths.find(|path| path.ends_with("libc.so.6"));
    let Some((libc, image)) = libc.and_then(|libc| Some((libc, ImageFile::open(libc).ok()?)))
    else {
        return Vec::new();
    };
    let mut names = image.function_names();
    names.retain(|name| is_asked(name, text));
    names.iter().map(|name| format!("uprobe:{}:{name}", libc.display())).collect()
}
