//! Code at 0x4000, which no table covers, on x86-64 and AArch64.

use flame_profile::{ImageAddress, StackEnd};

use crate::StackLimit;
use crate::testing::{AARCH64, BIAS, JIT, MAIN, SP, START, Sample, X86_64, text};

const RBP: u8 = 6;
const RSP: u8 = 7;
const RIP: u8 = 16;

/// The function without a table, and another one.
const BARE: u64 = 0x4000;
const OTHER: u64 = 0x6000;

/// Return addresses into the callers.
const IN_MAIN: u64 = BIAS + MAIN + 0x20;
const IN_START: u64 = BIAS + START + 0x30;

/// A direct call at `at - 5`, so that `at` is its return address.
fn call(at: u64, target: u64) -> Vec<u8> {
    let mut code = vec![0xe8];
    code.extend((target.wrapping_sub(at) as u32).to_le_bytes());
    code
}

/// Samples `BARE + 0x10` with the given text.
fn sample<'a>(registers: &'a [(u8, u64)], words: &'a [u64], pieces: &[(u64, &[u8])]) -> Sample<'a> {
    let mut sample = Sample::of(X86_64, &[], registers, words);
    sample.sections.text = Some(text(pieces));
    sample
}

#[test]
fn frames_of_jit_code_are_left_by_the_frame_pointer() {
    // JIT code called JIT code, which main called; the table takes over from there.
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, JIT + 0x10)];
    let words = [1, SP + 24, JIT + 0x50, SP + 40, IN_MAIN, 0, 0, IN_START];
    Sample::of(X86_64, &[], &registers, &words)
        .check("+12340010 12340050 2020 3030", StackEnd::Guessed);
}

#[test]
fn a_frame_pointer_that_cannot_be_one_is_not_followed() {
    for rbp in [SP - 8, SP + 1, SP + 64, 0, u64::MAX - 7] {
        let registers = [(RSP, SP), (RBP, rbp), (RIP, JIT + 0x10)];
        let words = [0, IN_MAIN, IN_MAIN, IN_MAIN];
        Sample::of(X86_64, &[], &registers, &words).check("+12340010", StackEnd::NoUnwindInfo);
    }
    // Two words that would do, but frames are aligned.
    let registers = [(RSP, SP), (RBP, SP + 1), (RIP, JIT + 0x10)];
    let words = [0, IN_MAIN << 8, IN_MAIN >> 56, 0, IN_START];
    Sample::of(X86_64, &[], &registers, &words).check("+12340010", StackEnd::NoUnwindInfo);
    // It points to two words, but the second one is not an address of code.
    let registers = [(RSP, SP), (RBP, SP), (RIP, JIT + 0x10)];
    Sample::of(X86_64, &[], &registers, &[SP, SP]).check("+12340010", StackEnd::NoUnwindInfo);
}

#[test]
fn a_frame_beyond_the_copy_is_not_lost_for_lack_of_information() {
    let registers = [(RSP, SP), (RBP, SP + 64), (RIP, JIT + 0x10)];
    let mut sample = Sample::of(X86_64, &[], &registers, &[1, 2]);
    sample.limit = StackLimit::CopyFull;
    sample.check("+12340010", StackEnd::CopyTooShort);
}

#[test]
fn a_frame_pointer_of_zero_is_no_root_nor_is_a_pair_of_zeros() {
    let registers = [(RSP, SP), (RBP, SP), (RIP, JIT + 0x10)];
    // Threads begin with 0, and code without frame pointers leaves it.
    let words = [0, JIT + 0x50, 0, 0];
    Sample::of(X86_64, &[], &registers, &words).check("+12340010 12340050", StackEnd::NoUnwindInfo);
    // Code that uses rbp for anything may have it point to zeroed variables.
    let words = [SP + 16, JIT + 0x50, 0, 0];
    Sample::of(X86_64, &[], &registers, &words).check("+12340010 12340050", StackEnd::NoUnwindInfo);
    Sample::of(X86_64, &[], &registers, &[0, 0]).check("+12340010", StackEnd::NoUnwindInfo);
}

#[test]
fn a_chain_ends_where_a_coroutine_was_started_without_a_call() {
    // goexit is a nop, then what the goroutine returns to.
    let goexit: (u64, &[u8]) = (OTHER, &[0x90]);
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, BIAS + BARE + 0x10)];
    let words = [1, 0, BIAS + OTHER + 1];
    sample(&registers, &words, &[goexit]).check("+4010", StackEnd::ChainEnd);
    let words = [1, SP + 8, BIAS + OTHER + 1];
    sample(&registers, &words, &[goexit]).check("+4010", StackEnd::NoUnwindInfo);
}

#[test]
fn before_and_after_its_frame_a_function_returns_to_the_top_of_the_stack() {
    let call = call(MAIN + 0x20, BARE);
    let calls: (u64, &[u8]) = (MAIN + 0x1b, &call);
    // rbp is the caller's, and would lead past it.
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, BIAS + BARE + 0x1010)];
    let words = [IN_MAIN, SP + 40, BIAS + MAIN + 0x60, IN_START];
    for at in [&[0x55][..], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xc3]] {
        let sample = sample(&registers, &words, &[calls, (BARE + 0x1010, at)]);
        sample.check("+5010 2020 3030", StackEnd::Guessed);
    }
}

#[test]
fn between_push_and_move_the_frame_pointer_is_the_callers() {
    let call = call(MAIN + 0x20, OTHER);
    let registers = [(RSP, SP), (RBP, SP + 16), (RIP, BIAS + BARE + 0x11)];
    let words = [SP + 16, IN_MAIN, SP + 40, 0, IN_START];
    // push %rbp; mov %rsp,%rbp
    let pieces = [(MAIN + 0x1b, &call[..]), (BARE + 0x10, &[0x55, 0x48, 0x89, 0xe5])];
    sample(&registers, &words, &pieces).check("+4011 2020 3030", StackEnd::Guessed);
}

#[test]
fn assembly_without_a_frame_returns_behind_the_call_of_it() {
    // Here rbp is the frame pointer of main, which called this function.
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, BIAS + BARE + 0x10)];
    let words = [IN_MAIN, SP + 40, 0, IN_START];
    let direct = call(MAIN + 0x20, BARE);
    sample(&registers, &words, &[(MAIN + 0x1b, &direct)])
        .check("+4010 2020 3030", StackEnd::Guessed);
    // call *%rax
    sample(&registers, &words, &[(MAIN + 0x1e, &[0xff, 0xd0])])
        .check("+4010 2020 3030", StackEnd::Guessed);
    // call of a PLT stub: jmp *GOT(%rip)
    let through_plt = call(MAIN + 0x20, OTHER);
    let stub: (u64, &[u8]) = (OTHER, &[0xff, 0x25]);
    sample(&registers, &words, &[(MAIN + 0x1b, &through_plt), stub])
        .check("+4010 2020 3030", StackEnd::Guessed);
}

/// rbp is that of a caller which has a frame pointer: the pair leads behind a call in `start`, past `main`.
#[test]
fn a_return_address_on_top_comes_before_a_frame_pointer_that_leads_past_its_function() {
    let words = [IN_MAIN, 0, 0, IN_START];
    let onward = call(START + 0x30, MAIN);
    let onward: (u64, &[u8]) = (START + 0x2b, &onward);
    // Called through a register.
    let registers = [(RSP, SP), (RBP, SP + 16), (RIP, BIAS + BARE + 0x10)];
    sample(&registers, &words, &[onward, (MAIN + 0x1e, &[0xff, 0xd0])])
        .check("+4010 2020 3030", StackEnd::Guessed);
    // Called through a PLT stub: jmp *GOT(%rip).
    let through_plt = call(MAIN + 0x20, OTHER);
    let stub: (u64, &[u8]) = (OTHER, &[0xff, 0x25]);
    sample(&registers, &words, &[onward, (MAIN + 0x1b, &through_plt), stub])
        .check("+4010 2020 3030", StackEnd::Guessed);
    // Jumped to by another function, at its first instruction: push %rbp.
    let registers = [(RSP, SP), (RBP, SP + 16), (RIP, BIAS + BARE + 0x1010)];
    let direct = call(MAIN + 0x20, OTHER);
    sample(&registers, &words, &[onward, (MAIN + 0x1b, &direct), (BARE + 0x1010, &[0x55])])
        .check("+5010 2020 3030", StackEnd::Guessed);
}

/// Of two candidates that are both behind calls the return address on top wins if the call was of the
/// very function, which is taken to be 4,096 bytes long at most.
#[test]
fn a_call_of_what_is_far_before_the_sample_was_not_of_its_function() {
    let words = [IN_MAIN, 0, 0, IN_START];
    let (onward, direct) = (call(START + 0x30, MAIN), call(MAIN + 0x20, BARE));
    let pieces = [(START + 0x2b, &onward[..]), (MAIN + 0x1b, &direct)];
    for (at, expect) in [(0xfff, "+4fff 2020 3030"), (0x1000, "+5000 3030")] {
        let registers = [(RSP, SP), (RBP, SP + 16), (RIP, BIAS + BARE + at)];
        sample(&registers, &words, &pieces).check(expect, StackEnd::Guessed);
    }
}

/// call 48550201; mov %esp,%ebp: the end of the call and what is behind it read like push %rbp;
/// mov %rsp,%rbp, but a frame that is returned to does not stand there.
#[test]
fn what_is_before_a_return_address_is_not_taken_for_the_start_of_a_function() {
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, JIT + 0x10)];
    let stale = call(MAIN + 0x60, OTHER);
    let words = [1, SP + 40, BIAS + BARE + 0x20, 0, BIAS + MAIN + 0x60, 0, IN_MAIN, 0, 0, IN_START];
    let odd: (u64, &[u8]) = (BARE + 0x1b, &[0xe8, 1, 2, 0x55, 0x48, 0x89, 0xe5]);
    let direct = call(MAIN + 0x20, BARE);
    sample(&registers, &words, &[odd, (MAIN + 0x5b, &stale), (MAIN + 0x1b, &direct)])
        .check("+12340010 4020 2020 3030", StackEnd::Guessed);
}

#[test]
fn a_left_over_return_address_gives_way_to_the_frame_pointer() {
    // On top of the stack lies what a call of another function left; the frame pointer leads to
    // the real caller.
    let registers = [(RSP, SP), (RBP, SP + 16), (RIP, BIAS + BARE + 0x10)];
    let words = [BIAS + MAIN + 0x60, 0, 0, IN_MAIN, 0, 0, IN_START];
    let (stale, real) = (call(MAIN + 0x60, OTHER), call(MAIN + 0x20, OTHER));
    let pieces = [(MAIN + 0x5b, &stale[..]), (MAIN + 0x1b, &real)];
    sample(&registers, &words, &pieces).check("+4010 2020 3030", StackEnd::Guessed);
    // Without a frame pointer it is the best guess: the other function may have jumped here.
    let registers = [(RSP, SP), (RBP, 0), (RIP, BIAS + BARE + 0x10)];
    let words = [BIAS + MAIN + 0x60, 0, 0, IN_START];
    sample(&registers, &words, &pieces).check("+4010 2060 3030", StackEnd::Guessed);
}

#[test]
fn what_follows_no_call_is_no_return_address() {
    let registers = [(RSP, SP), (RBP, SP), (RIP, BIAS + BARE + 0x10)];
    let words = [IN_MAIN, IN_MAIN, 0, IN_START];
    sample(&registers, &words, &[]).check("+4010", StackEnd::NoUnwindInfo);
}

#[test]
fn a_signal_frame_without_a_table_is_known_by_its_code() {
    // A handler without a frame, in no table, was entered by the kernel: it returns to
    // mov $15,%rax; syscall. The saved rip and rsp are 168 and 160 bytes from there on.
    let trampoline: (u64, &[u8]) = (OTHER, &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);
    let mut words = [0; 27];
    words[0] = BIAS + OTHER;
    words[1 + 160 / 8] = SP + 8 * 24;
    words[1 + 168 / 8] = BIAS + MAIN;
    words[26] = IN_START;
    let registers = [(RSP, SP), (RBP, SP + 8), (RIP, BIAS + BARE + 0x10)];
    sample(&registers, &words, &[trampoline]).check("+4010 +6000 +2000 3030", StackEnd::Guessed);
}

#[test]
fn on_aarch64_a_signal_frame_is_known_by_its_code() {
    // lr = the trampoline: mov x8, #139; svc #0. Saved: sp at 128+176+8+31*8, pc behind it.
    let trampoline = [0xd280_1168_u32, 0xd400_0001].map(u32::to_le_bytes).concat();
    let mut words = [0; 75];
    words[560 / 8] = SP + 8 * 72;
    words[568 / 8] = BIAS + MAIN + 4;
    words[74] = IN_START;
    let registers = [(31, SP), (30, BIAS + OTHER), (32, BIAS + BARE + 0x10)];
    let mut sample = Sample::of(AARCH64, &[], &registers, &words);
    sample.sections.text = Some(text(&[(OTHER, &trampoline)]));
    sample.check("+4010 +6000 +2004 3030", StackEnd::Guessed);
}

#[test]
fn code_at_the_entry_point_is_the_root_above_the_arguments() {
    let registers = [(RSP, SP), (RIP, BIAS + BARE + 0x10)];
    // As the kernel starts a process: argc, argv[0], argv[1], a zero.
    let mut sample = Sample::of(X86_64, &[], &registers, &[2, 0x7ffd_1000, 0x7ffd_1008, 0]);
    sample.sections.entry = Some(ImageAddress(BARE));
    sample.check("+4010", StackEnd::Root);
    sample.sections.entry = Some(ImageAddress(BARE - 0x40));
    sample.check("+4010", StackEnd::NoUnwindInfo);
    sample.sections.entry = Some(ImageAddress(BARE));
    for words in [&[2, 0x7ffd_1000, 0x7ffd_1008, 1][..], &[u64::MAX, 0, 0], &[1 << 20, 0, 0]] {
        sample.words = words;
        sample.check("+4010", StackEnd::NoUnwindInfo);
    }
    sample.words = &[2, 0x7ffd_1000];
    sample.limit = StackLimit::CopyFull;
    sample.check("+4010", StackEnd::CopyTooShort);
}

#[test]
fn a_function_beside_the_entry_point_is_not_the_root() {
    // entry: call BARE + 0x20. The sampled function has made no frame.
    let direct = call(BARE + 5, BARE + 0x20);
    let registers = [(RSP, SP), (RIP, BIAS + BARE + 0x20)];
    let words = [BIAS + BARE + 5, 1, 0x7ffd_1000, 0];
    let mut sample = sample(&registers, &words, &[(BARE, &direct), (BARE + 0x20, &[0x55])]);
    sample.sections.entry = Some(ImageAddress(BARE));
    sample.check("+4020 4005", StackEnd::Guessed);
}

#[test]
fn a_call_of_a_null_pointer_returns_to_the_top_of_the_stack() {
    // call *%rax in main
    let registers = [(RSP, SP), (RBP, SP), (RIP, 0)];
    let words = [IN_MAIN, 0, 0, IN_START];
    let through_register: (u64, &[u8]) = (MAIN + 0x1e, &[0xff, 0xd0]);
    sample(&registers, &words, &[through_register]).check("+0 2020 3030", StackEnd::Guessed);
    // A direct call goes elsewhere, and a frame pointer tells nothing here.
    let direct = call(MAIN + 0x20, OTHER);
    sample(&registers, &words, &[(MAIN + 0x1b, &direct)]).check("+0", StackEnd::BadValue);
    sample(&registers, &[SP, IN_MAIN], &[through_register]).check("+0", StackEnd::BadValue);
}

#[test]
fn on_aarch64_jit_frames_are_left_by_x29() {
    let registers = [(31, SP), (29, SP + 8), (30, 7), (32, JIT + 0x10)];
    // main's frame, then start's return address, which main's row finds at CFA-8.
    let words = [1, SP + 40, IN_MAIN, 0, 0, IN_START];
    Sample::of(AARCH64, &[], &registers, &words).check("+12340010 2020 3030", StackEnd::Guessed);
}

#[test]
fn on_aarch64_a_link_register_left_by_an_own_call_is_not_followed() {
    // The function itself has called through x8; x29 leads to its frame, made for main.
    let registers = [(31, SP), (29, SP), (30, BIAS + BARE + 0x8), (32, BIAS + BARE + 0x10)];
    let words = [0, IN_MAIN, 0, 0, IN_START];
    let mut sample = Sample::of(AARCH64, &[], &registers, &words);
    let blr = 0xd63f_0100_u32.to_le_bytes();
    sample.sections.text = Some(text(&[(MAIN + 0x1c, &blr), (BARE + 0x4, &blr)]));
    sample.check("+4010 2020 3030", StackEnd::Guessed);
}

#[test]
fn on_aarch64_a_bare_function_returns_to_the_link_register() {
    let registers = [(31, SP), (29, SP), (30, IN_MAIN), (32, BIAS + BARE + 0x10)];
    let words = [0, 0, IN_START];
    let mut sample = Sample::of(AARCH64, &[], &registers, &words);
    // blr x8 in main; stp x29, x30, [sp, #-16]! where the sample is
    let blr = 0xd63f_0100_u32.to_le_bytes();
    let stp = 0xa9bf_7bfd_u32.to_le_bytes();
    sample.sections.text = Some(text(&[(MAIN + 0x1c, &blr), (BARE + 0x10, &stp)]));
    sample.check("+4010 2020 3030", StackEnd::Guessed);
}

#[test]
fn on_aarch64_a_function_that_only_returns_is_left_without_a_guess() {
    let registers = [(31, SP), (29, SP), (30, IN_MAIN), (32, BIAS + BARE + 0x10)];
    let words = [0, 0, IN_START];
    let mut sample = Sample::of(AARCH64, &[], &registers, &words);
    // svc #0; ret. What is before does not matter.
    let code = [0xd400_0001_u32, 0xd65f_03c0].map(u32::to_le_bytes).concat();
    sample.sections.text = Some(text(&[(BARE + 0x10, &code)]));
    sample.check("+4010 2020 3030", StackEnd::Root);
    // nop; bl; ret: the register will be another.
    let code = [0xd503_201f_u32, 0x9400_0010, 0xd65f_03c0].map(u32::to_le_bytes).concat();
    let blr = 0xd63f_0100_u32.to_le_bytes();
    sample.sections.text = Some(text(&[(MAIN + 0x1c, &blr), (BARE + 0x10, &code)]));
    sample.check("+4010 2020 3030", StackEnd::Guessed);
}
