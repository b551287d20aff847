//! Names and lines of functions, as they stand in memory: written down once for each.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::layout::{
    CLASS, CLASS_NAME, EVAL, HASH, INTERNAL, LEN, LINE, NAME, PhpLayout, STRIDE, TEXT, TYPE,
};
use crate::catch::Catcher;
use crate::caught::{Defined, UTF_8};
use crate::lua::recall::Recall;
use crate::memory::{Memory, byte, half, word};

/// The most bytes of a text.
const MOST_TEXT: usize = 512;

/// The most instructions of a function whose lines are written down. One of more has that of its definition.
const MOST_INSTRUCTIONS: usize = 8192;

/// Instructions that are read at once.
const BATCH: usize = 1024;

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'f> {
    pub(super) layout: &'f PhpLayout,
    /// As far as it was read: all of one of a program.
    pub(super) bytes: &'f [u8],
}

impl Function<'_> {
    pub(super) fn kind(&self) -> u8 {
        byte(self.bytes, TYPE).unwrap_or(0)
    }

    pub(super) fn is_internal(&self) -> bool {
        self.kind() == INTERNAL
    }

    /// The text that is its name; 0 = it has none.
    pub(super) fn name(&self) -> u64 {
        word(self.bytes, NAME).unwrap_or(0)
    }

    fn class(&self) -> u64 {
        word(self.bytes, CLASS).unwrap_or(0)
    }

    /// The text that is the name of its file.
    fn file(&self) -> u64 {
        word(self.bytes, self.layout.file).unwrap_or(0)
    }

    /// Where its instructions start, and how many there are.
    pub(super) fn code(&self) -> (u64, u32) {
        let count = half(self.bytes, self.layout.count).unwrap_or(0);
        (word(self.bytes, self.layout.code).unwrap_or(0), count)
    }

    /// How many instructions there are to be written down.
    fn instructions(&self) -> usize {
        let count = if self.is_internal() { 0 } else { self.code().1 };
        usize::try_from(count).ok().filter(|count| *count <= MOST_INSTRUCTIONS).unwrap_or(0)
    }

    /// The first line and the last one.
    fn lines(&self) -> [u32; 2] {
        let line = |at| half(self.bytes, self.layout.file + at).unwrap_or(0);
        [line(8), line(12)]
    }

    /// A number that no other function has: closures are objects, and share what they were made of.
    pub(super) fn told_by(&self, pid: u32, recall: &mut Recall, memory: &dyn Memory) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u32(pid);
        hasher.write_u8(self.kind());
        hasher.write_u64(self.class());
        let texts = [self.name(), if self.is_internal() { 0 } else { self.file() }];
        for text in texts {
            hasher.write_u64(text);
            let head = recall.get(text, TEXT, memory).unwrap_or_default();
            hasher.write_u64(word(head, HASH).unwrap_or(0));
            hasher.write_u64(word(head, LEN).unwrap_or(0));
        }
        if !self.is_internal() {
            let (code, count) = self.code();
            hasher.write_u64(code);
            [count, self.lines()[0], self.lines()[1]].iter().for_each(|it| hasher.write_u32(*it));
        }
        // Odd, that it is none of those that stand for something else.
        hasher.finish() | 3
    }
}

/// Writes down what a function is, unless that was done before.
pub(super) fn define(
    catcher: &mut Catcher,
    told_by: u64,
    function: Function<'_>,
    memory: &dyn Memory,
) {
    let room = catcher.definitions.capacity() - catcher.definitions.len();
    // What there is no room for is not read at all, and follows with later samples.
    if !catcher.is_new(told_by) || room < 4 * MOST_TEXT + 4 * function.instructions() {
        return;
    }
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let (texts, code_room) = scratch.split_at_mut(4 * MOST_TEXT);
    let (name_room, file_room) = texts.split_at_mut(2 * MOST_TEXT);
    let name = name(function, memory, name_room);
    let (file, first_line) = match function.is_internal() {
        true => (&b"[internal]"[..], 0),
        false => (text(function.file(), memory, file_room), function.lines()[0].max(1)),
    };
    let lines = lines((function.code().0, function.instructions()), memory, code_room);
    let defined =
        Defined { function: told_by, first_line, name: (UTF_8, name), file: (UTF_8, file), lines };
    if defined.write(&mut catcher.definitions) {
        catcher.note_defined(told_by);
    }
    catcher.scratch = scratch;
}

/// `Class::function`, or what stands for code outside of functions.
fn name<'r>(function: Function<'_>, memory: &dyn Memory, room: &'r mut [u8]) -> &'r [u8] {
    if function.name() == 0 {
        return if function.kind() == EVAL { b"<eval>" } else { b"<main>" };
    }
    let mut class = [0; 8];
    let at = function.class().checked_add(CLASS_NAME).filter(|_| function.class() != 0);
    let class = at.filter(|at| memory.fill(*at, &mut class)).map(|_| u64::from_le_bytes(class));
    let len = class.map_or(0, |class| text(class, memory, room).len());
    if len == 0 {
        return text(function.name(), memory, room);
    }
    let Some((colons, rest)) =
        room.get_mut(len..).and_then(|rest| rest.split_first_chunk_mut::<2>())
    else {
        return &[];
    };
    *colons = *b"::";
    let of_name = text(function.name(), memory, rest).len();
    // Without its own name it would be another function.
    if of_name == 0 { &[] } else { room.get(..len + 2 + of_name).unwrap_or_default() }
}

/// The characters of a text, up to a byte 0: behind that a class without a name has where it is.
fn text<'r>(address: u64, memory: &dyn Memory, room: &'r mut [u8]) -> &'r [u8] {
    let mut head = [0; TEXT];
    if address == 0 || !memory.fill(address, &mut head) {
        return &[];
    }
    let len = word(&head, LEN).map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX));
    let len = len.min(room.len()).min(MOST_TEXT);
    let Some(text) = room.get_mut(..len) else { return &[] };
    if !memory.fill(address.wrapping_add(TEXT as u64), text) {
        return &[];
    }
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(len);
    text.get(..end).unwrap_or_default()
}

/// Writes down which instruction is of which line: four bytes for each.
fn lines<'r>((code, count): (u64, usize), memory: &dyn Memory, room: &'r mut [u8]) -> &'r [u8] {
    let (lines, room) = room.split_at_mut(4 * count);
    for (from, lines) in lines.chunks_mut(4 * BATCH).enumerate() {
        let len = lines.len() / 4 * STRIDE;
        let at = code.wrapping_add((from * BATCH * STRIDE) as u64);
        let Some(bytes) = room.get_mut(..len) else { return &[] };
        if !memory.fill(at, bytes) {
            return &[];
        }
        for (to, instruction) in lines.chunks_exact_mut(4).zip(bytes.chunks_exact(STRIDE)) {
            to.copy_from_slice(&half(instruction, LINE).unwrap_or(0).to_le_bytes());
        }
    }
    lines
}
