//! Turns the offset of a unit into its root entry and abbreviations, within bounds.

use std::sync::OnceLock;

use gimli::{DebugInfoOffset, Dwarf, Reader as _, Section, Unit};

use super::abbreviations::abbreviations_len;
use super::effort::{Effort, Unreadable};
use crate::debug_info::Reader;
use crate::split::{Skeleton, SplitUnits};

/// How many times over all abbreviations may be read. Compilers give each unit its own; units that
/// refer to each other open some of them several times.
const ABBREVIATION_READS: u64 = 64;

/// Steps that the entries, lines and ranges of a file may cost, for each byte of them. An attribute,
/// or a row, takes one to read and most have a byte at least; names are read again for each call.
/// Damage makes many units share what is one's.
const STEPS_A_BYTE: u64 = 16;

/// How many bytes of split units are read for one image. Each is read once, unless damage makes
/// several skeletons name one of them.
const MAX_SPLIT_LEN: u64 = 4 << 30;

/// The units of a file.
pub(crate) struct Opener<'d> {
    dwarf: Dwarf<Reader<'d>>,
    effort: Effort,
    walking: Effort,
    /// Where the units of the supplementary file start, sorted.
    supplement: OnceLock<Vec<usize>>,
    split: Option<&'d SplitUnits>,
    split_effort: Effort,
}

impl<'d> Opener<'d> {
    /// Of sections that are mapped or decompressed already; `split` has what skeletons stand for.
    pub(crate) fn new(dwarf: Dwarf<Reader<'d>>, split: Option<&'d SplitUnits>) -> Opener<'d> {
        let len = dwarf.debug_abbrev.reader().len() + dwarf.debug_line.reader().len();
        let effort = Effort::for_bytes(len, ABBREVIATION_READS);
        let walking = Effort::for_bytes(read_len(&dwarf), STEPS_A_BYTE);
        let split_effort = Effort::new(MAX_SPLIT_LEN);
        Opener { dwarf, effort, walking, supplement: OnceLock::new(), split, split_effort }
    }

    /// The sections.
    pub(crate) fn dwarf(&self) -> &Dwarf<Reader<'d>> {
        &self.dwarf
    }

    /// What reading the entries, lines and ranges of all units may cost.
    pub(super) fn walking(&self) -> &Effort {
        &self.walking
    }

    /// The sections that have the unit for which a skeleton stands; `None` without them, and when
    /// too many were read.
    pub(super) fn split_sections(&self, skeleton: Skeleton<'_>) -> Option<Dwarf<Reader<'d>>> {
        let dwarf = self.split?.dwarf(skeleton, &self.dwarf)?;
        self.split_effort.spend(dwarf.debug_info.reader().len()).ok()?;
        Some(dwarf)
    }

    /// Opens the unit that starts at an offset.
    ///
    /// # Errors
    /// When there is none that makes sense, or too many were opened.
    pub(crate) fn open_at(&self, offset: u64) -> Result<Unit<Reader<'d>>, Unreadable> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.open(&self.dwarf, DebugInfoOffset(offset))
    }

    /// Opens the unit of the supplementary file that holds an entry.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn open_supplement(&self, entry: usize) -> Result<Unit<Reader<'d>>, Unreadable> {
        let missing = gimli::Error::NoEntryAtGivenOffset(entry as u64);
        let dwarf = self.dwarf.sup().ok_or(missing)?;
        let starts = self.supplement.get_or_init(|| unit_starts(dwarf));
        let after = starts.partition_point(|start| *start <= entry);
        let start = starts[..after].last().ok_or(missing)?;
        self.open(dwarf, DebugInfoOffset(*start))
    }

    fn open(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        offset: DebugInfoOffset,
    ) -> Result<Unit<Reader<'d>>, Unreadable> {
        let header = dwarf.unit_header(offset)?;
        // Any number of units may share one table, which is parsed for each of them.
        let mut table = *dwarf.debug_abbrev.reader();
        table.skip(header.debug_abbrev_offset().0)?;
        self.effort.spend(abbreviations_len(table))?;
        let unit = dwarf.unit(header)?;
        if let Some(program) = &unit.line_program {
            let header = program.header();
            self.effort.spend(header.file_names().len() + header.include_directories().len())?;
        }
        Ok(unit)
    }
}

fn unit_starts(dwarf: &Dwarf<Reader<'_>>) -> Vec<usize> {
    let mut headers = dwarf.units();
    let next = || headers.next().ok().flatten();
    let offsets = std::iter::from_fn(next).filter_map(|header| header.debug_info_offset());
    offsets.map(|offset| offset.0).collect()
}

/// How many bytes entries, lines and ranges may be in.
pub(super) fn read_len(dwarf: &Dwarf<Reader<'_>>) -> usize {
    dwarf.debug_info.reader().len()
        + dwarf.ranges.debug_ranges().reader().len()
        + dwarf.ranges.debug_rnglists().reader().len()
        + dwarf.debug_line.reader().len()
}
