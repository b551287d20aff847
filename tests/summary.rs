//! What flame says on the terminal: progress, the summary, and when it is silent.

use std::process::Command;

use crate::support::{
    NOWHERE, Scratch, finish, flame, live, live_as_root, program, record_nowhere,
};

/// Arguments that record half a second of `shares`.
fn shares() -> [String; 3] {
    ["--".to_owned(), program("shares.c"), "0.5".to_owned()]
}

#[test]
fn quiet_says_nothing() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let ended = record_nowhere(&["-q", "--", &program, "0.1", "0"]).success();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn summary_names_the_hottest_functions_and_the_file() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.svg");
    let ended = finish(flame().args(["record", "-F", "999", "-o", &path]).args(shares()));
    let said = ended.success().stderr;
    let at = |name: &str| said.find(name).unwrap_or_else(|| panic!("no {name} in:\n{said}"));
    assert!(at("alpha") < at("beta") && at("beta") < at("omega"), "{said}");
    assert!(said.contains(&path), "{said}");
    assert!(said.contains("samples"), "{said}");
    assert!(!said.contains('\x1b'), "colour codes although stderr is not a terminal:\n{said:?}");
}

/// What a terminal gets from a recording of 0.6 s; `script` has one to give.
#[track_caller]
fn on_a_terminal(environment: &[(&str, &str)]) -> String {
    let line = format!(
        "{} record -F 999 --format folded -o /dev/null -- {} 0.6 0",
        env!("CARGO_BIN_EXE_flame"),
        program("exitcode.c")
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").env("TERM", "xterm-256color");
    finish(command.envs(environment.iter().copied())).success().stdout
}

#[test]
fn terminal_sees_how_the_recording_gets_on() {
    if !live() {
        return;
    }
    let said = on_a_terminal(&[]);
    let progress: Vec<&str> = said.split('\r').filter(|line| line.contains("Ctrl-C")).collect();
    assert!(progress.len() >= 2, "{said:?}");
    assert!(
        progress.iter().all(|line| line.contains("samples") && line.contains(" lost")),
        "{said:?}"
    );
    assert!(said.contains("\x1b[1m"), "no colour on a terminal: {said:?}");
}

#[test]
fn no_color_keeps_a_terminal_plain() {
    if !live() {
        return;
    }
    let said = on_a_terminal(&[("NO_COLOR", "1")]);
    // Erasing the progress line ends with K; colours end with m.
    let colours = said.split("\x1b[").skip(1).filter(|code| {
        code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(colours.count(), 0, "{said:?}");
}

#[test]
fn terminal_without_cursor_control_gets_text_only() {
    if !live() {
        return;
    }
    for term in ["dumb", ""] {
        let said = on_a_terminal(&[("TERM", term)]);
        assert!(!said.contains('\x1b'), "TERM={term:?}: {said:?}");
        assert!(!said.replace("\r\n", "\n").contains('\r'), "TERM={term:?}: {said:?}");
        assert_eq!(said.matches("Ctrl-C ends the recording").count(), 1, "{said:?}");
    }
}

/// The number behind a word of the summary, for example that of `coverage  99.7 %`.
#[track_caller]
fn said_percent(said: &str, word: &str) -> f64 {
    let line = said.lines().find_map(|line| line.trim_start().strip_prefix(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in:\n{said}"));
    line.split_ascii_whitespace().next().unwrap().trim_end_matches('%').parse().unwrap()
}

#[test]
fn summary_says_how_much_was_seen_and_how_whole_it_is() {
    if !live() {
        return;
    }
    let mut command = flame();
    command.args(["record", "-F", "999"]).args(NOWHERE).args(shares());
    let said = finish(&mut command).success().stderr;
    let coverage = said_percent(&said, "coverage");
    // Some 500 samples at random moments of a CPU that other tests want, too: four standard errors.
    assert!((82.0..=118.0).contains(&coverage), "{said}");
    assert!(said_percent(&said, "complete") >= 98.0, "{said}");
    // Stacks of which 4,096 bytes are copied cannot be whole 5,000 levels down, and it is said.
    let program = program("recursion.c");
    let cut = ["-F", "999", "--call-graph", "dwarf,4096", "--", &program, "0.3", "5000"];
    let said = record_nowhere(&cut);
    let complete = said_percent(&said.success().stderr, "complete");
    assert!(complete <= 5.0, "{complete} % complete");
}

#[test]
fn summary_has_colour_on_demand() {
    if !live() {
        return;
    }
    let mut command = flame();
    command.args(["record", "--color", "always"]).args(NOWHERE).args(shares());
    assert!(finish(&mut command).success().stderr.contains("\x1b["));
}

#[test]
fn switches_are_those_of_the_programs_functions_and_unnamed_frames_say_how_hot_they_are() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let stripped = scratch.file("stripped");
    let plain = program("shares.c");
    assert!(Command::new("strip").args(["-o", &stripped, &plain]).status().unwrap().success());
    let said = record_nowhere(&["-e", "cpu-clock:u", "-F", "499", "--", &stripped, "0.5"])
        .success()
        .stderr;
    let line = said.lines().find(|line| line.trim_start().starts_with("unnamed")).unwrap();
    let share: f64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(line.ends_with("% by self weight") && share > 90.0, "{said}");

    let script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01; done";
    let said =
        record_nowhere(&["-e", "context-switches", "--", "sh", "-c", script]).success().stderr;
    assert!(!said.contains(" schedule\n"), "{said}");
}
