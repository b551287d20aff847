//! Where the bytes of a file come from: any place that can be read from, or a stream.

use std::io::{self, Read};

/// Bytes that can be read at a place.
pub trait ReadAt {
    /// Fills as much of `into` as there is from byte `at` on; 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..));
        rest.unwrap_or_default().read(into)
    }
}

/// A stream, of which each byte is to be had once, in order.
#[derive(Debug)]
pub struct Forward<R> {
    reader: R,
    at: u64,
}

impl<R: Read> Forward<R> {
    /// A stream that stands at its first byte.
    pub fn new(reader: R) -> Forward<R> {
        Forward { reader, at: 0 }
    }
}

impl<R: Read> ReadAt for Forward<R> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let Some(skipped) = at.checked_sub(self.at) else {
            return Err(io::Error::new(io::ErrorKind::NotSeekable, "a stream was read already"));
        };
        if skipped > 0 {
            self.at += io::copy(&mut self.reader.by_ref().take(skipped), &mut io::sink())?;
        }
        let count = if self.at == at { self.reader.read(into)? } else { 0 };
        self.at += count as u64;
        Ok(count)
    }
}

/// Fills `into` as far as there are bytes; how many there were.
pub(crate) fn read_full(input: &mut dyn ReadAt, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    // The system takes no place beyond that; nothing is there.
    while filled < into.len() && i64::try_from(at).is_ok() {
        match input.read_at(at.saturating_add(filled as u64), &mut into[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Up to `len` bytes, or as many as there are; memory grows with what is there.
pub(crate) fn read_vec(input: &mut dyn ReadAt, at: u64, len: u64) -> io::Result<Vec<u8>> {
    const STEP: usize = 1 << 16;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < len {
        let start = bytes.len();
        let step = usize::try_from(len - start as u64).unwrap_or(STEP).min(STEP);
        bytes.resize(start + step, 0);
        let count = read_full(input, at.saturating_add(start as u64), &mut bytes[start..])?;
        bytes.truncate(start + count);
        if count < step {
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_forward_only() {
        let mut stream = Forward::new(&b"0123456789"[..]);
        assert_eq!(read_vec(&mut stream, 2, 3).unwrap(), b"234");
        assert_eq!(read_vec(&mut stream, 7, 9).unwrap(), b"789");
        assert!(read_vec(&mut stream, 0, 1).is_err());
        assert_eq!(read_vec(&mut &b"abc"[..], u64::MAX - 1, 5).unwrap(), b"");
    }
}
