//! Which line an instruction is of.
//!
//! Lines are kept for those instructions alone where one begins. Which of them a position belongs to says an index:
//! the first 54 positions have a number of 7 bits each, nine of them in a word; behind those each 512 have a
//! block with a bit for each, and how many bits are set before.

use crate::memory::{half, word};

/// What stands before the lines in a table as [`super::define`] writes it down: how many, and how long each is.
pub(crate) const HEAD: usize = 8;

/// How many positions have numbers, and how many of those are in a word.
const NUMBERS: u64 = 54;
const IN_WORD: u64 = 9;

/// Bytes of the numbers.
const NUMBERS_LEN: usize = 48;

/// How many positions a block is of, and its bytes: how many bits are set before it, and before each word of it, of
/// which that of the first is left out; and the words.
const IN_BLOCK: u64 = 512;
const BLOCK_LEN: usize = 80;
const BEFORE_WORDS: u32 = 8;
const BITS: u32 = 16;

/// Bytes of the index of a code of so many words.
pub(crate) fn index_len(words: u64) -> usize {
    let numbers = words.min(NUMBERS).div_ceil(IN_WORD) * 8;
    let blocks = words.saturating_sub(NUMBERS).div_ceil(IN_BLOCK);
    let len = numbers.saturating_add(blocks.saturating_mul(BLOCK_LEN as u64));
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// The line of a position: the instruction behind the one that runs, counted in words.
pub(crate) fn line(table: &[u8], position: u64) -> Option<u32> {
    let (count, len) = (half(table, 0)?, half(table, 4)?);
    let lines = usize::try_from(u64::from(count) * u64::from(len)).ok()?;
    let (lines, index) = table.get(HEAD..)?.split_at_checked(lines)?;
    let nth = match count {
        0 => return None,
        1 => 1,
        _ => nth(index, position.saturating_sub(1))?,
    };
    let at = nth.checked_sub(1)?.checked_mul(u64::from(len))?;
    half(lines, u32::try_from(at).ok()?).filter(|line| *line != 0)
}

/// Which of the lines, counted from 1.
fn nth(index: &[u8], position: u64) -> Option<u64> {
    let Some(behind) = position.checked_sub(NUMBERS) else {
        let numbers = word(index, u32::try_from(position / IN_WORD * 8).ok()?)?;
        return Some(numbers >> (position % IN_WORD * 7) & 0x7f);
    };
    let block = usize::try_from(behind / IN_BLOCK).ok()?.checked_mul(BLOCK_LEN)?;
    let block = index.get(NUMBERS_LEN.checked_add(block)?..)?;
    let (of_word, bit) = (behind % IN_BLOCK / 64, behind % 64);
    let before = u64::from(half(block, 0)?);
    let before_word = match of_word.checked_sub(1) {
        Some(before) => word(block, BEFORE_WORDS)? >> (before * 9) & 0x1ff,
        None => 0,
    };
    let bits = word(block, BITS + 8 * u32::try_from(of_word).ok()?)?;
    Some(before + before_word + u64::from((bits << (63 - bit)).count_ones()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of a code of so many words, with lines that begin at positions.
    fn table(words: u64, lines: &[(u64, u32)]) -> Vec<u8> {
        let nth = |position| lines.iter().filter(|(from, _)| *from <= position).count() as u64;
        let mut table = [lines.len() as u32, 12].map(u32::to_le_bytes).concat();
        lines.iter().for_each(|(_, line)| {
            table.extend([*line, 7, 0].map(u32::to_le_bytes).concat());
        });
        let mut numbers = [0_u64; 6];
        for position in 0..words.min(NUMBERS) {
            numbers[(position / 9) as usize] |= nth(position) << (position % 9 * 7);
        }
        let mut index: Vec<u8> = numbers.iter().flat_map(|word| word.to_le_bytes()).collect();
        for start in (NUMBERS..words).step_by(512) {
            let begins = |position: u64| lines.iter().any(|(from, _)| *from == position);
            let word = |word: u64| {
                let bit = |bit: &u64| begins(start + 64 * word + bit);
                (0..64).filter(bit).fold(0_u64, |bits, bit| bits | 1 << bit)
            };
            let words = [0, 1, 2, 3, 4, 5, 6, 7].map(word);
            let before =
                |nth: usize| words[..nth].iter().map(|word| word.count_ones()).sum::<u32>();
            let ranks =
                (1..8).fold(0_u64, |ranks, nth| ranks | u64::from(before(nth)) << ((nth - 1) * 9));
            index.extend(nth(start - 1).to_le_bytes());
            index.extend(ranks.to_le_bytes());
            index.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        index.truncate(index_len(words));
        table.extend(index);
        table
    }

    #[test]
    fn lines_are_those_of_the_last_instruction_that_begins_one() {
        let lines: Vec<(u64, u32)> = (0..100).map(|nth| (nth * 13, 1000 + nth as u32)).collect();
        for words in [5, 54, 55, 200, 700, 1300] {
            let of = lines.iter().filter(|(from, _)| *from < words).copied().collect::<Vec<_>>();
            let table = table(words, &of);
            for position in 0..words {
                let expect = of.iter().rfind(|(from, _)| *from <= position).map(|(_, line)| *line);
                assert_eq!(line(&table, position + 1), expect, "{position} of {words}");
            }
            for end in 0..table.len() {
                let _ = line(&table[..end], words);
            }
        }
    }
}
