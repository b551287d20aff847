//! Bytes of code of x86-64 into instructions: how long each is, and which operation it is.
//!
//! What instructions do is told by who asks. Those that compilers make for 64-bit programs are covered, vector code up to
//! AVX-512 among them; what no 64-bit program has is refused. Source: Intel SDM, volume 2, appendix A.

/// Where an operation code is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    /// The operation code stands alone.
    One,
    /// It stands behind 0f, or in the map that a VEX or EVEX prefix names so.
    Two,
    /// Behind 0f 38.
    Three8,
    /// Behind 0f 3a: with a byte as operand.
    Three3a,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) map: Map,
    pub(crate) code: u8,
    /// The prefix that widens operands and numbers registers from 8 on; 0 without.
    pub(crate) rex: u8,
    /// The byte that names operands, where there is one.
    pub(crate) mod_rm: Option<u8>,
    /// In bytes.
    pub(crate) len: usize,
}

/// What stands in front of the operation code.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    len: usize,
    rex: u8,
    has_66: bool,
}

impl Instruction {
    /// The instruction that the bytes begin with; `None` if there is not all of one, or none that is known.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Instruction> {
        let prefixes = prefixes(bytes);
        let rest = bytes.get(prefixes.len..)?;
        let (map, code, code_len) = operation(rest)?;
        let is_vector = matches!(rest.first()?, 0xc4 | 0xc5 | 0x62);
        let operands = rest.get(code_len..)?;
        let mod_rm =
            if has_mod_rm(map, code, is_vector)? { Some(*operands.first()?) } else { None };
        let place_len = mod_rm.map_or(Some(0), |byte| mod_rm_len(byte, operands))?;
        // Vector operations of old AMD processors begin like pop.
        if map == Map::One && code == 0x8f && mod_rm.is_some_and(|byte| byte >> 3 & 7 != 0) {
            return None;
        }
        let constant = constant_len(map, code, mod_rm.unwrap_or(0), prefixes);
        let len = prefixes.len + code_len + place_len + constant;
        let is_whole = len <= bytes.len();
        is_whole.then_some(Instruction { map, code, rex: prefixes.rex, mod_rm, len })
    }

    /// Which of a group of operations it is, where a part of the operands' byte says so.
    pub(crate) fn group(&self) -> Option<u8> {
        self.mod_rm.map(|byte| byte >> 3 & 7)
    }
}

fn prefixes(bytes: &[u8]) -> Prefixes {
    let mut prefixes = Prefixes::default();
    for byte in bytes {
        match byte {
            0x66 => prefixes.has_66 = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67 | 0xf0 | 0xf2 | 0xf3 => {}
            0x40..=0x4f => {
                // The last of them, or it does not count.
                prefixes.rex = *byte;
                prefixes.len += 1;
                break;
            }
            _ => break,
        }
        prefixes.len += 1;
    }
    prefixes
}

/// The map, the operation code, and how long both are.
fn operation(bytes: &[u8]) -> Option<(Map, u8, usize)> {
    let map = |number: u8| match number {
        1 => Some(Map::Two),
        2 => Some(Map::Three8),
        3 => Some(Map::Three3a),
        _ => None,
    };
    Some(match *bytes {
        [0x0f, 0x38, code, ..] => (Map::Three8, code, 3),
        [0x0f, 0x3a, code, ..] => (Map::Three3a, code, 3),
        [0x0f, code, ..] => (Map::Two, code, 2),
        [0xc5, _, code, ..] => (Map::Two, code, 3),
        [0xc4, first, _, code, ..] => (map(first & 0x1f)?, code, 4),
        [0x62, first, _, _, code, ..] => (map(first & 7)?, code, 5),
        [0x0f | 0x62 | 0xc4 | 0xc5, ..] => return None,
        [code, ..] => (Map::One, code, 1),
        [] => return None,
    })
}

/// Whether a byte that names operands follows; `None` for what is not known.
fn has_mod_rm(map: Map, code: u8, is_vector: bool) -> Option<bool> {
    match (map, code) {
        (Map::Three8 | Map::Three3a, _) => Some(true),
        // emms, vzeroupper
        (Map::Two, 0x77) => Some(false),
        (Map::Two, _) if is_vector => Some(true),
        // syscall and its kind, ud2, rdtsc and its kind, jumps, cpuid, bswap.
        (Map::Two, 0x05..=0x0b | 0x30..=0x37 | 0x80..=0x8f | 0xa2 | 0xc8..=0xcf) => Some(false),
        // Pushes and pops of segments, and what is not there.
        (Map::Two, 0x04 | 0x0c | 0x0e | 0x0f | 0xa0 | 0xa1 | 0xa8 | 0xa9) => None,
        (Map::Two, _) => Some(true),
        // Not there in 64 bits.
        (Map::One, 0x00..=0x3f) if code & 7 > 5 => None,
        (Map::One, 0x60..=0x62 | 0x82 | 0x9a | 0xce | 0xd4..=0xd6 | 0xea) => None,
        (Map::One, 0x00..=0x3f) => Some(code & 7 < 4),
        (Map::One, 0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7) => Some(true),
        (Map::One, 0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff) => Some(true),
        (Map::One, _) => Some(false),
    }
}

/// How long the operands' byte is with what follows for an address in memory.
fn mod_rm_len(byte: u8, operands: &[u8]) -> Option<usize> {
    let (form, base) = (byte >> 6, byte & 7);
    if form == 3 {
        return Some(1);
    }
    let has_index = base == 4;
    let base = if has_index { operands.get(1)? & 7 } else { base };
    let distance = match (form, base) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    Some(1 + usize::from(has_index) + distance)
}

/// How long the constant at an instruction's end is.
fn constant_len(map: Map, code: u8, mod_rm: u8, prefixes: Prefixes) -> usize {
    let is_wide = prefixes.rex & 8 != 0;
    let word = if prefixes.has_66 && !is_wide { 2 } else { 4 };
    // test is the only one of its group that has a constant.
    let is_test = mod_rm >> 3 & 7 < 2;
    match (map, code) {
        (Map::Three3a, _) => 1,
        (Map::Two, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6) => 1,
        (Map::Two, 0x80..=0x8f) => 4,
        (Map::One, 0x00..=0x3f) if code & 7 == 4 => 1,
        (Map::One, 0x00..=0x3f) if code & 7 == 5 => word,
        (Map::One, 0x6a | 0x6b | 0x70..=0x80 | 0x83 | 0xa8 | 0xb0..=0xb7) => 1,
        (Map::One, 0xc0 | 0xc1 | 0xc6 | 0xcd | 0xe0..=0xe7 | 0xeb) => 1,
        (Map::One, 0x68 | 0x69 | 0x81 | 0xa9 | 0xc7) => word,
        (Map::One, 0xb8..=0xbf) if is_wide => 8,
        (Map::One, 0xb8..=0xbf) => word,
        (Map::One, 0xe8 | 0xe9) => 4,
        (Map::One, 0xa0..=0xa3) => 8,
        (Map::One, 0xc2 | 0xca) => 2,
        (Map::One, 0xc8) => 3,
        (Map::One, 0xf6) if is_test => 1,
        (Map::One, 0xf7) if is_test => word,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the length of an instruction, with other bytes behind it, and of none of its beginnings.
    #[track_caller]
    fn check(bytes: &[u8]) {
        let len = |bytes: &[u8]| Instruction::decode(bytes).map(|instruction| instruction.len);
        assert_eq!(len(&[bytes, &[0x90; 15]].concat()), Some(bytes.len()), "{bytes:02x?}");
        for short in 0..bytes.len() {
            assert_eq!(len(&bytes[..short]), None, "{:02x?}", &bytes[..short]);
        }
    }

    #[test]
    fn instructions_have_their_lengths() {
        check(&[0x90]);
        check(&[0xf3, 0x0f, 0x1e, 0xfa]); // endbr64
        check(&[0x48, 0x89, 0xe5]); // mov %rsp,%rbp
        check(&[0x48, 0x81, 0xec, 0x28, 0x20, 0, 0]); // sub $0x2028,%rsp
        check(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]); // mov %fs:0x28,%rax
        check(&[0x48, 0x83, 0x0c, 0x24, 0]); // orq $0,(%rsp)
        check(&[0x83, 0x3d, 0x34, 0x2d, 0, 0, 5]); // cmpl $5,0x2d34(%rip)
        check(&[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8]); // movabs
        check(&[0x66, 0xb8, 1, 2]); // mov $0x201,%ax
        check(&[0xb8, 1, 2, 3, 4]);
        check(&[0x4c, 0x69, 0x6d, 0xd0, 0, 0xca, 0x9a, 0x3b]); // imul $0x3b9aca00,-0x30(%rbp),%r13
        check(&[0x48, 0x63, 0x04, 0x82]); // movslq (%rdx,%rax,4),%rax
        check(&[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]); // nopw 0(%rax,%rax,1)
        check(&[0xf2, 0x48, 0x0f, 0x2a, 0xc7]); // cvtsi2sd %rdi,%xmm0
        check(&[0x0f, 0x29, 0x45, 0xe0]); // movaps %xmm0,-0x20(%rbp)
        check(&[0x66, 0x0f, 0x70, 0xc0, 0xe0]); // pshufd $0xe0,%xmm0,%xmm0
        check(&[0x66, 0x0f, 0x38, 0x00, 0xc1]); // pshufb %xmm1,%xmm0
        check(&[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8]); // palignr $8,%xmm1,%xmm0
        check(&[0xc5, 0xf8, 0x77]); // vzeroupper
        check(&[0xc5, 0xfd, 0x70, 0x45, 0xe0, 0xe0]); // vpshufd $0xe0,-0x20(%rbp),%ymm0
        check(&[0xc4, 0xe2, 0x7d, 0x18, 0x05, 1, 2, 3, 4]); // vbroadcastss 0x4030201(%rip),%ymm0
        check(&[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1]); // vmovaps %zmm1,%zmm0
        check(&[0xf6, 0x43, 0x08, 1]); // testb $1,8(%rbx)
        check(&[0xf7, 0xc7, 1, 2, 3, 4]); // test $0x4030201,%edi
        check(&[0x48, 0xf7, 0xe1]); // mul %rcx
        check(&[0x0f, 0x05]); // syscall
        check(&[0x0f, 0x87, 1, 2, 3, 4]); // ja
        check(&[0xff, 0x14, 0xcd, 1, 0, 0, 0]); // call *1(,%rcx,8)
        check(&[0xf0, 0x0f, 0xb1, 0x17]); // lock cmpxchg %edx,(%rdi)
    }

    #[test]
    fn what_64_bits_do_not_have_is_refused() {
        for byte in [0x06, 0x27, 0x60, 0x9a, 0xd5, 0xea] {
            assert_eq!(Instruction::decode(&[byte; 15]), None, "{byte:02x}");
        }
    }
}
