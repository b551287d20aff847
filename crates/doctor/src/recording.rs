//! What is said of a recording: what had to give way, what of the target was not seen, and why.

mod coverage;
mod debug_files;
mod explain;
mod no_samples;
mod notes;
mod runtimes;

pub use coverage::{of_starts, strict, unseen};
pub use debug_files::torn_debug_files;
pub use explain::Images;
pub use no_samples::NoSamples;
pub use notes::{
    of_cost, of_hidden_kernel, of_late_readers, of_nothing_shown, of_refusals, of_sessions,
    of_short_copies,
};
pub use runtimes::{of_answer, of_runtimes};
