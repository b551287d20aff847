//! From events to a profile: the way of a sample.
//!
//! What a sample copied of its stack is unwound at once and thrown away; stacks are kept as
//! addresses, each distinct one once, and get names when the recording is over.
//!
//! It prints nothing, never exits, reads no environment and changes no rights of its process: what
//! depends on the caller is in what the caller gives.

mod clock;
mod collector;
mod completion;
mod config;
mod debug_places;
mod images;
mod jit;
mod location;
mod mapped_files;
mod naming;
mod proc;
mod process_root;
mod relative;
mod runtimes;
mod short_tasks;
mod target_files;

pub use collector::{Collected, Collector, EVENT_VALUE, SAMPLES_VALUE, value_names};
pub use config::Complete;
pub use debug_places::DebugPlaces;
pub use jit::JitTarget;
pub use mapped_files::open_file;
pub use naming::{Sources, image_name, open_kallsyms};
pub use proc::{Identity, all_processes, command_line, enter, host_name, owner_of};
pub use process_root::{FoundFile, ProcessRoot};
pub use runtimes::Runtime;
pub use target_files::{Duty, Hooks, Job, TargetFiles, answer_of, is_ready, reply};
