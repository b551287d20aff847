//! What was caught of a thread, as bytes: they cross from one process to another.
//!
//! ```text
//!   outcome, entries, defined,     four bytes each
//!   language, functions, 0
//!   entries                        four words of eight bytes each, innermost frame first
//!   functions                      six words and bytes, each up to a multiple of eight
//! ```
//!
//! Where a process has interpreters of several languages, what was caught in one follows what was in another.

use crate::known::LANGUAGES;
use crate::luajit::trace::RunningTrace;
use crate::memory::{half, word};

/// Bytes before the entries.
pub(crate) const HEAD: usize = 24;

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 32;

/// Bytes of the numbers of a function.
const FUNCTION: usize = 48;

/// What stands for the width of characters that take one byte and more.
pub(crate) const UTF_8: u8 = 8;

/// How the catching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The whole chain was read; it may be empty.
    Read,
    /// The interpreter does not know the thread, or does not know threads yet.
    NoThread,
    /// Some of it could not be read, or was no frame.
    Unreadable,
    /// Its parts do not belong together.
    Torn,
    /// There were more frames than are read.
    TooDeep,
    /// The thread may have gone on meanwhile: what functions are is right, and no more.
    Late,
}

impl Outcome {
    const ALL: [Outcome; 6] = [
        Outcome::Read,
        Outcome::NoThread,
        Outcome::Unreadable,
        Outcome::Torn,
        Outcome::TooDeep,
        Outcome::Late,
    ];

    pub(crate) fn code(self) -> u32 {
        (0..)
            .zip(Outcome::ALL)
            .find(|(_, outcome)| *outcome == self)
            .map_or(u32::MAX, |(code, _)| code)
    }
}

/// One frame, or what separates the frames of one native frame from those of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Where the frame is; of a boundary, where on the native stack something of it lies, or 0.
    pub address: u64,
    /// The function's code; 0 = this is a boundary.
    pub code: u64,
    /// The position in the code; of a boundary, the word that the stack has to have ...
    pub position: u64,
    /// What the function is told by, 0 where it was no function; of a boundary ... at this address.
    pub function: u64,
}

impl Entry {
    /// Whether it separates frames.
    pub fn is_boundary(&self) -> bool {
        self.code == 0
    }

    /// What follows a chain that stands apart from the native stack: the interpreter that it is of, 0
    /// where there is one only.
    pub(crate) fn of_interpreter(address: u64) -> Entry {
        Entry { address, code: 0, position: 0, function: u64::MAX }
    }

    /// The interpreter, if it is such an entry.
    pub(crate) fn interpreter(&self) -> Option<u64> {
        (self.code == 0 && self.function == u64::MAX).then_some(self.address)
    }

    /// What follows the calls of several states, each of which stands before its own.
    pub(crate) fn of_states() -> Entry {
        Entry { address: 0, code: 0, position: 0, function: u64::MAX - 1 }
    }

    /// Whether it is such an entry.
    pub(crate) fn ends_states(&self) -> bool {
        *self == Entry::of_states()
    }

    /// What follows a chain that is of this moment if its innermost native frame has an instruction of the
    /// program in its register that is one of these.
    pub(crate) fn of_instruction(first: u64, last: u64) -> Entry {
        Entry { address: first, code: 0, position: last, function: u64::MAX - 2 }
    }

    /// The first and the last of them, if it is such an entry.
    pub(crate) fn instructions(&self) -> Option<std::ops::RangeInclusive<u64>> {
        (self.code == 0 && self.function == u64::MAX - 2).then_some(self.address..=self.position)
    }

    /// What follows a chain of which the innermost native frame has taken so much of the stack below the frame of
    /// the interpreter, at an instruction.
    pub(crate) fn of_subroutine(c_frame: u64, instruction: u64, space: u32) -> Entry {
        let function = u64::MAX - 3 - u64::from(space == 16);
        Entry { address: c_frame, code: 0, position: instruction, function }
    }

    /// The frame, the instruction and the space, if it is such an entry.
    pub(crate) fn subroutine(&self) -> Option<(u64, u64, u32)> {
        let is_one = self.code == 0 && matches!(u64::MAX - self.function, 3 | 4);
        let space = if u64::MAX - self.function == 3 { 8 } else { 16 };
        is_one.then_some((self.address, self.position, space))
    }

    /// What follows the frames of a context of Ruby, which are written down as calls of a state.
    pub(crate) fn of_frames() -> Entry {
        Entry { address: 0, code: 0, position: 0, function: u64::MAX - 16 }
    }

    /// Whether it is such an entry.
    pub(crate) fn ends_frames(&self) -> bool {
        *self == Entry::of_frames()
    }

    /// What follows the frames of a PHP: the frame that is called, or has returned; 0 where none is known.
    pub(crate) fn of_php(inside: u64) -> Entry {
        Entry { address: inside, code: 0, position: 0, function: u64::MAX - 5 }
    }

    /// The frame, if it is such an entry.
    pub(crate) fn frame_inside(&self) -> Option<u64> {
        (self.code == 0 && self.function == u64::MAX - 5).then_some(self.address)
    }

    fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        let words = [self.address, self.code, self.position, self.function];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Entry> {
        Some(Entry {
            address: word(bytes, 0)?,
            code: word(bytes, 8)?,
            position: word(bytes, 16)?,
            function: word(bytes, 24)?,
        })
    }
}

/// A function that was met first, as it stands in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defined<'a> {
    /// What it is told by.
    pub function: u64,
    /// The line where its definition starts.
    pub first_line: u32,
    /// Its name: the width of a character in bytes, or 8 for UTF-8, and the characters.
    pub name: (u8, &'a [u8]),
    /// The same of its file.
    pub file: (u8, &'a [u8]),
    /// Which position has which line; empty where that was too long.
    pub lines: &'a [u8],
}

impl Defined<'_> {
    /// Adds it to `out`, if there is room; whether there was.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> bool {
        let parts = [self.name.1, self.file.1, self.lines];
        let len = FUNCTION + parts.iter().map(|part| part.len().next_multiple_of(8)).sum::<usize>();
        if out.capacity() - out.len() < len {
            return false;
        }
        let widths = u64::from(self.name.0) | u64::from(self.file.0) << 8;
        let lens = parts.map(|part| part.len() as u64);
        let numbers =
            [self.function, u64::from(self.first_line), widths, lens[0], lens[1], lens[2]];
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        for part in parts {
            out.extend_from_slice(part);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        true
    }

    fn parse<'a>(bytes: &mut &'a [u8]) -> Option<Defined<'a>> {
        let numbers = *bytes;
        *bytes = bytes.get(FUNCTION..)?;
        let mut part = |at| {
            let len = usize::try_from(word(numbers, at)?).ok()?;
            let part = bytes.get(..len)?;
            *bytes = bytes.get(len.checked_next_multiple_of(8)?..)?;
            Some(part)
        };
        let (name, file, lines) = (part(24)?, part(32)?, part(40)?);
        let widths = word(numbers, 16)?.to_le_bytes();
        Some(Defined {
            function: word(numbers, 0)?,
            first_line: half(numbers, 8)?,
            name: (widths[0], name),
            file: (widths[1], file),
            lines,
        })
    }
}

/// What was caught of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Caught<'a> {
    language: &'static str,
    outcome: Outcome,
    entries: &'a [u8],
    functions: &'a [u8],
    defined: u32,
}

impl<'a> Caught<'a> {
    /// Reads what [`crate::Catcher::catch`] has written first; `None` for other bytes.
    pub fn parse(bytes: &'a [u8]) -> Option<Caught<'a>> {
        Caught::split(bytes).map(|(caught, _)| caught)
    }

    /// Reads what it has written, one after the other.
    pub fn all(bytes: &'a [u8]) -> impl Iterator<Item = Caught<'a>> {
        let mut bytes = bytes;
        std::iter::from_fn(move || {
            let (caught, rest) = Caught::split(bytes)?;
            bytes = rest;
            Some(caught)
        })
    }

    fn split(bytes: &'a [u8]) -> Option<(Caught<'a>, &'a [u8])> {
        let number = |at| usize::try_from(half(bytes, at)?).ok();
        let outcome = *Outcome::ALL.get(number(0)?)?;
        let language = LANGUAGES.get(number(12)?)?;
        let len = number(4)?.checked_mul(ENTRY)?;
        let (entries, rest) = bytes.get(HEAD..)?.split_at_checked(len)?;
        let (functions, rest) = rest.split_at_checked(number(16)?).unwrap_or((rest, &[]));
        Some((Caught { language, outcome, entries, functions, defined: half(bytes, 8)? }, rest))
    }

    /// Takes from all that was caught that its chain is of the moment of a sample: [`Outcome::Late`].
    pub fn outdate(bytes: &mut [u8]) {
        let (len, mut at) = (bytes.len(), 0);
        while let Some((_, rest)) = bytes.get(at..).and_then(Caught::split) {
            let next = len - rest.len();
            if let Some(outcome) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *outcome = Outcome::Late.code().to_le_bytes();
            }
            at = next;
        }
    }

    /// The language of the interpreter, in lower case.
    pub fn language(&self) -> &'static str {
        self.language
    }

    /// How that went.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The chain, innermost frame first.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.chunks_exact(ENTRY).filter_map(Entry::of_bytes).collect()
    }

    /// The trace of a LuaJIT that runs, or the part of its interpreter, if that is what was caught.
    pub fn trace(&self) -> Option<RunningTrace> {
        let entries = [self.entries.get(..ENTRY), self.entries.rchunks_exact(ENTRY).next()];
        let entries = entries.into_iter().flatten().filter_map(Entry::of_bytes);
        entries
            .filter(|_| self.outcome == Outcome::Read)
            .find_map(|entry| RunningTrace::of_entry(&entry))
    }

    /// How many frames the chain has.
    pub fn frame_count(&self) -> usize {
        self.entries().iter().filter(|entry| !entry.is_boundary()).count()
    }

    /// The functions that were met first.
    pub fn defined(&self) -> impl Iterator<Item = Defined<'a>> {
        let mut bytes = self.functions;
        (0..self.defined).map_while(move |_| Defined::parse(&mut bytes))
    }
}

/// Where a chain is written to: behind the place of the head, as far as there is room.
#[derive(Debug)]
pub(crate) struct Entries<'o> {
    out: &'o mut [u8],
    most: usize,
    count: usize,
}

impl<'o> Entries<'o> {
    /// Of at most so many entries.
    pub(crate) fn new(out: &'o mut [u8], most: usize) -> Entries<'o> {
        let most = most.min(out.len().saturating_sub(HEAD) / ENTRY);
        Entries { out, most, count: 0 }
    }

    /// Adds an entry; whether there was room.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let has_room = self.count < self.most;
        if has_room {
            self.count += 1;
            self.set(self.count - 1, entry);
        }
        has_room
    }

    pub(crate) fn get(&self, index: usize) -> Option<Entry> {
        let at = HEAD + index * ENTRY;
        self.out.get(at..at + ENTRY).filter(|_| index < self.count).and_then(Entry::of_bytes)
    }

    pub(crate) fn set(&mut self, index: usize, entry: Entry) {
        let at = HEAD + index * ENTRY;
        if let Some(place) = self.out.get_mut(at..at + ENTRY) {
            place.copy_from_slice(&entry.to_bytes());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// Writes the head, and the functions behind the entries: the length of all; nothing where there is no
    /// room.
    pub(crate) fn finish(
        self,
        (language, outcome): (&str, Outcome),
        functions: &[u8],
        defined: u32,
    ) -> usize {
        let at = HEAD + self.count * ENTRY;
        let end = at + functions.len();
        let count = u32::try_from(self.count).ok().filter(|_| end <= self.out.len());
        let len = u32::try_from(functions.len()).ok();
        let (Some(count), Some(len)) = (count, len) else { return 0 };
        let number = (0..).zip(LANGUAGES).find(|(_, known)| *known == language);
        let language = number.map_or(u32::MAX, |(number, _)| number);
        let head = [outcome.code(), count, defined, language, len, 0];
        for (to, number) in self.out.chunks_exact_mut(4).zip(head) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        self.out[at..end].copy_from_slice(functions);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_caught_is_read_as_it_was_written() {
        let mut out = vec![0; 4096];
        let mut entries = Entries::new(&mut out, 2);
        let frame = Entry { address: 1, code: 2, position: 3, function: 4 };
        let boundary = Entry { code: 0, ..frame };
        assert_eq!([frame, boundary, frame].map(|entry| entries.push(entry)), [true, true, false]);
        let mut functions = Vec::with_capacity(200);
        let one = Defined {
            function: 4,
            first_line: 7,
            name: (1, b"f"),
            file: (2, b"ab"),
            lines: b"123456789",
        };
        assert!(one.write(&mut functions) && !one.write(&mut Vec::new()));
        let len = entries.finish(("lua", Outcome::Read), &functions, 1);
        let caught = Caught::parse(&out[..len]).unwrap();
        assert_eq!((caught.outcome(), caught.entries()), (Outcome::Read, vec![frame, boundary]));
        assert_eq!(caught.defined().collect::<Vec<_>>(), [one]);
        // Whatever it ends at, nothing but whole parts is read.
        for end in 0..len {
            if let Some(caught) = Caught::parse(&out[..end]) {
                assert_eq!((caught.entries().len(), caught.defined().count()), (2, 0), "{end}");
            }
        }
    }

    #[test]
    fn what_was_caught_in_each_of_several_interpreters_is_read() {
        let mut out = vec![0; 4096];
        let mut functions = Vec::with_capacity(200);
        let one = Defined { function: 4, first_line: 7, name: (1, b"f"), ..Defined::default() };
        assert!(one.write(&mut functions));
        let mut len = 0;
        for language in ["python", "lua", "perl"] {
            let mut entries = Entries::new(&mut out[len..], 9);
            entries.push(Entry { address: len as u64, code: 2, position: 3, function: 4 });
            len += entries.finish((language, Outcome::Read), &functions, 1);
        }
        let told = |bytes: &[u8], outcome| {
            let told = |caught: Caught<'_>| {
                assert_eq!((caught.outcome(), caught.defined().count()), (outcome, 1));
                (caught.language(), caught.entries()[0].address)
            };
            Caught::all(bytes).map(told).collect::<Vec<_>>()
        };
        let all = [("python", 0), ("lua", len as u64 / 3), ("perl", len as u64 / 3 * 2)];
        assert_eq!(told(&out[..len], Outcome::Read), all);
        Caught::outdate(&mut out[..len]);
        assert_eq!(told(&out[..len], Outcome::Late), all);
    }
}
