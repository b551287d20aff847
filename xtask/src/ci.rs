//! Everything that must pass before a change lands, in the order of how soon it fails.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// A step: its name, the arguments of cargo, and environment of its own.
struct Step {
    name: &'static str,
    cargo: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const STEPS: &[Step] = &[
    Step { name: "format", cargo: &["fmt", "--all", "--check"], environment: &[] },
    Step {
        name: "lints",
        cargo: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        environment: &[],
    },
    Step {
        name: "docs",
        cargo: &["doc", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step { name: "build", cargo: &["build", "--workspace"], environment: &[] },
    Step { name: "tests", cargo: &["test", "--workspace"], environment: &[] },
    Step { name: "fuzz", cargo: &["xtask", "fuzz", "--seconds", "4"], environment: &[] },
];

/// Runs all steps; ends at the first that fails.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    for step in STEPS {
        let line = format!("cargo {}", step.cargo.join(" "));
        eprintln!("== {}: {line}", step.name);
        let start = Instant::now();
        let mut command = Command::new(&cargo);
        command.args(step.cargo).envs(step.environment.iter().copied());
        let status = command.status().with_context(|| format!("cannot run {line}"))?;
        ensure!(status.success(), "{} did not pass; to repeat it: {line}", step.name);
        eprintln!("== {}: passed in {:.0} s", step.name, start.elapsed().as_secs_f64());
    }
    Ok(())
}
