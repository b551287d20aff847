//! Frames that stand by a frame pointer which nobody knows.
//!
//! Of a thread that waits only two registers are known, and a table that counts from the frame pointer tells nothing by
//! itself. What the function's own code has done to the stack pointer says how far above it the frame pointer's pair lies:
//! the caller's frame pointer, and a return address behind a call of this very function. No other place is looked at: of
//! pairs that earlier calls have left, a frame with a buffer is full. The code may have been read wrong, so it is a guess.

use flame_profile::StackEnd;

use super::{BareFrame, Evidence};
use crate::arch::CallLeaves;
use crate::code::{Code, FindCode};
use crate::prologue::frame_pointer_distance;
use crate::registers::Registers;
use crate::row::ShortRow;
use crate::step::{Frame, Step};

/// From the frame pointer to the canonical frame address, where a frame begins with the usual pair.
const PAIR: i32 = 16;

/// How a frame was left whose frame pointer is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostStep {
    pub(crate) step: Step,
    /// The return address stands behind a call of any function: the step counts only if the caller was called, too.
    pub(crate) is_open: bool,
}

impl BareFrame<'_> {
    /// Leaves a frame by a row, after finding the register that it counts from if that is the frame pointer.
    pub(crate) fn leave_without_frame_pointer(
        &self,
        row: &ShortRow,
        find: &mut dyn FindCode,
        registers: &mut Registers,
    ) -> LostStep {
        let counts_from_it = row.cfa_register == self.facts.frame_pointer
            && registers.get(self.facts.frame_pointer).is_none();
        let is_pair = counts_from_it && row.cfa_offset == PAIR;
        let on_stack = self.facts.call_leaves == CallLeaves::OnStack;
        let found = (is_pair && on_stack).then(|| self.find_pair(find, registers)).flatten();
        let Some((frame_pointer, evidence)) = found else {
            return LostStep { step: Step::End(StackEnd::BadValue), is_open: false };
        };
        registers.set(self.facts.frame_pointer, frame_pointer);
        let is_exact = self.address.is_exact();
        let frame = Frame { facts: self.facts, stack: self.stack, is_exact };
        let step = match frame.apply_short(row, registers) {
            Step::Caller(caller) => Step::Guess(caller),
            step => step,
        };
        LostStep { step, is_open: evidence == Evidence::OpenCall }
    }

    /// Where the function's code says that the frame pointer points to, and what the return address there is worth, if that
    /// is enough.
    fn find_pair(&self, find: &mut dyn FindCode, registers: &Registers) -> Option<(u64, Evidence)> {
        let Code::Module(code) = self.code else { return None };
        let range = self.modules.get(code.module.index())?.function_range(code.address)?;
        let start = range.start;
        let at = code.to_image_address(self.address.address());
        let len = |end: u64| usize::try_from(end.checked_sub(start.0)?).ok();
        let (_, text) = self.text_at(code.module, start)?;
        let function = text.get(..len(range.end.0)?.min(text.len()))?;
        let distance = frame_pointer_distance(function, len(at.0)?)?;
        let place = registers.get(self.facts.stack_pointer)?.checked_add(distance)?;
        let address = self.stack.read_u64(place.wrapping_add(8)).ok()?;
        let start = Some(code.bias.to_process_address(start));
        let evidence = BareFrame { start, ..*self }.evidence(find, address);
        (evidence >= Evidence::OpenCall).then_some((place, evidence))
    }

    /// Whether a step from this frame says that it was called, or is the outermost.
    pub(crate) fn is_called(&self, find: &mut dyn FindCode, step: Step) -> bool {
        match step {
            Step::Caller(caller) | Step::Guess(caller) => {
                self.evidence(find, caller.address().0) > Evidence::Code
            }
            Step::End(end) => matches!(end, StackEnd::Root | StackEnd::ChainEnd),
        }
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

    /// `push %rbp; mov %rsp,%rbp; push %rbx; sub $0x18,%rsp`: the pair is 32 bytes above the stack pointer.
    const PROLOGUE: [u8; 9] = [0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18];

    /// A thread that waits in `tested`, between that code and that `behind` it, and which main calls as the bytes before
    /// `MAIN + 0x20` say; those before `MAIN + 0x60` call another function.
    #[track_caller]
    fn check_in(
        [code, behind]: [&[u8]; 2],
        call_in_main: &[u8],
        words: &[u64],
        expect: &str,
        end: StackEnd,
    ) {
        let registers = [(RSP, SP), (RIP, BIAS + TESTED + code.len() as u64)];
        let mut sample = Sample::of(X86_64, &BY_FRAME_POINTER, &registers, words);
        let place = MAIN + 0x20 - call_in_main.len() as u64;
        let other = call(MAIN + 0x60, OTHER);
        let in_start = call(START + 0x30, MAIN);
        let rest = vec![0x90; (MAIN - TESTED) as usize - code.len() - behind.len()];
        let rest = [behind, &rest].concat();
        let pieces = [
            (TESTED, code),
            (TESTED + code.len() as u64, &rest),
            (place, call_in_main),
            (MAIN + 0x5b, &other),
            (START + 0x2b, &in_start),
        ];
        sample.sections.text = Some(text(&pieces));
        sample.check(expect, end);
    }

    #[track_caller]
    fn check(call_in_main: &[u8], words: &[u64], expect: &str, end: StackEnd) {
        check_in([&PROLOGUE, &[]], call_in_main, words, expect, end);
    }

    const IN_MAIN: u64 = BIAS + MAIN + 0x20;
    const OF_OTHER: u64 = BIAS + MAIN + 0x60;
    const IN_START: u64 = BIAS + START + 0x30;
    const FOUND: &str = "+1009 2020 3030";

    #[test]
    fn the_pair_is_where_the_code_has_left_the_frame_pointer() {
        let direct = call(MAIN + 0x20, TESTED);
        let words = [7, 7, 7, 7, SP + 64, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, FOUND, StackEnd::Guessed);
        // The outermost has none above it.
        let words = [7, 7, 7, 7, 0, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, FOUND, StackEnd::Guessed);
    }

    #[test]
    fn pairs_that_earlier_calls_have_left_are_not_taken() {
        let direct = call(MAIN + 0x20, TESTED);
        // Below the true one: of the same function, from another place of main.
        let words = [SP + 64, IN_MAIN, SP + 72, IN_MAIN, SP + 80, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, FOUND, StackEnd::Guessed);
        // Above a place that has none, and below it only.
        let words = [7, 7, 7, 7, 7, 7, SP + 80, IN_MAIN, 0, 0, IN_START];
        check(&direct, &words, "+1009", StackEnd::BadValue);
        let words = [SP + 64, IN_MAIN, SP + 64, IN_MAIN, 7, 7, 0, 0, IN_START];
        check(&direct, &words, "+1009", StackEnd::BadValue);
        // What returns to a call of another function there.
        let words = [SP + 64, IN_MAIN, 7, 7, SP + 64, OF_OTHER, 0, 0, IN_START];
        check(&direct, &words, "+1009", StackEnd::BadValue);
    }

    #[test]
    fn a_call_beside_the_start_of_the_function_is_one_of_another() {
        let beside = call(MAIN + 0x20, TESTED - 0x10);
        let words = [7, 7, 7, 7, SP + 64, IN_MAIN, 0, 0, IN_START];
        check(&beside, &words, "+1009", StackEnd::BadValue);
    }

    #[test]
    fn a_call_through_a_register_counts_if_its_caller_is_called_too() {
        // call *%rax. The caller's frame is by its table, whatever it keeps in the frame pointer.
        let open = [0xff, 0xd0];
        for kept in [0, 1, SP + 64] {
            let words = [7, 7, 7, 7, kept, IN_MAIN, 0, 0, IN_START];
            check(&open, &words, FOUND, StackEnd::Guessed);
        }
        for not_called in [8, BIAS + START + 0x40] {
            let words = [7, 7, 7, 7, SP + 64, IN_MAIN, 0, 0, not_called];
            check(&open, &words, "+1009", StackEnd::BadValue);
        }
    }

    #[test]
    fn code_that_does_not_tell_gives_no_guess() {
        let direct = call(MAIN + 0x20, TESTED);
        let words = [SP + 64, IN_MAIN, SP + 64, IN_MAIN, SP + 64, IN_MAIN, 0, 0, IN_START];
        // push %rbp; mov %rsp,%rbp; sub %rax,%rsp: of a size that only the register knows.
        let dynamic = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4];
        check_in([&dynamic, &[]], &direct, &words, "+1007", StackEnd::BadValue);
        // In the middle of an instruction: sub $0x18,%rsp less its last byte.
        check_in([&PROLOGUE[..8], &[]], &direct, &words, "+1008", StackEnd::BadValue);
        // What is unlikely stands behind the call and may have run before it.
        let words = [7, 7, 7, 7, SP + 64, IN_MAIN, 0, 0, IN_START];
        check_in([&PROLOGUE, &dynamic[4..]], &direct, &words, "+1009", StackEnd::BadValue);
    }
}
