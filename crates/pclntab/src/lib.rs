//! The table that each Go program carries for its own tracebacks (`.gopclntab`) -> functions, their
//! frame sizes, lines and the calls that were inlined into them.
//!
//! `go build -ldflags="-s -w"` drops symbols and DWARF, never this table: the runtime needs it. It
//! is read where it lies, nothing of it is copied or indexed. Written by Go 1.16 and later, for
//! machines of 64 bits and little-endian byte order. Where it stands in an image is for the caller
//! to find.
//!
//! Every offset is checked when it is used; a table that lies gives wrong names, no panic and no
//! endless loop.
//!
//! Sources: `runtime/symtab.go`, `runtime/runtime2.go` and `debug/gosym/pclntab.go` of Go 1.16 to
//! 1.24; "Go 1.2 Runtime Symbol Information" (golang.org/s/go12symtab) for tables of values.
//!
//! ```
//! use flame_pclntab::GoTable;
//! use flame_profile::SharedBytes;
//!
//! assert!(GoTable::parse(SharedBytes::from(b"not a table".to_vec()), 0x401000).is_none());
//! ```

mod bytes;
mod frames;
mod function;
mod header;
mod module_data;
mod table;
#[doc(hidden)]
pub mod testing;
mod values;

pub use frames::GoFrame;
pub use function::{GoFunction, StackSwitch};
pub use header::{find_table, looks_like_table};
pub use module_data::ModuleData;
pub use table::{GoTable, InlineTrees};
