//! Turns a skeleton into the unit that it stands for, with what is needed to walk that.
//!
//! Sources: DWARF 5, sections 3.1.2 and 3.1.3; GCC's wiki, "DebugFission", for DWARF 4.

use flame_image::ImageFile;
use gimli::{DwoId, Unit, UnitRef, UnitType};

use super::effort::Effort;
use super::map::UnitMap;
use super::names::NameReader;
use super::opener::Opener;
use super::text::text;
use crate::debug_info::{DebugInfo, Reader};
use crate::split::Skeleton;

/// Skeletons whose split units are looked for when the question is only whether any is missing:
/// one that has lost its object files has lost the first of them as well.
const MAX_SKELETONS: u32 = 256;

/// A unit in a file beside the one with its skeleton.
pub(crate) struct SplitUnit<'d> {
    opener: Opener<'d>,
    /// The units of that file; which addresses they own says the file with the skeletons.
    map: UnitMap,
    unit: Unit<Reader<'d>>,
}

impl<'d> SplitUnit<'d> {
    /// The unit for which one stands that `opener` opened; `None` if that is not a skeleton, or what
    /// it stands for cannot be found or read.
    pub(crate) fn open(
        opener: &Opener<'d>,
        skeleton: UnitRef<'_, Reader<'d>>,
    ) -> Option<SplitUnit<'d>> {
        let wanted = read_skeleton(skeleton)?;
        let id = wanted.id;
        let opener = Opener::new(opener.split_sections(wanted)?, None);
        let mut offsets = Vec::new();
        let mut found = None;
        let mut headers = opener.dwarf().units();
        while let Ok(Some(header)) = headers.next() {
            let offset = header.debug_info_offset()?.0 as u64;
            offsets.push(offset);
            if found.is_none() && may_be(header.type_(), id) {
                found = opener.open_at(offset).ok().filter(|unit| unit.dwo_id == Some(id));
            }
        }
        let mut unit = found?;
        unit.copy_relocated_attributes(skeleton.unit);
        let map = UnitMap::of_starts(offsets);
        Some(SplitUnit { opener, map, unit })
    }

    /// The unit, in its file.
    pub(crate) fn unit(&self) -> UnitRef<'_, Reader<'d>> {
        UnitRef::new(self.opener.dwarf(), &self.unit)
    }

    /// What reading its entries may cost.
    pub(super) fn walking(&self) -> &Effort {
        self.opener.walking()
    }

    /// The names of its entries.
    pub(crate) fn names(&self) -> NameReader<'_, 'd> {
        NameReader::new(&self.opener, &self.map, self.unit())
    }
}

/// The file of the first of the image's split units that cannot be found, among the first
/// [`MAX_SKELETONS`] skeletons; `None` where all are there, or none was split.
pub(crate) fn missing_split_file(image: &ImageFile) -> Option<String> {
    // All that have skeletons have this section, and most others have not.
    if !image.has_section(".debug_addr") {
        return None;
    }
    let info = DebugInfo::load(image)?;
    let opener = Opener::new(info.dwarf(), Some(info.split()));
    let mut headers = opener.dwarf().units();
    let mut skeletons = 0;
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = opener.open_at(header.debug_info_offset()?.0 as u64) else { continue };
        let Some(skeleton) = read_skeleton(UnitRef::new(opener.dwarf(), &unit)) else { continue };
        skeletons += 1;
        if opener.split_sections(skeleton).is_none() {
            return Some(String::from_utf8_lossy(skeleton.file).into_owned());
        }
        if skeletons == MAX_SKELETONS {
            break;
        }
    }
    None
}

/// What a skeleton says of the unit that it stands for; `None` of a unit that is none.
fn read_skeleton<'d>(skeleton: UnitRef<'_, Reader<'d>>) -> Option<Skeleton<'d>> {
    let id = skeleton.dwo_id?;
    let file = skeleton.dwo_name().ok().flatten();
    let file = file.and_then(|file| text(skeleton.dwarf, skeleton.unit, file));
    let directory = skeleton.comp_dir.map_or(&[][..], |directory| directory.slice());
    Some(Skeleton { id, directory, file: file.unwrap_or_default() })
}

/// Whether a unit with such a header may have that number, which in DWARF 4 an attribute says.
fn may_be(kind: UnitType<usize>, id: DwoId) -> bool {
    match kind {
        UnitType::SplitCompilation(found) => found == id,
        UnitType::Compilation => true,
        _ => false,
    }
}
