//! States of LuaJIT on a native stack, the global one, and the trace that runs.

use super::layout::{
    BASE, C_FRAME, C_FRAME_BITS, CODE, CODE_LEN, FIRST_STATE, GLOBAL, GLOBAL_LEN, GLOBALS, Global,
    IS_STATE, IS_TRACE, NUMBER, STACK, STACK_LEN, STACK_SPACE, STARTS_IN, STATE, TRACE,
    TRACE_COUNT, TYPE,
};
use crate::lua::recall::Recall;
use crate::memory::{Memory, byte, half, word};

/// A state that runs something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) address: u64,
    /// Its innermost C frame.
    pub(super) c_frame: u64,
    pub(super) base: u64,
    pub(super) stack: u64,
    pub(super) end: u64,
}

/// The global state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Globals {
    pub(super) address: u64,
    at: Global,
    /// The number of the trace that runs, if it is not negative.
    running: i32,
    /// The state that runs.
    pub(super) current: u64,
    /// The frame that the trace runs in; 0 = none does.
    pub(super) trace_base: u64,
}

/// A trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    pub(super) code: u64,
    pub(super) len: u32,
    /// What it takes of the native stack below the C frame.
    pub(super) space: u16,
    /// The prototype of the function that it starts in.
    pub(super) starts_in: u64,
}

/// Whether that is how a state begins.
pub(super) fn is_state(bytes: &[u8]) -> bool {
    let at = |at| word(bytes, at).unwrap_or(0);
    let leads = |at: u64| at & 7 == 0 && at > 0xffff && at >> 47 == 0;
    byte(bytes, TYPE) == Some(IS_STATE)
        && [GLOBAL, BASE, STACK].into_iter().all(|field| leads(at(field)))
        && at(BASE) > at(STACK)
}

impl State {
    /// The state at an address, of which a part was read.
    pub(super) fn read(address: u64, recall: &mut Recall, memory: &dyn Memory) -> Option<State> {
        let bytes = recall.get(address, STATE, memory).filter(|bytes| is_state(bytes))?;
        let stack = word(bytes, STACK)?;
        Some(State {
            address,
            c_frame: word(bytes, C_FRAME)? & !C_FRAME_BITS,
            base: word(bytes, BASE)?,
            stack,
            end: stack.checked_add(8 * u64::from(half(bytes, STACK_LEN)?))?,
        })
    }
}

impl Globals {
    /// The global state of a state; `None` where that is not how one of a version that is known looks.
    pub(super) fn of(state: u64, recall: &mut Recall, memory: &dyn Memory) -> Option<Globals> {
        let address = word(recall.get(state, STATE, memory)?, GLOBAL)?;
        let mut bytes = [0; GLOBAL_LEN];
        bytes.copy_from_slice(recall.get(address, GLOBAL_LEN, memory)?);
        let mut is_state_of_it = |state: u64| {
            let found = recall.get(state, STATE, memory);
            found.is_some_and(|found| is_state(found) && word(found, GLOBAL) == Some(address))
        };
        GLOBALS.into_iter().find_map(|at| {
            let first = word(&bytes, at.first_state)?;
            let current = word(&bytes, at.current)?;
            // The two lie in one structure.
            let is_first = FIRST_STATE.contains(&address.wrapping_sub(first));
            let is_it = is_first && is_state_of_it(first) && is_state_of_it(current);
            is_it.then_some(Globals {
                address,
                at,
                running: half(&bytes, at.running_trace)?.cast_signed(),
                current,
                trace_base: word(&bytes, at.trace_base)?,
            })
        })
    }

    /// The trace that runs; `None` if none does, or it is not found.
    pub(super) fn trace(&self, recall: &mut Recall, memory: &dyn Memory) -> Option<Trace> {
        let number = u64::from(u32::try_from(self.running).ok()?);
        if self.trace_base == 0 {
            return None;
        }
        self.at.traces.into_iter().find_map(|at| {
            let table = self.address.checked_add(at.into())?;
            let head = recall.get(table, 16, memory)?;
            let (table, count) = (word(head, 0)?, half(head, TRACE_COUNT)?);
            let place = table.checked_add(8 * number).filter(|_| number < count.into())?;
            let trace = recall.word(place, memory)?;
            let bytes = recall.get(trace, TRACE, memory)?;
            let is_it = byte(bytes, TYPE) == Some(IS_TRACE)
                && half(bytes, NUMBER).is_some_and(|found| u64::from(found & 0xffff) == number);
            let space = half(bytes, STACK_SPACE)?.to_le_bytes();
            is_it.then_some(Trace {
                code: word(bytes, CODE)?,
                len: half(bytes, CODE_LEN)?,
                space: u16::from_le_bytes([space[0], space[1]]),
                starts_in: word(bytes, STARTS_IN)?,
            })
        })
    }
}
