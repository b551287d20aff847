//! Which line an instruction is of.

use super::layout::LuaLines;
use crate::memory::{byte, half};

/// What stands in place of a step where a line is written down as a whole.
const WHOLE: i8 = -128;

/// The line of an instruction, by its number, in a table as [`super::define`] writes it down: before it the
/// line of the definition, how many steps there are, and behind those the lines that stand as a whole.
pub(crate) fn line(lines: LuaLines, table: &[u8], position: u64) -> Option<u32> {
    let at = u32::try_from(position).ok()?;
    match lines {
        LuaLines::Whole => half(table, at.checked_mul(4)?).filter(|line| *line != 0),
        LuaLines::Steps => {
            let (first, count) = (half(table, 0)?, half(table, 4)?);
            let whole = table.get(8 + usize::try_from(count).ok()?..)?;
            let whole =
                whole.chunks_exact(8).filter_map(|pair| Some((half(pair, 0)?, half(pair, 4)?)));
            let nearest = whole.take_while(|(from, _)| *from <= at).last();
            let (from, line) = nearest.map_or((0, first), |(from, line)| (from + 1, line));
            let mut line = i64::from(line);
            for position in from..=at {
                let step = byte(table, 8 + position).filter(|_| position < count)?.cast_signed();
                line += if step == WHOLE { 0 } else { i64::from(step) };
            }
            u32::try_from(line).ok()
        }
    }
}

/// How many instructions a table is of.
pub(crate) fn count(lines: LuaLines, table: &[u8]) -> u64 {
    match lines {
        LuaLines::Whole => table.len() as u64 / 4,
        LuaLines::Steps => half(table, 4).map_or(0, u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of steps from line 10 on, and of whole lines.
    fn table(steps: &[i8], whole: &[[u32; 2]]) -> Vec<u8> {
        let numbers = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        let mut table = numbers(&[10, steps.len() as u32]);
        table.extend(steps.iter().map(|step| step.cast_unsigned()));
        whole.iter().for_each(|pair| table.extend(numbers(pair)));
        table
    }

    #[test]
    fn lines_are_numbers_or_steps() {
        let whole: Vec<u8> = [7_u32, 7, 9].iter().flat_map(|line| line.to_le_bytes()).collect();
        let lines = [0, 1, 2, 3].map(|at| line(LuaLines::Whole, &whole, at));
        assert_eq!(lines, [Some(7), Some(7), Some(9), None]);
        let steps = table(&[1, 0, -2, WHOLE, 1], &[[3, 4000]]);
        let lines = [0, 1, 2, 3, 4, 5].map(|at| line(LuaLines::Steps, &steps, at));
        assert_eq!(lines, [Some(11), Some(11), Some(9), Some(4000), Some(4001), None]);
        for end in 0..steps.len() {
            let _ = line(LuaLines::Steps, &steps[..end], 4);
        }
    }
}
