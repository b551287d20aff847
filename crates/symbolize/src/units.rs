//! Turns DWARF into tables, one for each unit, that answer what functions are at an address.
//!
//! Only the units that own an address somebody asks for are read, each in one pass over its entries
//! and its line program; the result is a [`table::UnitTable`], a few percent of the size of what it
//! was made from, and nothing else of the unit is kept. So memory grows with the answers and not
//! with the debug information, and a table can be stored for the next time.
//!
//! DWARF is hostile until proven otherwise: nothing recurses, and each loop whose length a file can
//! choose takes from an [`effort::Effort`].
//!
//! Sources: DWARF 5, sections 2.17, 3.3, 6.1.2, 6.2 and 7.5.

mod build;
mod effort;
mod file_names;
mod lines;
mod map;
mod names;
mod opener;
mod scopes;
mod split_unit;
mod strings;
pub(crate) mod table;
mod text;
mod walk;

pub(crate) use build::{Built, build_unit};
pub(crate) use effort::spent as steps_spent;
pub(crate) use map::{CodeRanges, UnitMap};
pub(crate) use opener::Opener;
pub(crate) use split_unit::missing_split_file;
pub(crate) use strings::{StringId, Strings};
