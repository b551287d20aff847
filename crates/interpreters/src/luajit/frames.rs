//! Frames on the stack of a state: functions, and what links one to its caller.

use super::layout::C_FRAME_LEN;
use super::layout::{
    C_FUNCTION, COUNT, FUNCTION, FUNCTION_TAG, INSTRUCTION, INSTRUCTIONS, IS_FUNCTION,
    IS_PROTOTYPE, KIND, OF_STATE, OUTSIDE, PROTOTYPE, RESULTS, TAG_AT, TYPE,
};
use super::state::State;
use crate::lua::recall::Recall;
use crate::memory::{Memory, byte, half, word};

/// How much of a stack is read at once, below the frame that runs, and in which steps.
const VALUES: u64 = 16 * 1024;
const VALUES_STEP: u64 = 1024;

/// What a call is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A function in Lua: its prototype.
    Lua(u64, [u8; PROTOTYPE]),
    /// One in C, or of the interpreter itself.
    C(u64),
    /// Nothing that is called: it stands for the state.
    Nothing,
}

/// A function that was called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub(super) what: What,
    /// Where its instructions are.
    pub(super) code: u64,
}

/// What links a frame to the one of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Called by an instruction of Lua: the next one.
    Lua(u64),
    /// By an instruction that goes on otherwise when it is back: a metamethod.
    Continues(Option<u64>),
    /// By a function in C, or as the first one.
    C,
    /// By the interpreter itself, for a function such as `pcall`.
    Inner,
    /// A frame of the same function once more, below its arguments.
    Again,
}

/// A C frame, by what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct CFrame {
    pub(super) address: u64,
    pub(super) instruction: u64,
    pub(super) outside: u64,
    /// If it was begun without a frame: where that would be, from the start of the stack.
    pub(super) without: Option<u64>,
}

impl CFrame {
    /// The one at an address, if it is of a state.
    pub(super) fn read(
        address: u64,
        state: &State,
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<CFrame> {
        let bytes = recall.get(address, C_FRAME_LEN, memory)?;
        let results = half(bytes, RESULTS)?.cast_signed();
        let is_of_it = word(bytes, OF_STATE)? == state.address;
        is_of_it.then_some(CFrame {
            address,
            instruction: word(bytes, INSTRUCTION)?,
            outside: word(bytes, OUTSIDE)? & !super::layout::C_FRAME_BITS,
            without: (results < 0).then(|| u64::from(results.unsigned_abs())),
        })
    }
}

impl Called {
    /// The number of an instruction of it, by where the next one is.
    pub(super) fn position(&self, next: u64) -> Option<u64> {
        let What::Lua(_, prototype) = &self.what else { return None };
        let behind = next.wrapping_sub(self.code);
        let count = half(prototype, COUNT).map_or(0, u64::from);
        (behind.is_multiple_of(4) && (4..=4 * count).contains(&behind)).then(|| behind / 4 - 1)
    }
}

/// A state's stack, from a frame downwards.
#[derive(Debug)]
pub(super) struct Stack<'s> {
    pub(super) state: &'s State,
    /// What of it is read at once.
    start: u64,
    len: usize,
}

impl<'s> Stack<'s> {
    /// Up to the frame with that base.
    pub(super) fn below(state: &'s State, base: u64) -> Stack<'s> {
        // Whole steps, so that it is the same part from one sample to the next.
        let len = base.saturating_sub(state.stack).next_multiple_of(VALUES_STEP);
        let start = state.stack.max((state.stack + len).saturating_sub(VALUES));
        let end = (state.stack + len).min(state.end);
        let len = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        Stack { state, start, len }
    }

    /// The word at an address of it.
    pub(super) fn word(&self, at: u64, recall: &mut Recall, memory: &dyn Memory) -> Option<u64> {
        let inside = usize::try_from(at.wrapping_sub(self.start)).unwrap_or(usize::MAX);
        if inside.checked_add(8).is_some_and(|end| end <= self.len) {
            let bytes = recall.get(self.start, self.len, memory)?;
            return word(bytes, u32::try_from(inside).ok()?);
        }
        recall.word(at, memory)
    }

    /// The function of the frame whose link is there.
    pub(super) fn called(
        &self,
        link: u64,
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<Called> {
        let value = self.word(link.checked_sub(8)?, recall, memory)?;
        let address = value & ((1 << TAG_AT) - 1);
        if address == self.state.address {
            return Some(Called { what: What::Nothing, code: 0 });
        }
        if value >> TAG_AT != FUNCTION_TAG {
            return None;
        }
        let bytes = recall.get(address, FUNCTION, memory)?;
        if byte(bytes, TYPE) != Some(IS_FUNCTION) {
            return None;
        }
        let (kind, code) = (byte(bytes, KIND)?, word(bytes, INSTRUCTIONS)?);
        if kind != 0 {
            return Some(Called { what: What::C(word(bytes, C_FUNCTION)?), code });
        }
        let address = code.checked_sub(PROTOTYPE as u64)?;
        let bytes = recall.get(address, PROTOTYPE, memory)?;
        let prototype: [u8; PROTOTYPE] = *bytes.first_chunk()?;
        let is_one = byte(&prototype, TYPE) == Some(IS_PROTOTYPE);
        is_one.then_some(Called { what: What::Lua(address, prototype), code })
    }

    /// What links the frame whose link is there to its caller, and where the link of that one is.
    pub(super) fn link(
        &self,
        at: u64,
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<(Link, u64)> {
        let link = self.word(at, recall, memory)?;
        let by_length = at.wrapping_sub(link & !7);
        let (link, outer) = match link & 7 {
            0 | 4 => {
                // The instruction that called says in which register the function was.
                let call = recall.get(link.checked_sub(4)?, 4, memory)?;
                let register = u64::from(byte(call, 1)?);
                (Link::Lua(link), at.checked_sub(8 * (2 + register))?)
            }
            1 | 5 => (Link::C, by_length),
            2 => {
                let goes_on = self.word(at.checked_sub(24)?, recall, memory)?;
                let next = self.word(at.checked_sub(16)?, recall, memory)?;
                match goes_on {
                    // A tail call of a function in C, and a call of C's through FFI.
                    0 => (Link::Continues(None), by_length),
                    1 => (Link::C, by_length),
                    _ => (Link::Continues(Some(next)), by_length),
                }
            }
            3 => (Link::Again, by_length),
            _ => (Link::Inner, by_length),
        };
        (outer < at && outer > self.state.stack && outer & 7 == 0).then_some((link, outer))
    }
}
