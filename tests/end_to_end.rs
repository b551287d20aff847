//! The real binary records real programs, and what it writes is held against what they did.
//!
//! `tests/programs` has the programs and their truths. Every live test asks `support::live` first;
//! where perf_event is refused it prints `SKIP live: reason` and passes, unless
//! `FLAME_REQUIRE_PERF=1` says that this is a failure.

// The modules are marked as test code so that the lints treat their helpers as such.
#[cfg(test)]
mod accuracy;
#[cfg(test)]
mod allocations;
#[cfg(test)]
mod cookies;
#[cfg(test)]
mod counted_scripts;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod diff_options;
#[cfg(test)]
mod diff_picture;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod events;
#[cfg(test)]
mod families;
#[cfg(test)]
mod fold;
#[cfg(test)]
mod go;
#[cfg(test)]
mod hard_stacks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_files;
#[cfg(test)]
mod hostile_runtimes;
#[cfg(test)]
mod hostile_storms;
#[cfg(test)]
mod hostile_vms;
#[cfg(test)]
mod inlined_text;
#[cfg(test)]
mod java;
#[cfg(test)]
mod lua;
#[cfg(test)]
mod luajit;
#[cfg(test)]
mod nginx;
#[cfg(test)]
mod occurrences;
#[cfg(test)]
mod off_cpu;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod perf_data;
#[cfg(test)]
mod perl;
#[cfg(test)]
mod php;
#[cfg(test)]
mod planted_profiles;
#[cfg(test)]
mod privileges;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod render;
#[cfg(test)]
mod render_idle;
#[cfg(test)]
mod render_looks;
#[cfg(test)]
mod render_open;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod ruby;
#[cfg(test)]
mod runtimes;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod source_lines;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod stacks;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod summary;
#[cfg(test)]
mod support;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod times;
#[cfg(test)]
mod tracepoints;
#[cfg(test)]
mod uboot;
#[cfg(test)]
mod wakers;
#[cfg(test)]
mod wall;
