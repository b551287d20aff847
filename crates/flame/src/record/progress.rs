//! The line that shows a recording in progress, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use flame_message::group_thousands;

use crate::terminal::{self, Paint};

/// Between two updates.
const PAUSE: Duration = Duration::from_millis(200);

/// What ends it.
const HINT: &str = "Ctrl-C ends the recording";

/// Erases the line and returns to its start.
const ERASE: &str = "\r\x1b[2K";

#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    shown: Option<Instant>,
    paint: Paint,
    enabled: bool,
}

impl Progress {
    /// Nothing is shown when quiet or when stderr is not a terminal. A terminal whose lines cannot be
    /// written over is told once how to end the recording.
    pub(super) fn new(quiet: bool, paint: Paint) -> Progress {
        let enabled = !quiet && terminal::rewrites_lines();
        let progress = Progress { started: Instant::now(), shown: None, paint, enabled };
        if !quiet && !enabled && io::stderr().is_terminal() {
            progress.write(&format!("recording; {HINT}\n"));
        }
        progress
    }

    /// Shows the line, if it is time to.
    pub(super) fn show(&mut self, samples: u64, lost: u64) {
        if !self.enabled || self.shown.is_some_and(|shown| shown.elapsed() < PAUSE) {
            return;
        }
        self.shown = Some(Instant::now());
        let elapsed = format!("{:.1} s", self.started.elapsed().as_secs_f64());
        let lost_text = format!("{} lost", group_thousands(lost));
        let lost = if lost > 0 { self.paint.red(&lost_text) } else { lost_text };
        let samples = self.paint.bold(&format!("{} samples", group_thousands(samples)));
        let hint = self.paint.dim(HINT);
        let dot = self.paint.orange("●");
        self.write(&format!("{ERASE}{dot} {elapsed}  {samples}  {lost}  {hint}"));
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if self.shown.is_some() {
            self.write(ERASE);
        }
    }

    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        // A terminal that went away is no reason to end a recording.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}
