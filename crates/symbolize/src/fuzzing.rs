//! What fuzz targets ask and nobody else: how much work reading DWARF was.

/// How many steps reading DWARF has taken so far, in all threads; 0 where flame is built to ship.
/// Steps take some nanoseconds each, and unlike these do not depend on the machine.
pub fn steps() -> u64 {
    crate::units::steps_spent()
}

/// The most steps that an image of this many bytes may take, with the files that belong to it.
pub fn most_steps(len: usize) -> u64 {
    // Abbreviations 64 times over, entries, lines and ranges 16 times, the roots of units 4 times, and
    // what each kind of work has for very small files, of the image and of dwz's or a split unit's
    // file.
    (len as u64).saturating_mul(2 * (64 + 16 + 4)).saturating_add(32 << 20)
}
