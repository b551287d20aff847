//! Interpreted programs: their functions stand where they ran, called by who called them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::callers::python::{LEGAL, SPINNERS};
use crate::support::scripts::{
    self, has, newer, record, record_newer, record_whole, script, scripted, whole_share,
};
use crate::support::{
    Build, Folded, Scratch, Target, assert_share, finish, flame, live, live_as_root, program_built,
};

/// Debian's: static, and stripped of its symbols.
const PYTHON: &str = "/usr/bin/python3";

#[track_caller]
fn record_script(python: &str, what: &str, seconds: &str) -> (Folded, String) {
    let script = script("script.py");
    record(&["--", python, script.to_str().unwrap(), what, seconds])
}

fn is_legal(caller: Option<(&str, &str)>, (name, file): (&str, &str)) -> bool {
    let number = |name: &str, start: &str| name.strip_prefix(start).map(str::to_owned);
    match (caller, file) {
        (_, file) if !["script.py", "made.py"].contains(&file) => true,
        (None, _) => name == "<module>",
        (Some(("churn", _)), "made.py") => name == "<module>" || name.starts_with("calls_"),
        (Some((caller, _)), "made.py") => {
            number(caller, "calls_") == number(name, "made_") && caller.starts_with("calls_")
        }
        (Some((caller, "made.py")), _) => name == "spin" && caller.starts_with("made_"),
        (Some((caller, of)), _) if name == "spin" => {
            of == "script.py" && SPINNERS.contains(&caller)
        }
        (Some((caller, of)), _) => LEGAL.iter().any(|(callee, callers)| {
            let by = |legal: &&str| *legal == caller || *legal == "*" && of != "script.py";
            *callee == name && callers.iter().any(by)
        }),
    }
}

/// The function, without what it stands in, and the file of a frame of a script.
fn function(frame: &str) -> Option<(&str, &str)> {
    let (name, file) = scripted(frame)?;
    Some((name.rsplit('.').next().unwrap_or(name), file))
}

/// Holds each stack against who may call whom. The threads of a pool begin in a file of Python's own.
#[track_caller]
fn check_chains(folded: &Folded) {
    scripts::check_chains(folded, function, |caller, function| {
        let begins = caller.is_none() && function.1 != "script.py";
        begins || is_legal(caller.copied(), *function)
    });
}

/// Records a part of the program, holds its chains against the truth, and requires that nearly all are
/// whole.
#[track_caller]
fn check(python: &str, what: &str) -> Option<Folded> {
    check_share(python, what, 97.0)
}

/// The same with another share.
#[track_caller]
fn check_share(python: &str, what: &str, least: f64) -> Option<Folded> {
    if !live_as_root() || !has(python) {
        return None;
    }
    let (folded, _) = record_whole(least, || {
        let (folded, said) = record_script(python, what, "2");
        check_chains(&folded);
        (folded, said)
    });
    Some(folded)
}

#[test]
fn functions_have_the_shares_that_they_take() {
    let Some(folded) = check(PYTHON, "shares") else { return };
    let calls = |caller: &'static str, callee: &'static str| {
        scripts::calls(&folded, |frame| Some(function(frame)?.0), caller, callee)
    };
    for caller in ["one", "other"] {
        let all: u64 = ["half", "third", "fifth"].iter().map(|callee| calls(caller, callee)).sum();
        for (callee, share) in [("half", 0.5), ("third", 0.3), ("fifth", 0.2)] {
            assert_share(calls(caller, callee), all, share, 0.02);
        }
    }
    assert_share(calls("shares", "one"), calls("until", "shares"), 0.5, 0.02);
}

/// Of a user's readers, which do not go first, so that some samples are not read in time.
#[test]
fn a_user_sees_functions_of_own_scripts_without_any_right() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let scratch = Scratch::new();
    let [program, out] = ["script.py", "out/x.folded"].map(|name| scratch.file(name));
    let flame = scratch.file("flame");
    fs::copy(env!("CARGO_BIN_EXE_flame"), &flame).unwrap();
    fs::copy(script("script.py"), &program).unwrap();
    fs::create_dir(scratch.path().join("out")).unwrap();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(scratch.path().join("out"), everybody).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &flame]);
    command.args(["record", "-F", "499", "-o", &out, "--", PYTHON, &program, "callbacks", "3"]);
    let said = finish(command.current_dir(scratch.path())).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&out).unwrap());
    check_chains(&folded);
    let read = folded.with_any(|frame| frame.starts_with("order ("));
    assert!(read * 20 > folded.total(), "{said}");
}

#[test]
fn frames_of_the_interpreter_stand_between_those_of_the_program() {
    let Some(folded) = check(PYTHON, "callbacks") else { return };
    // Sorting is native, and calls back.
    let between = |stack: &[String]| {
        let order = stack.iter().position(|frame| frame.starts_with("order ("));
        let key = stack.iter().position(|frame| frame.starts_with("key ("));
        matches!((order, key), (Some(order), Some(key)) if key > order + 1)
    };
    let weight: u64 =
        folded.stacks().filter(|(stack, _)| between(stack)).map(|(_, weight)| weight).sum();
    assert!(weight * 10 > folded.total(), "{weight} of {}", folded.total());
}

#[test]
fn a_recursion_of_500_has_all_its_frames() {
    let Some(folded) = check(PYTHON, "deep") else { return };
    let depth =
        |stack: &[String]| stack.iter().filter(|frame| frame.starts_with("recurse (")).count();
    let spins = |stack: &[String]| stack.iter().any(|frame| frame.starts_with("spin ("));
    let at_end = folded.stacks().filter(|(stack, _)| spins(stack));
    let (mut all, mut whole) = (0, 0);
    for (stack, weight) in at_end {
        all += weight;
        whole += if depth(stack) == 501 { weight } else { 0 };
    }
    assert!(all >= 20 && whole == all, "{whole} of {all}");
}

/// With their callers further out marked as missing.
#[test]
fn the_innermost_frames_stay_where_there_are_more_than_are_shown() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let path = script("script.py");
    let command = ["--max-depth", "100", "--", PYTHON, path.to_str().unwrap(), "deep", "2"];
    let (folded, said) = record(&command);
    check_chains(&folded);
    let mut marked = 0;
    for (stack, weight) in folded.stacks() {
        let frames = stack.iter().filter(|frame| scripted(frame).is_some()).count();
        assert!(frames <= 100, "{frames}: {said}");
        let at = stack.iter().position(|frame| frame == "[callers not read]");
        let outermost = stack.iter().position(|frame| scripted(frame).is_some());
        if at.is_some() && at.map(|at| at + 1) == outermost && frames == 100 {
            marked += weight;
        }
    }
    assert!(marked * 2 > folded.total(), "{marked}: {said}");
    assert!(said.contains("deeper than what is read"), "{said}");
}

#[test]
fn coroutines_are_called_by_who_awaits_them() {
    let Some(folded) = check(PYTHON, "coroutines") else { return };
    assert!(folded.with_any(|frame| frame.starts_with("leaf (script.py:")) * 10 > folded.total());
}

#[test]
fn functions_that_are_made_and_dropped_are_not_mixed_up() {
    check(PYTHON, "churn");
}

#[test]
fn threads_have_stacks_of_their_own() {
    check(PYTHON, "threads");
}

#[test]
fn forked_processes_have_the_interpreter_of_their_parent() {
    // What functions are called is read a little later than their frames: of processes that live for some
    // milliseconds not of all, which is marked.
    let Some(folded) = check_share(PYTHON, "forks", 85.0) else { return };
    // To fork takes the kernel as long as the rest, and the longer the busier the machine.
    assert!(folded.with_any(|frame| frame.starts_with("forks (script.py:")) * 5 > folded.total());
}

/// Records `crowd.py`: each thread is found among a thousand, and none has the functions of another.
#[track_caller]
fn check_crowd(command: &[&str]) {
    let script = script("crowd.py");
    let arguments = [&["--"], command, &[script.to_str().unwrap(), "1000", "2"]].concat();
    let (folded, said) = record(&arguments);
    assert!(whole_share(&said) >= 90.0, "{said}");
    let main = folded.roots().into_iter().find(|root| root.starts_with("python"));
    let roots = [("old", "old_works"), ("new", "new_works"), (main.unwrap(), "main_works")];
    for (root, of_root) in roots {
        let threads = folded.of(root);
        let weight =
            |work| threads.with_any(|frame| scripted(frame).is_some_and(|(name, _)| name == work));
        for (_, work) in roots {
            // The main thread has started the others before.
            let part = if work == "main_works" { 10 } else { 2 };
            let least = if work == of_root { threads.total() / part } else { 0 };
            let is_right = weight(work) > least || least == 0 && weight(work) == 0;
            assert!(is_right, "{work} of {root}: {} of {}: {said}", weight(work), threads.total());
        }
    }
}

#[test]
fn the_oldest_and_the_newest_of_a_thousand_threads_are_found() {
    if live_as_root() && has(PYTHON) {
        check_crowd(&[PYTHON]);
    }
}

/// All that are installed where `pyenv` puts them.
#[test]
fn other_versions_are_read_as_well() {
    let home = std::env::var("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|_| std::env::var("HOME").map(|home| Path::new(&home).join(".pyenv")));
    let versions = home.ok().and_then(|home| fs::read_dir(home.join("versions")).ok());
    let known = |name: &str| (8..=13).any(|minor| name.starts_with(&format!("3.{minor}.")));
    for version in versions.into_iter().flatten().filter_map(Result::ok) {
        let name = version.file_name().into_string().unwrap_or_default();
        let python = version.path().join("bin/python3");
        if known(&name) && python.exists() {
            let _ = writeln!(std::io::stderr(), "python {name}");
            for what in ["callbacks", "churn"] {
                check_share(python.to_str().unwrap(), what, 95.0);
            }
            // Where the numbers of threads are others than flame's.
            if live_as_root() {
                let inside = ["unshare", "--pid", "--fork", "--kill-child"];
                check_crowd(&[&inside[..], &[python.to_str().unwrap()]].concat());
            }
        }
    }
}

/// Debian's, whose loop over instructions is in a part of its function that has no name.
#[test]
fn newer_pythons_are_read() {
    for python in ["/usr/bin/python3.14", "/usr/bin/python3.15"] {
        let Some(command) = newer(python, "script.py").filter(|_| live_as_root()) else { continue };
        for what in ["callbacks", "coroutines", "churn", "threads"] {
            record_newer(&command, what, check_chains);
        }
        let folded = record_newer(&command, "deep", check_chains);
        let is_inside = |frame: &str| frame.starts_with("recurse (script.py:");
        assert!(folded.with_any(is_inside) * 2 > folded.total(), "{python}");
    }
}

#[test]
fn a_process_that_runs_already_is_read_too() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let target =
        Target::spawn(Command::new(PYTHON).arg(script("script.py")).args(["callbacks", "60"]));
    target.wait_for_cpu(0.2);
    let (folded, said) = record(&["-p", &target.pid_text(), "-d", "2s"]);
    check_chains(&folded);
    // What runs in it is known before the first sample.
    assert!(!said.contains("before the interpreter was known"), "{said}");
    assert!(whole_share(&said) >= 97.0, "{said}");
}

#[test]
fn threads_are_found_in_another_namespace_of_processes() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let script = script("script.py");
    let inside = ["unshare", "--pid", "--fork", "--kill-child", PYTHON];
    let mut arguments = vec!["--"];
    arguments.extend(inside);
    arguments.extend([script.to_str().unwrap(), "callbacks", "2"]);
    let (folded, said) = record(&arguments);
    check_chains(&folded);
    assert!(whole_share(&said) >= 97.0, "{said}");
}

#[test]
fn scripts_are_left_out_when_nobody_wants_them() {
    if !live() || !has(PYTHON) {
        return;
    }
    let path = script("script.py");
    let command = ["--no-script", "--", PYTHON, path.to_str().unwrap(), "shares", "1"];
    let (folded, said) = record(&command);
    assert_eq!(
        folded.with_any(|frame| frame.ends_with("_[s]") || frame.starts_with("[python:")),
        0
    );
    let native = folded.with_any(|frame| frame == "_PyEval_EvalFrameDefault");
    assert!(native * 2 > folded.total() && !said.contains("script stacks"), "{said}");
}

#[test]
fn native_frames_stay_where_they_are_asked_for() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let path = script("script.py");
    let (folded, _) = record(&["--native", "--", PYTHON, path.to_str().unwrap(), "shares", "1"]);
    check_chains(&folded);
    let module = folded.with_any(|frame| frame.starts_with("<module> (script.py"));
    let both = folded.stacks().filter(|(stack, _)| {
        stack.windows(2).any(|pair| {
            pair[0] == "_PyEval_EvalFrameDefault" && pair[1].starts_with("<module> (script.py")
        })
    });
    let both: u64 = both.map(|(_, weight)| weight).sum();
    assert!(both == module && module * 2 > folded.total(), "{both} of {module}");
}

/// Half of the time of `shares` is that of each of its two lines.
#[test]
fn lines_are_those_that_ran() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    let (scratch, script) = (Scratch::new(), script("script.py"));
    let (profile, folded) = (scratch.file("out.pb.gz"), scratch.file("out.folded"));
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &profile, "--", PYTHON]).arg(&script);
    finish(command.args(["shares", "2"])).success();
    finish(flame().args(["render", "--lines", &profile, "-o", &folded])).success();
    let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
    let text = fs::read_to_string(script).unwrap();
    let definition = text.lines().position(|line| line == "def shares():").unwrap() + 1;
    let at = |line: usize| {
        let frame = format!("shares (script.py:{line})_[s]");
        folded.with_any(|found| found == frame)
    };
    let all = folded.with_any(|frame| frame.starts_with("shares (script.py:"));
    for line in [definition + 1, definition + 2] {
        assert_share(at(line), all, 0.5, 0.03);
    }
}

/// What a program says that only claims to be an interpreter is bounded, and harms nothing.
#[test]
fn false_interpreters_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_python.c", Build::Exporting);
    for circle in ["circle", "twice"] {
        let (folded, said) = record(&["--", &program, circle, "1"]);
        let marked = folded.with_any(|frame| frame == "[python: not read in time]");
        assert!(marked * 2 > folded.total(), "{said}");
    }
    let (folded, said) = record(&["--", &program, "names", "1"]);
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (1000..4096).contains(&len)), "{longest:?}: {said}");
    let is_clean = |frame: &str| !frame.contains(char::is_control);
    assert_eq!(folded.with_any(|frame| !is_clean(frame)), 0);
}

/// Who may call whom in `mixed.py`, whatever the language.
const MIXED: [(&str, &[&str]); 11] = [
    ("main", &["<module>"]),
    ("calls", &["main"]),
    ("own", &["main"]),
    ("own.<locals>.<genexpr>", &["own"]),
    ("perl.<locals>.<lambda>", &["calls"]),
    ("luajit.<locals>.run", &["calls"]),
    ("<main>", &["luajit.<locals>.run"]),
    // The text of an eval is on no line, and no function here.
    ("outer", &["perl.<locals>.<lambda>", "<main>"]),
    ("inner", &["outer"]),
    ("called_back", &["inner"]),
    ("called_back.<locals>.<genexpr>", &["called_back"]),
];

/// The function of a frame of a script, nothing for that of others.
fn name_of(frame: &str) -> &str {
    scripted(frame).map_or("", |(name, _)| name)
}

/// Python with another language in it: the functions of both stand where they ran.
#[test]
fn each_interpreter_of_a_process_is_read() {
    if !live_as_root() || !has(PYTHON) {
        return;
    }
    for language in ["perl", "luajit"] {
        if !has(&format!("/usr/bin/{language}")) {
            continue;
        }
        let (folded, said) =
            record(&["--", PYTHON, script("mixed.py").to_str().unwrap(), language, "3"]);
        let mut all = 0;
        for (stack, weight) in folded.stacks() {
            // What is not read stands between the others.
            let is_shown = |frame: &&str| scripted(frame).is_some() || frame.contains(": not read");
            let frames = stack.iter().map(String::as_str).filter(is_shown);
            let functions: Vec<&str> = frames.map(name_of).collect();
            for pair in functions.windows(2).filter(|pair| !pair.contains(&"")) {
                let callers = MIXED.iter().find(|(name, _)| *name == pair[1]);
                let is_legal = callers.is_none_or(|(_, callers)| callers.contains(&pair[0]));
                assert!(is_legal, "{stack:?}");
            }
            all += weight;
        }
        let calls = |caller, callee| {
            scripts::calls(&folded, |frame| scripted(frame).map(|(name, _)| name), caller, callee)
        };
        let told = format!("{folded:?}\n{said}");
        // Some samples are taken before the other interpreter is known.
        let (other, back) = (calls("outer", "inner"), calls("inner", "called_back"));
        assert!(other * 10 > all * 4 && calls("main", "own") * 10 > all, "{told}");
        assert!((language == "perl") == (back == 0) && back < other, "{told}");
        for language in [language, "python"] {
            let lines = said.lines().map(str::trim);
            let own: String = lines.filter(|line| line.starts_with(language)).collect();
            assert!(whole_share(&own) >= 90.0, "{told}");
        }
    }
}
