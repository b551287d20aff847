//! Names of functions, as they stand in memory: written down once for each.

use super::layout::{
    BODY, EFFECTIVE, ELSE, FLAGS, GLOB, HAS_PACKAGE, HASH, IS_NAMED, LAST_SLOT, NAME_LEN,
    NAME_TEXT, PACKAGE_IN_BODY, PACKAGE_NAMES, PerlLayout, TYPES, VALUE, VARIABLE_NAME,
    VARIABLE_PACKAGE,
};
use super::subs::{Statement, Sub};
use crate::catch::Catcher;
use crate::caught::{Defined, UTF_8};
use crate::memory::{Memory, Part, half, word};

/// The most bytes of a text.
pub(super) const MOST_TEXT: usize = 1024;

/// How many functions one sample defines at most: each takes up to 16 readings.
const MOST_DEFINED: u32 = 16;

/// What a function is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'n> {
    /// The program, outside of all subs; the statement where it is.
    Script(Statement),
    /// An eval; its own statement.
    Eval(Statement),
    /// A file of that name, which is run once or each time; the statement where it is.
    File(bool, &'n [u8], Statement),
    /// A sub and its first statement.
    Sub(&'n Sub, Statement),
}

/// A text that is put together of bounded parts.
#[derive(Debug)]
struct Text {
    bytes: [u8; 2 * MOST_TEXT],
    len: usize,
}

impl Text {
    fn of(parts: &[&[u8]]) -> Text {
        let mut text = Text { bytes: [0; 2 * MOST_TEXT], len: 0 };
        for part in parts {
            let room = text.bytes.get_mut(text.len..).unwrap_or_default();
            let len = part.len().min(room.len());
            room[..len].copy_from_slice(&part[..len]);
            text.len += len;
        }
        text
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Memory in which names are looked for.
#[derive(Clone, Copy)]
struct Names<'m> {
    layout: &'m PerlLayout,
    memory: &'m dyn Memory,
}

/// Writes down what a function is, unless that was done before.
pub(super) fn define(
    catcher: &mut Catcher,
    (layout, memory): (&PerlLayout, &dyn Memory),
    function: u64,
    source: &Source<'_>,
) {
    if catcher.defined_now >= MOST_DEFINED || !catcher.is_new(function) {
        return;
    }
    let names = Names { layout, memory };
    let (name, statement, first_line) = match source {
        Source::Script(statement) => (Text::of(&[b"<script>"]), statement, 1),
        Source::Eval(statement) => (Text::of(&[b"(eval)"]), statement, statement.line),
        Source::File(is_once, name, statement) => {
            let how: &[u8] = if *is_once { b"require " } else { b"do " };
            (Text::of(&[how, name]), statement, 1)
        }
        Source::Sub(sub, first) => (names.of_sub(sub).unwrap_or(Text::of(&[])), first, first.line),
    };
    let mut file = [0; MOST_TEXT];
    let len = names.file(statement.file, &mut file).unwrap_or(0);
    // That of a text that is run has a number, another one each time.
    let file = match &file[..len] {
        file if file.starts_with(b"(eval ") => b"(eval)",
        file => file,
    };
    let (name, file) = ((UTF_8, name.get()), (UTF_8, file));
    let defined = Defined { function, first_line, name, file, lines: &[] };
    if defined.write(&mut catcher.definitions) {
        catcher.note_defined(function);
    }
}

impl Names<'_> {
    fn word(&self, address: u64, at: u32) -> Option<u64> {
        let mut bytes = [0; 8];
        let address = address.checked_add(at.into()).filter(|_| address != 0)?;
        self.memory.fill(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    /// A value of that type.
    fn value(&self, address: u64, kind: u32) -> Option<[u8; VALUE]> {
        let mut bytes = [0; VALUE];
        let is_read = address != 0 && self.memory.fill(address, &mut bytes);
        (is_read && half(&bytes, FLAGS)? & TYPES == kind).then_some(bytes)
    }

    /// `Package::name`, without that of the program itself.
    fn of_sub(&self, sub: &Sub) -> Option<Text> {
        let (mut name, mut package) = ([0; MOST_TEXT], [0; MOST_TEXT]);
        let (name_at, package_at) = match sub.flags & IS_NAMED {
            0 => self.variable(sub.name)?,
            _ => (sub.name, sub.package),
        };
        let len = self.name(name_at, &mut name)?;
        let name = &name[..len];
        let package = match self.package(package_at, &mut package) {
            Some(len) => &package[..len],
            None => &[],
        };
        Some(match package {
            b"" | b"main" => Text::of(&[name]),
            package => Text::of(&[package, b"::", name]),
        })
    }

    /// Where the name and the package of a variable are.
    fn variable(&self, address: u64) -> Option<(u64, u64)> {
        let given = self.value(address, GLOB)?;
        let effective = self.word(word(&given, ELSE)?, EFFECTIVE);
        let effective = effective.and_then(|address| self.value(address, GLOB));
        let body = word(&effective.unwrap_or(given), BODY)?;
        Some((self.word(body, VARIABLE_NAME)?, self.word(body, VARIABLE_PACKAGE)?))
    }

    fn package(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        let table = self.value(address, HASH)?;
        if half(&table, FLAGS)? & HAS_PACKAGE == 0 {
            return None;
        }
        let body = word(&table, BODY)?;
        let at = match self.layout.has_package_in_body {
            true => body.checked_add(PACKAGE_IN_BODY.into())?,
            false => {
                let slots = self.word(body, LAST_SLOT)?.checked_add(1)?;
                word(&table, ELSE)?.checked_add(slots.checked_mul(8)?)?
            }
        };
        let name = self.word(at, 0)?;
        // Four bytes; what follows them is not needed.
        let has_several = self.word(at, PACKAGE_NAMES)? & u64::from(u32::MAX) != 0;
        self.name(if has_several { self.word(name, 0)? } else { name }, into)
    }

    /// A name: how long it is, and its text.
    fn name(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        let len = (self.word(address, 0)? >> (8 * NAME_LEN)) as usize;
        let into = into.get_mut(..len.min(MOST_TEXT))?;
        let is_read = self.memory.fill(address.checked_add(NAME_TEXT.into())?, into);
        is_read.then_some(into.len())
    }

    /// The file of a statement.
    fn file(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        if self.layout.is_threaded {
            return text(address, self.memory, into);
        }
        // A variable that is called `_<` and the file.
        let (name, _) = self.variable(address)?;
        let len = self.name(name, into)?.checked_sub(2)?;
        into.copy_within(2..2 + len, 0);
        Some(len)
    }
}

/// The text of a value: how long it is.
pub(super) fn text_of(address: u64, memory: &dyn Memory, into: &mut [u8]) -> Option<usize> {
    let mut value = [0; VALUE];
    let is_read = memory.fill(address, &mut value);
    text(word(&value, ELSE).filter(|_| is_read)?, memory, into)
}

/// A text up to the byte 0.
fn text(address: u64, memory: &dyn Memory, into: &mut [u8]) -> Option<usize> {
    let part = Part { address, len: into.len() };
    let len = memory.read(&[part], into);
    let read = into.get(..len)?;
    Some(read.iter().position(|byte| *byte == 0).unwrap_or(read.len())).filter(|len| *len > 0)
}
