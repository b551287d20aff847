//! Images: ELF files in, and what they hold out, for who unwinds and who symbolizes.
//!
//! [`ImageFile`] is an ELF file that was mapped as code: its segments, sections, symbols, functions
//! and build id, and the files that hold what was stripped from it. [`FrameFinder`] finds the frame
//! description of an address, by `.eh_frame_hdr` or by an index.
//!
//! Files are hostile until proven otherwise, since a root user points flame at anybody's process:
//! arbitrary bytes give errors or nothing, and what they make flame unpack comes from a [`Budget`].
//!
//! ```no_run
//! use flame_image::ImageFile;
//! use flame_profile::ImageAddress;
//!
//! let libc = ImageFile::open("/lib/x86_64-linux-gnu/libc.so.6".as_ref())?;
//! let start = libc.function_start(ImageAddress(0x9d1a4));
//! assert_eq!(start, Some(ImageAddress(0x9d150)));
//! # Ok::<(), flame_image::ImageError>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod budget;
mod calls;
mod companion;
mod debug_search;
mod disjoint;
mod entry;
mod exported;
mod files;
mod frame_finder;
mod function_offset;
mod function_table;
mod go;
mod image;
mod map_file;
mod notes;
mod plausible;
mod plt;
mod raw_symbol;
mod search_table;
mod symbol_table;
#[doc(hidden)]
pub mod testing;
mod unwind_coverage;

pub use budget::{Budget, DEFAULT_UNPACKED};
pub use companion::{alternate_link, refused_companion};
pub use debug_search::DebugSearch;
pub use disjoint::{Span, flatten};
pub use exported::Exported;
pub use files::{FileAccess, FileStatus, Files, OpenFile, open_found};
pub use frame_finder::FrameFinder;
pub use image::{ImageError, ImageFile, Section, Segment};
pub use notes::build_id_of_notes;
pub use raw_symbol::MAX_NAME_LEN;
pub use symbol_table::{Symbol, SymbolTable};
pub use unwind_coverage::UnwindCoverage;
