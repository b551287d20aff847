//! Memory that is read together where it was met in the sample before.
//!
//! What leads from one call to the next is a list, and each step of it a reading. But from one sample to the
//! next most of a list stands where it stood: so all of it is read at once, before it is followed, and what
//! is not where it was is read alone.

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::catch::Thread;
use crate::memory::{BATCH, Memory, Part};

/// How many threads are remembered, and how many parts of the memory of each.
const THREADS: usize = 8;
const PARTS: usize = 1024;

/// Bytes for what is read.
const ROOM: usize = 256 * 1024;

/// How often memory is read at most in one sample for what was not met before.
const MOST_READS: usize = 1024;

/// The language for which memory is read: what was met for one is not for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reader {
    #[default]
    Lua,
    LuaJit,
    Ruby,
    Php,
}

/// What was met of a thread.
#[derive(Debug, Default)]
struct Met {
    thread: (u32, u32, Reader),
    parts: Vec<Part>,
}

/// Where a part lies among those that were read.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    len: usize,
    is_met: bool,
}

/// Memory of the thread that is looked at.
#[derive(Debug)]
pub(crate) struct Recall {
    /// For whom memory is read.
    pub(crate) reader: Reader,
    met: Box<[Met]>,
    /// The one of the thread.
    current: usize,
    /// What it had in the sample before.
    before: Vec<Part>,
    places: FxHashMap<u64, Place>,
    bytes: Vec<u8>,
    used: usize,
    left: usize,
}

impl Default for Recall {
    fn default() -> Recall {
        let thread = (0, 0, Reader::default());
        let met = || Met { thread, parts: Vec::with_capacity(PARTS) };
        Recall {
            reader: Reader::default(),
            met: (0..THREADS).map(|_| met()).collect(),
            current: 0,
            before: Vec::with_capacity(PARTS),
            places: FxHashMap::with_capacity_and_hasher(4 * PARTS, FxBuildHasher),
            bytes: vec![1; ROOM],
            used: 0,
            left: MOST_READS,
        }
    }
}

impl Recall {
    /// Begins with a sample of a thread.
    pub(crate) fn begin(&mut self, thread: Thread, memory: &dyn Memory) {
        let key = (thread.pid, thread.tid, self.reader);
        // A process may have several of them.
        self.current = (thread.tid as usize + self.reader as usize * THREADS / 4) % THREADS;
        self.places.clear();
        (self.used, self.left) = (0, MOST_READS);
        let Some(met) = self.met.get_mut(self.current) else { return };
        std::mem::swap(&mut met.parts, &mut self.before);
        met.parts.clear();
        if std::mem::replace(&mut met.thread, key) == key {
            self.read_again(memory);
        }
    }

    /// Whether so much was read that no more is.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// So many bytes at an address, if they can be read.
    pub(crate) fn get(&mut self, address: u64, len: usize, memory: &dyn Memory) -> Option<&[u8]> {
        let known = self.places.get_mut(&address).filter(|place| place.len >= len);
        let place = match known {
            Some(place) => {
                let is_met = std::mem::replace(&mut place.is_met, true);
                Place { is_met, ..*place }
            }
            None => self.read(address, len, memory)?,
        };
        let met = self.met.get_mut(self.current).filter(|met| met.parts.len() < PARTS);
        if let Some(met) = met.filter(|_| !place.is_met) {
            met.parts.push(Part { address, len });
        }
        self.bytes.get(place.at..place.at + len)
    }

    /// The word of eight bytes at an address.
    pub(crate) fn word(&mut self, address: u64, memory: &dyn Memory) -> Option<u64> {
        self.get(address, 8, memory).and_then(|bytes| crate::memory::word(bytes, 0))
    }

    fn read(&mut self, address: u64, len: usize, memory: &dyn Memory) -> Option<Place> {
        let into = self.bytes.get_mut(self.used..self.used.checked_add(len)?)?;
        if self.left == 0 || address < BATCH as u64 {
            return None;
        }
        self.left -= 1;
        if !memory.fill(address, into) {
            return None;
        }
        let place = Place { at: self.used, len, is_met: false };
        self.used += len;
        self.places.insert(address, Place { is_met: true, ..place });
        Some(place)
    }

    /// Reads what there was before, without what is not there any more.
    fn read_again(&mut self, memory: &dyn Memory) {
        let mut rest = self.before.as_slice();
        while self.left > 0 && !rest.is_empty() {
            self.left -= 1;
            let mut parts = rest.get(..rest.len().min(BATCH)).unwrap_or_default();
            let room = self.bytes.len() - self.used;
            let total = |parts: &[Part]| parts.iter().map(|part| part.len).sum::<usize>();
            while total(parts) > room {
                parts = parts.split_last().map_or(&[], |(_, parts)| parts);
            }
            let into = self.bytes.get_mut(self.used..).unwrap_or_default();
            let mut read = memory.read(parts, into);
            let mut count = 0;
            for part in parts {
                let Some(left) = read.checked_sub(part.len) else { break };
                let place = Place { at: self.used, len: part.len, is_met: false };
                self.places.insert(part.address, place);
                (read, count) = (left, count + 1);
                self.used += part.len;
            }
            // Behind one that cannot be read there are others.
            rest = rest.get(count.max(parts.len().min(count + 1)).max(1)..).unwrap_or_default();
            if parts.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Process;

    #[test]
    fn what_was_met_is_read_at_once() {
        let mut process = Process::default();
        process.piece(0x1000, 0x1000);
        (0..100).for_each(|index| process.put(0x1000 + 16 * index, index));
        let mut recall = Recall::default();
        let thread = |tid| Thread { pid: 7, tid, stack_pointer: 0, ..Thread::default() };
        let look = |recall: &mut Recall, tid| {
            recall.begin(thread(tid), &process);
            let words = (0..100).map(|index| recall.word(0x1000 + 16 * index, &process));
            assert!(words.eq((0..100).map(Some)));
            process.reads.replace(0)
        };
        // Each alone, then together, and a thread of which nothing is known.
        assert_eq!([7, 7, 8, 7].map(|tid| look(&mut recall, tid)), [100, 2, 100, 2]);
        // What another interpreter of the process needs stands beside it.
        recall.reader = Reader::Php;
        assert_eq!([7, 7].map(|tid| look(&mut recall, tid)), [100, 2]);
        recall.reader = Reader::Lua;
        assert_eq!(look(&mut recall, 7), 2);
    }

    #[test]
    fn what_is_not_there_any_more_is_passed_over() {
        let mut process = Process::default();
        [0x1000, 0x3000, 0x5000].iter().for_each(|at| process.piece(*at, 64));
        let mut recall = Recall::default();
        let thread = Thread { pid: 7, tid: 7, stack_pointer: 0, ..Thread::default() };
        let look = |recall: &mut Recall, process: &Process| {
            recall.begin(thread, process);
            [0x1000, 0x3000, 0x5000].map(|at| recall.word(at, process).is_some())
        };
        assert_eq!(look(&mut recall, &process), [true; 3]);
        process.pieces.remove(&0x3000);
        process.reads.set(0);
        assert_eq!(look(&mut recall, &process), [true, false, true]);
        // Up to the one, behind the one, and the one.
        assert_eq!(process.reads.get(), 3);
        assert!(recall.get(8, 8, &process).is_none() && !recall.is_exhausted());
    }
}
