//! Memory of a Java VM in which some of it is something else: frames are left in a bounded number of
//! readings, and named or not.
#![no_main]

use std::cell::Cell;

use flame_hotspot::testing::{
    CALL, CODE, ENTRY, ENTRY_RETURN, INTERPRETER, METHODS, START, Sample,
};
use flame_hotspot::{Frame, Layout, Memory, Names, Tables, Thread, Vm};

/// The most readings of all frames together.
const MOST_READS: usize = 4096;

/// Where the stack lies.
const STACK: u64 = 0x7ffc_0000_0000;

struct Counted<'s>(&'s Sample, Cell<usize>);

impl Memory for Counted<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.1.set(self.1.get() + 1);
        self.0.read(address, into)
    }
}

/// Registers and stack from the input, over and over.
struct Sampled<'b>(&'b [u8]);

impl Thread for Sampled<'_> {
    fn register(&self, number: u8) -> Option<u64> {
        let byte = u64::from(*self.0.get(usize::from(number) % self.0.len().max(1))?);
        (byte % 8 != 1).then_some(STACK + 8 * byte)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(STACK)?;
        let byte = u64::from(*self.0.get(usize::try_from(at / 8).ok()?)?);
        let known =
            [METHODS[0], METHODS[1], CALL, INTERPRETER + 32, ENTRY_RETURN, STACK + 8 * byte];
        Some(known[usize::try_from(byte).ok()? % known.len()])
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((&[version, patches, offset], rest)) = input.split_first_chunk() else { return };
    let sample = Sample::new(version.into());
    let patches = usize::from(patches) * 4;
    for patch in rest.get(..patches).unwrap_or_default().chunks_exact(4) {
        let at = u64::from(u32::from_le_bytes([patch[0], patch[1], patch[2] & 3, 0]));
        if at < 0x3_1000 {
            sample.write(START + at, &patch[3..]);
        }
    }
    let memory = Counted(&sample, Cell::new(0));
    let Ok(Some(tables)) = Tables::read(&memory, &Sample::exports()) else { return };
    let Ok(layout) = Layout::of(&tables, &memory) else { return };
    let Some(mut vm) = Vm::open(layout, &memory) else { return };
    memory.1.set(0);
    let mut names = Names::default();
    let thread = Sampled(rest.get(patches..).unwrap_or_default());
    for base in [CALL, CODE, INTERPRETER, ENTRY, ENTRY_RETURN] {
        let pc = base + u64::from(offset % 64);
        for is_exact in [true, false] {
            let frame = Frame { pc, is_exact, thread: &thread };
            let (_, name) = vm.leave(&frame, 0, &memory, &mut names);
            assert!(name.is_none_or(|name| names.get(name).is_some()));
        }
    }
    assert!(memory.1.get() <= MOST_READS, "{} readings", memory.1.get());
});
