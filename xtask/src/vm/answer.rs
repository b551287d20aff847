//! What a case left behind on its machine, and what its files say.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// The directory that a case ran in.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) directory: PathBuf,
    /// Whether this kernel asks for CAP_SYS_ADMIN at the levels 3 and 4.
    pub(super) knows_levels: bool,
    /// Whether the machine's clock is the host's, and not that of its own instructions.
    pub(super) on_host_clock: bool,
}

impl Answer {
    /// A file's text, or why there is none.
    pub(super) fn text(&self, name: &str) -> Result<String> {
        let bytes = fs::read(self.directory.join(name)).with_context(|| format!("no {name}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.directory.join(name).exists()
    }

    /// What flame said; an error unless it did what it was asked for.
    pub(super) fn said(&self) -> Result<String> {
        let said = self.text("err")?;
        let code = self.text("code")?;
        ensure!(code.trim() == "0", "exit status {}: {}", code.trim(), last_lines(&said));
        ensure!(!said.contains("panicked"), "{said}");
        Ok(said)
    }

    /// Folded text.
    pub(super) fn folded(&self, name: &str) -> Result<Folded> {
        let text =
            self.text(name).with_context(|| last_lines(&self.text("err").unwrap_or_default()))?;
        let line = |line: &str| {
            let (stack, weight) = line.rsplit_once(' ')?;
            Some((stack.split(';').map(str::to_owned).collect(), weight.parse().ok()?))
        };
        Ok(Folded(text.lines().filter_map(line).collect()))
    }
}

/// Stacks, outermost frame first, with their weights.
#[derive(Debug)]
pub(super) struct Folded(Vec<(Vec<String>, u64)>);

impl Folded {
    /// All weights.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// The weight of the stacks that have such a frame.
    pub(super) fn with(&self, is_it: impl Fn(&str) -> bool) -> u64 {
        let has = |(stack, _): &&(Vec<String>, u64)| stack.iter().any(|frame| is_it(frame));
        self.0.iter().filter(has).map(|(_, weight)| weight).sum()
    }

    /// The weight of the stacks that have those frames in that order, outermost first.
    pub(super) fn with_path(&self, path: &[&str]) -> u64 {
        let has = |(stack, _): &&(Vec<String>, u64)| {
            let mut frames = stack.iter();
            path.iter().all(|name| frames.any(|frame| frame == name))
        };
        self.0.iter().filter(has).map(|(_, weight)| weight).sum()
    }

    /// The weight of a thread's stacks, by its name.
    pub(super) fn of_thread(&self, name: &str) -> Folded {
        let it = |(stack, _): &&(Vec<String>, u64)| {
            stack.first().is_some_and(|thread| thread.starts_with(name))
        };
        Folded(self.0.iter().filter(it).cloned().collect())
    }
}

/// What the summary says of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) samples: f64,
    /// Percent.
    pub(super) complete: f64,
    /// Percent that have frames which are guessed, and marked so.
    pub(super) guessed: f64,
    /// Percent; `None` where it is not known.
    pub(super) coverage: Option<f64>,
    pub(super) lost: f64,
}

impl Summary {
    /// Reads what flame said on stderr.
    pub(super) fn of(said: &str) -> Result<Summary> {
        let word = |word: &str| number(said, word).with_context(|| format!("no {word} in: {said}"));
        let samples = said.lines().find(|line| line.contains(" samples of "));
        let samples = samples.and_then(|line| line.split(' ').next());
        let samples = samples.and_then(|number| number.replace(',', "").parse().ok());
        let samples: Option<f64> = samples;
        let guessed = said.split_once(" with guessed frames").map_or(0.0, |(before, _)| {
            let word = before.rsplit(['(', ' ']).next().unwrap_or_default();
            word.replace(',', "").parse().unwrap_or(0.0)
        });
        Ok(Summary {
            guessed: guessed * 100.0 / samples.unwrap_or(1.0).max(1.0),
            samples: samples.with_context(|| format!("no samples in: {said}"))?,
            complete: word("complete")?,
            coverage: number(said, "coverage"),
            lost: word("lost")?,
        })
    }
}

/// The number behind the first word of a line.
pub(super) fn number(text: &str, word: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| {
        let number = (words.next() == Some(word)).then(|| words.next()).flatten()?;
        number.replace(',', "").parse().ok()
    })
}

/// Whether a frame is a function of that name, in whatever module, class or package.
pub(super) fn is_called(frame: &str, name: &str) -> bool {
    let plain = frame
        .split_once(&format!("{name}("))
        .map_or(frame, |(before, _)| &frame[..before.len() + name.len()]);
    plain
        .strip_suffix(name)
        .is_some_and(|module| module.is_empty() || module.ends_with("::") || module.ends_with('.'))
}

/// The end of what was said, where the error stands.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

/// How far a count is from its share, in standard errors.
pub(super) fn standard_errors(count: u64, of: u64, share: f64) -> f64 {
    let of = of.max(1) as f64;
    let error = (share * (1.0 - share) / of).sqrt().max(f64::MIN_POSITIVE);
    (count as f64 / of - share).abs() / error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_in_modules_and_with_parameters() {
        for frame in
            ["alpha", "(anonymous namespace)::alpha(unsigned long)", "main.alpha", "a::alpha"]
        {
            assert!(is_called(frame, "alpha"), "{frame}");
        }
        for frame in ["alphabet", "Step::turn(alpha)", "dalpha", "Alpha::turn(unsigned long)"] {
            assert!(!is_called(frame, "alpha"), "{frame}");
        }
    }

    #[test]
    fn paths_are_in_order() {
        let stack = ["p", "main", "ask", "vdso"].map(str::to_owned).to_vec();
        let folded = Folded(vec![(stack, 3)]);
        assert_eq!(folded.with_path(&["main", "vdso"]), 3);
        assert_eq!(folded.with_path(&["ask", "main"]), 0);
    }
}
