//! One image's tables: which row covers an address.

use std::fmt;
use std::ops::Range;

use flame_image::{FrameFinder, Section};
use flame_pclntab::GoTable;
use flame_profile::ImageAddress;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian, UnwindContext};
use gimli::{UnwindOffset, UnwindSection, Vendor};

use crate::arch::Architecture;
use crate::compile::{Compiled, TableBytes, compile};
use crate::go_frames;
use crate::row::Table;
use crate::section::UnwindSections;

/// How far beyond the entry point an address counts as its function, which no table measures: the
/// entry code of C libraries is 30 to 60 bytes long.
const ENTRY_CODE_LEN: u64 = 64;

/// The sections of an image, with what is needed to search them.
pub(crate) struct Module {
    architecture: Architecture,
    sections: UnwindSections,
    bases: BaseAddresses,
    eh_frames: FrameFinder,
    debug_frames: FrameFinder,
}

impl Module {
    pub(crate) fn new(architecture: Architecture, sections: UnwindSections) -> Module {
        let mut bases = BaseAddresses::default();
        if let Some(hdr) = &sections.eh_frame_hdr {
            bases = bases.set_eh_frame_hdr(hdr.address.0);
        }
        if let Some(eh_frame) = &sections.eh_frame {
            bases = bases.set_eh_frame(eh_frame.address.0);
        }
        if let Some(text) = &sections.text {
            bases = bases.set_text(text.address.0);
        }
        let (header, eh_frame) = (sections.eh_frame_hdr.as_ref(), sections.eh_frame.as_ref());
        let eh_frames = eh_frame.map(|frames| FrameFinder::new(header, frames)).unwrap_or_default();
        Module { architecture, sections, bases, eh_frames, debug_frames: FrameFinder::default() }
    }

    /// The executable bytes.
    pub(crate) fn text(&self) -> Option<&Section> {
        self.sections.text.as_ref()
    }

    /// Where the function that holds `address` begins, by `.eh_frame`.
    pub(crate) fn function_start(&self, address: ImageAddress) -> Option<ImageAddress> {
        self.eh_frames.known_start(address)
    }

    /// The same with its end.
    pub(crate) fn function_range(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        let description = self.eh_frames.find(&self.eh_frame()?, &self.bases, address)?;
        let (start, end) = (description.initial_address(), description.end_address());
        Some(ImageAddress(start)..ImageAddress(end))
    }

    /// Whether a return address stands behind no call at all, but at the start of a function: of
    /// one that ends signal handlers, which the kernel makes them return to, or of one that a
    /// runtime names as the caller when it changes stacks (`runtime.systemstack_switch` of Go).
    pub(crate) fn is_start_without_call(
        &self,
        address: ImageAddress,
        context: &mut UnwindContext<usize>,
    ) -> bool {
        let facts = self.architecture.facts();
        let Some((before, at)) = self.text().and_then(|text| text.split_at(address)) else {
            // Without its code a table can still name a frame of the kernel's making.
            return self.row(address, context).is_some_and(|row| row.is_signal_frame());
        };
        (facts.is_signal_return)(at)
            || self.row(address, context).is_some_and(|row| row.is_signal_frame())
            || (!(facts.ends_with_call)(before) && self.starts_function(address))
    }

    fn starts_function(&self, address: ImageAddress) -> bool {
        let go_start = |table: &GoTable| table.function(address).map(|function| function.start);
        self.function_start(address) == Some(address)
            || self.sections.go_table.as_deref().and_then(go_start) == Some(address)
            || self.debug_frames.known_start(address) == Some(address)
    }

    /// The table of a program of Go.
    pub(crate) fn go_table(&self) -> Option<&GoTable> {
        self.sections.go_table.as_deref()
    }

    /// Whether `address` is in the code at the entry point.
    pub(crate) fn is_entry(&self, address: ImageAddress) -> bool {
        let distance = self.sections.entry.and_then(|entry| address.0.checked_sub(entry.0));
        distance.is_some_and(|distance| distance < ENTRY_CODE_LEN)
    }

    /// The bytes of an expression of a row of this module.
    pub(crate) fn expression(&self, table: Table, range: std::ops::Range<usize>) -> Option<&[u8]> {
        let section = match table {
            Table::EhFrame => self.sections.eh_frame.as_ref(),
            Table::DebugFrame => self.sections.debug_frame.as_ref(),
        };
        section?.bytes.get(range)
    }

    /// What the tables say of `address`; `None` when nothing, or nothing that makes sense.
    pub(crate) fn row(
        &self,
        address: ImageAddress,
        context: &mut UnwindContext<usize>,
    ) -> Option<Compiled> {
        self.eh_frame_row(address, context)
            .or_else(|| self.go_row(address))
            .or_else(|| self.debug_frame_row(address, context))
    }

    fn eh_frame_row(
        &self,
        address: ImageAddress,
        context: &mut UnwindContext<usize>,
    ) -> Option<Compiled> {
        self.table_row(&self.eh_frame()?, &self.eh_frames, Table::EhFrame, address, context)
    }

    fn eh_frame(&self) -> Option<EhFrame<TableBytes<'_>>> {
        let section = self.sections.eh_frame.as_ref()?;
        let mut table = EhFrame::new(&section.bytes, LittleEndian);
        table.set_address_size(8);
        table.set_vendor(vendor(self.architecture));
        Some(table)
    }

    fn go_row(&self, address: ImageAddress) -> Option<Compiled> {
        go_frames::row(self.sections.go_table.as_ref()?, address, self.architecture.facts())
    }

    fn debug_frame_row(
        &self,
        address: ImageAddress,
        context: &mut UnwindContext<usize>,
    ) -> Option<Compiled> {
        let section = self.sections.debug_frame.as_ref()?;
        let mut table = DebugFrame::new(&section.bytes, LittleEndian);
        table.set_address_size(8);
        table.set_vendor(vendor(self.architecture));
        self.table_row(&table, &self.debug_frames, Table::DebugFrame, address, context)
    }

    fn table_row<'a, S>(
        &self,
        table: &S,
        finder: &FrameFinder,
        kind: Table,
        address: ImageAddress,
        context: &mut UnwindContext<usize>,
    ) -> Option<Compiled>
    where
        S: UnwindSection<TableBytes<'a>>,
        S::Offset: UnwindOffset<usize>,
    {
        let fde = finder.find(table, &self.bases, address)?;
        let row = fde.unwind_info_for_address(table, &self.bases, context, address.0).ok()?;
        compile(row, fde.cie(), kind, self.architecture.facts())
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("sections", &self.sections).finish_non_exhaustive()
    }
}

fn vendor(architecture: Architecture) -> Vendor {
    match architecture {
        Architecture::X86_64 => Vendor::Default,
        Architecture::Aarch64 => Vendor::AArch64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MAIN, TESTED, X86_64, debug_section, image};

    #[test]
    fn functions_start_where_a_table_says_and_the_entry_where_the_file_says() {
        let entry = Some(ImageAddress(TESTED));
        let sections = UnwindSections { entry, ..image(X86_64, &[]) };
        let module = Module::new(Architecture::X86_64, sections);
        assert!(module.starts_function(ImageAddress(MAIN)));
        assert!(!module.starts_function(ImageAddress(MAIN + 1)));
        // A table without an index names the starts of functions once it was searched.
        let debug_frame = Some(debug_section(MAIN, &[]));
        let sections = UnwindSections { debug_frame, ..UnwindSections::default() };
        let described = Module::new(Architecture::X86_64, sections);
        assert!(described.row(ImageAddress(MAIN), &mut UnwindContext::new()).is_some());
        assert!(described.starts_function(ImageAddress(MAIN)));
        let is_entry = |distance: u64| module.is_entry(ImageAddress(TESTED + distance));
        assert!(is_entry(0) && is_entry(ENTRY_CODE_LEN - 1) && !is_entry(ENTRY_CODE_LEN));
        assert!(!module.is_entry(ImageAddress(TESTED - 1)));
    }
}
