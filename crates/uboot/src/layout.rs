//! How the bytes of a trace file are laid out: byte order, chunk headers, sites.
//!
//! | U-Boot | chunk header | site |
//! |---|---|---|
//! | 2013.07 to 2019.07, and 32-bit targets to 2023.01 | u32 type, u32 count | 4 bytes |
//! | 64-bit targets, 2019.10 to 2023.01 | u32 type, 4 bytes of padding, u64 count | 4 bytes |
//! | since 2023.04 | u32 type, u32 version, u32 count, u32 0, u64 text base, u64 0 | 16 bytes |

/// The order of the bytes in a number, which is that of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
}

impl ByteOrder {
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Turns the words of records, which have nothing else in them, into little-endian ones.
    pub(crate) fn to_little_endian(self, records: &mut [u8]) {
        if self == ByteOrder::Big {
            records.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// The shape of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFormat {
    /// 32 bytes with a version: U-Boot 2023.04 and later.
    Versioned,
    /// 16 bytes: 64-bit targets of U-Boot 2019.10 to 2023.01.
    Padded,
    /// 8 bytes: U-Boot 2013.07 to 2019.07, and 32-bit targets to 2023.01.
    Short,
}

/// How a file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The order of bytes in numbers.
    pub order: ByteOrder,
    /// The shape of the headers, from which the size of sites follows.
    pub header: HeaderFormat,
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Entries and exits of functions, 12 bytes each.
    Calls,
    /// Functions with how often each was called, 8 bytes each.
    FunctionList,
}

impl ChunkKind {
    /// The bytes of a record.
    pub(crate) fn record_len(self) -> u64 {
        match self {
            ChunkKind::Calls => 12,
            ChunkKind::FunctionList => 8,
        }
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: ChunkKind,
    pub(crate) version: Option<u32>,
    pub(crate) count: u64,
    pub(crate) text_base: Option<u64>,
    /// Whether all that is known to be zero in the header of a calls chunk is.
    pub(crate) is_sound: bool,
}

impl Layout {
    /// The layout that proftool takes every file for.
    pub const CURRENT: Layout =
        Layout { order: ByteOrder::Little, header: HeaderFormat::Versioned };

    /// All layouts, the likelier ones first.
    pub(crate) const ALL: [Layout; 6] = {
        use ByteOrder::{Big, Little};
        use HeaderFormat::{Padded, Short, Versioned};
        [
            Layout { order: Little, header: Versioned },
            Layout { order: Big, header: Versioned },
            Layout { order: Little, header: Padded },
            Layout { order: Big, header: Padded },
            Layout { order: Little, header: Short },
            Layout { order: Big, header: Short },
        ]
    };

    /// The bytes of a chunk's header.
    pub fn header_len(self) -> usize {
        match self.header {
            HeaderFormat::Versioned => 32,
            HeaderFormat::Padded => 16,
            HeaderFormat::Short => 8,
        }
    }

    /// The bytes that share a number: addresses are rounded down to multiples of it.
    pub fn site_len(self) -> u32 {
        if self.header == HeaderFormat::Versioned { 16 } else { 4 }
    }

    /// The header at the start of `bytes`; `None` if it is not a chunk.
    ///
    /// # Panics
    /// When there are fewer bytes than a header has.
    pub(crate) fn header(self, bytes: &[u8]) -> Option<Header> {
        let four = |at: usize| bytes[at..at + 4].try_into().expect("four bytes were cut out");
        let word = |at: usize| self.order.u32(four(at));
        let long = |at: usize| {
            self.order.u64(bytes[at..at + 8].try_into().expect("eight bytes were cut out"))
        };
        let kind = match word(0) {
            0 => ChunkKind::FunctionList,
            1 => ChunkKind::Calls,
            _ => return None,
        };
        let plain = |count| Header { kind, version: None, count, text_base: None, is_sound: false };
        Some(match self.header {
            HeaderFormat::Short => plain(u64::from(word(4))),
            HeaderFormat::Padded => plain(long(8)),
            HeaderFormat::Versioned if kind == ChunkKind::FunctionList => plain(u64::from(word(8))),
            HeaderFormat::Versioned => Header {
                kind,
                version: Some(word(4)),
                count: u64::from(word(8)),
                text_base: Some(long(16)),
                is_sound: word(4) == 1 && word(12) == 0 && long(24) == 0,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_versions_are_read_in_both_byte_orders() {
        for layout in Layout::ALL {
            let bytes = crate::test_traces::header(layout, 1, 1242, 0x1_8000_0000);
            let header = layout.header(&bytes).unwrap();
            assert_eq!((header.kind, header.count), (ChunkKind::Calls, 1242), "{layout:?}");
            let base = layout.header == HeaderFormat::Versioned;
            assert_eq!(header.text_base, base.then_some(0x1_8000_0000), "{layout:?}");
            assert_eq!(bytes.len(), layout.header_len());
        }
    }

    #[test]
    fn other_types_are_no_chunks() {
        for kind in [2, 0x0100_0000, u32::MAX] {
            let bytes = crate::test_traces::header(Layout::CURRENT, kind, 1, 0);
            assert_eq!(Layout::CURRENT.header(&bytes), None);
        }
    }
}
