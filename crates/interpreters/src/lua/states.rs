//! The states that a native stack leads to.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::layout::{IS_STATE, LuaLayout, TYPE};
use super::recall::Reader;
use crate::catch::Thread;
use crate::memory::{Memory, Part, byte, read_each, word};

/// How much of a stack is looked through: first so much, and if there is more, all of it.
const NEAR: usize = 16 * 1024;
const FAR: usize = 64 * 1024;

/// The most states of one stack: one a coroutine that resumes another.
pub(crate) const MOST: usize = 16;

/// The most words of a stack that are new in one sample.
const MOST_NEW: usize = 256;

/// Bytes of what shows that it is a state.
const HEAD: usize = 64;

/// How many words are remembered, and for how many samples: an address may come to be that of a state.
const WORDS: usize = 4096;
const SAMPLES: u32 = 64;

/// What words of stacks are.
#[derive(Debug)]
pub(crate) struct Words {
    /// For whom they are looked at.
    pub(crate) reader: Reader,
    /// Whether a word of a process leads to a state; the reader stands in the bits that addresses do not have.
    known: FxHashMap<(u32, u64), bool>,
    new: Vec<(u64, bool)>,
    bytes: Vec<u8>,
    samples: u32,
    found: Found,
}

/// The states that a stack leads to, innermost first.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    states: [u64; MOST],
    count: usize,
}

impl Found {
    fn add(&mut self, word: u64) {
        if self.count < MOST && !self.states.contains(&word) {
            self.states[self.count] = word;
            self.count += 1;
        }
    }
}

impl Default for Words {
    fn default() -> Words {
        Words {
            reader: Reader::default(),
            known: FxHashMap::with_capacity_and_hasher(2 * WORDS, FxBuildHasher),
            new: Vec::with_capacity(MOST_NEW),
            bytes: vec![1; FAR],
            samples: 0,
            found: Found::default(),
        }
    }
}

impl Words {
    /// The states, innermost first.
    pub(crate) fn found(&self) -> [u64; MOST] {
        self.found.states
    }

    /// Nothing is known of any word: what was no state may have become one.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Looks a stack through for states: how many there are.
    pub(crate) fn look(
        &mut self,
        is_state: impl Fn(&[u8]) -> bool,
        thread: Thread,
        memory: &dyn Memory,
        scratch: &mut [u8],
    ) -> usize {
        self.samples += 1;
        if self.samples >= SAMPLES || self.known.len() > WORDS {
            self.samples = 0;
            self.known.clear();
        }
        let start = thread.stack_pointer & !7;
        let mut len = self.read((start, 0), NEAR, memory);
        if len == NEAR {
            len += self.read((start, NEAR), FAR - NEAR, memory);
        }
        let stack = self.bytes.get(..len).unwrap_or_default();
        let is_elsewhere = |word: u64| word.wrapping_sub(start) >= len as u64;
        let words = stack.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let words = words.filter(|word| may_be_state(*word) && is_elsewhere(*word));
        let reader = self.reader as u64;
        let key = |word: u64| (thread.pid, word | reader);
        self.new.clear();
        let mut found = Found::default();
        for word in words.clone() {
            match self.known.get(&key(word)) {
                Some(true) => found.add(word),
                // Once, and judged below.
                None if self.new.len() < MOST_NEW => {
                    self.known.insert(key(word), false);
                    self.new.push((word, false));
                }
                Some(false) | None => {}
            }
        }
        read_each(
            memory,
            &mut self.new,
            (HEAD, scratch),
            |new| new.0,
            |new, bytes| new.1 = is_state(bytes),
        );
        self.new.retain(|(_, is_state)| *is_state);
        // All of them again, in the order of the stack: that is hardly ever so.
        if !self.new.is_empty() {
            self.known.extend(self.new.iter().map(|(word, _)| (key(*word), true)));
            found = Found::default();
            words
                .filter(|word| self.known.get(&key(*word)) == Some(&true))
                .for_each(|word| found.add(word));
        }
        self.found = found;
        found.count
    }

    fn read(&mut self, (start, from): (u64, usize), len: usize, memory: &dyn Memory) -> usize {
        let into = self.bytes.get_mut(from..from + len).unwrap_or_default();
        memory.read(&[Part { address: start.wrapping_add(from as u64), len }], into)
    }
}

/// Whether a word may be the address of a state.
fn may_be_state(word: u64) -> bool {
    word & 7 == 0 && word > 0xffff && word >> 47 == 0
}

/// Whether that is how a state begins.
pub(super) fn is_state(layout: &LuaLayout, bytes: &[u8]) -> bool {
    let leads = |at| word(bytes, at).is_some_and(may_be_state);
    byte(bytes, TYPE) == Some(IS_STATE) && leads(layout.global) && leads(layout.call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lua::layout::LuaBuild;
    use crate::testing::Process;

    #[test]
    fn states_are_found_in_the_order_of_the_stack() {
        let layout = LuaLayout::of(&LuaBuild { minor: 4, release: 4 }).unwrap();
        let mut process = Process::default();
        process.piece(0x7000_0000, 0x8000);
        process.piece(0x10_0000, 0x1000);
        for (index, state) in [0x10_0100, 0x10_0208].into_iter().enumerate() {
            process.put_byte(state + 8, 8);
            process.put(state + 24, 0x10_0800);
            process.put(state + 32, state + 96);
            process.put(0x7000_6000 - 0x4000 * index as u64, state);
        }
        // No state, no memory, the stack itself, and no address.
        for (index, word) in [0x10_0400, 0x66_0000, 0x7000_0040, 0x10_0101].into_iter().enumerate()
        {
            process.put(0x7000_0100 + 8 * index as u64, word);
        }
        let mut words = Words::default();
        let thread = Thread { pid: 7, tid: 7, stack_pointer: 0x7000_0000, ..Thread::default() };
        let mut scratch = vec![0; 64 * HEAD];
        for _ in 0..2 {
            assert_eq!(
                words.look(|bytes| is_state(&layout, bytes), thread, &process, &mut scratch),
                2
            );
            assert_eq!(words.found()[..3], [0x10_0208, 0x10_0100, 0]);
        }
        // Those of another interpreter of the process.
        words.reader = Reader::LuaJit;
        assert_eq!(words.look(|_| false, thread, &process, &mut scratch), 0);
        words.reader = Reader::Lua;
        assert_eq!(words.look(|_| false, thread, &process, &mut scratch), 2);
    }
}
