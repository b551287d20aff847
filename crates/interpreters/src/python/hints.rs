//! Where frames that are objects were met: most of a chain are still there at the next sample, whatever the order in
//! which the program calls them, so they are read together instead of one after the other.
//!
//! A frame keeps its place in a batch from one sample to the next, and a batch is read when a chain first leads into it:
//! callers that were met together lie together. Nothing is believed because it was there before; only where a chain
//! leads is looked at.

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::memory::{Memory, Part};

/// How many frames are remembered.
const PLACES: usize = BATCH * BATCHES;

/// How many are read at once. Each takes the kernel some time, needed or not.
const BATCH: usize = 32;

/// How many batches.
const BATCHES: usize = 34;

/// Frames that were met, and what was read of them in one sample.
#[derive(Debug)]
pub(crate) struct Hints {
    /// The addresses, 0 where there is none.
    places: Vec<u64>,
    place_of: FxHashMap<u64, usize>,
    /// The place that the next new frame gets.
    next: usize,
    /// Of each batch, how many of its frames were read; `None` = nobody needed it.
    read: [Option<usize>; BATCHES],
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            places: vec![0; PLACES],
            place_of: FxHashMap::with_capacity_and_hasher(2 * PLACES, FxBuildHasher),
            next: 0,
            read: [None; BATCHES],
        }
    }
}

impl Hints {
    /// Forgets what was read, not where.
    pub(super) fn begin(&mut self) {
        self.read = [None; BATCHES];
    }

    /// The bytes of the frame at an address, if it was met before; `room` is for all of them, and the same for the whole
    /// sample.
    pub(super) fn frame<'r>(
        &mut self,
        address: u64,
        len: usize,
        room: &'r mut [u8],
        memory: &dyn Memory,
    ) -> Option<&'r [u8]> {
        let place = *self.place_of.get(&address)?;
        let (batch, first) = (place / BATCH, place - place % BATCH);
        let count = match self.read.get(batch)? {
            Some(count) => *count,
            None => {
                let room = room.get_mut(first * len..(first + BATCH) * len)?;
                let count = self.read_batch(first, address, (len, room), memory);
                *self.read.get_mut(batch)? = Some(count);
                count
            }
        };
        let is_read = place - first < count && self.places.get(place) == Some(&address);
        room.get(place * len..(place + 1) * len).filter(|_| is_read)
    }

    /// Reads the frames from a place on: how many are there. One that is not is forgotten.
    fn read_batch(
        &mut self,
        first: usize,
        wanted: u64,
        (len, room): (usize, &mut [u8]),
        memory: &dyn Memory,
    ) -> usize {
        let mut parts = [Part::default(); BATCH];
        for (part, at) in parts.iter_mut().zip(self.places.iter().skip(first)) {
            // What is read in an empty place nobody looks at.
            *part = Part { address: if *at == 0 { wanted } else { *at }, len };
        }
        let count = memory.read(&parts, room) / len;
        if count < BATCH
            && let Some(gone) = self.places.get_mut(first + count)
        {
            self.place_of.remove(&std::mem::take(gone));
        }
        count
    }

    /// A frame was met: it is looked for there from the next sample on. What was read is not to be asked for any more.
    pub(super) fn note(&mut self, address: u64) {
        if self.place_of.contains_key(&address) {
            return;
        }
        if let Some(place) = self.places.get_mut(self.next) {
            self.place_of.remove(&std::mem::replace(place, address));
            self.place_of.insert(address, self.next);
        }
        self.next = (self.next + 1) % PLACES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Process;

    /// Frames of sixteen bytes that begin with their own address.
    fn process(count: u64) -> Process {
        let mut process = Process::default();
        process.piece(0x1000, 16 * count as usize);
        (0..count).for_each(|index| process.put(0x1000 + 16 * index, 0x1000 + 16 * index));
        process
    }

    fn found(hints: &mut Hints, address: u64, process: &Process) -> Option<u64> {
        let mut room = vec![0; 16 * PLACES];
        let bytes = hints.frame(address, 16, &mut room, process)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    #[test]
    fn frames_that_were_met_are_read_together() {
        let (mut hints, process) = (Hints::default(), process(100));
        let addresses: Vec<u64> = (0..100).map(|index| 0x1000 + 16 * index).collect();
        assert_eq!(found(&mut hints, 0x1000, &process), None);
        addresses.iter().for_each(|address| hints.note(*address));
        let mut room = vec![0; 16 * PLACES];
        hints.begin();
        for address in addresses.iter().rev() {
            let bytes = hints.frame(*address, 16, &mut room, &process).unwrap();
            assert_eq!(bytes[..8], address.to_le_bytes());
        }
        assert_eq!(process.reads.get(), 4);
    }

    #[test]
    fn a_frame_that_is_gone_is_forgotten_and_the_others_are_read_again() {
        let (mut hints, process) = (Hints::default(), process(3));
        [0x1000, 0x9000, 0x1010].iter().for_each(|address| hints.note(*address));
        let mut at = |address| {
            hints.begin();
            found(&mut hints, address, &process)
        };
        assert_eq!([at(0x1000), at(0x1010), at(0x9000)], [Some(0x1000), Some(0x1010), None]);
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let (mut hints, process) = (Hints::default(), process(PLACES as u64 + 1));
        (0..=PLACES as u64).for_each(|index| hints.note(0x1000 + 16 * index));
        let mut at = |index: u64| {
            hints.begin();
            found(&mut hints, 0x1000 + 16 * index, &process)
        };
        let last = PLACES as u64;
        assert_eq!([at(0), at(1)], [None, Some(0x1010)]);
        assert_eq!(at(last), Some(0x1000 + 16 * last));
    }
}
