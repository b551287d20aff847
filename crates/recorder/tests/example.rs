//! The example records a program.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The example: cargo builds it for tests, too.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("tests have a path");
    let target = own.parent().and_then(|deps| deps.parent()).expect("tests are below target");
    target.join("examples/record_child")
}

#[test]
fn a_busy_command_has_hot_functions() {
    let command = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"];
    let output = Command::new(example()).args(command).output().expect("the example is built");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_required = std::env::var("FLAME_REQUIRE_PERF").is_ok_and(|value| value == "1");
    if !output.status.success() && errors.contains("Denied") && !is_required {
        let _ = writeln!(std::io::stderr(), "SKIP live: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("names are text");
    let share = |line: &str| line.split_once('%').map(|(share, _)| share.trim().parse::<f64>());
    let shares: Vec<f64> = text.lines().filter_map(share).map(Result::unwrap).collect();
    assert!((2..=10).contains(&shares.len()), "{text}");
    assert!(shares.is_sorted_by(|a, b| a >= b), "{text}");
}
