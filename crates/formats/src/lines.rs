//! Lines of an input, one at a time, numbered.

use std::io::{self, Read};

use memchr::memchr;

/// What is read at a time.
const BLOCK: usize = 1 << 17;
/// No line of any format is longer; what is beyond is left out.
const MAX_LINE: usize = 1 << 26;

/// The lines of an input.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
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

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Lines<R> {
        let block = vec![0; BLOCK];
        Lines { reader, block, start: 0, end: 0, number: 0, is_ended: false }
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
            self.fill()?;
        };
        self.start = next;
        self.number += 1;
        let text = &self.block[start..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Ok(Some(Line { number: self.number, text }))
    }

    /// Reads on, behind what is there.
    fn fill(&mut self) -> io::Result<()> {
        self.block.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.block.len() {
            if self.block.len() < MAX_LINE {
                self.block.resize(self.block.len() * 2, 0);
            } else {
                self.end /= 2;
            }
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
            let mut lines = Lines::new(&mut reader);
            let mut found = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                found.push((line.number, line.text.len()));
            }
            assert_eq!(found, [(1, 1), (2, 0), (3, 300_000), (4, 4)]);
        }
    }
}
