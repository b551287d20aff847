//! Turns an image into the DWARF sections that say something about functions and lines: its own,
//! those of the file that `dwz` made, and those of split units.
//!
//! What they say is read in [`crate::units`].
//!
//! Sources: DWARF 5, section 7.

use flame_image::ImageFile;
use flame_profile::SharedBytes;
use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object, ObjectSection};

use crate::split::SplitUnits;

/// The most bytes of memory that all sections of one image may take when they are decompressed,
/// with those that `dwz` moved out of it. Those that are stored as they are need none.
const MAX_DECOMPRESSED: u64 = 512 << 20;

/// Bytes of DWARF that others own.
pub(crate) type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The DWARF sections of an image, decompressed where needed.
pub(crate) struct DebugInfo {
    sections: DwarfSections<SharedBytes>,
    /// What `dwz` moved out of them.
    supplement: Option<DwarfSections<SharedBytes>>,
    split: SplitUnits,
    endian: RunTimeEndian,
}

impl DebugInfo {
    /// The sections, if the image has debug information at all.
    pub(crate) fn load(image: &ImageFile) -> Option<DebugInfo> {
        image.section(".debug_info").filter(|info| !info.bytes.is_empty())?;
        let supplement = image.supplement();
        let images = || std::iter::once(image).chain(supplement);
        let lens = images().flat_map(|i| used_sections().map(|id| decompressed_len(i, id)));
        let len = lens.fold(0, u64::saturating_add);
        if len > MAX_DECOMPRESSED {
            tracing::warn!(?image, len, "debug information left out: too large when decompressed");
            return None;
        }
        let endian = image.endian();
        Some(DebugInfo {
            sections: load_sections(image),
            supplement: supplement.map(load_sections),
            split: SplitUnits::new(image, endian),
            endian,
        })
    }

    /// The sections as DWARF.
    pub(crate) fn dwarf(&self) -> Dwarf<Reader<'_>> {
        let supplement = self.supplement.as_ref();
        self.sections.borrow_with_sup(supplement, |bytes| EndianSlice::new(bytes, self.endian))
    }

    /// Where the units are of which the sections have only skeletons.
    pub(crate) fn split(&self) -> &SplitUnits {
        &self.split
    }
}

fn load_sections(image: &ImageFile) -> DwarfSections<SharedBytes> {
    let load = |id: SectionId| -> Result<SharedBytes, std::convert::Infallible> {
        let is_used = used_sections().any(|used| used == id);
        let section = is_used.then(|| image.section(id.name())).flatten();
        Ok(section.map(|section| section.bytes).unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(load);
    sections
}

/// The sections that say anything about functions or lines. The others need not be decompressed,
/// which takes most of the time when few addresses are asked for.
fn used_sections() -> impl Iterator<Item = SectionId> {
    let entries = [SectionId::DebugInfo, SectionId::DebugAbbrev, SectionId::DebugAddr];
    let ranges = [SectionId::DebugAranges, SectionId::DebugRanges, SectionId::DebugRngLists];
    let lines = [SectionId::DebugLine, SectionId::DebugLineStr];
    let names = [SectionId::DebugStr, SectionId::DebugStrOffsets];
    entries.into_iter().chain(ranges).chain(lines).chain(names)
}

/// How many bytes of memory a section takes when it is read; 0 for one that is only mapped.
fn decompressed_len(image: &ImageFile, id: SectionId) -> u64 {
    let elf = image.elf();
    let section = elf.as_ref().and_then(|elf| elf.section_by_name(id.name()));
    let stored = section.and_then(|section| section.compressed_data().ok());
    let compressed = stored.filter(|stored| stored.format != CompressionFormat::None);
    compressed.map_or(0, |stored| stored.uncompressed_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flame_image::testing::elf::TestElf;

    /// `SHF_COMPRESSED`.
    const COMPRESSED: u64 = 0x800;

    #[test]
    fn sections_that_are_too_large_together_are_not_read() {
        // Each promises 400 MiB: type 1 (zlib), reserved, size, alignment.
        let mut header = [1_u64, 400 << 20, 1].map(u64::to_le_bytes).concat();
        header.extend_from_slice(b"\x78\x9c");
        let loads = |sections: &[(&str, u64, &[u8])]| {
            let elf = TestElf { sections, ..TestElf::default() };
            let image = ImageFile::from_bytes(elf.to_bytes()).unwrap();
            DebugInfo::load(&image).is_some()
        };
        let info = (".debug_info", 0, &[0; 8][..]);
        assert!(loads(&[info]));
        assert!(loads(&[info, (".debug_str", COMPRESSED, &header)]));
        let two = [(".debug_str", COMPRESSED, &header[..]), (".debug_line", COMPRESSED, &header)];
        assert!(!loads(&[info, two[0], two[1]]));
    }
}
