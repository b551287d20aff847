//! U-Boot's function traces into call profiles, flame charts and trace.dat.
//!
//! A U-Boot that was built with `FTRACE=1` writes a record when a function is entered and when it
//! is left. [`Trace`] reads the files that `trace calls` makes, of all versions and both byte
//! orders, as a stream; a [`SymbolMap`] names the functions; [`follow`] puts the calls together and
//! mends what is missing; [`write_ftrace`] makes what `trace-cmd report` reads. [`Proftool`] does
//! all that as U-Boot's own tool does, byte for byte.
//!
//! This crate reads from and writes to what it is given, and opens no files. What it finds it also has
//! words for: [`info`], [`summary`], [`footer`], complaints, and failures.
//!
//! ```
//! use std::io::Cursor;
//!
//! use flame_profile::SiblingOrder;
//! use flame_uboot::{Functions, Making, Measure, SymbolMap, Trace, follow};
//!
//! let map = b"0000000080000000 T _start\n0000000080000040 T initf_dm\n";
//! let mut file = Vec::new();
//! // A chunk of calls, version 1, two records, text at 0x80000000.
//! for word in [1, 1, 2, 0, 0x8000_0000, 0, 0, 0] {
//!     file.extend_from_slice(&u32::to_le_bytes(word));
//! }
//! // initf_dm, 64 bytes into the text, is entered at 7 and left at 12 microseconds.
//! for word in [0x40, 0x10, 1 << 30 | 7, 0x40, 0x10, 12] {
//!     file.extend_from_slice(&u32::to_le_bytes(word));
//! }
//! let mut trace = Trace::open(Cursor::new(file))?;
//! let map = SymbolMap::parse(map, trace.layout().site_len())?;
//! let mut functions = Functions::new(Some(&map), None);
//! let calls = trace.calls(None)?;
//! let followed = follow(&mut trace, calls, &mut functions, Making::Graph)?;
//! let tree = followed.graph.tree(Measure::Time, &functions, SiblingOrder::Name);
//! assert_eq!(tree.label(&tree.nodes()[1]).name, "initf_dm");
//! assert_eq!(tree.total().0, 5);
//! # Ok::<(), flame_uboot::UbootError>(())
//! ```

mod bre;
mod chart;
mod compat;
mod detect;
mod error;
mod failure;
mod follow;
mod ftrace;
mod functions;
mod graph;
mod info;
mod layout;
mod map;
mod recent;
mod record;
mod replay;
mod rules;
#[cfg(test)]
mod test_traces;
mod trace;
mod words;

pub use chart::{Chart, OUTSIDE};
pub use compat::{FlameGraph, Proftool, proftool_rules};
pub use error::UbootError;
pub use failure::{
    broken_trace, no_calls, no_weight, too_deep, unreadable, unreadable_map, wrong_for_proftool,
    wrong_map, wrong_rules, wrong_trace,
};
pub use follow::{Callers, Followed, Making, follow};
pub use ftrace::{FtraceKind, FtracePlan, Written, write_ftrace};
pub use functions::{FunctionId, Functions};
pub use graph::{CallGraph, Measure};
pub use info::info;
pub use layout::{ByteOrder, ChunkKind, HeaderFormat, Layout};
pub use map::{Symbol, SymbolMap};
pub use record::{Record, RecordKind};
pub use replay::{Facts, LONGEST_PAUSE};
pub use rules::{Reading, Rules};
pub use trace::{Chunk, Trace};
pub use words::{complaints_of_file, complaints_of_map, footer, summary};
