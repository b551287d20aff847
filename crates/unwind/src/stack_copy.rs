//! The copied part of a thread's stack, or another source of its words.

use std::fmt;

use flame_profile::{ProcessAddress, StackEnd};

/// How far beyond the copy an address may be to be taken for one of the same stack. Stacks are
/// 8 MiB by default; what is further off than this is no address of the stack at all.
const LONGEST_STACK: u64 = 1 << 30;

/// Why a copy of a stack has no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackLimit {
    /// As many bytes were copied as were asked for; the stack goes on.
    CopyFull,
    /// The kernel could read no further: the stack's mapping ends there.
    StackEnded,
}

/// Why a word could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It lies in the part of the stack that was not copied.
    NotCopied,
    /// It lies outside the stack.
    OutsideStack,
}

impl Unreadable {
    /// How a walk ends that needs the word.
    pub fn stack_end(self) -> StackEnd {
        match self {
            Unreadable::NotCopied => StackEnd::CopyTooShort,
            Unreadable::OutsideStack => StackEnd::BadValue,
        }
    }
}

/// Where words of a stack come from besides a copy: the memory of a live process, say.
pub trait StackSource: fmt::Debug {
    /// The 8 bytes at `address` as a little-endian number.
    ///
    /// # Errors
    /// When they cannot be had.
    fn word(&self, address: ProcessAddress) -> Result<u64, Unreadable>;
}

/// A copy of the stack from the stack pointer upwards, as one or two slices of a ring buffer.
///
/// ```text
/// start (= stack pointer)                             start + len
/// | head ........................... | tail ........ |
/// lower addresses, callees                            higher addresses, callers
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    start: u64,
    head: &'a [u8],
    tail: &'a [u8],
    limit: StackLimit,
    /// Where the walk is on another stack than the one that was copied: its stack pointer there.
    elsewhere: Option<u64>,
    /// Asked for every word that the copy does not have.
    source: Option<&'a dyn StackSource>,
}

impl<'a> StackCopy<'a> {
    /// The copy that starts at `start`: the bytes of `head`, directly followed by those of `tail`.
    pub fn new(
        start: ProcessAddress,
        head: &'a [u8],
        tail: &'a [u8],
        limit: StackLimit,
    ) -> StackCopy<'a> {
        StackCopy { start: start.0, head, tail, limit, elsewhere: None, source: None }
    }

    /// A stack whose every word is asked of `source`.
    pub fn of_source(start: ProcessAddress, source: &'a dyn StackSource) -> StackCopy<'a> {
        let limit = StackLimit::CopyFull;
        let source = Some(source);
        StackCopy { start: start.0, head: &[], tail: &[], limit, elsewhere: None, source }
    }

    /// Notes that a frame with that stack pointer was interrupted by a signal. Handlers may run on
    /// a stack of their own, and what was copied is that one then: the other exists as well.
    pub(crate) fn interrupted_at(&mut self, stack_pointer: u64) {
        if self.read_u64(stack_pointer).is_err() {
            self.elsewhere = Some(stack_pointer);
        }
    }

    /// Whether nothing was copied, and nothing can be asked for either.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.source.is_none()
    }

    /// The 8 bytes at `address` as a little-endian number.
    ///
    /// # Errors
    /// When not all of them were copied.
    #[inline]
    pub fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        let bytes = usize::try_from(address.wrapping_sub(self.start))
            .ok()
            .and_then(|offset| self.head.get(offset..)?.first_chunk::<8>());
        match bytes {
            Some(bytes) => Ok(u64::from_le_bytes(*bytes)),
            None => self.read_small(address, 8),
        }
    }

    /// `size` bytes (at most 8) at `address` as a little-endian number.
    ///
    /// # Errors
    /// When not all of them were copied.
    pub(crate) fn read_small(&self, address: u64, size: u8) -> Result<u64, Unreadable> {
        if let Some(source) = self.source {
            let word = source.word(ProcessAddress(address))?;
            let kept = u64::MAX.checked_shr(64 - 8 * u32::from(size.min(8))).unwrap_or(0);
            return Ok(word & kept);
        }
        let mut word = [0; 8];
        for (index, byte) in word.iter_mut().take(usize::from(size)).enumerate() {
            let address = address.checked_add(index as u64).ok_or(Unreadable::OutsideStack)?;
            *byte = self.byte(address)?;
        }
        Ok(u64::from_le_bytes(word))
    }

    fn byte(&self, address: u64) -> Result<u8, Unreadable> {
        let is_beyond = |start| address.checked_sub(start).is_some_and(|n| n < LONGEST_STACK);
        let is_of_stack = match self.limit {
            StackLimit::CopyFull => is_beyond(self.start),
            StackLimit::StackEnded => false,
        };
        let missing = match is_of_stack || self.elsewhere.is_some_and(is_beyond) {
            true => Unreadable::NotCopied,
            false => Unreadable::OutsideStack,
        };
        let distance = address.checked_sub(self.start).ok_or(missing)?;
        let offset = usize::try_from(distance).map_err(|_| missing)?;
        let byte = match offset.checked_sub(self.head.len()) {
            None => self.head.get(offset),
            Some(offset) => self.tail.get(offset),
        };
        byte.copied().ok_or(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x7ffc_1000;

    #[track_caller]
    fn check(limit: StackLimit, address: u64, expect: Result<u64, Unreadable>) {
        let bytes: Vec<u8> = (0..24).collect();
        for split in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(split);
            let copy = StackCopy::new(ProcessAddress(START), head, tail, limit);
            assert_eq!(copy.read_u64(address), expect, "split at {split}");
        }
    }

    #[test]
    fn words_are_read_across_the_wrap() {
        check(StackLimit::CopyFull, START, Ok(0x0706_0504_0302_0100));
        check(StackLimit::CopyFull, START + 3, Ok(0x0a09_0807_0605_0403));
        check(StackLimit::CopyFull, START + 16, Ok(0x1716_1514_1312_1110));
    }

    #[derive(Debug)]
    struct Doubled;

    impl StackSource for Doubled {
        fn word(&self, address: ProcessAddress) -> Result<u64, Unreadable> {
            if address.0 < START { Err(Unreadable::OutsideStack) } else { Ok(address.0 * 2) }
        }
    }

    #[test]
    fn words_of_a_source_are_cut_to_the_size_asked_for() {
        let stack = StackCopy::of_source(ProcessAddress(START), &Doubled);
        assert_eq!(stack.read_u64(START + 8), Ok(2 * START + 16));
        assert_eq!(stack.read_small(START + 8, 8), Ok(2 * START + 16));
        assert_eq!(stack.read_small(START + 8, 2), Ok((2 * START + 16) & 0xffff));
        assert_eq!(stack.read_small(START + 8, 0), Ok(0));
        assert_eq!(stack.read_u64(START - 8), Err(Unreadable::OutsideStack));
        assert!(!stack.is_empty());
    }

    #[test]
    fn a_word_beyond_a_full_copy_was_not_copied() {
        check(StackLimit::CopyFull, START + 17, Err(Unreadable::NotCopied));
        check(StackLimit::CopyFull, START + (1 << 20), Err(Unreadable::NotCopied));
    }

    #[test]
    fn words_that_no_larger_copy_would_hold_are_outside() {
        check(StackLimit::StackEnded, START + 17, Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, START - 1, Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, START - 8, Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, START + (1 << 40), Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, u64::MAX - 2, Err(Unreadable::OutsideStack));
    }
}
