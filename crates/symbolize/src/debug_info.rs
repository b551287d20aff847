//! Turns an image address into the functions that DWARF says are there, inlined ones included.
//!
//! Parsing of DWARF is addr2line's work. What it cannot defend itself against, inlined functions
//! nested so deep that its recursion ends the process, is looked for before it starts.
//!
//! Sources: DWARF 5, sections 2.13 and 3.3.

use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use flame_profile::{ImageAddress, SharedBytes};
use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::Object;

use crate::image::ImageFile;
use crate::split::{Reader, Skeleton, SplitUnits};

/// How deep entries may nest. Compilers stay below 100; addr2line's recursion takes under 2 KiB of
/// stack for each level, and [`crate::symbolize`] gives its threads 16 MiB.
const MAX_NESTING: isize = 2048;

/// The DWARF sections of an image, decompressed where needed.
pub(crate) struct DebugInfo {
    sections: DwarfSections<SharedBytes>,
    /// What `dwz` moved out of them.
    supplement: Option<DwarfSections<SharedBytes>>,
    split: SplitUnits,
    endian: RunTimeEndian,
}

/// What answers for one thread: it keeps what it has parsed.
pub(crate) struct DebugContext<'a> {
    context: Context<Reader<'a>>,
    split: &'a SplitUnits,
}

/// One function at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DebugFrame<'a> {
    /// The linkage name where there is one, else the plain name; mangled.
    pub(crate) name: Option<&'a [u8]>,
    /// The source file.
    pub(crate) file: Option<&'a str>,
    /// The line in it, from 1.
    pub(crate) line: Option<u32>,
}

impl DebugInfo {
    /// The sections, if the image has debug information at all.
    pub(crate) fn load(image: &ImageFile) -> Option<DebugInfo> {
        let is_little = image.elf()?.is_little_endian();
        image.section(".debug_info").filter(|info| !info.bytes.is_empty())?;
        let sections = load_sections(image);
        let supplement = image.supplement().map(load_sections);
        let endian = if is_little { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let split = SplitUnits::new(image, endian);
        let info = DebugInfo { sections, supplement, split, endian };
        nesting_is_bounded(&info.dwarf()).then_some(info)
    }

    /// Reads the roots of all units; `None` when they make no sense.
    pub(crate) fn context(&self) -> Option<DebugContext<'_>> {
        let context = Context::from_dwarf(self.dwarf()).ok()?;
        Some(DebugContext { context, split: &self.split })
    }

    fn dwarf(&self) -> Dwarf<Reader<'_>> {
        let supplement = self.supplement.as_ref();
        self.sections.borrow_with_sup(supplement, |bytes| EndianSlice::new(bytes, self.endian))
    }
}

fn load_sections(image: &ImageFile) -> DwarfSections<SharedBytes> {
    let load = |id: SectionId| -> Result<SharedBytes, std::convert::Infallible> {
        let section = is_used(id).then(|| image.section(id.name())).flatten();
        Ok(section.map(|section| section.bytes).unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(load);
    sections
}

/// Whether no entries nest deeper than a parser's recursion can follow.
fn nesting_is_bounded(dwarf: &Dwarf<Reader<'_>>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(mut entries) = unit.entries_raw(None) else { continue };
        while !entries.is_empty() {
            // Beyond an error addr2line reads no further either.
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            if entries.next_depth() > MAX_NESTING {
                return false;
            }
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
        }
    }
    true
}

/// Whether a section says anything about functions or lines. The others need not be decompressed,
/// which takes most of the time when few addresses are asked for.
fn is_used(section: SectionId) -> bool {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes};
    let unused = [DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes];
    !unused.contains(&section)
}

impl<'a> DebugContext<'a> {
    /// Appends the functions at an address, innermost first; nothing where DWARF knows none. A
    /// single frame without a name has only a line. `out` is cleared first.
    pub(crate) fn frames<'b>(&'b self, address: ImageAddress, out: &mut Vec<DebugFrame<'b>>)
    where
        'a: 'b,
    {
        out.clear();
        let mut lookup = self.context.find_frames(address.0);
        let found = loop {
            match lookup {
                LookupResult::Output(found) => break found,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split_unit(&load));
                }
            }
        };
        let Ok(mut frames) = found else { return };
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location;
            out.push(DebugFrame {
                name: frame.function.map(|function| function.name.slice()),
                file: location.as_ref().and_then(|location| location.file),
                line: location.and_then(|location| location.line).filter(|line| *line > 0),
            });
        }
    }

    /// The rest of a unit of which this file has only the skeleton. Without it only lines are known.
    fn split_unit(&self, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<Dwarf<Reader<'a>>>> {
        let bytes = |reader: Option<Reader<'a>>| reader.map_or(&[][..], |reader| reader.slice());
        let (directory, file) = (bytes(load.comp_dir), bytes(load.path));
        let skeleton = Skeleton { id: load.dwo_id, directory, file };
        self.split.dwarf(skeleton, &load.parent).filter(|dwarf| nesting_is_bounded(dwarf))
    }
}
