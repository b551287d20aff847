//! Everything that must pass before a change lands, in the order of how soon it fails; and the part
//! of it that needs no live machine.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

mod again;

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
    /// The oldest that the workspace promises to build with, where rustup has it.
    Oldest,
    /// The own one, for a target whose standard library has to be there.
    Target(&'static str),
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
        by: Cargo::Oldest,
        ..step(
            "oldest Rust",
            &["check", "-p", "flame", "--target-dir", "target/oldest", "--locked"],
        )
    },
    Step {
        by: Cargo::Target(ARM64),
        environment: &[("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")],
        ..step("arm64", &["check", "-p", "flame", "--target", ARM64, "--locked"])
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
    /// The command, or why it cannot run here.
    fn command(&self) -> Result<Command, String> {
        let own = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = match self.by {
            Cargo::Own => Command::new(own),
            Cargo::Oldest => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", RUST_VERSION, "cargo"]);
                if !succeeds(Command::new("rustup").args(["run", RUST_VERSION, "rustc", "-V"])) {
                    return Err(format!("rustup has no toolchain {RUST_VERSION}"));
                }
                rustup
            }
            Cargo::Target(target) => {
                let mut rustc = Command::new("rustc");
                let library = rustc.args(["--print", "target-libdir", "--target", target]).output();
                let directory = library.map(|output| output.stdout).unwrap_or_default();
                let directory = String::from_utf8_lossy(&directory).trim().to_owned();
                if directory.is_empty() || !std::path::Path::new(&directory).is_dir() {
                    return Err(format!("no standard library for {target}"));
                }
                if !succeeds(Command::new("aarch64-linux-gnu-gcc").arg("--version")) {
                    return Err("no aarch64-linux-gnu-gcc".to_owned());
                }
                Command::new(own)
            }
        };
        command.args(self.arguments).envs(self.environment.iter().copied());
        Ok(command)
    }

    fn run(&self) -> Result<()> {
        let line = format!("cargo {}", self.arguments.join(" "));
        let mut command = match self.command() {
            Ok(command) => command,
            Err(reason) => {
                eprintln!("== {}: SKIP: {reason}", self.name);
                return Ok(());
            }
        };
        eprintln!("== {}: {line}", self.name);
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
