//! Names: any text is demangled, in bounded time and stack.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(name) = std::str::from_utf8(input) {
        let _ = flame_symbolize::demangle(name);
    }
});
