//! Turns an image into the DWARF sections that say something about functions and lines.
//!
//! What they say is read in [`crate::units`].
//!
//! Sources: DWARF 5, section 7.

use flame_profile::SharedBytes;
use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::Object;

use crate::image::ImageFile;

/// Bytes of DWARF that others own.
pub(crate) type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The DWARF sections of an image, decompressed where needed.
pub(crate) struct DebugInfo {
    sections: DwarfSections<SharedBytes>,
    endian: RunTimeEndian,
}

impl DebugInfo {
    /// The sections, if the image has debug information at all.
    pub(crate) fn load(image: &ImageFile) -> Option<DebugInfo> {
        let is_little = image.elf()?.is_little_endian();
        image.section(".debug_info").filter(|info| !info.bytes.is_empty())?;
        let load = |id: SectionId| -> Result<SharedBytes, std::convert::Infallible> {
            let section = is_used(id).then(|| image.section(id.name())).flatten();
            Ok(section.map(|section| section.bytes).unwrap_or_default())
        };
        let Ok(sections) = DwarfSections::load(load);
        let endian = if is_little { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Some(DebugInfo { sections, endian })
    }

    /// The sections as DWARF.
    pub(crate) fn dwarf(&self) -> Dwarf<Reader<'_>> {
        self.sections.borrow(|bytes| EndianSlice::new(bytes, self.endian))
    }
}

/// Whether a section says anything about functions or lines. The others need not be decompressed,
/// which takes most of the time when few addresses are asked for.
fn is_used(section: SectionId) -> bool {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes};
    let unused = [DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes];
    !unused.contains(&section)
}
