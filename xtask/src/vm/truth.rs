//! What recordings are held against: the shares that a program says it had, below the function that all of it is below,
//! whole stacks, and the CPU time that the kernel saw.

use std::ops::RangeInclusive;

use anyhow::{Result, ensure};

use super::answer::{Answer, Summary, is_called, standard_errors};

/// How far shares may be from the truth, in standard errors: some fifty are judged in a run, and chance alone is to fail none.
pub(super) const WITHIN: f64 = 4.0;

/// How many percent of the stacks have to be complete.
const COMPLETE: f64 = 99.0;

/// How many percent of the CPU time the samples may stand for, and have to, beside what chance does.
pub(super) const COVERAGE: RangeInclusive<f64> = 98.0..=102.0;

/// The same of a group. Whenever one of flame's readers runs, the kernel takes the group's events off the CPU and puts them
/// on again. It counts that time as the group's, and no sample can see it; emulated, it is much.
const GROUP_COVERAGE: RangeInclusive<f64> = 90.0..=102.0;

/// Of `shares` that was there before flame.
pub(super) const ATTACHED: Truth<'static> = Truth { file: "truth", ..Truth::PRINTED };

/// The same in a group.
pub(super) const GROUPED: Truth<'static> = Truth { coverage: GROUP_COVERAGE, ..ATTACHED };

/// That nine tenths of a program's stacks have those frames, one below the other.
pub(super) fn below(answer: &Answer, path: &[&str]) -> Result<String> {
    let summary = Summary::of(&answer.said()?)?;
    let folded = answer.folded("a.folded")?;
    let (found, of) = (folded.with_path(path), folded.total());
    ensure!(found * 10 >= of * 9, "{found} of {of} samples are below {}", path.join(", "));
    let quality = quality(answer, summary, &COVERAGE)?;
    Ok(format!("{found} of {of} below {}, {quality}", path.join(", ")))
}

/// What is true of a program: the file that says which functions have which shares of its time, its thread, the
/// function that all of them are below, and what the coverage has to be.
pub(super) struct Truth<'a> {
    pub(super) file: &'a str,
    pub(super) thread: &'a str,
    pub(super) root: &'a str,
    pub(super) coverage: RangeInclusive<f64>,
}

impl Truth<'_> {
    /// Of `shares`, as flame's stdout has it.
    pub(super) const PRINTED: Truth<'static> =
        Truth { file: "out", thread: "shares", root: "main", coverage: COVERAGE };

    /// Holds a recording against it, and against what its own summary says.
    pub(super) fn judge(&self, answer: &Answer) -> Result<String> {
        let summary = Summary::of(&answer.said()?)?;
        let quality = quality(answer, summary, &self.coverage)?;
        Ok(format!("{}, {quality}", self.holds(answer)?))
    }

    /// That the functions have their shares, below the root.
    pub(super) fn holds(&self, answer: &Answer) -> Result<String> {
        let folded = answer.folded("a.folded")?.of_thread(self.thread);
        let truth = answer.text(self.file)?;
        let words: Vec<&str> = truth.split_ascii_whitespace().collect();
        let share = |pair: &[&str]| Some((pair[0].to_owned(), pair[1].parse::<f64>().ok()?));
        let shares: Vec<(String, f64)> = words.windows(2).filter_map(share).collect();
        ensure!(shares.len() > 1, "no shares in {truth:?}");
        let of = folded.with(|frame| shares.iter().any(|(name, _)| is_called(frame, name)));
        let mut worst: f64 = 0.0;
        for (name, share) in &shares {
            let count = folded.with(|frame| is_called(frame, name));
            worst = worst.max(standard_errors(count, of, *share));
        }
        ensure!(worst <= WITHIN, "shares are {worst:.1} standard errors off");
        let rooted = folded.with(|frame| is_called(frame, self.root)) as f64 / of.max(1) as f64;
        ensure!(
            rooted >= COMPLETE / 100.0,
            "{:.1} % of the stacks reach {}",
            rooted * 100.0,
            self.root
        );
        Ok(format!("shares within {worst:.1} standard errors"))
    }
}

/// Whether so many samples stand for enough of the CPU time. The intervals between them are drawn at random: their standard
/// deviation is at most 58 percent of their mean (that of even chances from 0 to twice the mean), and chance has three of them.
pub(super) fn covers(enough: &RangeInclusive<f64>, percent: f64, samples: f64) -> bool {
    let chance = 3.0 * 58.0 / samples.max(1.0).sqrt();
    (enough.start() - chance..=enough.end() + chance).contains(&percent)
}

/// What holds of every recording. Whether stacks with guesses are right is seen by their root. The coverage is said and not judged
/// by the host's clock: all CPUs have one of its threads, and what one of them does makes the timers of others late.
pub(super) fn quality(
    answer: &Answer,
    summary: Summary,
    enough: &RangeInclusive<f64>,
) -> Result<String> {
    let Summary { samples, complete, guessed, coverage, lost } = summary;
    let mut text = format!("{complete:.1} % of {samples} stacks complete, ");
    if guessed > 0.0 {
        text += &format!("{guessed:.1} % with guessed frames, ");
    }
    // A counter of cycles has no time to be held against.
    let known = coverage.map_or("not known".to_owned(), |coverage| format!("{coverage:.1} %"));
    text += &format!("coverage {known}, {lost} lost");
    let is_covered =
        answer.on_host_clock || coverage.is_none_or(|coverage| covers(enough, coverage, samples));
    ensure!(complete + guessed >= COMPLETE && is_covered && lost == 0.0, "{text}");
    Ok(text)
}
