//! An input in blocks that are read by several threads: each ends where a sample does.

use std::io::{self, Read};

use memchr::memrchr;

/// What is read at a time: little enough to stay in a core's own cache, beside the tables.
const BLOCK: usize = 1 << 18;
/// No sample is longer; one that is gets cut in two.
const MAX_SAMPLE: usize = 1 << 26;

/// The blocks of an input.
#[derive(Debug)]
pub(crate) struct Blocks<R> {
    reader: R,
    /// What of the last block belongs to the next one.
    rest: Vec<u8>,
    /// How many lines were handed out.
    lines: u64,
}

impl<R: Read> Blocks<R> {
    pub(crate) fn new(reader: R) -> Blocks<R> {
        Blocks { reader, rest: Vec::new(), lines: 0 }
    }

    /// The next block into `block`, which is cleared first, and how many lines stand before it;
    /// `None` behind the last.
    pub(crate) fn next_block(&mut self, block: &mut Vec<u8>) -> io::Result<Option<u64>> {
        block.clear();
        std::mem::swap(block, &mut self.rest);
        let mut size = BLOCK;
        loop {
            let filled = block.len();
            let wanted = (size - filled.min(size)) as u64;
            (&mut self.reader).take(wanted).read_to_end(block)?;
            let is_ended = ((block.len() - filled) as u64) < wanted;
            let end = if is_ended { Some(block.len()) } else { sample_end(block) };
            let end = end.or_else(|| (size >= MAX_SAMPLE).then_some(block.len()));
            if let Some(end) = end {
                self.rest.extend_from_slice(&block[end..]);
                block.truncate(end);
                break;
            }
            size *= 2;
        }
        if block.is_empty() {
            return Ok(None);
        }
        let before = self.lines;
        self.lines += memchr::memchr_iter(b'\n', block).count() as u64;
        Ok(Some(before))
    }
}

/// Behind the last blank line; where there is none and no line is indented, samples have a line
/// each, and it is behind the last line.
fn sample_end(block: &[u8]) -> Option<usize> {
    let mut end = memrchr(b'\n', block)?;
    loop {
        let start = memrchr(b'\n', &block[..end]).map_or(0, |at| at + 1);
        if block[start..end].trim_ascii().is_empty() {
            return Some(end + 1);
        }
        if start == 0 {
            break;
        }
        end = start - 1;
    }
    let is_indented = |line: &[u8]| line.first().is_some_and(u8::is_ascii_whitespace);
    let has_frames = block.split(|byte| *byte == b'\n').any(is_indented);
    (!has_frames).then(|| memrchr(b'\n', block).map_or(0, |at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_behind_blank_lines_and_count_their_lines() {
        let sample = format!("a 1 1.0: cycles:\n\t  7f main (/x)\n{}\r\n", " ".repeat(40));
        let text = sample.repeat(40_000);
        let mut blocks = Blocks::new(text.as_bytes());
        let (mut block, mut all, mut count) = (Vec::new(), Vec::new(), 0);
        while let Some(lines) = blocks.next_block(&mut block).unwrap() {
            assert_eq!(lines, memchr::memchr_iter(b'\n', &all).count() as u64);
            assert!(block.len() <= BLOCK && block.len() % sample.len() == 0);
            all.extend_from_slice(&block);
            count += 1;
        }
        assert!(count > 2 && all == text.as_bytes());
        assert_eq!(sample_end(b"a 1 x:\nb 2 x:\nc"), Some(14));
        assert_eq!(sample_end(b"a 1 x:\n\tff main (x)\n"), None);
    }
}
