//! One record of a calls chunk.

/// The bytes of a record.
pub(crate) const RECORD_LEN: usize = 12;

/// The clock of a record starts over after this many microseconds.
pub(crate) const CLOCK_PERIOD: u32 = 1 << 30;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A function was left.
    Exit,
    /// A function was entered.
    Entry,
    /// The address of the text, in files of U-Boot before 2023.04.
    TextBase,
    /// Nothing that U-Boot writes.
    Unknown,
}

/// A function was entered or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which of both.
    pub kind: RecordKind,
    /// The function: bytes from the start of the text, rounded down to a site.
    pub function: u32,
    /// The return address in its caller, in the same way; anything where that is not of the image.
    pub caller: u32,
    /// Microseconds of a clock that starts over every 2^30.
    pub time: u32,
}

impl Record {
    /// A record whose words are little-endian.
    pub(crate) fn parse(bytes: &[u8; RECORD_LEN]) -> Record {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let flags = u32::from_le_bytes([i, j, k, l]);
        let kind = match flags >> 30 {
            0 => RecordKind::Exit,
            1 => RecordKind::Entry,
            2 => RecordKind::TextBase,
            _ => RecordKind::Unknown,
        };
        Record {
            kind,
            function: u32::from_le_bytes([a, b, c, d]),
            caller: u32::from_le_bytes([e, f, g, h]),
            time: flags % CLOCK_PERIOD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ByteOrder;

    #[test]
    fn a_record_is_read_in_both_byte_orders() {
        let little = [0, 0x1f, 6, 0, 0x80, 0x79, 8, 0, 0x21, 0x6b, 0x3e, 0x64];
        let expect = Record {
            kind: RecordKind::Entry,
            function: 0x61f00,
            caller: 0x87980,
            time: 0x243e_6b21,
        };
        assert_eq!(Record::parse(&little), expect);
        let mut big = [0, 6, 0x1f, 0, 0, 8, 0x79, 0x80, 0x64, 0x3e, 0x6b, 0x21];
        ByteOrder::Big.to_little_endian(&mut big);
        assert_eq!(big, little);
    }
}
