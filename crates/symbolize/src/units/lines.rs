//! Turns the line program of a unit into rows: from which address on which line of which file.

use gimli::UnitRef;

use super::effort::{Effort, Unreadable};
use super::file_names::FileNames;
use super::map::CodeRanges;
use crate::debug_info::Reader;

/// The most rows of one unit. The largest that compilers write have some hundred thousand.
const MAX_ROWS: usize = 1 << 22;

/// From `start` up to the next row the code is of that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// An image address.
    pub(crate) start: u64,
    /// A number of [`FileNames`]; `None` where no line is known.
    pub(crate) file: Option<u32>,
    /// From 1; 0 where it is not known.
    pub(crate) line: u32,
}

/// Code that the linker laid out in one piece.
struct Sequence {
    rows: Vec<Row>,
    end: u64,
}

/// The rows of a unit, sorted by address, one at each. Where sequences overlap, which no compiler
/// means, the first one counts.
///
/// # Errors
/// When there are too many.
pub(crate) fn read_rows<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    files: &mut FileNames<'_, 'd>,
    code: &CodeRanges,
    effort: &Effort,
) -> Result<Vec<Row>, Unreadable> {
    let Some(program) = unit.line_program.clone() else { return Ok(Vec::new()) };
    let mut sequences = Vec::new();
    let (mut rows, mut count): (Vec<Row>, usize) = (Vec::new(), 0);
    let mut program = program.rows();
    // What stands before an error is read.
    while let Ok(Some((_, row))) = program.next_row() {
        effort.spend(1)?;
        let start = row.address();
        if row.end_sequence() {
            let rows = std::mem::take(&mut rows);
            sequences.extend(sequence(rows, start, code));
            continue;
        }
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
        let row = Row { start, file: files.number(row.file_index()), line };
        match rows.last_mut() {
            Some(last) if last.start == start => *last = row,
            Some(last) if (last.file, last.line) == (row.file, row.line) => {}
            _ => {
                count += 1;
                if count > MAX_ROWS {
                    return Err(Unreadable::Exhausted);
                }
                rows.push(row);
            }
        }
    }
    sequences.sort_by_key(|sequence| sequence.rows[0].start);
    let mut all: Vec<Row> = Vec::with_capacity(count);
    let mut end = 0;
    for sequence in sequences {
        if sequence.rows[0].start < end {
            continue;
        }
        if all.last().is_some_and(|row| row.start == sequence.rows[0].start) {
            all.pop();
        }
        all.extend_from_slice(&sequence.rows);
        end = sequence.end;
        all.push(Row { start: end, file: None, line: 0 });
    }
    Ok(all)
}

/// The rows of one sequence, if it is of code and in order.
fn sequence(rows: Vec<Row>, end: u64, code: &CodeRanges) -> Option<Sequence> {
    let begin = rows.first()?.start;
    let in_order = rows.is_sorted_by(|a, b| a.start < b.start) && rows.last()?.start < end;
    // An empty row at the end stands for nothing.
    let rows = if in_order { rows } else { ordered(rows, end) };
    (!rows.is_empty() && code.has(&gimli::Range { begin, end })).then_some(Sequence { rows, end })
}

fn ordered(mut rows: Vec<Row>, end: u64) -> Vec<Row> {
    rows.retain(|row| row.start < end);
    rows.sort_by_key(|row| row.start);
    rows.dedup_by_key(|row| row.start);
    rows
}
