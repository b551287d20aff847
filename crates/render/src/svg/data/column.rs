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
const LEVELS: (i32, i32) = (9, 1);

/// Appends a number: seven bits a byte, the lowest first, all bytes but the last marked.
fn push(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers one behind the other.
pub(super) fn leb(numbers: impl ExactSizeIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() + numbers.len() / 4 + 16);
    for number in numbers {
        push(number, &mut bytes);
    }
    bytes
}

/// Compresses the bytes of a column; the same bytes give the same text.
pub(super) fn compress(bytes: &[u8]) -> Column {
    let level = if bytes.len() <= SMALL { LEVELS.0 } else { LEVELS.1 };
    let level = CompressionLvl::new(level).expect("levels are 0 to 12");
    let mut deflate = Compressor::new(level);
    let mut packed = vec![0; deflate.deflate_compress_bound(bytes.len())];
    let length = deflate.deflate_compress(bytes, &mut packed);
    packed.truncate(length.expect("the bound is never too small"));
    Column { size: bytes.len(), text: STANDARD.encode(packed) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8]) {
        let column = compress(bytes);
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
