//! Names and lines of functions, as they stand in memory: written down once for each.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::layout::{CONSTANTS, COUNT, FIRST_LINE, LINE_COUNT, LINES, SOURCE, TEXT};
use crate::catch::Catcher;
use crate::caught::{Defined, UTF_8};
use crate::lua::names::{EVENTS, Name};
use crate::memory::{Memory, Part, half, word};

/// The most bytes of a text.
const MOST_TEXT: usize = 512;

/// The most instructions of a function whose lines are told. One of more has that of its definition.
const MOST_LINES: usize = 8 * 1024;

/// What is added to what a function is told by where it is known what it is called.
const NAMED: u64 = 1 << 63;

/// What the number of a trace ends in, and that of others.
pub(super) const TRACES: u64 = 6;
const FUNCTIONS: u64 = 3;
pub(super) const KINDS: u64 = 7;

/// What is written down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'p> {
    /// A function in Lua: its prototype.
    Lua(&'p [u8]),
    /// One in C.
    C,
    /// A trace that starts in a function.
    Trace(&'p [u8]),
}

/// A number that no other function in Lua has; `kind` tells traces from functions.
fn number(pid: u32, words: [u64; 4], numbers: [u32; 3], kind: u64) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(pid);
    words.into_iter().for_each(|word| hasher.write_u64(word));
    numbers.into_iter().for_each(|number| hasher.write_u32(number));
    hasher.finish() & !KINDS | kind
}

/// That of a function in Lua, or of the traces that start in it.
pub(super) fn told_by(pid: u32, (address, prototype): (u64, &[u8]), is_trace: bool) -> u64 {
    let at = |at| word(prototype, at).unwrap_or(0);
    let numbers = [COUNT, FIRST_LINE, LINE_COUNT].map(|at| half(prototype, at).unwrap_or(0));
    let kind = if is_trace { TRACES } else { FUNCTIONS };
    number(pid, [address, at(SOURCE), at(CONSTANTS), at(LINES)], numbers, kind)
}

/// That of a function in C.
pub(super) fn of_c(pid: u32, function: u64) -> u64 {
    number(pid, [!function, 0, 0, 0], [0; 3], FUNCTIONS)
}

/// Writes down what a function is, unless that was done before: once more where it is known what it is
/// called, and was not.
pub(super) fn define(
    catcher: &mut Catcher,
    memory: &dyn Memory,
    function: u64,
    (source, name): (Source<'_>, Name),
) {
    let names = [function ^ NAMED, function];
    let names = if name == Name::Unknown { &names[..] } else { &names[..1] };
    if names.iter().all(|name| catcher.is_new(*name)) {
        let key = *names.last().unwrap_or(&function);
        write(catcher, memory, (function, key), (source, name));
    }
}

fn write(
    catcher: &mut Catcher,
    memory: &dyn Memory,
    (function, key): (u64, u64),
    (source, name): (Source<'_>, Name),
) {
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let (texts, lines_room) = scratch.split_at_mut(2 * MOST_TEXT);
    let (name_room, file_room) = texts.split_at_mut(MOST_TEXT);
    let name: &[u8] = match (source, name) {
        (Source::Trace(_), _) => b"[trace]",
        (Source::Lua(prototype), _) if half(prototype, FIRST_LINE) == Some(0) => b"<main>",
        (_, Name::Event(event)) => EVENTS.get(event).map_or(&[][..], |event| event.as_bytes()),
        (_, Name::String(at)) => text(at, memory, name_room),
        (_, Name::Unknown) => b"function",
    };
    let (file, first_line, lines) = match source {
        Source::Lua(prototype) | Source::Trace(prototype) => {
            let at = word(prototype, SOURCE).unwrap_or(0);
            let file = match text(at.wrapping_add(TEXT), memory, file_room) {
                [b'@' | b'=', name @ ..] => name,
                [] => b"?",
                // The text of a program itself.
                _ => b"[string]",
            };
            let len = match source {
                Source::Lua(_) => lines(prototype, memory, lines_room).unwrap_or(0),
                _ => 0,
            };
            let table = lines_room.get(..len).unwrap_or_default();
            (file, half(prototype, FIRST_LINE).unwrap_or(0).max(1), table)
        }
        Source::C => (&b"[C]"[..], 0, &[][..]),
    };
    let name = if name.is_empty() { b"function" } else { name };
    let defined = Defined { function, first_line, name: (UTF_8, name), file: (UTF_8, file), lines };
    if defined.write(&mut catcher.definitions) {
        catcher.note_defined(key);
    }
    catcher.scratch = scratch;
}

/// A text, up to a byte 0.
fn text<'r>(address: u64, memory: &dyn Memory, room: &'r mut [u8]) -> &'r [u8] {
    let len = memory.read(&[Part { address, len: room.len() }], room);
    let read = room.get(..len).unwrap_or_default();
    let end = read.iter().position(|byte| *byte == 0).unwrap_or(read.len());
    read.get(..end).unwrap_or_default()
}

/// Writes down which instruction is of which line, four bytes each: how many bytes that takes.
fn lines(prototype: &[u8], memory: &dyn Memory, into: &mut [u8]) -> Option<usize> {
    let count = usize::try_from(half(prototype, COUNT)?).ok()?;
    let address = word(prototype, LINES)?;
    let (first, span) = (half(prototype, FIRST_LINE)?, half(prototype, LINE_COUNT)?);
    let width = match span {
        0..256 => 1,
        256..65536 => 2,
        _ => 4,
    };
    if !(1..=MOST_LINES).contains(&count) || address == 0 {
        return None;
    }
    // The first instruction enters the function, and has no entry.
    let (table, rest) = into.split_at_mut_checked(4 * count)?;
    let steps = rest.get_mut(..width * (count - 1))?;
    if !memory.fill(address, steps) {
        return None;
    }
    let steps = steps
        .chunks_exact(width)
        .map(|bytes| bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)));
    for (to, step) in table.as_chunks_mut::<4>().0.iter_mut().zip(std::iter::once(0).chain(steps)) {
        *to = first.wrapping_add(step).max(1).to_le_bytes();
    }
    Some(4 * count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lua::layout::LuaLines;
    use crate::testing::Process;

    #[test]
    fn lines_are_steps_of_one_two_or_four_bytes() {
        for (width, span) in [(1, 20_u32), (2, 300), (4, 70_000)] {
            let mut process = Process::default();
            process.piece(0x1000, 64);
            [0, 3, 19].iter().enumerate().for_each(|(index, step)| {
                process.put_byte(0x1000 + width * index as u64, *step);
            });
            let mut prototype = [0; 104];
            prototype[12] = 4;
            prototype[72] = 10;
            prototype[76..80].copy_from_slice(&span.to_le_bytes());
            prototype[80..88].copy_from_slice(&0x1000_u64.to_le_bytes());
            let mut room = vec![0; 4096];
            let len = lines(&prototype, &process, &mut room).unwrap();
            let line = |at| crate::lua::lines::line(LuaLines::Whole, &room[..len], at);
            assert_eq!([0, 1, 2, 3, 4].map(line), [Some(10), Some(10), Some(13), Some(29), None]);
        }
    }
}
