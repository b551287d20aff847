//! What of an input could not be read: how much, and the first few places.

use std::fmt;

use crate::ReadError;

/// This many are kept with their text.
const SHOWN: usize = 5;
/// This much of a text is shown.
const EXCERPT: usize = 100;

/// Where in an input something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
    /// A record, counted from 1: an event of a trace, an entry of a table.
    Record(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(f, "line {number}"),
            Place::Byte(offset) => write!(f, "byte {offset}"),
            Place::Record(number) => write!(f, "record {number}"),
        }
    }
}

/// A line or a record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPart {
    /// Where it is.
    pub place: Place,
    /// Why it cannot be read: `the count is negative`.
    pub reason: String,
    /// How it starts; control characters are not in it.
    pub text: String,
}

/// All that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    count: u64,
    first: Vec<SkippedPart>,
}

impl Skipped {
    /// How many lines or records were skipped.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them, in the order of their places.
    pub fn first(&self) -> &[SkippedPart] {
        &self.first
    }

    /// The first of them is an error where nothing may be skipped.
    ///
    /// # Errors
    /// There is one, and that is so.
    pub(crate) fn refuse_if(&self, is_strict: bool) -> Result<(), ReadError> {
        match self.first.first().filter(|_| is_strict) {
            Some(part) => Err(ReadError::Strict { place: part.place, reason: part.reason.clone() }),
            None => Ok(()),
        }
    }

    /// Adds one.
    pub(crate) fn add(&mut self, place: Place, reason: &str, text: &[u8]) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(SkippedPart { place, reason: reason.to_owned(), text: excerpt(text) });
        }
    }

    /// Adds some without a place.
    pub(crate) fn add_count(&mut self, count: u64) {
        self.count += count;
    }

    /// Adds those of another part of the same input.
    pub(crate) fn merge(&mut self, other: Skipped) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.sort_by_key(|part| part.place);
        self.first.truncate(SHOWN);
    }
}

/// The start of a text on one line.
pub(crate) fn excerpt(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * EXCERPT)]);
    let text = text.trim_end_matches(['\n', '\r']);
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(EXCERPT).map(clean).collect();
    if text.chars().nth(EXCERPT).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_few_shown_in_their_order() {
        let mut skipped = Skipped::default();
        let mut other = Skipped::default();
        for line in 1..=10 {
            let part = if line % 2 == 0 { &mut skipped } else { &mut other };
            part.add(Place::Line(line), "no count", b"a\tb\r\n");
        }
        skipped.merge(other);
        assert_eq!(skipped.count(), 10);
        let places: Vec<String> =
            skipped.first().iter().map(|part| part.place.to_string()).collect();
        assert_eq!(places, ["line 1", "line 2", "line 3", "line 4", "line 5"]);
        assert_eq!(skipped.first()[0].text, "a b");
        assert_eq!(excerpt("é".repeat(300).as_bytes()).chars().count(), EXCERPT + 1);
    }
}
