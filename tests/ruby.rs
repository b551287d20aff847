//! Ruby programs: their methods and blocks stand where they ran, called by who called them.

use std::fs;
use std::process::Command;

use crate::support::callers::may_call;
use crate::support::callers::ruby::{LEGAL, LEGAL_IN_TEXTS, SPINNERS};
use crate::support::scripts::{
    self, has, newer, record, record_newer, record_whole, script, scripted, whole_share,
};
use crate::support::{
    Build, Folded, Scratch, Target, assert_share, finish, flame, live, live_as_root, program_built,
};

/// Debian's: with its library, which is stripped.
const RUBY: &str = "/usr/bin/ruby";

/// The function of a frame of the program, without the class that all methods outside of classes have; nothing of
/// methods in C, which have no line, and of Ruby's own library.
fn function(frame: &str) -> Option<String> {
    let (name, file) = scripted(frame)?;
    let name = name.replace("Object#", "");
    match file {
        "script.rb" => Some(name),
        "(eval)" => Some(format!("{name} in a text")),
        _ => None,
    }
}

#[track_caller]
fn record_script(what: &str, options: &[&str]) -> (Folded, String) {
    let script = script("script.rb");
    let command = ["--", RUBY, "--disable-gems", script.to_str().unwrap(), what, "2"];
    record(&[options, &command].concat())
}

/// Holds each stack against who may call whom.
#[track_caller]
fn check_chains(folded: &Folded) {
    scripts::check_chains(folded, function, |caller, name| {
        let caller = caller.map_or("-", String::as_str);
        may_call(LEGAL, SPINNERS, caller, name) || may_call(LEGAL_IN_TEXTS, &[], caller, name)
    });
}

/// Records a part of the program, holds its chains against the truth, and requires that nearly all are whole.
#[track_caller]
fn check(what: &str) -> Option<(Folded, String)> {
    if !live_as_root() || !has(RUBY) {
        return None;
    }
    Some(record_whole(97.0, || {
        let (folded, said) = record_script(what, &[]);
        check_chains(&folded);
        (folded, said)
    }))
}

/// `block in Order#total` without the class, which is not known from 3.2 on.
fn without_class(name: &str) -> String {
    let (before, method) = name.rsplit_once(" in ").map_or((None, name), |(b, m)| (Some(b), m));
    let method = method.rsplit(['#', '.']).next().unwrap_or(method);
    before.map_or_else(|| method.to_owned(), |before| format!("{before} in {method}"))
}

#[test]
fn newer_ruby_is_read() {
    let Some(mut command) = newer("/usr/bin/ruby3.3", "script.rb").filter(|_| live_as_root())
    else {
        return;
    };
    command.insert(3, "--disable-gems".to_owned());
    let is = |name: &str, of: &str| without_class(name) == without_class(of);
    let may_call = |caller: &str, name: &str| {
        let legal = LEGAL
            .iter()
            .chain(LEGAL_IN_TEXTS)
            .any(|(callee, callers)| is(name, callee) && callers.iter().any(|of| is(caller, of)));
        legal || name == "spin" && SPINNERS.iter().any(|of| is(caller, of))
    };
    // A program of several threads has stacks whose frames are guessed.
    for what in ["shares", "callbacks", "fibers", "deep", "churn"] {
        record_newer(&command, what, |folded| {
            scripts::check_chains(folded, function, |caller, name| {
                may_call(caller.map_or("-", String::as_str), name)
            });
        });
    }
}

/// Samples in which one function calls another, through methods in C or not.
fn calls(folded: &Folded, caller: &str, callee: &str) -> u64 {
    let calls = |stack: &[String]| {
        let names: Vec<String> = stack.iter().filter_map(|frame| function(frame)).collect();
        names.windows(2).any(|pair| pair[0] == caller && pair[1] == callee)
    };
    folded.stacks().filter(|(stack, _)| calls(stack)).map(|(_, weight)| weight).sum()
}

#[test]
fn methods_have_the_shares_that_they_take() {
    let Some((folded, _)) = check("shares") else { return };
    for caller in ["one", "other"] {
        let each = ["half", "third", "fifth"].map(|of| calls(&folded, caller, of));
        let all = each.iter().sum();
        for (weight, share) in each.into_iter().zip([0.5, 0.3, 0.2]) {
            assert_share(weight, all, share, 0.03);
        }
    }
    let all = calls(&folded, "block (2 levels) in until_end", "shares");
    assert_share(calls(&folded, "shares", "one"), all, 0.5, 0.03);
}

#[test]
fn what_methods_in_c_call_back_stands_below_them() {
    let Some((folded, said)) = check("callbacks") else { return };
    // The caller, the method in C between, what it calls.
    let cases = [
        ("order", "Enumerable#sort_by", "block in order"),
        ("order", "Array#map", "block in order"),
        ("order", "Array#sort", "Number#<=>"),
        ("Number.of", "Class#new", "Number#initialize"),
        ("hashes", "Hash#each", "block in hashes"),
        ("hashes", "Integer#times", "block in hashes"),
        ("hashes", "String#gsub", "block in hashes"),
        ("Number#defined", "Array#each", "block (2 levels) in <class:Number>"),
        ("guarded", "Kernel#catch", "block in guarded"),
        ("texts", "Kernel#eval", "texts in a text"),
        ("texts", "BasicObject#instance_eval", "block in texts"),
        ("texts", "Method#call", "called"),
    ];
    for (caller, between, callee) in cases {
        let between = format!("{between} ([C])_[s]");
        let stands = |stack: &[String]| {
            let at = |name: &str| {
                stack.iter().position(|frame| function(frame).as_deref() == Some(name))
            };
            let between = stack.iter().rposition(|frame| *frame == between);
            between.is_some() && at(caller) < between && between < at(callee)
        };
        let any = folded.stacks().any(|(stack, _)| stands(stack));
        assert!(any, "{caller} {between} {callee}: {said}");
    }
    // Each method in C stands right above its own native function.
    let (sort_by, each) = ("Enumerable#sort_by ([C])_[s]", "Array#each ([C])_[s]");
    let pair = |outer: &str, inner: &str| {
        let is_pair =
            |stack: &[String]| stack.windows(2).any(|two| two[0] == outer && two[1] == inner);
        folded.stacks().filter(|(stack, _)| is_pair(stack)).map(|(_, weight)| weight).sum::<u64>()
    };
    let all = folded.with_any(|frame| frame == each);
    assert!(pair(each, "rb_ary_each") * 10 > all * 9, "{} of {all}", pair(each, "rb_ary_each"));
    assert!(pair(sort_by, each) * 10 < folded.with_any(|frame| frame == sort_by), "{said}");
    let pairs = [
        ("Special#<=>", "Number#<=>"),
        ("objects", "Number#defined"),
        ("objects", "Number#method_missing"),
        ("objects", "Number#to_s"),
        ("objects", "Helper#helps"),
        ("guarded", "rescue in guarded"),
        ("called", "block in texts"),
    ];
    for (caller, callee) in pairs {
        assert!(calls(&folded, caller, callee) > 0, "{caller} {callee}: {said}");
    }
}

/// Only what does nothing but call is left out in front of a method in C.
#[test]
fn functions_that_call_methods_in_c_stay() {
    if !live_as_root() || !has(RUBY) {
        return;
    }
    let program = "P = Struct.new(:a, :b)
        keys = (1..500).map { |i| P.new(i, 'k') }
        found = keys.to_h { |key| [key, 1] }
        3000.times { keys.each { |key| found[key] } }";
    let (folded, said) = record(&["--", RUBY, "--disable-gems", "-e", program]);
    let hashed = |frame: &str| frame == "Struct#hash ([C])_[s]";
    let in_order = |stack: &[String]| {
        let at = |name: &str| stack.iter().position(|frame| frame == name);
        let found = at("rb_hash_aref");
        found.is_some() && found < stack.iter().position(|frame| hashed(frame))
    };
    let both: u64 = folded.stacks().filter(|(stack, _)| in_order(stack)).map(|(_, w)| w).sum();
    let all = folded.with_any(hashed);
    assert!(all * 5 > folded.total(), "{all} of {}: {said}", folded.total());
    assert!(both * 10 > all * 9, "{both} of {all}: {said}");
}

#[test]
fn lines_are_those_that_ran() {
    if !live_as_root() || !has(RUBY) {
        return;
    }
    let text = fs::read_to_string(script("script.rb")).unwrap();
    let line_of = |start: &str| text.lines().position(|line| line.starts_with(start)).unwrap() + 1;
    let loop_lines = ["  while i < 20", "    total += i", "    i += 1"].map(line_of);
    let scratch = Scratch::new();
    let (profile, folded) = (scratch.file("out.pb.gz"), scratch.file("out.folded"));
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &profile, "--", RUBY]).arg(script("script.rb"));
    finish(command.args(["shares", "2"])).success();
    finish(flame().args(["render", "--lines", &profile, "-o", &folded])).success();
    let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
    let at = |line: usize| {
        let frame = format!("Object#spin (script.rb:{line})_[s]");
        folded.with_any(|found| found == frame)
    };
    let all = folded.with_any(|frame| frame.starts_with("Object#spin (script.rb:"));
    let each = loop_lines.map(at);
    assert!(each.iter().sum::<u64>() * 100 >= all * 99, "{each:?} of {all}");
    assert!(each.iter().all(|weight| weight * 10 > all), "{each:?} of {all}");
}

/// Each fiber has a stack of its own, and begins with its block.
#[test]
fn fibers_stand_alone() {
    let Some((folded, said)) = check("fibers") else { return };
    let produced = calls(&folded, "produce", "block in produce");
    assert!(produced * 10 > folded.total(), "{produced} of {}: {said}", folded.total());
    assert!(calls(&folded, "inner", "spin") * 20 > folded.total(), "{said}");
    assert!(calls(&folded, "block in fibers", "block (2 levels) in fibers") > 0, "{said}");
}

#[test]
fn threads_begin_with_their_blocks() {
    let Some((folded, said)) = check("threads") else { return };
    let of = |name| calls(&folded, "block (3 levels) in threads", name);
    let (half, third) = (of("half"), of("third"));
    assert_share(half, half + third, 0.625, 0.05);
    assert!((half + third) * 2 > folded.total(), "{said}");
}

#[test]
fn a_recursion_of_500_has_all_its_frames() {
    let Some((folded, said)) = check("deep") else { return };
    let depth = |stack: &[String], name: &str| {
        stack.iter().filter(|frame| function(frame).as_deref() == Some(name)).count()
    };
    for (name, expect) in [("recurse", 501), ("recurse_in_blocks", 21)] {
        let mut all = 0;
        for (stack, weight) in folded.stacks() {
            let depth = depth(stack, name);
            if depth > 0 && stack.last().and_then(|last| function(last)).as_deref() == Some("spin")
            {
                assert_eq!(depth, expect, "{name}: {said}");
                all += weight;
            }
        }
        assert!(all * 5 > folded.total(), "{name}: {all} of {}", folded.total());
    }
}

#[test]
fn methods_that_are_made_and_dropped_are_not_mixed_up() {
    let Some((folded, said)) = check("churn") else { return };
    assert!(calls(&folded, "made_inside in a text", "spin") * 20 > folded.total(), "{said}");
}

#[test]
fn a_ruby_that_runs_already_is_read_too() {
    if !live_as_root() || !has(RUBY) {
        return;
    }
    let target =
        Target::spawn(Command::new(RUBY).arg(script("script.rb")).args(["callbacks", "60"]));
    target.wait_for_cpu(0.5);
    let (folded, said) = record(&["-p", &target.pid_text(), "-d", "2s"]);
    check_chains(&folded);
    assert!(whole_share(&said) >= 97.0, "{said}");
}

#[test]
fn frames_of_ruby_itself_are_shown_where_they_are_asked_for() {
    if !live() || !has(RUBY) {
        return;
    }
    let (folded, said) = record_script("shares", &["--no-script"]);
    let is_script = |frame: &str| frame.ends_with("_[s]") || frame.starts_with("[ruby:");
    assert_eq!(folded.with_any(is_script), 0);
    assert!(!said.contains("script stacks"), "{said}");
    if live_as_root() {
        let (folded, said) = record_script("shares", &["--native"]);
        check_chains(&folded);
        let both = |stack: &[String]| {
            stack.windows(3).any(|frames| {
                frames[0] == "rb_vm_exec"
                    && frames[1].starts_with("[libruby-3.1.so")
                    && frames[2] == "<main> (script.rb:1)_[s]"
            })
        };
        let both: u64 =
            folded.stacks().filter(|(stack, _)| both(stack)).map(|(_, weight)| weight).sum();
        let read = folded.total() - folded.with_any(|frame| frame.starts_with("[ruby:"));
        assert!(both * 10 > read * 9, "{both} of {read}: {said}");
    }
}

/// What a program says that only claims to be Ruby is bounded, and harms nothing.
#[test]
fn false_rubies_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_ruby.c", Build::Exporting);
    let (folded, said) = record(&["--", &program, "circle", "1"]);
    let marked = folded.with_any(|frame| frame == "[ruby: not read in time]");
    assert!(marked * 2 > folded.total(), "{said}");
    let (folded, said) = record(&["--", &program, "names", "1"]);
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (400..8192).contains(&len)), "{longest:?}: {said}");
    assert_eq!(folded.with_any(|frame| frame.contains(char::is_control)), 0);
}
