//! Debug information that is not on this machine: which images lack it, and its way here.
//!
//! Servers are asked only when DEBUGINFOD_URLS names some, and only for images that enough samples
//! are in: a download takes seconds, and nobody looks for the names of a thousandth.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use flame_debuginfod::{FetchConfig, Outcome, Progress, Waiting, fetch};
use flame_image::ImageFile;
use flame_profile::BuildId;
use flame_recorder::SeenImage;
use flame_symbolize::Sources;

use super::signals::StopSignals;
use crate::message::Note;
use crate::privileges;
use crate::symbols::debuginfod_cache;
use crate::terminal::Paint;

/// The share of samples from which on an image's debug information is worth a download: a
/// two-hundredth is a box of six pixels in a picture of usual width.
const MIN_SHARE: f64 = 0.005;

/// Erases the line and returns to its start.
const ERASE: &str = "\r\x1b[2K";

/// Fetches debug information that images with a visible share lack; a sentence where not all of it
/// could be had. It ends at the latest with the deadline, and at once when a signal asks for it.
pub(super) fn fetch_missing(
    images: &[SeenImage<'_>],
    samples: u64,
    quiet: bool,
    paint: Paint,
    signals: &StopSignals,
) -> Option<Note> {
    let config = config()?;
    // The signal that ended the recording is not the one that ends this.
    signals.listen_anew();
    let show = !quiet && io::stderr().is_terminal();
    let mut waiting = Terminal { show, paint, signals };
    let mut asked = BTreeSet::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    // dwz's files are known only once the debug information that refers to them is there.
    for _ in 0..2 {
        let mut lacking = lacking(images, samples);
        lacking.retain(|id| !asked.contains(id));
        if lacking.is_empty() || signals.arrived() {
            break;
        }
        let lacking: Vec<BuildId> = lacking.into_iter().collect();
        let build_id = |path: &Path| ImageFile::open(path).ok()?.build_id().cloned();
        // Whoever answers is on a network: neither these threads nor those that they start and that
        // may outlive them have any rights but the user's.
        let fetched =
            privileges::on_bare_thread(|| fetch(&lacking, &config, build_id, &mut waiting));
        outcomes.extend(fetched);
        asked.extend(lacking);
    }
    if show {
        write(ERASE);
    }
    sentence(&outcomes).map(Note::plain)
}

/// What could not be had; `None` where nothing is missing that a server has.
fn sentence(outcomes: &[Outcome]) -> Option<String> {
    let all = outcomes.len();
    let given_up = outcomes.iter().filter(|outcome| **outcome == Outcome::GivenUp).count();
    if given_up > 0 {
        return Some(format!(
            "{given_up} of {all} files of debug information were not waited for (interrupted); \
             the next recording asks for them again"
        ));
    }
    let failures = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Failed(why) => Some(why),
        _ => None,
    });
    let (failed, why) = (failures.clone().count(), failures.clone().next()?);
    Some(format!("{failed} of {all} files of debug information could not be fetched: {why}"))
}

/// Whoever sits before the terminal: sees a line of progress, and may have enough of it.
struct Terminal<'s> {
    show: bool,
    paint: Paint,
    signals: &'s StopSignals,
}

impl Waiting for Terminal<'_> {
    fn progress(&mut self, progress: Progress) {
        if self.show {
            write(&format!("{ERASE}{}", line(progress, self.paint)));
        }
    }

    fn is_over(&mut self) -> bool {
        self.signals.arrived()
    }
}

/// `None` where no server is named.
fn config() -> Option<FetchConfig> {
    let urls = std::env::var("DEBUGINFOD_URLS").ok()?;
    let servers: Vec<String> = urls.split_ascii_whitespace().map(str::to_owned).collect();
    if servers.is_empty() {
        return None;
    }
    let mut config = FetchConfig::new(servers, debuginfod_cache()?);
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok().filter(|n| *n > 0);
    if let Some(seconds) = number("DEBUGINFOD_MAXTIME") {
        config.deadline = Duration::from_secs(seconds);
    }
    config.max_len = number("DEBUGINFOD_MAXSIZE").unwrap_or(config.max_len);
    Some(config)
}

/// The build ids of files that images with a visible share of the samples lack.
fn lacking(images: &[SeenImage<'_>], samples: u64) -> BTreeSet<BuildId> {
    let least = samples as f64 * MIN_SHARE;
    let visible = images.iter().filter(|image| image.samples as f64 >= least);
    visible.filter_map(|image| image.file).flat_map(|file| Sources::of(file).lacking).collect()
}

fn line(progress: Progress, paint: Paint) -> String {
    let count = format!("{} of {} files", progress.done, progress.files);
    let megabytes = progress.bytes as f64 / 1e6;
    let dot = paint.orange("●");
    let count = paint.bold(&count);
    let hint = paint.dim("Ctrl-C goes on without it");
    format!("{dot} fetching debug information: {count}, {megabytes:.1} MB  {hint}")
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // A terminal that went away is no reason to lose a recording.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
