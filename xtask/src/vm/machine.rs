//! The machines of the matrix.

use super::cases::{self, Case};

/// One machine, and what is tried on it.
pub(super) struct Machine {
    pub(super) name: &'static str,
    /// The beginning of the kernel's version.
    pub(super) kernel: &'static str,
    pub(super) cpus: u32,
    pub(super) megabytes: u32,
    pub(super) cases: Vec<Case>,
}

/// A machine of two CPUs.
fn plain(name: &'static str, kernel: &'static str, cases: Vec<Case>) -> Machine {
    Machine { name, kernel, cpus: 2, megabytes: 768, cases }
}

/// All machines; `short` = those that are tried with every change, with fewer cases.
pub(super) fn all(short: bool) -> Vec<Machine> {
    let cases = if short { cases::short } else { cases::all };
    vec![plain("x86-64-6.1", "6.1.", cases()), plain("x86-64-6.12", "6.12.", cases())]
}
