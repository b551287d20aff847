//! What the reader of a format reads from.

use std::io::{self, Read};

use crate::ReadError;
use crate::lines::Lines;
use crate::skipped::Skipped;

/// The bytes of one input, decompressed and, where they are text, as UTF-8.
pub(crate) struct Input<'s> {
    reader: Box<dyn Read + Send + 's>,
    threads: usize,
    /// Lines that are too long for any format.
    too_long: Skipped,
}

impl<'s> Input<'s> {
    /// An input that so many threads may read at a time.
    pub(crate) fn new(reader: impl Read + Send + 's, threads: usize) -> Input<'s> {
        Input { reader: Box::new(reader), threads, too_long: Skipped::default() }
    }

    /// Its lines: what most text formats are read by. Memory does not grow with their number.
    pub(crate) fn lines(&mut self) -> Lines<'_, &mut (dyn Read + Send + 's)> {
        Lines::new(&mut *self.reader, &mut self.too_long)
    }

    /// The lines that were left out since they are too long, once all are read.
    pub(crate) fn into_too_long(self) -> Skipped {
        self.too_long
    }

    /// Its bytes as they come.
    pub(crate) fn reader(&mut self) -> &mut (dyn Read + Send + 's) {
        &mut *self.reader
    }

    /// How many threads may read it.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// All bytes, for formats that cannot be read piece by piece; an error beyond `limit` of them.
    pub(crate) fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        (&mut self.reader).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let what = format!("larger than {} MiB", limit >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what).into());
        }
        Ok(bytes)
    }
}
