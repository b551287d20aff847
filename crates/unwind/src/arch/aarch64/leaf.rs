//! Whether code returns to the link register with all that is its caller's untouched, on each way from an
//! instruction on.
//!
//! Code without tables is often a function that calls nobody and needs no stack: the kernel's vdso has
//! no tables since Linux 5.9, and `clock_gettime` is such a function. What is left of it to run says so, whatever ran
//! before: when no way to a return writes to the stack pointer or to a register that is the caller's,
//! the caller finds them as they are now. An instruction that is not understood ends the search: it is
//! no proof then.

/// How many instructions away code is looked at: the vdso's functions have up to 250.
const MOST: usize = 512;

const X19: u32 = 19;
const LR: u32 = 30;
/// The zero register, or the stack pointer.
const ZR_OR_SP: u32 = 31;

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// To the one behind it.
    On,
    /// Elsewhere, so many words away.
    To(i32),
    /// To either.
    Either(i32),
    Return,
    /// To where that cannot be said, or with other registers.
    Unknown,
}

/// Whether the code of which `before` and `at` are the bytes before and from an instruction on only returns.
pub(super) fn only_returns(before: &[u8], at: &[u8]) -> bool {
    let before = before.rchunks_exact(4).take(MOST);
    let words: Vec<_> = before.rev().chain(at.chunks_exact(4).take(MOST)).collect();
    let first = words.len() - at.chunks_exact(4).take(MOST).len();
    let (mut seen, mut open, mut returns) = (vec![false; words.len()], vec![first], false);
    while let Some(index) = open.pop() {
        let (Some(word), Some(is_seen)) = (words.get(index), seen.get_mut(index)) else {
            return false;
        };
        if std::mem::replace(is_seen, true) {
            continue;
        }
        // One before the first is not an index.
        let target = |words: i32| index.wrapping_add_signed(words as isize);
        match word.first_chunk().map_or(Next::Unknown, |bytes| next(u32::from_le_bytes(*bytes))) {
            Next::On => open.push(index + 1),
            Next::To(words) => open.push(target(words)),
            Next::Either(words) => open.extend([index + 1, target(words)]),
            Next::Return => returns = true,
            Next::Unknown => return false,
        }
    }
    returns
}

fn next(word: u32) -> Next {
    let group = word >> 25 & 0b1111;
    let keeps = match group {
        0b1000 | 0b1001 => immediate_keeps(word),
        0b1010 | 0b1011 => return branch(word),
        0b0101 | 0b1101 => register_keeps(word),
        // Of the vector unit: where it writes to a general register, that is not the stack pointer.
        0b0111 | 0b1111 => !is_callers(word),
        _ if group & 0b0101 == 0b0100 => memory_keeps(word),
        _ => false,
    };
    if keeps { Next::On } else { Next::Unknown }
}

/// Whether the register in the lowest bits is one that functions give back as it was.
fn is_callers(bits: u32) -> bool {
    (X19..=LR).contains(&(bits & 0x1f))
}

/// A signed number of this many bits.
fn signed(word: u32, low: u32, bits: u32) -> i32 {
    (word << (32 - low - bits)).cast_signed() >> (32 - bits)
}

fn branch(word: u32) -> Next {
    if word & 0xfc00_0000 == 0x1400_0000 {
        return Next::To(signed(word, 0, 26)); // b
    }
    if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        return Next::Either(signed(word, 5, 19)); // b.cond, cbz, cbnz
    }
    if word & 0x7e00_0000 == 0x3600_0000 {
        return Next::Either(signed(word, 5, 14)); // tbz, tbnz
    }
    match word {
        0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff => Next::Return, // ret, retaa, retab
        0xd400_0001 => Next::On, // svc #0: the kernel gives all registers back but x0
        // Hints: paciasp and autiasp sign and verify the link register, and leave the address in it.
        _ if word & 0xffff_f01f == 0xd503_201f => Next::On,
        _ if word & 0xffff_f01f == 0xd503_301f => Next::On, // barriers
        _ if word & 0xfff0_0000 == 0xd530_0000 && !is_callers(word) => Next::On, // mrs
        _ => Next::Unknown,
    }
}

fn immediate_keeps(word: u32) -> bool {
    let is_flags_only = word & 0x1f == ZR_OR_SP;
    match word >> 23 & 0b111 {
        // add, sub: into the stack pointer, unless flags are set.
        0b010 => !is_callers(word) && (!is_flags_only || word >> 29 & 1 == 1),
        // Memory tags.
        0b011 => false,
        // and, orr, eor: the same; ands is 3.
        0b100 => !is_callers(word) && (!is_flags_only || word >> 29 & 0b11 == 0b11),
        _ => !is_callers(word),
    }
}

fn register_keeps(word: u32) -> bool {
    // add, sub with an extended register.
    let may_be_sp = word & 0x1fe0_0000 == 0x0b20_0000 && word >> 29 & 1 == 0;
    !(is_callers(word) || may_be_sp && word & 0x1f == ZR_OR_SP)
}

fn memory_keeps(word: u32) -> bool {
    let is_vector = word >> 26 & 1 == 1;
    let keeps = |low: u32| is_vector || !is_callers(word >> low);
    let keeps_base = || {
        let base = word >> 5 & 0x1f;
        base < X19
    };
    match word >> 27 & 0b111 {
        // Exclusive: also the register that says whether it was stored.
        0b001 if !is_vector => keeps(0) && keeps(10) && keeps(16),
        // Relative to the instruction.
        0b011 if word >> 24 & 1 == 0 => keeps(0),
        // Pairs: without change of the base, or with.
        0b101 => keeps(0) && keeps(10) && (word >> 23 & 1 == 0 || keeps_base()),
        0b111 if word >> 24 & 1 == 1 => keeps(0),
        0b111 => match (word >> 21 & 1, word >> 10 & 0b11) {
            (0, 0b01 | 0b11) => keeps(0) && keeps_base(),
            (0, _) | (1, 0b00 | 0b10) => keeps(0),
            // Signed addresses.
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[track_caller]
    fn check(words: &[u32], at: usize, expect: bool) {
        let code = code(words);
        let (before, at) = code.split_at(4 * at);
        assert_eq!(only_returns(before, at), expect);
    }

    /// `__kernel_clock_gettime` of Linux 6.1, shortened: it calls nobody, and loops.
    #[test]
    fn a_function_of_the_vdso_returns_with_what_is_its_callers() {
        let words = [
            0xd503_233f, // paciasp
            0x7100_3c1f, // cmp w0, #0xf
            0x5400_0148, // b.hi to svc
            0x10fe_e8c3, // adr x3
            0xb940_0067, // ldr w7, [x3]
            0x3707_ffe7, // tbnz w7, #0, back to ldr
            0xd503_39bf, // dmb ishld
            0xd53b_e042, // mrs x2, cntvct_el0
            0x8b24_63e4, // add x4, sp, x4
            0xa940_a86b, // ldp x11, x10, [x3, #8]
            0xa900_0026, // stp x6, x0, [x1]
            0xd65f_03c0, // ret
            0xd280_0e28, // mov x8, #0x71
            0xd400_0001, // svc #0
            0xd503_23bf, // autiasp
            0xd65f_03c0, // ret
        ];
        (0..words.len()).for_each(|at| check(&words, at, true));
    }

    #[test]
    fn what_changes_a_register_of_the_callers_is_no_proof() {
        let ret = 0xd65f_03c0;
        let spoils = [
            0xa9bf_7bfd, // stp x29, x30, [sp, #-16]!
            0xa8c1_7bfd, // ldp x29, x30, [sp], #16
            0xd100_83ff, // sub sp, sp, #32
            0x8b20_63ff, // add sp, sp, x0
            0x9240_041f, // and sp, x0, #3
            0xf841_07fe, // ldr x30, [sp], #16
            0xf800_8e60, // str x0, [x19, #8]!
            0xf940_03fe, // ldr x30, [sp]
            0xaa00_03f3, // mov x19, x0
            0xd280_0014, // mov x20, #0
            0xc85f_7c15, // ldxr x21, [x0]
            0x9e66_001e, // fmov x30, d0
            0x9400_0010, // bl
            0xd63f_0100, // blr x8
            0xd61f_0200, // br x16
            0xd420_0000, // brk
            0x0000_0000, // udf
            0x9100_401f, // add sp, x0, #16
            0x9181_0420, // addg x0, x1, #16, #1
            0xb240_041f, // orr sp, x0, #3
            0xd341_0813, // ubfx x19, x0, #1, #2
            0x0b20_03ff, // add wsp, wsp, w0, uxtb
            0xcb20_43ff, // sub sp, sp, w0, uxtw
            0x9a81_0013, // csel x19, x0, x1, eq
            0x5800_0013, // ldr x19, literal
            0xc813_7c20, // stxr w19, x0, [x1]
            0xc822_4c60, // stxp w2, x0, x19, [x3]
            0xc85f_fc33, // ldaxr x19, [x1]
            0xa940_4c20, // ldp x0, x19, [x1]
            0xa940_0033, // ldp x19, x0, [x1]
            0xa8c1_0660, // ldp x0, x1, [x19], #16
            0xacc1_0660, // ldp q0, q1, [x19], #32
            0xf840_8433, // ldr x19, [x1], #8
            0xf840_8660, // ldr x0, [x19], #8
            0xf840_0833, // ldtr x19, [x1]
            0xf862_6833, // ldr x19, [x1, x2]
            0xf820_0053, // ldadd x0, x19, [x2]
            0xf820_0420, // ldraa x0, [x1]
            0x4c40_7013, // ld1 {v19.16b}, [x0]: not told apart from what changes its base
            0xd920_0820, // stg x0, [x1]
            0xd53b_d053, // mrs x19, tpidr_el0
            0xd51b_d040, // msr tpidr_el0, x0
            0xd400_0021, // svc #1
            0xd65f_0020, // ret x1
        ];
        for word in spoils {
            assert!(!only_returns(&[], &code(&[word, ret])), "{word:08x}");
        }
        let fine = [
            0xf100_001f, // cmp x0, #0
            0xf240_041f, // tst x0, #3
            0xf940_03e0, // ldr x0, [sp]
            0xf900_07e1, // str x1, [sp, #8]
            0x0eb1_b820, // addv-like of the vector unit
            0x9e66_0000, // fmov x0, d0
            0xf820_0041, // ldadd x0, x1, [x2]
            0x7200_001f, // tst w0, #1
            0xd340_fc1f, // ubfx xzr, x0, #0, #64
            0x8b22_0020, // add x0, x1, w2, uxtb
            0xeb21_001f, // cmp x0, w1, uxtb
            0xaa01_001f, // orr xzr, x0, x1
            0x8a01_001f, // and xzr, x0, x1
            0xaa13_03e0, // mov x0, x19
            0x9c00_0014, // ldr q20, literal
            0xc802_7c20, // stxr w2, x0, [x1]
            0xc822_0460, // stxp w2, x0, x1, [x3]
            0xa940_0660, // ldp x0, x1, [x19]
            0xa8c1_0440, // ldp x0, x1, [x2], #16
            0xacc1_5013, // ldp q19, q20, [x0], #32
            0x3dc0_0433, // ldr q19, [x1, #16]
            0x3cc1_0433, // ldr q19, [x1], #16
            0xf840_8420, // ldr x0, [x1], #8
            0xf840_8c20, // ldr x0, [x1, #8]!
            0xf85f_8020, // ldur x0, [x1, #-8]
            0xf840_0820, // ldtr x0, [x1]
            0xf862_6820, // ldr x0, [x1, x2]
            0xf900_0260, // str x0, [x19]
            0xd503_3fdf, // isb
        ];
        for word in fine {
            assert!(only_returns(&[], &code(&[word, ret])), "{word:08x}");
        }
    }

    #[test]
    fn all_ways_of_a_branch_are_followed_and_no_other() {
        let (ret, udf) = (0xd65f_03c0, 0);
        check(&[0x1400_0002, udf, ret], 0, true); // b .+8
        check(&[ret, udf, 0x17ff_fffe], 2, true); // b .-8
        let either = [
            0x5400_0040, // b.eq .+8
            0xb400_0040, // cbz x0, .+8
            0x3500_0053, // cbnz w19, .+8
            0xb608_0040, // tbz x0, #33, .+8
            0x3718_0040, // tbnz w0, #3, .+8
        ];
        for branch in either {
            check(&[branch, ret, ret], 0, true);
            check(&[branch, udf, ret], 0, false);
            check(&[branch, ret, udf], 0, false);
        }
    }

    #[test]
    fn a_way_that_leaves_the_code_or_is_too_long_is_no_proof() {
        check(&[0xd503_201f], 0, false); // nop, and nothing behind it
        check(&[0x1400_0000], 0, false); // b to itself: it never returns
        check(&[0x17ff_ffff, 0xd65f_03c0], 0, false); // b before the code
        check(&[0x5400_0080, 0xd65f_03c0], 0, false); // b.eq behind the code
        let mut long = vec![0xd503_201f; MOST];
        long.push(0xd65f_03c0);
        check(&long, 0, false);
        let mut long = vec![0xd503_201f; MOST - 1];
        long.push(0xd65f_03c0);
        check(&long, 0, true);
    }
}
