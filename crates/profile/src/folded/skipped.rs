//! Lines of folded text that cannot be read: how many, why, and how the first few look.

use super::count::Count;

/// This many lines that are skipped are kept to be shown.
pub(super) const SHOWN_LINES: usize = 5;
/// This many bytes of each.
pub(super) const MOST_SHOWN: usize = 400;

/// Why most lines that are not folded text cannot be read as such.
pub const NO_COUNT: &str = "there is no count at its end";
/// Why a line is left out that is longer than [`crate::MAX_LINE`].
pub const TOO_LONG: &str = "it is longer than 16 MiB";
/// Why a line is left out whose count would make the sums wrong.
pub(super) const NO_ROOM: &str = "with its count, the sum of all does not fit into 64 bits";

/// A line without a stack or a count that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    /// Counted from 1.
    pub number: u64,
    /// Why it is not read: `there is no count at its end`.
    pub reason: &'static str,
    /// How it starts; empty where that is not known any more.
    pub text: Vec<u8>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    pub(super) count: u64,
    pub(super) first: Vec<SkippedLine>,
}

impl SkippedLines {
    /// Counts one, and keeps the first few.
    #[cold]
    pub(super) fn add(&mut self, number: u64, reason: &'static str, line: &[u8]) {
        self.count += 1;
        if self.first.len() < SHOWN_LINES {
            let text = line[..line.len().min(MOST_SHOWN)].to_vec();
            self.first.push(SkippedLine { number, reason, text });
        }
    }
}

/// Why a line has no stack with a count.
pub(super) fn why_not_read(line: &[u8]) -> &'static str {
    let line = line.trim_ascii_end();
    let word = line.rsplit(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
    let is_number = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
    match word {
        [b'-', number @ ..] if Count::parse(number).is_some() => "its count is negative",
        _ if word.len() == line.len() && is_number(word) => "no stack before the count",
        _ if word.iter().all(u8::is_ascii_digit) => "its count is too large",
        _ if Count::parse(word).is_some() => "its count is below a billionth, and is rounded to 0",
        _ if is_number(word) => "its count is not a number",
        _ => NO_COUNT,
    }
}
