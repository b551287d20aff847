//! Unwinding tables that runtimes write into their jitdumps, by the code that they are for.
//!
//! A table is read and given to the unwinder when the first stack goes through its code. Pieces that
//! are the same byte for byte, as CPython's trampolines are, share a module of the unwinder: tables
//! and code are put where each has the same place in it.

use std::collections::BTreeMap;

use flame_image::Section;
use flame_profile::{Bias, ImageAddress, Nanos, ProcessAddress, SharedBytes};
use flame_symbolize::{CodeEntry, CodeUnwinding};
use flame_unwind::{CfiUnwinder, Code, CodeAddress, ModuleId, UnwindSections};
use rustc_hash::FxHashMap;

/// Where code stands in its module: any address but 0, which stands for what linkers dropped.
const MODULE_START: u64 = 0x1_0000;

/// How many pieces of a process are known at most, 80 bytes each.
const MAX_PIECES: usize = 1 << 18;

/// How many bytes of code and tables the unwinder is given at most.
const MAX_BYTES: usize = 64 << 20;

/// The pieces of code of a process that have tables, by their start; they do not overlap.
#[derive(Debug, Default)]
pub(super) struct JitTables {
    pieces: BTreeMap<u64, Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    entry: CodeEntry,
    table: Table,
}

/// What the unwinder has of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Unread,
    Unusable,
    Known(ModuleId),
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLookup {
    /// No piece that was there at the time covers it.
    None,
    /// Its table is to be read first.
    Unread,
    /// This.
    Known(Code),
}

/// Modules of the unwinder by their code and tables, of all processes.
#[derive(Debug, Default)]
pub(super) struct JitModules {
    known: FxHashMap<CodeUnwinding, ModuleId>,
    bytes: usize,
}

impl JitTables {
    /// Takes in what a log says of new code: it takes the place of what was there.
    pub(super) fn note(&mut self, entry: CodeEntry) {
        let (start, end) = (entry.start.0, entry.end.0);
        let before = self.pieces.range(..start).next_back();
        if let Some(at) = before.filter(|(_, piece)| piece.entry.end.0 > start).map(|(at, _)| *at) {
            self.pieces.remove(&at);
        }
        while let Some(at) = self.pieces.range(start..end.max(start)).next().map(|(at, _)| *at) {
            self.pieces.remove(&at);
        }
        if entry.has_unwinding() && start < end && self.pieces.len() < MAX_PIECES {
            self.pieces.insert(start, Piece { entry, table: Table::Unread });
        }
    }

    /// The log was not only appended to: nothing is known any more.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn piece(&self, address: ProcessAddress) -> Option<&Piece> {
        let (_, piece) = self.pieces.range(..=address.0).next_back()?;
        (address < piece.entry.end).then_some(piece)
    }

    /// What is known of an address at a time.
    pub(super) fn lookup(&self, address: ProcessAddress, now: Nanos) -> TableLookup {
        let was_there = |piece: &&Piece| piece.entry.time.is_none_or(|time| time <= now);
        match self.piece(address).filter(was_there) {
            None | Some(Piece { table: Table::Unusable, .. }) => TableLookup::None,
            Some(Piece { table: Table::Unread, .. }) => TableLookup::Unread,
            Some(Piece { table: Table::Known(module), entry }) => {
                let bias = Bias::between(entry.start, ImageAddress(MODULE_START));
                TableLookup::Known(Code::Module(CodeAddress::new(*module, address, bias)))
            }
        }
    }

    /// Gives the table of an address to the unwinder, if that has not been done; `read` reads it.
    pub(super) fn open(
        &mut self,
        address: ProcessAddress,
        read: impl FnOnce(&CodeEntry) -> Option<CodeUnwinding>,
        modules: &mut JitModules,
        unwinder: &mut CfiUnwinder,
    ) {
        let Some((_, piece)) = self.pieces.range_mut(..=address.0).next_back() else { return };
        if piece.table == Table::Unread {
            let module = read(&piece.entry).and_then(|found| modules.module(found, unwinder));
            piece.table = module.map_or(Table::Unusable, Table::Known);
        }
    }
}

impl JitModules {
    fn module(&mut self, found: CodeUnwinding, unwinder: &mut CfiUnwinder) -> Option<ModuleId> {
        if let Some(known) = self.known.get(&found) {
            return Some(*known);
        }
        let len = found.code.len() + found.eh_frame.len();
        if self.bytes + len > MAX_BYTES {
            return None;
        }
        self.bytes += len;
        let section = |offset: u64, bytes: &[u8]| Section {
            address: ImageAddress(MODULE_START.saturating_add(offset)),
            bytes: SharedBytes::from(bytes.to_vec()),
        };
        let module = unwinder.add_module(UnwindSections {
            eh_frame: Some(section(found.eh_frame_at, &found.eh_frame)),
            text: Some(section(0, &found.code)),
            ..UnwindSections::default()
        });
        self.known.insert(found, module);
        Some(module)
    }
}
