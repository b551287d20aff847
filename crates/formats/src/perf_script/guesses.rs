//! What the next line of a stack most likely is: functions are called from the same places most of the time, and
//! most functions belong to one module.
//!
//! A guess says which bytes are worth a comparison. Only if they are the same, the line stands for what it stood
//! for then; so a place may be shared by any number of lines.

use std::hash::Hasher;

use memchr::memchr;
use rustc_hash::FxHasher;

/// Powers of two.
const CALLERS: usize = 1 << 12;
const SYMBOLS: usize = 1 << 13;

/// No symbol is longer: the next `+` is that of another line.
const MOST_SYMBOL: usize = 512;

/// Lines that were there before.
#[derive(Debug)]
pub(super) struct Guesses {
    /// By what the line before stands for.
    callers: Vec<Line>,
    /// By the symbol.
    symbols: Vec<Line>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// What stands behind the address, with the end of the line; empty where nothing is known. By symbols it
    /// lacks the offset.
    text: Vec<u8>,
    value: u32,
}

/// A line that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) value: u32,
    /// How long what stands behind its address is, with the end of the line.
    pub(super) len: usize,
}

impl Default for Guesses {
    fn default() -> Guesses {
        Guesses { callers: vec![Line::default(); CALLERS], symbols: vec![Line::default(); SYMBOLS] }
    }
}

impl Guesses {
    /// The line that a text starts with, if it followed one that stands for `callee`.
    #[inline]
    pub(super) fn by_callee(&self, callee: u32, text: &[u8]) -> Option<Known> {
        let Line { text: line, value } = &self.callers[callee as usize % CALLERS];
        let is_it = !line.is_empty() && text.starts_with(line);
        is_it.then_some(Known { value: *value, len: line.len() })
    }

    /// The same by its symbol, whatever the offset is.
    #[inline]
    pub(super) fn by_symbol(&self, text: &[u8]) -> Option<Known> {
        let (symbol, behind) = around_offset(text)?;
        let Line { text: line, value } = &self.symbols[place(symbol)];
        let module = line.strip_prefix(symbol)?;
        let is_it = module.starts_with(b" (") && behind.starts_with(module);
        let len = text.len() - behind.len() + module.len();
        is_it.then_some(Known { value: *value, len })
    }

    /// Keeps what follows a line that stands for `callee`.
    pub(super) fn keep_caller(&mut self, callee: u32, line: &[u8], value: u32) {
        self.callers[callee as usize % CALLERS].keep(&[line], value);
    }

    /// Keeps a line, of which the part between its symbol and its module makes no difference.
    pub(super) fn keep_symbol(&mut self, symbol: &[u8], module: &[u8], value: u32) {
        if symbol.len() <= MOST_SYMBOL {
            self.symbols[place(symbol)].keep(&[symbol, module, b"\n"], value);
        }
    }
}

impl Line {
    fn keep(&mut self, parts: &[&[u8]], value: u32) {
        self.text.clear();
        parts.iter().for_each(|part| self.text.extend_from_slice(part));
        self.value = value;
    }
}

/// What a text has before and behind the first `+0x1f`.
fn around_offset(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let plus = memchr(b'+', text).filter(|plus| *plus <= MOST_SYMBOL)?;
    let digits = text[plus..].strip_prefix(b"+0x")?;
    let len = digits.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    (len > 0).then_some((&text[..plus], &digits[len..]))
}

fn place(symbol: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(symbol);
    let [a, b, ..] = hasher.finish().to_le_bytes();
    usize::from(u16::from_le_bytes([a, b])) % SYMBOLS
}
