//! The head of a table: which version of Go wrote it, and where its parts begin.

use memchr::memmem;

use crate::bytes::{u32_at, u64_at, usize_at};

/// How a version of Go lays the table out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// 1.16 and 1.17: addresses of 8 bytes.
    Go116,
    /// 1.18 and 1.19: offsets of 4 bytes from the start of the code.
    Go118,
    /// 1.20 and later: functions know their first line, inlined calls have another form.
    Go120,
}

/// What the head says. All places are in bytes from the start of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) layout: Layout,
    /// All distances between instructions are multiples of it: 1 on x86-64, 4 on arm64.
    pub(crate) quantum: u8,
    pub(crate) functions: usize,
    /// Where the code starts; 0 where the loader writes it, and in Go 1.26, which left it out.
    pub(crate) text: u64,
    pub(crate) names: usize,
    /// Which files a unit has.
    pub(crate) units: usize,
    pub(crate) files: usize,
    /// Tables of values: lines, files, sizes of frames.
    pub(crate) values: usize,
    /// Functions by address, and what is known of each.
    pub(crate) function_table: usize,
}

/// What a table begins with, but for the distance between instructions and the size of addresses.
const MAGICS: [(u32, Layout); 3] =
    [(0xffff_fffa, Layout::Go116), (0xffff_fff0, Layout::Go118), (0xffff_fff1, Layout::Go120)];

/// Linkers align the table to 32 bytes; 8 is what its own words need.
const ALIGNMENT: usize = 8;

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
        let magic = u32_at(bytes, 0)?;
        let (_, layout) = *MAGICS.iter().find(|(known, _)| *known == magic)?;
        let [0, 0, quantum @ (1 | 4), 8] = *bytes.get(4..8)?.first_chunk::<4>()? else {
            return None;
        };
        let text = if layout == Layout::Go116 { 0 } else { u64_at(bytes, 24)? };
        let places = if layout == Layout::Go116 { 24 } else { 32 };
        let place = |number: usize| usize_at(bytes, places + 8 * number);
        let header = Header {
            layout,
            quantum,
            functions: usize_at(bytes, 8)?,
            text,
            names: place(0)?,
            units: place(1)?,
            files: place(2)?,
            values: place(3)?,
            function_table: place(4)?,
        };
        header.is_plausible(bytes.len(), places + 8 * 5).then_some(header)
    }

    /// Whether the parts are there, in their order.
    fn is_plausible(&self, len: usize, head: usize) -> bool {
        let places =
            [head, self.names, self.units, self.files, self.values, self.function_table, len];
        let entries = self.functions.checked_mul(self.entry_len());
        let end = entries.and_then(|entries| entries.checked_add(self.function_table));
        self.functions > 0 && places.is_sorted() && end.is_some_and(|end| end <= len)
    }

    /// How many bytes a function takes in the list by address.
    pub(crate) fn entry_len(&self) -> usize {
        if self.layout == Layout::Go116 { 16 } else { 8 }
    }
}

/// Whether bytes begin as a table does.
pub fn looks_like_table(bytes: &[u8]) -> bool {
    Header::parse(bytes).is_some()
}

/// Where a table begins among bytes whose first one is at a multiple of 8: for images whose
/// sections have no names.
pub fn find_table(bytes: &[u8]) -> Option<usize> {
    let found = MAGICS.iter().filter_map(|(magic, _)| {
        let mut start = [0; 6];
        start[..4].copy_from_slice(&magic.to_le_bytes());
        let places = memmem::find_iter(bytes, &start);
        places
            .filter(|at| at % ALIGNMENT == 0)
            .find(|at| bytes.get(*at..).is_some_and(looks_like_table))
    });
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sample, sample_table};

    #[test]
    fn a_head_cut_anywhere_is_none() {
        for layout in Sample::ALL {
            let bytes = sample_table(layout).bytes;
            assert!(Header::parse(&bytes).is_some(), "{layout:?}");
            let head = Header::parse(&bytes).unwrap().names;
            for len in 0..head {
                assert_eq!(Header::parse(&bytes[..len]), None, "{layout:?} {len}");
            }
        }
    }

    #[test]
    fn other_heads_are_refused() {
        let good = sample_table(Sample::Go118).bytes;
        for (at, byte) in [(0, 0xfb), (4, 1), (6, 3), (7, 4), (14, 1), (38, 1), (70, 1)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert_eq!(Header::parse(&bytes), None, "{at}");
        }
    }

    #[test]
    fn a_table_is_found_by_its_first_bytes() {
        let table = sample_table(Sample::Go120).bytes;
        let mut bytes = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        bytes.resize(64, 0);
        bytes.extend(&table);
        assert_eq!(find_table(&bytes), Some(64));
        assert_eq!(find_table(&bytes[4..]), None, "not aligned");
        assert_eq!(find_table(&bytes[..64]), None);
    }
}
