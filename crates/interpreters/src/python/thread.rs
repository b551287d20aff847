//! Where CPython has the state of a thread.

use super::layout::{Frames, MAX_THREAD, PythonLayout, ThreadId};
use crate::catch::{Catcher, Thread};
use crate::memory::{Memory, Part, word};
use crate::met::{AllMet, Number};

/// How many states one look sees at least of the newest threads, which are the first of the list.
const NEWEST: usize = 32;

/// How many states of one thread are read at most, and how many of all threads are looked at for that.
const MOST_STATES: usize = 4;
const MOST_LOOKED_AT: usize = 128;

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

    /// Whether it is in the list of its interpreter: the state before it leads to it, or the interpreter does. A state
    /// that is taken out keeps what it says, but whoever leads to it then leads past it, in the same step
    /// (`tstate_delete_common`), and one at the same place is a new one.
    fn is_linked(&self, layout: &PythonLayout, memory: &dyn Memory) -> bool {
        let link = match self.word(layout.previous_thread) {
            Some(0) => self.word(layout.interpreter).map(|at| (at, layout.threads)),
            before => before.map(|at| (at, layout.next_thread)),
        };
        link.is_some_and(|(at, offset)| pointer(memory, at, offset) == Some(self.address))
    }

    /// Whether its thread runs frames: that of one that begins does not, and has the number of another.
    fn runs_frames(&self, layout: &PythonLayout) -> bool {
        let frame = self.word(layout.frame).unwrap_or(0);
        let base = layout.base_frame.and_then(|at| self.word(at)).unwrap_or(0);
        frame != 0
            && frame != base
            && frame.wrapping_sub(self.address) >= layout.thread_len() as u64
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
    let all = &mut catcher.met;
    let at = |place, number| {
        let is_it = |state: &State| {
            state.is_of(layout, thread, number, memory) && state.is_linked(layout, memory)
        };
        State::read(layout, place, memory).filter(is_it)
    };
    let mut met = all.of(thread);
    if met.is_place()
        && let Some(state) = at(met.place, met.number)
    {
        return Some(state);
    }
    if met.own_number == 0 {
        met.own_number = memory.own_number().unwrap_or(thread.tid);
    }
    let number = u64::from(met.own_number);
    let before = all.in_passing(thread.pid, Number::Own(met.own_number));
    let state = before.and_then(|place| at(place, number)).or_else(|| {
        let most_reads = all.most_reads;
        let left = if met.is_worth_a_walk() { most_reads } else { NEWEST };
        let (found, nearest, alone, count) = (None, None, None, 0);
        Walk { layout, thread, number, memory, all, left, found, nearest, alone, count }
            .find(runtime)
    });
    match &state {
        Some(found) => {
            let number = found.number(layout, memory).unwrap_or(0);
            all.found(met, thread, (found.address, number));
        }
        None => all.missed(met, thread),
    }
    state
}

/// The states of a thread that run frames: the one that was found, and those that it has in other interpreters of the
/// process, which it has entered from there or the other way round. Each one's frames are further in or further out than
/// all of another one's.
pub(super) fn all_of(
    layout: &PythonLayout,
    runtime: u64,
    found: State,
    memory: &dyn Memory,
) -> [Option<State>; MOST_STATES] {
    let mut states = [None; MOST_STATES];
    states[0] = Some(found);
    let own = found.word(layout.interpreter).unwrap_or(0);
    let links = [
        runtime.wrapping_add(layout.interpreters.into()),
        own.wrapping_add(layout.next_interpreter.into()),
    ];
    let mut words = [0; 16];
    let parts = links.map(|address| Part { address, len: 8 });
    let is_alone = memory.read(&parts, &mut words) == words.len()
        && word(&words, 0) == Some(own)
        && word(&words, 8) == Some(0);
    let (Some(number), false) = (found.number(layout, memory), is_alone) else { return states };
    let (mut interpreter, mut left) = (word(&words, 0).unwrap_or(0), MOST_LOOKED_AT);
    let mut rest = states.iter_mut().skip(1);
    while interpreter != 0 && left > 0 {
        let mut next = pointer(memory, interpreter, layout.threads);
        while let Some(state) = next.and_then(|at| State::read(layout, at, memory))
            && left > 0
        {
            left -= 1;
            let is_its = state.number(layout, memory) == Some(number);
            if is_its && state.address != found.address && state.runs_frames(layout) {
                let Some(place) = rest.next() else { return states };
                *place = Some(state);
            }
            next = pointer(memory, state.address, layout.next_thread);
        }
        left = left.saturating_sub(1);
        interpreter = pointer(memory, interpreter, layout.next_interpreter).unwrap_or(0);
    }
    states
}

/// A look for the state of a thread, through the lists of all interpreters.
struct Walk<'w> {
    layout: &'w PythonLayout,
    thread: Thread,
    /// The thread's number in its own namespace.
    number: u64,
    memory: &'w dyn Memory,
    all: &'w mut AllMet,
    /// How often memory may still be read.
    left: usize,
    found: Option<State>,
    /// A child has its parent's number at first: then the stack tells, or that there is one thread only.
    nearest: Option<(u64, State)>,
    alone: Option<State>,
    count: usize,
}

/// How a walk ended.
enum End {
    /// At that of the thread.
    Found,
    /// At a state that is to be looked at next.
    Stopped(u64),
    /// There is no more.
    Over,
}

impl Walk<'_> {
    /// Looks at the newest threads first, then from where the last walk stopped on: a list of thousands is gone through
    /// in several looks.
    fn find(mut self, runtime: u64) -> Option<State> {
        let first = pointer(self.memory, runtime, self.layout.interpreters);
        let first = first.and_then(|interpreter| self.first_of(interpreter));
        let most = self.left;
        let mut end = self.go(first.unwrap_or(0), most - NEWEST.min(most));
        if let End::Stopped(at) = end
            && self.left > 0
        {
            let before =
                State::read(self.layout, self.all.stopped_at(self.thread.pid), self.memory);
            let before = before.filter(|state| state.is_linked(self.layout, self.memory));
            let rest = before.map_or(End::Over, |state| self.go(state.address, 0));
            end = if matches!(rest, End::Over) { self.go(at, 0) } else { rest };
            let at = match (end, self.found) {
                (End::Stopped(at), _) => at,
                (_, found) => found.map_or(0, |state| state.address),
            };
            self.all.stop_at(self.thread.pid, at);
        }
        let nearest = self.nearest.map(|(_, state)| state);
        self.found.or(nearest).or(self.alone)
    }

    /// Goes through the list from a state on, until only so many reads are left.
    fn go(&mut self, mut at: u64, leave: usize) -> End {
        let reads = if matches!(self.layout.thread_id, ThreadId::Pthread(_)) { 2 } else { 1 };
        while self.left > leave {
            self.left = self.left.saturating_sub(reads);
            let Some(state) = State::read(self.layout, at, self.memory) else { break };
            self.look_at(state);
            if self.found.is_some() {
                return End::Found;
            }
            let next = state.word(self.layout.next_thread).filter(|next| *next != 0);
            match next.or_else(|| self.first_behind(state.word(self.layout.interpreter)?)) {
                Some(next) => at = next,
                None if self.left > leave => return End::Over,
                None => {}
            }
        }
        if at == 0 { End::Over } else { End::Stopped(at) }
    }

    /// Takes note of a state.
    fn look_at(&mut self, state: State) {
        let (layout, memory) = (self.layout, self.memory);
        let number = state.number(layout, memory);
        let above = state.above_stack_pointer(layout, self.thread);
        if number == Some(self.number) && above != Place::Elsewhere {
            self.found = Some(state);
            return;
        }
        if let Place::Above(above) = above
            && self.nearest.is_none_or(|(nearest, _)| above < nearest)
        {
            self.nearest = Some((above, state));
        }
        self.alone = Some(state).filter(|_| self.count == 0 && above != Place::Elsewhere);
        self.count += 1;
        if let Some(number) = number.and_then(|number| u32::try_from(number).ok())
            && state.runs_frames(layout)
        {
            let is_ours = self.number == self.thread.tid.into();
            let number = if is_ours { Number::Ours(number) } else { Number::Own(number) };
            self.all.pass(self.thread.pid, number, state.address);
        }
    }

    /// The first state of the interpreters behind one.
    fn first_behind(&mut self, interpreter: u64) -> Option<u64> {
        let next = pointer(self.memory, interpreter, self.layout.next_interpreter)?;
        self.first_of(next)
    }

    /// The first state of an interpreter, or of those behind it.
    fn first_of(&mut self, mut interpreter: u64) -> Option<u64> {
        while self.left > 0 {
            self.left = self.left.saturating_sub(2);
            let first = pointer(self.memory, interpreter, self.layout.threads);
            if first.is_some() {
                return first;
            }
            interpreter = pointer(self.memory, interpreter, self.layout.next_interpreter)?;
        }
        None
    }
}

/// The pointer at an offset, unless it is null.
fn pointer(memory: &dyn Memory, address: u64, offset: u32) -> Option<u64> {
    let mut bytes = [0; 8];
    let address = address.checked_add(offset.into())?;
    memory.fill(address, &mut bytes).then(|| u64::from_le_bytes(bytes)).filter(|at| *at != 0)
}

#[cfg(test)]
mod tests;
