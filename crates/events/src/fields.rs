//! Numbers one after the other, in the byte order of the machine that wrote them.

use linux_perf_event_reader::Endianness;

/// Bytes that are read from their start on; what is beyond their end is `None`.
///
/// ```
/// use flame_events::{Endianness, Fields};
///
/// let mut fields = Fields::new(&[0, 0, 0, 2, b'x', b'y', 7], Endianness::BigEndian);
/// let len = fields.u32().unwrap() as usize;
/// assert_eq!((fields.bytes(len), fields.u64()), (Some(&b"xy"[..]), None));
/// assert_eq!(fields.rest(), [7]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    endian: Endianness,
}

impl<'a> Fields<'a> {
    /// Of those bytes.
    pub fn new(bytes: &'a [u8], endian: Endianness) -> Fields<'a> {
        Fields { bytes, endian }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next bytes.
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(bytes)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (number, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        let mut number = *number;
        if self.endian == Endianness::BigEndian {
            number.reverse();
        }
        Some(number)
    }

    /// The next number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.number().map(u16::from_le_bytes)
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.number().map(u64::from_le_bytes)
    }
}
