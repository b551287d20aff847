//! Recordings of scripts, and who calls whom in them.

use std::fmt::Debug;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Folded, Scratch, finish, flame};

/// The path of `tests/programs/NAME`.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(name)
}

/// Whether there is an interpreter; if not, says so, or fails with `FLAME_REQUIRE_RUNTIMES=1`.
pub(crate) fn has(interpreter: &str) -> bool {
    let found = Path::new(interpreter).exists();
    let required = std::env::var("FLAME_REQUIRE_RUNTIMES").is_ok_and(|value| value == "1");
    assert!(found || !required, "FLAME_REQUIRE_RUNTIMES=1, but there is no {interpreter}");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no {interpreter}");
    }
    found
}

/// The command that runs a program of `tests/programs` by an interpreter of `FLAME_NEWER`, a directory that packages of a
/// newer distribution are unpacked in (see .ci/newer); if it is not there, says so.
pub(crate) fn newer(interpreter: &str, program: &str) -> Option<Vec<String>> {
    let root = std::env::var("FLAME_NEWER").unwrap_or_default();
    if root.is_empty() || !Path::new(&root).join(interpreter.trim_start_matches('/')).exists() {
        let why = "in FLAME_NEWER, which is to be a directory with the packages of a newer Debian";
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no {interpreter} {why}");
        return None;
    }
    fs::copy(script(program), Path::new(&root).join("tmp").join(program)).unwrap();
    Some(["chroot", &root, interpreter, &format!("/tmp/{program}")].map(str::to_owned).to_vec())
}

/// Records what such a command does with a part of the program, and more if too few stacks are whole.
#[track_caller]
pub(crate) fn record_newer(command: &[String], part: &str, check: impl Fn(&Folded)) -> Folded {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let (folded, _) = record_whole(97.0, || {
        let (folded, said) = record(&[&["--"], &words[..], &[part, "2"]].concat());
        check(&folded);
        (folded, said)
    });
    folded
}

/// Records a command, and gives the folded stacks and what was said.
#[track_caller]
pub(crate) fn record(arguments: &[&str]) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &path]).args(arguments);
    let ended = finish(&mut command).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

/// The share of samples in the interpreter whose stacks were whole, in percent, as the summary has it; of
/// those that could be read: on a busy machine a reader may come late, and so does the news that there is
/// an interpreter.
#[track_caller]
pub(crate) fn whole_share(said: &str) -> f64 {
    let line = said.lines().find(|line| line.contains("with whole script stacks"));
    let line = line.unwrap_or_else(|| panic!("no script stacks: {said}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| words[index].replace(',', "").parse::<f64>().unwrap();
    let unread = words
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| **pair == ["before", "the"] || **pair == ["not", "read"]);
    let (whole, all) = (number(1), number(4));
    let read = all - unread.map(|(index, _)| number(index - 1)).sum::<f64>();
    assert!(read * 2.0 > all, "{said}");
    whole * all / read
}

/// Records, and once more if fewer script stacks are whole than that: where the machine is busy for a while, what
/// functions are called is read too late.
#[track_caller]
pub(crate) fn record_whole(
    least: f64,
    mut record: impl FnMut() -> (Folded, String),
) -> (Folded, String) {
    let (folded, said) = record();
    if whole_share(&said) >= least {
        return (folded, said);
    }
    let (folded, again) = record();
    assert!(whole_share(&again) >= least, "{again}\nbefore: {said}");
    (folded, again)
}

/// The function and the file of a frame of a script.
pub(crate) fn scripted(frame: &str) -> Option<(&str, &str)> {
    let (name, place) = frame.strip_suffix(")_[s]")?.rsplit_once(" (")?;
    let (file, _) = place.rsplit_once(':')?;
    Some((name, file))
}

/// Holds each stack against who may call whom: `function` is that of a frame of a script, and `is_legal` gets
/// the caller, none of the outermost, and the function.
#[track_caller]
pub(crate) fn check_chains<'f, F: Debug>(
    folded: &'f Folded,
    function: impl Fn(&'f str) -> Option<F>,
    is_legal: impl Fn(Option<&F>, &F) -> bool,
) {
    for (stack, weight) in folded.stacks() {
        let (mut caller, mut is_known) = (None, true);
        for frame in stack {
            // Marked as such: who it is, is not said, and so not wrong.
            if ["[function not read]", "[callers not read]"].contains(&frame.as_str()) {
                is_known = false;
                continue;
            }
            let Some(found) = function(frame) else { continue };
            assert!(
                !is_known || is_legal(caller.as_ref(), &found),
                "{caller:?} calls {found:?}: {stack:?} {weight}"
            );
            (caller, is_known) = (Some(found), true);
        }
    }
}

/// The weight of the stacks in which one function of a script calls another, with or without other code
/// between.
pub(crate) fn calls<'f, F: PartialEq<&'f str>>(
    folded: &'f Folded,
    function: impl Fn(&'f str) -> Option<F>,
    caller: &'f str,
    callee: &'f str,
) -> u64 {
    let calls = |stack: &'f [String]| {
        let names: Vec<F> = stack.iter().filter_map(|frame| function(frame)).collect();
        names.windows(2).any(|pair| pair[0] == caller && pair[1] == callee)
    };
    folded.stacks().filter(|(stack, _)| calls(stack)).map(|(_, weight)| weight).sum()
}
