//! Memory of interpreters: whatever stands there, frames are caught in a bounded number of readings, and
//! what was caught is placed and named.
#![no_main]

use std::cell::Cell;

use flame_interpreters::{
    Catcher, Caught, Function, Layout, LuaBuild, LuaJitBuild, Memory, NativeFrame, Part, PerlBuild,
    PhpBuild, PythonBuild, RubyBuild, SampledRegisters, Thread, join,
};

/// Where the memory lies; it repeats itself from there on.
const START: u64 = 0x1000;

/// The most readings of one sample.
const MOST_READS: usize = 8192;

struct Bytes<'b> {
    bytes: &'b [u8],
    reads: Cell<usize>,
}

impl Memory for Bytes<'_> {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        self.reads.set(self.reads.get() + 1);
        let mut len = 0;
        for part in parts {
            if part.address < START || part.address >> 47 != 0 || self.bytes.is_empty() {
                break;
            }
            let at = (part.address - START) as usize % self.bytes.len();
            let found = self.bytes.iter().cycle().skip(at);
            let Some(room) = into.get_mut(len..len + part.len) else { break };
            room.iter_mut().zip(found).for_each(|(to, from)| *to = *from);
            len += part.len;
        }
        len
    }
}

fn layout(number: u8) -> Option<Layout> {
    let minor = u32::from(number >> 2);
    match number & 3 {
        0 => Layout::python(&PythonBuild { minor, code_type: 0x100 }),
        1 => Layout::perl(&PerlBuild { minor, statement: None }),
        2 => Layout::perl(&PerlBuild { minor, statement: Some(8) }),
        _ if minor == 13 => Layout::php(&PhpBuild {
            globals: START,
            address: 0,
            file: &[0x48, 0x8b, 0x82, 0xe8, 1, 0, 0, 0x48, 0x8b, 0x82, 0x98, 0, 0, 0],
            line: &[0x48, 0x8b, 0x42, 0x58, 0, 0, 0],
        }),
        _ if minor >= 56 => {
            let (major, minor) = if minor & 7 == 7 { (2, 7) } else { (3, minor & 7) };
            Layout::ruby(&RubyBuild { major, minor, symbols: [0, 8, 512, 1024] })
        }
        _ if minor == 5 => Some(Layout::luajit(&LuaJitBuild { interpreter_len: 64 })),
        _ => Layout::lua(&LuaBuild { minor: minor & 7, release: minor >> 3 }),
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((&[number, frames, loops], bytes)) = input.split_first_chunk() else { return };
    let Some(layout) = layout(number) else { return };
    let layout = layout.as_it_says(bytes).unwrap_or(layout);
    let memory = Bytes { bytes, reads: Cell::new(0) };
    let mut out = vec![0; Catcher::MOST];
    let instruction = START + 32 * u64::from(frames >> 5);
    let [next, base, frame] = [64, 256, 512].map(|behind| START + behind);
    let registers = SampledRegisters { instruction, next, base, frame };
    let thread = Thread { pid: 7, tid: 8, stack_pointer: START, registers };
    let len = Catcher::default().catch(&layout, START, thread, &memory, &mut out);
    assert!(memory.reads.get() <= MOST_READS, "{} readings", memory.reads.get());
    let caught = Caught::parse(&out[..len]).expect("it was written so");
    let entries = caught.entries();
    for defined in caught.defined() {
        let function = Function::of(&defined, &layout);
        entries.iter().for_each(|entry| _ = function.line(entry.position));
    }
    let native = |index: u8| NativeFrame {
        stack_pointer: START + 64 * u64::from(index),
        runs_frames: loops >> (index % 8) & 1 != 0,
        runs_script: index + 1 == frames % 32,
        next: START + 64,
    };
    let natives: Vec<NativeFrame> = (0..frames % 32).map(native).collect();
    for is_whole in [true, false] {
        let _ = join(&entries, &natives, is_whole, &|address| Some(address), &|_, word| word != 1);
    }
    // What crossed from another process may be anything.
    if let Some(caught) = Caught::parse(bytes) {
        caught.defined().for_each(|defined| _ = Function::of(&defined, &layout));
    }
});
