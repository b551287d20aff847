//! x86-64: System V ABI (AMD64 supplement), figure 3.36 for DWARF numbers; `asm/perf_regs.h`.

use super::{CallLeaves, Facts, FrameState};

const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
const R12: u8 = 12;
const R15: u8 = 15;
const RIP: u8 = 16;

/// `PERF_REG_X86_AX` to `PERF_REG_X86_R15`. Numbers 9 to 15 are flags and segments.
const PERF_TO_DWARF: [Option<u8>; 24] = [
    Some(0),   // ax
    Some(RBX), // bx
    Some(2),   // cx
    Some(1),   // dx
    Some(4),   // si
    Some(5),   // di
    Some(RBP), // bp
    Some(RSP), // sp
    Some(RIP), // ip
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    Some(8),
    Some(9),
    Some(10),
    Some(11),
    Some(R12),
    Some(13),
    Some(14),
    Some(R15),
];

/// `struct rt_sigframe` without the return address that the handler has popped: the general
/// registers of `struct sigcontext` are 40 bytes into `struct ucontext` (`asm/sigcontext.h`).
const SIGNAL_FRAME: [(u8, u64); 17] = [
    (8, 40),
    (9, 48),
    (10, 56),
    (11, 64),
    (R12, 72),
    (13, 80),
    (14, 88),
    (R15, 96),
    (5, 104),
    (4, 112),
    (RBP, 120),
    (RBX, 128),
    (1, 136),
    (0, 144),
    (2, 152),
    (RSP, 160),
    (RIP, 168),
];

pub(crate) const FACTS: Facts = Facts {
    perf_to_dwarf: &PERF_TO_DWARF,
    stack_pointer: RSP,
    frame_pointer: RBP,
    program_counter: RIP,
    return_address: RIP,
    callee_saved: 1 << RBX | 1 << RBP | 0b1111 << R12,
    call_leaves: CallLeaves::OnStack,
    code_address_mask: u64::MAX,
    ends_with_call,
    direct_call_target,
    is_plt_stub,
    is_signal_return,
    signal_frame: &SIGNAL_FRAME,
    signal_rows_are_whole: true,
    frame_state,
    // Where instructions begin is not known before, and the return address may be anywhere on the stack.
    only_returns: |_, _| false,
};

/// Whether the bytes end with `call rel32` (e8) or a `call` through register or memory (ff /2).
fn ends_with_call(code: &[u8]) -> bool {
    if let [.., 0xe8, _, _, _, _] = code {
        return true;
    }
    // ModRM of ff /2 is mod:2 reg=010 rm:3. The operand's form fixes the length: a SIB byte
    // follows for rm = 100, four bytes for mod = 10 and for rip-relative (mod 00, rm 101).
    match code {
        [.., 0xff, 0xd0..=0xd7 | 0x10..=0x13 | 0x16 | 0x17] => true,
        [.., 0xff, 0x14, sib] if sib & 7 != 5 => true,
        [.., 0xff, 0x50..=0x53 | 0x55..=0x57, _] => true,
        [.., 0xff, 0x54, _, _] => true,
        [.., 0xff, 0x15 | 0x90..=0x93 | 0x95..=0x97, _, _, _, _] => true,
        [.., 0xff, 0x94, _, _, _, _, _] => true,
        [.., 0xff, 0x14, sib, _, _, _, _] => sib & 7 == 5,
        _ => false,
    }
}

fn direct_call_target(code: &[u8]) -> Option<i64> {
    match code {
        [.., 0xe8, a, b, c, d] => Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// An optional endbr64, an optional bnd, then `jmp *disp32(%rip)`.
fn is_plt_stub(code: &[u8]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    code.starts_with(&[0xff, 0x25])
}

/// `mov $15,%rax` or `mov $15,%eax`, then `syscall`.
fn is_signal_return(code: &[u8]) -> bool {
    let long = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    let short = [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05];
    code.starts_with(&long) || code.starts_with(&short)
}

fn frame_state(before: &[u8], at: &[u8]) -> FrameState {
    match at {
        // endbr64; push %rbp
        [0xf3, 0x0f, 0x1e, 0xfa, ..] | [0x55, ..] => FrameState::Bare,
        // ret; ret imm16; rep ret
        [0xc3, ..] | [0xc2, ..] | [0xf3, 0xc3, ..] => FrameState::Bare,
        // mov %rsp,%rbp in both encodings, right after push %rbp
        [0x48, 0x89, 0xe5, ..] | [0x48, 0x8b, 0xec, ..] if before.ends_with(&[0x55]) => {
            FrameState::FramePointerPushed
        }
        _ => FrameState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], is_call: bool) {
        assert_eq!(ends_with_call(code), is_call, "{code:02x?}");
    }

    #[test]
    fn calls_are_seen_in_all_forms() {
        check(&[0xe8, 1, 2, 3, 4], true);
        check(&[0xff, 0xd0], true); // call *%rax
        check(&[0x41, 0xff, 0xd4], true); // call *%r12
        check(&[0xff, 0x10], true); // call *(%rax)
        check(&[0xff, 0x14, 0xc8], true); // call *(%rax,%rcx,8)
        check(&[0xff, 0x14, 0xcd, 1, 0, 0, 0], true); // call *1(,%rcx,8)
        check(&[0xff, 0x50, 0x18], true); // call *0x18(%rax)
        check(&[0xff, 0x54, 0x24, 0x08], true); // call *8(%rsp)
        check(&[0xff, 0x15, 1, 2, 3, 4], true); // call *0x4030201(%rip)
        check(&[0xff, 0x90, 1, 2, 0, 0], true); // call *0x201(%rax)
        check(&[0xff, 0x94, 0xc1, 1, 2, 0, 0], true); // call *0x201(%rcx,%rax,8)
    }

    #[test]
    fn other_instructions_are_no_calls() {
        check(&[], false);
        check(&[0x48, 0x89, 0xe5], false); // mov %rsp,%rbp
        check(&[0xff, 0xe0], false); // jmp *%rax
        check(&[0xff, 0x25, 1, 2, 3, 4], false); // jmp *0x4030201(%rip)
        check(&[1, 2, 3, 4], false);
        check(&[0xff, 0x14, 0xcd], false); // call *disp32(,%rcx,8) without its last bytes
    }

    #[test]
    fn a_callee_gives_back_the_registers_of_the_abi() {
        let kept = (0..64).filter(|register| FACTS.callee_saved >> register & 1 == 1);
        assert_eq!(kept.collect::<Vec<u8>>(), [RBX, RBP, R12, 13, 14, R15]);
    }

    #[test]
    fn a_direct_call_tells_its_target() {
        assert_eq!(direct_call_target(&[0x90, 0xe8, 0xf0, 0xff, 0xff, 0xff]), Some(-16));
        assert_eq!(direct_call_target(&[0x41, 0xff, 0xd4]), None);
    }

    #[test]
    fn plt_stubs_are_seen_in_all_forms() {
        assert!(is_plt_stub(&[0xff, 0x25, 1, 2, 3, 4]));
        assert!(is_plt_stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4]));
        assert!(is_plt_stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2, 3, 4]));
        assert!(!is_plt_stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]));
        assert!(!is_plt_stub(&[0xff]));
    }

    #[test]
    fn the_prologue_tells_how_far_the_frame_is() {
        use FrameState::{Bare, FramePointerPushed, Unknown};
        let cases: [(&[u8], &[u8], FrameState); 7] = [
            (&[], &[0xf3, 0x0f, 0x1e, 0xfa], Bare),
            (&[], &[0x55, 0x48], Bare),
            (&[0x55], &[0x48, 0x89, 0xe5], FramePointerPushed),
            (&[0x90], &[0x48, 0x89, 0xe5], Unknown),
            (&[0x5d], &[0xc3], Bare),
            (&[0xe5], &[0x53], Unknown),
            (&[], &[], Unknown),
        ];
        for (before, at, expect) in cases {
            assert_eq!(frame_state(before, at), expect, "{before:02x?} {at:02x?}");
        }
    }
}
