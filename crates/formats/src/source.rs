//! Where the bytes of an input are: a file that is read in parts side by side, memory, or a stream.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::decompress::{Bytes, Encoding, Trouble, Utf16Reader, is_packed, peeked, unpacked};
use crate::head::HEAD;
use crate::{InputFormat, ReadError};

/// Parts smaller than this are not worth a thread.
const MIN_PART: u64 = 1 << 20;
/// What comes from a pipe or is packed is kept in memory up to this, and read as it comes beyond.
const MAX_MEMORY: u64 = 1 << 24;
/// What the thread that unpacks hands over at a time, and how many of them wait at most.
const BLOCK: usize = 1 << 18;
const WAITING: usize = 8;

/// The bytes of one input, unpacked and, where they were UTF-16, as UTF-8.
#[derive(Debug)]
pub struct Source {
    place: Place,
    trouble: Trouble,
    /// Where the file is, if it is read as it is.
    path: Option<PathBuf>,
}

enum Place {
    /// A regular file: where its bytes start, and its length.
    File(File, u64, u64),
    Memory(Vec<u8>),
    /// What was read already, and what is still to come.
    Stream(Vec<u8>, Mutex<Bytes>),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(file, ..) => f.debug_tuple("File").field(file).finish(),
            Place::Memory(bytes) => f.debug_tuple("Memory").field(&bytes.len()).finish(),
            Place::Stream(start, _) => f.debug_tuple("Stream").field(&start.len()).finish(),
        }
    }
}

impl Source {
    /// Opens a file; `-` is stdin.
    ///
    /// # Errors
    /// Those of the system, and packed data that is broken from its start.
    pub fn open(path: &Path) -> io::Result<Source> {
        if path == Path::new("-") {
            return Source::of_reader(Box::new(io::stdin()));
        }
        Source::of_file(File::open(path)?, path)
    }

    /// A file that was opened at a path.
    ///
    /// # Errors
    /// Those of the system, and packed data that is broken from its start.
    pub fn of_file(file: File, path: &Path) -> io::Result<Source> {
        let status = file.metadata()?;
        if status.is_file() {
            let mut start = [0; 64];
            let count = file.read_at(&mut start, 0)?;
            let start = &start[..count];
            if let (false, Encoding::Bytes { mark }) = (is_packed(start), Encoding::detect(start)) {
                let place = Place::File(file, mark as u64, status.len());
                let path = Some(path.to_owned());
                return Ok(Source { place, trouble: Trouble::default(), path });
            }
        }
        Source::of_reader(Box::new(file))
    }

    /// Bytes in memory, which may be packed.
    ///
    /// # Errors
    /// Packed data that is broken from its start.
    pub fn of_bytes(bytes: Vec<u8>) -> io::Result<Source> {
        Source::of_reader(Box::new(io::Cursor::new(bytes)))
    }

    fn of_reader(reader: Bytes) -> io::Result<Source> {
        let (reader, trouble) = unpacked(reader)?;
        let (start, reader) = peeked(reader)?;
        let mut reader = reader;
        let mut skip = |mark: usize| reader.by_ref().take(mark as u64).read_to_end(&mut Vec::new());
        let mut reader = match Encoding::detect(&start) {
            Encoding::Bytes { mark } => {
                skip(mark)?;
                reader
            }
            Encoding::Utf16 { is_little, mark } => {
                skip(mark)?;
                Box::new(Utf16Reader::new(reader, is_little))
            }
        };
        let mut bytes = Vec::new();
        reader.by_ref().take(MAX_MEMORY).read_to_end(&mut bytes)?;
        let place = if (bytes.len() as u64) < MAX_MEMORY {
            Place::Memory(bytes)
        } else {
            Place::Stream(bytes, Mutex::new(beside(reader)))
        };
        Ok(Source { place, trouble, path: None })
    }

    /// Files next to it that are called as it is, with a number: `data.0` of `data`.
    pub(crate) fn numbered(&self) -> Vec<File> {
        let Some(path) = self.path.as_ref().and_then(|path| path.to_str()) else {
            return Vec::new();
        };
        let open = |number| {
            let path = format!("{path}.{number}");
            // perf writes no links, and a pipe would be waited for.
            open_regular(Path::new(&path)).ok()
        };
        (0..).map_while(open).collect()
    }

    /// The format that its first bytes show.
    ///
    /// # Errors
    /// Those of the system.
    pub fn format(&self) -> io::Result<Option<&'static InputFormat>> {
        Ok(InputFormat::detect(&self.head()?))
    }

    /// Whether there is nothing in it, or blanks alone.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_nothing(&self) -> io::Result<bool> {
        let head = self.head()?;
        Ok(head.len() < HEAD && head.trim_ascii().is_empty())
    }

    /// Its first bytes.
    pub(crate) fn head(&self) -> io::Result<Vec<u8>> {
        match &self.place {
            Place::Memory(bytes) | Place::Stream(bytes, _) => {
                Ok(bytes[..bytes.len().min(HEAD)].to_vec())
            }
            Place::File(_, start, _) => {
                let mut head = Vec::new();
                let part = Part { source: self, at: *start, end: start + HEAD as u64 };
                { part }.read_to_end(&mut head)?;
                Ok(head)
            }
        }
    }

    /// What is wrong with its end, where anything is; known when all is read.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }

    /// All of it, as a stream has it once only.
    pub(crate) fn reader(&mut self) -> Box<dyn Read + Send + '_> {
        if let Place::File(_, start, _) = self.place {
            return Box::new(Part { source: self, at: start, end: u64::MAX });
        }
        match &mut self.place {
            Place::Stream(start, rest) => {
                let rest = rest.get_mut().unwrap_or_else(PoisonError::into_inner);
                Box::new(start.as_slice().chain(rest))
            }
            Place::Memory(bytes) => Box::new(bytes.as_slice()),
            Place::File(..) => Box::new(io::empty()),
        }
    }

    /// The file that it is, where it is one that is read as it stands.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.place {
            Place::File(file, ..) => Some(file),
            _ => None,
        }
    }

    /// All bytes, at most `limit` of them, and what is wrong with how they are packed.
    pub(crate) fn bytes(mut self, limit: u64) -> Result<(Vec<u8>, Option<String>), ReadError> {
        let trouble = self.trouble.clone();
        let bytes = match self.place {
            Place::Memory(bytes) => bytes,
            _ => crate::input::Input::new(self.reader(), 1).bytes(limit)?,
        };
        Ok((bytes, trouble.get()))
    }

    /// At most `most` parts that end where lines do; at least one. A stream has one only, which is
    /// what [`Source::reader`] reads.
    pub(crate) fn parts(&self, most: usize) -> io::Result<Vec<Part<'_>>> {
        let (first, len) = match &self.place {
            Place::File(_, start, len) => (*start, (*len).max(*start)),
            Place::Memory(bytes) => (0, bytes.len() as u64),
            Place::Stream(..) => (0, 0),
        };
        let size = len - first;
        let count = (size / MIN_PART).clamp(1, most.max(1) as u64);
        let mut parts = Vec::new();
        let mut start = first;
        for number in 1..=count {
            let end = if number == count {
                len
            } else {
                self.line_end(start.max(first + size / count * number))?
            };
            parts.push(Part { source: self, at: start, end });
            start = end;
        }
        // A file that grows while it is read is read to its new end.
        if let (Place::File(..), Some(last)) = (&self.place, parts.last_mut()) {
            last.end = u64::MAX;
        }
        Ok(parts)
    }

    /// Whether it can be read from any place on, in parts.
    pub(crate) fn is_seekable(&self) -> bool {
        !matches!(self.place, Place::Stream(..))
    }

    /// Whether it has more than one part, should there be threads for them.
    pub(crate) fn has_parts(&self) -> bool {
        match &self.place {
            Place::File(_, _, len) => *len >= 2 * MIN_PART,
            Place::Memory(bytes) => bytes.len() as u64 >= 2 * MIN_PART,
            Place::Stream(..) => false,
        }
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

    pub(crate) fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.place {
            Place::File(file, ..) => file.read_at(into, at),
            Place::Memory(bytes) | Place::Stream(bytes, _) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                rest.unwrap_or_default().read(into)
            }
        }
    }
}

/// Opens a regular file; a link is not followed and a pipe not waited for.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let not_regular = || Err(io::ErrorKind::InvalidInput.into());
    if !path.symlink_metadata()?.is_file() {
        return not_regular();
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { not_regular() }
}

/// A reader that is read on by a thread of its own: what is packed takes as long to unpack as to
/// understand.
fn beside(mut reader: Bytes) -> Bytes {
    let (to, from) = sync_channel::<io::Result<Vec<u8>>>(WAITING);
    let read_on = move || loop {
        let mut block = Vec::with_capacity(BLOCK);
        let result = reader.by_ref().take(BLOCK as u64).read_to_end(&mut block).map(|_| block);
        let is_last = result.as_ref().map_or(true, Vec::is_empty);
        if to.send(result).is_err() || is_last {
            break;
        }
    };
    thread::spawn(read_on);
    Box::new(Blocks { from, block: io::Cursor::new(Vec::new()) })
}

/// The blocks that another thread reads.
struct Blocks {
    from: Receiver<io::Result<Vec<u8>>>,
    block: io::Cursor<Vec<u8>>,
}

impl Read for Blocks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.block.read(into)?;
        if count > 0 || into.is_empty() {
            return Ok(count);
        }
        // The other thread has ended behind the last block.
        let Ok(block) = self.from.recv() else { return Ok(0) };
        self.block = io::Cursor::new(block?);
        self.block.read(into)
    }
}

impl Part<'_> {
    /// How many bytes it has, as far as is known before it is read.
    pub(crate) fn len(&self) -> u64 {
        let len = match &self.source.place {
            Place::File(_, _, len) => *len,
            Place::Memory(bytes) | Place::Stream(bytes, _) => bytes.len() as u64,
        };
        self.end.min(len).saturating_sub(self.at)
    }
}

/// A run of bytes of a source.
#[derive(Debug)]
pub(crate) struct Part<'s> {
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
        let source = Source::of_bytes(text.clone().into_bytes()).unwrap();
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
        let source = Source::of_bytes(vec![b'x'; 5 << 20]).unwrap();
        let lengths: Vec<usize> = source
            .parts(4)
            .unwrap()
            .into_iter()
            .map(|mut part| part.read_to_end(&mut Vec::new()).unwrap())
            .collect();
        assert_eq!(lengths, [5 << 20, 0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_into_memory_is_read_as_it_comes() {
        let text = "a;b;c 1\n".repeat(3 << 20);
        let mut source = Source::of_bytes(text.clone().into_bytes()).unwrap();
        assert!(!source.is_seekable() && !source.has_parts());
        assert!(source.head().unwrap() == text.as_bytes()[..HEAD]);
        assert!(io::read_to_string(source.reader()).unwrap() == text);
    }
}
