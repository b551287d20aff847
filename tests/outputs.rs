//! What is written: each format, root frames, files that must survive, disks that are full.

use std::fs;
use std::process::Command;

use crate::support::{
    Build, Folded, Scratch, Target, assert_share, finish, flame, live, program, program_built,
    record, run, wait_until,
};

/// Arguments that record half a second of `shares`.
fn shares() -> [String; 3] {
    ["--".to_owned(), program("shares.c"), "0.5".to_owned()]
}

/// Records `shares` into each of those files at once.
#[track_caller]
fn record_into(scratch: &Scratch, names: &[&str]) -> Vec<Vec<u8>> {
    let mut command = flame();
    command.args(["record", "-F", "999"]);
    for name in names {
        command.args(["-o", &scratch.file(name)]);
    }
    finish(command.args(shares())).success();
    names.iter().map(|name| fs::read(scratch.file(name)).unwrap()).collect()
}

#[test]
fn one_recording_writes_every_format_of_the_same_samples() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let files = record_into(&scratch, &["out.svg", "out.folded", "out.txt", "out.pb.gz"]);
    let text = |at: usize| String::from_utf8(files[at].clone()).unwrap();
    let folded = Folded::parse(&text(1));
    let svg = text(0);
    assert!(svg.starts_with("<?xml") || svg.starts_with("<svg"), "{}", &svg[..80]);
    assert!(svg.trim_end().ends_with("</svg>"));
    assert!(!svg.contains("http://") || svg.matches("http://").all(|_| only_namespaces(&svg)));
    for name in ["alpha", "beta", "omega"] {
        assert!(svg.contains(&format!("<title>{name} (")), "no box for {name} in the SVG");
        assert!(text(2).contains(name), "no {name} in the report:\n{}", text(2));
    }
    let profile = flame_formats::read_pprof(&files[3]).unwrap();
    let samples = profile.value_named("samples").expect("a profile of CPU time counts samples");
    assert_eq!(profile.total(samples).0, folded.total());
    let cpu = profile.value_named("cpu").expect("and it sums the time they stand for");
    assert_share(profile.total(cpu).0 / 1_000_000, folded.total(), 1.0, 0.002);
}

/// A recording cannot be had again: what is asked for in vain costs the exit status alone.
#[test]
fn a_recording_without_the_function_asked_for_is_written_whole() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    for (option, asked, name, what) in [
        ("--callers", "no_such", "callers.folded", "no function no_such in this profile"),
        ("--base", "no_such", "base.folded", "no function no_such in this profile"),
        ("--grep", "no_such", "grep.folded", "no stack is left by the filters"),
        ("--exclude", ".", "exclude.folded", "no stack is left by the filters"),
        ("--hide", ".", "hide.folded", "no stack is left by the filters"),
        ("--trim-root", "4096", "trim.folded", "no stack is left by the filters"),
    ] {
        let mut command = flame();
        command.args(["record", "-F", "999", option, asked, "-o", &scratch.file(name)]);
        let ended = finish(command.args(shares()));
        let shown = format!("{name} shows the whole recording\n");
        ended.error(1, &[what, ": ", &shown, "why: "]);
        let folded = Folded::parse(&fs::read_to_string(scratch.file(name)).unwrap());
        let of_alpha = folded.with(&["alpha"]);
        assert!(of_alpha * 10 > folded.total(), "{option}: {of_alpha}");
    }
}

/// Whether every address in the SVG is the name of an XML namespace, which nothing ever fetches.
fn only_namespaces(svg: &str) -> bool {
    svg.match_indices("http://").all(|(at, _)| svg[at..].starts_with("http://www.w3.org/"))
}

#[test]
fn the_command_stands_at_the_foot_of_pictures_and_stays_with_the_profile() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let here = |words: &[&str]| {
        finish(flame().current_dir(scratch.path()).args(words)).success();
    };
    let footers = |name: &str| -> Vec<String> {
        let svg = fs::read_to_string(scratch.file(name)).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let footer = document.descendants().find(|node| node.attribute("id") == Some("footer"));
        footer.unwrap().children().filter_map(|line| Some(line.text()?.to_owned())).collect()
    };
    let program = program("shares.c");
    here(&["record", "-F", "999", "-o", "my graph.svg", "-o", "x.pb.gz", "--", &program, "0.3"]);
    let command = format!("flame record -F 999 -o 'my graph.svg' -o x.pb.gz -- {program} 0.3");
    // It may be wrapped, at blanks.
    let text = |name: &str| footers(name).join(" ");
    assert!(text("my graph.svg").contains(&command), "{}", text("my graph.svg"));
    here(&["render", "x.pb.gz", "-o", "again.svg"]);
    assert_eq!(footers("again.svg"), footers("my graph.svg"));
    here(&["record", "--no-metadata", "-o", "bare.svg", "--", &program, "0.3"]);
    assert_eq!(footers("bare.svg"), [""; 0]);
    let bare = fs::read_to_string(scratch.file("bare.svg")).unwrap();
    assert!(!bare.contains("--no-metadata"), "the command is in the data");
}

#[test]
fn dash_is_folded_text_on_stdout_alone() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let ended = run(&["record", "-F", "999", "-o", "-", "--", &program, "0.3", "0"]).success();
    assert_eq!(Folded::parse(&ended.stdout).roots(), ["exitcode"]);
}

#[test]
fn pid_and_tid_stand_in_the_root_frame() {
    if !live() {
        return;
    }
    let program = program("threads.c");
    let by_pid = record(&["-F", "499", "--root-pid", "--", &program, "0.1"]);
    let ids = |root: &str| -> Vec<u32> {
        let ids = root.rsplit_once('-').unwrap_or_else(|| panic!("no id in {root}")).1;
        ids.split('/').map(|id| id.parse().unwrap()).collect()
    };
    let pids: Vec<Vec<u32>> = by_pid.of_roots(&["early", "late"]).map(ids).collect();
    // Two names, one process.
    assert_eq!(pids.len(), 2, "{:?}", by_pid.roots());
    assert_eq!(pids[0], pids[1]);
    let by_tid = record(&["-F", "499", "--root-tid", "--", &program, "0.1"]);
    let ids: Vec<Vec<u32>> = by_tid.of_roots(&["early", "late"]).map(ids).collect();
    // Four threads of one process.
    assert_eq!(ids.len(), 4, "{:?}", by_tid.roots());
    assert!(ids.iter().all(|id| id[0] == ids[0][0] && id[1] != id[0]), "{ids:?}");
}

#[test]
fn threads_flag_puts_the_process_name_before_the_threads_own() {
    if !live() {
        return;
    }
    let folded = record(&["-F", "999", "--threads", "--", &program("threads.c"), "0.1"]);
    let mut roots = folded.roots_besides("threads");
    // Chance decides whether a thread is met when it has given up its number already.
    roots.retain(|root| *root != "threads/[exiting]");
    assert_eq!(roots, ["threads/early", "threads/late"]);
}

#[test]
fn svg_of_a_recording_has_its_inlined_and_kernel_frames() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.svg");
    let program = program_built("inlining.c", Build::Debug);
    run(&["record", "-F", "999", "-o", &path, "--", &program, "0.3"]).success();
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.contains("<title>middle"), "no inlined frame in {path}");
}

#[test]
fn default_output_replaces_a_flame_graph_but_no_other_file() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let record = || {
        let mut command = flame();
        finish(command.current_dir(scratch.path()).args(["record", "-F", "999"]).args(shares()))
    };
    let path = scratch.file("flame.svg");
    record().success();
    let first = fs::read_to_string(&path).unwrap();
    assert!(first.contains("<title>alpha"));
    record().success();
    assert!(fs::read_to_string(&path).unwrap().contains("<title>alpha"));
    assert_eq!(scratch.names(), ["flame.svg"]);

    let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>mine</title></svg>";
    fs::write(&path, drawing).unwrap();
    record().error(1, &["flame.svg", "why:", "try:", "-o"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), drawing);
}

#[test]
fn force_replaces_any_file() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("flame.svg");
    fs::write(&path, "mine").unwrap();
    let mut command = flame();
    command.current_dir(scratch.path()).args(["record", "--force"]).args(shares());
    finish(&mut command).success();
    assert!(fs::read_to_string(&path).unwrap().contains("<title>alpha"));
}

/// What can be known of an output beforehand is known before the command runs.
#[test]
fn output_that_cannot_be_written_is_found_before_the_command_runs() {
    let scratch = Scratch::new();
    let touched = scratch.file("touched");
    let directory = scratch.path().display();
    fs::write(scratch.file("plain"), "a file").unwrap();
    fs::create_dir(scratch.file("directory.svg")).unwrap();
    for (output, code, why) in [
        (scratch.file("missing/out.svg"), 1, "missing"),
        (scratch.file("plain/out.svg"), 1, "plain"),
        (format!("{directory}/directory.svg"), 1, "directory.svg"),
        ("/proc/out.svg".to_owned(), 1, "/proc"),
        (scratch.file("out.unknown"), 2, "unknown"),
        (scratch.file("out"), 2, "out"),
    ] {
        let ended = run(&["record", "-o", &output, "--", "touch", &touched]);
        ended.error(code, &[why]);
        assert_eq!(
            scratch.names(),
            ["directory.svg", "plain"],
            "{output}: the command ran, or left a file"
        );
    }
}

#[test]
fn full_disk_is_an_error_that_names_the_file() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("full.folded");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let program = program("exitcode.c");
    let ended = run(&["record", "--force", "-o", &path, "--", &program, "0.1", "0"]);
    ended.error(1, &["full.folded", "no space left", "try:"]);
}

/// An output that fails must not take the others with it.
#[test]
fn other_outputs_are_written_beside_one_that_fails() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (full, good) = (scratch.file("full.folded"), scratch.file("good.folded"));
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let program = program("exitcode.c");
    let ended = run(&[
        "record", "--force", "-F", "999", "-o", &full, "-o", &good, "--", &program, "0.1", "0",
    ]);
    ended.error(1, &["full.folded"]);
    assert_eq!(Folded::parse(&fs::read_to_string(&good).unwrap()).roots(), ["exitcode"]);
}

#[test]
fn closed_pipe_ends_quietly() {
    if !live() {
        return;
    }
    let script = "\"$FLAME\" record -q -F 4999 -o - -- \"$PROGRAM\" 0.2 50 | true; \
                  echo ${PIPESTATUS[0]}";
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("FLAME", env!("CARGO_BIN_EXE_flame"));
    let ended = finish(command.env("PROGRAM", program("recursion.c")));
    // What the program prints goes to stderr, since the profile has stdout.
    let said = |word: &str| ended.stderr.contains(word);
    assert_eq!(ended.stdout.trim(), "0");
    assert!(!said("error") && !said("warning") && !said("note"), "{}", ended.stderr);
}

#[test]
fn a_file_that_was_written_before_is_replaced_as_a_whole() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    fs::write(&path, "x;y 1\n".repeat(100_000)).unwrap();
    let program = program("exitcode.c");
    run(&["record", "--force", "-o", &path, "--", &program, "0.2", "0"]).success();
    assert_eq!(Folded::parse(&fs::read_to_string(&path).unwrap()).roots(), ["exitcode"]);
}

/// The classic script draws what flame wrote: run with `FLAMEGRAPH_PL=/path/to/flamegraph.pl`.
#[test]
fn folded_text_is_accepted_by_the_classic_script() {
    let Some(script) = std::env::var_os("FLAMEGRAPH_PL").filter(|_| live()) else {
        return;
    };
    let scratch = Scratch::new();
    record_into(&scratch, &["out.folded"]);
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    let drawn = finish(Command::new("perl").arg(script).arg(scratch.file("out.folded"))).success();
    assert_eq!(drawn.stderr, "");
    let all = format!("<title>all ({} samples, 100%)</title>", with_commas(folded.total()));
    assert!(drawn.stdout.contains(&all), "not drawn as {all}");
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    match digits.len().checked_sub(3) {
        Some(at) if at > 0 => format!("{},{}", &digits[..at], &digits[at..]),
        _ => digits,
    }
}

/// A target that vanishes while its files are read is not an error.
#[test]
fn target_that_is_gone_when_symbols_are_looked_up_is_still_named() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut target = Target::start(&program("shares.c"), &["0.3"]);
    let arguments = ["record", "-F", "999", "-p", &target.pid_text(), "-o", &path];
    let ended = run(&arguments).success();
    wait_until("the target's end", || !target.is_running());
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.roots(), ["shares"], "{}", ended.stderr);
    let named = folded.with(&["main", "work"]);
    assert_share(named, folded.total(), 1.0, 0.03);
}
