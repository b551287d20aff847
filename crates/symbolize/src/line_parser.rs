//! Turns the words of a line into numbers; common to kallsyms and perf maps.

/// The bytes before the first space, and those after it.
pub(crate) fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &[]),
    }
}

/// A hexadecimal number, with or without `0x`; `None` when it has other characters, no digit, or
/// more than 64 bits.
pub(crate) fn parse_hex(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X")).unwrap_or(word);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        if number >> 60 != 0 {
            return None;
        }
        Some(number << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_numbers_have_at_most_64_bits() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"7f3a10000040", Some(0x7f3a_1000_0040)),
            (b"0xABCdef", Some(0xab_cdef)),
            (b"ffffffffffffffff", Some(u64::MAX)),
            (b"00000000000000000001", Some(1)),
            (b"10000000000000000", None),
            (b"", None),
            (b"0x", None),
            (b"12g", None),
            (b"-1", None),
        ];
        for (word, expect) in cases {
            assert_eq!(parse_hex(word), expect, "{}", String::from_utf8_lossy(word));
        }
    }

    #[test]
    fn a_word_ends_at_the_first_space() {
        assert_eq!(split_word(b"a b c"), (&b"a"[..], &b"b c"[..]));
        assert_eq!(split_word(b"a"), (&b"a"[..], &b""[..]));
        assert_eq!(split_word(b""), (&b""[..], &b""[..]));
    }
}
