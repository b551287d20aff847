//! The addresses of a call chain, in the bytes that a record has them in.

use std::borrow::Cow;

use flame_profile::ProcessAddress;
use linux_perf_event_reader::Endianness;
use linux_perf_event_reader::constants::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER,
};

/// Addresses, innermost first.
///
/// They stay in the record as long as they are one part of it, so that a sample costs no memory.
///
/// ```
/// use flame_events::Addresses;
/// use flame_profile::ProcessAddress;
///
/// let chain: Addresses<'_> = [0x401000, 0x401234].into_iter().map(ProcessAddress).collect();
/// assert_eq!(chain.iter().next_back(), Some(ProcessAddress(0x401234)));
/// ```
#[derive(Clone, Debug)]
pub struct Addresses<'a> {
    words: Cow<'a, [[u8; 8]]>,
    endian: Endianness,
}

impl Default for Addresses<'_> {
    fn default() -> Self {
        Addresses { words: Cow::Borrowed(&[]), endian: Endianness::LittleEndian }
    }
}

impl FromIterator<ProcessAddress> for Addresses<'_> {
    fn from_iter<I: IntoIterator<Item = ProcessAddress>>(addresses: I) -> Self {
        let words = addresses.into_iter().map(|address| address.0.to_le_bytes());
        Addresses { words: words.collect(), endian: Endianness::LittleEndian }
    }
}

impl<'a> Addresses<'a> {
    /// Splits the words of a call chain at its context markers into those of the kernel and those of
    /// the user. Guest and hypervisor parts are dropped: flame samples neither.
    pub(crate) fn of_chain(words: &'a [[u8; 8]], endian: Endianness) -> [Addresses<'a>; 2] {
        let mut parts = [const { Cow::Borrowed(&[] as &[[u8; 8]]) }; 2];
        let mut add = |context, part: &'a [[u8; 8]]| {
            let known = match context {
                PERF_CONTEXT_KERNEL => &mut parts[0],
                PERF_CONTEXT_USER => &mut parts[1],
                _ => return,
            };
            match known.is_empty() {
                true => *known = Cow::Borrowed(part),
                false => known.to_mut().extend(part),
            }
        };
        let (mut context, mut start) = (PERF_CONTEXT_USER, 0);
        for (at, word) in words.iter().enumerate() {
            let entry = number(*word, endian);
            if entry >= PERF_CONTEXT_MAX {
                add(context, &words[start..at]);
                (context, start) = (entry, at + 1);
            }
        }
        add(context, &words[start..]);
        parts.map(|words| Addresses { words, endian })
    }

    /// The same, without the record that they stand in.
    pub(crate) fn into_owned<'o>(self) -> Addresses<'o> {
        Addresses { words: Cow::Owned(self.words.into_owned()), endian: self.endian }
    }

    /// The addresses.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ProcessAddress> + ExactSizeIterator + '_ {
        let endian = self.endian;
        self.words.iter().map(move |word| ProcessAddress(number(*word, endian)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

fn number(word: [u8; 8], endian: Endianness) -> u64 {
    match endian {
        Endianness::LittleEndian => u64::from_le_bytes(word),
        Endianness::BigEndian => u64::from_be_bytes(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: u64 = -2048i64 as u64;

    #[test]
    fn a_chain_is_split_at_its_contexts_in_both_byte_orders() {
        let chain = [PERF_CONTEXT_KERNEL, 1, 2, GUEST, 3, PERF_CONTEXT_USER, 4, 5];
        for (chain, kernel, user) in [
            (&chain[..], &[1, 2][..], &[4, 5][..]),
            // What stands before the first marker is the user's.
            (&[7, 8], &[], &[7, 8]),
            (&[PERF_CONTEXT_USER, 4, PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 5], &[1], &[4, 5]),
            (&[PERF_CONTEXT_KERNEL], &[], &[]),
            (&[], &[], &[]),
        ] {
            for endian in [Endianness::LittleEndian, Endianness::BigEndian] {
                let big = endian == Endianness::BigEndian;
                let word = |word: &u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
                let words: Vec<[u8; 8]> = chain.iter().map(word).collect();
                let found = Addresses::of_chain(&words, endian);
                let found =
                    found.map(|part| part.iter().map(|address| address.0).collect::<Vec<_>>());
                assert_eq!(found, [kernel.to_vec(), user.to_vec()], "{chain:x?}");
            }
        }
    }
}
