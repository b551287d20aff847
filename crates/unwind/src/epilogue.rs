//! Code that leaves its function right behind a call: what it does to the stack says where the
//! caller's frame is.
//!
//! Small pieces of generated code, such as the trampolines through which CPython calls each function
//! with `-X perf`, have neither tables nor, on many builds, frame pointers. They do end in plain sight:
//! `call *%rcx; add $8,%rsp; ret`. When the call returns, exactly that runs, so this is not a guess.

use crate::arch::Architecture;
use crate::row::{SHORT_ROW_SAVES, ShortRow};

/// The most instructions between a call and the return.
const MAX_INSTRUCTIONS: usize = 12;

/// The largest frame that is believed, in bytes.
const MAX_FRAME: i64 = 1 << 20;

/// How a function is left from behind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epilogue {
    pub(crate) row: ShortRow,
}

/// What instructions have done to the stack.
struct Effect {
    /// By how much the stack pointer has moved, in bytes.
    moved: i64,
    /// Registers that were restored, and from where, in bytes from the stack pointer at the start.
    restored: Vec<(u8, i64)>,
}

/// What one instruction does.
enum Does {
    /// Moves the stack pointer.
    Moves(i64),
    /// Takes a register from the stack.
    Pops(u8),
    /// Takes the frame pointer and the return address from the stack, then moves the stack pointer.
    PopsFrame(i64),
    /// Nothing that matters.
    Nothing,
    Returns,
}

impl Epilogue {
    /// How many bytes before and behind a return address are worth looking at.
    pub const BEFORE: usize = 8;
    /// See [`Epilogue::BEFORE`].
    pub const BEHIND: usize = 40;

    /// What the code at a return address does, if a call stands before it and nothing but the end of
    /// its function behind it.
    pub fn decode(architecture: Architecture, before: &[u8], at: &[u8]) -> Option<Epilogue> {
        let facts = architecture.facts();
        if !(facts.ends_with_call)(before) {
            return None;
        }
        let next = match architecture {
            Architecture::X86_64 => next_x86_64,
            Architecture::Aarch64 => next_aarch64,
        };
        let mut effect = Effect { moved: 0, restored: Vec::new() };
        let mut rest = at;
        for _ in 0..MAX_INSTRUCTIONS {
            let (does, len) = next(rest)?;
            rest = rest.get(len..)?;
            match does {
                Does::Nothing => {}
                Does::Moves(by) => effect.moved += by,
                Does::Pops(register) => {
                    effect.restored.push((register, effect.moved));
                    effect.moved += 8;
                }
                Does::PopsFrame(by) => {
                    effect.restored.push((facts.frame_pointer, effect.moved));
                    effect.restored.push((facts.return_address, effect.moved + 8));
                    effect.moved += by;
                }
                Does::Returns => return effect.row(architecture),
            }
        }
        None
    }
}

impl Effect {
    fn row(mut self, architecture: Architecture) -> Option<Epilogue> {
        let facts = architecture.facts();
        if architecture == Architecture::X86_64 {
            self.restored.push((facts.return_address, self.moved));
            self.moved += 8;
        }
        let is_given = self.restored.iter().any(|(register, _)| *register == facts.return_address);
        if !is_given || !(8..=MAX_FRAME).contains(&self.moved) {
            return None;
        }
        let mut row = ShortRow {
            cfa_register: facts.stack_pointer,
            saves: 0,
            cfa_offset: i32::try_from(self.moved).ok()?,
            saved: [0; SHORT_ROW_SAVES],
            word_offsets: [0; SHORT_ROW_SAVES],
        };
        for (register, at) in self.restored {
            let below = at - self.moved;
            let index = usize::from(row.saves);
            *row.saved.get_mut(index)? = register;
            *row.word_offsets.get_mut(index)? =
                i16::try_from(below / 8).ok().filter(|_| below % 8 == 0)?;
            row.saves += 1;
        }
        Some(Epilogue { row })
    }
}

/// The numbers that instructions have for registers, as DWARF's.
const X86_64_REGISTERS: [u8; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The stack pointer by its number in instructions.
const X86_64_SP: u8 = 4;

fn next_x86_64(code: &[u8]) -> Option<(Does, usize)> {
    let register = |number: u8| X86_64_REGISTERS.get(usize::from(number)).copied();
    Some(match *code {
        // add $imm8,%rsp; add $imm32,%rsp
        [0x48, 0x83, 0xc4, by, ..] => (Does::Moves(by.cast_signed().into()), 4),
        [0x48, 0x81, 0xc4, a, b, c, d, ..] => {
            (Does::Moves(i32::from_le_bytes([a, b, c, d]).into()), 7)
        }
        // pop
        [0x41, byte @ 0x58..=0x5f, ..] => (Does::Pops(register(byte - 0x58 + 8)?), 2),
        [byte @ 0x58..=0x5f, ..] if byte - 0x58 != X86_64_SP => {
            (Does::Pops(register(byte - 0x58)?), 1)
        }
        // vzeroupper
        [0xc5, 0xf8, 0x77, ..] => (Does::Nothing, 3),
        // ret; repz ret
        [0xc3, ..] => (Does::Returns, 1),
        [0xf3, 0xc3, ..] => (Does::Returns, 2),
        _ => return None,
    })
}

fn next_aarch64(code: &[u8]) -> Option<(Does, usize)> {
    let word = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    let does = match word {
        // ldp x29, x30, [sp], #imm: seven bits of words, signed.
        word if word & 0xffc0_7fff == 0xa8c0_7bfd => {
            let words = (word << 10).cast_signed() >> 25;
            Does::PopsFrame(i64::from(words) * 8)
        }
        // add sp, sp, #imm
        word if word & 0xffc0_03ff == 0x9100_03ff => Does::Moves(i64::from((word >> 10) & 0xfff)),
        // autiasp, autibsp
        0xd503_23bf | 0xd503_23ff => Does::Nothing,
        0xd65f_03c0 => Does::Returns,
        _ => return None,
    };
    Some((does, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: [u8; 2] = [0xff, 0xd1];

    /// The offset of the CFA from the stack pointer, and what is saved where, in words from it.
    #[track_caller]
    fn check(architecture: Architecture, before: &[u8], at: &[u8], expect: &[(i32, &[(u8, i16)])]) {
        let found = Epilogue::decode(architecture, before, at).map(|found| found.row);
        let found: Vec<(i32, Vec<(u8, i16)>)> = found
            .into_iter()
            .map(|row| {
                let saved = row.saved.into_iter().zip(row.word_offsets);
                (row.cfa_offset, saved.take(row.saves.into()).collect())
            })
            .collect();
        let expect: Vec<(i32, Vec<(u8, i16)>)> =
            expect.iter().map(|(cfa, saved)| (*cfa, saved.to_vec())).collect();
        assert_eq!(found, expect, "{at:02x?}");
    }

    #[test]
    fn the_end_of_a_function_says_where_its_return_address_is() {
        let x86 = |at: &[u8], expect: &[(i32, &[(u8, i16)])]| {
            check(Architecture::X86_64, &CALL, at, expect);
        };
        // CPython's trampolines: add $8,%rsp; ret, and with frame pointers pop %rbp; ret.
        x86(&[0x48, 0x83, 0xc4, 8, 0xc3], &[(16, &[(16, -1)])]);
        x86(&[0x5d, 0xc3], &[(16, &[(6, -2), (16, -1)])]);
        // add $0x100,%rsp; pop %rbx; pop %r12; repz ret
        let long = [0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5b, 0x41, 0x5c, 0xf3, 0xc3];
        x86(&long, &[(0x118, &[(3, -3), (12, -2), (16, -1)])]);
        x86(&[0xc3], &[(8, &[(16, -1)])]);
        // vzeroupper; add $8,%rsp; ret
        x86(&[0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 8, 0xc3], &[(16, &[(16, -1)])]);
        for len in 0..long.len() - 1 {
            x86(&long[..len], &[]);
        }
        // Anything else in between: mov %rax,%rdi; pop %rsp; sub by add of a negative number.
        x86(&[0x48, 0x89, 0xc7, 0xc3], &[]);
        x86(&[0x5c, 0xc3], &[]);
        x86(&[0x48, 0x83, 0xc4, 0xf0, 0xc3], &[]);
        check(Architecture::X86_64, &[0x90, 0x90], &[0xc3], &[]);
    }

    #[test]
    fn the_pair_of_arm64_is_taken_from_the_stack() {
        let code = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let check = |at: &[u32], expect: &[(i32, &[(u8, i16)])]| {
            check(Architecture::Aarch64, &code(&[0xd63f_0060]), &code(at), expect);
        };
        // ldp x29, x30, [sp], #16; ret
        check(&[0xa8c1_7bfd, 0xd65f_03c0], &[(16, &[(29, -2), (30, -1)])]);
        // add sp, sp, #32; ldp x29, x30, [sp], #48; autiasp; ret
        let long = [0x9100_83ff, 0xa8c3_7bfd, 0xd503_23bf, 0xd65f_03c0];
        check(&long, &[(80, &[(29, -6), (30, -5)])]);
        check(&[0xd65f_03c0], &[]);
        check(&[0xa8c1_7bfd], &[]);
    }
}
