//! Where interpreters have what belongs to a thread, so that a list of thousands is gone through once.
//!
//! Nothing is believed because it is here: what is at the place is read and checked each time.

use crate::catch::Thread;

/// How many threads are remembered, by their numbers, of which those of a process follow each other.
const THREADS: usize = 8192;

/// How many processes it is remembered of how far their lists were gone through.
const PROCESSES: usize = 64;

/// How many reads one look for a state may take: a thread that is sampled stands still meanwhile, 2 us each.
const MOST_READS: usize = 256;

/// How often a state is believed to be that of a thread whose number it does not have.
const MOST_GUESSES: u16 = 3;

/// A thread that was not found so often runs native code only: from then on one look in so many goes through the list.
const MOST_MISSES: u16 = 32;

/// The state of a thread, or that there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    key: u64,
    /// Where it is; 0 = it was not found.
    pub(crate) place: u64,
    /// The number of its thread that it has.
    pub(crate) number: u64,
    /// The thread's number in its own namespace; 0 = nobody asked.
    pub(crate) own_number: u32,
    guesses: u16,
    misses: u16,
}

impl Met {
    /// Whether it may be where it was met.
    pub(crate) fn is_place(&self) -> bool {
        self.place != 0 && self.guesses <= MOST_GUESSES
    }

    /// Whether it is worth the time to go on through the list.
    pub(crate) fn is_worth_a_walk(&self) -> bool {
        self.misses < MOST_MISSES || self.misses.is_multiple_of(MOST_MISSES)
    }
}

/// A number of a thread, as flame's namespace has it or the thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Ours(u32),
    Own(u32),
}

/// All that was met.
#[derive(Debug)]
pub(crate) struct AllMet {
    threads: Box<[Met]>,
    /// Of each process the state that a walk stopped at.
    stops: [(u32, u64); PROCESSES],
    pub(crate) most_reads: usize,
}

impl Default for AllMet {
    fn default() -> AllMet {
        AllMet {
            threads: vec![Met::default(); THREADS].into_boxed_slice(),
            stops: [(0, 0); PROCESSES],
            most_reads: MOST_READS,
        }
    }
}

impl AllMet {
    /// Where nobody stands still: a walk of any length that is usual.
    pub(crate) fn be_patient(&mut self) {
        self.most_reads = 64 * MOST_READS;
    }

    /// What is known of a thread.
    pub(crate) fn of(&mut self, thread: Thread) -> Met {
        let (key, place) = key_of(thread.pid, Number::Ours(thread.tid));
        let met = &mut self.threads[place];
        if met.key != key {
            return Met { key, ..Met::default() };
        }
        met.guesses = met.guesses.saturating_add(u16::from(met.number != met.own_number.into()));
        *met
    }

    /// Where a thread is that was met in passing, if it was.
    pub(crate) fn in_passing(&self, pid: u32, number: Number) -> Option<u64> {
        let (key, place) = key_of(pid, number);
        let met = &self.threads[place];
        (met.key == key && met.place != 0).then_some(met.place)
    }

    /// A state was met that says of itself that it is of a thread with that number.
    pub(crate) fn pass(&mut self, pid: u32, number: Number, place: u64) {
        let (key, index) = key_of(pid, number);
        let (Number::Ours(own_number) | Number::Own(own_number)) = number;
        let met = Met { key, place, number: own_number.into(), own_number, ..Met::default() };
        self.threads[index] = met;
    }

    /// The state of a thread is there, and has that number.
    pub(crate) fn found(&mut self, met: Met, thread: Thread, (place, number): (u64, u64)) {
        let (_, index) = key_of(thread.pid, Number::Ours(thread.tid));
        self.threads[index] = Met { place, number, guesses: 0, misses: 0, ..met };
    }

    /// It was not found.
    pub(crate) fn missed(&mut self, met: Met, thread: Thread) {
        let (_, index) = key_of(thread.pid, Number::Ours(thread.tid));
        // It counts on beyond the limit, so that it is looked for from time to time.
        let misses = if met.misses == u16::MAX { MOST_MISSES } else { met.misses + 1 };
        self.threads[index] = Met { misses, ..met };
    }

    /// The state at which the last walk through a process stopped; 0 = at none.
    pub(crate) fn stopped_at(&self, pid: u32) -> u64 {
        let (process, place) = self.stops[pid as usize % PROCESSES];
        if process == pid { place } else { 0 }
    }

    pub(crate) fn stop_at(&mut self, pid: u32, place: u64) {
        self.stops[pid as usize % PROCESSES] = (pid, place);
    }
}

/// What tells a thread, which is 0 for none, and its place. Numbers of other namespaces are told from ours, which may
/// be those of other threads of the same process.
fn key_of(pid: u32, number: Number) -> (u64, usize) {
    let (number, other) = match number {
        Number::Ours(number) => (number, 0),
        Number::Own(number) => (number, 1 << 31),
    };
    // Small numbers are in all namespaces.
    let spread = if other == 0 { 0 } else { pid };
    let key = u64::from(pid) << 32 | u64::from(number | other);
    (key, number.wrapping_add(spread) as usize % THREADS)
}
