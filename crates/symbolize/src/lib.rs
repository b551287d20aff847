//! Names for addresses: (image, address) in, function names with the inlined ones out.
//!
//! [`symbolize_images`] names addresses of several images at once, from DWARF where there is any and
//! from symbol tables elsewhere.
//! [`KernelSymbols`] and [`CodeLog`] name the addresses that belong to no file: the kernel's and
//! those of code that a runtime compiled. What has no name says why ([`Symbolized::Unknown`]); no
//! name is stretched over a gap.
//!
//! Files are hostile until proven otherwise, since a root user points flame at anybody's process:
//! arbitrary bytes give errors or no names.
//!
//! ```
//! use flame_profile::{FileOffset, ProcessAddress};
//! use flame_symbolize::{CodeLog, CodeLogKind, WantedCode};
//!
//! let map = b"7f3a10000000 40 Interpreter\n7f3a10000040 80 LFib;::fib\n";
//! let map = CodeLog::from_bytes(map.to_vec(), CodeLogKind::PerfMap)?;
//! let address = ProcessAddress(0x7f3a_1000_0052);
//! let found = map.names(&[WantedCode { address, before: FileOffset(u64::MAX) }]).unwrap();
//! assert_eq!(&*found.names[0].as_ref().unwrap().name, "LFib;::fib");
//! # Ok::<(), flame_symbolize::CodeLogError>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod code_log;
mod debug_info;
mod demangle;
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
mod line_parser;
mod namer;
mod sources;
mod split;
mod symbolize;
#[cfg(test)]
mod test_frames;
mod units;

pub use code_log::{
    CodeEntry, CodeLog, CodeLogError, CodeLogKind, CodeName, CodeNames, CodeUnwinding, Scanned,
    WantedCode,
};
pub use demangle::demangle;
pub use kernel::{KernelError, KernelSymbols};
pub use namer::{SymbolFrame, Symbolized};
pub use sources::{Source, Sources};
pub use symbolize::{SymbolizeConfig, symbolize_image, symbolize_images};
