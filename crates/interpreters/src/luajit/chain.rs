//! The frames of the states that a native stack leads to.

use super::define::{Source, define, of_c, told_by};
use super::frames::{CFrame, Called, Link, Stack, What};
use super::layout::{COUNT, IS_PROTOTYPE, LuaJitLayout, OF_STATE, PROTOTYPE, TRACE_SPACE, TYPE};
use super::names::Caller;
use super::state::{Globals, State, Trace, is_state};
use super::trace::RunningTrace;
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::lua::chain::Kept;
use crate::lua::names::Name;
use crate::lua::recall::{Reader, Recall};
use crate::lua::states;
use crate::memory::{Memory, byte, half};

/// The most frames of all states; more than that lead in a circle, or are deeper than what is read.
const MOST_FRAMES: usize = 1 << 13;

/// How far above its end a stack has C frames.
const STACK: u64 = 8 << 20;

/// Where the innermost frame of a state is known from.
#[derive(Clone, Copy, Debug)]
enum Top {
    /// The interpreter's registers: the next instruction.
    Registers(u64),
    /// A trace began in it.
    Trace,
    /// It has called something in C.
    Called,
}

/// Writes the frames of all states to `entries`, and functions that are new to `catcher`. `interpreter` is
/// where its code starts.
pub(crate) fn catch(
    catcher: &mut Catcher,
    (layout, interpreter): (&LuaJitLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    // Taken out, so that the catcher can be used meanwhile; it was there from the start.
    let Some(mut kept) = catcher.take_kept(Reader::LuaJit) else { return Outcome::NoThread };
    let Kept { recall, words, .. } = &mut *kept;
    recall.begin(thread, memory);
    let count = words.look(is_state, thread, memory, &mut catcher.scratch);
    let found = words.found();
    let is_in_interpreter =
        thread.registers.instruction.wrapping_sub(interpreter) < layout.interpreter_len;
    let mut walk =
        Walk { thread, recall, memory, catcher, entries, left: MOST_FRAMES, next: [None; 2] };
    let outcome = walk.states(found.get(..count).unwrap_or_default(), is_in_interpreter);
    let is_exhausted = walk.left == 0 || recall.is_exhausted();
    catcher.lua = Some(kept);
    match outcome {
        None if is_exhausted => Outcome::TooDeep,
        None => Outcome::Torn,
        Some(outcome) => outcome,
    }
}

/// A walk outwards.
struct Walk<'w, 'o> {
    thread: Thread,
    recall: &'w mut Recall,
    memory: &'w dyn Memory,
    catcher: &'w mut Catcher,
    entries: &'w mut Entries<'o>,
    left: usize,
    /// Where the interpreter's next instruction is, if what was read is of the moment of the sample: from the
    /// first to the last.
    next: [Option<(u64, u64)>; 2],
}

impl Walk<'_, '_> {
    /// The frames of all states, innermost first; `None` if they do not belong together.
    fn states(&mut self, found: &[u64], is_in_interpreter: bool) -> Option<Outcome> {
        let globals = |state: &u64| Globals::of(*state, self.recall, self.memory);
        let Some(globals) = found.iter().find_map(globals) else {
            return Some(Outcome::NoThread);
        };
        let mut states = [State::default(); states::MOST + 1];
        let mut count = 0;
        for address in std::iter::once(&globals.current).chain(found) {
            let Some(state) = State::read(*address, self.recall, self.memory) else { continue };
            let is_on_stack = state.c_frame.wrapping_sub(self.thread.stack_pointer) < STACK;
            let is_new = !states.iter().any(|known| known.address == *address);
            if let (true, true, Some(to)) = (is_on_stack, is_new, states.get_mut(count)) {
                *to = state;
                count += 1;
            }
        }
        let states = states.get_mut(..count)?;
        states.sort_unstable_by_key(|state| state.c_frame);
        let mut end = 0;
        for (nth, state) in states.iter().enumerate() {
            // The C frames of one lie outside of all those of the one before.
            if state.c_frame <= end {
                return None;
            }
            let (base, top) = match nth {
                0 => self.top(&globals, state, is_in_interpreter)?,
                _ => (state.base, Top::Called),
            };
            end = self.state(state, base, (top, nth == 0))?;
        }
        for (first, last) in self.next.into_iter().flatten() {
            self.push(Entry::of_instruction(first, last))?;
        }
        // Within itself the interpreter calls as others do, and its tables do not say so.
        let below = states.first().map_or(0, |state| state.c_frame - self.thread.stack_pointer);
        if let (true, 8 | 16, Some(state)) = (is_in_interpreter, below, states.first()) {
            let at = self.thread.registers.instruction;
            let space = if below == 8 { 8 } else { 16 };
            self.push(Entry::of_subroutine(state.c_frame, at, space))?;
        }
        Some(Outcome::Read)
    }

    /// The base of the innermost frame, and where it is known from.
    fn top(
        &mut self,
        globals: &Globals,
        state: &State,
        is_in_interpreter: bool,
    ) -> Option<(u64, Top)> {
        let is_current = globals.current == state.address;
        if is_in_interpreter {
            let registers = self.thread.registers;
            return is_current.then_some((registers.base, Top::Registers(registers.next)));
        }
        match globals.trace(self.recall, self.memory) {
            Some(trace) if is_current => {
                self.trace(state, &trace)?;
                Some((globals.trace_base, Top::Trace))
            }
            _ => Some((state.base, Top::Called)),
        }
    }

    /// Adds the trace that runs.
    fn trace(&mut self, state: &State, trace: &Trace) -> Option<()> {
        let bytes = self.recall.get(trace.starts_in, PROTOTYPE, self.memory)?;
        let prototype: [u8; PROTOTYPE] = *bytes.first_chunk()?;
        if byte(&prototype, TYPE) != Some(IS_PROTOTYPE) {
            return None;
        }
        let function = told_by(self.thread.pid, (trace.starts_in, &prototype), true);
        let source = (Source::Trace(&prototype), Name::Unknown);
        define(self.catcher, self.memory, function, source);
        let running = RunningTrace {
            code: trace.code,
            len: trace.len,
            space: TRACE_SPACE + u32::from(trace.space),
            c_frame: state.c_frame,
        };
        self.push(running.to_entry(function))
    }

    /// The frames of a state from one on, innermost first; where its outermost C frame is.
    fn state(&mut self, state: &State, base: u64, (top, is_first): (Top, bool)) -> Option<u64> {
        let is_base = base & 7 == 0 && base > state.stack + 8 && base < state.end;
        let mut frame = base.checked_sub(8).filter(|_| is_base)?;
        let stack = Stack::below(state, base);
        let mut c_frame = self.c_frame(state.c_frame, state)?;
        let mut called = stack.called(frame, self.recall, self.memory)?;
        let mut position = match (top, &called.what) {
            (Top::Registers(next), _) => self.of_registers((&stack, frame), &called, next)?,
            (Top::Called, _) => called.position(c_frame.instruction).unwrap_or(0),
            (Top::Trace, _) => 0,
        };
        if is_first && matches!(top, Top::Called) {
            let link = stack.word(frame, self.recall, self.memory)?;
            self.check(&called, link);
        }
        while frame > state.stack + 8 {
            self.left = self.left.checked_sub(1)?;
            while let Some(without) = c_frame.without
                && frame < state.stack + without
            {
                self.boundary(&c_frame, state)?;
                c_frame = self.outside(&c_frame, state)?;
            }
            let (mut link, mut outer) = stack.link(frame, self.recall, self.memory)?;
            if link == Link::Again {
                (link, outer) = stack.link(outer, self.recall, self.memory)?;
            }
            let caller = match outer > state.stack + 8 {
                true => stack.called(outer, self.recall, self.memory)?,
                false => Called { what: What::Nothing, code: 0 },
            };
            let next = match link {
                Link::Lua(next) => Some(next),
                Link::Continues(next) => next,
                _ => None,
            };
            let called_at = next.and_then(|next| caller.position(next));
            self.frame((frame, &called, position), (&caller, called_at))?;
            position = called_at.unwrap_or(0);
            if link == Link::C {
                self.boundary(&c_frame, state)?;
                if c_frame.outside == 0 {
                    return (outer <= state.stack + 8).then_some(c_frame.address);
                }
                c_frame = self.outside(&c_frame, state)?;
                position = caller.position(c_frame.instruction).unwrap_or(0);
            }
            (frame, called) = (outer, caller);
        }
        // What was begun without a frame, outside of all.
        loop {
            c_frame.without?;
            self.boundary(&c_frame, state)?;
            if c_frame.outside == 0 {
                return Some(c_frame.address);
            }
            c_frame = self.outside(&c_frame, state)?;
        }
    }

    /// The position in the innermost function, where the interpreter has the next instruction in a register;
    /// `None` amid a call or a return.
    fn of_registers(
        &mut self,
        (stack, frame): (&Stack<'_>, u64),
        called: &Called,
        next: u64,
    ) -> Option<u64> {
        let link = stack.word(frame, self.recall, self.memory)?;
        match called.what {
            // One that has just begun, or returns, has that of its caller.
            What::Lua(..) => called.position(next).or((next == link).then_some(0)),
            What::C(_) => (next == link || next.wrapping_sub(called.code) <= 4).then_some(0),
            What::Nothing => None,
        }
    }

    /// Notes which instruction the interpreter has in a register if the frame that runs is the one that was
    /// read: where it calls something in C that needs no frame, memory may have an older one.
    fn check(&mut self, called: &Called, link: u64) {
        let own = match &called.what {
            What::Lua(_, prototype) => {
                let count = half(prototype, COUNT).map_or(0, u64::from);
                (called.code, called.code.saturating_add(4 * count))
            }
            _ => (called.code, called.code.saturating_add(4)),
        };
        self.next = [Some(own), Some((link, link))];
    }

    /// Adds a frame, called by another one.
    fn frame(
        &mut self,
        (at, called, position): (u64, &Called, u64),
        (caller, called_at): (&Called, Option<u64>),
    ) -> Option<()> {
        let name = match (&caller.what, called_at) {
            (What::Lua(address, prototype), Some(called_at)) => {
                let caller = Caller { address: *address, prototype };
                caller.name(called_at, self.recall, self.memory)
            }
            _ => Name::Unknown,
        };
        let (source, function) = match &called.what {
            What::Lua(address, prototype) => {
                (Source::Lua(prototype), told_by(self.thread.pid, (*address, prototype), false))
            }
            What::C(function) => (Source::C, of_c(self.thread.pid, *function)),
            What::Nothing => return Some(()),
        };
        // One in C that nobody names is seen as a native frame.
        if matches!(source, Source::C) && name == Name::Unknown {
            return Some(());
        }
        define(self.catcher, self.memory, function, (source, name));
        self.push(Entry { address: at, code: called.code.max(1), position, function })
    }

    /// Ends what a C frame runs.
    fn boundary(&mut self, c_frame: &CFrame, state: &State) -> Option<()> {
        let at = c_frame.address.checked_add(OF_STATE.into())?;
        self.push(Entry { address: at, code: 0, position: state.address, function: at })
    }

    fn c_frame(&mut self, address: u64, state: &State) -> Option<CFrame> {
        CFrame::read(address, state, self.recall, self.memory)
    }

    fn outside(&mut self, c_frame: &CFrame, state: &State) -> Option<CFrame> {
        let is_outside = c_frame.outside > c_frame.address;
        self.c_frame(c_frame.outside, state).filter(|_| is_outside)
    }

    fn push(&mut self, entry: Entry) -> Option<()> {
        let has_room = self.entries.push(entry);
        // That is one more than there may be.
        self.left = if has_room { self.left } else { 0 };
        has_room.then_some(())
    }
}
