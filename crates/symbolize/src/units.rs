//! Turns DWARF into what functions are at an address, a unit at a time.
//!
//! The [`map::UnitMap`] says which unit owns an address. Of the units that own one that somebody
//! asks for, addr2line reads functions, inlined calls and lines, and [`names::NameReader`] what the
//! entries that it found are called. Nothing of a unit is kept, so memory grows with the answers and
//! the largest unit, and not with the debug information.
//!
//! DWARF is hostile until proven otherwise: each loop whose length a file can choose takes from an
//! [`effort::Effort`], and so does each read of addr2line's ([`metered`]).
//!
//! Sources: DWARF 5, sections 2.17, 3.3, 6.1.2, 6.2 and 7.5.

mod abbreviations;
mod effort;
mod lookup;
mod map;
mod metered;
mod names;
mod opener;
mod scopes;
mod split_unit;
mod text;

pub(crate) use effort::spent as steps_spent;
pub(crate) use lookup::{DebugFrame, Units, look_up};
pub(crate) use map::{CodeRanges, UnitMap};
pub(crate) use opener::Opener;
pub(crate) use split_unit::missing_split_file;
