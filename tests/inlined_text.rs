//! Functions that were inlined, looked up for text of `perf script` that has none.

use std::fs;
use std::process::{Command, Stdio};

use crate::perf_data::has_perf;
use crate::support::{Build, Ended, Folded, Scratch, finish, flame, program_built};

/// What `perf script` prints of a recording.
#[track_caller]
fn printed(scratch: &Scratch, options: &[&str]) -> String {
    let mut perf = Command::new("perf");
    perf.arg("script").args(options).current_dir(scratch.path()).stderr(Stdio::null());
    let output = perf.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fold(scratch: &Scratch, text: &str, options: &[&str]) -> Ended {
    fs::write(scratch.file("text"), text).unwrap();
    finish(flame().current_dir(scratch.path()).args(["fold", "text"]).args(options)).success()
}

#[track_caller]
fn folded(scratch: &Scratch, text: &str, options: &[&str]) -> Folded {
    Folded::parse(&fold(scratch, text, options).stdout)
}

/// How much of it is in functions that were inlined where they were, and in those at all.
fn inlined(folded: &Folded) -> (u64, u64) {
    let all = folded.with_any(|frame| frame.ends_with("_[i]"));
    (folded.with(&["main", "outer", "middle_[i]", "inner_[i]"]), all)
}

/// Addresses as old versions of perf print them: those of the process.
fn with_addresses_of_the_process(text: &str, program: &str) -> String {
    let moved = |line: &str| match line.trim_start().split_once(' ') {
        Some((address, rest)) if line.contains(program) && line.starts_with('\t') => {
            let address = u64::from_str_radix(address, 16).unwrap();
            format!("\t{:>16x} {rest}\n", address + 0x55d0_c000_0000)
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(moved).collect()
}

#[test]
fn inlined_functions_of_text_are_those_of_the_recording() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("inlining");
    fs::copy(program_built("inlining.c", Build::Debug), &path).unwrap();
    let mut perf = Command::new("perf");
    perf.args(["record", "-F", "999", "-e", "cpu-clock:u", "--call-graph", "dwarf,4096", "--"]);
    perf.args([&path, "0.5"]).current_dir(scratch.path()).stderr(Stdio::null());
    assert!(perf.stdout(Stdio::null()).status().unwrap().success());

    let mut of_recording = flame();
    of_recording.current_dir(scratch.path()).args(["fold", "perf.data"]);
    let of_recording = Folded::parse(&finish(&mut of_recording).success().stdout);
    let share = |(those, _): (u64, u64), folded: &Folded| those as f64 / folded.total() as f64;
    let expect = share(inlined(&of_recording), &of_recording);
    assert!(expect > 0.9, "{of_recording:?}");

    let text = printed(&scratch, &["--no-inline"]);
    let without = folded(&scratch, &text, &[]);
    assert_eq!(inlined(&without), (0, 0));
    // perf prints other addresses for the same place, by its version.
    for text in [&text, &with_addresses_of_the_process(&text, &path)] {
        let found = folded(&scratch, text, &["--inline"]);
        assert!((share(inlined(&found), &found) - expect).abs() < 0.01, "{found:?}");
        assert_eq!(found.total(), without.total());
        // A function has instructions of its own before the next one's, which is inlined into it.
        let (whole, any) = inlined(&found);
        assert!(whole * 50 >= any * 49, "{found:?}");
    }
    let lines = folded(&scratch, &text, &["--inline", "--srcline"]);
    let in_line = lines.with_any(|frame| frame.starts_with("inner:inlining.c:"));
    assert!(in_line * 10 > lines.total() * 9, "{lines:?}");

    // What perf has looked up itself is not looked up again.
    let by_perf = printed(&scratch, &["--inline"]);
    assert!(by_perf.contains("(inlined)"), "{by_perf}");
    let found = folded(&scratch, &by_perf, &["--inline"]);
    assert_eq!(inlined(&found), inlined(&folded(&scratch, &by_perf, &[])));

    // Another build has its functions elsewhere.
    fs::copy(program_built("inlining.c", Build::Exporting), scratch.file("new")).unwrap();
    fs::rename(scratch.file("new"), &path).unwrap();
    let ended = fold(&scratch, &text, &["--inline"]);
    assert_eq!(inlined(&Folded::parse(&ended.stdout)), (0, 0));
    assert!(ended.stderr.contains("not where their file has them"), "{}", ended.stderr);
}
