//! Turns the offset of a unit into its root entry and abbreviations, within bounds.

use std::sync::OnceLock;

use gimli::{DebugInfoOffset, Dwarf, Reader as _, Section, Unit};

use super::effort::{Effort, Unreadable};
use crate::debug_info::Reader;
use crate::split::{Skeleton, SplitUnits};

/// How many times over all abbreviations may be read. Compilers give each unit its own; units that
/// refer to each other open some of them several times.
const ABBREVIATION_READS: u64 = 64;

/// Steps that the entries of a file may cost, for each byte of them. An attribute takes one, and most
/// have a byte at least.
const STEPS_A_BYTE: u64 = 8;

/// Rows of line programs, for each byte of these. An instruction makes one at most; damage makes many
/// units share one program.
const ROWS_A_BYTE: u64 = 8;

/// How many bytes of split units are read for one image. Each is read once, unless damage makes
/// several skeletons name one of them.
const MAX_SPLIT_LEN: u64 = 4 << 30;

/// The units of a file.
pub(crate) struct Opener<'d> {
    dwarf: Dwarf<Reader<'d>>,
    effort: Effort,
    walking: Effort,
    rows: Effort,
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
        let walking = Effort::for_bytes(dwarf.debug_info.reader().len(), STEPS_A_BYTE);
        let rows = Effort::for_bytes(dwarf.debug_line.reader().len(), ROWS_A_BYTE);
        let split_effort = Effort::new(MAX_SPLIT_LEN);
        Opener { dwarf, effort, walking, rows, supplement: OnceLock::new(), split, split_effort }
    }

    /// The sections.
    pub(crate) fn dwarf(&self) -> &Dwarf<Reader<'d>> {
        &self.dwarf
    }

    /// What reading the entries of all units may cost.
    pub(super) fn walking(&self) -> &Effort {
        &self.walking
    }

    /// What the lines of all units may cost.
    pub(super) fn rows(&self) -> &Effort {
        &self.rows
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

/// The length in bytes of the table that abbreviations start with; all of them where it does not
/// end.
fn abbreviations_len(mut table: Reader<'_>) -> usize {
    let whole = table.len();
    let mut scan = || -> gimli::Result<()> {
        while table.read_uleb128()? != 0 {
            table.read_uleb128()?;
            table.read_u8()?;
            loop {
                let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
                if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                    table.read_sleb128()?;
                }
                if (name, form) == (0, 0) {
                    break;
                }
            }
        }
        Ok(())
    };
    let ended = scan().is_ok();
    if ended { whole - table.len() } else { whole }
}

#[cfg(test)]
mod tests {
    use gimli::RunTimeEndian;

    use super::*;

    #[test]
    fn a_table_ends_at_its_zero() {
        // 1: compile unit with children, a name (string) and a constant 300; 2: without attributes.
        let table = b"\x01\x11\x01\x03\x08\x13\x21\xac\x02\0\0\x02\x2e\0\0\0\0\x01\x02";
        let len = |bytes| abbreviations_len(Reader::new(bytes, RunTimeEndian::Little));
        assert_eq!(len(table), 17);
        for cut in 0..17 {
            assert_eq!(len(&table[..cut]), cut);
        }
    }
}
