//! Where CPython has the state of a thread.

use super::layout::{Frames, MAX_THREAD, PythonLayout, ThreadId};
use crate::catch::{Catcher, Thread};
use crate::memory::{Memory, word};

/// The most interpreters of a process that are looked at, and threads of all of them.
const INTERPRETERS: usize = 16;
const THREADS: usize = 256;

/// Where glibc has a thread's number in its own structure.
const PTHREAD_TID: u64 = 0x2d0;

/// How far above the stack pointer something may lie that is on the same stack.
const LONGEST_STACK: u64 = 1 << 30;

/// The state of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) address: u64,
    bytes: [u8; MAX_THREAD],
}

impl State {
    pub(super) fn word(&self, at: u32) -> Option<u64> {
        word(&self.bytes, at)
    }

    fn read(layout: &PythonLayout, address: u64, memory: &dyn Memory) -> Option<State> {
        let mut state = State { address, bytes: [0; MAX_THREAD] };
        let bytes = state.bytes.get_mut(..layout.thread_len())?;
        (address != 0 && memory.fill(address, bytes)).then_some(state)
    }

    /// Whether it is that of a thread: by the number that it has, and where its frames are on its stack.
    fn is_of(
        &self,
        layout: &PythonLayout,
        thread: Thread,
        number: u64,
        memory: &dyn Memory,
    ) -> bool {
        let above = self.above_stack_pointer(layout, thread);
        above != Place::Elsewhere && self.number(layout, memory) == Some(number)
    }

    /// The number of its thread.
    fn number(&self, layout: &PythonLayout, memory: &dyn Memory) -> Option<u64> {
        match layout.thread_id {
            ThreadId::Native(at) => self.word(at),
            ThreadId::Pthread(at) => {
                let place = self.word(at).and_then(|place| place.checked_add(PTHREAD_TID));
                let mut tid = [0; 4];
                let read = place.filter(|place| memory.fill(*place, &mut tid));
                read.map(|_| u64::from(u32::from_le_bytes(tid)))
            }
        }
    }

    /// Where the structure that leads to its frames is.
    fn above_stack_pointer(&self, layout: &PythonLayout, thread: Thread) -> Place {
        let through = match layout.frames {
            Frames::Entries { .. } | Frames::Shims { through: Some(_), .. } => {
                self.word(layout.frame)
            }
            Frames::Objects | Frames::Shims { through: None, .. } => return Place::Unknown,
        };
        let Some(through) = through else { return Place::Elsewhere };
        let size = layout.thread_len() as u64;
        match through.checked_sub(thread.stack_pointer) {
            Some(above) if above < LONGEST_STACK => Place::Above(above),
            // That of a thread that runs nothing is in its state.
            _ if through.wrapping_sub(self.address) < size => Place::Unknown,
            _ => Place::Elsewhere,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// So many bytes above the stack pointer.
    Above(u64),
    /// On no stack that is known.
    Unknown,
    /// On another stack.
    Elsewhere,
}

/// The state of a thread, if the interpreter knows the thread.
pub(super) fn find(
    catcher: &mut Catcher,
    (layout, runtime): (&PythonLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
) -> Option<State> {
    if let Some(before) = catcher.place_of(thread)
        && let Some(state) = State::read(layout, before.place, memory)
        && state.is_of(layout, thread, before.number, memory)
    {
        return Some(state);
    }
    let found = look_for((layout, runtime), thread, memory)?;
    let number = found.number(layout, memory).unwrap_or(0);
    catcher.found(thread, found.address, number);
    Some(found)
}

fn look_for(
    (layout, runtime): (&PythonLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
) -> Option<State> {
    let pointer = |address: u64, offset: u32| {
        let mut bytes = [0; 8];
        let address = address.checked_add(offset.into())?;
        memory.fill(address, &mut bytes).then(|| u64::from_le_bytes(bytes)).filter(|at| *at != 0)
    };
    // Numbers of threads are those of their namespace, and a child has its parent's at first: then the
    // stack tells, or that there is one thread only.
    let mut nearest: Option<(u64, State)> = None;
    let (mut last, mut count) = (None, 0);
    let mut interpreter = pointer(runtime, layout.interpreters);
    for _ in 0..INTERPRETERS {
        let Some(at) = interpreter else { break };
        let mut next = pointer(at, layout.threads);
        while count < THREADS {
            let Some(state) = next.and_then(|at| State::read(layout, at, memory)) else { break };
            if state.is_of(layout, thread, thread.tid.into(), memory) {
                return Some(state);
            }
            let above = state.above_stack_pointer(layout, thread);
            if let Place::Above(above) = above
                && nearest.is_none_or(|(nearest, _)| above < nearest)
            {
                nearest = Some((above, state));
            }
            last = Some(state).filter(|_| above != Place::Elsewhere);
            count += 1;
            next = state.word(layout.next_thread);
        }
        interpreter = pointer(at, layout.next_interpreter);
    }
    nearest.map(|(_, state)| state).or(last.filter(|_| count == 1))
}
