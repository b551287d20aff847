//! What this machine, this user and a process allow, what a recording of them lacks, and what mends it.
//!
//! Whatever can be tried is tried. Each answer is a [`Check`]; a [`listing`] and [`to_json`] know their form. The
//! advice itself serves whoever else lacks something: on [`rights`], on the [`Packages`] that bring
//! debug information, on the code of runtimes and of images, and for a [`failure`] of the sampler.
//! Nothing is printed, changed or sent.
//!
//! ```no_run
//! let report = flame_doctor::examine(None);
//! for (group, check) in &report.checks {
//!     println!("{}: {} {}: {}", group.word(), check.name, check.status.word(), check.found);
//! }
//! ```

mod check;
mod events;
mod failure;
mod image_advice;
mod images;
mod json;
mod limits;
mod listing;
mod names;
mod packages;
mod process;
pub mod recording;
pub mod rights;
mod runtime;
mod runtime_advice;
mod symbols;
mod user;

pub use check::{Check, Facts, Group, Report, Status};
pub use failure::{allocator_failure, cgroup_failure, failure};
pub use image_advice::{Language, mend_debug_files};
pub use json::to_json;
pub use listing::listing;
pub use names::{ProcessName, process_called};
pub use packages::{Packages, joined};
pub use process::Process;
pub use runtime_advice::{Advice, advice};

/// Looks at everything: the machine, the user, and the target if there is one. Opens events, and
/// closes them.
pub fn examine(target: Option<&Process>) -> Report {
    let rings = limits::Rings::open();
    let mut checks = Vec::new();
    let mut add = |group: Group, found: Vec<Check>| {
        checks.extend(found.into_iter().map(|check| (group, check)));
    };
    add(Group::Events, events::examine());
    add(Group::Kernel, symbols::examine());
    add(Group::Limits, limits::examine(&rings, target));
    add(Group::Rights, user::examine());
    if let Some(process) = target {
        add(Group::Process, process.examine());
        add(Group::Images, images::examine(process));
    }
    Report { target: target.map(Process::facts), checks }
}
