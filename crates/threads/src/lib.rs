//! Work shared by the calling thread and a few others, which are started once.
//!
//! Most of what flame does with a profile takes some milliseconds, so it matters how long a thread
//! takes until it works. A new one starts on the CPU of the one that made it on some kernels, waits
//! there until that one has used up its slice, and is moved only after that: both take turns on
//! one CPU while another is idle. So the threads here leave that CPU themselves as soon as they
//! run, are let run at once, and are there for all that comes later.

mod ahead;
mod helpers;
mod share;

pub use ahead::ahead;
pub use helpers::{count, start};
pub use share::{beside, join, map};
