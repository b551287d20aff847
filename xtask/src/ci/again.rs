//! Tests that fail are run once more, alone.
//!
//! Live tests count samples of real programs. Beside others on a machine that is shared, one of some
//! hundreds may fail by the clock alone; without any beside it, a test has no such excuse. What is wrong
//! in flame fails again, and what did not is named.

use std::io::{BufRead, BufReader, Result, Write};
use std::process::{Command, Stdio};

/// With more failures than this the machine is not what is at fault.
const MOST: usize = 6;

/// Runs `cargo test`, and what failed once more. Whether all passed in the end.
pub(super) fn passes(command: &mut Command) -> Result<bool> {
    passes_into(&mut std::io::stdout(), command)
}

fn passes_into(out: &mut impl Write, command: &mut Command) -> Result<bool> {
    let (passed, failed) = tests(out, command)?;
    if passed || failed.is_empty() || failed.len() > MOST {
        return Ok(passed);
    }
    eprintln!("== once more, alone: {}", failed.join(" "));
    command.args(["--", "--exact", "--test-threads", "1"]).args(&failed);
    let (passed, _) = tests(out, command)?;
    if passed {
        eprintln!("== failed beside others and passed alone: {}", failed.join(" "));
    }
    Ok(passed)
}

/// Whether all passed, and the names of the tests that did not.
pub(super) fn tests(out: &mut impl Write, command: &mut Command) -> Result<(bool, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut failed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(out, "{line}")?;
            failed.extend(failure(&line).map(str::to_owned));
        }
    }
    Ok((child.wait()?.success(), failed))
}

/// The test that a line of `cargo test` says has failed.
fn failure(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script in the place of cargo: it fails in what it says as long as it says it.
    fn script(text: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", text, "sh"]);
        shell
    }

    /// What scripts print is not to be taken for failures of this test.
    fn passes(command: &mut Command) -> bool {
        passes_into(&mut std::io::sink(), command).unwrap()
    }

    const ONCE: &str = "if [ $# = 0 ]; then echo 'test a::b ... FAILED'; exit 1; fi
        [ \"$*\" = '-- --exact --test-threads 1 a::b' ]";

    #[test]
    fn what_failed_is_run_once_more_by_its_name() {
        assert!(passes(&mut script(ONCE)));
    }

    #[test]
    fn what_fails_twice_has_failed() {
        assert!(!passes(&mut script("echo 'test a::b ... FAILED'; exit 1")));
    }

    #[test]
    fn failures_without_a_name_and_many_are_final() {
        assert!(!passes(&mut script("[ $# != 0 ]")));
        let many = "[ $# != 0 ] || for i in 1 2 3 4 5 6 7; do echo \"test $i ... FAILED\"; done; [ $# != 0 ]";
        assert!(!passes(&mut script(many)));
    }
}
