//! What the runtime knows of the module that a table belongs to: where its code starts, and where
//! the trees of inlined calls are.

use flame_profile::ImageAddress;

use crate::header::{Header, Layout};

/// Words of `runtime.moduledata`: the table, then slices of its parts (place, length, capacity).
const TABLE: usize = 0;
const NAMES: usize = 1;
const UNITS: usize = 4;
const FILES: usize = 7;
const VALUES: usize = 10;
const FUNCTIONS: usize = 16;
const FUNCTION_COUNT: usize = 17;
const TEXT: usize = 22;

/// Where the functions' own data begins: from Go 1.20 on, which has two words more for coverage, and from 1.27 on, which has
/// three more for types. There the word behind it is where the table ends; before, it was no place in the table.
const DATA: usize = 40;
const DATA_127: usize = 43;
const TABLE_END: usize = 44;

/// What is read of `runtime.moduledata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleData {
    /// Where the code starts.
    pub text: u64,
    /// What the functions' own data counts from (`go.func.*`); 0 for Go 1.16 and 1.17, whose data
    /// has addresses.
    pub data: u64,
}

impl ModuleData {
    /// How many words are looked at.
    pub const WORDS: usize = 45;

    /// The module data that `word` gives the words of, if it is that of a table that stands at an
    /// address: it says where the parts of the table are, so it can hardly be taken for one.
    pub fn read(
        table: &[u8],
        address: ImageAddress,
        word: impl Fn(usize) -> Option<u64>,
    ) -> Option<ModuleData> {
        let header = Header::parse(table)?;
        let place = |part: usize| address.0.checked_add(u64::try_from(part).ok()?);
        let parts = [
            (TABLE, 0),
            (NAMES, header.names),
            (UNITS, header.units),
            (FILES, header.files),
            (VALUES, header.values),
            (FUNCTIONS, header.function_table),
        ];
        for (index, part) in parts {
            if word(index)? != place(part)? {
                return None;
            }
        }
        // One more than functions: where the last one ends.
        if word(FUNCTION_COUNT)? != u64::try_from(header.functions).ok()?.checked_add(1)? {
            return None;
        }
        let text = word(TEXT)?;
        if header.text != 0 && header.text != text {
            return None;
        }
        let data = match header.layout {
            Layout::Go116 => 0,
            Layout::Go118 => word(38)?,
            Layout::Go120 => {
                let ends = place(header.function_table)?..=place(table.len())?;
                let is_127 = word(TABLE_END).is_some_and(|end| ends.contains(&end));
                word(if is_127 { DATA_127 } else { DATA })?
            }
        };
        Some(ModuleData { text, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sample, sample_table};

    #[test]
    fn module_data_is_told_by_the_places_of_the_parts() {
        for (layout, data) in [(Sample::Go116, 0), (Sample::Go118, 38), (Sample::Go120, 40)] {
            let table = sample_table(layout).bytes;
            let header = Header::parse(&table).unwrap();
            let mut words = [7_u64; ModuleData::WORDS];
            let parts = [
                (0, 0),
                (1, header.names),
                (4, header.units),
                (7, header.files),
                (10, header.values),
            ];
            for (index, part) in parts.into_iter().chain([(16, header.function_table)]) {
                words[index] = 0x5000 + part as u64;
            }
            (words[17], words[22]) = (5, crate::testing::TEXT);
            if data > 0 {
                words[data] = 0x8000;
            }
            let read = |words: &[u64]| {
                ModuleData::read(&table, ImageAddress(0x5000), |index| words.get(index).copied())
            };
            let expect = if data > 0 { 0x8000 } else { 0 };
            assert_eq!(read(&words).map(|found| found.data), Some(expect), "{layout:?}");
            for index in [0, 1, 4, 7, 10, 16, 17] {
                let mut other = words;
                other[index] += 1;
                assert_eq!(read(&other), None, "{layout:?} {index}");
            }
            assert_eq!(read(&words[..22]), None);
            if layout == Sample::Go120 {
                (words[DATA_127], words[TABLE_END]) = (0x9000, 0x5000 + table.len() as u64);
                assert_eq!(read(&words).map(|found| found.data), Some(0x9000));
            }
        }
    }
}
