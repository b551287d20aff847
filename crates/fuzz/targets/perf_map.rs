//! Perf maps: any text is read, and any address of it looked up.
#![no_main]

use flame_profile::ProcessAddress;
use flame_symbolize::PerfMap;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let map = PerfMap::parse(input);
    for address in flame_fuzz::words(input).chain([0, 0x7f3a_1000_0040, u64::MAX]) {
        let _ = map.lookup(ProcessAddress(address));
    }
});
