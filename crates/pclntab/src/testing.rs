//! A small table of each layout, for tests and as a seed for fuzzing.

use flame_profile::{ImageAddress, SharedBytes};

use crate::table::{GoTable, InlineTrees};

/// Where the code of a sample starts.
pub const TEXT: u64 = 0x1000;

/// Where its trees of inlined calls are.
const TREES: u64 = 0x9000;

/// A layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the versions of Go that began them")]
pub enum Sample {
    Go116,
    Go118,
    Go120,
}

impl Sample {
    /// All layouts.
    pub const ALL: [Sample; 3] = [Sample::Go116, Sample::Go118, Sample::Go120];
}

/// A table with what belongs to it.
#[derive(Clone, Debug)]
pub struct SampleTable {
    /// The table.
    pub bytes: Vec<u8>,
    /// One tree of one inlined call.
    pub inlined: InlineTrees,
}

impl SampleTable {
    /// As it is read.
    ///
    /// # Panics
    /// Never: the sample is a table.
    pub fn parse(&self) -> GoTable {
        let table = GoTable::parse(SharedBytes::from(self.bytes.clone()), TEXT);
        table.expect("a sample is a table").with_inlined(self.inlined.clone())
    }
}

const NAMES: &[u8] =
    b"\0main.outer\0main.leaf\0runtime.goexit\0runtime.systemstack\0main.inlined\0";
const FILES: &[u8] = b"/src/main.go\0/src/other.go\0";

/// Places of names, by function.
const FUNCTIONS: [(u32, u8); 4] = [(1, 0), (12, 0), (22, 1), (37, 2)];
const INLINED_NAME: u32 = 57;

/// Where the functions start, and where the last one ends.
const STARTS: [u32; 5] = [0, 0x40, 0x60, 0x70, 0x80];

/// Tables of values, each behind an unused byte at the start: sizes of frames of `outer` and of the
/// others, then files, lines and inlined calls of `outer`.
const VALUES: [&[u8]; 5] = [
    // 0 for 4 bytes, 24 for 0x38, 0 for 4.
    &[2, 4, 48, 0x38, 47, 4, 0],
    // 0 for 0x20 bytes.
    &[2, 0x20, 0],
    // File 0 for 0x10, 1 for 0x10, 0 for 0x20.
    &[2, 0x10, 2, 0x10, 1, 0x20, 0],
    // Line 10, 21, 12.
    &[22, 0x10, 22, 0x10, 17, 0x20, 0],
    // No call, the first one, none.
    &[0, 0x10, 2, 0x10, 1, 0x20, 0],
];

/// A program of four functions from 0x1000 on: `main.outer` has a frame of 24 bytes and an inlined
/// call from 0x1010 to 0x1020, `main.leaf` neither; `runtime.goexit` and `runtime.systemstack` are
/// flagged as what they are.
pub fn sample_table(sample: Sample) -> SampleTable {
    let mut values = vec![0];
    let mut places = Vec::new();
    for table in VALUES {
        places.push(u32_of(values.len()));
        values.extend(table);
    }
    let units: Vec<u8> = [0, 13_u32].iter().flat_map(|place| place.to_le_bytes()).collect();
    let functions = function_part(sample, &places);

    let head = if sample == Sample::Go116 { 64 } else { 72 };
    let mut parts = [NAMES.to_vec(), units, FILES.to_vec(), values, functions];
    let mut offsets = vec![head];
    for part in &mut parts {
        part.resize(part.len().next_multiple_of(8), 0);
        offsets.push(offsets.last().unwrap_or(&head) + part.len());
    }
    let magic: u32 = match sample {
        Sample::Go116 => 0xffff_fffa,
        Sample::Go118 => 0xffff_fff0,
        Sample::Go120 => 0xffff_fff1,
    };
    let mut bytes = [&magic.to_le_bytes()[..], &[0, 0, 1, 8]].concat();
    let mut words = vec![4, 2];
    if sample != Sample::Go116 {
        words.push(TEXT);
    }
    words.extend(offsets.iter().take(5).map(|offset| u64::from(u32_of(*offset))));
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(parts.concat());

    let call: Vec<u32> = match sample {
        Sample::Go116 | Sample::Go118 => vec![0xffff, 0, 10, INLINED_NAME, 8],
        Sample::Go120 => vec![0, INLINED_NAME, 8, 20],
    };
    let call: Vec<u8> = call.iter().flat_map(|word| word.to_le_bytes()).collect();
    let base = if sample == Sample::Go116 { 0 } else { TREES };
    let inlined =
        InlineTrees { bytes: SharedBytes::from(call), address: ImageAddress(TREES), base };
    SampleTable { bytes, inlined }
}

/// The list of functions by address, and their records.
fn function_part(sample: Sample, places: &[u32]) -> Vec<u8> {
    let is_old = sample == Sample::Go116;
    let word = |value: u64| match is_old {
        true => value.to_le_bytes().to_vec(),
        false => u32_of(value as usize).to_le_bytes().to_vec(),
    };
    let base = if is_old { TEXT } else { 0 };
    let (mut list, mut records) = (Vec::new(), Vec::new());
    let list_len: usize = if is_old { 9 * 8 } else { 40 };
    for (number, (name, flags)) in FUNCTIONS.into_iter().enumerate() {
        let start = base + u64::from(STARTS[number]);
        list.extend(word(start));
        list.extend(word((list_len + records.len()) as u64));
        records.extend(word(start));
        let is_outer = number == 0;
        let table = |index: usize| if is_outer { places[index] } else { 0 };
        let sizes = if is_outer { places[0] } else { places[1] };
        let (tables, data) = if is_outer { (3, 4) } else { (0, 0) };
        let mut fields = vec![name, 0, 0, sizes, table(2), table(3), tables, 0];
        if sample == Sample::Go120 {
            fields.push(9);
        }
        records.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        records.extend([0, flags, 0, data]);
        if is_outer {
            records.extend([0, 0, places[4]].iter().flat_map(|place| place.to_le_bytes()));
            if is_old {
                records.resize((list_len + records.len()).next_multiple_of(8) - list_len, 0);
                records.extend([0, 0, 0, TREES].iter().flat_map(|place| place.to_le_bytes()));
            } else {
                let none = u32::MAX;
                records.extend([none, none, none, 0].iter().flat_map(|p| p.to_le_bytes()));
            }
        }
        records.resize(records.len().next_multiple_of(8), 0);
    }
    list.extend(word(base + u64::from(STARTS[4])));
    list.resize(list_len, 0);
    list.extend(records);
    list
}

fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
