//! Which methods a compiled one has inlined at an address, by its debug information.

use crate::blob::Compiled;

/// The most methods that are inlined into each other.
///
/// HotSpot's compilers go 15 calls deep, and 100 where a method asks for it.
const DEEPEST: usize = 128;

/// Numbers of at most five bytes; all but the last are at least 256 - 64.
const LONGEST_NUMBER: u32 = 5;
const HIGH: u32 = 64;

/// What debug information says of a byte code index: the real one less than this.
const BEFORE_FIRST: i64 = -1;

/// One of the methods that an address stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) method: u64,
    /// The index of the byte code; -1 where it is being entered.
    pub(crate) index: i64,
}

/// Debug information from a position on.
struct Stream<'s> {
    bytes: &'s [u8],
    at: usize,
    /// What is taken off each byte: 1 where numbers have no zero byte.
    least: u32,
}

impl Stream<'_> {
    fn number(&mut self) -> Option<u32> {
        let mut sum = 0_u32;
        for position in 0..LONGEST_NUMBER {
            let byte = u32::from(*self.bytes.get(self.at)?);
            self.at += 1;
            let value = byte.checked_sub(self.least)?;
            sum = sum.wrapping_add(value.checked_shl(6 * position)?);
            if byte < 256 - HIGH {
                break;
            }
        }
        Some(sum)
    }
}

impl Compiled {
    /// The entry of a return address, by its offset in the code.
    pub(crate) fn at_call(&self, offset: u64) -> Option<u32> {
        let found = self.pcs.binary_search_by_key(&offset, |(at, _)| u64::from(*at)).ok()?;
        self.pcs.get(found).map(|(_, scope)| *scope)
    }

    /// The nearest entry behind an instruction, by its offset in the code.
    pub(crate) fn behind(&self, offset: u64) -> Option<u32> {
        let next = self.pcs.partition_point(|(at, _)| u64::from(*at) <= offset);
        self.pcs.get(next).map(|(_, scope)| *scope)
    }

    /// The methods of an entry, innermost first; `None` where it says nothing, or nothing that makes sense.
    pub(crate) fn scopes(&self, entry: u32, without_zero: bool) -> Option<Vec<Scope>> {
        let mut scopes = Vec::new();
        let mut at = entry as usize;
        while at != 0 {
            let least = u32::from(without_zero);
            let mut stream = Stream { bytes: &self.scopes, at, least };
            let sender = stream.number()? as usize;
            let method = stream.number()?.checked_sub(1)? as usize;
            let method = *self.metadata.get(method)?;
            let index = i64::from(stream.number()?) + BEFORE_FIRST;
            scopes.push(Scope { method, index });
            // Callers are written down before those whom they call.
            if sender >= at || scopes.len() > DEEPEST {
                return None;
            }
            at = sender;
        }
        scopes.last().is_some_and(|last| last.method == self.method).then_some(scopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], least: u32, expect: Option<u32>) {
        assert_eq!(Stream { bytes, at: 0, least }.number(), expect, "{bytes:?}");
    }

    #[test]
    fn numbers_are_decoded_in_both_forms() {
        check(&[0], 0, Some(0));
        check(&[191], 0, Some(191));
        check(&[192, 0], 0, Some(192));
        check(&[255, 191], 0, Some(255 + (191 << 6)));
        check(
            &[192, 192, 192, 192, 1],
            0,
            Some(192 + (192 << 6) + (192 << 12) + (192 << 18) + (1 << 24)),
        );
        check(&[1], 1, Some(0));
        check(&[191], 1, Some(190));
        check(&[192, 1], 1, Some(191));
        check(&[0], 1, None);
        check(&[192], 0, None);
        check(&[], 0, None);
    }
}
