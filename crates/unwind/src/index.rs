//! An index of all frame descriptions of a table, built once where there is no search table.

use flame_profile::ImageAddress;
use gimli::{BaseAddresses, CieOrFde, CommonInformationEntry, UnwindOffset, UnwindSection};

use crate::compile::TableBytes;

/// The frame descriptions of one table, sorted by start.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameIndex {
    entries: Vec<IndexEntry>,
}

#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    start: u64,
    end: u64,
    /// In bytes from the start of the table.
    offset: usize,
}

impl FrameIndex {
    /// Reads the whole table once. Descriptions that cannot be read are left out.
    pub(crate) fn build<'a, S>(table: &S, bases: &BaseAddresses) -> FrameIndex
    where
        S: UnwindSection<TableBytes<'a>>,
        S::Offset: UnwindOffset<usize>,
    {
        let mut entries = Vec::new();
        // Descriptions of one CIE follow each other, so remembering the last one saves most parses.
        let mut last: Option<(S::Offset, CommonInformationEntry<TableBytes<'a>>)> = None;
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
            if let Ok(fde) = parsed {
                let (start, end) = (fde.initial_address(), fde.end_address());
                if start < end {
                    entries.push(IndexEntry { start, end, offset: fde.offset() });
                }
            }
        }
        entries.sort_by_key(|entry| entry.start);
        FrameIndex { entries }
    }

    /// Where the description of the function at `address` is, in bytes from the table's start.
    pub(crate) fn lookup(&self, address: ImageAddress) -> Option<usize> {
        self.entry(address).map(|entry| entry.offset)
    }

    /// Where the function at `address` begins.
    pub(crate) fn start(&self, address: ImageAddress) -> Option<ImageAddress> {
        self.entry(address).map(|entry| ImageAddress(entry.start))
    }

    fn entry(&self, address: ImageAddress) -> Option<&IndexEntry> {
        let after = self.entries.partition_point(|entry| entry.start <= address.0);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (address.0 < entry.end).then_some(entry)
    }
}
