use super::*;

/// `push %rbp; mov %rsp,%rbp`
const FRAME: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
/// `call`
const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];
/// `sub $0x1000,%rsp; orq $0,(%rsp)`
const PROBED_PAGE: [u8; 12] = [0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x83, 0x0c, 0x24, 0];

/// Where nothing stands behind it.
fn distance(code: &[u8]) -> Option<u64> {
    frame_pointer_distance(code, code.len())
}

/// Holds what the code behind `pieces` says, and that it says nothing where an instruction is not whole.
#[track_caller]
fn check(pieces: &[&[u8]], expect: Option<u64>) {
    let code = pieces.concat();
    assert_eq!(distance(&code), expect, "{code:02x?}");
    if let Some((last, before)) = code.split_last() {
        let is_known = expect.is_some() && *last != 0x55;
        // The last instruction of all these cases has more than one byte.
        assert!(!is_known || distance(before).is_none(), "{code:02x?}");
    }
}

#[test]
fn a_frame_of_gcc_without_optimisation() {
    // read_line: push %rbx; sub $0x2028,%rsp; mov %rdi,%rbx; lea -0x2010(%rbp),%rdi; call
    let code = [
        0x53, 0x48, 0x81, 0xec, 0x28, 0x20, 0, 0, 0x48, 0x89, 0xfb, 0x48, 0x8d, 0xbd, 0xf0, 0xdf,
        0xff, 0xff,
    ];
    check(&[&FRAME, &code, &CALL], Some(0x2030));
    check(&[&[0xf3, 0x0f, 0x1e, 0xfa], &FRAME, &code, &CALL], Some(0x2030));
    // sub $0x10,%rsp; mov %rdi,-8(%rbp); call, with the other encoding of mov %rsp,%rbp.
    let other = [0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0x7d, 0xf8];
    check(&[&other, &CALL], Some(0x10));
    check(&[&FRAME, &CALL], Some(0));
}

#[test]
fn a_frame_that_the_optimiser_has_mixed_with_other_code() {
    // true_caller of gcc -O2: four pushes, lea -0x30(%rbp),%r12 and mov among them, sub $0x10,%rsp.
    let code = [
        0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x4c, 0x8d, 0x65, 0xd0, 0x53, 0x4c, 0x89, 0xe6, 0x48,
        0x89, 0xfb, 0xbf, 1, 0, 0, 0, 0x48, 0x83, 0xec, 0x10,
    ];
    check(&[&FRAME, &code, &CALL], Some(0x30));
    // do_sleep: cmpl $4,KIND(%rip); ja; push %rbp; lea; mov %rdi,%rcx; mov %rsp,%rbp; sub $0x20,%rsp; mov;
    // movslq; add; jmp *%rax; xchg %ax,%ax; movabs; shr $3,%rcx; mul %rcx; call
    let wrapped = [
        0x83, 0x3d, 1, 0x2c, 0, 0, 4, 0x0f, 0x87, 0x4a, 1, 0, 0, 0x55, 0x48, 0x8d, 0x15, 0x5f,
        0x0b, 0, 0, 0x48, 0x89, 0xf9, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x8b, 0x05, 0xe3,
        0x2b, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0x66, 0x90, 0x48, 0xb8,
        1, 2, 3, 4, 5, 6, 7, 8, 0x48, 0xc1, 0xe9, 3, 0x48, 0xf7, 0xe1,
    ];
    check(&[&wrapped, &CALL], Some(0x20));
    // The canary: sub $0x30,%rsp; mov %fs:0x28,%rax; mov %rax,-8(%rbp); xor %eax,%eax
    let canary = [
        0x48, 0x83, 0xec, 0x30, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x48, 0x89, 0x45,
        0xf8, 0x31, 0xc0,
    ];
    check(&[&FRAME, &canary, &CALL], Some(0x30));
}

#[test]
fn arguments_on_the_stack_count_while_they_are_there() {
    // a1 of gcc -O2: push %r12; push %rbx; sub $0x2710,%rsp; push $7; push $6; call
    let first = [0x41, 0x54, 0x53, 0x48, 0x81, 0xec, 0x10, 0x27, 0, 0, 0x6a, 7, 0x6a, 6];
    check(&[&FRAME, &first, &CALL], Some(0x2730));
    // push $8; push $7; call, then add $0x20,%rsp; test %eax,%eax; jne; call
    let second = [0x6a, 8, 0x6a, 7];
    let third = [0x48, 0x83, 0xc4, 0x20, 0x85, 0xc0, 0x75, 0x28];
    check(&[&FRAME, &first, &CALL, &second, &CALL], Some(0x2740));
    let start = [&FRAME[..], &first, &CALL, &second, &CALL, &third, &CALL].concat();
    check(&[&start], Some(0x2720));
    // lea -0x10(%rbp),%rsp; pop %rbx; pop %r12; pop %rbp; ret, and where the jump leads to: push %rsi; call
    let end = [0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3];
    check(&[&start, &end, &[0x56], &CALL], Some(0x2728));
    // The same with leave; ret. Behind the only way out nothing is known.
    check(&[&start, &[0xc9, 0xc3, 0x56], &CALL], Some(0x2728));
    check(&[&FRAME, &CALL, &[0xc9, 0xc3], &CALL], None);
    // push 0x10(%rbp); call; pop %rax; pop %rdx; test; call
    check(&[&FRAME, &[0xff, 0x75, 0x10], &CALL, &[0x58, 0x85, 0xc0], &CALL], Some(0));
}

#[test]
fn pages_of_a_large_frame_are_touched_one_by_one() {
    // gcc -fstack-clash-protection: push %rbx, two pages, sub $0x38,%rsp
    let rest = [0x48, 0x83, 0xec, 0x38];
    check(&[&FRAME, &[0x53], &PROBED_PAGE, &PROBED_PAGE, &rest, &CALL], Some(0x2040));
    // push %r12; push %rbx; lea -0x11000(%rsp),%r11; a page; cmp %r11,%rsp; jne; sub $0x250,%rsp
    let goal = [0x41, 0x54, 0x53, 0x4c, 0x8d, 0x9c, 0x24, 0, 0xf0, 0xfe, 0xff];
    let until = [0x4c, 0x39, 0xdc, 0x75, 0xef, 0x48, 0x81, 0xec, 0x50, 2, 0, 0];
    let start = [&FRAME[..], &goal, &PROBED_PAGE, &until].concat();
    check(&[&start, &CALL], Some(0x11260));
    // The jump of the loop is not one of those that lead to where the frame is made: test; je; leave; ret
    check(&[&start, &[0x85, 0xc0, 0x74, 2, 0xc9, 0xc3], &CALL], Some(0x11260));
    // clang: movq $0,(%rsp) touches a page.
    let page = [0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0];
    check(&[&FRAME, &goal, &page, &until, &CALL], Some(0x11260));
    check(&[&FRAME, &until, &CALL], None);
}

#[test]
fn frames_whose_size_the_code_does_not_tell_have_none() {
    let odd: [&[u8]; 10] = [
        &[0x48, 0x83, 0xe4, 0xe0], // and $-32,%rsp
        &[0x48, 0x29, 0xc4],       // sub %rax,%rsp
        &[0x48, 0x2b, 0x65, 0xd8], // sub -0x28(%rbp),%rsp
        &[0x48, 0x89, 0xdc],       // mov %rbx,%rsp
        &[0x48, 0x8b, 0x65, 0xd8], // mov -0x28(%rbp),%rsp
        &[0x48, 0x8d, 0x24, 0xc4], // lea (%rsp,%rax,8),%rsp
        &[0x5c],                   // pop %rsp
        &[0x48, 0x94],             // xchg %rax,%rsp
        &[0x48, 0x87, 0xe0],       // xchg %rsp,%rax
        &[0xc8, 0x10, 0, 0],       // enter
    ];
    for instruction in odd {
        check(&[&FRAME, instruction, &CALL], None);
    }
    // Reads of it change nothing: mov %rsp,%rdi; cmp %rsp,%rax; lea 8(%rsp),%rsi; mov $1,%ah
    let reads = [0x48, 0x89, 0xe7, 0x48, 0x39, 0xe0, 0x48, 0x8d, 0x74, 0x24, 8, 0xb4, 1];
    check(&[&FRAME, &reads, &CALL], Some(0));
}

#[test]
fn code_that_makes_no_frame_tells_nothing() {
    check(&[], None);
    check(&[&CALL], None);
    check(&[&[0x48, 0x83, 0xec, 0x18], &CALL], None);
    // The frame pointer is another one's, or set to something else than its predecessor's place.
    check(&[&[0x55], &CALL], None);
    check(&[&[0x55, 0x53, 0x48, 0x89, 0xe5], &CALL], None);
    // What is not known, and more than is read.
    check(&[&FRAME, &[0x06], &CALL], None);
    check(&[&FRAME, &[0x90; LONGEST], &CALL], None);
}

#[test]
fn what_a_call_that_does_not_return_was_given_is_not_there_behind_it() {
    // sub $0x10,%rsp; test; je over; push $2; push $1; call errx; over: call
    let skips = [0x48, 0x83, 0xec, 0x10, 0x85, 0xc0, 0x74, 9, 0x6a, 2, 0x6a, 1];
    check(&[&FRAME, &skips, &CALL, &CALL], Some(0x10));
    // One that returns gives it back: call; add $0x10,%rsp.
    let skips = [0x48, 0x83, 0xec, 0x10, 0x85, 0xc0, 0x74, 13, 0x6a, 2, 0x6a, 1];
    check(&[&FRAME, &skips, &CALL, &[0x48, 0x83, 0xc4, 0x10], &CALL], Some(0x10));
    // Two ways with two depths, and no call before: push $2; je over; push $1; over: call
    check(&[&FRAME, &[0x6a, 2, 0x74, 2, 0x6a, 1], &CALL], None);
}

#[test]
fn room_of_unknown_size_behind_the_call_may_have_been_made_before_it() {
    let whole = |behind: &[u8]| {
        let before = [&FRAME[..], &[0x48, 0x83, 0xec, 0x10], &CALL].concat();
        frame_pointer_distance(&[&before, behind].concat(), before.len())
    };
    assert_eq!(whole(&[0xc9, 0xc3]), Some(0x10));
    // leave; ret; sub %rax,%rsp; jmp
    assert_eq!(whole(&[0xc9, 0xc3, 0x48, 0x29, 0xc4, 0xeb, 0xf0]), None);
    // leave; ret; cmove %rax,%rsp, and half an instruction.
    assert_eq!(whole(&[0xc9, 0xc3, 0x48, 0x0f, 0x44, 0xe0]), None);
    assert_eq!(whole(&[0xc9, 0xc3, 0xe8]), None);
}
