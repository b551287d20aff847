//! AArch64: DWARF for the Arm 64-bit Architecture (AADWARF64), AAPCS64; `asm/perf_regs.h`.

mod leaf;

use super::{CallLeaves, Facts, FrameState};

const X19: u8 = 19;
const X29: u8 = 29;
const LR: u8 = 30;
const SP: u8 = 31;
const PC: u8 = 32;

/// `PERF_REG_ARM64_X0` to `PERF_REG_ARM64_PC`: the kernel's numbers are DWARF's.
const PERF_TO_DWARF: [Option<u8>; 33] = {
    let mut numbers = [None; 33];
    let mut n: u8 = 0;
    while n < 33 {
        numbers[n as usize] = Some(n);
        n += 1;
    }
    numbers
};

/// `struct rt_sigframe`: 128 bytes of `siginfo`, then `struct ucontext`, whose `sigcontext` is 176
/// bytes in and starts with the fault address (`asm/sigcontext.h`). x0 to x30, sp, pc follow.
const SIGNAL_FRAME: [(u8, u64); 33] = {
    let mut saved = [(0, 0); 33];
    let mut n: u8 = 0;
    while n < 33 {
        saved[n as usize] = (n, 128 + 176 + 8 + 8 * n as u64);
        n += 1;
    }
    saved
};

pub(crate) const FACTS: Facts = Facts {
    perf_to_dwarf: &PERF_TO_DWARF,
    stack_pointer: SP,
    frame_pointer: X29,
    program_counter: PC,
    return_address: LR,
    // x19 to x29. x30 is not: the call itself has overwritten it.
    callee_saved: ((1 << (LR - X19)) - 1) << X19,
    call_leaves: CallLeaves::InRegister(LR),
    // Pointer authentication signs in bits 54 to 48 and, without top-byte-ignore, 63 to 56. User
    // addresses have 48 bits unless a program asks mmap for more.
    code_address_mask: (1 << 48) - 1,
    ends_with_call,
    direct_call_target,
    is_plt_stub,
    is_signal_return,
    signal_frame: &SIGNAL_FRAME,
    // The kernel's own table leads to the interrupted function's caller only.
    signal_rows_are_whole: false,
    frame_state,
    only_returns: leaf::only_returns,
};

fn last_word(code: &[u8]) -> Option<u32> {
    code.last_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn ends_with_call(code: &[u8]) -> bool {
    last_word(code).is_some_and(|word| {
        let bl = word & 0xfc00_0000 == 0x9400_0000;
        let blr = word & 0xffff_fc1f == 0xd63f_0000;
        // blraa, blrab and their forms with a zero modifier.
        let signed = word & 0xfeff_f800 == 0xd63f_0800;
        bl || blr || signed
    })
}

fn direct_call_target(code: &[u8]) -> Option<i64> {
    let word = last_word(code).filter(|word| word & 0xfc00_0000 == 0x9400_0000)?;
    // 26 bits, signed, in words, relative to the call itself, which starts 4 before its end.
    let words = (word << 6).cast_signed() >> 6;
    Some(i64::from(words) * 4 - 4)
}

/// An optional `bti c`, then `adrp x16, PAGE`, as linkers begin each stub.
fn is_plt_stub(code: &[u8]) -> bool {
    let code = code.strip_prefix(&0xd503_245f_u32.to_le_bytes()).unwrap_or(code);
    let word = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| word & 0x9f00_001f == 0x9000_0010)
}

/// `mov x8, #139`, then `svc #0`.
fn is_signal_return(code: &[u8]) -> bool {
    code.starts_with(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4])
}

fn frame_state(_before: &[u8], at: &[u8]) -> FrameState {
    let Some(word) = at.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else {
        return FrameState::Unknown;
    };
    // stp x29, x30, [sp, #-N]!
    let pushes_pair = word & 0xffc0_7fff == 0xa980_7bfd;
    let is_return = word & 0xffff_fc1f == 0xd65f_0000 || matches!(word, 0xd65f_0bff | 0xd65f_0fff);
    // paciasp, pacibsp, bti c
    let is_landing = matches!(word, 0xd503_233f | 0xd503_237f | 0xd503_245f);
    if pushes_pair || is_return || is_landing { FrameState::Bare } else { FrameState::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_seen_in_all_forms() {
        let cases = [
            (0x9400_0010_u32, true, Some(0x3c)), // bl .+0x40
            (0x97ff_fffe, true, Some(-12)),      // bl .-8
            (0xd63f_0100, true, None),           // blr x8
            (0xd73f_0908, true, None),           // blraa x8, x8
            (0xd63f_091f, true, None),           // blraaz x8
            (0xd61f_0100, false, None),          // br x8
            (0x1400_0010, false, None),          // b .+0x40
            (0xd65f_03c0, false, None),          // ret
        ];
        for (word, is_call, target) in cases {
            let code = word.to_le_bytes();
            assert_eq!(ends_with_call(&code), is_call, "{word:08x}");
            assert_eq!(direct_call_target(&code), target, "{word:08x}");
        }
        assert!(!ends_with_call(&[0x94]));
    }

    #[test]
    fn a_callee_gives_back_x19_to_x29() {
        let kept = (0..64).filter(|register| FACTS.callee_saved >> register & 1 == 1);
        assert!(kept.eq(X19..=X29));
    }

    #[test]
    fn plt_stubs_start_with_the_page_of_their_target() {
        let stub = [0xd503_245f_u32, 0xf000_0090].map(u32::to_le_bytes);
        assert!(is_plt_stub(&stub.concat()));
        assert!(is_plt_stub(&stub[1]));
        assert!(!is_plt_stub(&0xf000_0091_u32.to_le_bytes())); // adrp x17
        assert!(!is_plt_stub(&stub[0]));
    }

    #[test]
    fn a_function_has_no_frame_before_its_pair_is_stored() {
        let cases = [
            (0xa9bf_7bfd_u32, FrameState::Bare), // stp x29, x30, [sp, #-16]!
            (0xa9b7_7bfd, FrameState::Bare),     // stp x29, x30, [sp, #-144]!
            (0xd503_233f, FrameState::Bare),     // paciasp
            (0xd65f_03c0, FrameState::Bare),     // ret
            (0x9100_03fd, FrameState::Unknown),  // mov x29, sp
            (0xa901_53f3, FrameState::Unknown),  // stp x19, x20, [sp, #16]
        ];
        for (word, expect) in cases {
            assert_eq!(frame_state(&[], &word.to_le_bytes()), expect, "{word:08x}");
        }
        assert_eq!(frame_state(&[], &[0xfd]), FrameState::Unknown);
    }
}
