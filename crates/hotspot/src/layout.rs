//! Where things lie in the memory of one VM, by its tables.

use crate::memory::Memory;
use crate::tables::Tables;

/// The versions whose code and frames are understood.
const KNOWN: [u32; 6] = [17, 18, 19, 20, 21, 25];

/// The first known version whose compiled methods have their debug information in memory of their own.
const DEBUG_INFORMATION_APART: u32 = 25;

/// The first version whose debug information never has a zero byte within a number.
const NUMBERS_WITHOUT_ZERO: u32 = 20;

/// Why a VM cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It says nothing of itself, or nothing that could be read.
    NoTables,
    /// It is of that version, and only some are known.
    Version(u32),
    /// Its tables lack that.
    Lacks(String),
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unknown::NoTables => f.write_str("its tables cannot be read"),
            Unknown::Version(version) => {
                write!(f, "it is of version {version}; 17 to 21 and 25 are known")
            }
            Unknown::Lacks(what) => write!(f, "its tables lack {what}"),
        }
    }
}

/// Offsets, and addresses of what there is once.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) version: u32,
    /// Whether numbers of debug information have no zero byte.
    pub(crate) without_zero: bool,
    pub(crate) heaps: Heaps,
    pub(crate) blob: Blob,
    pub(crate) compiled: Compiled,
    pub(crate) method: Method,
    pub(crate) interpreter: Interpreter,
    /// Where the return address is kept that entry frames are known by.
    pub(crate) call_stub_return: u64,
}

/// Of the heaps of code.
#[derive(Clone, Debug)]
pub(crate) struct Heaps {
    /// Where the pointer to their list is.
    pub(crate) list: u64,
    pub(crate) list_len: u32,
    pub(crate) list_data: u32,
    /// Where the bounds of all are.
    pub(crate) bounds: [u64; 2],
    /// Within a heap: its first and last byte, those of its map of segments, and how large those are.
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) map_low: u32,
    pub(crate) map_high: u32,
    pub(crate) segment: u32,
    /// Within a block: whether it is in use, and where what it holds begins.
    pub(crate) used: u32,
    pub(crate) header: u32,
}

/// Of a piece of code.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) len: u32,
    pub(crate) name: u32,
    pub(crate) size: u32,
    pub(crate) frame_complete: u32,
    /// Whether that is a number of two bytes, and not of four.
    pub(crate) is_short: bool,
    pub(crate) frame_size: u32,
    /// Where it says where its code begins and ends, and whether by addresses: or by offsets from its own start.
    pub(crate) code: [u32; 2],
    pub(crate) has_addresses: bool,
}

/// Of a compiled method.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) len: u32,
    pub(crate) method: u32,
    pub(crate) deoptimize: [u32; 2],
    pub(crate) verified_entry: u32,
    pub(crate) stub: u32,
    pub(crate) parts: Parts,
    pub(crate) original_pc: u32,
    pub(crate) id: u32,
    /// Of an entry of debug information: its length, and where it says its address and scope.
    pub(crate) pc_len: u32,
    pub(crate) pc_offset: u32,
    pub(crate) pc_scope: u32,
}

/// Where a compiled method says where its debug information is.
#[derive(Clone, Debug)]
pub(crate) enum Parts {
    /// Behind its code: the address of the scopes, and offsets from its own start. Entries and handlers have addresses.
    Inside { scopes: u32, metadata: u32, pcs: u32, pcs_end: u32 },
    /// In two pieces of memory, with offsets from the start of the second. Entries have offsets from the beginning of the
    /// code, handlers from its own start.
    Apart {
        /// The address and the length of memory with relocations, which take so many bytes, and metadata.
        changing: [u32; 2],
        relocations: u32,
        /// The same with the rest.
        fixed: [u32; 2],
        pcs: u32,
        scopes: u32,
    },
}

/// Of a method.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub(crate) fixed: u32,
    pub(crate) constants: u32,
    pub(crate) code_size: u32,
    pub(crate) name: u32,
    /// Where its byte code begins in the fixed part.
    pub(crate) code: u32,
    pub(crate) pool_holder: u32,
    pub(crate) pool_len: u32,
    /// Where entries of the constant pool begin.
    pub(crate) pool: u32,
    pub(crate) class_name: u32,
    pub(crate) symbol_len: u32,
    pub(crate) symbol: u32,
}

/// Of the interpreter's pieces of code.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    /// Where the pointer to them is.
    pub(crate) queue: u64,
    pub(crate) buffer: u32,
    pub(crate) buffer_len: u32,
    pub(crate) size: u32,
    pub(crate) description: u32,
    pub(crate) header: u32,
}

/// Looks things up, and remembers what was missing first.
struct Asked<'t> {
    tables: &'t Tables,
    missing: Option<String>,
}

impl Asked<'_> {
    fn offset(&mut self, of: &str, field: &str) -> u32 {
        let found = self.tables.offset(of, field);
        self.or_missing(found, format!("{of}::{field}"))
    }

    fn address(&mut self, of: &str, field: &str) -> u64 {
        let found = self.tables.address(of, field);
        self.or_missing(found, format!("{of}::{field}"))
    }

    fn size(&mut self, of: &str) -> u32 {
        let found = self.tables.size(of);
        self.or_missing(found, format!("the size of {of}"))
    }

    fn or_missing<T: Default>(&mut self, found: Option<T>, what: String) -> T {
        found.unwrap_or_else(|| {
            self.missing.get_or_insert(what);
            T::default()
        })
    }
}

impl Layout {
    /// That of a VM with these tables.
    ///
    /// # Errors
    /// It is of a version that is not known, or its tables are not those of one that is.
    pub fn of(tables: &Tables, memory: &dyn Memory) -> Result<Layout, Unknown> {
        let version = tables.address("Abstract_VM_Version", "_vm_major_version");
        let mut bytes = [0; 4];
        if !version.is_some_and(|at| memory.read(at, &mut bytes)) {
            return Err(Unknown::NoTables);
        }
        let version = u32::from_le_bytes(bytes);
        if !KNOWN.contains(&version) {
            return Err(Unknown::Version(version));
        }
        let is_apart = version >= DEBUG_INFORMATION_APART;
        let asked = &mut Asked { tables, missing: None };
        let layout = Layout {
            version,
            without_zero: version >= NUMBERS_WITHOUT_ZERO,
            heaps: heaps(asked),
            blob: blob(asked, is_apart),
            compiled: compiled(asked, is_apart),
            method: method(asked),
            interpreter: interpreter(asked),
            call_stub_return: asked.address("StubRoutines", "_call_stub_return_address"),
        };
        // What the layout of interpreted frames is known by.
        let frame = ("frame::interpreter_frame_sender_sp_offset", -1);
        if tables.constant(frame.0) != Some(frame.1) {
            return Err(Unknown::Lacks(frame.0.to_owned()));
        }
        match asked.missing.take() {
            None => Ok(layout),
            Some(missing) => Err(Unknown::Lacks(missing)),
        }
    }
}

fn heaps(asked: &mut Asked<'_>) -> Heaps {
    let memory = asked.offset("CodeHeap", "_memory");
    let map = asked.offset("CodeHeap", "_segmap");
    let low = asked.offset("VirtualSpace", "_low");
    let high = asked.offset("VirtualSpace", "_high");
    Heaps {
        list: asked.address("CodeCache", "_heaps"),
        list_len: asked.offset("GrowableArrayBase", "_len"),
        list_data: asked.offset("GrowableArray<int>", "_data"),
        bounds: ["_low_bound", "_high_bound"].map(|field| asked.address("CodeCache", field)),
        low: memory + low,
        high: memory + high,
        map_low: map + low,
        map_high: map + high,
        segment: asked.offset("CodeHeap", "_log2_segment_size"),
        used: asked.offset("HeapBlock::Header", "_used"),
        header: asked.size("HeapBlock"),
    }
}

fn blob(asked: &mut Asked<'_>, is_apart: bool) -> Blob {
    let code =
        if is_apart { ["_code_offset", "_data_offset"] } else { ["_code_begin", "_code_end"] };
    Blob {
        len: asked.size("CodeBlob"),
        name: asked.offset("CodeBlob", "_name"),
        size: asked.offset("CodeBlob", "_size"),
        frame_complete: asked.offset("CodeBlob", "_frame_complete_offset"),
        is_short: is_apart,
        frame_size: asked.offset("CodeBlob", "_frame_size"),
        code: code.map(|field| asked.offset("CodeBlob", field)),
        has_addresses: !is_apart,
    }
}

fn compiled(asked: &mut Asked<'_>, is_apart: bool) -> Compiled {
    let (method, handlers, entry) = match is_apart {
        true => {
            let handlers = ["_deopt_handler_offset", "_deopt_mh_handler_offset"];
            ("nmethod", handlers, "_verified_entry_offset")
        }
        false => {
            let handlers = ["_deopt_handler_begin", "_deopt_mh_handler_begin"];
            ("CompiledMethod", handlers, "_verified_entry_point")
        }
    };
    Compiled {
        len: asked.size("nmethod"),
        method: asked.offset(method, "_method"),
        deoptimize: handlers.map(|field| asked.offset(method, field)),
        verified_entry: asked.offset("nmethod", entry),
        stub: asked.offset("nmethod", "_stub_offset"),
        parts: parts(asked, is_apart),
        original_pc: asked.offset("nmethod", "_orig_pc_offset"),
        id: asked.offset("nmethod", "_compile_id"),
        pc_len: asked.size("PcDesc"),
        pc_offset: asked.offset("PcDesc", "_pc_offset"),
        pc_scope: asked.offset("PcDesc", "_scope_decode_offset"),
    }
}

fn parts(asked: &mut Asked<'_>, is_apart: bool) -> Parts {
    if !is_apart {
        return Parts::Inside {
            scopes: asked.offset("CompiledMethod", "_scopes_data_begin"),
            metadata: asked.offset("nmethod", "_metadata_offset"),
            pcs: asked.offset("nmethod", "_scopes_pcs_offset"),
            pcs_end: asked.offset("nmethod", "_dependencies_offset"),
        };
    }
    Parts::Apart {
        changing: ["_mutable_data", "_mutable_data_size"]
            .map(|field| asked.offset("CodeBlob", field)),
        relocations: asked.offset("CodeBlob", "_relocation_size"),
        fixed: ["_immutable_data", "_immutable_data_size"]
            .map(|field| asked.offset("nmethod", field)),
        pcs: asked.offset("nmethod", "_scopes_pcs_offset"),
        scopes: asked.offset("nmethod", "_scopes_data_offset"),
    }
}

fn method(asked: &mut Asked<'_>) -> Method {
    Method {
        fixed: asked.offset("Method", "_constMethod"),
        constants: asked.offset("ConstMethod", "_constants"),
        code_size: asked.offset("ConstMethod", "_code_size"),
        name: asked.offset("ConstMethod", "_name_index"),
        code: asked.size("ConstMethod"),
        pool_holder: asked.offset("ConstantPool", "_pool_holder"),
        pool_len: asked.offset("ConstantPool", "_length"),
        pool: asked.size("ConstantPool"),
        class_name: asked.offset("Klass", "_name"),
        symbol_len: asked.offset("Symbol", "_length"),
        symbol: asked.offset("Symbol", "_body"),
    }
}

fn interpreter(asked: &mut Asked<'_>) -> Interpreter {
    Interpreter {
        queue: asked.address("AbstractInterpreter", "_code"),
        buffer: asked.offset("StubQueue", "_stub_buffer"),
        buffer_len: asked.offset("StubQueue", "_buffer_limit"),
        size: asked.offset("InterpreterCodelet", "_size"),
        description: asked.offset("InterpreterCodelet", "_description"),
        header: asked.size("InterpreterCodelet"),
    }
}
