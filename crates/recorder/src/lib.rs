//! From events to a profile: the way of a sample, as a library.
//!
//! A [`Recorder`] takes in what an [`EventSource`](flame_events::EventSource) has: a live session,
//! a file, a script. What a sample copied of its stack is unwound at once and thrown away; stacks are
//! kept as addresses, each distinct one once, and get names when a profile is wanted.
//!
//! It prints nothing, never exits, reads no environment and changes no rights of its process: what
//! depends on the caller is in [`Options`] and [`Hooks`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use flame_events::{Addresses, Event, EventKind, EventSource, SampleEvent};
//! use flame_profile::{ByteLen, Nanos, Pid, ProcessAddress, Tid, ValueType};
//! use flame_recorder::{Absent, Options, Recorder, Stream};
//!
//! /// Events that stand in a list, all of them ready.
//! struct Script(Vec<Event<'static>>);
//!
//! impl EventSource for Script {
//!     type Error = std::convert::Infallible;
//!
//!     fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), Self::Error> {
//!         self.0.drain(..).for_each(sink);
//!         Ok(())
//!     }
//! }
//!
//! let sample = SampleEvent {
//!     event: 0,
//!     pid: Pid(42),
//!     tid: Tid(42),
//!     cpu: None,
//!     period: 10_101_010,
//!     tracepoint: None,
//!     interrupt: None,
//!     ip: ProcessAddress(0x401000),
//!     kernel_chain: Addresses::default(),
//!     user_chain: [0x401000, 0x401234].into_iter().map(ProcessAddress).collect(),
//!     user_registers: None,
//!     user_stack: None,
//! };
//! let events = vec![Event { time: Nanos(1), kind: EventKind::Sample(sample) }];
//! let stream = Stream {
//!     value: ValueType::new("cpu", "nanoseconds"),
//!     others: Vec::new(),
//!     is_clock: true,
//!     has_user: true,
//!     user_registers: 0,
//!     stack_copy: ByteLen(0),
//! };
//! // The processes of a script are none of this machine's.
//! let (files, memory) = (Arc::new(Absent), Arc::new(Absent));
//! let options = Options { files, memory, ..Options::default() };
//! let mut recorder = Recorder::of_source(Script(events), stream, options);
//! assert_eq!(recorder.snapshot()?.health.samples, 1);
//! let profile = recorder.finish()?;
//! assert_eq!(profile.total(flame_recorder::EVENT_VALUE).0, 10_101_010);
//! # Ok::<(), std::convert::Infallible>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod accounting;
mod aggregator;
mod allocator;
mod arguments;
mod blocks;
mod calls;
mod chains;
mod clock;
mod collector;
mod config;
mod debug_places;
mod epilogues;
mod functions;
mod growth;
mod images;
mod inlining;
mod interpreter;
mod java;
mod java_attach;
mod jit;
mod joined;
mod live_files;
mod located_stacks;
mod location;
mod locator;
mod mapped_files;
mod naming;
mod native_functions;
mod off_cpu;
mod on_cpu;
mod proc;
mod process_root;
mod recorder;
mod relative;
mod runtimes;
mod script_frame;
mod script_sums;
mod scripted;
mod scripts;
mod sets;
mod short_tasks;
mod spans;
mod symbolizer;
mod target;
mod titles;
mod waiting_scripts;
mod wakings;
mod walker;

pub use accounting::{ProcessTimes, Times};
pub use allocator::{Allocations, NoAllocator, set_allocations};
pub use arguments::Argument;
pub use calls::{Calls, CallsError, Measure, Weighing, switches_of, tracepoint};
pub use collector::SeenImage;
pub use config::{
    BlockEvents, DEFAULT_MAX_DEPTH, EVENT_VALUE, Options, RecorderConfig, SAMPLES_VALUE,
    ScriptFrames, States, Stream, Waits, Wakers,
};
pub use debug_places::DebugPlaces;
pub use functions::parse_event;
pub use images::image_name;
pub use java::look_at_java;
pub use java_attach::{
    BecomeUser, JAVA_PATIENCE, JavaAnswer, JavaError, serve_java, write_perf_maps,
};
pub use jit::JitTarget;
pub use live_files::{Duty, Hooks, Job, LiveFiles};
pub use mapped_files::open_file;
pub use proc::{all_processes, command_line, enter, host_name, identity_of, owner_of};
pub use process_root::{FoundFile, ProcessRoot};
pub use recorder::{Finished, Recorder};
pub use runtimes::Runtime;
pub use target::{Absent, Identity, Namespace, TargetFiles, TargetMemory};
pub use titles::set_titles;

/// Files of targets, shared by all that open some.
type SharedFiles = std::sync::Arc<dyn TargetFiles>;
/// Their memory.
type SharedMemory = std::sync::Arc<dyn TargetMemory>;
