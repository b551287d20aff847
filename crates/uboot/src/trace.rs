//! A trace file: its chunks, found without reading their records, and the records as a stream.
//!
//! The complete part of a truncated file is used, and the rest counted. The file is not held in
//! memory.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::detect::detect;
use crate::error::UbootError;
use crate::layout::{ChunkKind, HeaderFormat, Layout};
use crate::record::{RECORD_LEN, Record};

/// Records that are read at once.
const BLOCK: usize = 8192;

/// A chunk of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What it holds.
    pub kind: ChunkKind,
    /// Where its records start in the file, in bytes.
    pub offset: u64,
    /// How many records its header says.
    pub declared: u64,
    /// How many of them are whole in the file.
    pub whole: u64,
    /// The version in its header, where that has one.
    pub version: Option<u32>,
    /// CONFIG_TEXT_BASE, where its header has it; 0 on the sandbox.
    pub text_base: Option<u64>,
}

/// A trace file that was opened.
#[derive(Debug)]
pub struct Trace<R> {
    input: BufReader<R>,
    len: u64,
    layout: Layout,
    chunks: Vec<Chunk>,
    left_over: u64,
}

impl<R: Read + Seek> Trace<R> {
    /// Recognises the layout of a file and finds its chunks.
    ///
    /// # Errors
    /// [`UbootError::NotATrace`] for anything else, and what reading fails with.
    pub fn open(input: R) -> Result<Trace<R>, UbootError> {
        let mut input = BufReader::new(input);
        let len = input.seek(SeekFrom::End(0))?;
        let layout = detect(&mut input, len)?;
        let mut walk = Walk { input: &mut input, len, layout, at: 0 };
        let mut chunks = Vec::new();
        while let Some(chunk) = walk.next_chunk()? {
            chunks.push(chunk);
        }
        let left_over = len - walk.at;
        Ok(Trace { input, len, layout, chunks, left_over })
    }

    /// How many bytes the file has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none, which no trace has.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How it is laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Its chunks, in their order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The calls chunk of that number, counted from 1, or the last one.
    ///
    /// # Errors
    /// [`UbootError::NoSuchChunk`].
    pub fn calls(&self, number: Option<usize>) -> Result<Chunk, UbootError> {
        let calls: Vec<&Chunk> =
            self.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Calls).collect();
        let asked = number.unwrap_or(calls.len().max(1));
        let found = asked.checked_sub(1).and_then(|index| calls.get(index));
        found.map(|chunk| **chunk).ok_or(UbootError::NoSuchChunk { asked, have: calls.len() })
    }

    /// How many bytes behind the last chunk are not a chunk.
    pub fn left_over(&self) -> u64 {
        self.left_over
    }

    /// Calls `take` with the whole records of a calls chunk, in their order.
    ///
    /// # Errors
    /// What reading or `take` fails with.
    pub fn records<E: From<io::Error>>(
        &mut self,
        chunk: Chunk,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.blocks::<RECORD_LEN, E>(chunk.offset, chunk.whole, |bytes| take(Record::parse(bytes)))
    }

    /// Calls `take` with the offset and the number of calls of each function of a list.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn functions(&mut self, chunk: Chunk, mut take: impl FnMut(u32, u32)) -> io::Result<()> {
        self.blocks::<8, io::Error>(chunk.offset, chunk.whole, |bytes| {
            let [a, b, c, d, e, f, g, h] = *bytes;
            take(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            Ok(())
        })
    }

    /// Calls `take` with records of this many bytes, of which all words are little-endian.
    fn blocks<const LEN: usize, E: From<io::Error>>(
        &mut self,
        offset: u64,
        count: u64,
        mut take: impl FnMut(&[u8; LEN]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.input.seek(SeekFrom::Start(offset))?;
        let mut buffer = vec![0; BLOCK * LEN];
        let mut left = count;
        while left > 0 {
            let now = left.min(BLOCK as u64);
            let block = &mut buffer[..now as usize * LEN];
            self.input.read_exact(block)?;
            self.layout.order.to_little_endian(block);
            for bytes in block.as_chunks::<LEN>().0 {
                take(bytes)?;
            }
            left -= now;
        }
        Ok(())
    }
}

/// Goes from header to header.
pub(crate) struct Walk<'r, R> {
    pub(crate) input: &'r mut R,
    pub(crate) len: u64,
    pub(crate) layout: Layout,
    /// Where the next header is.
    pub(crate) at: u64,
}

impl<R: Read + Seek> Walk<'_, R> {
    /// The next chunk; `None` where there is none, and `at` stays then. Headers that are nothing
    /// but zeros are skipped: they contain nothing, and buffers are saved including their unused end.
    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let header_len = self.layout.header_len();
        let mut buffer = [0; 32];
        let bytes = &mut buffer[..header_len];
        self.input.seek(SeekFrom::Start(self.at))?;
        let mut start = self.at;
        loop {
            if self.len - start < header_len as u64 {
                return Ok(None);
            }
            self.input.read_exact(bytes)?;
            start += header_len as u64;
            if bytes.iter().any(|byte| *byte != 0) {
                break;
            }
            if self.at > 0 {
                self.at = start;
            }
        }
        let Some(header) = self.layout.header(bytes) else { return Ok(None) };
        let behind_first = self.layout.header == HeaderFormat::Versioned && self.at > 0;
        if behind_first && header.kind == ChunkKind::Calls && header.version != Some(1) {
            return Ok(None);
        }
        let record_len = header.kind.record_len();
        let whole = header.count.min((self.len - start) / record_len);
        let is_whole = whole == header.count;
        self.at = if is_whole { start + whole * record_len } else { self.len };
        Ok(Some(Chunk {
            kind: header.kind,
            offset: start,
            declared: header.count,
            whole,
            version: header.version,
            text_base: header.text_base,
        }))
    }
}

#[cfg(test)]
mod tests;
