//! Options of `flame render` that change nothing, and files that need no change.

use std::fs;

use crate::render::{FOLDED, render, scratch_with};

#[test]
fn options_that_change_nothing_are_said_to() {
    let idle = |options: &[&str]| render(&scratch_with(FOLDED), options).success().stderr;
    let expect = "warning: --negate changes nothing here: there is one count a stack\n";
    assert_eq!(idle(&["--negate"]), expect);
    let expect = "warning: --flat changes nothing here: no output is .txt or .md\n";
    assert_eq!(idle(&["--flat"]), expect);
    assert_eq!(idle(&["--flat", "--min-share", "1", "--format", "md"]), "");
    assert_eq!(idle(&["--flat", "--min-share", "1", "--format", "term"]), "");
    let chart = |text: &str| render(&scratch_with(text), &["--flamechart"]).success().stderr;
    let mut summed = String::new();
    (0..40).for_each(|n| summed += &format!("t;f{n};g {n}\n"));
    let expect = "warning: --flamechart shows the order of the file: no stack is there twice, so \
                  they are sums and tell no time\n";
    assert_eq!(chart(&summed), expect);
    assert_eq!(chart(&format!("{summed}t;f1;g 1\n")), "");
    assert_eq!(chart("t;a 1\nt;b 1\n"), "", "too few to tell");
    assert_eq!(idle(&["-q", "--negate", "--total", "3", "-o", "x.svg", "--format", "md"]), "");
    let named = idle(&["-o", "x.svg", "--format", "txt"]);
    assert!(named.starts_with("warning: --format txt changes nothing here: "), "{named}");
    assert_eq!(idle(&["-q", "-o", "x.svg", "-o", "/dev/null", "--format", "txt"]), "");
    let two = render(&scratch_with("a;b 1 2\n"), &["--negate", "--colors-diff", "safe"]).success();
    assert_eq!(two.stderr, "");
    let report = render(&scratch_with("a;b 1 2\n"), &["--format", "txt"]).success();
    assert!(report.stdout.contains("flame diff shows the change\n2 samples in all"));
}

#[test]
fn a_palette_file_that_has_all_names_is_left_alone() {
    let scratch = scratch_with("a;b 1\n");
    render(&scratch, &["--cp"]).success();
    let map = scratch.path().join("palette.map");
    // In another order, which writing it again would change.
    let text: Vec<String> =
        fs::read_to_string(&map).unwrap().lines().rev().map(str::to_owned).collect();
    assert_eq!(text.len(), 2);
    fs::write(&map, text.join("\n")).unwrap();
    render(&scratch, &["--cp"]).success();
    assert_eq!(fs::read_to_string(&map).unwrap(), text.join("\n"));
    fs::write(scratch.path().join("in.folded"), "a;c 1\n").unwrap();
    render(&scratch, &["--cp"]).success();
    assert_eq!(fs::read_to_string(&map).unwrap().lines().count(), 3);
}
