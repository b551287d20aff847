//! Live events from the kernel: perf_event descriptors, their rings, and launched programs.
//!
//! A [`SamplerConfig`] says what to sample and how, and [`EventSpec`]s which events besides;
//! [`Sessions::open`] turns them into open events with one ring a CPU for each, [`Sessions::begin`]
//! starts the recording, and the sessions are then one [`flame_events::EventSource`]. What had to give
//! way on this machine (no PMU, no permission for the kernel, smaller rings) is told by
//! [`Session::concessions`], not printed.
//!
//! The program to profile is started by [`Launched`], held back until its events are open.
//!
//! ```no_run
//! use flame_events::EventSource;
//! use flame_profile::{Hz, Pid};
//! use flame_sampler::{Rate, SamplerConfig, Sessions, Target};
//!
//! let mut config = SamplerConfig::new(Target::Processes(vec![Pid(4242)]), 0xff01ff);
//! config.rate = Rate::Frequency(Hz(99));
//! let mut sessions = Sessions::open(&config, &[])?;
//! sessions.begin()?;
//! sessions.drain(&mut |event| { let _ = event; })?;
//! # Ok::<(), flame_sampler::SamplerError>(())
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod accounting;
mod apart;
mod attach;
mod by_cpu;
mod cgroup;
mod config;
mod cost;
mod counting;
mod cpus;
mod descriptor;
mod error;
mod event_type;
mod filter;
mod hand_over;
mod latest;
mod limits;
mod losses;
mod occurrences;
mod open;
mod other_stack;
mod own_name;
mod pacer;
mod pacing;
mod places;
mod pmu;
mod posts;
mod probe;
mod reader;
mod readers;
mod realtime;
mod rest;
mod returns;
mod ring;
mod rings;
mod schedstat;
mod scope;
mod scripts;
mod session;
mod sessions;
mod shared;
mod signal_frame;
mod spawn;
mod stack_ends;
mod stack_roots;
mod strangers;
mod switch_rates;
mod task_intervals;
mod task_progress;
mod threads;
mod tracepoints;
mod turns;
mod uprobe;
mod wakings;
mod watch;
mod work;

pub use accounting::OfCounter;
pub use apart::may_read_others;
pub use cgroup::{Cgroup, CgroupError};
pub use config::{
    CallGraph, DEFAULT_COUNTING_FREQUENCY, DEFAULT_FREQUENCY, DEFAULT_STACK_COPY, EventSpec,
    MAX_STACK_COPY, Privilege, Rate, SamplerConfig, Target,
};
pub use cpus::parse_cpu_list;
pub use error::{Refusal, Refused, SamplerError};
pub use event_type::{EventType, EventUnit, ParseEventError, event_names};
pub use limits::{kptr_restrict, max_sample_rate, paranoid_level};
pub use losses::{Losses, LostRecords};
pub use pmu::{PmuError, pmu_events};
pub use probe::{Feature, probe};
pub use realtime::may_go_first;
pub use schedstat::Schedstat;
pub use scripts::own_number;
pub use session::{Concession, PerTask, Scope, Session, Taken};
pub use sessions::Sessions;
pub use spawn::{Credentials, ExitReport, Launched, fork_apart, fork_below};
pub use stack_roots::StackRoots;
pub use threads::{
    descendants_of, is_alive, is_stopped, live_task_of, parent_of, process_of, threads_of,
};
pub use tracepoints::{TracepointError, near_names, tracepoints};
