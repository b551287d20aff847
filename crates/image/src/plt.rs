//! Turns the stubs of the procedure linkage table into the functions that they jump to.
//!
//! A stub loads an address from the global offset table and jumps there; a relocation says which
//! function's address the loader puts into that slot. Reading the instruction instead of counting
//! stubs makes one rule do for `.plt`, `.plt.sec` and `.plt.got`, in whatever order linkers put
//! them.
//!
//! Sources: psABI of x86-64, chapter 5.2; Arm's instruction set manual, ADRP and LDR.

use object::elf;
use object::read::elf::{ElfFile, FileHeader, Sym};
use object::{Architecture, Object, ObjectSection, RelocationTarget};
use rustc_hash::FxHashMap;

/// Length of a stub in bytes, and its alignment, on both architectures. `.plt.got` may have stubs
/// of half that length.
const STUB_LEN: u8 = 16;

/// A stub: where it is and which function it jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    /// First image address.
    pub(crate) address: u64,
    /// In bytes.
    pub(crate) len: u64,
    /// Where the function's name is in the dynamic string table.
    pub(crate) name: u32,
}

/// The stubs of an image, in the order of their sections; none on other architectures than x86-64
/// and AArch64.
pub(crate) fn stubs<E: FileHeader>(elf: &ElfFile<'_, E>) -> Vec<Stub> {
    let slot_of = match elf.architecture() {
        Architecture::X86_64 => x86_64_slot,
        Architecture::Aarch64 => aarch64_slot,
        _ => return Vec::new(),
    };
    let functions = functions_by_slot(elf);
    let mut stubs = Vec::new();
    for name in [".plt", ".plt.sec", ".plt.got"] {
        let Some(section) = elf.section_by_name(name) else { continue };
        let Ok(code) = section.data() else { continue };
        let len = if name == ".plt.got" && section.align() == 8 { STUB_LEN / 2 } else { STUB_LEN };
        for (stub, start) in code.chunks_exact(len.into()).zip((0_u64..).step_by(len.into())) {
            let Some(address) = section.address().checked_add(start) else { break };
            let slot = slot_of(stub, address);
            if let Some(name) = slot.and_then(|slot| functions.get(&slot)) {
                stubs.push(Stub { address, len: len.into(), name: *name });
            }
        }
    }
    stubs
}

/// The address and length of the head of `.plt`: the code that all stubs share which call the loader
/// to look up their function. `None` where `.plt` has none, as where functions are looked up at once.
pub(crate) fn head<E: FileHeader>(elf: &ElfFile<'_, E>) -> Option<(u64, u64)> {
    let section = elf.section_by_name(".plt")?;
    let len = head_len(elf.architecture(), section.data().ok()?)?;
    Some((section.address(), len))
}

fn head_len(architecture: Architecture, plt: &[u8]) -> Option<u64> {
    match architecture {
        // push GOT+8(%rip); jmp *GOT+16(%rip), maybe with a `bnd` prefix.
        Architecture::X86_64 => {
            let is_jump = |code: &[u8]| code.starts_with(&[0xff, 0x25]);
            let jump = plt.strip_prefix(&[0xff, 0x35])?.get(4..)?;
            (is_jump(jump) || is_jump(jump.strip_prefix(&[0xf2])?)).then_some(STUB_LEN.into())
        }
        // stp x16, x30, [sp, #-16]!, which may follow `bti c`.
        Architecture::Aarch64 => {
            let code = plt.strip_prefix(&[0x5f, 0x24, 0x03, 0xd5]).unwrap_or(plt);
            code.starts_with(&[0xf0, 0x7b, 0xbf, 0xa9]).then_some((2 * STUB_LEN).into())
        }
        _ => None,
    }
}

/// For each slot of the global offset table that the loader fills with a function's address, where
/// the function's name is.
fn functions_by_slot<E: FileHeader>(elf: &ElfFile<'_, E>) -> FxHashMap<u64, u32> {
    let symbols = elf.elf_dynamic_symbol_table();
    let chosen = chosen_when_loaded(elf);
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    let names = relocations.filter_map(|(slot, relocation)| match relocation.target() {
        RelocationTarget::Symbol(index) => {
            Some((slot, symbols.symbol(index).ok()?.st_name(elf.endian())))
        }
        // IRELATIVE: the loader calls the function at that address, which returns the one to use.
        RelocationTarget::Absolute => {
            Some((slot, *chosen.get(&relocation.addend().cast_unsigned())?))
        }
        _ => None,
    });
    names.collect()
}

/// The names of functions of which the loader chooses one of several (`STT_GNU_IFUNC`), by the
/// address of what chooses: the C library calls its own `memcpy` through stubs without symbol. Of
/// several names it is one that is not weak (`memcmp`, not `bcmp`), with the fewest underscores, then
/// the shortest.
fn chosen_when_loaded<E: FileHeader>(elf: &ElfFile<'_, E>) -> FxHashMap<u64, u32> {
    let (endian, table) = (elf.endian(), elf.elf_dynamic_symbol_table());
    let mut chosen: FxHashMap<u64, ((bool, usize, usize), u32)> = FxHashMap::default();
    for symbol in table.iter().filter(|symbol| symbol.st_type() == elf::STT_GNU_IFUNC) {
        let Ok(name) = symbol.name(endian, table.strings()) else { continue };
        let underscores = name.iter().take_while(|byte| **byte == b'_').count();
        let is_weak = symbol.st_bind() == elf::STB_WEAK;
        let found = ((is_weak, underscores, name.len()), symbol.st_name(endian));
        let best = chosen.entry(symbol.st_value(endian).into()).or_insert(found);
        *best = found.min(*best);
    }
    chosen.into_iter().map(|(address, (_, name))| (address, name)).collect()
}

/// The slot of `jmp *displacement(%rip)`, which may follow `endbr64` and a `bnd` prefix.
fn x86_64_slot(stub: &[u8], address: u64) -> Option<u64> {
    let jump = stub.windows(2).position(|bytes| bytes == [0xff, 0x25])?;
    let displacement = stub.get(jump + 2..jump + 6)?.try_into().ok()?;
    let next_instruction = address.checked_add(jump as u64 + 6)?;
    next_instruction.checked_add_signed(i64::from(i32::from_le_bytes(displacement)))
}

/// The slot of `adrp x16, page; ldr x17, [x16, offset]`, which may follow `bti c`.
fn aarch64_slot(stub: &[u8], address: u64) -> Option<u64> {
    let words: Vec<u32> = stub
        .chunks_exact(4)
        .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        .collect();
    let at = words.iter().position(|word| word & 0x9f00_001f == 0x9000_0010)?;
    let (adrp, ldr) = (words[at], *words.get(at + 1)?);
    if ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    // 21 bits, signed: 19 of them from bit 5 on, the lower two at bit 29. The highest go to bit 31.
    let pages = (adrp << 8 & 0xffff_e000 | adrp >> 18 & 0x1800).cast_signed() >> 11;
    let page = (address & !0xfff).checked_add_signed(i64::from(pages) << 12)?;
    page.checked_add(u64::from(ldr >> 10 & 0xfff) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_x86_64_stubs() {
        // 1020: ff 25 e2 2f 00 00  jmp *0x2fe2(%rip)  # 4008
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(x86_64_slot(&lazy, 0x1020), Some(0x4008));
        // 1040: f3 0f 1e fa        endbr64
        //       f2 ff 25 bd ff ff ff  bnd jmp *-0x43(%rip)  # 1008
        let ibt = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xbd, 0xff, 0xff, 0xff, 0x0f, 0x1f, 0x44, 0,
            0,
        ];
        assert_eq!(x86_64_slot(&ibt, 0x1040), Some(0x1008));
        for len in 0..6 {
            assert_eq!(x86_64_slot(&lazy[..len], 0x1020), None);
        }
        assert_eq!(x86_64_slot(&lazy, u64::MAX), None);
    }

    #[test]
    fn heads_are_what_calls_the_loader() {
        let x86_64 = |code: &[u8]| head_len(Architecture::X86_64, code);
        // push 0x2fe2(%rip); jmp *0x2fe4(%rip); nop, and the same with `bnd jmp`.
        let plain =
            [0xff, 0x35, 0xe2, 0x2f, 0, 0, 0xff, 0x25, 0xe4, 0x2f, 0, 0, 0x0f, 0x1f, 0x40, 0];
        let bound =
            [0xff, 0x35, 0xe2, 0x2f, 0, 0, 0xf2, 0xff, 0x25, 0xe3, 0x2f, 0, 0, 0x0f, 0x1f, 0];
        assert_eq!([x86_64(&plain), x86_64(&bound)], [Some(16); 2]);
        // A stub, as `.plt` begins with where functions are looked up at once.
        assert_eq!(x86_64(&[0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x66, 0x90]), None);
        for len in 0..8 {
            assert_eq!(x86_64(&plain[..len]), None, "{len}");
        }
        let aarch64 = |code: &[u8]| head_len(Architecture::Aarch64, code);
        assert_eq!(aarch64(&[0xf0, 0x7b, 0xbf, 0xa9, 0x90, 0, 0, 0x90]), Some(32));
        assert_eq!(aarch64(&[0x5f, 0x24, 0x03, 0xd5, 0xf0, 0x7b, 0xbf, 0xa9]), Some(32));
        assert_eq!(aarch64(&[0x90, 0, 0, 0x90]), None);
        assert_eq!(head_len(Architecture::X86_64, &[0xf0, 0x7b, 0xbf, 0xa9]), None);
    }

    #[test]
    fn slots_of_aarch64_stubs() {
        // 600: adrp x16, 10000; ldr x17, [x16, #4056]; add x16, x16, #0xfd8; br x17
        let forward = [0x9000_0090_u32, 0xf947_ee11, 0x913f_6210, 0xd61f_0220];
        let bytes = |words: [u32; 4]| words.map(u32::to_le_bytes).concat();
        assert_eq!(aarch64_slot(&bytes(forward), 0x600), Some(0x1_0fd8));
        // 20600: adrp x16, 1f000 (one page back); ldr x17, [x16, #8]
        let back = [0xf0ff_fff0_u32, 0xf940_0611, 0, 0];
        assert_eq!(aarch64_slot(&bytes(back), 0x2_0600), Some(0x1_f008));
        for len in 0..8 {
            assert_eq!(aarch64_slot(&bytes(forward)[..len], 0x600), None);
        }
    }
}
