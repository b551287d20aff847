//! What compiled code does to its stack before its frame is complete, and when it leaves it.
//!
//! Both are straight lines of a handful of instructions. From wherever in them a thread is, what follows
//! says where the frame will be or was; what is not among those instructions says nothing.

/// DWARF's numbers of registers.
pub(crate) const RAX: u8 = 0;
pub(crate) const RBX: u8 = 3;
pub(crate) const FP: u8 = 6;
pub(crate) const SP: u8 = 7;
pub(crate) const R13: u8 = 13;

/// More instructions than either line has.
const MOST: usize = 24;

/// What is left to do until a frame is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entering {
    /// By how many bytes the stack pointer will still go down.
    pub(crate) grows: u64,
    /// Whether the caller's frame pointer will still be saved.
    pub(crate) saves_fp: bool,
}

/// What is left to do until the return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Where the return address is, in bytes from the stack pointer.
    pub(crate) return_at: u64,
    /// Where the caller's frame pointer is, if it is not in its register already.
    pub(crate) fp_at: Option<u64>,
}

fn imm8(byte: u8) -> u64 {
    u64::from(byte)
}

fn imm32(bytes: [u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(bytes))
}

/// The length of an instruction that does nothing, if that is one.
fn idle(code: &[u8]) -> Option<usize> {
    let prefixes = code.iter().take(8).take_while(|byte| **byte == 0x66).count();
    let rest = match *code.get(prefixes..)? {
        [0x90, ..] => 1,
        [0x0f, 0x1f, 0x00, ..] => 3,
        [0x0f, 0x1f, 0x40, ..] => 4,
        [0x0f, 0x1f, 0x44, ..] => 5,
        [0x0f, 0x1f, 0x80, ..] => 7,
        [0x0f, 0x1f, 0x84, ..] => 8,
        _ => return None,
    };
    Some(prefixes + rest)
}

/// What the instructions up to `code`'s end, where the frame is complete, have still to do.
pub(crate) fn entering(code: &[u8]) -> Option<Entering> {
    let (mut rest, mut found) = (code, Entering::default());
    for _ in 0..MOST {
        if rest.is_empty() {
            return Some(found);
        }
        let len = match *rest {
            // push %rbp
            [0x55, ..] => {
                found.grows += 8;
                found.saves_fp = true;
                1
            }
            // sub $imm,%rsp
            [0x48, 0x83, 0xec, by @ 0..0x80, ..] => {
                found.grows += imm8(by);
                4
            }
            [0x48, 0x81, 0xec, a, b, c, d @ 0..0x80, ..] => {
                found.grows += imm32([a, b, c, d]);
                7
            }
            // mov %rbp,offset(%rsp)
            [0x48, 0x89, 0x6c, 0x24, ..] => {
                found.saves_fp = true;
                5
            }
            [0x48, 0x89, 0xac, 0x24, ..] => {
                found.saves_fp = true;
                8
            }
            // mov %eax,offset(%rsp): is there stack enough?
            [0x89, 0x84, 0x24, ..] => 7,
            // mov %rsp,%rbp; lea offset(%rsp),%rbp
            [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => 3,
            [0x48, 0x8d, 0x6c, 0x24, ..] => 5,
            [0x48, 0x8d, 0xac, 0x24, ..] => 8,
            // cmpl $imm,offset(%r15): may the method be entered? Then a jump, or a call that comes back.
            [0x41, 0x81, 0x7f, ..] => 8,
            [0x41, 0x81, 0xbf, ..] => 11,
            [0x0f, 0x80..=0x8f, ..] => 6,
            [0x70..=0x7f, ..] => 2,
            [0xe8, ..] => 5,
            _ => idle(rest)?,
        };
        rest = rest.get(len..)?;
    }
    None
}

/// What the instructions at the beginning of `code` do until they return.
pub(crate) fn leaving(code: &[u8]) -> Option<Leaving> {
    let (mut rest, mut moved, mut fp_at, mut is_poll) = (code, 0, None, false);
    for _ in 0..MOST {
        let len = match *rest {
            // ret
            [0xc3, ..] | [0xf3, 0xc3, ..] => return Some(Leaving { return_at: moved, fp_at }),
            // jmp, behind what a poll does that stops the thread once its frame is gone
            [0xe9, ..] if is_poll => return Some(Leaving { return_at: moved, fp_at }),
            // add $imm,%rsp
            [0x48, 0x83, 0xc4, by @ 0..0x80, ..] => {
                moved += imm8(by);
                4
            }
            [0x48, 0x81, 0xc4, a, b, c, d @ 0..0x80, ..] => {
                moved += imm32([a, b, c, d]);
                7
            }
            // pop %rbp
            [0x5d, ..] => {
                fp_at = Some(moved);
                moved += 8;
                1
            }
            // cmp offset(%r15),%rsp; ja
            [0x49, 0x3b, 0xa7, ..] => 7,
            [0x49, 0x3b, 0x67, ..] => 4,
            [0x0f, 0x87, ..] => 6,
            // lea offset(%rip),%r10; mov %r10,offset(%r15)
            [0x4c, 0x8d, 0x15, ..] => {
                is_poll = true;
                7
            }
            [0x4d, 0x89, 0x97, ..] => {
                is_poll = true;
                7
            }
            // vzeroupper
            [0xc5, 0xf8, 0x77, ..] => 3,
            _ => return None,
        };
        rest = rest.get(len..)?;
    }
    None
}

/// Where the call leads that ends `before`, the code before the return address `at`; `None` for one through
/// a register whose value is not in plain sight, or memory.
pub(crate) fn called(before: &[u8], at: u64) -> Option<u64> {
    if let [.., 0xe8, a, b, c, d] = *before {
        return Some(at.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()));
    }
    // mov $imm,%r10; call *%r10
    if let [.., 0x49, 0xba, a, b, c, d, e, f, g, h, 0x41, 0xff, 0xd2] = *before {
        return Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
    None
}

/// How an entry of the interpreter makes its frame.
///
/// ```text
///   0   ...                              the return address is at the stack pointer
///   a   pop %rax                         it is in rax; room for locals is made
///   b   push %rax; push %rbp; mov %rsp,%rbp; push %r13; push $0; ...; push %rbx
///   c                                    the frame names its method
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MakesFrame {
    /// Behind `pop %rax`.
    pub(crate) popped: usize,
    /// At `push %rax`.
    pub(crate) pushes: usize,
    /// Behind `push %rbx`.
    pub(crate) named: usize,
}

impl MakesFrame {
    /// That of an entry; `None` for one that makes none.
    pub(crate) fn of(code: &[u8]) -> Option<MakesFrame> {
        // push %rax; push %rbp; mov %rsp,%rbp; push %r13
        let find = |what: &[u8]| code.windows(what.len()).position(|bytes| bytes == what);
        let pushes = find(&[0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55])
            .or_else(|| find(&[0x50, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x55]))?;
        // pop %rax; lea -8(%rsp,%rcx,8),%r14
        let popped = find(&[0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8])? + 1;
        let behind = code.get(pushes + 7..)?;
        let named = pushes + 7 + behind.iter().take(32).position(|byte| *byte == 0x53)? + 1;
        (popped <= pushes).then_some(MakesFrame { popped, pushes, named })
    }
}

/// How far a thread is that leaves an interpreted frame: `leave; pop REGISTER; mov %rbx,%rsp; jmp *REGISTER`,
/// with a look at its thread before the jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The return address is on top of the stack.
    Left,
    /// It is in that register.
    Popped(u8),
}

impl Ending {
    /// More bytes than that takes.
    const LONGEST: usize = 40;

    /// Whether a thread is there, by the code and the position of its instruction in that.
    pub(crate) fn of(code: &[u8], at: usize) -> Option<Ending> {
        let from = at.saturating_sub(Ending::LONGEST);
        let before = code.get(from..at)?.iter().enumerate();
        let mut starts = before.filter(|(_, byte)| **byte == 0xc9).rev();
        starts.find_map(|(start, _)| {
            let start = from + start + 1;
            Ending::since(code.get(start..)?, at - start)
        })
    }

    /// This many bytes behind `leave`.
    fn since(code: &[u8], done: usize) -> Option<Ending> {
        // Numbers of registers in instructions, as DWARF's.
        const REGISTERS: [u8; 8] = [RAX, 2, 1, RBX, SP, FP, 4, 5];
        let (register, len) = match *code {
            [0x41, byte @ 0x58..=0x5f, 0x48, 0x8b, 0xe3, ..] => (byte - 0x58 + 8, 2),
            [byte @ 0x58..=0x5f, 0x48, 0x8b, 0xe3, ..] => {
                (*REGISTERS.get(usize::from(byte - 0x58))?, 1)
            }
            _ => return None,
        };
        if done == 0 {
            return Some(Ending::Left);
        }
        let mut rest = code.get(len..done)?;
        while !rest.is_empty() {
            let len = match *rest {
                // mov %rbx,%rsp; cmp offset(%r15),%rsp; jb; movq $imm,offset(%r15)
                [0x48, 0x8b, 0xe3, ..] => 3,
                [0x49, 0x3b, 0xa7, ..] => 7,
                [0x72, ..] => 2,
                [0x49, 0xc7, 0x87, ..] => 11,
                _ => return None,
            };
            rest = rest.get(len..)?;
        }
        Some(Ending::Popped(register))
    }
}

/// How an adapter goes from compiled code to the interpreter.
///
/// ```text
///   ...                                  the return address is at the stack pointer
///   a   mov %rsp,%r13; ...; call         it asks whether the method is compiled by now: it is at %r13
///   b   pop %rax; mov %rsp,%r13; ...     it is in rax, and the caller's stack pointer in %r13
///   push %rax; jmp                       the same
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToInterpreter {
    /// Behind `mov %rsp,%r13`.
    pub(crate) asks: usize,
    /// At `pop %rax`.
    pub(crate) pops: usize,
}

impl ToInterpreter {
    /// More bytes than an adapter takes: of 255 arguments some 10 KiB.
    const LONGEST: usize = 64 << 10;

    /// That of an adapter.
    pub(crate) fn of(code: &[u8]) -> Option<ToInterpreter> {
        let code = &code[..code.len().min(ToInterpreter::LONGEST)];
        let find = |what: &[u8]| code.windows(what.len()).position(|bytes| bytes == what);
        // mov %rsp,%r13; mov (%rsp),%rax
        let asks = find(&[0x4c, 0x8b, 0xec, 0x48, 0x8b, 0x04, 0x24])? + 3;
        // pop %rax; mov %rsp,%r13, or since Java 21 lea 8(%rsp),%r13; pop %rax
        let pops = find(&[0x58, 0x4c, 0x8b, 0xec])
            .or_else(|| Some(find(&[0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58])? + 5))?;
        (asks < pops).then_some(ToInterpreter { asks, pops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push %rbp; sub $0x20,%rsp behind a look at the stack, as C2 makes it.
    const ENTRY: [u8; 12] =
        [0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20];

    #[test]
    fn what_is_left_of_an_entry_is_summed_up() {
        let cases = [
            (0, Some(Entering { grows: 0x28, saves_fp: true })),
            (7, Some(Entering { grows: 0x28, saves_fp: true })),
            (8, Some(Entering { grows: 0x20, saves_fp: false })),
            (12, Some(Entering::default())),
            (3, None),
        ];
        for (from, expect) in cases {
            assert_eq!(entering(&ENTRY[from..]), expect, "{from}");
        }
        // sub $0x18,%rsp; mov %rbp,0x10(%rsp)
        let other = [0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10];
        assert_eq!(entering(&other), Some(Entering { grows: 0x18, saves_fp: true }));
        assert_eq!(entering(&other[4..]), Some(Entering { grows: 0, saves_fp: true }));
        // An instruction that ends beyond it.
        assert_eq!(entering(&other[..6]), None);
    }

    #[test]
    fn what_is_left_until_the_return_is_summed_up() {
        // add $0x20,%rsp; pop %rbp; cmp 0x348(%r15),%rsp; ja; ret
        let code = [
            0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x48, 0x03, 0, 0, 0x0f, 0x87, 1, 2, 3,
            4, 0xc3,
        ];
        let cases = [
            (0, Some(Leaving { return_at: 0x28, fp_at: Some(0x20) })),
            (4, Some(Leaving { return_at: 8, fp_at: Some(0) })),
            (5, Some(Leaving { return_at: 0, fp_at: None })),
            (18, Some(Leaving { return_at: 0, fp_at: None })),
            (1, None),
        ];
        for (from, expect) in cases {
            assert_eq!(leaving(&code[from..]), expect, "{from}");
        }
        assert_eq!(leaving(&code[..18]), None);
        // The same of a thread that is stopped there; a jump otherwise says nothing.
        let poll = [0x4c, 0x8d, 0x15, 1, 2, 3, 4, 0x4d, 0x89, 0x97, 1, 2, 3, 4, 0xe9, 1, 2, 3, 4];
        assert_eq!(leaving(&poll), Some(Leaving::default()));
        assert_eq!(leaving(&poll[14..]), None);
    }

    #[test]
    fn calls_say_where_they_lead() {
        assert_eq!(called(&[0xe8, 0xfb, 0xff, 0xff, 0xff], 0x1000), Some(0xffb));
        let far = [0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xd2];
        assert_eq!(called(&far, 0x1000), Some(0x0807_0605_0403_0201));
        assert_eq!(called(&[0xff, 0xd0], 0x1000), None);
    }

    #[test]
    fn a_frame_of_the_interpreter_that_is_left_has_its_return_address_somewhere() {
        // leave; pop %r13; mov %rbx,%rsp; jmp *%r13
        let code = [0x90, 0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5];
        let cases = [
            (1, None),
            (2, Some(Ending::Left)),
            (4, Some(Ending::Popped(13))),
            (7, Some(Ending::Popped(13))),
            (5, None),
            (8, None),
        ];
        for (at, expect) in cases {
            assert_eq!(Ending::of(&code, at), expect, "{at}");
        }
        // xor %ecx,%ecx; ...
        assert_eq!(Ending::of(&[0x33, 0xc9, 0x41, 0x5d, 0x90, 0x90], 2), None);
        // Of Java 21, with a look at the thread and %rsi.
        let mut code =
            vec![0xc9, 0x5e, 0x48, 0x8b, 0xe3, 0x49, 0x3b, 0xa7, 0x38, 5, 0, 0, 0x72, 11];
        assert_eq!(Ending::of(&code, code.len()), Some(Ending::Popped(4)));
        code.extend([0x49, 0xc7, 0x87, 0x38, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Ending::of(&code, code.len()), Some(Ending::Popped(4)));
    }

    #[test]
    fn an_adapter_keeps_the_return_address_in_three_places() {
        let mut code = vec![0x90; 3];
        code.extend([0x4c, 0x8b, 0xec, 0x48, 0x8b, 0x04, 0x24, 0x90, 0x90]);
        code.extend([0x58, 0x4c, 0x8b, 0xec, 0x90, 0x50]);
        assert_eq!(ToInterpreter::of(&code), Some(ToInterpreter { asks: 6, pops: 12 }));
        assert_eq!(ToInterpreter::of(&code[6..]), None);
        let mut code = vec![0x4c, 0x8b, 0xec, 0x48, 0x8b, 0x04, 0x24, 0x49, 0x8b, 0xe5];
        code.extend([0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58, 0x48, 0x83, 0xec, 0x60, 0x50]);
        assert_eq!(ToInterpreter::of(&code), Some(ToInterpreter { asks: 3, pops: 15 }));
    }

    #[test]
    fn an_entry_of_the_interpreter_makes_its_frame_in_steps() {
        let mut code = vec![0x90; 4];
        code.extend([0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8, 0x90]);
        code.extend([0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55, 0x6a, 0x00]);
        code.extend([0x4c, 0x8b, 0x6b, 0x08, 0x4d, 0x8d, 0x6d, 0x30, 0x53, 0x90]);
        let expect = MakesFrame { popped: 5, pushes: 11, named: 29 };
        assert_eq!(MakesFrame::of(&code), Some(expect));
        assert_eq!(MakesFrame::of(&code[..11]), None);
    }
}
