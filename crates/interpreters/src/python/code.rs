//! Which functions the frames of a chain are of: their code objects, checked each time, and written down
//! when they are met first.
//!
//! An address is not enough: code objects die, and others take their place. What a function is told by is
//! a number made of all that its name and its lines depend on.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::layout::{MAX_HEAD, Position, PythonLayout};
use crate::catch::{Catcher, Thread};
use crate::caught::{Defined, Entries};
use crate::memory::{Memory, Part, half, word};

/// How many code objects are read at once.
const BATCH: usize = 64;

/// The most characters of a name, and bytes of a table of lines.
const MOST_CHARACTERS: usize = 1024;
const MOST_LINES: usize = 16 * 1024;

/// Bytes of an object before what it holds.
const OBJECT: usize = 48;

/// The bits of the state of a text: how wide its characters are, that they follow the object, that all of
/// them are ASCII.
const KIND: u32 = 2;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;

/// Completes the frames of a chain: those that are of no function have 0 for it.
pub(crate) fn describe(
    catcher: &mut Catcher,
    python: (&PythonLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) {
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let middle = (BATCH * MAX_HEAD).min(scratch.len());
    let (heads, texts) = scratch.split_at_mut(middle);
    let mut from = 0;
    while from < entries.len() {
        let mut codes = [0; BATCH];
        let mut count = 0;
        // As many as are new; those behind them are looked at again.
        let mut until = from;
        while until < entries.len() && count < BATCH {
            let code = entries.get(until).map_or(0, |entry| entry.code);
            if code != 0 && !catcher.functions.contains_key(&code) {
                catcher.functions.insert(code, 0);
                if let Some(place) = codes.get_mut(count) {
                    (*place, count) = (code, count + 1);
                }
            }
            until += 1;
        }
        let codes = codes.get(..count).unwrap_or_default();
        read_heads(catcher, python, thread, memory, (codes, heads, texts));
        from = until;
    }
    catcher.scratch = scratch;
    (0..entries.len()).for_each(|index| complete(catcher, python.0, entries, index));
}

fn complete(catcher: &Catcher, layout: &PythonLayout, entries: &mut Entries<'_>, index: usize) {
    let Some(mut entry) = entries.get(index).filter(|entry| !entry.is_boundary()) else { return };
    entry.function = catcher.functions.get(&entry.code).copied().unwrap_or(0);
    if layout.position_is == Position::Address {
        let start = entry.code.wrapping_add(layout.instructions.into());
        entry.position = entry.position.wrapping_sub(start);
    }
    entries.set(index, entry);
}

/// Reads code objects, and what they are told by.
fn read_heads(
    catcher: &mut Catcher,
    (layout, runtime): (&PythonLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    (codes, heads, texts): (&[u64], &mut [u8], &mut [u8]),
) {
    let len = layout.head_len();
    let mut parts = [Part::default(); BATCH];
    for (part, code) in parts.iter_mut().zip(codes) {
        *part = Part { address: *code, len };
    }
    let mut done = 0;
    // One that cannot be read ends the reading: those behind it are read again.
    while let Some(parts) = parts.get(done..codes.len()).filter(|parts| !parts.is_empty()) {
        let read = memory.read(parts, heads) / len;
        for (head, code) in heads.chunks_exact(len).zip(codes.iter().skip(done)).take(read) {
            let head = Head { layout, bytes: head };
            let function = head
                .told_by(thread, *code)
                .filter(|_| word(head.bytes, 8) == Some(runtime.wrapping_add(layout.code_type)));
            let Some(function) = function else { continue };
            catcher.functions.insert(*code, function);
            if catcher.is_new(function)
                && head.define(function, memory, texts, &mut catcher.definitions)
            {
                catcher.note_defined(function);
            }
        }
        done += read + 1;
    }
}

/// The first bytes of a code object.
#[derive(Clone, Copy, Debug)]
struct Head<'b> {
    layout: &'b PythonLayout,
    bytes: &'b [u8],
}

impl Head<'_> {
    fn told_by(&self, thread: Thread, code: u64) -> Option<u64> {
        let layout = self.layout;
        let mut hasher = FxHasher::default();
        hasher.write_u32(thread.pid);
        hasher.write_u64(code);
        for at in [layout.file, layout.name, layout.line_table] {
            hasher.write_u64(word(self.bytes, at)?);
        }
        // From 3.12 on another one of the same places has another number.
        for at in [layout.first_line, layout.flags].into_iter().chain(layout.version) {
            hasher.write_u32(half(self.bytes, at)?);
        }
        if layout.position_is != Position::Address {
            hasher.write_u64(word(self.bytes, layout.instructions)?);
        }
        // 0 is none.
        Some(hasher.finish() | 1)
    }

    /// Writes down what the function is; whether there was room.
    fn define(
        &self,
        function: u64,
        memory: &dyn Memory,
        texts: &mut [u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let layout = self.layout;
        let object = |at| Part { address: word(self.bytes, at).unwrap_or(0), len: OBJECT };
        let objects = [layout.name, layout.file, layout.line_table].map(object);
        let mut starts = [0; 3 * OBJECT];
        let first_line = half(self.bytes, layout.first_line).unwrap_or(0);
        let nameless = Defined { function, first_line, ..Defined::default() };
        if memory.read(&objects, &mut starts) < starts.len() {
            return nameless.write(out);
        }
        let [name, file, lines] =
            [0, OBJECT, 2 * OBJECT].map(|at| starts.get(at..).unwrap_or_default());
        let name = self.text(name, objects[0].address);
        let file = self.text(file, objects[1].address);
        let lines = table(lines, objects[2].address);
        let parts = [name.1, file.1, lines];
        let wanted: usize = parts.iter().map(|part| part.len).sum();
        let read = texts.get_mut(..wanted).map_or(0, |texts| memory.read(&parts, texts));
        if read < wanted {
            return nameless.write(out);
        }
        let (of_name, rest) = texts.split_at(parts[0].len);
        let (of_file, rest) = rest.split_at(parts[1].len);
        let lines = rest.get(..parts[2].len).unwrap_or_default();
        let (name, file) = ((name.0, of_name), (file.0, of_file));
        Defined { name, file, lines, ..nameless }.write(out)
    }

    /// How wide the characters of a text are, and where they are. Long ones are cut.
    fn text(&self, object: &[u8], address: u64) -> (u8, Part) {
        let state = half(object, 32).unwrap_or(0);
        let len = word(object, 16).map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX));
        let len = len.min(MOST_CHARACTERS);
        let (width, at) = match state {
            state if state & COMPACT == 0 => return (0, Part::default()),
            state if state & ASCII != 0 => (1, self.layout.ascii),
            // One, two or four bytes.
            state => ((state >> KIND & 7).min(4) as u8, self.layout.wide),
        };
        (width, Part { address: address.wrapping_add(at.into()), len: len * usize::from(width) })
    }
}

/// Where the bytes of a table are; nothing of those that are too long.
fn table(object: &[u8], address: u64) -> Part {
    let len = word(object, 16).and_then(|len| usize::try_from(len).ok());
    let len = len.filter(|len| *len <= MOST_LINES).unwrap_or(0);
    Part { address: address.wrapping_add(32), len }
}
