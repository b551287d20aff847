//! The bytes of a log, wherever they are, read a window at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use flame_profile::{FileOffset, Nanos};
use nix::unistd::{Whence, lseek};

/// How much is read at a time, in bytes.
pub(super) const WINDOW_LEN: usize = 256 << 10;

/// Bytes that may grow while they are read.
#[derive(Debug)]
pub(super) enum Source {
    /// In a file.
    File(File),
    /// In memory.
    Memory(Vec<u8>),
}

impl Source {
    /// Reads what there is at a position, as much as has room; 0 at the end.
    pub(super) fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file) => loop {
                match file.read_at(buffer, position) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => return result,
                }
            },
            Source::Memory(bytes) => {
                let start = usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
                let len = buffer.len().min(bytes.len() - start);
                buffer[..len].copy_from_slice(&bytes[start..start + len]);
                Ok(len)
            }
        }
    }

    /// Reads up to `len` bytes from a position on; fewer where the file ends.
    pub(super) fn bytes(&self, position: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match self.read_at(position.saturating_add(filled as u64), &mut bytes[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The next position that is not in a hole, so that a sparse file costs no time.
    pub(super) fn next_data(&self, position: u64) -> u64 {
        let (Source::File(file), Ok(from)) = (self, i64::try_from(position)) else {
            return position;
        };
        match lseek(file, from, Whence::SeekData) {
            Ok(data) => u64::try_from(data).unwrap_or(position),
            // Nothing but a hole is left.
            Err(nix::errno::Errno::ENXIO) => self.state().map_or(position, |(len, _)| len.0),
            Err(_) => position,
        }
    }

    pub(super) fn state(&self) -> io::Result<(FileOffset, Nanos)> {
        match self {
            Source::File(file) => {
                let metadata = file.metadata()?;
                let seconds = u64::try_from(metadata.mtime()).unwrap_or(0);
                let nanos = u64::try_from(metadata.mtime_nsec()).unwrap_or(0);
                let time = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
                Ok((FileOffset(metadata.len()), Nanos(time)))
            }
            Source::Memory(bytes) => Ok((FileOffset(bytes.len() as u64), Nanos(0))),
        }
    }

    /// Device and inode of a file.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Source::File(file) => file.metadata().ok().map(|data| (data.dev(), data.ino())),
            Source::Memory(_) => None,
        }
    }
}

/// A piece of a source that moves forward: small reads near to each other cost one system call.
#[derive(Debug)]
pub(super) struct Window<'s> {
    source: &'s Source,
    start: u64,
    bytes: Vec<u8>,
}

impl<'s> Window<'s> {
    pub(super) fn new(source: &'s Source) -> Window<'s> {
        Window { source, start: 0, bytes: Vec::new() }
    }

    /// The bytes at a position, at most `WINDOW_LEN`; `None` where the source ends before they do.
    pub(super) fn get(&mut self, position: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let end = position.saturating_add(len as u64);
        if position < self.start || end > self.start + self.bytes.len() as u64 {
            self.bytes = self.source.bytes(position, WINDOW_LEN)?;
            self.start = position;
        }
        let offset = usize::try_from(position - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.get(offset..offset.saturating_add(len)))
    }
}
