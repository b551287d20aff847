//! The sorted table of `.eh_frame_hdr`, searched where it lies.
//!
//! Only the form that linkers write is read: version 1, `.eh_frame`'s address relative to the
//! field itself, a 4-byte count, pairs of 4-byte offsets relative to the section. For any other
//! form, and for a table that does not hold together, an index is built instead.

use flame_profile::ImageAddress;

use crate::image::Section;

/// Version 1; DW_EH_PE_pcrel|sdata4; DW_EH_PE_udata4; DW_EH_PE_datarel|sdata4.
const USUAL_HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// How many entries are compared with their neighbours when a table is opened.
const PROBES: usize = 64;

/// A checked table.
#[derive(Clone, Debug)]
pub(crate) struct SearchTable {
    section: Section,
    /// Where `.eh_frame` is.
    frames: ImageAddress,
    count: usize,
}

/// The function that a table names for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHit {
    /// Where the function starts, as the table says.
    pub(crate) start: ImageAddress,
    /// Where its frame description is, in bytes from the start of `.eh_frame`.
    pub(crate) offset: usize,
}

impl SearchTable {
    /// `None` when the table has an unusual form, is empty, points elsewhere than to `eh_frame`,
    /// or is out of order at one of the places that are looked at.
    pub(crate) fn open(section: &Section, eh_frame: &Section) -> Option<SearchTable> {
        let (header, rest) = section.bytes.split_first_chunk::<12>()?;
        let (form, fields) = header.split_first_chunk::<4>()?;
        let (eh_frame_distance, count) = fields.split_first_chunk::<4>()?;
        let eh_frame_distance = i64::from(i32::from_le_bytes(*eh_frame_distance));
        let count = u32::from_le_bytes(*count.first_chunk()?);
        let named = section.address.0.wrapping_add(4).wrapping_add_signed(eh_frame_distance);
        // A count that exceeds the bytes is cut down to them.
        let count = usize::try_from(count).ok()?.min(rest.len() / 8);
        let table = SearchTable { section: section.clone(), frames: eh_frame.address, count };
        let is_usable = *form == USUAL_HEADER
            && named == eh_frame.address.0
            && count > 0
            && table.looks_sorted();
        is_usable.then_some(table)
    }

    fn looks_sorted(&self) -> bool {
        let entries = self.entries();
        let step = (entries.len() / PROBES).max(1);
        let probes = entries.iter().step_by(step).chain(entries.last()).map(start_of);
        probes.is_sorted()
    }

    /// The last function that starts at or before `address`. Whether it reaches that far only its
    /// frame description tells.
    pub(crate) fn lookup(&self, address: ImageAddress) -> Option<TableHit> {
        let base = self.section.address.0;
        let wanted = i64::try_from(i128::from(address.0) - i128::from(base)).ok()?;
        let entries = self.entries();
        let after = entries.partition_point(|entry| i64::from(start_of(entry)) <= wanted);
        let entry = entries.get(after.checked_sub(1)?)?;
        let frame = base.wrapping_add_signed(i64::from(frame_of(entry)));
        Some(TableHit {
            start: ImageAddress(base.wrapping_add_signed(i64::from(start_of(entry)))),
            offset: usize::try_from(frame.checked_sub(self.frames.0)?).ok()?,
        })
    }

    fn entries(&self) -> &[[u8; 8]] {
        let table = self.section.bytes.get(12..).unwrap_or(&[]);
        let entries = table.as_chunks().0;
        entries.get(..self.count).unwrap_or(entries)
    }
}

fn start_of(entry: &[u8; 8]) -> i32 {
    let [a, b, c, d, ..] = *entry;
    i32::from_le_bytes([a, b, c, d])
}

fn frame_of(entry: &[u8; 8]) -> i32 {
    let [.., a, b, c, d] = *entry;
    i32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use flame_profile::SharedBytes;

    use super::*;

    const HDR: u64 = 0x2000;
    const EH_FRAME: u64 = 0x2100;

    fn hdr(form: [u8; 4], count: u32, entries: &[(i32, i32)]) -> Vec<u8> {
        let mut bytes = form.to_vec();
        bytes.extend(((EH_FRAME - HDR - 4) as i32).to_le_bytes());
        bytes.extend(count.to_le_bytes());
        for (start, frame) in entries {
            bytes.extend(start.to_le_bytes());
            bytes.extend(frame.to_le_bytes());
        }
        bytes
    }

    fn section(address: u64, bytes: Vec<u8>) -> Section {
        Section { address: ImageAddress(address), bytes: SharedBytes::from(bytes) }
    }

    fn open(bytes: Vec<u8>) -> Option<SearchTable> {
        SearchTable::open(&section(HDR, bytes), &section(EH_FRAME, vec![]))
    }

    // Functions at 0x1000, 0x1040 and 0x3000 with descriptions at 0x18, 0x30 and 0x50.
    const ENTRIES: [(i32, i32); 3] = [(-0x1000, 0x118), (-0xfc0, 0x130), (0x1000, 0x150)];

    #[track_caller]
    fn check(address: u64, expect: Option<(u64, usize)>) {
        let table = open(hdr(USUAL_HEADER, 3, &ENTRIES)).unwrap();
        let hit = table.lookup(ImageAddress(address));
        assert_eq!(hit.map(|hit| (hit.start.0, hit.offset)), expect);
    }

    #[test]
    fn the_last_function_that_starts_before_is_found() {
        check(0x0fff, None);
        check(0x1000, Some((0x1000, 0x18)));
        check(0x103f, Some((0x1000, 0x18)));
        check(0x1040, Some((0x1040, 0x30)));
        check(0x2fff, Some((0x1040, 0x30)));
        check(0x3000, Some((0x3000, 0x50)));
        check(u64::MAX, None);
    }

    #[test]
    fn a_count_beyond_the_bytes_is_cut_down() {
        let table = open(hdr(USUAL_HEADER, u32::MAX, &ENTRIES)).unwrap();
        let hit = table.lookup(ImageAddress(0x9000)).unwrap();
        assert_eq!(hit.start, ImageAddress(0x3000));
    }

    #[test]
    fn tables_that_cannot_be_right_are_refused() {
        let out_of_order = [ENTRIES[1], ENTRIES[0], ENTRIES[2]];
        assert!(open(hdr(USUAL_HEADER, 3, &out_of_order)).is_none());
        assert!(open(hdr([1, 0x1b, 0x03, 0x3c], 3, &ENTRIES)).is_none());
        assert!(open(hdr(USUAL_HEADER, 0, &ENTRIES)).is_none());
        let elsewhere = section(EH_FRAME + 8, vec![]);
        let bytes = hdr(USUAL_HEADER, 3, &ENTRIES);
        assert!(SearchTable::open(&section(HDR, bytes), &elsewhere).is_none());
    }

    #[test]
    fn a_table_cut_anywhere_has_only_whole_entries() {
        let bytes = hdr(USUAL_HEADER, 3, &ENTRIES);
        for len in 0..bytes.len() {
            let counted = open(bytes[..len].to_vec()).map(|table| table.entries().len());
            let whole = len.saturating_sub(12) / 8;
            assert_eq!(counted, (whole > 0).then_some(whole), "cut at {len}");
        }
    }
}
