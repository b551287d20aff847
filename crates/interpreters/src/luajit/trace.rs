//! The trace that runs: where its code is, and how the native stack is left there.
//!
//! Its code has no tables, but what it takes of the native stack is a number, and below that is the frame of the
//! interpreter that entered it.

use super::define::{KINDS, TRACES};
use super::layout::{CALLER, FRAME_POINTER, RETURN_ADDRESS};
use crate::caught::Entry;

/// A trace that runs, or a part of the interpreter itself that has taken more of the native stack than its tables
/// say: what it calls within itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTrace {
    /// Where its code starts, and how long it is.
    pub(super) code: u64,
    pub(super) len: u32,
    /// What it takes of the native stack below the C frame.
    pub(super) space: u32,
    /// The frame of the interpreter.
    pub(super) c_frame: u64,
}

/// The caller of the interpreter that a trace runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCaller {
    /// Where the interpreter returns to.
    pub address: u64,
    /// The stack pointer then.
    pub stack_pointer: u64,
    /// The frame pointer then.
    pub frame_pointer: u64,
}

impl RunningTrace {
    pub(super) fn to_entry(self, function: u64) -> Entry {
        let position = u64::from(self.len) << 32 | u64::from(self.space);
        Entry { address: self.c_frame, code: self.code.max(1), position, function }
    }

    /// The one that an entry is.
    pub(crate) fn of_entry(entry: &Entry) -> Option<RunningTrace> {
        if let Some((c_frame, code, space)) = entry.subroutine() {
            return Some(RunningTrace { code, len: 1, space, c_frame });
        }
        let is_one = !entry.is_boundary() && entry.function & KINDS == TRACES;
        is_one.then_some(RunningTrace {
            code: entry.code,
            len: u32::try_from(entry.position >> 32).ok()?,
            space: u32::try_from(entry.position & u64::from(u32::MAX)).ok()?,
            c_frame: entry.address,
        })
    }

    /// Whether it is a trace, and not the interpreter.
    pub fn is_trace(&self) -> bool {
        self.len > 1
    }

    /// Whether an address is in its code.
    pub fn covers(&self, address: u64) -> bool {
        address.wrapping_sub(self.code) < u64::from(self.len)
    }

    /// The caller of the interpreter, from a frame in the code of the trace; `word` is the word of the stack at
    /// an address. `None` where the stack pointer is not the one that the code has.
    pub fn leave(
        &self,
        stack_pointer: u64,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<TraceCaller> {
        let own = self.c_frame.checked_sub(self.space.into())?;
        let at = |behind: u64| word(self.c_frame.checked_add(behind)?);
        (own == stack_pointer).then_some(TraceCaller {
            address: at(RETURN_ADDRESS)?,
            stack_pointer: self.c_frame.checked_add(CALLER)?,
            frame_pointer: at(FRAME_POINTER)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_s_frame_is_left_from_where_the_code_says() {
        let trace = RunningTrace { code: 0x7000, len: 0x100, space: 48, c_frame: 0x1000 };
        let entry = trace.to_entry(0x40 | TRACES);
        assert_eq!(RunningTrace::of_entry(&entry), Some(trace));
        assert_eq!(RunningTrace::of_entry(&Entry { function: 0x43, ..entry }), None);
        assert_eq!(
            [0x6fff, 0x7000, 0x70ff, 0x7100].map(|at| trace.covers(at)),
            [false, true, true, false]
        );
        let left = trace.leave(0x1000 - 48, |address| Some(address + 1));
        let caller = TraceCaller { address: 0x1049, stack_pointer: 0x1050, frame_pointer: 0x1041 };
        assert_eq!(left, Some(caller));
        assert_eq!(trace.leave(0x1000 - 40, Some), None);
        assert_eq!(trace.leave(0x1000 - 48, |_| None), None);
    }
}
