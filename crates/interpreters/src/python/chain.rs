//! The chain of a thread's frames, and where one native frame's end and the next one's begin.

use super::code;
use super::hints::Hints;
use super::layout::{Frames, MAX_FRAME, Position, PythonLayout};
use super::thread::{self, State};
use crate::catch::{Catcher, MOST_ENTRIES, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::memory::{Memory, Part, Window, byte, half, word};

/// What frames are allocated in has at least so many bytes (`DATA_STACK_CHUNK_SIZE`).
const CHUNK: usize = 16 * 1024;

/// The owner of a frame that belongs to a native one (`FRAME_OWNED_BY_CSTACK`, from 3.14 on `FRAME_OWNED_BY_INTERPRETER`).
const BY_NATIVE: u8 = 3;

/// The bits of a reference to a code object that say who counts it, from 3.14 on: objects lie at multiples of 8.
const TAG: u64 = 3;

/// How often memory is read at most for what is not where it was looked for first. Frames that are
/// objects are read together when they were met before, so that deep chains are whole after some samples.
const MOST_READS: usize = 128;

/// The most native frames that are followed through their structures.
const MOST_NATIVE: usize = 2048;

/// A frame as it stands in memory.
#[derive(Clone, Copy, Debug)]
struct Frame {
    previous: u64,
    code: u64,
    position: u64,
    /// Whether it is an entry, or who owns it.
    flag: u8,
}

/// Memory that frames are looked for in, before it is read anew.
#[derive(Debug)]
struct Places<'c> {
    layout: &'c PythonLayout,
    stack: Window<'c>,
    chunk_start: u64,
    chunk: &'c mut [u8],
    chunk_len: usize,
    /// How often memory may still be read.
    reads: usize,
}

/// Writes the chain of a thread to `entries`, and functions that are new to `catcher`.
pub(crate) fn catch(
    catcher: &mut Catcher,
    (layout, runtime): (&PythonLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    let Some(state) = thread::find(catcher, (layout, runtime), thread, memory) else {
        return Outcome::NoThread;
    };
    // Taken out, so that the catcher can be used meanwhile.
    let (mut stack, mut chunk) =
        (std::mem::take(&mut catcher.stack), std::mem::take(&mut catcher.scratch));
    let len = match layout.frames {
        Frames::Objects => 0,
        _ => memory.read(&[Part { address: thread.stack_pointer, len: stack.len() }], &mut stack),
    };
    let bytes = stack.get(..len).unwrap_or_default();
    let stack_window = Window { start: thread.stack_pointer, bytes };
    let mut places = Places {
        layout,
        stack: stack_window,
        chunk_start: 0,
        chunk: &mut chunk,
        chunk_len: 0,
        reads: MOST_READS,
    };
    places.open_chunk(&state, memory);
    let outcome = match layout.frames {
        Frames::Objects => places.objects(&state, catcher, memory, entries),
        Frames::Entries { current, outside, .. } => {
            places.entries(&state, (current, outside), memory, entries)
        }
        Frames::Shims { through, .. } => {
            let states = thread::all_of(layout, runtime, state, memory);
            places.states(states, through, memory, entries)
        }
    };
    (catcher.stack, catcher.scratch) = (stack, chunk);
    code::describe(catcher, (layout, runtime), thread, memory, entries);
    outcome
}

impl Places<'_> {
    /// Reads what the innermost frames lie in.
    fn open_chunk(&mut self, state: &State, memory: &dyn Memory) {
        let Some(at) = self.layout.chunk else { return };
        let (Some(start), Some(top)) = (state.word(at), state.word(at + 8)) else { return };
        let used = usize::try_from(top.wrapping_sub(start)).unwrap_or(0);
        self.enter_chunk(start, used, memory);
    }

    fn enter_chunk(&mut self, start: u64, used: usize, memory: &dyn Memory) {
        let len = used.clamp(CHUNK, self.chunk.len());
        (self.chunk_start, self.chunk_len) = (start, 0);
        if start != 0 {
            self.chunk_len = memory.read(&[Part { address: start, len }], self.chunk);
        }
    }

    /// Some bytes: of what was read already, of the chunk before it, or read now.
    fn bytes(&mut self, address: u64, into: &mut [u8], memory: &dyn Memory) -> bool {
        for _ in 0..2 {
            let read = self.chunk.get(..self.chunk_len).unwrap_or_default();
            let chunk = Window { start: self.chunk_start, bytes: read };
            let found =
                [self.stack, chunk].iter().find_map(|window| window.get(address, into.len()));
            if let Some(found) = found {
                into.copy_from_slice(found);
                return true;
            }
            // Frames further out lie in an earlier one.
            let Some(earlier) = word(read, 0).filter(|start| *start != 0) else { break };
            if address.wrapping_sub(earlier) >= CHUNK as u64 || self.reads == 0 {
                break;
            }
            self.reads -= 1;
            self.enter_chunk(earlier, CHUNK, memory);
        }
        let may_read = self.reads > 0;
        self.reads = self.reads.saturating_sub(1);
        may_read && memory.fill(address, into)
    }

    /// How a chain ends that a frame is missing of.
    fn missing(&self) -> Outcome {
        if self.reads == 0 { Outcome::TooDeep } else { Outcome::Unreadable }
    }

    fn word(&mut self, address: Option<u64>, memory: &dyn Memory) -> Option<u64> {
        let mut bytes = [0; 8];
        self.bytes(address?, &mut bytes, memory).then(|| u64::from_le_bytes(bytes))
    }

    fn frame(&mut self, address: u64, memory: &dyn Memory) -> Option<Frame> {
        let mut bytes = [0; MAX_FRAME];
        let bytes = bytes.get_mut(..self.layout.frame_len())?;
        if address == 0 || !self.bytes(address, bytes, memory) {
            return None;
        }
        self.frame_of(bytes)
    }

    fn frame_of(&self, bytes: &[u8]) -> Option<Frame> {
        let layout = self.layout;
        let flag = match layout.frames {
            Frames::Objects => 0,
            Frames::Entries { is_entry, .. } => byte(bytes, is_entry)?,
            Frames::Shims { owner, .. } => byte(bytes, owner)?,
        };
        let position = match layout.position_is {
            Position::Address => word(bytes, layout.position)?,
            // A number with a sign: -1 stands before the first instruction.
            Position::Bytes => {
                i64::from(half(bytes, layout.position)?.cast_signed()).cast_unsigned()
            }
            Position::Words => {
                (2 * i64::from(half(bytes, layout.position)?.cast_signed())).cast_unsigned()
            }
        };
        let (previous, code) = (word(bytes, layout.previous)?, word(bytes, layout.code)? & !TAG);
        Some(Frame { previous, code, position, flag })
    }

    /// To 3.10: each frame has a native one.
    fn objects(
        &mut self,
        state: &State,
        catcher: &mut Catcher,
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        catcher.hints.begin();
        let outcome = self.object_chain(state, &mut catcher.hints, memory, entries);
        let frames = (0..entries.len()).filter_map(|index| entries.get(index));
        frames
            .filter(|entry| !entry.is_boundary())
            .for_each(|entry| catcher.hints.note(entry.address));
        outcome
    }

    fn object_chain(
        &mut self,
        state: &State,
        hints: &mut Hints,
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        let len = self.layout.frame_len();
        let mut next = state.word(self.layout.frame).unwrap_or(0);
        while next != 0 {
            let mut bytes = [0; MAX_FRAME];
            let bytes = bytes.get_mut(..len).unwrap_or_default();
            let frame = match hints.frame(next, len, self.chunk, memory) {
                Some(found) => {
                    bytes.copy_from_slice(found);
                    self.frame_of(bytes)
                }
                None => self.frame(next, memory),
            };
            let Some(frame) = frame else { return self.missing() };
            let has_room = entries.push(entry(next, frame)) && entries.push(Entry::default());
            if !has_room {
                return Outcome::TooDeep;
            }
            next = frame.previous;
        }
        Outcome::Read
    }

    /// 3.11: each native frame has a structure, which has the innermost of the frames that it runs; the
    /// outermost of them says that it is.
    fn entries(
        &mut self,
        state: &State,
        (current_at, outside_at): (u32, u32),
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        let field = |place: u64, at: u32| place.checked_add(at.into());
        let Some(mut place) = state.word(self.layout.frame) else { return Outcome::Unreadable };
        let mut current = self.word(field(place, current_at), memory);
        for index in 0..MOST_NATIVE {
            let (Some(first), Some(outside)) =
                (current, self.word(field(place, outside_at), memory))
            else {
                return self.missing();
            };
            if outside == 0 {
                return Outcome::Read;
            }
            current = self.word(field(outside, current_at), memory);
            let before = entries.len();
            let outcome = self.segment(first, current, memory, entries);
            match outcome {
                Outcome::Read if entries.len() > before => {
                    let function = place.wrapping_add(current_at.into());
                    let boundary = Entry { address: place, code: 0, position: first, function };
                    if !entries.push(boundary) {
                        return Outcome::TooDeep;
                    }
                }
                Outcome::Read => {}
                // The innermost native frame begins to run it and has not linked it yet.
                Outcome::Unreadable | Outcome::Torn if index == 0 => entries.truncate(0),
                outcome => return outcome,
            }
            place = outside;
        }
        Outcome::TooDeep
    }

    /// The frames of one native frame, up to the one that is its entry; outside of that stands `outside`.
    fn segment(
        &mut self,
        first: u64,
        outside: Option<u64>,
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        let mut next = first;
        while next != 0 {
            let Some(frame) = self.frame(next, memory) else { return self.missing() };
            if !entries.push(entry(next, frame)) {
                return Outcome::TooDeep;
            }
            if frame.flag != 0 {
                return if Some(frame.previous) == outside { Outcome::Read } else { Outcome::Torn };
            }
            next = frame.previous;
        }
        if first == 0 { Outcome::Read } else { Outcome::Torn }
    }

    /// From 3.12 on: the frames of each state of a thread, those further in first.
    fn states<const N: usize>(
        &mut self,
        states: [Option<State>; N],
        through: Option<u32>,
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        let has_several = states.iter().flatten().count() > 1;
        let mut states = states.map(|state| (u64::MAX, state));
        if has_several {
            for (place, state) in &mut states {
                let found = state.and_then(|state| self.on_native_stack(&state, through, memory));
                *place = found.unwrap_or(u64::MAX);
            }
            states.sort_unstable_by_key(|(place, _)| *place);
        }
        for state in states.iter().filter_map(|(_, state)| state.as_ref()) {
            if has_several {
                self.open_chunk(state, memory);
            }
            let outcome = self.shims(state, through, memory, entries);
            if outcome != Outcome::Read {
                return outcome;
            }
        }
        Outcome::Read
    }

    /// Where on the native stack the innermost native frame of a state has its frame.
    fn on_native_stack(
        &mut self,
        state: &State,
        through: Option<u32>,
        memory: &dyn Memory,
    ) -> Option<u64> {
        self.open_chunk(state, memory);
        let mut next = self.innermost(state, through, memory)?;
        for _ in 0..MOST_ENTRIES {
            let frame = self.frame(next, memory)?;
            if frame.flag == BY_NATIVE {
                return Some(next);
            }
            next = frame.previous;
        }
        None
    }

    /// The innermost frame of a state.
    fn innermost(
        &mut self,
        state: &State,
        through: Option<u32>,
        memory: &dyn Memory,
    ) -> Option<u64> {
        let first = state.word(self.layout.frame);
        match through {
            None => first,
            Some(at) => self.word(first.and_then(|place| place.checked_add(at.into())), memory),
        }
    }

    /// From 3.12 on: below the frames that a native frame runs stands one that is its own. From 3.15 on there is one below
    /// all others, which is nobody's and ends the chain.
    fn shims(
        &mut self,
        state: &State,
        through: Option<u32>,
        memory: &dyn Memory,
        entries: &mut Entries<'_>,
    ) -> Outcome {
        let Some(mut next) = self.innermost(state, through, memory) else {
            return Outcome::Unreadable;
        };
        let base = self.layout.base_frame.and_then(|at| state.word(at)).unwrap_or(0);
        while next != 0 && next != base {
            let Some(frame) = self.frame(next, memory) else { return self.missing() };
            let entry = match frame.flag {
                BY_NATIVE => Entry {
                    address: next,
                    code: 0,
                    position: frame.previous,
                    function: next.wrapping_add(self.layout.previous.into()),
                },
                _ => entry(next, frame),
            };
            if !entries.push(entry) {
                return Outcome::TooDeep;
            }
            next = frame.previous;
        }
        Outcome::Read
    }
}

/// A frame whose function is not known yet. What has no code is no frame, and its address tells it.
fn entry(address: u64, frame: Frame) -> Entry {
    Entry { address, code: frame.code.max(1), position: frame.position, function: 0 }
}

#[cfg(test)]
mod tests;
