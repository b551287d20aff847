//! perf.data, the file that `perf record` writes, into events and profiles, without perf.
//!
//! [`PerfData`] reads the file: its header, the attributes of its events, what it says about the
//! machine, and its records, which it hands on in order of time as a live session does.
//! [`read_profile`] has a recorder make a profile of them.

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod bytes;
mod error;
mod event_names;
mod facts;
mod files;
mod header;
mod inlined;
mod machine;
mod notes;
mod parts;
mod read;
mod recorded_events;
mod records;
mod rounds;
mod source;
mod unpack;

pub use bytes::{Forward, ReadAt};
pub use error::PerfDataError;
pub use event_names::{base_name, is_meant};
pub use facts::Facts;
pub use files::Written;
pub use flame_symbolize::SymbolFrame;
pub use header::recognise;
pub use inlined::{PrintedFrame, inlined_frames};
pub use read::{Names, ReadConfig, ReadProfile, SampleOf, Takes, read_profile};
pub use recorded_events::RecordedEvent;
pub use source::{KernelPlace, Left, PerfData};
