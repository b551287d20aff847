//! Profile files of other tools, read and written.
//!
//! One module owns a format, both ways. There is one so far: pprof, the saved profile that keeps
//! everything a [`Profile`](flame_profile::Profile) holds.
//!
//! This crate opens no files: it reads from bytes and writes to a given `io::Write`.
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

mod pprof;

pub use pprof::{MAX_INFLATED, PprofError, read_pprof, write_pprof};
