//! Perf maps: any text is read, and any address of it looked up.
#![no_main]

use flame_profile::{FileOffset, ProcessAddress};
use flame_symbolize::{CodeLog, CodeLogKind, WantedCode};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let map = CodeLog::from_bytes(input.to_vec(), CodeLogKind::PerfMap).expect("any text is one");
    let wanted = |address| {
        let before = FileOffset(if address % 2 == 0 { u64::MAX } else { address % 4096 });
        WantedCode { address: ProcessAddress(address), before }
    };
    let addresses = flame_fuzz::words(input).chain([0, 0x7f3a_1000_0040, u64::MAX]);
    let wanted: Vec<WantedCode> = addresses.map(wanted).collect();
    let found = map.names(&wanted).expect("memory can be read");
    assert_eq!(found.names.len(), wanted.len());
});
