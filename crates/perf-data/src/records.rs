//! Records one after the other out of large blocks, without copying what they hold.

use std::io;
use std::rc::Rc;

use flame_events::{Endianness, Fields, RecordBytes};

use crate::bytes::{ReadAt, read_full};

/// How much is read at a time, in bytes; a record has at most 64 KiB.
const BLOCK: usize = 1 << 20;

/// No record has a kind like that: perf's and simpleperf's are far below. What does starts another file, or is
/// none of perf's.
const NO_KIND: u32 = 1 << 16;

/// Type, misc and length of a record.
pub(crate) const HEADER: usize = 8;

/// A record that keeps the block that it is in.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    block: Rc<Vec<u8>>,
    start: u32,
    end: u32,
}

impl Record {
    /// What stands behind its header.
    pub(crate) fn body(&self) -> &[u8] {
        self.block.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// How long it is, its header included.
    pub(crate) fn len(&self) -> usize {
        self.body().len() + HEADER
    }

    pub(crate) fn bytes(&self) -> RecordBytes<'_> {
        RecordBytes { record_type: self.kind, misc: self.misc, head: self.body(), tail: &[] }
    }
}

/// What stands at a place among records.
#[derive(Debug)]
pub(crate) enum Next {
    Record(Record),
    /// More bytes than there are.
    Cut,
    /// No record: its length or its kind is that of none.
    Broken,
}

/// The record at a place of a block.
pub(crate) fn record_at(block: &Rc<Vec<u8>>, at: usize, endian: Endianness) -> Next {
    let rest = block.get(at..).unwrap_or_default();
    let mut fields = Fields::new(rest, endian);
    let (Some(kind), Some(misc), Some(len)) = (fields.u32(), fields.u16(), fields.u16()) else {
        return Next::Cut;
    };
    let len = usize::from(len);
    if len < HEADER || kind >= NO_KIND {
        return Next::Broken;
    }
    if rest.len() < len {
        return Next::Cut;
    }
    // Blocks are far below 4 GiB.
    let (Ok(start), Ok(end)) = (u32::try_from(at + HEADER), u32::try_from(at + len)) else {
        return Next::Broken;
    };
    Next::Record(Record { kind, misc, block: block.clone(), start, end })
}

/// How the records of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Where they should.
    Whole,
    /// Within a record.
    Cut,
    /// At what is not a record.
    Broken,
}

/// The records of a part of a file.
pub(crate) struct Records<'s> {
    input: Box<dyn ReadAt + 's>,
    endian: Endianness,
    block: Rc<Vec<u8>>,
    /// Where in the block the next record is.
    at: usize,
    /// Where in the file the block ends.
    block_end: u64,
    /// Where in the file the records end, where that is known.
    end: Option<u64>,
    pub(crate) ended: Option<End>,
}

impl std::fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("at", &self.place()).field("end", &self.end).finish()
    }
}

impl<'s> Records<'s> {
    pub(crate) fn new(
        input: Box<dyn ReadAt + 's>,
        endian: Endianness,
        start: u64,
        end: Option<u64>,
    ) -> Records<'s> {
        let block = Rc::default();
        Records { input, endian, block, at: 0, block_end: start, end, ended: None }
    }

    /// Where in the file the next record is.
    pub(crate) fn place(&self) -> u64 {
        self.block_end - (self.block.len() - self.at) as u64
    }

    /// The next record, which stays the next one.
    pub(crate) fn peek(&mut self) -> io::Result<Option<Record>> {
        if self.ended.is_some() {
            return Ok(None);
        }
        let mut next = record_at(&self.block, self.at, self.endian);
        if matches!(next, Next::Cut) {
            self.refill()?;
            next = record_at(&self.block, self.at, self.endian);
        }
        let end = match next {
            Next::Record(record) => return Ok(Some(record)),
            Next::Cut if self.at < self.block.len() => End::Cut,
            // A file that ends before its data do.
            Next::Cut if self.end.is_some_and(|end| self.block_end < end) => End::Cut,
            Next::Cut => End::Whole,
            Next::Broken => End::Broken,
        };
        self.ended = Some(end);
        Ok(None)
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        let record = self.peek()?;
        if let Some(record) = &record {
            self.at = record.end as usize;
        }
        Ok(record)
    }

    /// Steps over bytes that are not records.
    pub(crate) fn skip(&mut self, len: u64) -> io::Result<()> {
        let place = self.place().saturating_add(len);
        let at = usize::try_from(len).ok().map(|len| self.at.saturating_add(len));
        if let Some(at) = at.filter(|at| *at <= self.block.len()) {
            self.at = at;
        } else if self.input.read_at(place - 1, &mut [0])? == 1 {
            (self.block, self.at, self.block_end) = (Rc::default(), 0, place);
        } else {
            self.ended = Some(End::Cut);
        }
        Ok(())
    }

    /// Another block, which starts with what is left of this one.
    fn refill(&mut self) -> io::Result<()> {
        let left = self.block.get(self.at..).unwrap_or_default();
        let room = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.block_end));
        let room = usize::try_from(room).unwrap_or(BLOCK).min(BLOCK);
        let kept = left.len();
        let mut block = Vec::with_capacity(kept + room);
        block.extend_from_slice(left);
        block.resize(kept + room, 0);
        let count = read_full(&mut *self.input, self.block_end, &mut block[kept..])?;
        block.truncate(kept + count);
        self.block_end += count as u64;
        (self.block, self.at) = (Rc::new(block), 0);
        Ok(())
    }
}
