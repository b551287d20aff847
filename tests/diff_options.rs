//! `flame diff`: what its outputs say of their inputs, and options that mean something or are refused.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Scratch, finish, flame, live, program};

const BEFORE: &str = "p;main;parse 600\np;main;send 400\n";
/// One line is not a stack.
const AFTER: &str = "p;main;parse 900\np;main;send 100\nrubbish\n";

/// A scratch directory with both profiles.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.file("v1"), BEFORE).unwrap();
    fs::write(scratch.file("v2"), AFTER).unwrap();
    scratch
}

/// `flame diff v1 v2 OPTIONS` in that directory; each sample weighs 1.
fn diff(scratch: &Scratch, options: &[&str]) -> Ended {
    let files = ["diff", "v1", "v2", "--samples-per-unit", "1"];
    finish(flame().current_dir(scratch.path()).args(files).args(options))
}

#[test]
fn every_output_says_how_good_its_inputs_are() {
    let scratch = scratch();
    let outputs = ["d.svg", "d.txt", "d.md", "d.json"];
    let options = outputs.map(|name| ["-o", name]).concat();
    let ended = diff(&scratch, &options).success();
    let expect = "warning: 1 line is left out of v2: no stack with a count at the end\n";
    assert!(ended.stderr.starts_with(expect), "{}", ended.stderr);
    for name in ["d.svg", "d.txt", "d.md"] {
        let text = fs::read_to_string(scratch.file(name)).unwrap();
        assert!(text.contains("v2: 1 line not readable"), "{name}: {text}");
        assert!(text.contains("one recording per side"), "{name}: {text}");
    }
    let json = fs::read_to_string(scratch.file("d.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let skipped = ["before", "after"].map(|side| &json[side]["runs"][0]["skipped_lines"]);
    assert_eq!(skipped, [&Value::from(0), &Value::from(1)]);
    assert_eq!(json["before"]["runs"][0]["lost"], Value::Null);
    let bare = diff(&scratch, &["--no-metadata"]).success();
    assert!(!bare.stdout.contains("not readable"), "{}", bare.stdout);
}

#[test]
fn warnings_are_part_of_the_outputs() {
    let scratch = scratch();
    fs::write(scratch.file("v2"), BEFORE).unwrap();
    let warning = "v1 and v2 are identical: every stack weighs the same";
    // Silence is for the terminal: files are read without what was said there.
    let ended = diff(&scratch, &["-q"]).success();
    assert!(ended.stdout.ends_with(&format!("warning: {warning}\n")), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");
    let json = diff(&scratch, &["-q", "--json"]).success().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["warnings"], serde_json::json!([warning]));
}

#[test]
fn files_that_are_given_twice_are_named() {
    let scratch = scratch();
    let diff = |arguments: &[&str]| {
        finish(flame().current_dir(scratch.path()).arg("diff").args(arguments)).success().stderr
    };
    let found = diff(&["--before", "v1", "v*", "--after", "v2", "--format", "folded"]);
    let expect = "warning: v1 is given twice on one side: its samples are counted twice, so changes look \
                  more certain than they are\nwarning: v2 is on both sides\n";
    assert!(found.ends_with(expect), "{found}");
    assert!(!diff(&["--before", "v1", "--after", "v2"]).contains("twice"));
}

#[test]
fn weights_that_are_no_counts_are_doubted() {
    let scratch = Scratch::new();
    // Microseconds off the CPU; and how often the same stacks were sampled, in periods of one length.
    let file = |name: &str, weight: &dyn Fn(u64) -> u64| {
        let lines = (1..=40_u64).map(|at| format!("p;f{at} {}\n", weight(at)));
        fs::write(scratch.file(name), lines.collect::<String>()).unwrap();
    };
    file("times", &|at| 1000 + at * 7919 % 10_007);
    file("samples", &|at| 10_101_010 * (1 + at % 30));
    let diff = |options: &[&str]| {
        let files = ["diff", "times", "samples"];
        let ended = finish(flame().current_dir(scratch.path()).args(files).args(options));
        ended.success().stderr
    };
    let found = diff(&[]);
    assert!(found.contains("hardly two weights of times are the same"), "{found}");
    assert!(!found.contains("weights of samples"), "{found}");
    assert!(!diff(&["--samples-per-unit", "0.001"]).contains("hardly"));
}

#[test]
fn titles_and_names_of_counts_are_in_the_table() {
    let ended = diff(&scratch(), &["--title", "Release 2", "--countname", "hits"]).success();
    let expect = "Release 2\n\nbefore  v1: 1,000 hits, 1,000 samples\nafter   v2: 1,000 hits";
    assert!(ended.stdout.starts_with(expect), "{}", ended.stdout);
}

#[track_caller]
fn check_refused(options: &[&str], expect: &str) {
    let ended = diff(&scratch(), &[options, &["-o", "diff.svg"]].concat());
    ended.error(2, &[options[0], "is not for comparisons", expect]);
}

#[test]
fn options_that_would_do_nothing_are_refused_with_what_does() {
    check_refused(&["--negate"], "try: --view before");
    for colours in [&["--colors", "hot"][..], &["--hash"], &["--random"], &["--colordiffusion"]] {
        check_refused(colours, "try: --colors-diff safe");
    }
    for report in [&["--flat"][..], &["--min-share", "1"]] {
        check_refused(report, "try: --all");
    }
    for scaling in [&["--factor", "2"][..], &["--total", "9000"]] {
        check_refused(scaling, "try: --no-normalize");
    }
    check_refused(&["--flamechart"], "why: the stacks of both sides are summed up");
    for option in [["--view", "delta"], ["--color-by", "total"]] {
        diff(&scratch(), &option).error(2, &["is for pictures", "try: -o diff.svg"]);
    }
    let help = finish(flame().args(["diff", "--help"])).success().stdout;
    let offered = ["negate", "colors ", "hash", "flat", "factor", "no-sort"];
    let offered = offered.map(|option| help.contains(&format!("--{option}")));
    assert_eq!((offered, help.contains("--colors-diff")), ([false; 6], true));
    let ids = diff(&scratch(), &["--root-tid"]);
    ids.error(2, &["no thread ids in v1", "why: folded text has names"]);
}

/// Records one event of a program that takes 500 page faults and 200 naps.
#[track_caller]
fn recorded(scratch: &Scratch, event: &str) {
    let (path, program) = (scratch.file(&format!("{event}.pb.gz")), program("events.c"));
    let options = ["record", "-e", event, "-c", "1", "-o", &path, "--", &program, "500", "200"];
    finish(flame().args(options)).success();
}

#[test]
fn two_events_of_two_recordings_are_the_two_sides() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    recorded(&scratch, "page-faults");
    recorded(&scratch, "context-switches");
    let files = ["page-faults.pb.gz", "context-switches.pb.gz"];
    let diff = |options: &[&str]| {
        finish(flame().current_dir(scratch.path()).arg("diff").args(files).args(options))
    };
    let refused = ["why: one has page-faults", "try: --values page-faults,context-switches"];
    diff(&[]).error(1, &refused);
    let options = ["--values", "page-faults,context-switches", "--json", "-o", "d.svg"];
    let json: Value = serde_json::from_str(&diff(&options).success().stdout).unwrap();
    let value = |side: &str| json[side]["value"].clone();
    assert_eq!([value("before"), value("after")], ["page-faults", "context-switches"]);
    let functions = json["functions"].as_array().unwrap();
    let function = |name: &str| {
        let total = functions.iter().find(|f| f["name"] == name).map(|f| &f["total"]).unwrap();
        let numbers = ["before", "after"].map(|side| total[side].as_f64().unwrap());
        (numbers, total["differs"].as_bool().unwrap())
    };
    // How often the scheduler interrupts it is the machine's affair.
    let ([faults, _], _) = function("touch_pages");
    assert!((500.0..520.0).contains(&faults), "{faults}");
    let ([faults, switches], real) = function("take_naps");
    assert!(faults < 20.0 && switches >= 190.0 && real, "{faults} {switches}");
    let table = diff(&["--values", "page-faults,context-switches"]).success();
    let heads = table.stdout.lines().find(|line| line.contains("change  ")).unwrap_or_default();
    let heads: Vec<&str> = heads.split_whitespace().collect();
    assert_eq!(heads[..3], ["page-faults", "context-switches", "change"], "{}", table.stdout);
    let svg = fs::read_to_string(scratch.file("d.svg")).unwrap();
    assert!(svg.contains("context-switches per page-faults"));
    let wrong = diff(&["--values", "page-faults,cycles"]);
    wrong.error(2, &["no value cycles in context-switches.pb.gz: it has samples and"]);
}

#[test]
fn functions_are_named_as_files_or_the_table_have_them() {
    let scratch = Scratch::new();
    fs::write(scratch.file("v1"), "p;Vec<int>::push(int) 500\np;send_[k] 500\n").unwrap();
    fs::write(scratch.file("v2"), "p;Vec<long>::push(long) 900\np;send_[k] 300\n").unwrap();
    for bound in ["Vec<int>::push(int):self>1%", "Vec<>::push(...):self>1%", "send [k]:self<-9%"] {
        let ended = diff(&scratch, &["--match-names", "--fail-if", bound]);
        ended.error(3, &["in its self weight", "--fail-if"]);
    }
    let options = ["--match-names", "--per", "Vec<long>::push(long)", "--json"];
    let json: Value = serde_json::from_str(&diff(&scratch, &options).success().stdout).unwrap();
    assert_eq!(json["factor"], 1.8);
}

#[test]
fn bounds_that_noise_exceeds_are_named_and_pass() {
    let scratch = Scratch::new();
    fs::write(scratch.file("v1"), "p;a 7\np;b 4\np;c 5\n").unwrap();
    fs::write(scratch.file("v2"), "p;a 4\np;b 7\np;c 5\n").unwrap();
    let ended = diff(&scratch, &["--fail-if", "b:self>5%", "--fail-if", "a:self>5%"]).success();
    let expect = "warning: b exceeds --fail-if 'b:self>5%', but that could be noise: it changed by \
                  +18.75; longer recordings, or more of them, would tell\n";
    assert_eq!(ended.stderr, expect);
}

#[test]
fn what_one_side_has_is_marked() {
    let scratch = Scratch::new();
    fs::write(scratch.file("v1"), "p;kept 500\np;gone 500\n").unwrap();
    fs::write(scratch.file("v2"), "p;kept 500\np;added 500\n").unwrap();
    let ended = diff(&scratch, &[]).success();
    let lines = |word: &str| ended.stdout.lines().filter(|line| line.ends_with(word)).count();
    assert_eq!([lines("  gone (vanished)"), lines("  added (new)")], [1, 1], "{}", ended.stdout);
    let json: Value = serde_json::from_str(&diff(&scratch, &["--json"]).success().stdout).unwrap();
    let functions = json["functions"].as_array().unwrap().iter();
    let presence: Vec<&str> = functions.map(|f| f["presence"].as_str().unwrap()).collect();
    assert_eq!(presence, ["new", "vanished", "both"]);
    let callers = diff(&scratch, &["--callers", "gone"]);
    callers.error(1, &["nothing is left of v2", "why: no stack has gone"]);
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    let scratch = Scratch::new();
    let name = "std::collections::hash::map::HashMap::insert_unique_without_looking";
    fs::write(scratch.file("v1"), format!("p;{name} 500\np;kept 500\n")).unwrap();
    fs::write(scratch.file("v2"), "p;kept 900\np;added 100\n").unwrap();
    let command = ["diff", "v1", "v2", "--samples-per-unit", "1", "--format", "term"];
    let ended =
        finish(flame().current_dir(scratch.path()).env("COLUMNS", "80").args(command)).success();
    let widths: Vec<usize> = ended.stdout.lines().map(|line| line.chars().count()).collect();
    assert_eq!(widths.iter().max(), Some(&80), "{}", ended.stdout);
    assert!(ended.stdout.contains("…king (vanished)\n"), "{}", ended.stdout);
    assert!(diff(&scratch, &[]).success().stdout.contains(name));
}
