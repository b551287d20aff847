//! Objects of Ruby: texts, lists, names of classes and symbols, as far as each is what it should be.

use super::layout::RubyLayout;
use crate::memory::{Memory, Part, word};

/// The most bytes of a text.
pub(crate) const MOST_TEXT: usize = 512;

/// The bits of an object's flags that are its type, and types.
const TYPES: u64 = 0x1f;
const CLASS: u64 = 2;
const MODULE: u64 = 3;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
pub(crate) const INTERNAL: u64 = 0x1a;
const INCLUDED: u64 = 0x1c;

/// What objects are that the language does not see: behind which bits of the flags that stands, and kinds.
const KIND: u32 = 12;
const KINDS: u64 = 0xf;
pub(crate) const VARIABLE: u64 = 2;
pub(crate) const METHOD: u64 = 6;
pub(crate) const CODE: u64 = 7;

/// Of a class: that it is the one of a single object. Of a string: that its text lies elsewhere. Of a list: that
/// its items do not.
const IS_SINGLE: u64 = 1 << 12;
const IS_ELSEWHERE: u64 = 1 << 13;
const IS_WITHIN: u64 = 1 << 13;

/// Behind which bits of the flags a short text has its length.
const LEN: u32 = 14;

/// How many variables of a class are looked at, of which its name is among the first, and how long each is.
const VARIABLES: usize = 16;
const VARIABLE_LEN: usize = 24;

/// The bits of a symbol's number that are 0 in those that are no variable's, constant's or the like.
const SCOPE: u64 = 0xe;

/// Numbers of symbols up to this are those of operators, and serial numbers; of others those are behind 4 bits.
const OPERATORS: u64 = 1024;
const SERIAL: u32 = 4;

/// How many symbols a part of the table has, each with two words.
const PART: u64 = 512;

/// Reads objects.
#[derive(Clone, Copy)]
pub(crate) struct Objects<'m> {
    pub(crate) layout: &'m RubyLayout,
    /// Where the interpreter is.
    pub(crate) runtime: u64,
    pub(crate) memory: &'m dyn Memory,
}

/// Whether flags are those of an internal object of a kind.
pub(crate) fn is_internal(flags: u64, kind: u64) -> bool {
    flags & TYPES == INTERNAL && flags >> KIND & KINDS == kind
}

impl Objects<'_> {
    fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        let is_object = address != 0 && address.is_multiple_of(8);
        let is_read = is_object && self.memory.fill(address, bytes.as_flattened_mut());
        is_read.then(|| bytes.map(u64::from_le_bytes))
    }

    /// The text of a string; empty where it is none.
    pub(crate) fn text<'r>(&self, address: u64, room: &'r mut [u8]) -> &'r [u8] {
        let len = self.text_of(address, room).unwrap_or(0);
        room.get(..len).unwrap_or_default()
    }

    fn text_of(&self, address: u64, room: &mut [u8]) -> Option<usize> {
        let [flags, _, len, at] = self.words(address)?;
        if flags & TYPES != STRING {
            return None;
        }
        let is_elsewhere = flags & IS_ELSEWHERE != 0;
        let len = match is_elsewhere || self.layout.has_text_len {
            true => len,
            false => flags >> LEN & TYPES,
        };
        let at = match is_elsewhere {
            true => at,
            false => address.checked_add(self.layout.text.into())?,
        };
        let len = usize::try_from(len).ok()?.min(room.len().min(MOST_TEXT));
        let read = self.memory.read(&[Part { address: at, len }], room);
        (read >= len).then_some(len)
    }

    /// An item of a list.
    fn item(&self, address: u64, index: u64) -> Option<u64> {
        let [flags, _, len, _, elsewhere] = self.words(address)?;
        if flags & TYPES != ARRAY {
            return None;
        }
        let (items, len) = match flags & IS_WITHIN != 0 {
            true => (address.checked_add(16)?, flags >> (LEN + 1) & 0x7f),
            false => (elsewhere, len),
        };
        let [item] =
            self.words(items.checked_add(index.checked_mul(8)?)?).filter(|_| index < len)?;
        Some(item)
    }

    /// The path of a file: itself, or the first of two.
    pub(crate) fn path<'r>(&self, address: u64, room: &'r mut [u8]) -> &'r [u8] {
        self.text(self.item(address, 0).unwrap_or(address), room)
    }

    /// The text of a symbol, if the table of symbols is one: `+` has a number that it has in all versions.
    pub(crate) fn symbol<'r>(&self, number: u64, room: &'r mut [u8]) -> &'r [u8] {
        let table = self.layout.symbols.iter().filter(|table| **table != 0).find_map(|table| {
            let [table] = self.words(self.runtime.wrapping_add(*table))?;
            let mut plus = [0; 8];
            let string = self.symbol_of(table, u64::from(b'+'))?;
            (self.text(string, &mut plus) == b"+").then_some(table)
        });
        let string = table.and_then(|table| self.symbol_of(table, number));
        self.text(string.unwrap_or(0), room)
    }

    fn symbol_of(&self, table: u64, number: u64) -> Option<u64> {
        let serial = if number < OPERATORS { number } else { number >> SERIAL };
        self.item(self.item(table, serial / PART)?, serial % PART * 2)
    }

    /// The name of a class and what stands between it and the name of a method; nothing where either is not known.
    pub(crate) fn class<'r>(&self, address: u64, room: &'r mut [u8]) -> (&'r [u8], &'static str) {
        let [flags, class] = self.words(address).unwrap_or_default();
        // A module as a class has included it.
        let address = if flags & TYPES == INCLUDED { class } else { address };
        let [flags] = self.words(address).unwrap_or_default();
        if flags & TYPES == CLASS && flags & IS_SINGLE != 0 {
            return match self.variable(address, |objects, value| objects.is_class(value)) {
                Some(of) => (self.class_name(of, room), "."),
                None => (&[], ""),
            };
        }
        (self.class_name(address, room), "#")
    }

    fn class_name<'r>(&self, address: u64, room: &'r mut [u8]) -> &'r [u8] {
        let is_class = self.is_class(address);
        let is_name = |objects: &Objects<'_>, value| {
            let mut start = [0];
            objects.text(value, &mut start).first().is_some_and(u8::is_ascii_uppercase)
        };
        let name = is_class.then(|| self.variable(address, is_name)).flatten();
        self.text(name.unwrap_or(0), room)
    }

    fn is_class(&self, address: u64) -> bool {
        self.words(address).is_some_and(|[flags]| matches!(flags & TYPES, CLASS | MODULE))
    }

    /// The one variable of a class that its program cannot name and that is so.
    fn variable(&self, class: u64, is_it: impl Fn(&Self, u64) -> bool) -> Option<u64> {
        let [_, _, _, extension] = self.words(class).filter(|_| self.layout.has_class_variables)?;
        let [_, variables] = self.words(extension)?;
        let [_, _, _, _, _, end, entries] = self.words(variables)?;
        let mut bytes = [0; VARIABLES * VARIABLE_LEN];
        let len = usize::try_from(end).ok()?.min(VARIABLES) * VARIABLE_LEN;
        let bytes = bytes.get_mut(..len)?;
        if !self.memory.fill(entries, bytes) {
            return None;
        }
        let of_program = |key: u64| key <= OPERATORS || key & SCOPE != 0;
        let mut found = bytes.chunks_exact(VARIABLE_LEN).filter_map(|entry| {
            let [hash, key, value] = [0, 8, 16].map(|at| word(entry, at).unwrap_or(u64::MAX));
            (hash != u64::MAX && !of_program(key) && is_it(self, value)).then_some(value)
        });
        found.next().filter(|_| found.next().is_none())
    }
}
