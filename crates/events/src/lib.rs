//! Typed events from the records of the perf_event ABI, in time order, and the address spaces that
//! they describe.
//!
//! Record bytes become an [`Event`] ([`RecordLayout::decode`]), several queues of records are
//! merged into one stream in time order ([`drain_in_order`]), and [`Processes`] follows that
//! stream: which file is mapped where in which process, and what each thread is called. This crate
//! opens no file and no descriptor: bytes come from its callers, so that live rings, recorded files
//! and scripted tests take the same path.
//!
//! ```
//! use flame_events::{FileId, Mapping, Processes};
//! use flame_profile::{FileOffset, Pid, ProcessAddress};
//!
//! let mut processes = Processes::default();
//! let maps = b"55d0c0001000-55d0c0003000 r-xp 00001000 fe:00 4711 /usr/bin/server\n";
//! processes.add_existing(Pid(4242), b"server", flame_events::parse_maps(maps));
//! let found = processes.find(Pid(4242), ProcessAddress(0x55d0c0001234)).unwrap();
//! assert_eq!(found.mapping.to_file_offset(found.address), FileOffset(0x1234));
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod addresses;
mod attributes;
mod copied_stack;
mod decode;
mod event;
mod fields;
mod glance;
mod images;
mod kernel_symbol;
mod maps;
mod merge;
mod processes;
mod space;

pub use addresses::Addresses;
pub use attributes::{Attributes, Sampling};
pub use copied_stack::CopiedStack;
pub use decode::{DecodeError, RecordBytes, RecordLayout, SampleFields, TracepointField};
pub use event::{
    Event, EventKind, EventSource, Interrupt, InterruptedStack, MappingEvent, Rest, SampleEvent,
    StackBytes, SwitchTo,
};
pub use fields::Fields;
pub use glance::Glance;
pub use images::{FileBuildId, FileId, ImageKey, ImageTable};
pub use kernel_symbol::KernelSymbolEvent;
pub use linux_perf_event_reader::Endianness;
pub use maps::{Around, ParsedMapping, parse_maps};
pub use merge::{Horizon, Lane, RecordQueue, Sieve, drain_in_order, drain_lanes};
pub use processes::{Found, Processes};
pub use space::{AddressSpace, Mapping};
