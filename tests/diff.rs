//! `flame diff`: the real binary on files of known differences and on real recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Ended, Scratch, finish, flame, live, program};

/// Stacks with their samples.
type Stacks = BTreeMap<String, u64>;

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

/// 5,000 samples of a server of some hundred stacks; `planted` of them in `encode`, 500 besides.
fn server(planted: u64, seed: u64) -> Stacks {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let mut stacks = Stacks::new();
    for _ in 0..4_500 - planted {
        let mut stack = "server;main".to_owned();
        for level in 0..2 + random.below(4) {
            let limit = 1 + random.below(6);
            stack += &format!(";f{level}_{}", random.below(limit));
        }
        *stacks.entry(stack).or_default() += 1;
    }
    stacks.insert("server;main;encode".to_owned(), 500 + planted);
    stacks
}

fn text(stacks: &Stacks) -> String {
    stacks.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
}

/// A scratch directory with those files.
fn scratch_with(files: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in files {
        fs::write(scratch.file(name), text).unwrap();
    }
    scratch
}

/// `flame diff ARGUMENTS` in that directory.
fn diff(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).arg("diff").args(arguments))
}

/// `flame diff a b ARGUMENTS` of two texts.
fn diff_of(a: &str, b: &str, arguments: &[&str]) -> Ended {
    let scratch = scratch_with(&[("a", a), ("b", b)]);
    diff(&scratch, &[&["a", "b"], arguments].concat())
}

#[track_caller]
fn json_of(ended: Ended) -> Value {
    let ended = ended.success();
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", ended.stdout))
}

/// What is called real: names with whether it is the self weight or the total.
fn real(json: &Value) -> Vec<(String, &'static str)> {
    let functions = json["functions"].as_array().unwrap().iter();
    let parts = functions.flat_map(|function| ["self", "total"].map(|part| (function, part)));
    let real = parts.filter(|(function, part)| function[part]["differs"] == true);
    real.map(|(function, part)| (function["name"].as_str().unwrap().to_owned(), part)).collect()
}

#[test]
fn five_points_are_in_the_table_and_a_fifth_of_a_point_is_not() {
    let before = text(&server(0, 1));
    let found = diff_of(&before, &text(&server(250, 2)), &[]).success();
    let row = found.stdout.lines().find(|line| line.ends_with("  encode")).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..3], ["10.00%", "15.00%", "+5.00"], "{}", found.stdout);
    assert!(found.stdout.contains("before  a: 5,000 samples\nafter   b: 5,000 samples\n"));
    let missed = diff_of(&before, &text(&server(10, 2)), &[]).success();
    assert!(!missed.stdout.contains("encode"), "{}", missed.stdout);
    let all = diff_of(&before, &text(&server(10, 2)), &["--all", "--limit", "1000"]).success();
    let row = all.stdout.lines().find(|line| line.ends_with("  encode")).unwrap_or_default();
    assert!(row.contains("(+0.20)"), "{}", all.stdout);
}

#[test]
fn a_profile_and_itself_differ_in_nothing() {
    let stacks = text(&server(0, 1));
    let ended = diff_of(&stacks, &stacks, &["--all"]).success();
    assert!(ended.stdout.contains("\nnothing changed\n"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "warning: a and b are identical: every stack weighs the same\n");
}

#[test]
fn swapping_the_sides_swaps_signs_and_changes_add_up() {
    let (a, b) = (text(&server(0, 3)), text(&server(300, 4)));
    for option in ["--alpha=5", "--no-normalize"] {
        let forth = json_of(diff_of(&a, &b, &["--json", option]));
        let back = json_of(diff_of(&b, &a, &["--json", option]));
        let changes = |json: &Value, sign: f64| -> BTreeMap<String, (i64, bool, bool)> {
            let functions = json["functions"].as_array().unwrap().iter();
            let change = |f: &Value| (sign * 1e6 * f["self"]["percent"].as_f64().unwrap()).round();
            let real = |f: &Value, part: &str| f[part]["real"].as_bool().unwrap();
            functions
                .map(|f| {
                    let name = f["name"].as_str().unwrap().to_owned();
                    (name, (change(f) as i64, real(f, "self"), real(f, "total")))
                })
                .collect()
        };
        assert_eq!(changes(&forth, 1.0), changes(&back, -1.0));
        assert!(real(&forth).contains(&("encode".to_owned(), "self")));
        let own = forth["functions"].as_array().unwrap().iter();
        let sum: f64 = own.map(|f| f["self"]["change"].as_f64().unwrap()).sum();
        assert!(sum.abs() < 1e-6, "both sides have 5,000 samples: {sum}");
    }
}

#[test]
fn three_columns_are_exact_and_read_back() {
    let (a, b) = ("p;a 10\np;b 20\np;c;0x12 3\n", "p;a 5\np;d 17\np;c;0x99 1\n");
    let columns = |options: &[&str]| {
        diff_of(a, b, &[options, &["--format", "folded"]].concat()).success().stdout
    };
    let expect = "p;a 10 5\np;b 20 0\np;c;0x12 3 0\np;c;0x99 0 1\np;d 0 17\n";
    assert_eq!(columns(&["--no-normalize"]), expect);
    // Both have 33 samples and 23: a third of 10 * 23 / 3 and so on, exact to a millionth.
    let expect = "p;a 6.969697 5\np;b 13.939394 0\np;c;0x... 2.090909 1\np;d 0 17\n";
    assert_eq!(columns(&["--strip-hex"]), expect);

    let scratch = scratch_with(&[("both.folded", &columns(&["--no-normalize"]))]);
    let json = json_of(diff(&scratch, &["both.folded", "--no-normalize", "--json"]));
    assert_eq!((&json["before"]["total"], &json["after"]["total"]), (&33.0.into(), &23.0.into()));
    let again = diff(&scratch, &["both.folded", "--no-normalize", "--format", "folded"]);
    assert_eq!(again.success().stdout, columns(&["--no-normalize"]));
    diff(&scratch, &["both.folded", "both.folded"]).error(2, &["has two counts a line"]);
}

#[test]
fn sides_are_scaled_as_asked_for() {
    let (a, b) = ("p;work 30\np;rest 10\n", "p;work 60\np;rest 60\n");
    let factor = |options: &[&str]| {
        let json = json_of(diff_of(a, b, &[options, &["--json"]].concat()));
        (json["factor"].as_f64().unwrap(), json["scaling"].as_str().unwrap().to_owned())
    };
    assert_eq!(factor(&[]), (3.0, "total".to_owned()));
    assert_eq!(factor(&["--no-normalize"]), (1.0, "none".to_owned()));
    assert_eq!(factor(&["--per", "work"]), (2.0, "function".to_owned()));
    diff_of(a, b, &["--per", "wrok"]).error(1, &["cannot scale by wrok", "before has no function"]);
    diff_of(a, b, &["--by-time"]).error(1, &["a does not say how long it took", "try:"]);
    diff_of(a, b, &["--per", "work", "--by-time"]).error(2, &["cannot be used with"]);
}

#[test]
fn names_of_another_build_can_be_made_equal() {
    let a = "p;parse::h0123456789abcdef;Vec<int>::push 40\np;read.part.3 60\n";
    let b = "p;parse::hfedcba9876543210;Vec<long>::push 40\np;read.constprop.0 60\n";
    let ended = diff_of(a, b, &["--match-names", "--format", "folded"]).success();
    assert_eq!(ended.stdout, "p;parse;Vec<>::push 40 40\np;read 60 60\n");
}

#[test]
fn a_bound_that_is_exceeded_ends_with_status_3() {
    let (a, b) = (text(&server(0, 5)), text(&server(250, 6)));
    let gate = |bound: &str| diff_of(&a, &b, &["--fail-if", bound]);
    let parts = [
        "encode grew by 5.00 points in its self weight, from 10.00 % to 15.00 %",
        "more than --fail-if 'encode:self>+2%'",
        "why: chance alone does that with p < 0.0001, corrected for",
    ];
    gate("encode:self>+2%").error(3, &parts);
    gate("self>4%").error(3, &["encode grew by 5.00 points"]);
    for bound in ["encode:self>5.1%", "encode:self<-1%", "total>9%"] {
        assert_eq!(gate(bound).code(), 0, "{bound}");
    }
    // More than the bound, but it could be noise.
    let (few, fewer) = ("p;a 7\np;b 4\np;c 5\n", "p;a 4\np;b 7\np;c 5\n");
    assert_eq!(diff_of(few, fewer, &["--fail-if", "b:self>5%"]).code(), 0);
    gate("nobody:self>1%").error(2, &["no function nobody for --fail-if", "--allow-missing"]);
    // What is wrong with one gate does not hide that another broke.
    let more =
        |more: &[&str]| diff_of(&a, &b, &[&["--fail-if", "nobody:self>1%", "-q"], more].concat());
    more(&["--fail-if", "encode:self>2%"]).error(2, &["encode grew by", "no function nobody"]);
    let unknown = diff_of(&a, &b, &["--fail-if", "nobody:self>1%", "--allow-missing"]);
    let unknown = unknown.success();
    assert_eq!(unknown.stderr, "warning: no function nobody for --fail-if in either profile\n");
    gate("encode>2%").error(2, &["'encode>2%'", "a bound is written like 'total>5%'"]);
}

/// `./old` and `./new` are one program: without that nothing of them could be compared.
#[test]
fn single_roots_of_two_names_are_compared_as_one() {
    let (a, b) =
        ("old;main;parse 600\nold;main;send 400\n", "new;main;parse 610\nnew;main;send 390\n");
    let ended = diff_of(a, b, &["--format", "folded"]).success();
    assert_eq!(ended.stdout, "new;main;parse 600 610\nnew;main;send 400 390\n");
    let said = "warning: the outermost frames old (before) and new (after) are compared as one\n";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    // Where a side has several, nobody knows which are meant.
    let two = format!("{a}other;main 5\n");
    let ended = diff_of(&two, b, &["--format", "folded"]).success();
    assert!(!ended.stderr.contains("compared as one"), "{}", ended.stderr);
}

/// Two recordings differ by nothing that is worth a headline, whatever interrupts did.
#[test]
fn one_recording_a_side_is_called_real_by_nobody() {
    let a = "p;main 9000\np;main;asm_sysvec_apic_timer_interrupt_[k];tick_[k] 901\np;main;f 99\n";
    let b = "p;main 9000\np;main;asm_sysvec_apic_timer_interrupt_[k];tick_[k] 401\np;main;f 599\n";
    let ended = diff_of(a, b, &[]).success();
    let text = &ended.stdout;
    assert!(text.contains("with one recording per side, nothing is called real"), "{text}");
    assert!(text.contains(
        "time in interrupts belongs to the machine and is not listed: 9.01% before, 4.01% after"
    ));
    assert!(!text.contains("tick") && text.contains("  f"), "{text}");
    let json = json_of(diff_of(a, b, &["--json"]));
    assert_eq!(real(&json), [("f".to_owned(), "self"), ("f".to_owned(), "total")]);
    let functions = json["functions"].as_array().unwrap();
    assert!(functions.iter().all(|f| f["self"]["real"] == false && f["total"]["real"] == false));
}

#[test]
fn several_runs_a_side_are_found_by_a_pattern() {
    let runs: Vec<(String, String)> = (0..6)
        .map(|run| (format!("{}{run}.folded", if run < 3 { "old" } else { "new" }), run))
        .map(|(name, run)| (name, text(&server(if run < 3 { 0 } else { 250 }, run + 7))))
        .collect();
    let files: Vec<(&str, &str)> = runs.iter().map(|(name, text)| (&**name, &**text)).collect();
    let scratch = scratch_with(&files);
    let arguments = ["--before", "old*.folded", "--after", "new?.folded", "--json"];
    let json = json_of(diff(&scratch, &arguments));
    let names = ["old0.folded", "old1.folded", "old2.folded"];
    assert_eq!(json["before"]["profiles"], serde_json::json!(names));
    assert_eq!(json["after"]["samples"], 15_000.0);
    assert_eq!(real(&json)[0], ("encode".to_owned(), "self"));
    let repeated = ["--before", "old0.folded", "old1.folded", "--before", "old2.folded"];
    let repeated = [&repeated[..], &["--after", "new[345].folded", "--json"]].concat();
    assert_eq!(json_of(diff(&scratch, &repeated)), json);
    let table = diff(&scratch, &["--before", "old*.folded", "--after", "new*.folded"]).success();
    let smallest =
        "with these recordings, a function of 10 % is called real from a change of about ";
    assert!(table.stdout.contains(smallest), "{}", table.stdout);
    assert!(table.stdout.contains("; with 5 recordings per side, from about "), "{}", table.stdout);
    let none = ["--before", "x*.folded", "--after", "new*.folded"];
    diff(&scratch, &none).error(1, &["no file matches x*.folded"]);
}

#[test]
fn inputs_that_cannot_be_compared_are_named() {
    let scratch = scratch_with(&[("a", "p;a 10\n"), ("empty", ""), ("zero", "p;a 0\n")]);
    diff(&scratch, &["a", "missing"]).error(1, &["cannot read missing: no such file"]);
    diff(&scratch, &["a", "empty"]).error(1, &["no stacks in empty", "why:"]);
    diff(&scratch, &["zero", "a"]).error(1, &["no stacks in zero"]);
    diff(&scratch, &["a"]).error(2, &["only a to compare", "try: flame diff a OTHER"]);
    diff(&scratch, &[]).error(2, &["nothing to compare"]);
    diff(&scratch, &["a", "a", "a"]).error(2, &["two profiles are compared, not 3"]);
    diff(&scratch, &["-", "-"]).error(2, &["stdin can be read only once"]);
    diff(&scratch, &["a", "a", "-o", "x.pb.gz"]).error(2, &["cannot be written as pprof"]);
    diff(&scratch, &["a", "a", "--factor", "2"]).error(2, &["--factor is not for comparisons"]);
    diff(&scratch, &["a", "--values", "x,y"]).error(2, &["a has one value only"]);
    diff(&scratch, &["a", "a", "--values", "x,y"]).error(2, &["a has one value only"]);
    let without = diff(&scratch, &["a", "a", "--base", "b"]);
    without.error(1, &["nothing is left of a", "why: no stack has b"]);
    let few = diff(&scratch, &["a", "a"]).success();
    assert!(few.stdout.contains("too few samples to tell a change from noise"), "{}", few.stdout);
    fs::write(scratch.file("renamed"), "q;a 10\nr;a 1\n").unwrap();
    let renamed = diff(&scratch, &["a", "renamed"]).success();
    assert!(renamed.stderr.contains("(p, q), so all is new or vanished"), "{}", renamed.stderr);
    let from_a = diff(&scratch, &["a", "renamed", "--base", "a"]).success();
    assert!(!from_a.stderr.contains("vanished"), "{}", from_a.stderr);
    fs::write(scratch.file("odd"), "p;a 10\nnonsense\n").unwrap();
    let odd = diff(&scratch, &["a", "odd", "--all"]).success();
    assert!(odd.stderr.contains("1 line is left out of odd"), "{}", odd.stderr);
}

/// As of several inputs of other commands.
#[test]
fn a_run_that_cannot_be_read_takes_none_of_its_side_away() {
    let runs = [("i1", "p;a 10\np;b 9\n"), ("i2", "p;a 10\np;b 9\n"), ("i3", "p;a 4\n")];
    let scratch = scratch_with(&[&runs[..], &[("empty", "")]].concat());
    fs::write(scratch.file("bad.bin"), b"\x00\x01\x02\x03 no profile").unwrap();
    let expect = json_of(diff(&scratch, &["--before", "i1", "--after", "i2", "i3", "--json"]));
    let sides = ["--before", "bad.bin", "i1", "--after", "i2", "empty", "i3", "--json"];
    let ended = diff(&scratch, &sides).success();
    let left_out: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("left out: ")).collect();
    assert!(left_out[0].starts_with("warning: left out: cannot read bad.bin: "), "{left_out:?}");
    assert_eq!(left_out[1..], ["warning: left out: cannot read empty: it is empty"]);
    let json = json_of(ended);
    for part in ["before", "after", "functions"] {
        assert!(!json[part].is_null());
        assert_eq!(json[part], expect[part], "{part}");
    }
    diff(&scratch, &[&sides[..], &["--strict"]].concat()).error(1, &["cannot read bad.bin"]);
    for none in [&["bad.bin"][..], &["bad.bin", "empty"]] {
        let sides = [&["--before", "i1", "--after"], none].concat();
        diff(&scratch, &sides).error(1, &["cannot read bad.bin"]);
    }
    let missing = ["--before", "i1", "nowhere", "--after", "i2"];
    diff(&scratch, &missing).error(1, &["cannot read nowhere"]);
    std::os::unix::fs::symlink("nowhere", scratch.file("link")).unwrap();
    let link = ["--before", "i1", "link", "--after", "i2"];
    diff(&scratch, &link).error(1, &["cannot read link"]);
}

#[test]
fn reports_go_to_files_and_pull_requests() {
    let scratch = scratch_with(&[("a|b", &text(&server(0, 1))), ("b", &text(&server(250, 2)))]);
    let outputs = ["-o", "d.svg", "-o", "d.txt", "-o", "d.json", "--markdown"];
    let ended = diff(&scratch, &[&["a|b", "b"], &outputs[..]].concat()).success();
    assert!(ended.stdout.starts_with("### Profiles compared\n\n- before: a\\|b: 5,000 samples\n"));
    let row = ended.stdout.lines().find(|line| line.ends_with("| encode |")).unwrap_or_default();
    assert!(row.starts_with("| 10.00% | 15.00% | **+5.00** "), "{}", ended.stdout);
    let verdict = "1 function differs between these two recordings, first encode by +5.00 points of \
                   self weight\n";
    assert!(ended.stderr.ends_with(verdict), "{}", ended.stderr);
    let svg = fs::read_to_string(scratch.file("d.svg")).unwrap();
    assert!(roxmltree::Document::parse(&svg).is_ok() && svg.contains("encode"));
    assert!(fs::read_to_string(scratch.file("d.txt")).unwrap().contains("encode"));
    let json = fs::read_to_string(scratch.file("d.json")).unwrap();
    assert_eq!(real(&serde_json::from_str(&json).unwrap())[0].0, "encode");
}

/// Records a compiler, which has thousands of stacks.
#[track_caller]
fn compiler(scratch: &Scratch, name: &str, source: &str) -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let (source, path) = (sources.join(source), scratch.file(name));
    let object = scratch.file("object.o");
    let mut command = flame();
    command.args(["record", "-F", "1999", "-o", &path, "--", "g++", "-O2", "-c", "-o", &object]);
    finish(command.arg(source)).success();
    path
}

#[test]
fn random_halves_of_a_real_recording_do_not_differ() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let recorded = fs::read_to_string(compiler(&scratch, "cc.folded", "names.cpp")).unwrap();
    let lines = recorded.lines().map(|line| line.rsplit_once(' ').unwrap());
    let stacks: Vec<(&str, u64)> = lines.map(|(stack, n)| (stack, n.parse().unwrap())).collect();
    let samples: u64 = stacks.iter().map(|(_, samples)| samples).sum();
    assert!(samples > 300 && stacks.len() > 200, "{samples} samples, {} stacks", stacks.len());
    let mut random = Random(42);
    let mut alarms = Vec::new();
    for split in 0..100 {
        let mut halves = [Stacks::new(), Stacks::new()];
        for (stack, samples) in &stacks {
            for _ in 0..*samples {
                let half = &mut halves[random.below(2) as usize];
                *half.entry((*stack).to_owned()).or_default() += 1;
            }
        }
        let json = json_of(diff_of(&text(&halves[0]), &text(&halves[1]), &["--json"]));
        assert!(json["tested"].as_u64() > Some(10), "{}", json["tested"]);
        let real = real(&json);
        if !real.is_empty() {
            alarms.push((split, real));
        }
    }
    assert!(alarms.len() <= 5, "{} of 100: {alarms:?}", alarms.len());
}

#[test]
fn columns_are_those_of_difffolded() {
    let script =
        std::env::var_os("FLAMEGRAPH_DIR").map(|dir| PathBuf::from(dir).join("difffolded.pl"));
    let Some(script) = script.filter(|script| script.is_file()) else {
        eprintln!("SKIP: FLAMEGRAPH_DIR does not say where difffolded.pl is");
        return;
    };
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let one = compiler(&scratch, "one.folded", "names.cpp");
    let two = compiler(&scratch, "two.folded", "names.cpp");
    let other = compiler(&scratch, "other.folded", "shares.c");
    for (a, b) in [(&one, &two), (&one, &other), (&other, &two)] {
        check_columns(&script, &[], a, b, &["--no-normalize"]);
        check_columns(&script, &["-s"], a, b, &["--no-normalize", "--strip-hex"]);
        check_columns(&script, &["-n"], a, b, &[]);
    }
}

/// The lines of both programs are equal, but for fractions, which difffolded.pl cuts off.
#[track_caller]
fn check_columns(script: &Path, theirs: &[&str], a: &str, b: &str, ours: &[&str]) {
    let perl = Command::new("perl").arg(script).args(theirs).args([a, b]).output().unwrap();
    let folded = finish(flame().args(["diff", a, b, "--format", "folded"]).args(ours)).success();
    let lines = |text: &str| -> Vec<(String, u64, u64)> {
        let number = |text: &str| text.split('.').next().unwrap().parse().unwrap();
        let line = |line: &str| {
            let (rest, after) = line.rsplit_once(' ').unwrap();
            let (stack, before) = rest.rsplit_once(' ').unwrap();
            (stack.to_owned(), number(before), number(after))
        };
        let mut lines: Vec<_> = text.lines().map(line).collect();
        lines.sort();
        lines
    };
    let (theirs, ours) = (lines(&String::from_utf8_lossy(&perl.stdout)), lines(&folded.stdout));
    assert!(theirs.len() > 100, "{} lines", theirs.len());
    let differences: Vec<_> = theirs.iter().zip(&ours).filter(|(a, b)| a != b).collect();
    assert!(theirs.len() == ours.len() && differences.is_empty(), "{differences:?}");
}

#[test]
fn values_of_one_profile_are_compared() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("cpu.pb.gz");
    let shares = program("shares.c");
    let arguments = ["record", "-F", "999", "-o", &path, "--", &shares, "0.3"];
    finish(flame().args(arguments)).success();
    let json = json_of(diff(&scratch, &["cpu.pb.gz", "--values", "samples,cpu", "--json"]));
    assert_eq!(
        (&json["before"]["unit"], &json["after"]["unit"]),
        (&"count".into(), &"nanoseconds".into())
    );
    assert_eq!(json["before"]["samples"], json["after"]["samples"]);
    // Each sample stands for as much time: no function has more of one than of the other.
    assert_eq!(real(&json), []);
    let wrong = diff(&scratch, &["cpu.pb.gz", "--values", "samples,cycles"]);
    wrong.error(2, &["no value cycles in cpu.pb.gz: it has samples and cpu"]);
    let by_time = json_of(diff(&scratch, &["cpu.pb.gz", "cpu.pb.gz", "--by-time", "--json"]));
    assert_eq!(by_time["factor"], 1.0);
    // Folded text counts samples, so those are taken of the other profile, too.
    fs::write(scratch.file("a.folded"), "shares;main 30\n").unwrap();
    let mixed = json_of(diff(&scratch, &["a.folded", "cpu.pb.gz", "--json"]));
    assert_eq!(mixed["after"]["value"], "samples");
    let other = diff(&scratch, &["a.folded", "cpu.pb.gz", "--value", "cpu"]);
    other.error(2, &["no value cpu in a.folded", "why: folded text has names and one count"]);
}
