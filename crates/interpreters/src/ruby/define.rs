//! Names of functions, as they stand in memory: written down once for each.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::layout::{
    DEFINITION, DEFINITION_KIND, DEFINITION_LEN, FILE, FIRST_LINE, INSTRUCTIONS, KIND_IN_C, LABEL,
    LINES_INDEX, LINES_LEN, METHOD_LABEL, NATIVE, ORIGINAL_NAME, OWNER, WORDS,
};
use super::lines;
use super::objects::{MOST_TEXT, Objects};
use crate::catch::Catcher;
use crate::caught::{Defined, UTF_8};
use crate::memory::{Part, half, word};

/// A name in its parts: what stands before the class, the class and what stands behind it, the method.
type Parts<'p> = (&'p [u8], (&'p [u8], &'static str), &'p [u8]);

/// The most bytes of the lines of a function. One of more has that of its definition.
const MOST_LINES: usize = 32 * 1024;

/// How many of them one sample writes down at most: each takes some 40 readings.
const MOST_NEW: u32 = 32;

/// What runs in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame<'f> {
    /// Code of the program: where it is, its body, the method that it is in, and whether it is a block that is a
    /// method itself.
    Of { code: u64, body: &'f [u8], method: Option<&'f [u8]>, is_method: bool },
    /// A method in C.
    OfC { method: &'f [u8] },
}

/// Writes down what runs in a frame, unless that was done before: the number that it is told by.
pub(super) fn define(
    catcher: &mut Catcher,
    (pid, objects): (u32, &Objects<'_>),
    frame: Frame<'_>,
) -> u64 {
    let function = told_by(pid, objects, frame);
    if catcher.defined_now < MOST_NEW && catcher.is_new(function) {
        write(catcher, objects, (function, frame));
    }
    function
}

/// A number that nothing else has that runs in frames.
fn told_by(pid: u32, objects: &Objects<'_>, frame: Frame<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(pid);
    if let Frame::Of { code, body, is_method, .. } = frame {
        hasher.write_u64(code);
        let lines = objects.layout.lines;
        for at in [INSTRUCTIONS, FILE, METHOD_LABEL, LABEL, FIRST_LINE, lines, lines + LINES_INDEX]
        {
            hasher.write_u64(word(body, at).unwrap_or(0));
        }
        hasher.write_u32(half(body, WORDS).unwrap_or(0));
        hasher.write_u8(is_method.into());
    }
    let method = match frame {
        Frame::Of { method, .. } => method,
        Frame::OfC { method } => Some(method),
    };
    for at in [DEFINITION, OWNER] {
        hasher.write_u64(method.and_then(|method| word(method, at)).unwrap_or(0));
    }
    // Odd, that it is none of those that stand for something else.
    hasher.finish() | 3
}

/// Writes down what runs in a frame.
fn write(catcher: &mut Catcher, objects: &Objects<'_>, (function, frame): (u64, Frame<'_>)) {
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let (texts, lines_room) = scratch.split_at_mut(8 * MOST_TEXT);
    let (name_room, file_room) = texts.split_at_mut(7 * MOST_TEXT);
    let name = name(objects, frame, name_room);
    let native;
    let (file, first_line, lines) = match frame {
        Frame::Of { body, .. } => {
            let file = match objects.path(word(body, FILE).unwrap_or(0), file_room) {
                // From 3.3 on with the place of the eval, whose path is no file's.
                file if file.starts_with(b"(eval at ") => b"(eval)",
                file => file,
            };
            let len = table(objects, body, lines_room).unwrap_or(0);
            (file, first_line(objects, body), lines_room.get(..len).unwrap_or_default())
        }
        Frame::OfC { method } => {
            native = definition(objects, method).and_then(|definition| {
                let kind = word(&definition, 0)? & DEFINITION_KIND;
                word(&definition, NATIVE).filter(|_| kind == KIND_IN_C).map(u64::to_le_bytes)
            });
            (&b"[C]"[..], 0, native.as_ref().map_or(&[][..], |native| native))
        }
    };
    let defined = Defined { function, first_line, name: (UTF_8, name), file: (UTF_8, file), lines };
    if defined.write(&mut catcher.definitions) {
        catcher.note_defined(function);
    }
    catcher.scratch = scratch;
}

/// What a method does.
fn definition(objects: &Objects<'_>, method: &[u8]) -> Option<[u8; DEFINITION_LEN]> {
    let mut bytes = [0; DEFINITION_LEN];
    let at = word(method, DEFINITION).filter(|at| *at != 0)?;
    objects.memory.fill(at, &mut bytes).then_some(bytes)
}

/// What it is called: as Ruby's own backtraces call it from 3.4 on, with the class before the name of the method,
/// where that is known.
fn name<'r>(objects: &Objects<'_>, frame: Frame<'_>, room: &'r mut [u8]) -> &'r [u8] {
    let (out, room) = room.split_at_mut(3 * MOST_TEXT);
    let (class_room, room) = room.split_at_mut(MOST_TEXT);
    let (label_room, method_room) = room.split_at_mut(MOST_TEXT);
    let class = |method: &[u8], room| objects.class(word(method, OWNER).unwrap_or(0), room);
    let symbol = |method: &[u8], room| {
        let number = definition(objects, method).and_then(|bytes| word(&bytes, ORIGINAL_NAME));
        objects.symbol(number.unwrap_or(0), room)
    };
    let (body, method, is_method) = match frame {
        Frame::OfC { method } => {
            let symbol = symbol(method, method_room);
            return match symbol.is_empty() {
                true => b"method",
                false => joined(out, (b"", class(method, class_room), symbol)),
            };
        }
        Frame::Of { body, method, is_method, .. } => (body, method, is_method),
    };
    let label = objects.text(word(body, LABEL).unwrap_or(0), label_room);
    let Some(method) = method else { return joined(out, (label, (b"", ""), b"")) };
    if is_method {
        let symbol = symbol(method, method_room);
        if !symbol.is_empty() {
            return joined(out, (b"", class(method, class_room), symbol));
        }
    }
    let of = objects.text(word(body, METHOD_LABEL).unwrap_or(0), method_room);
    // `<class:Order>` and `<main>` are no methods, and `<=>` is one.
    let is_method = !matches!(of, [b'<', letter, ..] if letter.is_ascii_alphabetic());
    let before = label.strip_suffix(of).filter(|_| is_method && !of.is_empty());
    match before {
        Some(before) => joined(out, (before, class(method, class_room), of)),
        None => joined(out, (label, (b"", ""), b"")),
    }
}

fn joined<'r>(room: &'r mut [u8], (before, (class, mark), name): Parts<'_>) -> &'r [u8] {
    let mark = if class.is_empty() { "" } else { mark };
    let mut len = 0;
    for byte in [before, class, mark.as_bytes(), name].into_iter().flatten() {
        if let Some(to) = room.get_mut(len) {
            *to = *byte;
            len += 1;
        }
    }
    room.get(..len).unwrap_or_default()
}

/// The line of a definition.
fn first_line(objects: &Objects<'_>, body: &[u8]) -> u32 {
    let value = word(body, FIRST_LINE).unwrap_or(0);
    let line = if objects.layout.has_line_values { value >> 1 } else { value & 0xffff_ffff };
    u32::try_from(line).unwrap_or(0).max(1)
}

/// Writes down which instruction is of which line: how many bytes that takes.
fn table(objects: &Objects<'_>, body: &[u8], into: &mut [u8]) -> Option<usize> {
    let (at, len) = (objects.layout.lines, objects.layout.instruction_len);
    let count = half(body, at + LINES_LEN)?;
    let lines_len = usize::try_from(u64::from(count) * u64::from(len)).ok()?;
    let index_len = lines::index_len(half(body, WORDS)?.into());
    let total = lines::HEAD.checked_add(lines_len)?.checked_add(index_len)?;
    let (head, rest) =
        into.get_mut(..total).filter(|_| total <= MOST_LINES)?.split_at_mut(lines::HEAD);
    for (to, number) in head.chunks_exact_mut(4).zip([count, len]) {
        to.copy_from_slice(&number.to_le_bytes());
    }
    let parts = [
        Part { address: word(body, at)?, len: lines_len },
        Part { address: word(body, at + LINES_INDEX)?, len: index_len },
    ];
    // One line needs no index.
    let parts = if count == 1 { &parts[..1] } else { &parts[..] };
    let wanted = parts.iter().map(|part| part.len).sum::<usize>();
    (objects.memory.read(parts, rest) == wanted).then_some(lines::HEAD + wanted)
}
