//! What a table says of one function.

use std::ops::Range;

use flame_profile::ImageAddress;

use crate::bytes::u32_at;
use crate::header::Layout;

/// The function is the first of its stack: nothing called it.
const TOP_FRAME: u8 = 1;

/// The function writes the stack pointer in ways that its table cannot say.
const WRITES_STACK_POINTER: u8 = 2;

/// Functions that leave their stack for good, or that start one: what Go's own tracebacks end at.
/// Flags say so from Go 1.17 on, but not of `mcall` and `morestack`.
const OUTERMOST: [&[u8]; 5] = [
    b"runtime.goexit",
    b"runtime.mstart",
    b"runtime.rt0_go",
    b"runtime.mcall",
    b"runtime.morestack",
];

/// The same names as assembly has them.
const ASSEMBLY_SUFFIX: &[u8] = b".abi0";

/// Functions that go on on another stack and come back, by name for Go 1.16.
const SWITCHES: [&[u8]; 4] =
    [b"runtime.systemstack", b"runtime.asmcgocall", b"runtime.cgocallback", b"runtime.gogo"];

/// A handler of signals. It is called by the kernel, on a frame that leads to what it interrupted.
const SIGNAL_HANDLERS: [&[u8]; 2] = [b"runtime.sigtramp", b"runtime.cgoSigtramp"];

/// The record of a function, with what is asked for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoFunction<'t> {
    /// First address.
    pub start: ImageAddress,
    /// End, exclusive: where the next function begins, padding included.
    pub end: ImageAddress,
    /// Its name with its package, as Go's profiles have it (`net/http.(*Server).Serve`); empty
    /// where the table has none. Type arguments are `[...]`.
    pub name: &'t [u8],
    pub(crate) record: Record,
}

/// What a function does to the stack that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSwitch {
    /// Nothing but to make its own frame.
    None,
    /// It is the first function of a stack, or has left another one for good.
    Outermost,
    /// It runs others on another stack than its callers': what lies below its frame is not its
    /// caller.
    Elsewhere,
}

/// The fixed part of a record, with places of tables in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: u32,
    pub(crate) stack_sizes: u32,
    pub(crate) files: u32,
    pub(crate) lines: u32,
    pub(crate) unit: u32,
    pub(crate) flags: u8,
    /// Tables of other values, of 4 bytes each.
    pub(crate) tables: Range32,
    /// Other data, of 8 bytes each in Go 1.16 and 1.17, else of 4.
    pub(crate) data: Range32,
}

/// A start and a count; `Range` is not `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range32 {
    /// In bytes from the start of the part of the functions.
    pub(crate) start: usize,
    pub(crate) count: usize,
}

impl Record {
    /// The record at a place in the part of the functions.
    pub(crate) fn parse(functions: &[u8], at: usize, layout: Layout) -> Option<Record> {
        let (entry_len, tail) = match layout {
            Layout::Go116 => (8, 36),
            Layout::Go118 => (4, 36),
            Layout::Go120 => (4, 40),
        };
        let number = |index: usize| {
            let at = at.checked_add(entry_len)?.checked_add(4 * index)?;
            u32_at(functions, at)
        };
        let end = at.checked_add(entry_len)?.checked_add(tail)?;
        let [_id, flags, _, data_count] = *functions.get(end.checked_sub(4)?..end)? else {
            return None;
        };
        let count = usize::try_from(number(6)?).ok()?;
        let tables = Range32 { start: end, count };
        let mut data = end.checked_add(count.checked_mul(4)?)?;
        if layout == Layout::Go116 {
            data = data.checked_next_multiple_of(8)?;
        }
        Some(Record {
            name: number(0)?,
            stack_sizes: number(3)?,
            files: number(4)?,
            lines: number(5)?,
            unit: number(7)?,
            flags,
            tables,
            data: Range32 { start: data, count: data_count.into() },
        })
    }
}

impl GoFunction<'_> {
    /// How far it reaches.
    pub fn range(&self) -> Range<ImageAddress> {
        self.start..self.end
    }

    /// What it does to the stack that it runs on.
    pub fn stack_switch(&self) -> StackSwitch {
        let name = self.name.strip_suffix(ASSEMBLY_SUFFIX).unwrap_or(self.name);
        if SIGNAL_HANDLERS.contains(&name) {
            return StackSwitch::None;
        }
        if self.record.flags & TOP_FRAME != 0 || OUTERMOST.contains(&name) {
            return StackSwitch::Outermost;
        }
        if self.record.flags & WRITES_STACK_POINTER != 0 || SWITCHES.contains(&name) {
            return StackSwitch::Elsewhere;
        }
        StackSwitch::None
    }
}
