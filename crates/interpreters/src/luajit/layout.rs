//! Where LuaJIT 2.1 has what: bytes from the start of a structure, as GC64 on x86-64 has them.

/// What is known of a build of LuaJIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaJitBuild {
    /// How long the interpreter is, which is one piece of assembler.
    pub interpreter_len: u64,
}

/// A build's structures; those of its global state are told apart by what stands in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuaJitLayout {
    pub(crate) interpreter_len: u64,
}

impl LuaJitLayout {
    pub(crate) fn of(build: &LuaJitBuild) -> LuaJitLayout {
        LuaJitLayout { interpreter_len: build.interpreter_len }
    }
}

/// Of every object: its type.
pub(crate) const TYPE: u32 = 9;
pub(crate) const IS_STATE: u8 = 6;
pub(crate) const IS_PROTOTYPE: u8 = 7;
pub(crate) const IS_FUNCTION: u8 = 8;
pub(crate) const IS_TRACE: u8 = 9;

/// Of a state.
pub(crate) const GLOBAL: u32 = 16;
pub(crate) const BASE: u32 = 32;
pub(crate) const STACK: u32 = 56;
pub(crate) const C_FRAME: u32 = 80;
pub(crate) const STACK_LEN: u32 = 88;
pub(crate) const STATE: usize = 96;

/// The bits of the address of a C frame that say something else.
pub(crate) const C_FRAME_BITS: u64 = 3;

/// How far before the global state the first state lies.
pub(crate) const FIRST_STATE: [u64; 2] = [96, 112];

/// Where a global state has what, counted from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    pub(crate) running_trace: u32,
    pub(crate) first_state: u32,
    pub(crate) current: u32,
    pub(crate) trace_base: u32,
    /// Where the table of traces may be.
    pub(crate) traces: [u32; 2],
}

/// Those of 2020 to 2025, those since, and those before.
pub(crate) const GLOBALS: [Global; 3] = [
    Global {
        running_trace: 184,
        first_state: 192,
        current: 368,
        trace_base: 376,
        traces: [1112, 1120],
    },
    Global {
        running_trace: 184,
        first_state: 192,
        current: 376,
        trace_base: 384,
        traces: [1128, 1136],
    },
    Global {
        running_trace: 128,
        first_state: 200,
        current: 344,
        trace_base: 352,
        traces: [1064, 1072],
    },
];

/// As much of a global state as is read.
pub(crate) const GLOBAL_LEN: usize = 400;

/// Behind the address of the table of traces: how many there are.
pub(crate) const TRACE_COUNT: u32 = 12;

/// Of a C frame: how many results are wanted, the state, the next instruction, the C frame outside of it, what
/// the interpreter saved, and where it returns to.
pub(crate) const RESULTS: u32 = 8;
pub(crate) const OF_STATE: u32 = 16;
pub(crate) const INSTRUCTION: u32 = 24;
pub(crate) const OUTSIDE: u32 = 32;
pub(crate) const C_FRAME_LEN: usize = 40;
pub(crate) const FRAME_POINTER: u64 = 64;
pub(crate) const RETURN_ADDRESS: u64 = 72;
pub(crate) const CALLER: u64 = 80;

/// What a trace takes of the native stack below the C frame besides what it says itself.
pub(crate) const TRACE_SPACE: u32 = 16;

/// Of a trace.
pub(crate) const STARTS_IN: u32 = 64;
pub(crate) const CODE_LEN: u32 = 84;
pub(crate) const CODE: u32 = 88;
pub(crate) const STACK_SPACE: u32 = 102;
pub(crate) const NUMBER: u32 = 104;
pub(crate) const TRACE: usize = 112;

/// Of a function: whether it is one in Lua (0), where its instructions are, and the C function.
pub(crate) const KIND: u32 = 10;
pub(crate) const INSTRUCTIONS: u32 = 32;
pub(crate) const C_FUNCTION: u32 = 40;
pub(crate) const FUNCTION: usize = 48;

/// The upper bits of a value that is a function, and how many of them there are.
pub(crate) const FUNCTION_TAG: u64 = 0x1_fff7;
pub(crate) const TAG_AT: u32 = 47;

/// Of a prototype, which its instructions follow.
pub(crate) const COUNT: u32 = 12;
pub(crate) const CONSTANTS: u32 = 32;
pub(crate) const STRINGS: u32 = 48;
pub(crate) const SIZE: u32 = 56;
pub(crate) const SOURCE: u32 = 64;
pub(crate) const FIRST_LINE: u32 = 72;
pub(crate) const LINE_COUNT: u32 = 76;
pub(crate) const LINES: u32 = 80;
pub(crate) const UPVALUES: u32 = 88;
pub(crate) const LOCALS: u32 = 96;
pub(crate) const PROTOTYPE: usize = 104;

/// Of a string: its text.
pub(crate) const TEXT: u64 = 24;
