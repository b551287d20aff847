//! What scripts read, write, touch and map, by their functions.

use std::fs;

use crate::support::scripts::{has, script, scripted};
use crate::support::{Folded, Scratch, finish, flame};
use crate::tracepoints::has_tracepoints;

/// Records `counts.X N` by an interpreter, and gives the folded stacks and what was said.
#[track_caller]
fn counts(
    mode: &[&str],
    value: &str,
    [interpreter, program]: [&str; 2],
    times: u32,
) -> (Folded, String) {
    let (scratch, program) = (Scratch::new(), script(program));
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--value", value, "-o", &path]).args(mode);
    command.args(["--", interpreter, program.to_str().unwrap(), &times.to_string()]);
    let said = finish(&mut command).success().stderr;
    (Folded::parse(&fs::read_to_string(&path).unwrap()), said)
}

/// The function of a frame of a script, without its package.
fn function(frame: &str) -> Option<&str> {
    let (name, _) = scripted(frame).filter(|(_, file)| file.starts_with("counts."))?;
    name.rsplit("::").next()
}

/// What a function has, all of which one caller called.
#[track_caller]
fn called(folded: &Folded, name: &str, said: &str) -> f64 {
    let caller = format!("calls_{name}");
    let mut sum = 0;
    for (stack, weight) in folded.stacks() {
        let functions: Vec<&str> = stack.iter().filter_map(|frame| function(frame)).collect();
        let Some(at) = functions.iter().position(|found| *found == name) else { continue };
        let before = at.checked_sub(1).map(|at| functions[at]);
        assert_eq!(before, Some(caller.as_str()), "{stack:?}\n{said}");
        sum += weight;
    }
    sum as f64
}

const PYTHON: [&str; 2] = ["/usr/bin/python3", "counts.py"];
const PERL: [&str; 2] = ["/usr/bin/perl", "counts.pl"];

/// Each byte at the function that reads it, few calls and floods of them.
#[test]
fn bytes_that_scripts_read_are_those_of_their_functions() {
    for language in [PYTHON, PERL] {
        for times in [20, 20_000] {
            if !has_tracepoints() || !has(language[0]) {
                return;
            }
            let (folded, said) = counts(&["--mode", "io"], "io", language, times);
            let share =
                |name: &str, bytes: f64| called(&folded, name, &said) / (bytes * f64::from(times));
            let (small, large) = (share("small", 1000.0), share("large", f64::from(128 << 10)));
            // Large reads are sampled one by one. Of a flood of small ones the first hundreds may be lost, for which
            // the rest stand.
            assert!((0.9..1.01).contains(&large), "{language:?} {times}: {large}\n{said}");
            assert!((0.75..1.25).contains(&small), "{language:?} {times}: {small}\n{said}");
        }
    }
}

#[test]
fn pages_that_scripts_touch_and_map_are_those_of_their_functions() {
    if !has_tracepoints() || !has(PYTHON[0]) {
        return;
    }
    let times = 10_000;
    for (mode, value, each) in [("faults", "page-faults", 8.0), ("mmap", "mmap", 8.0 * 4096.0)] {
        let (folded, said) = counts(&["--mode", mode], value, PYTHON, times);
        let share = called(&folded, "touch", &said) / (each * f64::from(times));
        assert!((0.85..1.15).contains(&share), "{mode}: {share}\n{said}");
    }
}

/// All calls, and how long they take.
#[test]
fn calls_of_scripts_are_those_of_their_functions() {
    if !has_tracepoints() || !has(PYTHON[0]) {
        return;
    }
    let times = 20_000;
    let (folded, said) = counts(&["--mode", "syscalls"], "syscalls", PYTHON, times);
    let share = called(&folded, "small", &said) / (10.0 * f64::from(times));
    assert!((0.75..1.25).contains(&share), "{share}\n{said}");
    let latency = ["--mode", "io", "--measure", "latency"];
    let (folded, said) = counts(&latency, "io", PYTHON, times);
    let [small, large] = ["small", "large"].map(|name| called(&folded, name, &said));
    assert!(small > 0.0 && large > 0.0, "{folded:?}\n{said}");
}

/// Most calls are short, and most of their time is that of a long one; few reads have most of the bytes.
#[test]
fn the_share_that_was_read_is_one_of_what_is_shown() {
    if !has_tracepoints() || !has(PYTHON[0]) {
        return;
    }
    let latency = ["--mode", "syscalls", "--measure", "latency"];
    for (mode, value) in [(&latency[..], "syscalls"), (&["--mode", "io"], "io")] {
        let (folded, said) = counts(mode, value, PYTHON, 500);
        let is_script = |frame: &str| scripted(frame).is_some() || frame.starts_with("[python: ");
        let shown = folded.with_any(is_script) as f64;
        let line = said.lines().find_map(|line| line.trim().strip_prefix("python "));
        // `99.8 % of 1.234 s with whole script stacks`
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let unit = match words.get(4) {
            Some(&"s") => 1e9,
            Some(&"MiB") => f64::from(1 << 20),
            _ => panic!("{said}"),
        };
        let told = words[3].parse::<f64>().unwrap() * unit;
        assert!((told / shown - 1.0).abs() < 0.01, "{mode:?}: {told} of {shown}\n{said}");
    }
}
