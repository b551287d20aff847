//! Indexes of symbols: any bytes give answers or none.
#![no_main]

use std::alloc::System;

use cap::Cap;
use flame_fuzz::MAX_MEMORY;
use flame_symbolize::fuzzing::read_index;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MAX_MEMORY);

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    read_index(input);
});
