//! Names of functions, as they stand in memory: written down once for each.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::layout::{LuaLayout, LuaLines, PROTOTYPE, TEXT_LEN};
use super::names::{Caller, EVENTS, Name};
use super::recall::Recall;
use crate::catch::Catcher;
use crate::caught::{Defined, UTF_8};
use crate::memory::{Memory, Part, byte, half, word};

/// The most bytes of a text.
const MOST_TEXT: usize = 512;

/// The most bytes of the lines of a function. One of more has that of its definition.
const MOST_LINES: usize = 32 * 1024;

/// What is added to what a function is told by where it is known what it is called.
const NAMED: u64 = 1 << 63;

/// The same where that is what it is called where it is made, and of functions whose own functions are.
const MADE: u64 = 1 << 62;
const CHILDREN: u64 = 1 << 61;

/// The most instructions of a function that are looked through for functions that it makes.
const MOST_CODE: u64 = 1 << 14;

/// How often one sample looks for functions that others make: each part of the code, and each function.
pub(super) const MOST_LOOKS: usize = 512;

/// Instructions that are read at once.
const CODE: usize = 256;

/// What a function is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'p> {
    /// In Lua: its prototype.
    Lua(&'p [u8]),
    /// In C.
    C,
    /// Calls that gave way to what they called last.
    Tails,
}

/// Writes down what a function is, unless that was done before: once more where it is known what it is
/// called, and was not.
pub(super) fn define(
    catcher: &mut Catcher,
    (layout, memory): (&LuaLayout, &dyn Memory),
    function: u64,
    (source, name): (Source<'_>, Name),
) {
    let names = [function ^ MADE, function ^ NAMED, function];
    let names = if name == Name::Unknown { &names[..] } else { &names[..2] };
    if names.iter().all(|name| catcher.is_new(*name)) {
        let key = *names.last().unwrap_or(&function);
        write(catcher, (layout, memory), (function, key), (source, [Name::Unknown, name]));
    }
}

/// Writes down the functions that one makes, and is known to have made: those have names there.
pub(super) fn define_children(
    catcher: &mut Catcher,
    (pid, caller): (u32, Caller<'_>),
    function: u64,
    (recall, memory, looks): (&mut Recall, &dyn Memory, &mut usize),
) {
    if !catcher.is_new(function ^ CHILDREN) || *looks == 0 {
        return;
    }
    // One that takes all of them will do so again.
    let is_first = *looks == MOST_LOOKS;
    let (layout, of) = (caller.layout, &caller.layout.of);
    let len = half(caller.prototype, of.code_len).map_or(0, u64::from).min(MOST_CODE);
    let code = word(caller.prototype, of.code).unwrap_or(0);
    for from in (0..len).step_by(CODE) {
        let mut bytes = [0; 4 * CODE];
        let count = usize::try_from(len - from).unwrap_or(CODE).min(CODE);
        let Some(bytes) = bytes.get_mut(..4 * count) else { break };
        *looks = looks.saturating_sub(1);
        if *looks == 0 || !memory.fill(code.wrapping_add(4 * from), bytes) {
            break;
        }
        for (position, instruction) in (from..).zip(bytes.as_chunks::<4>().0) {
            let Some(number) = layout.code.made(u32::from_le_bytes(*instruction)) else { continue };
            let Some(address) = caller.child(number, recall, memory) else { continue };
            let mut child = [0; PROTOTYPE];
            *looks = looks.saturating_sub(1);
            if *looks == 0 {
                break;
            }
            // The others follow with later samples.
            if !catcher.is_new(function ^ CHILDREN) {
                return;
            }
            let is_child = memory.fill(address, &mut child)
                && word(&child, of.source) == word(caller.prototype, of.source);
            let made = told_by(pid, layout, (address, &child));
            let key = made ^ MADE;
            if !is_child || !catcher.is_new(key) {
                continue;
            }
            let Some(names) = Caller { position, ..caller }.made(recall, memory) else { continue };
            write(catcher, (layout, memory), (made, key), (Source::Lua(&child), names));
        }
    }
    if *looks > 0 || is_first {
        catcher.note(function ^ CHILDREN);
    }
}

/// A number that no other function in Lua has.
pub(super) fn told_by(pid: u32, layout: &LuaLayout, (address, prototype): (u64, &[u8])) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(pid);
    hasher.write_u64(address);
    let of = &layout.of;
    for at in [of.source, of.code, of.constants, of.lines] {
        hasher.write_u64(word(prototype, at).unwrap_or(0));
    }
    for at in [of.first_line, of.first_line + 4, of.code_len] {
        hasher.write_u32(half(prototype, at).unwrap_or(0));
    }
    // Odd, that it is none of those that stand for something else.
    hasher.finish() | 3
}

/// Writes down what a function is.
fn write(
    catcher: &mut Catcher,
    (layout, memory): (&LuaLayout, &dyn Memory),
    (function, key): (u64, u64),
    (source, [table, name]): (Source<'_>, [Name; 2]),
) {
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let (texts, lines_room) = scratch.split_at_mut(2 * MOST_TEXT);
    let (name_room, file_room) = texts.split_at_mut(MOST_TEXT);
    let name: &[u8] = match (source, name) {
        (Source::Tails, _) => b"(...tail calls...)",
        (Source::Lua(prototype), _) if first_line(prototype, layout) == 0 => b"<main>",
        (_, Name::Event(event)) => EVENTS.get(event).map_or(&[][..], |event| event.as_bytes()),
        (_, Name::String(at)) => match table {
            Name::String(table) => field([table, at], layout, memory, name_room),
            _ => string(at, layout, memory, name_room),
        },
        _ => b"function",
    };
    let (file, first_line, lines) = match source {
        Source::Lua(prototype) => {
            let at = word(prototype, layout.of.source).unwrap_or(0);
            let source = match string(at, layout, memory, file_room) {
                [b'@' | b'=', name @ ..] => name,
                [] => b"?",
                // The text of a program itself.
                _ => b"[string]",
            };
            let len = lines(prototype, layout, memory, lines_room).unwrap_or(0);
            let table = lines_room.get(..len).unwrap_or_default();
            (source, first_line(prototype, layout).max(1), table)
        }
        Source::C => (&b"[C]"[..], 0, &[][..]),
        Source::Tails => (&[][..], 0, &[][..]),
    };
    let defined = Defined { function, first_line, name: (UTF_8, name), file: (UTF_8, file), lines };
    if defined.write(&mut catcher.definitions) {
        catcher.note_defined(key);
    }
    catcher.scratch = scratch;
}

/// 0 = that of a whole file.
fn first_line(prototype: &[u8], layout: &LuaLayout) -> u32 {
    half(prototype, layout.of.first_line).unwrap_or(0)
}

/// `table.field`.
fn field<'r>(
    [table, field]: [u64; 2],
    layout: &LuaLayout,
    memory: &dyn Memory,
    room: &'r mut [u8],
) -> &'r [u8] {
    let table = string(table, layout, memory, room).len().min(MOST_TEXT / 2);
    let (before, rest) = room.split_at_mut(table);
    let Some((dot, rest)) = rest.split_first_mut().filter(|_| !before.is_empty()) else {
        return &[];
    };
    *dot = b'.';
    let end = table + 1 + string(field, layout, memory, rest).len();
    room.get(..end).unwrap_or_default()
}

/// The text of a string, up to a byte 0.
fn string<'r>(
    address: u64,
    layout: &LuaLayout,
    memory: &dyn Memory,
    room: &'r mut [u8],
) -> &'r [u8] {
    let Some(address) = text(address, layout, memory).filter(|_| address != 0) else {
        return &[];
    };
    let len = memory.read(&[Part { address, len: room.len() }], room);
    let read = room.get(..len).unwrap_or_default();
    let end = read.iter().position(|byte| *byte == 0).unwrap_or(read.len());
    read.get(..end).unwrap_or_default()
}

/// Where the text of a string is.
fn text(address: u64, layout: &LuaLayout, memory: &dyn Memory) -> Option<u64> {
    let mut head = [0; 32];
    if !layout.has_text_elsewhere {
        return address.checked_add(layout.text.into());
    }
    let head = memory.fill(address, &mut head).then_some(head)?;
    let is_long = byte(&head, TEXT_LEN)?.cast_signed() < 0;
    if is_long { word(&head, layout.text) } else { address.checked_add(layout.text.into()) }
}

/// Writes down which instruction is of which line: how many bytes that takes.
fn lines(
    prototype: &[u8],
    layout: &LuaLayout,
    memory: &dyn Memory,
    into: &mut [u8],
) -> Option<usize> {
    let of = &layout.of;
    let count = half(prototype, of.lines_len)?;
    let len = usize::try_from(count).ok()?;
    let address = word(prototype, of.lines)?;
    if layout.lines == LuaLines::Whole {
        let len = len.checked_mul(4).filter(|len| *len <= MOST_LINES)?;
        return memory.fill(address, into.get_mut(..len)?).then_some(len);
    }
    let (whole, whole_len) = of.whole_lines?;
    let whole_len = usize::try_from(half(prototype, whole_len)?).ok()?.checked_mul(8)?;
    let total = len.checked_add(whole_len)?.checked_add(8).filter(|len| *len <= MOST_LINES)?;
    let (head, rest) = into.get_mut(..total)?.split_at_mut(8);
    for (to, number) in head.chunks_exact_mut(4).zip([first_line(prototype, layout), count]) {
        to.copy_from_slice(&number.to_le_bytes());
    }
    let parts = [Part { address, len }, Part { address: word(prototype, whole)?, len: whole_len }];
    let parts = if whole_len == 0 { &parts[..1] } else { &parts[..] };
    (memory.read(parts, rest) == rest.len()).then_some(total)
}
