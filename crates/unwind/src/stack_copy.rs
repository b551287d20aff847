//! The bytes of a thread's stack: those that were copied, and those that were read beyond.

use flame_profile::{ProcessAddress, StackEnd};

/// How far beyond the copy an address may be to be taken for one of the same stack. Stacks are
/// 8 MiB by default; what is further off than this is not an address of the stack at all.
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

/// A copy of the stack from the stack pointer upwards, as one or two slices of a ring buffer.
///
/// ```text
/// start (= stack pointer)
/// | head ................ | tail ........ | rest, where it was read ... |
/// lower addresses, callees                    higher addresses, callers
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    start: u64,
    head: &'a [u8],
    tail: &'a [u8],
    rest: &'a [u8],
    /// Where another stack starts, and its bytes.
    other: (u64, &'a [u8]),
    limit: StackLimit,
    /// Where the walk is on another stack than the one that was copied: its stack pointer there.
    elsewhere: Option<u64>,
}

impl<'a> StackCopy<'a> {
    /// The copy that starts at `start`: the bytes of `head`, directly followed by those of `tail`.
    pub fn new(
        start: ProcessAddress,
        head: &'a [u8],
        tail: &'a [u8],
        limit: StackLimit,
    ) -> StackCopy<'a> {
        let (rest, other) = (&[][..], (0, &[][..]));
        StackCopy { start: start.0, head, tail, rest, other, limit, elsewhere: None }
    }

    /// The same with the bytes that follow `tail`.
    pub fn with_rest(self, rest: &'a [u8]) -> StackCopy<'a> {
        StackCopy { rest, ..self }
    }

    /// The same with the bytes of another stack, on which a signal has come.
    pub fn with_interrupted(self, start: ProcessAddress, bytes: &'a [u8]) -> StackCopy<'a> {
        StackCopy { other: (start.0, bytes), ..self }
    }

    /// Notes that a frame with that stack pointer was interrupted by a signal. Handlers may run on
    /// a stack of their own, and what was copied is that one then: the other exists as well.
    pub(crate) fn interrupted_at(&mut self, stack_pointer: u64) {
        if self.read_u64(stack_pointer).is_err() {
            self.elsewhere = Some(stack_pointer);
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.rest.is_empty()
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
        let mut word = [0; 8];
        for (index, byte) in word.iter_mut().take(usize::from(size)).enumerate() {
            let address = address.checked_add(index as u64).ok_or(Unreadable::OutsideStack)?;
            *byte = self.byte(address)?;
        }
        Ok(u64::from_le_bytes(word))
    }

    fn other_byte(&self, address: u64) -> Option<u8> {
        let (start, bytes) = self.other;
        bytes.get(offset(address, start)?).copied()
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
        let Some(offset) = offset(address, self.start) else {
            return self.other_byte(address).ok_or(missing);
        };
        let beyond = offset.checked_sub(self.head.len());
        let byte = match beyond.map(|offset| (offset, offset.checked_sub(self.tail.len()))) {
            None => self.head.get(offset),
            Some((offset, None)) => self.tail.get(offset),
            Some((_, Some(offset))) => self.rest.get(offset),
        };
        byte.copied().or_else(|| self.other_byte(address)).ok_or(missing)
    }
}

/// How many bytes an address is behind another.
fn offset(address: u64, start: u64) -> Option<usize> {
    usize::try_from(address.checked_sub(start)?).ok()
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

    #[test]
    fn words_are_read_in_the_rest_and_across_its_start() {
        let bytes: Vec<u8> = (0..32).collect();
        for (first, second) in [(0, 0), (0, 5), (3, 20), (16, 16)] {
            let (copy, rest) = bytes.split_at(second);
            let (head, tail) = copy.split_at(first);
            let copy = StackCopy::new(ProcessAddress(START), head, tail, StackLimit::CopyFull);
            let copy = copy.with_rest(rest);
            assert_eq!(copy.read_u64(START + 2), Ok(0x0908_0706_0504_0302), "{first} {second}");
            assert_eq!(copy.read_u64(START + 24), Ok(0x1f1e_1d1c_1b1a_1918));
            assert_eq!(copy.read_u64(START + 25), Err(Unreadable::NotCopied));
        }
    }

    #[test]
    fn words_of_an_interrupted_stack_are_read() {
        for other in [START - 0x1000, START + 0x1_0000] {
            let copy = StackCopy::new(ProcessAddress(START), &[1; 16], &[], StackLimit::CopyFull);
            let copy = copy.with_rest(&[2; 8]).with_interrupted(ProcessAddress(other), &[3; 16]);
            assert_eq!(copy.read_u64(other + 8), Ok(0x0303_0303_0303_0303));
            assert_eq!(copy.read_u64(START + 12), Ok(0x0202_0202_0101_0101));
            assert!(copy.read_u64(other + 16).is_err());
        }
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
        check(StackLimit::CopyFull, START + LONGEST_STACK - 1, Err(Unreadable::NotCopied));
        check(StackLimit::CopyFull, START + LONGEST_STACK, Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, START + (1 << 40), Err(Unreadable::OutsideStack));
        check(StackLimit::CopyFull, u64::MAX - 2, Err(Unreadable::OutsideStack));
    }
}
