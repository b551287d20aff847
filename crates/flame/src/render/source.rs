//! Where a profile's bytes are: a file that is read in parts side by side, or memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// How much of a start is looked at to recognise a format.
const HEAD: usize = 1 << 16;
/// Inflated files larger than this are refused: something is wrong with them.
const MAX_INFLATED: u64 = 1 << 36;
/// Parts smaller than this are not worth a thread.
const MIN_PART: u64 = 1 << 20;

/// The bytes of one input.
#[derive(Debug)]
pub(super) enum Source {
    /// A regular file and its length, read as it is needed.
    File(File, u64),
    /// What came from a pipe, or was compressed.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file, or reads stdin or another pipe to its end. Compressed input is inflated.
    pub(super) fn open(path: &Path) -> io::Result<Source> {
        let source = if path == Path::new("-") {
            Source::Memory(read_all(&mut io::stdin().lock())?)
        } else {
            let mut file = File::open(path)?;
            let status = file.metadata()?;
            if status.is_file() {
                Source::File(file, status.len())
            } else {
                Source::Memory(read_all(&mut file)?)
            }
        };
        if source.start(2)? != [0x1f, 0x8b] {
            return Ok(source);
        }
        let mut inflated = Vec::new();
        let mut reader = MultiGzDecoder::new(source.parts(1)?.remove(0)).take(MAX_INFLATED);
        reader.read_to_end(&mut inflated)?;
        if inflated.len() as u64 == MAX_INFLATED {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 GiB inflated"));
        }
        Ok(Source::Memory(inflated))
    }

    /// Its first bytes.
    pub(super) fn head(&self) -> io::Result<Vec<u8>> {
        self.start(HEAD)
    }

    /// So many bytes of it, or all if it has less.
    fn start(&self, len: usize) -> io::Result<Vec<u8>> {
        let mut start = vec![0; len];
        let mut part = Part { source: self, at: 0, end: len as u64 };
        let mut filled = 0;
        while filled < len {
            match part.read(&mut start[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        start.truncate(filled);
        Ok(start)
    }

    /// All bytes.
    pub(super) fn bytes(self) -> io::Result<Vec<u8>> {
        match self {
            Source::File(mut file, _) => read_all(&mut file),
            Source::Memory(bytes) => Ok(bytes),
        }
    }

    /// At most `most` parts that end where lines do; at least one.
    pub(super) fn parts(&self, most: usize) -> io::Result<Vec<Part<'_>>> {
        let len = self.len();
        let count = (len / MIN_PART).clamp(1, most.max(1) as u64);
        let mut parts = Vec::new();
        let mut start = 0;
        for number in 1..=count {
            let end =
                if number == count { len } else { self.line_end(start.max(len / count * number))? };
            parts.push(Part { source: self, at: start, end });
            start = end;
        }
        // A file that grows while it is read is read to its new end.
        if let (Source::File(..), Some(last)) = (self, parts.last_mut()) {
            last.end = u64::MAX;
        }
        Ok(parts)
    }

    /// How many bytes it has.
    fn len(&self) -> u64 {
        match self {
            Source::File(_, len) => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it has more than one part, should there be threads for them.
    pub(super) fn has_parts(&self) -> bool {
        self.len() >= 2 * MIN_PART
    }

    /// Behind the first line end from `at` on.
    fn line_end(&self, at: u64) -> io::Result<u64> {
        let mut part = Part { source: self, at, end: u64::MAX };
        let mut block = [0; 4096];
        loop {
            let start = part.at;
            let count = part.read(&mut block)?;
            match block[..count].iter().position(|byte| *byte == b'\n') {
                Some(found) => return Ok(start + found as u64 + 1),
                None if count == 0 => return Ok(start),
                None => {}
            }
        }
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file, _) => file.read_at(into, at),
            Source::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                rest.unwrap_or_default().read(into)
            }
        }
    }
}

fn read_all(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Part<'_> {
    /// How many bytes it has, as far as is known before it is read.
    pub(super) fn len(&self) -> u64 {
        self.end.min(self.source.len()).saturating_sub(self.at)
    }
}

/// A run of bytes of a source.
#[derive(Debug)]
pub(super) struct Part<'s> {
    source: &'s Source,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(into.len());
        let count = self.source.read_at(self.at, &mut into[..left])?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_lines_do_and_hold_all() {
        let line = format!("{}\n", "x".repeat(99));
        let text = line.repeat(40_000);
        let source = Source::Memory(text.clone().into_bytes());
        let mut found = String::new();
        let parts = source.parts(3).unwrap();
        assert_eq!(parts.len(), 3);
        for mut part in parts {
            let start = found.len();
            part.read_to_string(&mut found).unwrap();
            assert!(found.len() > start && found.ends_with('\n'));
        }
        assert!(found == text);
    }

    #[test]
    fn one_line_is_one_part_however_long() {
        let source = Source::Memory(vec![b'x'; 5 << 20]);
        let lengths: Vec<usize> = source
            .parts(4)
            .unwrap()
            .into_iter()
            .map(|mut part| part.read_to_end(&mut Vec::new()).unwrap())
            .collect();
        assert_eq!(lengths, [5 << 20, 0, 0, 0]);
    }
}
