//! Turns a skeleton into the unit that it stands for, with what is needed to walk that.
//!
//! Sources: DWARF 5, sections 3.1.2 and 3.1.3; GCC's wiki, "DebugFission", for DWARF 4.

use gimli::{DwoId, Unit, UnitRef, UnitType};

use super::effort::Effort;
use super::map::UnitMap;
use super::names::NameReader;
use super::opener::Opener;
use super::text::text;
use crate::debug_info::Reader;
use crate::split::Skeleton;

/// A unit in a file beside the one with its skeleton.
pub(crate) struct SplitUnit<'d> {
    opener: Opener<'d>,
    /// The units of that file; which addresses they own says the file with the skeletons.
    map: UnitMap,
    unit: Unit<Reader<'d>>,
}

impl<'d> SplitUnit<'d> {
    /// The unit for which one stands that `opener` opened; `None` if that is no skeleton, or what
    /// it stands for cannot be found or read.
    pub(crate) fn open(
        opener: &Opener<'d>,
        skeleton: UnitRef<'_, Reader<'d>>,
    ) -> Option<SplitUnit<'d>> {
        let id = skeleton.dwo_id?;
        let file = skeleton.dwo_name().ok().flatten();
        let file = file.and_then(|file| text(skeleton.dwarf, skeleton.unit, file));
        let directory = skeleton.comp_dir.map_or(&[][..], |directory| directory.slice());
        let wanted = Skeleton { id, directory, file: file.unwrap_or_default() };
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
        let map = UnitMap::from_parts(offsets, Vec::new())?;
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

/// Whether a unit with such a header may have that number, which in DWARF 4 an attribute says.
fn may_be(kind: UnitType<usize>, id: DwoId) -> bool {
    match kind {
        UnitType::SplitCompilation(found) => found == id,
        UnitType::Compilation => true,
        _ => false,
    }
}
