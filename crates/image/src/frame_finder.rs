//! Turns an address into the frame description that covers it, in `.eh_frame` or `.debug_frame`.
//!
//! Where the linker sorted `.eh_frame` its table is searched where it lies; elsewhere an index of
//! all descriptions is made when it is first needed.

use std::sync::OnceLock;

use flame_profile::ImageAddress;
use gimli::{BaseAddresses, CieOrFde, CommonInformationEntry, FrameDescriptionEntry, Reader};
use gimli::{UnwindOffset, UnwindSection};

use crate::image::Section;
use crate::search_table::SearchTable;

/// What finds the descriptions of one table. The default has no sorted table, as `.debug_frame`.
#[derive(Debug, Default)]
pub struct FrameFinder {
    sorted: Option<SearchTable>,
    /// Of all descriptions, sorted by start.
    index: OnceLock<Vec<IndexEntry>>,
}

/// A function, and where its description is; 16 bytes, since a file may have millions.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    start: u64,
    /// In bytes, or the most that fits.
    len: u32,
    /// In bytes from the start of the table.
    offset: u32,
}

impl FrameFinder {
    /// For an `.eh_frame`, whose `.eh_frame_hdr` is used if it holds together.
    pub fn new(header: Option<&Section>, eh_frame: &Section) -> FrameFinder {
        let sorted = header.and_then(|header| SearchTable::open(header, eh_frame));
        FrameFinder { sorted, index: OnceLock::new() }
    }

    /// The description of the function that covers `address` in `table`, which is always the same.
    pub fn find<S, R>(
        &self,
        table: &S,
        bases: &BaseAddresses,
        address: ImageAddress,
    ) -> Option<FrameDescriptionEntry<R>>
    where
        S: UnwindSection<R>,
        S::Offset: UnwindOffset<usize>,
        R: Reader<Offset = usize>,
    {
        let description =
            |offset: usize| table.fde_from_offset(bases, offset.into(), S::cie_from_offset).ok();
        if let Some(sorted) = &self.sorted {
            let hit = sorted.lookup(address)?;
            // A search table that disagrees with the description is not to be trusted.
            let found = description(hit.offset).filter(|fde| fde.initial_address() == hit.start.0);
            if let Some(fde) = found {
                return fde.contains(address.0).then_some(fde);
            }
        }
        let index = self.index.get_or_init(|| index(table, bases));
        description(usize::try_from(entry(index, address)?.offset).ok()?)
    }

    /// Where the function that holds `address` begins, as far as that is known without reading
    /// descriptions. A sorted table does not say how far its functions reach.
    pub fn known_start(&self, address: ImageAddress) -> Option<ImageAddress> {
        match &self.sorted {
            Some(sorted) => sorted.lookup(address).map(|hit| hit.start),
            None => entry(self.index.get()?, address).map(|entry| ImageAddress(entry.start)),
        }
    }
}

fn entry(index: &[IndexEntry], address: ImageAddress) -> Option<&IndexEntry> {
    let after = index.partition_point(|entry| entry.start <= address.0);
    let entry = index.get(after.checked_sub(1)?)?;
    (address.0 - entry.start < entry.len.into()).then_some(entry)
}

/// Reads the whole table once. Descriptions that cannot be read are left out.
fn index<S, R>(table: &S, bases: &BaseAddresses) -> Vec<IndexEntry>
where
    S: UnwindSection<R>,
    S::Offset: UnwindOffset<usize>,
    R: Reader<Offset = usize>,
{
    let mut index = Vec::new();
    // Descriptions of one CIE follow each other, so remembering the last one saves most parses.
    let mut last: Option<(S::Offset, CommonInformationEntry<R>)> = None;
    let mut rest = table.entries(bases);
    while let Ok(Some(entry)) = rest.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|table, bases, offset| match &last {
            Some((known, cie)) if *known == offset => Ok(cie.clone()),
            _ => {
                let cie = table.cie_from_offset(bases, offset)?;
                last = Some((offset, cie.clone()));
                Ok(cie)
            }
        });
        let Ok(fde) = parsed else { continue };
        let (start, end) = (fde.initial_address(), fde.end_address());
        if let (true, Ok(offset)) = (start < end, u32::try_from(fde.offset())) {
            let len = u32::try_from(end - start).unwrap_or(u32::MAX);
            index.push(IndexEntry { start, len, offset });
        }
    }
    index.sort_by_key(|entry| (entry.start, entry.len));
    index
}
