//! A small VM in memory, for tests and fuzzing: its tables, a compiled method with one inlined in it, the
//! interpreter and the stub by which the VM calls Java. Its offsets are its own.

use std::cell::RefCell;

use crate::memory::Memory;
use crate::tables::EXPORTS;

/// Where its memory lies.
pub const START: u64 = 0x7f00_0000_0000;

/// The compiled method: where its code begins, and its frame in bytes.
pub const CODE: u64 = START + 0x2_0090;
/// See [`CODE`].
pub const FRAME: u64 = 8 * FRAME_WORDS as u64;
const FRAME_WORDS: u32 = 6;
/// The return address in it that stands in the inlined method too.
pub const CALL: u64 = CODE + 0x18;
/// Where the interpreter's code begins; it runs byte code 16 bytes behind.
pub const INTERPRETER: u64 = START + 0x2_1090;
/// Where a method is entered in it.
pub const ENTRY: u64 = INTERPRETER + 0x40;
/// What the stub returns to by which the VM calls Java.
pub const ENTRY_RETURN: u64 = START + 0x2_2090 + 8;
/// The methods: the compiled one, and the one that is inlined in it.
pub const METHODS: [u64; 2] = [START + 0x1_4000, START + 0x1_5000];

/// The size of all of it.
const LEN: usize = 0x3_1000;

/// Where the heap of code lies, its map of segments, and how large those are.
const HEAP: u64 = START + 0x2_0000;
const MAP: u64 = START + 0x3_0000;
const LOG_SEGMENT: u32 = 7;

/// What compiled code begins with and ends with, as C2 makes it.
const PROLOGUE: [u8; 12] = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20];
const EPILOGUE: [u8; 6] = [0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3];

/// How the interpreter enters a method.
const ENTERS: [u8; 27] = [
    0x90, 0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8, 0x90, 0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55, 0x6a,
    0, 0x4c, 0x8b, 0x6b, 0x08, 0x4d, 0x8d, 0x6d, 0x30, 0x53, 0x90,
];

/// Type, field and offset.
type Field = (&'static str, &'static str, u64);

const FIELDS: [Field; 51] = [
    ("CodeHeap", "_memory", 8),
    ("CodeHeap", "_segmap", 40),
    ("CodeHeap", "_log2_segment_size", 72),
    ("VirtualSpace", "_low", 0),
    ("VirtualSpace", "_high", 8),
    ("GrowableArrayBase", "_len", 0),
    ("GrowableArray<int>", "_data", 8),
    ("HeapBlock::Header", "_used", 8),
    ("CodeBlob", "_name", 0),
    ("CodeBlob", "_size", 8),
    ("CodeBlob", "_frame_complete_offset", 12),
    ("CodeBlob", "_frame_size", 16),
    ("CodeBlob", "_code_begin", 24),
    ("CodeBlob", "_code_end", 32),
    ("CompiledMethod", "_method", 40),
    ("CompiledMethod", "_scopes_data_begin", 48),
    ("CompiledMethod", "_deopt_handler_begin", 56),
    ("CompiledMethod", "_deopt_mh_handler_begin", 64),
    ("nmethod", "_verified_entry_point", 72),
    ("nmethod", "_stub_offset", 80),
    ("nmethod", "_metadata_offset", 84),
    ("nmethod", "_scopes_pcs_offset", 88),
    ("nmethod", "_dependencies_offset", 92),
    ("nmethod", "_orig_pc_offset", 96),
    ("nmethod", "_compile_id", 100),
    ("PcDesc", "_pc_offset", 0),
    ("PcDesc", "_scope_decode_offset", 4),
    ("Method", "_constMethod", 8),
    ("ConstMethod", "_constants", 0),
    ("ConstMethod", "_code_size", 8),
    ("ConstMethod", "_name_index", 10),
    ("ConstantPool", "_pool_holder", 8),
    ("ConstantPool", "_length", 16),
    ("Klass", "_name", 24),
    ("Symbol", "_length", 4),
    ("Symbol", "_body", 6),
    ("StubQueue", "_stub_buffer", 8),
    ("StubQueue", "_buffer_limit", 16),
    ("InterpreterCodelet", "_size", 8),
    ("InterpreterCodelet", "_description", 0),
    // Once only, at these places behind the start.
    ("CodeCache", "_heaps", 0x1_0000),
    ("CodeCache", "_low_bound", 0x1_0008),
    ("CodeCache", "_high_bound", 0x1_0010),
    ("StubRoutines", "_call_stub_return_address", 0x1_0018),
    ("AbstractInterpreter", "_code", 0x1_0020),
    ("Abstract_VM_Version", "_vm_major_version", 0x1_0028),
    ("Unrelated", "_first", 1),
    ("Unrelated", "_second", 2),
    ("Unrelated", "_third", 3),
    ("Unrelated", "_fourth", 4),
    ("Unrelated", "_fifth", 5),
];

/// A type and a field of those, and what stands in its place from version 25 on, whose debug information is
/// apart.
const FIELDS_APART: [((&str, &str), Field); 12] = [
    (("CodeBlob", "_code_begin"), ("CodeBlob", "_code_offset", 24)),
    (("CodeBlob", "_code_end"), ("CodeBlob", "_data_offset", 28)),
    (("CompiledMethod", "_method"), ("nmethod", "_method", 40)),
    (("CompiledMethod", "_scopes_data_begin"), ("nmethod", "_immutable_data", 48)),
    (("CompiledMethod", "_deopt_handler_begin"), ("nmethod", "_deopt_handler_offset", 56)),
    (("CompiledMethod", "_deopt_mh_handler_begin"), ("nmethod", "_deopt_mh_handler_offset", 64)),
    (("nmethod", "_verified_entry_point"), ("nmethod", "_verified_entry_offset", 72)),
    (("nmethod", "_metadata_offset"), ("nmethod", "_immutable_data_size", 84)),
    (("nmethod", "_dependencies_offset"), ("nmethod", "_scopes_data_offset", 92)),
    (("Unrelated", "_first"), ("CodeBlob", "_mutable_data", 32)),
    (("Unrelated", "_second"), ("CodeBlob", "_mutable_data_size", 20)),
    (("Unrelated", "_third"), ("CodeBlob", "_relocation_size", 76)),
];

/// The first version whose debug information is apart, and where it is: what does not change, and what does.
const FIRST_APART: u32 = 25;
const FIXED: u64 = START + 0x1_6000;
const CHANGING: u64 = START + 0x1_7000;

/// From this one on.
const FIRST_STATIC: usize = 40;

const SIZES: [(&str, u64); 7] = [
    ("CodeBlob", 0x28),
    ("nmethod", 0x70),
    ("HeapBlock", 0x10),
    ("PcDesc", 0x10),
    ("ConstMethod", 0x30),
    ("ConstantPool", 0x20),
    ("InterpreterCodelet", 0x10),
];

/// The VM's memory.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What can be read, from [`START`] on; all else cannot.
    pub bytes: RefCell<Vec<u8>>,
    strings: u64,
    version: u32,
}

impl Memory for Sample {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let bytes = self.bytes.borrow();
        let from = address.checked_sub(START).and_then(|from| usize::try_from(from).ok());
        let found = from.and_then(|from| bytes.get(from..from.checked_add(into.len())?));
        found.is_some_and(|found| {
            into.copy_from_slice(found);
            true
        })
    }
}

impl Sample {
    /// One of that version.
    pub fn new(version: u32) -> Sample {
        let bytes = RefCell::new(vec![0; LEN]);
        let mut sample = Sample { bytes, strings: START + 0x8000, version };
        sample.tables();
        sample.put(START + 0x1_0028, u64::from(version));
        sample.heap();
        sample.compiled();
        sample.interpreter();
        let [outer, inner] = METHODS;
        sample.method(outer, "pkg/Outer", "run");
        sample.method(inner, "pkg/Inner$$Lambda$1+0x0000000800c03000", "apply");
        sample
    }

    /// The addresses of what a VM exports.
    pub fn exports() -> [u64; EXPORTS.len()] {
        std::array::from_fn(|index| START + 8 * index as u64)
    }

    /// Puts a word of eight bytes there.
    pub fn put(&self, address: u64, value: u64) {
        self.write(address, &value.to_le_bytes());
    }

    fn half(&self, address: u64, value: u32) {
        self.write(address, &value.to_le_bytes());
    }

    /// Puts bytes there.
    pub fn write(&self, address: u64, what: &[u8]) {
        let from = usize::try_from(address - START).expect("what is written lies in the memory");
        self.bytes.borrow_mut()[from..from + what.len()].copy_from_slice(what);
    }

    fn string(&mut self, text: &str) -> u64 {
        let at = self.strings;
        self.write(at, text.as_bytes());
        self.strings += text.len() as u64 + 1;
        at
    }

    fn tables(&mut self) {
        let (fields, sizes, constants) = (START + 0x1000, START + 0x4000, START + 0x5000);
        let variables = [fields, 0, 8, 16, 24, 32, 40, sizes, 0, 8, 16, constants, 0, 8, 16];
        for (at, value) in Sample::exports().into_iter().zip(variables) {
            self.put(at, value);
        }
        for (index, (of, field, offset)) in FIELDS.into_iter().enumerate() {
            let line = fields + 40 * index as u64;
            let is_static = (FIRST_STATIC..FIRST_STATIC + 6).contains(&index);
            let is_apart = self.version >= FIRST_APART;
            let apart = FIELDS_APART.iter().find(|(old, _)| is_apart && *old == (of, field));
            let (of, field, offset) = apart.map_or((of, field, offset), |(_, new)| *new);
            let names = [self.string(of), self.string(field)];
            self.put(line, names[0]);
            self.put(line + 8, names[1]);
            self.put(line + 16, u64::from(is_static));
            self.put(line + 24, if is_static { 0 } else { offset });
            self.put(line + 32, if is_static { START + offset } else { 0 });
        }
        for (index, (of, size)) in SIZES.into_iter().enumerate() {
            let name = self.string(of);
            self.put(sizes + 16 * index as u64, name);
            self.put(sizes + 16 * index as u64 + 8, size);
        }
        let name = self.string("frame::interpreter_frame_sender_sp_offset");
        self.put(constants, name);
        self.put(constants + 8, u64::from(u32::MAX));
    }

    fn heap(&self) {
        let (list, heap) = (START + 0x1_1000, START + 0x1_2000);
        let once = [list, HEAP, MAP, ENTRY_RETURN, START + 0x1_3000];
        for (index, value) in once.into_iter().enumerate() {
            self.put(START + 0x1_0000 + 8 * index as u64, value);
        }
        self.half(list, 1);
        self.put(list + 8, list + 16);
        self.put(list + 16, heap);
        for (at, value) in [(8, HEAP), (16, MAP), (40, MAP), (48, MAP + 0x200)] {
            self.put(heap + at, value);
        }
        self.half(heap + 72, LOG_SEGMENT);
        self.write(MAP, &[0xff; 0x200]);
    }

    /// A piece of code at a block; its code begins 0x90 bytes behind that.
    fn blob(&mut self, block: u64, (name, code): (&str, &[u8]), complete: u32, words: u32) -> u64 {
        let (blob, segments) = (block + 0x10, 0x400_u32 >> LOG_SEGMENT);
        let segment = (block - HEAP) >> LOG_SEGMENT;
        let back: Vec<u8> = (0..segments).map(|n| n.min(3) as u8).collect();
        self.write(MAP + segment, &back);
        self.write(block + 8, &[1]);
        let name = self.string(name);
        self.put(blob, name);
        self.half(blob + 8, 0x3f0);
        self.half(blob + 12, complete);
        self.half(blob + 16, words);
        if self.version < FIRST_APART {
            self.put(blob + 24, block + 0x90);
            self.put(blob + 32, block + 0x90 + code.len() as u64);
        } else {
            self.half(blob + 24, 0x80);
            self.half(blob + 28, small(0x80 + code.len() as u64));
        }
        self.write(block + 0x90, code);
        blob
    }

    fn compiled(&mut self) {
        let mut code = [&[0x90; 4][..], &PROLOGUE, &[0x90; 3], &[0xe8, 1, 2, 3, 4]].concat();
        code.extend(EPILOGUE);
        code.resize(0x40, 0x90);
        let blob = self.blob(HEAP, ("nmethod", &code), 16, FRAME_WORDS);
        self.put(blob + 40, METHODS[0]);
        self.half(blob + 80, 0x80 + 0x30);
        self.half(blob + 96, 8);
        self.half(blob + 100, 7);
        match self.version < FIRST_APART {
            true => self.inside(blob),
            false => self.apart(blob),
        }
    }

    /// Debug information behind the code.
    fn inside(&self, blob: u64) {
        let (metadata, scopes, pcs) = (0x200, 0x210, 0x240);
        self.put(blob + 48, blob + scopes);
        self.put(blob + 56, CODE + 0x38);
        self.put(blob + 64, CODE + 0x3c);
        self.put(blob + 72, CODE + 4);
        for (index, word) in [metadata, pcs, pcs + 64].into_iter().enumerate() {
            self.half(blob + 84 + 4 * index as u64, small(word));
        }
        self.debug_information([blob + metadata, blob + scopes, blob + pcs]);
    }

    /// In memory of its own.
    fn apart(&self, blob: u64) {
        let (relocations, pcs, scopes, end) = (0x10, 0x10, 0x50, 0x60);
        self.put(blob + 48, FIXED);
        self.half(blob + 56, small(CODE + 0x38 - blob));
        self.half(blob + 64, small(CODE + 0x3c - blob));
        self.half(blob + 72, 4);
        for (index, word) in [end, pcs, scopes].into_iter().enumerate() {
            self.half(blob + 84 + 4 * index as u64, small(word));
        }
        self.put(blob + 32, CHANGING);
        self.half(blob + 20, relocations + 16);
        self.half(blob + 76, relocations);
        self.debug_information([CHANGING + u64::from(relocations), FIXED + scopes, FIXED + pcs]);
    }

    fn debug_information(&self, [metadata, scopes, pcs]: [u64; 3]) {
        self.put(metadata, METHODS[0]);
        self.put(metadata + 8, METHODS[1]);
        // At 1 the compiled method, which nobody has inlined; at 4 the one that is inlined in it.
        let least = u8::from(self.version >= 20);
        let stream = [0xee, 0, 1, 3, 1, 2, 9].map(|byte: u8| byte.wrapping_add(least));
        self.write(scopes, &stream);
        for (index, (pc, scope)) in
            [(u32::MAX, 0), (0x18, 4), (0x1e, 1), (9999, 0)].into_iter().enumerate()
        {
            self.half(pcs + 16 * index as u64, pc);
            self.half(pcs + 16 * index as u64 + 4, scope);
        }
    }

    fn interpreter(&mut self) {
        let mut code = vec![0x90; 0x40];
        code[0x14..0x1d].copy_from_slice(&[0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5]);
        code.extend([0x90; 0x10]);
        code.extend(ENTERS);
        code.resize(0x80, 0x90);
        self.blob(START + 0x2_1000, ("Interpreter", &code), u32::MAX, 0);
        self.blob(START + 0x2_2000, ("StubRoutines (1)", &[0x90; 0x40]), u32::MAX, 0);
        let queue = START + 0x1_3000;
        self.put(queue + 8, INTERPRETER);
        self.half(queue + 16, 0x80);
        let names = [self.string("iload"), self.string("method entry point (kind = zerolocals)")];
        for (at, name) in [(INTERPRETER, names[0]), (ENTRY, names[1])] {
            self.put(at, name);
            self.half(at + 8, 0x40);
        }
    }

    fn method(&mut self, method: u64, class: &str, name: &str) {
        let (fixed, pool, holder) = (method + 0x100, method + 0x200, method + 0x300);
        self.put(method + 8, fixed);
        self.put(fixed, pool);
        self.write(fixed + 8, &[64, 0, 1, 0]);
        self.put(pool + 8, holder);
        self.half(pool + 16, 2);
        self.put(pool + 0x28, method + 0x400);
        self.put(holder + 24, method + 0x500);
        for (at, text) in [(method + 0x400, name), (method + 0x500, class)] {
            let len = u8::try_from(text.len()).expect("its names are short");
            self.write(at + 4, &[len, 0]);
            self.write(at + 6, text.as_bytes());
        }
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("what is in the VM is small")
}
