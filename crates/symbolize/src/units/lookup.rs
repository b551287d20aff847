//! Turns addresses of one unit into frames, by addr2line.
//!
//! addr2line is given one unit at a time, and everything that it made of it goes with the unit. So
//! memory grows with the largest unit and not with the program, and units are read side by side.

use std::borrow::Cow;
use std::sync::Arc;

use addr2line::{Context, Frame, LookupContinuation as _, LookupResult};
use flame_profile::ImageAddress;
use gimli::{DebugAbbrev, DebugAbbrevOffset, Dwarf, Reader as _, Section, SectionId, UnitRef};

use super::abbreviations::WithoutNames;
use super::effort::{Effort, Unreadable};
use super::map::{CodeRanges, UnitMap};
use super::metered::{Meter, Metered};
use super::names::NameReader;
use super::opener::Opener;
use super::split_unit::SplitUnit;
use crate::debug_info::Reader;

/// How many frames one address has at most; compilers stay below 100.
const MAX_FRAMES: usize = 512;

/// The most functions and inlined calls of one unit: addr2line takes some hundred bytes for each. The
/// largest units that compilers write have some hundred thousand.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Reads of a unit's entries for each byte of them, and some for very small ones. Most take two.
const READS_A_BYTE: usize = 8;
const MIN_READS: usize = 1 << 20;

/// Reads of its lines, each of which may become a row or a part of a file's name. The largest units
/// that compilers write have some hundred thousand rows.
const LINE_READS: usize = 8 << 20;

/// Reads of its lists of ranges; the same.
const RANGE_READS: usize = 4 << 20;

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DebugFrame<'f> {
    /// The linkage name where there is one, else the plain name with its scopes; never empty.
    pub(crate) name: Option<Cow<'f, [u8]>>,
    /// Of the address for the innermost frame, of the call for the others.
    pub(crate) file: Option<&'f str>,
    pub(crate) line: Option<u32>,
}

/// Where units are.
#[derive(Clone, Copy)]
pub(crate) struct Units<'a, 'd> {
    pub(crate) opener: &'a Opener<'d>,
    pub(crate) map: &'a UnitMap,
    pub(crate) code: &'a CodeRanges,
}

/// Says for each of the addresses, in their order, what functions the unit at an offset of
/// `.debug_info` has there, innermost first. A single frame without a name has only a line. Of a
/// skeleton the functions are those of the split unit that it stands for, where that can be found.
///
/// # Errors
/// When the unit cannot be opened or is beyond all bounds; nothing was said then.
pub(crate) fn look_up(
    units: Units<'_, '_>,
    offset: u64,
    addresses: impl Iterator<Item = ImageAddress> + Clone,
    say: impl FnMut(ImageAddress, &[DebugFrame<'_>]),
) -> Result<(), Unreadable> {
    let opener = units.opener;
    let unit = opener.open_at(offset)?;
    let unit = UnitRef::new(opener.dwarf(), &unit);
    let split = SplitUnit::open(opener, unit);
    let (names, entries, effort) = match &split {
        Some(split) => (split.names(), split.unit(), split.walking()),
        None => (NameReader::new(opener, units.map, unit), unit, opener.walking()),
    };
    // Nothing more is read where others have had all.
    effort.spend(1)?;
    let meters = Meters::new(entries, units.code);
    let only = meters.only(unit, effort)?;
    let split = split.as_ref().map(|split| meters.only(split.unit(), effort)).transpose()?;
    let said = say_all(only, split.map(Arc::new), &meters, names, addresses, say);
    effort.charge(meters.spent());
    Ok(said?)
}

fn say_all<'u>(
    only: Dwarf<Metered<'u>>,
    split: Option<Arc<Dwarf<Metered<'u>>>>,
    meters: &Meters<'u>,
    mut names: NameReader<'_, '_>,
    addresses: impl Iterator<Item = ImageAddress> + Clone,
    mut say: impl FnMut(ImageAddress, &[DebugFrame<'_>]),
) -> gimli::Result<()> {
    let context = Context::from_dwarf(only)?;
    meters.entries.drop_other_addresses();
    meters.ranges.drop_other_addresses();
    // Names first, so that the scopes of all are found together; the second time all is known.
    for address in addresses.clone() {
        let places = frames_at(&context, split.as_ref(), address).filter_map(|at| at.dw_die_offset);
        places.for_each(|place| names.read(place.0));
    }
    let names = names.into_names();
    let mut frames = Vec::new();
    for address in addresses {
        frames.clear();
        frames.extend(frames_at(&context, split.as_ref(), address).filter_map(|frame| {
            let name = frame.dw_die_offset.and_then(|at| names.name(at.0));
            let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
            let says_something = frame.dw_die_offset.is_some() || line.is_some();
            says_something.then_some(DebugFrame { name, file, line })
        }));
        say(address, &frames);
    }
    Ok(())
}

/// What addr2line says of an address, innermost first; nothing where that makes no sense.
fn frames_at<'c, 'u>(
    context: &'c Context<Metered<'u>>,
    split: Option<&Arc<Dwarf<Metered<'u>>>>,
    address: ImageAddress,
) -> impl Iterator<Item = Frame<'c, Metered<'u>>> {
    let mut lookup = context.find_frames(address.0);
    let found = loop {
        match lookup {
            LookupResult::Output(found) => break found,
            LookupResult::Load { continuation, .. } => lookup = continuation.resume(split.cloned()),
        }
    };
    let mut found = found.ok();
    std::iter::from_fn(move || found.as_mut()?.next().ok()?).take(MAX_FRAMES)
}

/// Sees that a unit has not too many functions.
///
/// # Errors
/// When it has, or its entries make no sense.
fn count_functions(unit: UnitRef<'_, Reader<'_>>, effort: &Effort) -> Result<(), Unreadable> {
    let (mut entries, mut count) = (unit.entries_raw(None)?, 0);
    while !entries.is_empty() {
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        effort.spend(1 + abbreviation.attributes().len())?;
        let tag = abbreviation.tag();
        let is_function =
            matches!(tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine);
        count += usize::from(is_function);
        if count > MAX_FUNCTIONS {
            return Err(Unreadable::Exhausted);
        }
        entries.skip_attributes(abbreviation.attributes())?;
    }
    Ok(())
}

/// What addr2line may read of one unit.
struct Meters<'u> {
    entries: Meter<'u>,
    lines: Meter<'u>,
    ranges: Meter<'u>,
    /// Before DWARF 5 lists have distances in the place of addresses.
    old_ranges: Meter<'u>,
}

impl<'u> Meters<'u> {
    fn new(entries: UnitRef<'_, Reader<'_>>, code: &'u CodeRanges) -> Meters<'u> {
        let reads = entries.header.length_including_self().saturating_mul(READS_A_BYTE);
        let meters = Meters {
            entries: Meter::new(reads.saturating_add(MIN_READS), code),
            lines: Meter::new(LINE_READS, code),
            ranges: Meter::new(RANGE_READS, code),
            old_ranges: Meter::new(RANGE_READS, code),
        };
        meters.lines.drop_other_addresses();
        meters
    }

    /// How many reads there were.
    fn spent(&self) -> usize {
        let all = [&self.entries, &self.lines, &self.ranges, &self.old_ranges];
        all.into_iter().map(Meter::spent).sum()
    }

    /// The sections of a unit with no other unit in them, and without names.
    ///
    /// # Errors
    /// When it makes no sense, or has too many functions.
    fn only<'d: 'u>(
        &'u self,
        unit: UnitRef<'_, Reader<'d>>,
        effort: &Effort,
    ) -> Result<Dwarf<Metered<'u>>, Unreadable> {
        let dwarf = unit.dwarf;
        let mut info = *dwarf.debug_info.reader();
        info.skip(unit.header.debug_info_offset().map_or(0, |offset| offset.0))?;
        info.truncate(unit.header.length_including_self())?;
        let empty = Reader::new(&[], info.endian());
        let sections = |id: SectionId| {
            let (bytes, meter) = match id {
                SectionId::DebugInfo => (&info, &self.entries),
                SectionId::DebugAddr => (dwarf.debug_addr.reader(), &self.entries),
                SectionId::DebugStr => (dwarf.debug_str.reader(), &self.entries),
                SectionId::DebugStrOffsets => (dwarf.debug_str_offsets.reader(), &self.entries),
                SectionId::DebugLine => (dwarf.debug_line.reader(), &self.lines),
                SectionId::DebugLineStr => (dwarf.debug_line_str.reader(), &self.lines),
                SectionId::DebugRanges => (dwarf.ranges.debug_ranges().reader(), &self.old_ranges),
                SectionId::DebugRngLists => (dwarf.ranges.debug_rnglists().reader(), &self.ranges),
                _ => (&empty, &self.entries),
            };
            Ok::<_, gimli::Error>(Metered::new(*bytes, meter))
        };
        let mut only = Dwarf::load(sections)?;
        only.file_type = dwarf.file_type;
        // Of the file that dwz made only strings are needed, for the directory of the unit.
        if let Some(sup) = dwarf.sup() {
            only.load_sup(|id| {
                let bytes = if id == SectionId::DebugStr { sup.debug_str.reader() } else { &empty };
                Ok::<_, gimli::Error>(Metered::new(*bytes, &self.entries))
            })?;
        }
        let at = unit.header.debug_abbrev_offset();
        let mut table = *dwarf.debug_abbrev.reader();
        table.skip(at.0)?;
        let table = WithoutNames::new(table)?;
        if info.len() / table.shortest_function > MAX_FUNCTIONS {
            count_functions(unit, effort)?;
        }
        let table = DebugAbbrev::from(Reader::new(&table.bytes, info.endian()));
        let abbreviations = table.abbreviations(DebugAbbrevOffset(0))?;
        only.abbreviations_cache.set::<Reader<'_>>(at, Arc::new(abbreviations));
        Ok(only)
    }
}
