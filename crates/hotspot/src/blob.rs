//! Pieces of code: what each is, and how large its frames are.

use crate::debug_information::DebugInformation;
use crate::layout::Layout;
use crate::memory::{Blocks, Memory, half, short, size, word};
use crate::x86_64::ToInterpreter;

/// The largest piece of code that is read, in bytes, and the largest debug information; compiled methods of
/// 64 KiB of byte code take less.
pub(crate) const LARGEST: u32 = 8 << 20;

/// The largest frame that is believed, in words.
const LARGEST_FRAME: u32 = 1 << 17;

/// The longest name.
const LONGEST_NAME: usize = 100;

/// What a piece of code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A method that was compiled, or the way from Java to one that is not in Java.
    Method(Box<Compiled>),
    /// The interpreter.
    Interpreter,
    /// Routines that the VM makes for itself when it starts; each leaves its frame in its own way.
    Routines,
    /// Ways from interpreted to compiled methods and back, and how it goes back.
    Adapter(Option<ToInterpreter>),
    /// What finds the method of an interface or class and jumps there: it puts nothing on the stack.
    Dispatch,
    /// What the VM itself calls, and puts nothing on the stack.
    Leaf,
    /// What calls the VM from compiled code, and other code with a frame of known size.
    Stub,
}

/// A compiled method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// Its own number; no two that the VM ever makes have the same.
    pub(crate) id: u32,
    pub(crate) method: u64,
    pub(crate) is_native: bool,
    /// Offsets from the beginning of the code: where it is entered once the class of the receiver is known,
    /// and where what follows the method's own code begins.
    pub(crate) verified_entry: u64,
    pub(crate) stub: u64,
    /// Return addresses that stand for others in frames that will go on in the interpreter.
    pub(crate) deoptimize: [u64; 2],
    /// Where such a frame keeps its own, from its stack pointer.
    pub(crate) original_pc: u32,
    /// By offset from the beginning of the code, ascending: where its scopes are described.
    pub(crate) pcs: Vec<(u32, u32)>,
    pub(crate) scopes: Vec<u8>,
    pub(crate) metadata: Vec<u64>,
}

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where the code begins, and its bytes.
    pub(crate) code_begin: u64,
    pub(crate) code: Vec<u8>,
    pub(crate) name: String,
    /// In bytes; 0 = it has none, or of various sizes.
    pub(crate) frame_size: u64,
    /// From where on its frame is complete, as an offset from the beginning of the code; nothing where that
    /// is nowhere sure but behind calls.
    pub(crate) frame_complete: Option<u64>,
    pub(crate) kind: Kind,
    /// What its header said, to see whether it is still the same.
    head: Head,
}

/// What tells pieces of code apart that had the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    name: u64,
    size: u32,
    frame: (u32, u32),
    code: (u64, u64),
    /// The method and the number of its compilation, of what may be a compiled method.
    method: (u64, u32),
}

impl Head {
    fn of(bytes: &[u8], start: u64, layout: &Layout) -> Option<Head> {
        let (of, compiled) = (&layout.blob, &layout.compiled);
        let number = |at| half(bytes, at);
        let place = |at| match of.has_addresses {
            true => word(bytes, at),
            false => start.checked_add(size(bytes, at)?.into()),
        };
        let complete = match of.is_short {
            // All bits are set where it is complete nowhere.
            true => i32::from(short(bytes, of.frame_complete)?.cast_signed()).cast_unsigned(),
            false => number(of.frame_complete)?,
        };
        Some(Head {
            name: word(bytes, of.name)?,
            size: size(bytes, of.size)?,
            frame: (complete, number(of.frame_size)?),
            code: (place(of.code[0])?, place(of.code[1])?),
            method: (
                word(bytes, compiled.method).unwrap_or(0),
                size(bytes, compiled.id).unwrap_or(0),
            ),
        })
    }
}

/// How many bytes of a piece of code are read to see what it is.
fn head_len(layout: &Layout) -> usize {
    layout.blob.len.max(layout.compiled.len) as usize
}

impl Blob {
    /// The piece of code that begins at an address.
    pub(crate) fn read(
        start: u64,
        layout: &Layout,
        memory: &dyn Memory,
        texts: &Blocks<'_>,
    ) -> Option<Blob> {
        let mut bytes = vec![0; layout.blob.len as usize];
        if !memory.read(start, &mut bytes) {
            return None;
        }
        let len = size(&bytes, layout.blob.size).filter(|len| *len <= LARGEST)?;
        let end = start.checked_add(len.into())?;
        bytes = vec![0; (len as usize).max(bytes.len())];
        if !memory.read(start, &mut bytes) {
            return None;
        }
        let head = Head::of(&bytes, start, layout)?;
        let (code_begin, code_end) = head.code;
        if head.size != len || !(start <= code_begin && code_begin <= code_end && code_end <= end) {
            return None;
        }
        let name = texts.text(head.name, LONGEST_NAME)?;
        let at = |address: u64| usize::try_from(address - start).ok();
        let code = bytes.get(at(code_begin)?..at(code_end)?)?.to_vec();
        let (complete, words) = head.frame;
        let complete = u64::from(complete);
        let is_offset = complete <= code_end - code_begin;
        // All bits of a frame's size are set where it has none.
        let words = if words == u32::MAX { 0 } else { words };
        let is_method = matches!(name.as_str(), "nmethod" | "native nmethod");
        let kind = match name.as_str() {
            _ if is_method => {
                let is_native = name == "native nmethod";
                let at = (start, code_begin);
                let compiled = Compiled::of(&bytes, at, layout, memory)?;
                Kind::Method(Box::new(Compiled { is_native, ..compiled }))
            }
            "Interpreter" => Kind::Interpreter,
            "I2C/C2I adapters" => Kind::Adapter(ToInterpreter::of(&code)),
            "vtable chunks" => Kind::Dispatch,
            "flush_icache_stub" => Kind::Leaf,
            name if name.starts_with("StubRoutines") => Kind::Routines,
            _ => Kind::Stub,
        };
        Some(Blob {
            start,
            end,
            code_begin,
            code,
            name,
            frame_size: u64::from((words <= LARGEST_FRAME).then_some(words)?) * 8,
            frame_complete: is_offset.then_some(complete),
            kind,
            head,
        })
    }

    /// Whether another piece of code has taken its place; not so where nothing can be read, since the
    /// process has ended.
    pub(crate) fn is_replaced(&self, layout: &Layout, memory: &dyn Memory) -> bool {
        let len = head_len(layout).min(usize::try_from(self.end - self.start).unwrap_or(0));
        let mut bytes = vec![0; len];
        memory.read(self.start, &mut bytes)
            && Head::of(&bytes, self.start, layout) != Some(self.head)
    }

    /// Whether an address is in its code.
    pub(crate) fn has_code(&self, address: u64) -> bool {
        address.checked_sub(self.code_begin).is_some_and(|offset| offset < self.code.len() as u64)
    }

    /// How far behind the beginning of the code an address is.
    pub(crate) fn offset(&self, address: u64) -> usize {
        usize::try_from(address.wrapping_sub(self.code_begin)).unwrap_or(usize::MAX)
    }

    /// The code from an address on.
    pub(crate) fn code_at(&self, address: u64) -> Option<&[u8]> {
        self.code.get(usize::try_from(address.checked_sub(self.code_begin)?).ok()?..)
    }

    /// The code before an address.
    pub(crate) fn code_before(&self, address: u64) -> Option<&[u8]> {
        self.code.get(..usize::try_from(address.checked_sub(self.code_begin)?).ok()?)
    }

    /// How many bytes it takes here.
    pub(crate) fn size(&self) -> usize {
        let more = match &self.kind {
            Kind::Method(compiled) => {
                compiled.scopes.len() + 8 * (compiled.pcs.len() + compiled.metadata.len())
            }
            _ => 0,
        };
        self.code.len() + more + 256
    }
}

impl Compiled {
    fn of(
        bytes: &[u8],
        (start, code_begin): (u64, u64),
        layout: &Layout,
        memory: &dyn Memory,
    ) -> Option<Compiled> {
        let of = &layout.compiled;
        let DebugInformation { pcs, scopes, metadata } =
            DebugInformation::read(bytes, start, layout, memory)?;
        let entries = pcs.chunks_exact((of.pc_len as usize).max(8));
        // The first and the last bound the others.
        let entry = |entry: &[u8]| Some((size(entry, of.pc_offset)?, size(entry, of.pc_scope)?));
        let pcs: Vec<(u32, u32)> = entries.filter_map(entry).collect();
        if !pcs.is_sorted() {
            return None;
        }
        let [one, other] = of.deoptimize;
        let (verified_entry, deoptimize) = match layout.blob.has_addresses {
            true => {
                let entry = word(bytes, of.verified_entry)?.checked_sub(code_begin)?;
                (entry, [word(bytes, one)?, word(bytes, other)?])
            }
            false => {
                // Negative where there is none.
                let handler = |at| size(bytes, at).map_or(0, |offset| start + u64::from(offset));
                (short(bytes, of.verified_entry)?.into(), [handler(one), handler(other)])
            }
        };
        Some(Compiled {
            id: size(bytes, of.id)?,
            method: word(bytes, of.method)?,
            is_native: false,
            verified_entry,
            stub: (start + u64::from(size(bytes, of.stub)?)).checked_sub(code_begin)?,
            deoptimize,
            original_pc: size(bytes, of.original_pc)?,
            pcs,
            scopes,
            metadata: metadata.chunks_exact(8).filter_map(|bytes| word(bytes, 0)).collect(),
        })
    }
}
