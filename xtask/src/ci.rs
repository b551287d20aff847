//! Everything that must pass before a change lands, in the order of how soon it fails; and the part
//! of it that needs no live machine.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

mod again;
pub(crate) mod repeat;

/// A step: its name, the arguments of cargo, and environment of its own.
struct Step {
    name: &'static str,
    /// Which cargo runs them.
    by: Cargo,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// Whether tests that fail are run once more.
    again: bool,
}

/// Which cargo runs a step.
#[derive(Clone, Copy)]
enum Cargo {
    /// The one that runs this program.
    Own,
    /// The oldest that the workspace promises to build with, where rustup has it, for arm64, where its standard
    /// library is there. Both promises in one check: what differs between processors is little.
    OldestForArm,
}

const ARM64: &str = "aarch64-unknown-linux-gnu";

/// The oldest Rust that builds flame.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Tests that need perf_event or a browser say `SKIP` then.
const NO_LIVE: &[(&str, &str)] = &[("FLAME_SKIP_LIVE", "1")];

/// Cargo would stop at the first crate that fails, and hide what fails in the others.
const TESTS: &[&str] = &["test", "--workspace", "--locked", "--no-fail-fast"];

const STEPS: &[Step] = &[
    step("format", &["fmt", "--all", "--check"]),
    step("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    Step {
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        ..step("docs", &["doc", "--workspace", "--no-deps", "--locked"])
    },
    step("no features", &["check", "-p", "flame", "--no-default-features", "--locked"]),
    Step {
        by: Cargo::OldestForArm,
        environment: &[("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")],
        ..step(
            "oldest Rust, arm64",
            &["check", "-p", "flame", "--target-dir", "target/oldest", "--locked"],
        )
    },
    step("build", &["build", "--workspace", "--locked"]),
    Step { again: true, ..step("tests", TESTS) },
    step("fuzz", &["xtask", "fuzz", "--seconds", "2"]),
    // Skipped, and said, where there is no QEMU.
    step("machines", &["xtask", "vm", "--short"]),
];

const fn step(name: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, by: Cargo::Own, arguments, environment: &[], again: false }
}

impl Step {
    fn command(&self) -> Command {
        let own = || Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        let oldest = |program: &str| {
            let mut rustup = Command::new("rustup");
            rustup.args(["run", RUST_VERSION, program]);
            rustup
        };
        let by_oldest = match self.by {
            Cargo::Own => None,
            Cargo::OldestForArm => Some(succeeds(oldest("rustc").arg("-V"))),
        };
        let mut command = if by_oldest == Some(true) { oldest("cargo") } else { own() };
        command.args(self.arguments).envs(self.environment.iter().copied());
        let Some(by_oldest) = by_oldest else { return command };
        if !by_oldest {
            eprintln!("SKIP: rustup has no toolchain {RUST_VERSION}");
        }
        match builds_for_arm(if by_oldest { oldest("rustc") } else { Command::new("rustc") }) {
            Ok(()) => _ = command.args(["--target", ARM64]),
            Err(missing) => eprintln!("SKIP: arm64: there is no {missing}"),
        }
        command
    }

    fn run(&self) -> Result<()> {
        let line = format!("cargo {}", self.arguments.join(" "));
        eprintln!("== {}: {line}", self.name);
        let mut command = self.command();
        let start = Instant::now();
        let passed = if self.again {
            again::passes(&mut command)
        } else {
            command.status().map(|status| status.success())
        };
        let passed = passed.with_context(|| format!("cannot run {line}"))?;
        ensure!(passed, "{} did not pass; to repeat it: {line}", self.name);
        eprintln!("== {}: passed in {:.0} s", self.name, start.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Whether there is what builds for arm64; else what is not there.
fn builds_for_arm(mut rustc: Command) -> Result<(), String> {
    let library = rustc.args(["--print", "target-libdir", "--target", ARM64]).output();
    let directory = library.map(|output| output.stdout).unwrap_or_default();
    let directory = String::from_utf8_lossy(&directory).trim().to_owned();
    if directory.is_empty() || !std::path::Path::new(&directory).is_dir() {
        return Err("standard library for it".to_owned());
    }
    let compiler = "aarch64-linux-gnu-gcc";
    match succeeds(Command::new(compiler).arg("--version")) {
        true => Ok(()),
        false => Err(compiler.to_owned()),
    }
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs all steps; ends at the first that fails.
pub(crate) fn run() -> Result<()> {
    STEPS.iter().try_for_each(Step::run)
}

/// Builds everything, then runs the tests that need neither perf_event nor a browser.
pub(crate) fn test() -> Result<()> {
    let build = step("build", &["test", "--workspace", "--no-run", "--quiet"]);
    let tests = Step { environment: NO_LIVE, ..step("tests", &["test", "--workspace", "--quiet"]) };
    build.run()?;
    tests.run()
}
