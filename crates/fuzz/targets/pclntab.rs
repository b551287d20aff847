//! Tables of Go: any bytes are refused, or give functions, frame sizes and inlined calls at any
//! address.
#![no_main]

use flame_pclntab::testing::TEXT;
use flame_pclntab::{GoTable, InlineTrees, ModuleData, find_table};
use flame_profile::{ImageAddress, SharedBytes};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut parts = flame_fuzz::parts(input);
    let bytes = parts.next().unwrap_or_default();
    let (base, trees) =
        parts.next().unwrap_or_default().split_first_chunk().unwrap_or((&[0; 8], &[]));
    let base = u64::from_le_bytes(*base);
    let _ = find_table(bytes);
    let words: Vec<u64> = flame_fuzz::words(bytes).collect();
    let _ = ModuleData::read(bytes, ImageAddress(base), |index| words.get(index).copied());
    let Some(table) = GoTable::parse(SharedBytes::from(bytes.to_vec()), TEXT) else { return };
    let bytes = SharedBytes::from(trees.to_vec());
    let table = table.with_inlined(InlineTrees { bytes, address: ImageAddress(base), base });
    let mut frames = Vec::new();
    for offset in 0..0x90 {
        let address = ImageAddress(TEXT + offset);
        table.frames(address, &mut frames);
        assert!(frames.last().is_none_or(|frame| !frame.inlined));
        let Some(function) = table.function(address) else { continue };
        assert!(function.range().contains(&address));
        let _ = function.stack_switch();
        let _ = table.frame_size(&function, address);
    }
});
