//! Profiles of other tools, read; pprof also written.
//!
//! Each format is a module and an entry of the table [`FORMATS`]. [`Source`] opens an input, unpacks
//! it and recognises its format; [`read_input`] reads it. `docs/formats.md` says how a format is
//! added.
//!
//! ```
//! use flame_formats::{InputContent, ReadOptions, Source, read_input};
//!
//! let text = b"  libc.so.1`read+0x7\n  a.out`main+0x12\n    3\n";
//! let read = read_input(Source::of_bytes(text.to_vec())?, &ReadOptions::default())?;
//! assert_eq!((read.format.name, read.skipped.count()), ("dtrace", 0));
//! let InputContent::Stacks(stacks) = read.content else { panic!("DTrace has stacks") };
//! assert_eq!(stacks.to_profile().total(0).0, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! pprof is the saved profile that keeps everything a [`Profile`](flame_profile::Profile) holds:
//!
//! ```
//! use flame_formats::{read_pprof, write_pprof};
//! use flame_profile::{FrameKind, Location, Pid, Profile, StackId, Tid, ValueType};
//!
//! let mut profile = Profile::new(vec![ValueType::samples()]);
//! let main = profile.add_frame("main", FrameKind::User);
//! let location = profile.add_location(Location::named(main));
//! let stack = profile.push_stack(StackId::EMPTY, location);
//! let thread = profile.add_thread("server", Pid(4242), Tid(4243));
//! profile.add_sample(thread, stack, &[7]);
//!
//! let mut file = Vec::new();
//! write_pprof(&profile, &mut file)?;
//! let read = read_pprof(&file)?;
//! assert_eq!(read.total(0).0, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod blocks;
mod callers;
mod counted;
mod csv;
mod decompress;
mod disk_usage;
mod error;
mod folder;
mod foreign;
mod head;
mod input;
mod json;
mod line_cache;
mod lines;
mod merge;
mod names;
mod nested;
mod odd;
mod options;
mod pprof;
mod quantity;
mod read;
mod registry;
mod rounded;
mod second_counts;
mod sink;
mod skipped;
mod source;
mod spans;
mod stacks;
mod tree;

// The formats, one module each.
mod bcc;
mod bpftrace;
mod callgrind;
mod chrome_trace;
mod cpuprofile;
mod dhat;
mod dtrace;
mod eu_stack;
mod firefox;
mod gdb;
mod ghc;
mod go_raw;
mod instruments;
mod java_exceptions;
mod ktap;
mod ljp;
mod macos_sample;
mod massif;
mod perf_data;
mod perf_sched;
mod perf_script;
mod phpspy;
mod pmcstat;
mod procstack;
mod python_stacks;
mod speedscope;
mod systemtap;
mod thread_dump;
mod tracy;
mod visual_studio;
mod vtune;
mod wall_clock_profiler;
mod xctrace;
mod xdebug;

pub use flame_perf_data::Names;

pub use decompress::{is_packed, read_unpacked};
pub use disk_usage::{DiskUsage, DiskUsageError, MAX_DEPTH, disk_usage};
pub use error::{NoSuchEvent, ReadError};
pub use folder::files_in;
pub use merge::{Merge, MergeError};
pub use options::{NamesOf, ReadOptions, SampleOptions, Selection};
pub use pprof::{MAX_INFLATED, PprofError, read_pprof, read_pprof_by, write_pprof};
pub use read::{InputContent, ReadInput, Whole, read_input};
pub use registry::{Content, FORMATS, InputFormat};
pub use skipped::{Place, Skipped, SkippedPart};
pub use source::Source;
pub use stacks::Stacks;
