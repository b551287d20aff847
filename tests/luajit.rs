//! LuaJIT: functions that it interprets stand where they ran; what it compiles is said to be compiled.

use std::collections::BTreeMap;
use std::fs;

use crate::support::callers::may_call;
use crate::support::scripts::{self, has, record, script, whole_share};
use crate::support::{Build, Folded, assert_share, live_as_root, program_built};

/// Debian's: static, and stripped of its symbols.
const LUAJIT: &str = "/usr/bin/luajit";

/// Who may call whom in `programs/script.lua`. Tail calls leave nothing of who said them.
const LEGAL: [(&str, &[&str]); 31] = [
    ("main", &["<main>"]),
    ("until_end", &["main", "<main>"]),
    ("shares", &["until_end"]),
    ("one", &["shares"]),
    ("other", &["shares"]),
    ("half", &["one", "other"]),
    ("third", &["one", "other"]),
    ("fifth", &["one", "other"]),
    ("callbacks", &["until_end"]),
    ("order", &["callbacks"]),
    ("by_key", &["order"]),
    ("texts", &["callbacks"]),
    ("replace", &["texts"]),
    ("events", &["callbacks"]),
    ("Number.event", &["events"]),
    ("protected", &["callbacks"]),
    ("fails", &["protected"]),
    ("iterate", &["callbacks"]),
    ("each", &["iterate"]),
    ("tails", &["callbacks"]),
    ("gives_way", &["tails"]),
    ("last", &["tails"]),
    ("objects", &["callbacks"]),
    ("Object:method", &["objects"]),
    ("coroutines", &["until_end"]),
    ("outer", &["coroutines"]),
    ("inner", &["outer"]),
    ("produce", &["inner"]),
    ("deep", &["until_end"]),
    ("recurse", &["deep", "recurse"]),
    ("churn", &["until_end"]),
];

/// Who may call `spin`.
const SPINNERS: [&str; 15] = [
    "half",
    "third",
    "fifth",
    "by_key",
    "replace",
    "Number.event",
    "fails",
    "protected",
    "iterate",
    "each",
    "last",
    "Object:method",
    "produce",
    "inner",
    "recurse",
];

/// The functions of `programs/script.lua` by the lines where they are defined: names are its callers', and what
/// is known of a function is the line.
fn functions() -> BTreeMap<usize, String> {
    let text = fs::read_to_string(script("script.lua")).unwrap();
    let function = |(index, line): (usize, &str)| {
        let rest = line.strip_prefix("local ").unwrap_or(line);
        let name = match (rest.strip_prefix("function "), rest.starts_with("Number.__")) {
            (Some(rest), _) => rest.split('(').next()?,
            (None, true) if rest.contains("= function(") => "Number.event",
            _ => return None,
        };
        Some((index + 1, name.to_owned()))
    };
    text.lines().enumerate().filter_map(function).collect()
}

/// The function of a frame of a script, by its line; nothing of functions in C and of traces.
fn function<'f>(functions: &'f BTreeMap<usize, String>, frame: &str) -> Option<&'f str> {
    let (name, place) = frame.strip_suffix(")_[s]")?.rsplit_once(" (")?;
    let line: usize = place.strip_prefix("script.lua:")?.parse().ok()?;
    match name {
        "<main>" => Some("<main>"),
        "[trace]" => None,
        _ => functions.get(&line).map(String::as_str),
    }
}

/// Records a part of the program, and holds its chains against the truth.
#[track_caller]
fn check(options: &[&str], what: &str) -> (Folded, String) {
    let path = script("script.lua");
    let command = [&["--", LUAJIT][..], options, &[path.to_str().unwrap(), what, "2"]].concat();
    let (folded, said) = record(&command);
    let functions = functions();
    let of = |frame: &str| function(&functions, frame).map(str::to_owned);
    scripts::check_chains(&folded, of, |caller, name| match caller {
        None => name == "<main>",
        Some(caller) if name == "spin" && caller == "outer" => true,
        Some(caller) => may_call(&LEGAL, &SPINNERS, caller, name),
    });
    (folded, said)
}

/// Samples in which one function calls another, through functions in C or not.
fn calls(folded: &Folded, caller: &str, callee: &str) -> u64 {
    let functions = functions();
    scripts::calls(folded, |frame| function(&functions, frame).map(str::to_owned), caller, callee)
}

#[test]
fn functions_that_are_interpreted_have_the_shares_that_they_take() {
    if !live_as_root() || !has(LUAJIT) {
        return;
    }
    let (folded, said) = check(&["-joff"], "shares");
    assert!(whole_share(&said) >= 97.0, "{said}");
    for caller in ["one", "other"] {
        let each = ["half", "third", "fifth"].map(|of| calls(&folded, caller, of));
        let all = each.iter().sum();
        for (weight, share) in each.into_iter().zip([0.5, 0.3, 0.2]) {
            assert_share(weight, all, share, 0.02);
        }
    }
}

#[test]
fn what_luajit_calls_by_itself_stands_where_it_was_called() {
    if !live_as_root() || !has(LUAJIT) {
        return;
    }
    let (folded, said) = check(&["-joff"], "callbacks");
    // Errors are thrown through the unwinder of C++: 3 % of the samples are amid a call or a return.
    assert!(whole_share(&said) >= 95.0, "{said}");
    let pairs = [
        ("order", "by_key"),
        ("texts", "replace"),
        ("events", "Number.event"),
        ("protected", "fails"),
        ("iterate", "each"),
        ("tails", "last"),
        ("objects", "Object:method"),
    ];
    for (caller, callee) in pairs {
        assert!(calls(&folded, caller, callee) > 0, "{caller} {callee}: {said}");
    }
    let between = |name: &str| folded.with_any(|frame| frame == format!("{name} ([C])_[s]"));
    assert!(["sort", "gsub", "pcall"].iter().all(|name| between(name) > 0), "{said}");
}

#[test]
fn coroutines_of_luajit_stand_where_they_are_resumed() {
    if !live_as_root() || !has(LUAJIT) {
        return;
    }
    let (folded, said) = check(&["-joff"], "coroutines");
    // Of 2,000 samples 1.4 to 2.1 % were amid a call or a return in 16 recordings.
    assert!(whole_share(&said) >= 95.0, "{said}");
    let produced = calls(&folded, "inner", "produce");
    assert!(produced * 6 > folded.total(), "{produced} of {}: {said}", folded.total());
}

#[test]
fn a_recursion_of_500_in_luajit_has_all_its_frames() {
    if !live_as_root() || !has(LUAJIT) {
        return;
    }
    let (folded, said) = check(&["-joff"], "deep");
    assert!(whole_share(&said) >= 97.0, "{said}");
    let functions = functions();
    let depth = |stack: &[String]| {
        stack.iter().filter(|frame| function(&functions, frame) == Some("recurse")).count()
    };
    let whole = |(stack, _): &(&[String], u64)| depth(stack) >= 499;
    let whole: u64 = folded.stacks().filter(whole).map(|(_, weight)| weight).sum();
    assert!(whole * 10 > folded.total(), "{whole} of {}", folded.total());
}

/// Of what is compiled, the function that it began in and all its callers are known, and nothing is whole.
#[test]
fn traces_stand_in_the_function_that_they_began_in() {
    if !live_as_root() || !has(LUAJIT) {
        return;
    }
    for what in ["shares", "callbacks", "deep"] {
        let (folded, said) = check(&[], what);
        let traces = folded.with_any(|frame| frame.starts_with("[trace] (script.lua:"));
        assert!(traces * 2 > folded.total(), "{what}: {traces} of {}: {said}", folded.total());
        assert!(said.contains("in traces, without what is compiled into them"), "{said}");
        let is_rooted = |stack: &[String]| {
            let at = |start: &str| stack.iter().position(|frame| frame.starts_with(start));
            at("[trace] ").is_none_or(|trace| at("<main> ").is_some_and(|main| main < trace))
        };
        assert!(folded.stacks().all(|(stack, _)| is_rooted(stack)), "{what}");
    }
}

/// What a program says that only claims to be LuaJIT is bounded, and harms nothing.
#[test]
fn false_luajits_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_luajit.c", Build::Exporting);
    let of = |what: &str| record(&["--", &program, what, "1"]);
    let mark = "[luajit: not read in time]";
    let (folded, said) = of("deep");
    assert!(folded.with_any(|frame| frame == mark) * 2 > folded.total(), "{said}");
    assert!(said.contains("deeper than what is read"), "{said}");
    let (folded, said) = of("names");
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (400..8192).contains(&len)), "{longest:?}: {said}");
    assert_eq!(folded.with_any(|frame| frame.contains(char::is_control)), 0);
    // A trace that is the whole program leads out of it nowhere: such stacks are not whole.
    let (folded, said) = of("trace");
    assert!(folded.with_any(|frame| frame == "[truncated stack]") * 2 > folded.total(), "{said}");
}
