//! An input in blocks that are read by several threads: each ends where a sample does.

use std::io::{self, Read};

use memchr::{memchr, memrchr};

use crate::perf_script::begins_sample;

/// What is read at a time: little enough to stay in a core's own cache, beside the tables.
const BLOCK: usize = 1 << 18;
/// No sample is longer; one that is gets cut in two.
const MAX_SAMPLE: usize = 1 << 24;
/// Of a longer line one byte more is kept, by which it is known to be too long: the sample that it stands in does not
/// have to be cut in two for it.
pub(crate) const MAX_LINE: usize = 1 << 20;

/// A run of whole samples. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    len: usize,
    /// How many lines stand before it, in numbered blocks.
    pub(crate) lines: u64,
}

impl Block {
    pub(crate) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The blocks of an input.
#[derive(Debug)]
pub(crate) struct Blocks<R> {
    reader: R,
    /// What of the last block belongs to the next one.
    rest: Vec<u8>,
    /// Whether what comes next is the rest of a line that is too long.
    in_long_line: bool,
    /// How many lines were handed out; `None` where the reader counts them itself.
    lines: Option<u64>,
}

impl<R: Read> Blocks<R> {
    /// Blocks that say how many lines stand before them: who reads them all in their order counts them
    /// while reading.
    pub(crate) fn numbered(reader: R) -> Blocks<R> {
        Blocks { reader, rest: Vec::new(), in_long_line: false, lines: Some(0) }
    }

    /// Blocks that do not.
    pub(crate) fn new(reader: R) -> Blocks<R> {
        Blocks { reader, rest: Vec::new(), in_long_line: false, lines: None }
    }

    /// The next block into `block`: false behind the last.
    pub(crate) fn next_block(&mut self, block: &mut Block) -> io::Result<bool> {
        let mut filled = self.rest.len();
        let mut size = BLOCK.max(filled);
        block.bytes.resize(block.bytes.len().max(size), 0);
        block.bytes[..filled].copy_from_slice(&self.rest);
        let len = loop {
            let is_ended = self.fill(&mut block.bytes[..size], &mut filled)?;
            let text = &block.bytes[..filled];
            let end = if is_ended { Some(filled) } else { sample_end(text) };
            let last_line = || memrchr(b'\n', text).map_or(filled, |at| at + 1);
            let end = end.or_else(|| (size >= MAX_SAMPLE).then(last_line));
            if let Some(end) = end {
                self.rest.clear();
                self.rest.extend_from_slice(&text[end..]);
                break end;
            }
            size *= 2;
            block.bytes.resize(block.bytes.len().max(size), 0);
        };
        (block.len, block.lines) = (len, self.lines.unwrap_or(0));
        if let Some(lines) = &mut self.lines {
            *lines += memchr::memchr_iter(b'\n', block.text()).count() as u64;
        }
        Ok(len > 0)
    }

    /// Reads until nothing is left to be filled: whether the input has ended before.
    fn fill(&mut self, into: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        while *filled < into.len() {
            match self.reader.read(&mut into[*filled..]) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    let start = *filled;
                    *filled += count;
                    self.shorten(into, start, filled);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Leaves out what a line has too much that is not whole yet; what was just read begins at `start`.
    fn shorten(&mut self, text: &mut [u8], start: usize, filled: &mut usize) {
        if self.in_long_line {
            let end = memchr(b'\n', &text[start..*filled]);
            let end = end.map_or(*filled, |at| start + at);
            self.in_long_line = end == *filled;
            text.copy_within(end..*filled, start);
            *filled = start + (*filled - end);
        }
        let line = memrchr(b'\n', &text[..*filled]).map_or(0, |at| at + 1);
        if *filled - line > MAX_LINE {
            self.in_long_line = true;
            *filled = line + MAX_LINE + 1;
        }
    }
}

/// Behind the last blank line; where there is none, before the last line that begins a sample.
fn sample_end(block: &[u8]) -> Option<usize> {
    let (mut end, mut last_begin) = (memrchr(b'\n', block)?, None);
    loop {
        let start = memrchr(b'\n', &block[..end]).map_or(0, |at| at + 1);
        let line = &block[start..end];
        if line.trim_ascii().is_empty() {
            return Some(end + 1);
        }
        if start == 0 {
            return last_begin;
        }
        if last_begin.is_none() && begins_sample(line) {
            last_begin = Some(start);
        }
        end = start - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_behind_blank_lines_and_count_their_lines() {
        let sample = format!("a 1 1.0: cycles:\n\t  7f main (/x)\n{}\r\n", " ".repeat(40));
        let text = sample.repeat(40_000);
        let mut blocks = Blocks::numbered(text.as_bytes());
        let (mut block, mut all, mut count) = (Block::default(), Vec::new(), 0);
        while blocks.next_block(&mut block).unwrap() {
            assert_eq!(block.lines, memchr::memchr_iter(b'\n', &all).count() as u64);
            let len = block.text().len();
            assert!(len <= BLOCK && len.is_multiple_of(sample.len()));
            all.extend_from_slice(block.text());
            count += 1;
        }
        assert!(count > 2 && all == text.as_bytes());
        assert_eq!(sample_end(b"a 1 x:\nb 2 x:\nc"), Some(7));
        assert_eq!(sample_end(b"a 1 x:\n\tff main (x)\n"), None);
    }

    #[test]
    fn lines_that_are_too_long_are_shortened_within_their_sample() {
        let sample =
            |len: usize| format!("a 1 1.0: cycles:\n\t  7f {}\n\t  7f b (/x)\n\n", "x".repeat(len));
        for len in [MAX_LINE - 10, 40 << 20] {
            let text = [sample(3), sample(len), sample(4)].concat();
            let (mut blocks, mut block) = (Blocks::numbered(text.as_bytes()), Block::default());
            let mut all = Vec::new();
            while blocks.next_block(&mut block).unwrap() {
                assert!(block.text().ends_with(b"(/x)\n\n") && block.bytes.len() <= 4 * MAX_LINE);
                assert_eq!(block.lines, memchr::memchr_iter(b'\n', &all).count() as u64);
                all.extend_from_slice(block.text());
            }
            let kept = (len + "\t  7f ".len()).min(MAX_LINE + 1) - "\t  7f ".len();
            assert!(all == [sample(3), sample(kept), sample(4)].concat().as_bytes(), "{len}");
        }
    }

    #[test]
    fn blocks_without_blank_lines_end_where_a_sample_does() {
        let alone = "              dd 7 [000] 1.0: 3 cycles:  7f12 main+0x1 (/x)\n";
        let stack = format!("  {alone}\t  7f12 main (/x)\n\t  7f13 dd 7 start (/x)\n");
        for sample in [alone, &*stack] {
            let text = sample.repeat(20_000);
            let (mut blocks, mut block) = (Blocks::new(text.as_bytes()), Block::default());
            let mut len = 0;
            while blocks.next_block(&mut block).unwrap() {
                assert!(block.bytes.len() <= BLOCK && block.len.is_multiple_of(sample.len()));
                len += block.len;
            }
            assert_eq!(len, text.len());
        }
    }
}
