//! Frames in code that its runtime tells about, on x86-64.

use flame_profile::{Bias, ImageAddress, ProcessAddress, StackEnd};

use crate::testing::{BIAS, CODE, JIT, MAIN, SP, START, X86_64, image};
use crate::{
    Architecture, CfiUnwinder, Code, CodeAddress, FindCode, FrameAddress, Left, ModuleId,
    Registers, RuntimeCaller, RuntimeFrame, StackCopy, StackLimit, Unwinder,
};

const RBP: u8 = 6;
const RSP: u8 = 7;
const RIP: u8 = 16;

const IN_MAIN: u64 = BIAS + MAIN + 0x20;
const IN_START: u64 = BIAS + START + 0x30;

/// A runtime whose code is at [`JIT`], and what it says of each frame of a stack.
struct Runtime<'a> {
    module: ModuleId,
    left: &'a [Left],
}

impl FindCode for Runtime<'_> {
    fn code(&mut self, address: ProcessAddress) -> Code {
        if (BIAS + CODE..BIAS + 0x8000).contains(&address.0) {
            let bias = Bias::between(ProcessAddress(BIAS), ImageAddress(0));
            Code::Module(CodeAddress::new(self.module, address, bias))
        } else if (JIT..JIT + 0x1000).contains(&address.0) {
            Code::Runtime
        } else {
            Code::NotCode
        }
    }

    fn leave(&mut self, frame: RuntimeFrame<'_>) -> Left {
        self.left.get(frame.position).copied().unwrap_or(Left::Unknown)
    }
}

fn caller(address: u64, stack_pointer: u64, frame_pointer: Option<u64>) -> Left {
    let (address, stack_pointer) = (ProcessAddress(address), ProcessAddress(stack_pointer));
    Left::Caller(RuntimeCaller { address, stack_pointer, frame_pointer })
}

/// Samples `JIT + 0x10` with rbp at [`SP`], where no frame is.
#[track_caller]
fn check(left: &[Left], words: &[u64], expect: &[u64], expect_end: StackEnd) {
    let mut unwinder = CfiUnwinder::new(Architecture::X86_64);
    let module = unwinder.add_module(image(X86_64, &[]));
    let mut registers = Registers::default();
    for (register, value) in [(RSP, SP), (RBP, SP), (RIP, JIT + 0x10)] {
        registers.set(register, value);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackCopy::new(ProcessAddress(SP), &bytes, &[], StackLimit::StackEnded);
    let (mut frames, mut find) = (Vec::new(), Runtime { module, left });
    let end = unwinder.unwind(&mut find, &registers, &stack, 100, &mut frames);
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.address().0).collect();
    assert_eq!((addresses.as_slice(), end), (expect, expect_end));
    assert!(frames.iter().skip(1).all(|frame| matches!(frame, FrameAddress::Return(_))));
}

#[test]
fn what_a_runtime_says_of_its_frames_is_no_guess() {
    let left = [caller(JIT + 0x50, SP + 16, None), caller(IN_MAIN, SP + 24, None)];
    let words = [0, 0, 0, 0, 0, IN_START];
    check(&left, &words, &[JIT + 0x10, JIT + 0x50, IN_MAIN, IN_START], StackEnd::Root);
}

#[test]
fn a_frame_that_a_runtime_does_not_know_is_left_as_code_without_tables() {
    // The first frame's frame pointer, as the runtime says it, leads to main's pair.
    let left = [caller(JIT + 0x50, SP + 8, Some(SP + 16)), Left::Unknown];
    let words = [0, 0, 0, IN_MAIN, 0, 0, IN_START];
    check(&left, &words, &[JIT + 0x10, JIT + 0x50, IN_MAIN, IN_START], StackEnd::Guessed);
    // Without it no frame pointer is known: the sampled frame's is not that of its caller.
    let left = [caller(JIT + 0x50, SP + 8, None), Left::Unknown];
    check(&left, &words, &[JIT + 0x10, JIT + 0x50], StackEnd::NoUnwindInfo);
}

#[test]
fn callers_lie_above_what_they_called() {
    let (here, words) = (JIT + 0x10, [0, 0, IN_START]);
    // The innermost frame may have given back its stack.
    check(&[caller(IN_MAIN, SP, None)], &words, &[here, IN_MAIN, IN_START], StackEnd::Root);
    check(&[caller(IN_MAIN, SP - 8, None)], &words, &[here], StackEnd::BadValue);
    // Others stand on theirs.
    let within = [caller(JIT + 0x50, SP, None), caller(IN_MAIN, SP, None)];
    check(&within, &words, &[here, JIT + 0x50], StackEnd::BadValue);
    check(&[caller(0, SP + 8, None)], &words, &[here], StackEnd::BadValue);
}

#[test]
fn a_runtime_may_say_that_a_stack_cannot_be_followed() {
    let left = [Left::End(StackEnd::CopyTooShort)];
    check(&left, &[0, 0, IN_START], &[JIT + 0x10], StackEnd::CopyTooShort);
}
