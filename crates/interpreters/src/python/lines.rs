//! Which line a position in the code has: the tables of all versions.
//!
//! Sources: Objects/lnotab_notes.txt of 3.8 to 3.10, Objects/locations.md of 3.11.

use super::layout::Lines;

/// The line of a position, in bytes from the first instruction; `None` where the table says that it has
/// none, or does not reach it.
pub(crate) fn line(lines: Lines, table: &[u8], first: u32, position: i64) -> Option<u32> {
    if position < 0 {
        return Some(first);
    }
    let first = i64::from(first);
    let line = match lines {
        Lines::Pairs => pairs(table, first, position),
        Lines::Ranges => ranges(table, first, position),
        Lines::Locations => locations(table, first, position),
    };
    line.and_then(|line| u32::try_from(line).ok())
}

/// Pairs of how many bytes further on how many lines further on begin.
fn pairs(table: &[u8], mut line: i64, position: i64) -> Option<i64> {
    let mut at = 0;
    for pair in table.chunks_exact(2) {
        at += i64::from(pair[0]);
        if at > position {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    Some(line)
}

/// Pairs of how many bytes stand on a line, and how far that is from the one before; -128 = on none.
fn ranges(table: &[u8], mut line: i64, position: i64) -> Option<i64> {
    let mut at = 0;
    for pair in table.chunks_exact(2) {
        let delta = pair[1].cast_signed();
        line += if delta == i8::MIN { 0 } else { i64::from(delta) };
        at += i64::from(pair[0]);
        if at > position {
            return (delta != i8::MIN).then_some(line);
        }
    }
    None
}

/// Entries: how many units of two bytes stand there, and, by their kind, how far the line is from the
/// one before.
fn locations(table: &[u8], mut line: i64, position: i64) -> Option<i64> {
    let (mut at, mut bytes) = (0, table.iter().copied());
    while let Some(first) = bytes.next() {
        let (kind, units) = (first >> 3 & 15, i64::from(first & 7) + 1);
        let mut has_line = true;
        match kind {
            0..=9 => _ = bytes.next()?,
            10..=12 => {
                line += i64::from(kind) - 10;
                bytes.nth(1)?;
            }
            13 => line = line.checked_add(signed(&mut bytes)?)?,
            14 => {
                line = line.checked_add(signed(&mut bytes)?)?;
                for _ in 0..3 {
                    unsigned(&mut bytes)?;
                }
            }
            _ => has_line = false,
        }
        at += 2 * units;
        if at > position {
            return has_line.then_some(line);
        }
    }
    None
}

/// A number in groups of six bits, the lowest first; bit 6 says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut number = 0;
    for shift in (0..36).step_by(6) {
        let byte = bytes.next()?;
        number |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

/// The same with the sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let number = unsigned(bytes)?;
    Some(if number & 1 == 0 { number >> 1 } else { -(number >> 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: Lines, table: &[u8], expect: &[Option<u32>]) {
        let found: Vec<_> =
            (0..expect.len()).map(|index| line(lines, table, 10, 2 * index as i64)).collect();
        assert_eq!(found, expect, "{lines:?} {table:?}");
        assert_eq!(line(lines, table, 10, -2), Some(10));
        for end in 0..table.len() {
            let _ = line(lines, &table[..end], 10, 1 << 40);
        }
    }

    #[test]
    fn tables_of_all_versions_are_read() {
        // Four bytes of line 10, two of 12, then 11.
        let table = [4, 2, 2, 0xff];
        check(Lines::Pairs, &table, &[10, 10, 12, 11, 11].map(Some));
        // The same; two bytes of none in between.
        let table = [4, 0, 2, 2, 2, 0x80, 2, 0xff];
        check(Lines::Ranges, &table, &[Some(10), Some(10), Some(12), None, Some(11), None]);
        // Short form; one line on; a varint of +3 with and without columns; nothing; -2.
        let table = [
            0x80 | 1,
            0x12,
            0x80 | 11 << 3,
            1,
            2,
            0x80 | 13 << 3,
            6,
            0x80 | 14 << 3,
            6,
            64,
            1,
            0,
            0,
            0x80 | 15 << 3,
            0x80 | 13 << 3,
            5,
        ];
        let expect = [Some(10), Some(10), Some(11), Some(14), Some(17), None, Some(15), None];
        check(Lines::Locations, &table, &expect);
    }

    #[test]
    fn numbers_without_an_end_are_none() {
        assert_eq!(
            line(Lines::Locations, &[0x80 | 13 << 3, 64, 64, 64, 64, 64, 64, 1], 1, 0),
            None
        );
        assert_eq!(line(Lines::Locations, &[0x80 | 13 << 3, 65], 1, 0), None);
    }
}
