//! Turns addresses of the kernel and of generated code into ones that say nothing about where these
//! are: a profile may be read by others than the user who recorded it, and where the kernel or a
//! process is in memory is what attacks on them want to know.
//!
//! The kernel's own code is counted from `_text`, that of modules from the start of its function.
//! Where no symbol says so, addresses are counted from the lowest one that was seen in their
//! gigabyte, rounded down as far as the kernel itself is aligned: so the distances within the
//! kernel, which are no secret, stay, and those between it and its modules, which are, do not.
//!
//! Sources: `arch/x86/boot/compressed/kaslr.c` and Documentation/arch/x86/x86_64/mm.rst of Linux.

use std::collections::BTreeMap;

use flame_profile::ProcessAddress;
use flame_symbolize::KernelSymbols;

/// The kernel and its modules lie in gigabytes of their own, on x86-64.
const REGION: u32 = 30;

/// The kernel's random offset is a multiple of this.
const ALIGNMENT: u64 = 2 << 20;

/// The page of old system calls, which is in the same place everywhere.
const VSYSCALL: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;

/// Where the addresses of each region of the kernel are counted from.
#[derive(Debug, Default)]
pub(super) struct KernelBases(BTreeMap<u64, u64>);

impl KernelBases {
    /// For these addresses.
    pub(super) fn of(addresses: impl Iterator<Item = ProcessAddress>) -> KernelBases {
        let mut lowest = BTreeMap::new();
        for ProcessAddress(address) in addresses {
            let base = lowest.entry(address >> REGION).or_insert(u64::MAX);
            if !VSYSCALL.contains(&address) {
                *base = (*base).min(address & !(ALIGNMENT - 1));
            }
        }
        KernelBases(lowest)
    }

    /// An address of the kernel, as it may be written down.
    pub(super) fn relative(
        &self,
        address: ProcessAddress,
        symbols: Option<&KernelSymbols>,
    ) -> ProcessAddress {
        if VSYSCALL.contains(&address.0) {
            return address;
        }
        let offset = symbols.and_then(|symbols| symbols.offset(address));
        let from_lowest = || {
            let base = self.0.get(&(address.0 >> REGION)).copied().unwrap_or(address.0);
            address.0.saturating_sub(base)
        };
        ProcessAddress(offset.unwrap_or_else(from_lowest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
ffffffff9a000000 T _text
ffffffff9a000000 T startup_64
ffffffff9a000100 t do_idle
ffffffff9ac00000 R _etext
ffffffffc0a01000 t nf_hook\t[nf_tables]
";

    fn bases() -> KernelBases {
        let seen = [0xffff_ffff_9a40_1234, 0xffff_ffff_9a20_1000, 0xffff_ffff_c0a0_1010];
        KernelBases::of(seen.into_iter().chain([VSYSCALL.start]).map(ProcessAddress))
    }

    #[track_caller]
    fn check(address: u64, symbols: Option<&KernelSymbols>, expect: u64) {
        let relative = bases().relative(ProcessAddress(address), symbols);
        assert_eq!(relative, ProcessAddress(expect), "{address:#x}");
    }

    #[test]
    fn the_kernel_is_counted_from_its_text_and_modules_from_their_functions() {
        let symbols = KernelSymbols::parse(TABLE);
        check(0xffff_ffff_9a00_0108, Some(&symbols), 0x108);
        check(0xffff_ffff_9a40_1234, Some(&symbols), 0x40_1234);
        check(0xffff_ffff_c0a0_1010, Some(&symbols), 0x10);
        check(VSYSCALL.start, Some(&symbols), VSYSCALL.start);
    }

    #[test]
    fn without_symbols_nothing_is_left_of_the_random_offset() {
        check(0xffff_ffff_9a40_1234, None, 0x20_1234);
        check(0xffff_ffff_9a20_1000, None, 0x1000);
        // The distance between the kernel and a module tells where both are.
        check(0xffff_ffff_c0a0_1010, None, 0x1010);
    }
}
