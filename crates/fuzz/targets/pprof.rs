//! pprof: whatever is read can be merged, written, and is the same when read again.
#![no_main]

use flame_formats::{read_pprof, write_pprof};
use flame_profile::{CallTree, TreeOptions};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(profile) = read_pprof(input) else {
        return;
    };
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    let _ = tree.max_depth();
    let mut written = Vec::new();
    if write_pprof(&profile, &mut written).is_ok() {
        assert!(read_pprof(&written).is_ok(), "what was written cannot be read");
    }
});
