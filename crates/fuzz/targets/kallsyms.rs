//! `/proc/kallsyms`: any text is read, and any address looked up.
#![no_main]

use flame_profile::ProcessAddress;
use flame_symbolize::KernelSymbols;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let symbols = KernelSymbols::parse(input);
    let kernel = [0, 0xffff_ffff_8100_0041, 0xffff_ffff_c000_0010, u64::MAX];
    for address in flame_fuzz::words(input).chain(kernel) {
        let _ = symbols.lookup(ProcessAddress(address));
    }
});
