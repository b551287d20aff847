//! A row of call frame information, compiled: how to get from a frame to its caller.

use std::ops::Range;

/// The most registers that a [`ShortRow`] restores: x19 to x30 on AArch64.
pub(crate) const SHORT_ROW_SAVES: usize = 12;

/// What the tables say of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Nothing: no table covers it, or what does cannot be understood.
    NoInfo,
    /// The function has no caller: its return address is marked as undefined.
    Outermost,
    /// Nothing called from there, although it is a return address: the kernel or a runtime has
    /// put the start of a function in its place, which is to be looked up as it is.
    NotCalled,
    /// The function runs others on another stack than its own caller's, and no table says where that
    /// one stands.
    OtherStack,
    /// The usual form.
    Short(ShortRow),
    /// Anything else: a position among the long rows of the cache that the row came from.
    Long(u32),
}

/// The form of nearly all rows: the canonical frame address (CFA) is a register and an offset, and
/// all that was saved lies in words at fixed distances from it. Small, because tens of thousands
/// of these are kept and each frame of each sample reads one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortRow {
    pub(crate) cfa_register: u8,
    /// How many of `saved` are in use.
    pub(crate) saves: u8,
    /// In bytes.
    pub(crate) cfa_offset: i32,
    /// Registers that were saved.
    pub(crate) saved: [u8; SHORT_ROW_SAVES],
    /// Where each of them lies, in words of 8 bytes from the CFA.
    pub(crate) word_offsets: [i16; SHORT_ROW_SAVES],
}

/// A row of any form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongRow {
    pub(crate) cfa: Cfa,
    /// Rules of tracked registers that differ from the default; each register at most once.
    pub(crate) rules: Vec<(u8, Rule)>,
    /// The register that holds the return address after the rules were applied.
    pub(crate) return_address: u8,
    /// The frame was made by the kernel to call a signal handler: all registers of the caller are
    /// as they were, and its address is that of the interrupted instruction.
    pub(crate) signal_frame: bool,
    /// The table that expressions lie in.
    pub(crate) table: Table,
}

/// A table of call frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// `.eh_frame`
    EhFrame,
    /// `.debug_frame`
    DebugFrame,
}

/// How to compute the canonical frame address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// A register plus an offset in bytes.
    Register(u8, i64),
    /// The value of an expression: its bytes in the table.
    Expression(Range<usize>),
}

/// How to find the value that a register had in the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Lost.
    Undefined,
    /// As it is.
    SameValue,
    /// In the word at the CFA plus that many bytes.
    Offset(i64),
    /// The CFA plus that many bytes itself.
    ValOffset(i64),
    /// In another register.
    Register(u8),
    /// In the word at the address that the expression computes.
    Expression(Range<usize>),
    /// The value that the expression computes.
    ValExpression(Range<usize>),
}
