//! Where the stacks of sampled threads end, so that nothing behind them is read.
//!
//! What lies behind the stack of a thread is often readable: the first thread that a program starts has
//! its stack right below the libraries. Without its end 1 MiB was read at each sample of such a thread
//! while it stood still, and a stack that was copied whole was read once more.
//!
//! A stack ends where memory follows that is a file's, or cannot be written, or is not there; that
//! stays as long as the thread. A program may have split the mapping of its stack (mlock, madvise), so
//! memory of its own right behind it counts as part of it. The end is looked up by the reader, since a
//! process that means ill may let those wait for ever who ask for its mappings, and a reader can be left
//! behind.
//!
//! Go's heap, in which goroutines have their stacks, grows behind its end, and a stack may come to lie
//! across what was the end when it was looked up. So an end where such a heap can end is none.
//!
//! Where this is not so any more, a stack is read too far, or comes out truncated and says so.
//!
//! Sources: proc_pid_maps(5); Go's runtime/mheap.go (`grow`).

use std::fs::File;
use std::io::Read;

use flame_profile::{Nanos, Pid, ProcessAddress, Tid};

use crate::places;
use crate::session::monotonic_now;

/// How many threads are known at once; each has one place, by its number.
const PLACES: usize = 512;

/// After how many samples of a thread its mapping is looked up: less than a look takes, and never for
/// most of those that live for a moment.
const SAMPLES: u32 = 8;

/// How much longer than a look no other one is taken: the thread waits for it.
const REST: u64 = 50;

/// Go's heap grows by multiples of this many bytes, at addresses that are multiples of it.
const GO_GROWS_BY: u64 = 4 << 20;

/// What is known of threads.
#[derive(Debug)]
pub(crate) struct StackEnds {
    places: Box<[Place]>,
    /// From when on a look may be taken.
    next: Nanos,
}

/// A thread, and the mapping of its stack.
#[derive(Clone, Copy, Debug)]
struct Place {
    tid: Tid,
    start: u64,
    end: u64,
    /// How many samples of it lay elsewhere, and how many have to until its mapping is looked up again.
    samples: u32,
    wanted: u32,
}

impl Place {
    fn of(tid: Tid) -> Place {
        Place { tid, start: 0, end: 0, samples: 0, wanted: SAMPLES }
    }
}

impl Default for StackEnds {
    fn default() -> StackEnds {
        // 0 is the number of idle tasks, which have no stack.
        StackEnds { places: vec![Place::of(Tid(0)); PLACES].into(), next: Nanos(0) }
    }
}

impl StackEnds {
    /// Where the mapping ends that the stack of a thread lies in, if that is known and does not move.
    pub(crate) fn of(&self, tid: Tid, stack_pointer: ProcessAddress) -> Option<ProcessAddress> {
        let end = self.looked_up(tid, stack_pointer)?;
        (!end.0.is_multiple_of(GO_GROWS_BY)).then_some(end)
    }

    /// Where it ended when it was looked up.
    fn looked_up(&self, tid: Tid, stack_pointer: ProcessAddress) -> Option<ProcessAddress> {
        let place = self.places.get(tid.0 as usize % PLACES)?;
        let is_there = (place.start..place.end).contains(&stack_pointer.0);
        (place.tid == tid && is_there).then_some(ProcessAddress(place.end))
    }

    /// Takes note of a sample of a thread; looks the end of its stack up if that is not known and the
    /// thread comes often. `room` is for what /proc says.
    pub(crate) fn note(
        &mut self,
        (pid, tid): (Pid, Tid),
        stack_pointer: ProcessAddress,
        room: &mut [u8],
    ) {
        if self.looked_up(tid, stack_pointer).is_some() {
            return;
        }
        let Some(place) = self.places.get_mut(tid.0 as usize % PLACES) else { return };
        if place.tid != tid {
            *place = Place::of(tid);
        }
        place.samples = place.samples.saturating_add(1);
        let now = monotonic_now();
        if place.samples < place.wanted || now < self.next {
            return;
        }
        // A thread that has several stacks is not looked up for ever.
        place.wanted = place.samples.saturating_mul(2);
        if let Some((start, end)) = mapping_of((pid, tid), stack_pointer.0, room) {
            (place.start, place.end) = (start, end);
        }
        let took = monotonic_now().saturating_since(now);
        self.next = Nanos(now.0 + took.0.saturating_mul(REST));
    }
}

/// The memory that an address lies in, up to its end; `None` when there is none, or when it stands
/// behind more mappings than there is room for.
fn mapping_of((pid, tid): (Pid, Tid), address: u64, room: &mut [u8]) -> Option<(u64, u64)> {
    let most = room.len();
    let text = read(places::open(pid, tid, "maps")?, room);
    let mut mappings = text.split(|byte| *byte == b'\n').map_while(Mapping::parse);
    let first = mappings.find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let end = mappings.try_fold(first.end, |end, next| {
        if next.is_memory && next.start == end { Ok(next.end) } else { Err(end) }
    });
    match end {
        // There may be more of it behind the text.
        Ok(_) if text.len() == most => None,
        Ok(end) | Err(end) => Some((first.start, end)),
    }
}

/// A line of /proc/PID/maps.
struct Mapping {
    start: u64,
    end: u64,
    /// Whether it is a process's own to write to, and no file's.
    is_memory: bool,
}

impl Mapping {
    fn parse(line: &[u8]) -> Option<Mapping> {
        // What the file is called may be anything.
        let mut words = line.splitn(6, |byte| *byte == b' ').map(std::str::from_utf8);
        let mut word = || words.next()?.ok();
        let (start, end) = word()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (rights, _offset, _device, inode) = (word()?, word()?, word()?, word()?);
        let is_memory = rights.starts_with("rw") && inode == "0";
        Some(Mapping { start: number(start)?, end: number(end)?, is_memory })
    }
}

fn read(mut file: File, room: &mut [u8]) -> &[u8] {
    let mut len = 0;
    while let Some(into) = room.get_mut(len..).filter(|into| !into.is_empty()) {
        match file.read(into) {
            Ok(read @ 1..) => len += read,
            _ => break,
        }
    }
    &room[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> (Pid, Tid) {
        (Pid(std::process::id()), Tid(nix::unistd::gettid().as_raw() as u32))
    }

    #[test]
    fn the_end_of_a_thread_is_found_once_it_was_sampled_often() {
        let found = std::thread::spawn(|| {
            let (on_stack, mut room) = (0_u8, vec![0; 1 << 20]);
            let here = ProcessAddress(&raw const on_stack as u64);
            let mut ends = StackEnds::default();
            for sample in 1..=SAMPLES {
                assert_eq!(ends.of(own().1, here), None, "{sample}");
                ends.note(own(), here, &mut room);
            }
            let end = ends.of(own().1, here).unwrap();
            // A thread of Rust has 2 MiB.
            assert!((1..=2 << 20).contains(&(end.0 - here.0)), "{end} {here}");
            assert_eq!(ends.of(own().1, end), None);
            assert_eq!(ends.of(Tid(own().1.0 + PLACES as u32), here), None);
        });
        found.join().unwrap();
    }

    #[test]
    fn the_end_of_a_heap_that_may_grow_is_none() {
        let (tid, within) = (Tid(7), ProcessAddress(0xc0_003f_0000));
        let mut ends = StackEnds::default();
        let mut end_at = |end| {
            ends.places[7] = Place { start: 0xc0_0000_0000, end, ..Place::of(tid) };
            (ends.looked_up(tid, within), ends.of(tid, within))
        };
        let (moves, stays) = (ProcessAddress(0xc0_0040_0000), ProcessAddress(0xc0_0040_1000));
        assert_eq!(end_at(moves.0), (Some(moves), None));
        assert_eq!(end_at(stays.0), (Some(stays), Some(stays)));
    }

    #[test]
    fn what_stands_behind_the_room_is_not_found() {
        let on_stack = 0_u8;
        let here = &raw const on_stack as u64;
        assert!(mapping_of(own(), here, &mut vec![0; 1 << 20]).is_some());
        assert_eq!(mapping_of(own(), here, &mut [0; 32]), None);
        assert_eq!(mapping_of(own(), 0, &mut vec![0; 1 << 20]), None);
    }
}
