//! Frames that stand by a frame pointer which nobody knows.
//!
//! Of a thread that waits only two registers are known, and a table that counts from the frame pointer tells nothing by
//! itself. The pair that it points to lies somewhere above the stack pointer: the caller's frame pointer, and a return
//! address behind a call of this very function. The first pair of that kind is taken; it may be one that an earlier call
//! has left there, so it is a guess.

use flame_profile::{ProcessAddress, StackEnd};

use super::{BareFrame, Evidence};
use crate::arch::CallLeaves;
use crate::code::{Code, FindCode};
use crate::registers::Registers;
use crate::row::ShortRow;
use crate::step::{Frame, Step};

/// How large a frame may be.
const LARGEST_FRAME: u64 = 64 * 1024;

/// How far above a frame its caller's may be.
const FARTHEST_CALLER: u64 = 1 << 20;

/// From the frame pointer to the canonical frame address, where a frame begins with the usual pair.
const PAIR: i32 = 16;

impl BareFrame<'_> {
    /// Leaves a frame by a row, after finding the register that it counts from if that is the frame pointer.
    pub(crate) fn leave_without_frame_pointer(
        &self,
        row: &ShortRow,
        find: &mut dyn FindCode,
        registers: &mut Registers,
    ) -> Step {
        let counts_from_it = row.cfa_register == self.facts.frame_pointer
            && registers.get(self.facts.frame_pointer).is_none();
        let is_pair = counts_from_it && row.cfa_offset == PAIR;
        let on_stack = self.facts.call_leaves == CallLeaves::OnStack;
        let found = (is_pair && on_stack).then(|| self.find_frame_pointer(find, registers));
        let Some(frame_pointer) = found.flatten() else { return Step::End(StackEnd::BadValue) };
        registers.set(self.facts.frame_pointer, frame_pointer);
        let is_exact = self.address.is_exact();
        let frame = Frame { facts: self.facts, stack: self.stack, is_exact };
        match frame.apply_short(row, registers) {
            Step::Caller(caller) => Step::Guess(caller),
            step => step,
        }
    }

    fn find_frame_pointer(&self, find: &mut dyn FindCode, registers: &Registers) -> Option<u64> {
        let start = registers.get(self.facts.stack_pointer)?;
        let mut open = None;
        for place in (start..start.saturating_add(LARGEST_FRAME)).step_by(8) {
            let Ok(caller) = self.stack.read_u64(place) else { break };
            let Ok(address) = self.stack.read_u64(place.wrapping_add(8)) else { break };
            let distance = caller.saturating_sub(place);
            let is_above = distance > 8 && distance <= FARTHEST_CALLER;
            if !(caller == 0 || is_above && caller % 8 == 0) {
                continue;
            }
            match self.evidence(find, address) {
                Evidence::CallOfThis => return Some(place),
                // Of any function: only if the caller's own pair is behind a call, too.
                Evidence::OpenCall if open.is_none() && self.is_called(find, caller) => {
                    open = Some(place);
                }
                _ => {}
            }
        }
        open
    }

    /// Whether a frame pointer leads to a return address behind a call, or is the outermost.
    fn is_called(&self, find: &mut dyn FindCode, frame_pointer: u64) -> bool {
        let address = self.stack.read_u64(frame_pointer.wrapping_add(8));
        frame_pointer == 0
            || address.is_ok_and(|address| {
                find.code(ProcessAddress(address)) != Code::NotCode
                    && self.evidence(find, address) > Evidence::Code
            })
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::StackEnd;

    use crate::testing::{BIAS, MAIN, SP, START, Sample, TESTED, X86_64, text};

    const RSP: u8 = 7;
    const RIP: u8 = 16;
    const OTHER: u64 = 0x6000;

    /// `push %rbp; mov %rsp,%rbp`: CFA=rbp+16 rbp=c-16
    const BY_FRAME_POINTER: [u8; 5] = [0x0c, 6, 16, 0x86, 2];

    fn call(at: u64, target: u64) -> Vec<u8> {
        [&[0xe8][..], &(target.wrapping_sub(at) as u32).to_le_bytes()].concat()
    }

    /// A thread that waits in `tested`, which main calls as the bytes before `MAIN + 0x20` say; those before
    /// `MAIN + 0x60` call another function.
    #[track_caller]
    fn check(call_in_main: &[u8], words: &[u64], expect: &str, end: StackEnd) {
        let registers = [(RSP, SP), (RIP, BIAS + TESTED + 0x10)];
        let mut sample = Sample::of(X86_64, &BY_FRAME_POINTER, &registers, words);
        let place = MAIN + 0x20 - call_in_main.len() as u64;
        let other = call(MAIN + 0x60, OTHER);
        sample.sections.text = Some(text(&[(place, call_in_main), (MAIN + 0x5b, &other)]));
        sample.check(expect, end);
    }

    const IN_MAIN: u64 = BIAS + MAIN + 0x20;
    const OF_OTHER: u64 = BIAS + MAIN + 0x60;
    const IN_START: u64 = BIAS + START + 0x30;

    #[test]
    fn the_pair_behind_a_call_of_the_function_is_its_frame() {
        let direct = call(MAIN + 0x20, TESTED);
        let found = "+1010 2020 3030";
        let words = [7, IN_MAIN, SP + 40, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, found, StackEnd::Guessed);
        // What another call has left is not.
        let words = [SP + 16, OF_OTHER, SP + 40, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, found, StackEnd::Guessed);
    }

    #[test]
    fn a_call_through_a_register_counts_if_its_caller_is_called_too() {
        // call *%rax
        let open = [0xff, 0xd0];
        let words = [7, 7, SP + 32, IN_MAIN, SP + 48, OF_OTHER, IN_START];
        check(&open, &words, "+1010 2020 3030", StackEnd::Guessed);
        let words = [7, 7, SP + 32, IN_MAIN, SP + 48, 8, IN_START];
        check(&open, &words, "+1010", StackEnd::BadValue);
    }

    #[test]
    fn without_such_a_pair_nothing_is_guessed() {
        let direct = call(MAIN + 0x20, TESTED);
        for caller in [SP + 8, SP + 41, SP + (2 << 20)] {
            let words = [7, 7, caller, IN_MAIN, 0, 0, IN_START];
            check(&direct, &words, "+1010", StackEnd::BadValue);
        }
    }
}
