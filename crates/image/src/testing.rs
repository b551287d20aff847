//! Images for tests: built byte by byte, or by real compilers and taken apart by real tools.
#![cfg_attr(not(test), expect(clippy::cast_possible_truncation, reason = "its files are small"))]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "nothing but tests uses it")]

pub mod build;
pub mod elf;
