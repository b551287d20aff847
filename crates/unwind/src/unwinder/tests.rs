//! Each rule that a table can give, on x86-64, with the assembly that it is written for.

use flame_profile::StackEnd;

use crate::testing::{
    AARCH64, BIAS, Cie, MAIN, SP, START, Sample, TESTED, X86_64, X86_64_SIGNAL, debug_section, text,
};
use crate::{StackLimit, UnwindSections};

const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
const R10: u8 = 10;
const RIP: u8 = 16;

/// The sampled instruction, unless a test says otherwise.
const PC: u64 = BIAS + TESTED + 0x10;
/// Return addresses into the callers.
const IN_MAIN: u64 = BIAS + MAIN + 0x20;
const IN_START: u64 = BIAS + START + 0x30;

const TO_ROOT: &str = "+1010 2020 3030";

#[test]
fn a_fixed_frame_is_left_by_the_stack_pointer() {
    // push %rbx; sub $16,%rsp      CFA=rsp+32 rbx=c-16 ra=c-8
    let rows = [0x0e, 32, 0x83, 2];
    let words = [1, 2, 0xb, IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &rows, &[(RSP, SP), (RIP, PC)], &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn a_frame_of_unknown_size_is_left_by_the_frame_pointer() {
    // push %rbp; mov %rsp,%rbp     CFA=rbp+16 rbp=c-16 ra=c-8
    let rows = [0x0e, 16, 0x86, 2, 0x0d, 6];
    let words = [1, 2, 3, 0xb, IN_MAIN, 0, 0, IN_START];
    let registers = [(RSP, SP), (RBP, SP + 24), (RIP, PC)];
    Sample::of(X86_64, &rows, &registers, &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn the_row_of_the_sampled_instruction_is_used() {
    // push %rbx at 0 is one byte long: advance_loc 1; def_cfa_offset 16; offset rbx c-16.
    let rows = [0x41, 0x0e, 16, 0x83, 2];
    let at_start = [(RSP, SP), (RIP, BIAS + TESTED)];
    let words = [IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &rows, &at_start, &words).check("+1000 2020 3030", StackEnd::Root);
    let after_push = [(RSP, SP), (RIP, BIAS + TESTED + 1)];
    let words = [0xb, IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &rows, &after_push, &words).check("+1001 2020 3030", StackEnd::Root);
}

#[test]
fn a_return_address_behind_the_last_instruction_belongs_to_the_caller() {
    // main's last instruction calls abort, so that the return address is start's first.
    let words = [BIAS + MAIN + 0x100, 0, 0, IN_START];
    let mut sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    sample.check("+1010 2100 3030", StackEnd::Root);
    sample.words = &[IN_MAIN, 0, 0, BIAS + START];
    sample.check("+1010 2020 3000", StackEnd::NoUnwindInfo);
}

#[test]
fn a_realigned_frame_is_left_by_the_pointer_that_it_keeps() {
    // lea 8(%rsp),%r10; and $-32,%rsp      CFA=r10+0 ra=c-8
    let words = [1, 2, 3, IN_MAIN, 0, 0, IN_START];
    let registers = [(RSP, SP), (R10, SP + 32), (RIP, PC)];
    Sample::of(X86_64, &[0x0c, 10, 0], &registers, &words).check(TO_ROOT, StackEnd::Root);
    // push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10
    // CFA=[rbp-8] (breg6 -8; deref) rbp=[rbp] (breg6 0)
    let rows = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
    let words = [SP + 56, 0xb, IN_MAIN, 0, 0, 0, IN_MAIN, 0, 0, IN_START];
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, PC)];
    Sample::of(X86_64, &rows, &registers, &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn a_register_that_a_call_destroys_is_unknown_in_the_caller() {
    // CFA=r10+0 ra=c-8 for both frames; the first one still has r10.
    let rows = [0x0c, 10, 0];
    let registers = [(RSP, SP), (R10, SP + 16), (RIP, PC)];
    let words = [1, BIAS + TESTED + 0x40, 0, 0];
    Sample::of(X86_64, &rows, &registers, &words).check("+1010 1040", StackEnd::BadValue);
}

#[test]
fn a_register_popped_in_the_epilogue_has_its_value_back() {
    // ...; pop %rbx; ret           CFA=rsp+8 rbx=c-16, below the stack pointer, ra=c-8
    // The caller, the same function, has CFA=rbx+24, so that it is found by rbx alone.
    let rows = [0x0e, 8, 0x83, 2, 0x02, 0x20, 0x0c, 3, 24];
    let registers = [(RSP, SP), (RBX, SP + 16), (RIP, PC)];
    let words = [BIAS + TESTED + 0x40, 1, 2, 3, IN_MAIN, 0, 0, IN_START];
    let sample = Sample::of(X86_64, &rows, &registers, &words);
    sample.check("+1010 1040 2020 3030", StackEnd::Root);
}

#[test]
fn a_register_saved_in_another_register_comes_from_there() {
    // mov %rbp,%r10 in assembly that needs rbp      CFA=rsp+8 rbp=r10 ra=c-8
    // The caller, the same function further on, has CFA=rbp+16.
    let rows = [0x09, 6, 10, 0x02, 0x20, 0x0c, 6, 16];
    let registers = [(RSP, SP), (R10, SP + 8), (RIP, PC)];
    let words = [BIAS + TESTED + 0x40, 0, IN_MAIN, 0, 0, IN_START];
    let sample = Sample::of(X86_64, &rows, &registers, &words);
    sample.check("+1010 1040 2020 3030", StackEnd::Root);
}

#[test]
fn a_register_may_be_a_distance_from_the_frame_instead_of_saved() {
    // val_offset rbp c-16 or val_expression rbp rsp-8, the same at CFA=rsp+8
    // The caller, the same function further on, has CFA=rbp+32.
    for value in [&[0x14, 6, 2][..], &[0x16, 6, 2, 0x77, 0x78]] {
        let rows = [value, &[0x02, 0x20, 0x0c, 6, 32]].concat();
        let words = [BIAS + TESTED + 0x40, 0, IN_MAIN, 0, 0, IN_START];
        let sample = Sample::of(X86_64, &rows, &[(RSP, SP), (RIP, PC)], &words);
        sample.check("+1010 1040 2020 3030", StackEnd::Root);
    }
}

#[test]
fn without_a_rule_the_return_address_is_where_calls_leave_it() {
    // CFA=rsp+8, and nothing of the return address
    let silent = Cie { rows: &[0x0c, 7, 8], ..X86_64 };
    let words = [1, 2, 0xb, IN_MAIN, 0, 0, IN_START];
    let sample = Sample::of(silent, &[0x0e, 32, 0x83, 2], &[(RSP, SP), (RIP, PC)], &words);
    sample.check(TO_ROOT, StackEnd::Root);
}

#[test]
fn a_row_that_needs_a_register_which_is_not_known_is_none() {
    // CFA=r33+8
    let sample = Sample::of(X86_64, &[0x0c, 33, 8], &[(RSP, SP), (RIP, PC)], &[IN_MAIN]);
    sample.check("+1010", StackEnd::NoUnwindInfo);
}

#[test]
fn a_plt_stub_that_has_pushed_its_number_is_left() {
    // CFA=rsp+8+((rip&15)>=11)*8, for: jmp *GOT(%rip); push $n; jmp PLT0
    let rows = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let before = [(RSP, SP), (RIP, BIAS + TESTED + 6)];
    let words = [IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &rows, &before, &words).check("+1006 2020 3030", StackEnd::Root);
    let after = [(RSP, SP), (RIP, BIAS + TESTED + 11)];
    let words = [5, IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &rows, &after, &words).check("+100b 2020 3030", StackEnd::Root);
}

#[test]
fn a_signal_frame_leads_to_the_interrupted_instruction() {
    // __restore_rt: CFA=[rsp+16] (breg7 16; deref) rip=[rsp+8] rsp=[rsp+16] r10=[rsp+24]
    let cfa = [0x0f, 3, 0x77, 16, 0x06];
    let saved = [0x10, 16, 2, 0x77, 8, 0x10, 7, 2, 0x77, 16, 0x10, 10, 2, 0x77, 24];
    let rows = [cfa.as_slice(), &saved].concat();
    // The handler was interrupted right at its return; main was, at its very first instruction,
    // where the row of the byte before it would be another function's.
    let words = [0, BIAS + MAIN, SP + 32, 0xa, 0, 0, IN_START];
    let registers = [(RSP, SP), (RIP, BIAS + TESTED)];
    let sample = Sample::of(X86_64_SIGNAL, &rows, &registers, &words);
    sample.check("+1000 +2000 3030", StackEnd::Root);
}

#[test]
fn a_handler_returns_to_a_trampoline_whose_table_starts_there() {
    // The handler is main, its return address the first byte of `tested`, the trampoline, with
    // CFA=[rsp+16] rip=[rsp+8] rsp=[rsp+16]. It had interrupted main, too.
    let rows = [0x0f, 3, 0x77, 16, 0x06, 0x10, 16, 2, 0x77, 8, 0x10, 7, 2, 0x77, 16];
    let words = [0, 0, BIAS + TESTED, 0, IN_MAIN, SP + 48, 0, 0, IN_START];
    let registers = [(RSP, SP), (RIP, IN_MAIN)];
    let sample = Sample::of(X86_64_SIGNAL, &rows, &registers, &words);
    sample.check("+2020 +1000 +2020 3030", StackEnd::Root);
    // Where the code cannot be seen only signal frames are looked for like that.
    let words = [0, 0, BIAS + TESTED];
    Sample::of(X86_64, &[], &registers, &words).check("+2020 1000", StackEnd::NoUnwindInfo);
}

#[test]
fn a_function_that_stands_for_a_caller_is_looked_up_at_its_start() {
    // Where Go changes to a goroutine's stack it names the start of runtime.systemstack_switch as
    // the caller: CFA=rsp+8 there, and CFA=rsp+24 behind its first byte.
    let rows = [0x41, 0x0e, 24];
    let registers = [(RSP, SP), (RIP, IN_MAIN)];
    let words = [0, 0, BIAS + TESTED, IN_MAIN, 0, 0, IN_START];
    let mut sample = Sample::of(X86_64, &rows, &registers, &words);
    sample.sections.text = Some(text(&[]));
    sample.check("+2020 +1000 2020 3030", StackEnd::Root);
    // Behind a call at the very end of another function it is a return address like any.
    sample.sections.text = Some(text(&[(TESTED - 2, &[0xff, 0xd0])]));
    sample.check("+2020 1000", StackEnd::NoUnwindInfo);
}

#[test]
fn a_call_of_a_null_pointer_that_a_signal_interrupted_is_walked_on() {
    // The trampoline's table says rip=[rsp+8] rsp=[rsp+16]; rip was zero, on top of the stack is
    // what `call *%rax` in main left.
    let rows = [0x0f, 3, 0x77, 16, 0x06, 0x10, 16, 2, 0x77, 8, 0x10, 7, 2, 0x77, 16];
    let registers = [(RSP, SP), (RIP, BIAS + TESTED)];
    let words = [0, 0, SP + 24, IN_MAIN, 0, 0, IN_START];
    let mut sample = Sample::of(X86_64_SIGNAL, &rows, &registers, &words);
    sample.sections.text = Some(text(&[(MAIN + 0x1e, &[0xff, 0xd0])]));
    sample.check("+1000 +0 2020 3030", StackEnd::Guessed);
    sample.sections.text = Some(text(&[]));
    sample.check("+1000 +0", StackEnd::BadValue);
}

#[test]
fn the_stack_that_a_signal_interrupted_may_be_another_one() {
    // rip=[rsp+8] rsp=[rsp+16], which lies below the handler's stack.
    let rows = [0x0f, 3, 0x77, 16, 0x06, 0x10, 16, 2, 0x77, 8, 0x10, 7, 2, 0x77, 16];
    let registers = [(RSP, SP), (RIP, BIAS + TESTED)];
    for elsewhere in [SP - 0x10_0000, SP + (1 << 40)] {
        let words = [0, IN_MAIN, elsewhere];
        let mut sample = Sample::of(X86_64_SIGNAL, &rows, &registers, &words);
        sample.limit = StackLimit::CopyFull;
        sample.check("+1000 +2020", StackEnd::CopyTooShort);
    }
}

#[test]
fn zero_as_return_address_is_the_root() {
    let words = [IN_MAIN, 0, 0, 0];
    let sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    sample.check("+1010 2020", StackEnd::Root);
}

#[test]
fn a_sample_in_the_outermost_function_is_complete() {
    Sample::of(X86_64, &[], &[(RSP, SP), (RIP, IN_START)], &[]).check("+3030", StackEnd::Root);
}

#[test]
fn a_copy_that_ends_early_is_told_from_a_stack_that_does() {
    let words = [IN_MAIN, 0, 0];
    let mut sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    sample.check("+1010 2020", StackEnd::BadValue);
    sample.limit = StackLimit::CopyFull;
    sample.check("+1010 2020", StackEnd::CopyTooShort);
}

#[test]
fn a_task_whose_stack_is_gone_has_no_stack() {
    let sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &[]);
    sample.check("+1010", StackEnd::NotRecorded);
}

#[test]
fn what_is_no_code_is_no_frame() {
    let words = [0x7ffc_0000_2000];
    let sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    sample.check("+1010", StackEnd::BadValue);
}

#[test]
fn a_frame_that_leads_nowhere_ends_the_walk() {
    // CFA=rbp+16 with rbp below the stack pointer.
    let rows = [0x0c, 6, 16];
    let registers = [(RSP, SP), (RBP, SP - 64), (RIP, PC)];
    Sample::of(X86_64, &rows, &registers, &[PC, PC]).check("+1010", StackEnd::BadValue);
    // CFA=rbp+16 with rbp pointing to itself.
    let registers = [(RSP, SP), (RBP, SP), (RIP, PC)];
    let rows = [0x0c, 6, 16, 0x86, 2];
    Sample::of(X86_64, &rows, &registers, &[SP, PC]).check("+1010 1010", StackEnd::BadValue);
}

#[test]
fn no_more_frames_than_the_limit() {
    let words = [IN_MAIN, 0, 0, IN_START];
    let mut sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    sample.frame_limit = 2;
    sample.check("+1010 2020", StackEnd::FrameLimit);
    sample.frame_limit = 0;
    sample.check("", StackEnd::FrameLimit);
}

#[test]
fn without_a_program_counter_nothing_is_walked() {
    Sample::of(X86_64, &[], &[(RSP, SP)], &[IN_MAIN]).check("", StackEnd::NotRecorded);
}

#[test]
fn debug_frame_is_asked_where_eh_frame_is_silent() {
    // push %rbx; sub $16,%rsp      CFA=rsp+32 ra=c-8, for a function at 0x4000
    let words = [1, 2, 0xb, IN_MAIN, 0, 0, IN_START];
    let registers = [(RSP, SP), (RIP, BIAS + 0x4010)];
    let mut sample = Sample::of(X86_64, &[], &registers, &words);
    sample.check("+4010", StackEnd::NoUnwindInfo);
    sample.sections.debug_frame = Some(debug_section(0x4000, &[0x0e, 32]));
    sample.check("+4010 2020 3030", StackEnd::Root);
}

#[test]
fn an_index_takes_the_place_of_a_table_that_is_missing_or_wrong() {
    let words = [IN_MAIN, 0, 0, IN_START];
    let mut sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &words);
    let mut hdr = sample.sections.eh_frame_hdr.take().unwrap();
    sample.check(TO_ROOT, StackEnd::Root);
    // The entry for `tested` names the description of main.
    let mut bytes = hdr.bytes.to_vec();
    bytes.copy_within(24..28, 16);
    hdr.bytes = bytes.into();
    sample.sections.eh_frame_hdr = Some(hdr);
    sample.check(TO_ROOT, StackEnd::Root);
}

#[test]
fn on_aarch64_a_leaf_returns_to_the_link_register() {
    let registers = [(31, SP), (30, IN_MAIN), (32, PC)];
    let words = [0, 0, IN_START];
    Sample::of(AARCH64, &[], &registers, &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn on_aarch64_a_caller_that_saved_no_link_register_is_an_error() {
    let registers = [(31, SP), (30, BIAS + TESTED + 0x40), (32, PC)];
    Sample::of(AARCH64, &[], &registers, &[0, 0]).check("+1010 1040", StackEnd::BadValue);
}

#[test]
fn on_aarch64_signed_return_addresses_are_stripped() {
    // paciasp; stp x29, x30, [sp, #-16]!       negate_ra_state; CFA=sp+16 x29=c-16 x30=c-8
    let rows = [0x2d, 0x0e, 16, 0x9d, 2, 0x9e, 1];
    let registers = [(31, SP), (30, 0), (32, PC)];
    let words = [0, IN_MAIN | 0x002a << 48, 0, 0, IN_START | 0xb55a << 48];
    Sample::of(AARCH64, &rows, &registers, &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn on_aarch64_a_frame_of_unknown_size_is_left_by_x29() {
    // stp x29, x30, [sp, #-32]!; mov x29, sp       CFA=x29+32 x29=c-32 x30=c-24
    let rows = [0x0c, 29, 32, 0x9d, 4, 0x9e, 3];
    let registers = [(31, SP), (29, SP + 8), (32, PC)];
    let words = [9, 0, IN_MAIN, 1, 2, 0, 0, IN_START];
    Sample::of(AARCH64, &rows, &registers, &words).check(TO_ROOT, StackEnd::Root);
}

#[test]
fn an_image_without_any_table_has_one_frame() {
    let mut sample = Sample::of(X86_64, &[], &[(RSP, SP), (RIP, PC)], &[IN_MAIN]);
    sample.sections = UnwindSections::default();
    sample.check("+1010", StackEnd::NoUnwindInfo);
}
