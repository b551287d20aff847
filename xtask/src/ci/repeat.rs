//! `cargo xtask test --repeat N [FILTER]`: the tests again and again, and how often each has failed.
//!
//! Everything is built once; each round is processes of its own. Live tests run too: those are what fails rarely.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::again;

/// Runs the tests whose names contain the filter, or all, so many times.
pub(crate) fn run(rounds: &str, filter: Option<&str>) -> Result<()> {
    let rounds: usize = rounds.parse().with_context(|| format!("--repeat {rounds}"))?;
    ensure!(rounds > 0, "--repeat 0 would run no test");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let test = || {
        let mut command = Command::new(&cargo);
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
        command
    };
    ensure!(test().arg("--no-run").status()?.success(), "the tests do not build");
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    let mut unnamed = 0;
    for round in 1..=rounds {
        eprintln!("== round {round} of {rounds}");
        let mut command = test();
        let (passed, names) = again::tests(&mut std::io::stdout(), command.args(filter))?;
        unnamed += usize::from(!passed && names.is_empty());
        for name in names {
            *failed.entry(name).or_default() += 1;
        }
    }
    for (name, times) in &failed {
        eprintln!("== failed {times} of {rounds}: {name}");
    }
    ensure!(unnamed == 0, "{unnamed} of {rounds} rounds failed without naming a test");
    ensure!(failed.is_empty(), "{} tests failed in some of {rounds} rounds", failed.len());
    eprintln!("== all passed {rounds} times");
    Ok(())
}
