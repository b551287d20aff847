//! A column of the tree: numbers into LEB128, bytes into base64 of raw deflate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libdeflater::{CompressionLvl, Compressor};

/// A compressed column.
#[derive(Debug)]
pub(super) struct Column {
    /// Bytes before the compression.
    pub(super) size: usize,
    /// The compressed bytes in base64.
    pub(super) text: String,
}

/// Up to here better compression costs no time that anyone could notice.
const SMALL: usize = 1 << 14;
/// Of that of small columns, and of others: on columns of few repetitions the next one takes several
/// times as long for some percent.
const LEVELS: [i32; 2] = [9, 1];

/// Appends a number: seven bits a byte, the lowest first, all bytes but the last marked.
fn push(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Numbers one behind the other.
pub(super) fn leb(numbers: impl ExactSizeIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() + numbers.len() / 4 + 16);
    for number in numbers {
        push(number, &mut bytes);
    }
    bytes
}

/// Compresses columns one after the other, with the same tables: making them costs as much as
/// compressing a small column.
#[derive(Default)]
pub(super) struct Packer {
    compressors: [Option<Compressor>; LEVELS.len()],
    packed: Vec<u8>,
}

impl Packer {
    /// Compresses the bytes of a column; the same bytes give the same text.
    pub(super) fn pack(&mut self, bytes: &[u8]) -> Column {
        let size = usize::from(bytes.len() > SMALL);
        let new =
            || Compressor::new(CompressionLvl::new(LEVELS[size]).expect("levels are 0 to 12"));
        let deflate = self.compressors[size].get_or_insert_with(new);
        self.packed.resize(deflate.deflate_compress_bound(bytes.len()), 0);
        let length = deflate.deflate_compress(bytes, &mut self.packed);
        let length = length.expect("the bound is never too small");
        Column { size: bytes.len(), text: STANDARD.encode(&self.packed[..length]) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8]) {
        let mut packer = Packer::default();
        packer.pack(b"something else before");
        let column = packer.pack(bytes);
        assert_eq!(column.size, bytes.len());
        let packed = STANDARD.decode(&column.text).unwrap();
        let mut found = Vec::new();
        DeflateDecoder::new(packed.as_slice()).read_to_end(&mut found).unwrap();
        assert_eq!(found, bytes);
    }

    #[test]
    fn what_is_compressed_comes_back() {
        check(b"");
        check(b"\0");
        check(&b"main\nread\n".repeat(50_000));
        // Bytes without any pattern become longer.
        let mut state = 1u32;
        let noise: Vec<u8> = (0..600_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        check(&noise);
    }

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let cases: [(u64, &[u8]); 5] = [
            (0, &[0]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (number, expect) in cases {
            assert_eq!(leb([number].into_iter()), expect, "{number}");
        }
    }
}
