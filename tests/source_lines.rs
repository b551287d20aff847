//! `--lines` and `--no-inline`.

use std::fs;
use std::path::Path;

use crate::support::{Build, Folded, assert_share, live, program_built, record};

/// The line of a source file of `tests/programs` that has that text, counted from 1.
fn line_of(file: &str, text: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(file);
    let source = fs::read_to_string(path).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

fn at_999(arguments: &[&str]) -> Folded {
    record(&[&["-F", "999"], arguments].concat())
}

#[test]
fn lines_are_those_of_the_calls() {
    if !live() {
        return;
    }
    let program = program_built("inlining.c", Build::Debug);
    let folded = at_999(&["--lines", "--", &program, "0.5"]);
    let frame =
        |name: &str, text: &str| format!("{name} (inlining.c:{})", line_of("inlining.c", text));
    let main = frame("main", "x = outer(x)");
    let outer = frame("outer", "return middle(x)");
    let middle = frame("middle", "x = inner(x)") + "_[i]";
    let chain = folded.with(&[&main, &outer, &middle]);
    assert_share(chain, folded.total(), 1.0, 0.05);
    // Nothing is added where no line is known, and the count at the end is still one.
    assert!(folded.stacks().all(|(frames, _)| frames[0] == "inlining"), "{folded:?}");
}

#[test]
fn no_inline_leaves_only_functions_that_were_called() {
    if !live() {
        return;
    }
    let program = program_built("inlining.c", Build::Debug);
    let folded = at_999(&["--no-inline", "--", &program, "0.5"]);
    let leaf = |(frames, _): &(&[String], u64)| frames.ends_with(&["main".into(), "outer".into()]);
    let chain = folded.stacks().filter(leaf).map(|(_, weight)| weight).sum();
    assert_share(chain, folded.total(), 1.0, 0.05);
    assert_eq!(folded.with_any(|frame| frame.contains("_[i]")), 0);
}
