//! Turns the code at the entry point of a program into the places of `_start` and `main`, which
//! every program has that starts by way of the GNU C library, and which lose their names first.
//!
//! The entry code hands `main` to `__libc_start_main` as its first argument, so the instruction that
//! does so says where it is. Only that code is recognised, and only on x86-64: elsewhere nothing is
//! found.
//!
//! Sources: psABI of x86-64, chapter 3.4 "Process Initialization"; what GCC and Clang link as
//! `crt1.o`, disassembled.

use flame_profile::ImageAddress;
use object::{Architecture, Object};

use crate::image::ImageFile;

/// How many bytes of the entry code are looked at; it has 34 to 44.
const MAX_LEN: usize = 64;

/// endbr64, where the program may be checked for indirect jumps.
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; mov %rsp,%rdx; and $-16,%rsp; push %rax; push %rsp
const HEAD: &[u8] =
    &[0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54];

/// What may stand before the argument, and how long it is: the two further ones, which are zero
/// since glibc 2.34 (xor) and were addresses before (lea, mov).
const OTHERS: [(&[u8], usize); 6] = [
    (&[0x45, 0x31, 0xc0], 3),
    (&[0x31, 0xc9], 2),
    (&[0x4c, 0x8d, 0x05], 7),
    (&[0x48, 0x8d, 0x0d], 7),
    (&[0x49, 0xc7, 0xc0], 7),
    (&[0x48, 0xc7, 0xc1], 7),
];

/// call *slot(%rip); addr32 call; call.
const CALLS: [&[u8]; 3] = [&[0xff, 0x15], &[0x67, 0xe8], &[0xe8]];

/// Where `main` is, if the program starts as programs of the GNU C library do. Its `_start` is the
/// entry point then.
pub(crate) fn main_function(image: &ImageFile) -> Option<ImageAddress> {
    if image.elf()?.architecture() != Architecture::X86_64 {
        return None;
    }
    let entry = image.entry();
    let code = image.loaded_from(entry)?.bytes;
    main_argument(&code[..code.len().min(MAX_LEN)], entry.0).map(ImageAddress)
}

/// The address that the code puts into %rdi for its call.
fn main_argument(code: &[u8], address: u64) -> Option<u64> {
    let mut rest = code.strip_prefix(ENDBR64).unwrap_or(code).strip_prefix(HEAD)?;
    while let Some((_, len)) = OTHERS.iter().find(|(other, _)| rest.starts_with(other)) {
        rest = rest.get(*len..)?;
    }
    let (instruction, rest) = rest.split_at_checked(7)?;
    let (operation, value) = instruction.split_first_chunk::<3>()?;
    let value = i64::from(i32::from_le_bytes(value.try_into().ok()?));
    let next = address.checked_add((code.len() - rest.len()) as u64)?;
    CALLS.iter().any(|call| rest.starts_with(call)).then_some(())?;
    match operation {
        // lea value(%rip),%rdi
        [0x48, 0x8d, 0x3d] => next.checked_add_signed(value),
        // mov $value,%rdi
        [0x48, 0xc7, 0xc7] => u64::try_from(value).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_start` of a program of Debian 12, at 2c50; `main` is at 2680.
    const START: [u8; 34] = [
        0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54,
        0x45, 0x31, 0xc0, 0x31, 0xc9, 0x48, 0x8d, 0x3d, 0x15, 0xfa, 0xff, 0xff, 0xff, 0x15, 0x57,
        0xc3, 0x00, 0x00, 0xf4,
    ];

    #[test]
    fn the_argument_of_the_entry_code_is_main() {
        assert_eq!(main_argument(&START, 0x2c50), Some(0x2680));
        let with_check = [ENDBR64, &START].concat();
        assert_eq!(main_argument(&with_check, 0x2c50), Some(0x2684));
        for len in 0..29 {
            assert_eq!(main_argument(&START[..len], 0x2c50), None, "{len}");
        }
        // Code that does something else, and calls nothing.
        for (at, byte) in [(0, 0x33), (22, 0x35), (27, 0x90)] {
            let mut other = START;
            other[at] = byte;
            assert_eq!(main_argument(&other, 0x2c50), None, "{at}");
        }
        assert_eq!(main_argument(&START, 0), None, "before the first address");
    }
}
