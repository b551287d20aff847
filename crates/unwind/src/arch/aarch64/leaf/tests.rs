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
    ];
    for word in fine {
        assert!(only_returns(&[], &code(&[word, ret])), "{word:08x}");
    }
}

#[test]
fn what_writes_to_the_callers_registers_in_any_form_is_no_proof() {
    let spoils = [
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
        assert!(!only_returns(&[], &code(&[word, 0xd65f_03c0])), "{word:08x}");
    }
}

#[test]
fn what_reads_them_or_writes_to_others_leaves_the_proof() {
    let fine = [
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
        assert!(only_returns(&[], &code(&[word, 0xd65f_03c0])), "{word:08x}");
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
