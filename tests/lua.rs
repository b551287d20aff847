//! Lua programs: their functions stand where they ran, called by who called them.

use std::fs;
use std::process::Command;

use crate::support::callers::may_call;
use crate::support::scripts::{
    self, has, newer, record, record_newer, record_whole, script, scripted,
};
use crate::support::{
    Build, Folded, Scratch, Target, assert_share, finish, flame, live, live_as_root, program_built,
};

/// Debian's: static, and stripped of their symbols.
const LUAS: [&str; 4] =
    ["/usr/bin/lua5.1", "/usr/bin/lua5.2", "/usr/bin/lua5.3", "/usr/bin/lua5.4"];

/// Who may call whom in `programs/script.lua`.
const LEGAL: [(&str, &[&str]); 38] = [
    ("main", &["<main>"]),
    ("until_end", &["main"]),
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
    ("Number.__index", &["events"]),
    ("Number.__add", &["events"]),
    ("Number.__lt", &["events"]),
    ("Number.__concat", &["events"]),
    ("protected", &["callbacks"]),
    ("fails", &["protected"]),
    ("iterate", &["callbacks"]),
    ("each", &["iterate"]),
    ("tails", &["callbacks"]),
    // The function between the two has given way.
    ("last", &["tails", "gives_way"]),
    ("gives_way", &["tails"]),
    ("objects", &["callbacks"]),
    ("Object.method", &["objects"]),
    ("coroutines", &["until_end"]),
    ("outer", &["coroutines"]),
    ("inner", &["outer"]),
    ("produce", &["inner"]),
    ("guarded", &["outer"]),
    ("waits", &["guarded"]),
    ("deep", &["until_end"]),
    ("recurse", &["deep", "recurse"]),
    ("churn", &["until_end"]),
    // A text that is compiled.
    ("[string]", &["churn"]),
    ("made_inside", &["[string]"]),
];

/// Who may call `spin`.
const SPINNERS: [&str; 22] = [
    "half",
    "third",
    "fifth",
    "by_key",
    "replace",
    "Number.__index",
    "Number.__add",
    "Number.__lt",
    "Number.__concat",
    "fails",
    "protected",
    "iterate",
    "each",
    "last",
    "Object.method",
    "produce",
    "inner",
    "waits",
    "guarded",
    "outer",
    "recurse",
    "made_inside",
];

/// The function of a frame of a script; nothing of functions in C, which have no line.
fn function(frame: &str) -> Option<&str> {
    let (name, file) = scripted(frame)?;
    Some(if (name, file) == ("<main>", "[string]") { file } else { name })
}

/// Holds each stack against who may call whom.
#[track_caller]
fn check_chains(folded: &Folded) {
    scripts::check_chains(folded, function, |caller, name| match caller {
        None => *name == "<main>",
        Some(caller) => may_call(&LEGAL, &SPINNERS, caller, name),
    });
}

#[track_caller]
fn record_script(lua: &str, what: &str, options: &[&str]) -> (Folded, String) {
    let script = script("script.lua");
    let command = ["--", lua, script.to_str().unwrap(), what, "2"];
    record(&[options, &command].concat())
}

/// Records a part of the program in each version, holds its chains against the truth, and requires that
/// nearly all are whole.
#[track_caller]
fn check(what: &str, holds: impl Fn(&str, &Folded)) {
    if !live_as_root() {
        return;
    }
    for lua in LUAS.iter().filter(|lua| has(lua)) {
        let (folded, _) = record_whole(97.0, || {
            let (folded, said) = record_script(lua, what, &[]);
            check_chains(&folded);
            (folded, said)
        });
        holds(lua, &folded);
    }
}

#[test]
fn newer_lua_is_read() {
    let Some(command) = newer("/usr/bin/lua5.5", "script.lua").filter(|_| live_as_root()) else {
        return;
    };
    for what in ["shares", "callbacks", "coroutines", "deep", "churn"] {
        let folded = record_newer(&command, what, check_chains);
        let main = folded.with_any(|frame| frame.starts_with("main (script.lua:"));
        assert!(main * 10 > folded.total() * 8, "{what}: {main} of {}", folded.total());
    }
}

/// Samples in which one function calls another, through functions in C or not.
fn calls(folded: &Folded, caller: &str, callee: &str) -> u64 {
    scripts::calls(folded, function, caller, callee)
}

#[test]
fn functions_have_the_shares_that_they_take() {
    check("shares", |_, folded| {
        for caller in ["one", "other"] {
            let each = ["half", "third", "fifth"].map(|of| calls(folded, caller, of));
            let all = each.iter().sum();
            for (weight, share) in each.into_iter().zip([0.5, 0.3, 0.2]) {
                assert_share(weight, all, share, 0.02);
            }
        }
        let all = calls(folded, "until_end", "shares");
        assert_share(calls(folded, "shares", "one"), all, 0.5, 0.02);
    });
}

#[test]
fn what_lua_calls_by_itself_stands_where_it_was_called() {
    check("callbacks", |lua, folded| {
        // The caller, the function in C between, the function.
        let cases = [
            ("order (", "sort ([C])_[s]", "by_key ("),
            ("texts (", "gsub ([C])_[s]", "replace ("),
            ("protected (", "pcall ([C])_[s]", "fails ("),
            ("tails (", "(...tail calls...)_[s]", "last ("),
        ];
        for (caller, between, callee) in cases {
            let stands = |stack: &[String]| {
                let at = |start: &str| stack.iter().position(|frame| frame.starts_with(start));
                at(caller).is_some() && at(caller) < at(between) && at(between) < at(callee)
            };
            let any = folded.stacks().any(|(stack, _)| stands(stack));
            assert!(any, "{lua}: {caller} {between} {callee}");
        }
        for event in ["__index", "__add", "__lt", "__concat"] {
            assert!(calls(folded, "events", &format!("Number.{event}")) > 0, "{lua}: {event}");
        }
        assert!(
            calls(folded, "iterate", "each") > 0 && calls(folded, "objects", "Object.method") > 0
        );
    });
}

/// The loop of `spin` calls nothing: its lines are known by a register alone in 5.1 and 5.4.
#[test]
fn lines_are_those_that_ran() {
    if !live_as_root() {
        return;
    }
    let text = fs::read_to_string(script("script.lua")).unwrap();
    let line_of = |start: &str| text.lines().position(|line| line.starts_with(start)).unwrap() + 1;
    let (loops, adds) = (line_of("  for i = 1, 40"), line_of("    total = total"));
    for lua in LUAS.iter().filter(|lua| has(lua)) {
        let scratch = Scratch::new();
        let (profile, folded) = (scratch.file("out.pb.gz"), scratch.file("out.folded"));
        let mut command = flame();
        command.args(["record", "-F", "999", "-o", &profile, "--", lua]).arg(script("script.lua"));
        finish(command.args(["shares", "2"])).success();
        finish(flame().args(["render", "--lines", &profile, "-o", &folded])).success();
        let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
        let at = |line: usize| {
            let frame = format!("spin (script.lua:{line})_[s]");
            folded.with_any(|found| found == frame)
        };
        let all = folded.with_any(|frame| frame.starts_with("spin (script.lua:"));
        let of_loop = at(loops) + at(adds);
        assert!(of_loop * 100 >= all * 95, "{lua}: {of_loop} of {all}");
        assert!(at(adds) * 2 > all && at(loops) * 50 > all, "{lua}: {} {}", at(adds), at(loops));
    }
}

/// The second one in each version that lets protected calls yield.
#[test]
fn coroutines_stand_where_they_are_resumed() {
    check("coroutines", |lua, folded| {
        let produced = folded.with_any(|frame| frame.starts_with("produce ("));
        assert_eq!(produced, calls(folded, "inner", "produce"));
        assert!(produced * 6 > folded.total(), "{produced} of {}", folded.total());
        let waits = calls(folded, "guarded", "waits");
        assert!(lua.ends_with("5.1") || waits * 20 > folded.total(), "{waits}");
    });
}

#[test]
fn a_recursion_of_500_has_all_its_frames() {
    check("deep", |lua, folded| {
        let depth =
            |stack: &[String]| stack.iter().filter(|frame| frame.starts_with("recurse (")).count();
        let (mut all, mut whole) = (0, 0);
        for (stack, weight) in folded.stacks() {
            // The last call has given way to what it calls, or is about to.
            if stack.iter().any(|frame| frame.starts_with("spin (")) {
                let is_near =
                    (19..=21).contains(&depth(stack)) || (499..=501).contains(&depth(stack));
                assert!(is_near, "{lua}: {}", depth(stack));
                all += weight;
                whole += if [20, 500].contains(&depth(stack)) { weight } else { 0 };
            }
        }
        assert!(all >= 20 && whole * 50 >= all * 49, "{lua}: {whole} of {all}");
    });
}

#[test]
fn functions_that_are_made_and_dropped_are_not_mixed_up() {
    check("churn", |lua, folded| {
        assert!(calls(folded, "made_inside", "spin") * 20 > folded.total(), "{lua}");
    });
}

#[test]
fn a_lua_that_runs_already_is_read_too() {
    if !live_as_root() || !has(LUAS[3]) {
        return;
    }
    let target =
        Target::spawn(Command::new(LUAS[3]).arg(script("script.lua")).args(["callbacks", "60"]));
    target.wait_for_cpu(0.2);
    record_whole(97.0, || {
        // On a busy machine it has little of that.
        let (folded, said) = record(&["-p", &target.pid_text(), "-d", "4s"]);
        check_chains(&folded);
        (folded, said)
    });
}

/// The first wait of a program comes before its process is known to have an interpreter: the thread is looked at.
#[test]
fn the_first_wait_is_that_of_its_function() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let (path, program) = (scratch.file("out.folded"), scratch.file("waits.lua"));
    let text = "local function rests() os.execute('sleep 1') end\n\
                local function calls() rests() end\ncalls()\n";
    fs::write(&program, text).unwrap();
    for lua in LUAS.iter().filter(|lua| has(lua)) {
        let mut command = flame();
        command.args(["record", "--mode", "off-cpu", "-o", &path, "--", lua, &program]);
        let said = finish(&mut command).success().stderr;
        let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
        let waits = scripts::calls(&folded, function, "calls", "rests");
        assert!((800_000_000..2_000_000_000).contains(&waits), "{lua}: {folded:?}\n{said}");
    }
}

#[test]
fn frames_of_lua_itself_are_shown_where_they_are_asked_for() {
    if !live() || !has(LUAS[3]) {
        return;
    }
    let (folded, said) = record_script(LUAS[3], "shares", &["--no-script"]);
    let is_script = |frame: &str| frame.ends_with("_[s]") || frame.starts_with("[lua:");
    assert_eq!(folded.with_any(is_script), 0);
    assert!(!said.contains("script stacks"), "{said}");
    if live_as_root() {
        let (folded, _) = record_script(LUAS[3], "shares", &["--native"]);
        check_chains(&folded);
        let both = |stack: &[String]| {
            stack.windows(2).any(|pair| {
                pair[0].starts_with("[lua5.4+0x") && pair[1] == "<main> (script.lua:1)_[s]"
            })
        };
        let both: u64 =
            folded.stacks().filter(|(stack, _)| both(stack)).map(|(_, weight)| weight).sum();
        assert!(both * 20 > folded.total() * 17, "{both} of {}", folded.total());
    }
}

/// What a program says that only claims to be an interpreter is bounded, and harms nothing.
#[test]
fn false_luas_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_lua.c", Build::Exporting);
    let (folded, said) = record(&["--", &program, "circle", "1"]);
    let marked = folded.with_any(|frame| frame == "[lua: not read in time]");
    assert!(marked * 2 > folded.total(), "{said}");
    let (folded, said) = record(&["--", &program, "names", "1"]);
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (400..8192).contains(&len)), "{longest:?}: {said}");
    assert_eq!(folded.with_any(|frame| frame.contains(char::is_control)), 0);
}
