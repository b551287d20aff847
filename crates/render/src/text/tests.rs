use flame_profile::{SiblingOrder, ValueType};

use super::*;
use crate::test_trees::{tree_of, tree_of_value};

#[track_caller]
fn check(stacks: &[(&str, u64)], config: &TextConfig, expect: &str) {
    let mut out = Vec::new();
    write_text(&tree_of(stacks), config, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, expect, "\n{text}");
}

const SERVER: &[(&str, u64)] = &[
    ("server;_start;main;run;parse", 600),
    ("server;_start;main;run;parse;alloc_[i]", 100),
    ("server;_start;main;run;read;sys_read_[k]", 290),
    ("server;_start;main;run;log;write;x", 4),
    ("server;_start;main;run;quit", 2),
    ("server;_start;main", 3),
    ("idle", 1),
];

#[test]
fn the_report_has_header_functions_and_tree() {
    let config = TextConfig {
        header: vec!["server, 99 Hz".to_owned(), "1000 samples, 0 lost".to_owned()],
        top: 3,
        ..TextConfig::default()
    };
    let expect = "\
server, 99 Hz
1000 samples, 0 lost
1,000 samples in all; [k] kernel, [i] inlined

self          total          function
 600  60.00%    700  70.00%  parse
 290  29.00%    290  29.00%  sys_read [k]
 100  10.00%    100  10.00%  alloc [i]
   … 9 more

  total     self  call tree
 99.90%    0.30%  server → _start → main
 99.60%           └─ run
 70.00%   60.00%     ├─ parse
 10.00%   10.00%     │  └─ alloc [i]
 29.00%   29.00%     ├─ read → sys_read [k]
  0.60%              └─ … 2 branches below 0.5% each (4 frames)
  0.10%           … 1 branch below 0.5% each (1 frame)
";
    check(SERVER, &config, expect);
}

#[test]
fn long_chains_are_wrapped_below_their_start() {
    let config = TextConfig { columns: 58, top: 0, ..TextConfig::default() };
    let stacks = [
        ("t;aaaaaaaaaaaa;bbbbbbbbbbbb;cccccccccccc;dddddddddddd;e", 1),
        ("t;aaaaaaaaaaaa;bbbbbbbbbbbb;cccccccccccc;dddddddddddd;f", 1),
    ];
    let expect = "\
2 samples in all

  total     self  call tree
   100%           t → aaaaaaaaaaaa → bbbbbbbbbbbb
                  │ → cccccccccccc → dddddddddddd
 50.00%   50.00%  ├─ e
 50.00%   50.00%  └─ f
";
    check(&stacks, &config, expect);
}

#[test]
fn a_tree_without_samples_says_so() {
    let expect = "no samples: nothing was recorded, or a filter left nothing\n";
    check(&[], &TextConfig::default(), expect);
}

#[test]
fn names_cannot_drive_the_terminal() {
    let config = TextConfig { header: vec!["a\x1b]0;b".to_owned()], ..TextConfig::default() };
    let mut out = Vec::new();
    write_text(&tree_of(&[("t\x1b[2J;f\r\n\x07", 1)]), &config, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.chars().filter(|c| c.is_control() && *c != '\n').count(), 0, "{text}");
    assert!(text.contains("t␛[2J → f␍␊␇\n"), "{text}");
}

#[test]
fn time_is_written_in_its_units() {
    let tree = tree_of_value(&[("t;f", 2_500_000_000)], ValueType::new("cpu", "nanoseconds"));
    let mut out = Vec::new();
    write_functions(&tree, &ValueScale::of_tree(&tree, None), 1, &mut out).unwrap();
    let expect = "  self           total          function\n2.50 s    100%  2.50 s    100%  f\n";
    assert_eq!(String::from_utf8(out).unwrap(), expect);
}

#[test]
fn a_stack_of_ten_thousand_frames_is_one_chain() {
    let stack = "f;".repeat(10_000) + "g";
    let mut out = Vec::new();
    write_text(&tree_of(&[(stack.as_str(), 1)]), &TextConfig::default(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().matches('→').count(), 10_000);
}

#[test]
fn callers_follow_their_callees_in_a_turned_tree() {
    let tree = tree_of(&[("t;a;f", 3), ("t;b;f;g", 1)]).callers("f", SiblingOrder::Name);
    let mut out = Vec::new();
    write_text(&tree, &TextConfig::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let (_, tree) = text.split_once("\n  total").unwrap();
    assert_eq!(
        tree,
        "           callers\n   100%           f\n 75.00%           ├─ a ← t\n 25.00%           └─ b ← t\n"
    );
}
