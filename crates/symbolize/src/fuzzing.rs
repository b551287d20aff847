//! What fuzz targets reach and nobody else: readers of bytes that only flame writes.

use flame_profile::{ImageAddress, SharedBytes};

use crate::index_file::IndexFile;
use crate::units::table::UnitTable;

/// The key of indexes that [`read_index`] takes.
pub const INDEX_KEY: &[u8] = b"fuzz";

/// Reads bytes as a table and as an index, all of it, with right checksums put in so that damage
/// gets past them; how many frames and strings there were.
pub fn read_index(bytes: &[u8]) -> usize {
    let mut count = read_table(bytes);
    let mut bytes = bytes.to_vec();
    IndexFile::put_checksums(&mut bytes);
    let Some(index) = IndexFile::parse(SharedBytes::from(bytes), INDEX_KEY) else { return count };
    let map = index.map().unwrap_or_default();
    let (starts, owners) = map.parts();
    for (address, _) in owners {
        count += usize::from(map.owner(ImageAddress(*address)).is_some());
    }
    for unit in (0..starts.len()).filter_map(|unit| u32::try_from(unit).ok()) {
        count += index.table(unit).map_or(0, read_table);
    }
    count + (0..index.string_count()).filter_map(|id| index.string(id)).count()
}

/// How many steps reading DWARF has taken so far, in all threads; 0 where flame is built to ship.
/// Steps take some nanoseconds each, and unlike these do not depend on the machine.
pub fn steps() -> u64 {
    crate::units::steps_spent()
}

/// The most steps that an image of so many bytes may take, with the files that belong to it.
pub fn most_steps(len: usize) -> u64 {
    // Abbreviations 64 times over, entries and rows 8 times each, and what each kind of work has for
    // very small files, of the image and of dwz's or a split unit's file.
    (len as u64).saturating_mul(2 * (64 + 4 + 8 + 8)).saturating_add(16 << 20)
}

fn read_table(bytes: &[u8]) -> usize {
    let Some(table) = UnitTable::parse(bytes) else { return 0 };
    let mut frames = Vec::new();
    let lowest = table.lowest();
    let near = (0..256).map(|offset| ImageAddress(lowest.wrapping_add(offset)));
    near.map(|address| {
        table.frames(address, &mut frames);
        frames.len()
    })
    .sum()
}

/// A small index, to start from.
pub fn sample_index() -> Vec<u8> {
    crate::index_file::sample(INDEX_KEY)
}
