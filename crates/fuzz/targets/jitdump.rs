//! Jitdumps: any bytes are refused or scanned, and any address of them looked up.
#![no_main]

use flame_profile::{FileOffset, ProcessAddress};
use flame_symbolize::{CodeLog, CodeLogKind, WantedCode};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(dump) = CodeLog::from_bytes(input.to_vec(), CodeLogKind::JitDump) else {
        return;
    };
    let mut wanted = Vec::new();
    let mut each = |entry: flame_symbolize::CodeEntry| {
        let tables = dump.unwinding(&entry);
        assert!(tables.is_none() || entry.has_unwinding());
        wanted.push(WantedCode { address: entry.start, before: FileOffset(u64::MAX) });
        wanted.push(WantedCode {
            address: ProcessAddress(entry.end.0.wrapping_sub(1)),
            before: entry.at,
        });
    };
    dump.scan(FileOffset(0), FileOffset(u64::MAX), &mut each).expect("memory can be read");
    let found = dump.names(&wanted).expect("memory can be read");
    assert_eq!(found.names.len(), wanted.len());
});
