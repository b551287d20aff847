//! Debug information that is not on this machine: which images lack it, and its way here.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use flame_debuginfod::{FetchConfig, Outcome, Progress, fetch};
use flame_profile::BuildId;
use flame_symbolize::ImageFile;

use super::super::collector::Collected;
use super::super::images::OpenImage;
use super::cache;
use crate::terminal::Paint;

/// The share of samples from which on an image's debug information is worth a download: a
/// two-hundredth is a box of six pixels in a picture of usual width.
const MIN_SHARE: f64 = 0.005;

/// Erases the line and returns to its start.
const ERASE: &str = "\r\x1b[2K";

/// Fetches debug information that images with a visible share lack; a sentence where not all of it
/// could be had. It ends at the latest with the deadline.
pub(in crate::record) fn fetch_missing(
    collected: &Collected,
    quiet: bool,
    paint: Paint,
) -> Option<String> {
    let config = config()?;
    let mut asked = BTreeSet::new();
    let mut failures: Vec<String> = Vec::new();
    // dwz's files are known only once the debug information that refers to them is there.
    for _ in 0..2 {
        let mut lacking = lacking(collected);
        lacking.retain(|id| !asked.contains(id));
        if lacking.is_empty() {
            break;
        }
        let lacking: Vec<BuildId> = lacking.into_iter().collect();
        let outcomes = fetch_showing(&lacking, &config, quiet, paint);
        failures.extend(outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Failed(why) => Some(why),
            Outcome::Absent | Outcome::Fetched(_) => None,
        }));
        asked.extend(lacking);
    }
    let why = failures.first()?;
    let (failed, all) = (failures.len(), asked.len());
    Some(format!("{failed} of {all} files of debug information could not be fetched: {why}"))
}

/// Fetches with a line of progress on a terminal.
fn fetch_showing(ids: &[BuildId], config: &FetchConfig, quiet: bool, paint: Paint) -> Vec<Outcome> {
    let show = !quiet && io::stderr().is_terminal();
    let progress = |progress: Progress| {
        if show {
            write(&format!("{ERASE}{}", line(progress, paint)));
        }
    };
    let build_id = |path: &Path| ImageFile::open(path).ok()?.build_id().cloned();
    let outcomes = fetch(ids, config, &build_id, &progress);
    if show {
        write(ERASE);
    }
    outcomes
}

/// `None` where no server is named.
fn config() -> Option<FetchConfig> {
    let urls = std::env::var("DEBUGINFOD_URLS").ok()?;
    let servers: Vec<String> = urls.split_ascii_whitespace().map(str::to_owned).collect();
    if servers.is_empty() {
        return None;
    }
    let mut config = FetchConfig::new(servers, cache()?);
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok().filter(|n| *n > 0);
    if let Some(seconds) = number("DEBUGINFOD_MAXTIME") {
        config.deadline = Duration::from_secs(seconds);
    }
    config.max_len = number("DEBUGINFOD_MAXSIZE").unwrap_or(config.max_len);
    Some(config)
}

/// The build ids of files that images with a visible share lack.
fn lacking(collected: &Collected) -> BTreeSet<BuildId> {
    let least = collected.health.samples as f64 * MIN_SHARE;
    let visible = collected.samples_by_image().into_iter();
    let visible = visible.filter(|(_, samples)| *samples as f64 >= least);
    let lacking = visible.filter_map(|(image, _)| match collected.images.get(image)? {
        OpenImage::File(file, _) => Some(file.sources().lacking),
        _ => None,
    });
    lacking.flatten().collect()
}

fn line(progress: Progress, paint: Paint) -> String {
    let count = format!("{} of {} files", progress.done, progress.files);
    let megabytes = progress.bytes as f64 / 1e6;
    let dot = paint.orange("●");
    format!("{dot} fetching debug information: {}, {megabytes:.1} MB", paint.bold(&count))
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // A terminal that went away is no reason to lose a recording.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
