//! Lines of an input, one at a time, numbered.

use std::io::{self, Read};

use flame_profile::{MAX_LINE, TOO_LONG};
use memchr::memchr;

use crate::skipped::{Place, Skipped};

/// What is read at a time.
const BLOCK: usize = 1 << 17;

/// The lines of an input. What is longer than [`MAX_LINE`] is counted, and neither kept nor handed out.
#[derive(Debug)]
pub(crate) struct Lines<'l, R> {
    reader: R,
    too_long: &'l mut Skipped,
    block: Vec<u8>,
    /// What of the block is not handed out yet.
    start: usize,
    end: usize,
    number: u64,
    is_ended: bool,
}

/// A line without its end: `\n` or `\r\n`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'l> {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) text: &'l [u8],
}

impl<'l, R: Read> Lines<'l, R> {
    /// Lines of which those that are too long are counted there.
    pub(crate) fn new(reader: R, too_long: &'l mut Skipped) -> Lines<'l, R> {
        let block = vec![0; BLOCK];
        Lines { reader, too_long, block, start: 0, end: 0, number: 0, is_ended: false }
    }

    /// The next line, the last perhaps without an end; `None` behind it.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut looked_at = 0;
        let (start, end, next) = loop {
            let rest = &self.block[self.start + looked_at..self.end];
            if let Some(found) = memchr(b'\n', rest) {
                let end = self.start + looked_at + found;
                break (self.start, end, end + 1);
            }
            if self.is_ended {
                if self.start == self.end {
                    return Ok(None);
                }
                break (self.start, self.end, self.end);
            }
            looked_at = self.end - self.start;
            if looked_at == MAX_LINE {
                self.skip_line()?;
                looked_at = 0;
            } else {
                self.fill()?;
            }
        };
        self.start = next;
        self.number += 1;
        let text = &self.block[start..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Ok(Some(Line { number: self.number, text }))
    }

    /// Reads on to the end of a line that fills the block, and counts it.
    fn skip_line(&mut self) -> io::Result<()> {
        self.number += 1;
        self.too_long.add(Place::Line(self.number), TOO_LONG, &self.block);
        loop {
            (self.start, self.end) = (0, 0);
            self.fill()?;
            if let Some(found) = memchr(b'\n', &self.block[..self.end]) {
                self.start = found + 1;
                return Ok(());
            }
            if self.is_ended {
                return Ok(());
            }
        }
    }

    /// Reads on, behind what is there.
    fn fill(&mut self) -> io::Result<()> {
        self.block.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.block.len() {
            self.block.resize(self.block.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.block[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    let count = result?;
                    self.end += count;
                    self.is_ended = count == 0;
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a byte at a time.
    struct Slowly<'t>(&'t [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(1);
            self.0.read(&mut into[..most])
        }
    }

    #[test]
    fn lines_come_with_their_numbers_and_without_their_ends() {
        let text = format!("a\r\n\n{}\nlast", "x".repeat(300_000));
        for mut reader in
            [Box::new(text.as_bytes()) as Box<dyn Read>, Box::new(Slowly(text.as_bytes()))]
        {
            let mut too_long = Skipped::default();
            let mut lines = Lines::new(&mut reader, &mut too_long);
            let mut found = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                found.push((line.number, line.text.len()));
            }
            assert_eq!(found, [(1, 1), (2, 0), (3, 300_000), (4, 4)]);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_counted_and_not_handed_out() {
        let long = "x".repeat(MAX_LINE + 1);
        let text = format!("a\n{long}\nb\n{long}{long}\n{long}\nc");
        for text in [text.clone(), format!("{text}\n{long}")] {
            let mut too_long = Skipped::default();
            let mut lines = Lines::new(text.as_bytes(), &mut too_long);
            let mut found = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                found.push((line.number, line.text.to_vec()));
            }
            assert_eq!(found, [(1, b"a".to_vec()), (3, b"b".to_vec()), (6, b"c".to_vec())]);
            let places: Vec<Place> = too_long.first().iter().map(|part| part.place).collect();
            assert_eq!(places[..3], [2, 4, 5].map(Place::Line));
            assert_eq!(too_long.count(), 3 + u64::from(text.len() > 5 * MAX_LINE));
        }
    }
}
