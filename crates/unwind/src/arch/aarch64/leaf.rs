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
mod tests;
