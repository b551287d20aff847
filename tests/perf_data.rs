//! perf.data as the installed `perf` writes it: folded, drawn and compared without perf.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{
    Build, Ended, Folded, Scratch, assert_share, finish, flame, live, live_as_root, program,
    program_built,
};

/// Whether there is a perf; where it has to be and is not, the test fails.
#[track_caller]
pub(crate) fn has_perf() -> bool {
    let found = Command::new("perf").arg("--version").output().is_ok_and(|o| o.status.success());
    let required = std::env::var("FLAME_REQUIRE_PERF").is_ok_and(|value| value == "1");
    assert!(found || !required, "FLAME_REQUIRE_PERF=1, but there is no perf");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIP: perf (Debian: linux-perf) is not installed");
    }
    found && live()
}

/// `perf record ARGUMENTS`; what it wrote to stdout.
#[track_caller]
fn perf_record(scratch: &Scratch, arguments: &[&str]) -> Vec<u8> {
    let mut perf = Command::new("perf");
    perf.arg("record").args(arguments).current_dir(scratch.path()).stdin(Stdio::null());
    let output = perf.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn fold(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).arg("fold").args(arguments))
}

#[track_caller]
fn folded(scratch: &Scratch, arguments: &[&str]) -> Folded {
    Folded::parse(&fold(scratch, arguments).success().stdout)
}

/// The program with the known shares spends them where the profile says.
#[track_caller]
fn assert_shares(folded: &Folded, program: &str) {
    let all = folded.with(&["main", "work"]);
    assert_share(all, folded.of(program).total(), 1.0, 0.1);
    for (function, share) in [("alpha", 0.5), ("beta", 0.3), ("omega", 0.2)] {
        assert_share(folded.with(&["work", function]), all, share, 0.05);
    }
}

#[test]
fn stacks_are_unwound_and_named_whatever_way_perf_wrote_them() {
    if !has_perf() {
        return;
    }
    let (plain, frames) = (program("shares.c"), program_built("shares.c", Build::FramePointers));
    let dwarf = ["--call-graph", "dwarf,8192"];
    for (kind, options, program) in [
        ("copied stacks", &dwarf[..], &plain),
        ("frame pointers", &["-g"], &frames),
        ("compressed copies", &["-z", "--call-graph", "dwarf,8192"], &plain),
        ("compressed", &["-z", "-g"], &frames),
        ("build IDs of mappings", &["--buildid-mmap", "-g"], &frames),
        ("no build IDs", &["-B", "-g"], &frames),
        ("no time", &["--no-timestamp", "-g"], &frames),
        ("a fixed period", &["-c", "250000", "-g"], &frames),
    ] {
        let scratch = Scratch::new();
        let rate = if kind == "a fixed period" { &[][..] } else { &["-F", "3999"] };
        let common = ["-e", "cpu-clock", "-o", "perf.data"];
        let command = ["--", program, "0.5"];
        perf_record(&scratch, &[&common, rate, options, &command].concat());
        let found = folded(&scratch, &["perf.data"]);
        eprintln!("{kind}: {} samples", found.total());
        assert_shares(&found, "shares");
        assert!(found.total() > 1500, "{kind}: {} samples", found.total());
    }
}

#[test]
fn what_perf_writes_into_a_pipe_is_read_as_it_comes_and_from_a_file() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_built("shares.c", Build::FramePointers);
    let common = ["-F", "3999", "-e", "cpu-clock", "-g", "-o"];
    let stream = perf_record(&scratch, &[&common[..], &["-", "--", &program, "0.5"]].concat());
    fs::write(scratch.file("stream"), stream).unwrap();
    perf_record(&scratch, &[&common[..], &["file", "--", &program, "0.5"]].concat());
    for name in ["stream", "file"] {
        let whole = fold(&scratch, &[name]).success().stdout;
        assert_shares(&Folded::parse(&whole), "shares");
        // Packed, and through a pipe: the samples are the same.
        for pack in ["gzip -c", "cat"] {
            let script = format!("{pack} {name} | \"$0\" fold");
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(flame().get_program()).current_dir(scratch.path());
            let output = shell.output().unwrap();
            assert!(output.stdout == whole.as_bytes(), "{pack} {name}: {output:?}");
        }
    }
}

/// How many stacks each function of the program is in, by `perf script`.
fn functions_of_perf(scratch: &Scratch, file: &str, names: &[&str]) -> BTreeMap<String, u64> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-F", "comm,ip,sym", "-i", file]).current_dir(scratch.path());
    let text = String::from_utf8(perf.output().unwrap().stdout).unwrap();
    let mut counts = BTreeMap::new();
    for stack in text.split("\n\n") {
        let has = |name: &&&str| stack.lines().any(|line| line.ends_with(&format!(" {name}")));
        for name in names.iter().filter(has) {
            *counts.entry((*name).to_owned()).or_default() += 1;
        }
    }
    counts
}

/// The kernel's stacks and those of frame pointers, of which perf is right.
#[test]
fn functions_are_in_as_many_stacks_as_perf_script_says() {
    if !has_perf() || !live_as_root() {
        return;
    }
    const NAMES: [&str; 7] =
        ["main", "work", "alpha", "beta", "omega", "ksys_read", "do_syscall_64"];
    for (source, expect) in [("shares.c", 5), ("syscalls.c", 2)] {
        let scratch = Scratch::new();
        let program = program_built(source, Build::FramePointers);
        let options = ["-F", "3999", "-e", "cpu-clock", "-g", "-o", "perf.data"];
        perf_record(&scratch, &[&options[..], &["--", &program, "0.5"]].concat());
        let found = folded(&scratch, &["perf.data"]);
        let of_perf = functions_of_perf(&scratch, "perf.data", &NAMES);
        let of_flame: BTreeMap<String, u64> = NAMES
            .iter()
            .map(|name| ((*name).to_owned(), found.with_any(|frame| frame == *name)))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(of_flame, of_perf, "{source}");
        assert!(of_perf.len() >= expect, "{of_perf:?}");
    }
}

#[test]
fn all_events_are_values_and_one_is_shown() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_built("shares.c", Build::FramePointers);
    let events = ["-e", "cpu-clock/freq=999/u", "-e", "page-faults/period=1/u"];
    let options = ["-g", "-o", "perf.data", "--", &program, "0.5"];
    perf_record(&scratch, &[&events[..], &options].concat());
    let first = fold(&scratch, &["perf.data"]).success();
    assert_shares(&Folded::parse(&first.stdout), "shares");
    let told = ["samples of several events: cpu-clock (", "cpu-clock is shown unless --value"];
    assert!(told.iter().all(|told| first.stderr.contains(told)), "{}", first.stderr);
    let faults = folded(&scratch, &["perf.data", "--event", "page-faults"]);
    assert!(faults.total() > 10 && faults.with(&["alpha"]) == 0, "{faults:?}");
    let value = folded(&scratch, &["perf.data", "--value", "page-faults"]);
    assert_eq!(value.total(), faults.total());
    let only = fold(&scratch, &["perf.data", "--event", "cpu-clock"]).success();
    assert_eq!(only.stdout, first.stdout);
    let told = "samples of cpu-clock/freq=999/u only; left out: page-faults/period=1/u (";
    assert!(only.stderr.contains(told), "{}", only.stderr);
    // A profile keeps them all.
    fold(&scratch, &["perf.data", "-o", "all.pb.gz"]).success();
    assert_eq!(folded(&scratch, &["all.pb.gz"]).total(), Folded::parse(&first.stdout).total());
    let value = folded(&scratch, &["all.pb.gz", "--value", "page-faults"]);
    assert_eq!(value.total(), faults.total());
    fold(&scratch, &["perf.data", "--event", "cycles"])
        .error(1, &["it has no sample of cycles, but of cpu-clock/freq=999/u, page-faults"]);
    // Tasks, times and CPUs are chosen as elsewhere.
    let all = Folded::parse(&first.stdout).total();
    let parts = ["..0.2", "0.2.."]
        .map(|time| folded(&scratch, &["perf.data", "-q", "--time", time]).total());
    assert_eq!(parts[0] + parts[1], all);
    // On a busy machine the program has little of its first 0.2 seconds.
    assert!(parts[0] > 0 && parts[1] > all / 10, "{parts:?}");
    assert_eq!(folded(&scratch, &["perf.data", "-q", "--comm", "shares"]).total(), all);
    fold(&scratch, &["perf.data", "-q", "--comm", "another"])
        .error(1, &["no sample matches the options\n"]);
    fold(&scratch, &["perf.data", "--time", "90.."])
        .error(1, &["no sample matches --time 90..; the recording is "]);
}

/// Copies a program to a place where it can be replaced.
fn copied(scratch: &Scratch, program: &str, name: &str) -> String {
    let path = scratch.file(name);
    fs::copy(program, &path).unwrap();
    path
}

/// Samples in functions of the program, whose names would be wrong.
fn named(folded: &Folded) -> u64 {
    folded.with_any(|frame| ["main", "work", "alpha", "beta", "omega"].contains(&frame))
}

#[test]
fn a_file_that_was_replaced_gives_no_names() {
    if !has_perf() {
        return;
    }
    let builds = [Build::FramePointers, Build::Plain].map(|build| program_built("shares.c", build));
    // With inodes and build IDs, build IDs alone, and inodes alone.
    for options in [&["-g"][..], &["--buildid-mmap", "-g"], &["-B", "-g"]] {
        let scratch = Scratch::new();
        let path = copied(&scratch, &builds[0], "shares");
        let common = ["-F", "2999", "-e", "cpu-clock", "-o", "perf.data"];
        perf_record(&scratch, &[&common, options, &["--", &path, "0.3"]].concat());
        assert_shares(&folded(&scratch, &["perf.data"]), "shares");
        // Another build at its path; then one that was written into the same file.
        for replace in [replace_whole, write_over] {
            replace(&builds[1], &path);
            let ended = fold(&scratch, &["perf.data"]).success();
            let found = Folded::parse(&ended.stdout);
            assert_eq!(named(&found), 0, "{options:?}: {found:?}");
            assert!(found.total() > 500);
            assert!(ended.stderr.contains("file replaced since it was mapped"), "{}", ended.stderr);
        }
    }
}

fn replace_whole(from: &str, to: &str) {
    fs::copy(from, format!("{to}.new")).unwrap();
    fs::rename(format!("{to}.new"), to).unwrap();
}

fn write_over(from: &str, to: &str) {
    let bytes = fs::read(from).unwrap();
    fs::OpenOptions::new().write(true).truncate(true).open(to).unwrap().write_all(&bytes).unwrap();
}

/// perf asks a file for its build ID when the recording ends, and so has that of the new one.
#[test]
fn a_file_that_is_replaced_while_it_is_recorded_gives_no_names() {
    if !has_perf() {
        return;
    }
    let builds = [Build::FramePointers, Build::Plain].map(|build| program_built("shares.c", build));
    let scratch = Scratch::new();
    let path = copied(&scratch, &builds[0], "shares");
    let script = format!("{path} 0.3; cp {} {path}.new; mv {path}.new {path}", builds[1]);
    let options = ["-F", "2999", "-e", "cpu-clock", "-g", "-o", "perf.data"];
    perf_record(&scratch, &[&options[..], &["--", "sh", "-c", &script]].concat());
    let found = folded(&scratch, &["perf.data"]).of("shares");
    assert_eq!(named(&found), 0, "{found:?}");
    assert!(found.total() > 500);
}

/// The file of another machine: files here are believed for their build IDs alone.
#[test]
fn names_of_another_machine_need_its_build_ids_or_its_files() {
    if !has_perf() {
        return;
    }
    let program = program_built("shares.c", Build::FramePointers);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (options, has_ids) in [(&["-g"][..], true), (&["-B", "-g"], false)] {
        let scratch = Scratch::new();
        let common = ["-F", "2999", "-e", "cpu-clock", "-o", "perf.data"];
        perf_record(&scratch, &[&common, options, &["--", &program, "0.3"]].concat());
        // The name of the machine stands in the part behind the data.
        let mut bytes = fs::read(scratch.file("perf.data")).unwrap();
        let name = [host.trim().as_bytes(), b"\0"].concat();
        let at = bytes.windows(name.len()).rposition(|part| part == name);
        let at = at.expect("perf writes the host's name");
        bytes[at..at + name.len() - 1].fill(b'?');
        fs::write(scratch.file("perf.data"), bytes).unwrap();
        let ended = fold(&scratch, &["perf.data"]).success();
        assert!(ended.stderr.contains("it was recorded on ??"), "{}", ended.stderr);
        let found = Folded::parse(&ended.stdout);
        match has_ids {
            true => assert_shares(&found, "shares"),
            false => assert_eq!(named(&found), 0, "{found:?}"),
        }
        let ended = fold(&scratch, &["perf.data", "--sysroot", "/"]).success();
        assert_shares(&Folded::parse(&ended.stdout), "shares");
        let taken =
            ended.stderr.contains("files of --sysroot are assumed to be those of the recording");
        // perf keeps no build ID of a library that only calls, and is never met at work itself.
        assert!(taken || has_ids, "{}", ended.stderr);
        fs::create_dir(scratch.file("empty")).unwrap();
        assert_eq!(named(&folded(&scratch, &["perf.data", "--sysroot", "empty"])), 0);
        let copy = scratch.file(&format!("machine{program}"));
        fs::create_dir_all(Path::new(&copy).parent().unwrap()).unwrap();
        fs::copy(&program, &copy).unwrap();
        let found = folded(&scratch, &["perf.data", "--sysroot", "machine"]);
        assert_shares(&found, "shares");
    }
}

#[test]
fn code_that_was_made_at_run_time_is_named_by_its_map() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_built("jit.c", Build::FramePointers);
    let options = ["-F", "2999", "-e", "cpu-clock", "-g", "-o", "perf.data", "--", &program, "0.3"];
    perf_record(&scratch, &options);
    let found = folded(&scratch, &["perf.data"]);
    let jitted = found.with_any(|frame| frame.contains("jit_"));
    assert_share(jitted, found.of("jit").total(), 1.0, 0.1);
}

#[test]
fn a_file_that_is_cut_has_what_stands_before() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_built("shares.c", Build::FramePointers);
    let packed = ["-z", "--call-graph", "dwarf,8192"];
    for (options, name) in [(&["-g"][..], "plain"), (&packed, "packed")] {
        let common = ["-F", "3999", "-e", "cpu-clock", "-o", name];
        perf_record(&scratch, &[&common, options, &["--", &program, "0.3"]].concat());
        let bytes = fs::read(scratch.file(name)).unwrap();
        let whole = folded(&scratch, &[name]).total();
        let mut most = 0;
        for step in 1..=6 {
            fs::write(scratch.file("cut"), &bytes[..bytes.len() * step / 7]).unwrap();
            let ended = fold(&scratch, &["cut"]);
            if ended.code() == 0 {
                let found = Folded::parse(&ended.stdout).total();
                assert!(found >= most && found <= whole, "{name} {step}: {found} of {whole}");
                most = found;
            } else {
                assert_eq!(most, 0, "{name} {step}: {}", ended.stderr);
            }
        }
        assert_share(most, whole, 1.0, 0.4);
        fold(&scratch, &["cut", "--strict"]).error(1, &["--strict makes that an error"]);
    }
}

#[test]
fn pictures_and_comparisons_are_made_of_it() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let program = program_built("shares.c", Build::FramePointers);
    for name in ["a.data", "b.data"] {
        let options = ["-F", "999", "-e", "cpu-clock", "-g", "-o", name, "--", &program, "0.5"];
        perf_record(&scratch, &options);
    }
    let run = |arguments: &[&str]| {
        finish(flame().current_dir(scratch.path()).args(arguments)).success();
    };
    run(&["render", "a.data", "-o", "x.svg"]);
    run(&["diff", "a.data", "b.data", "-o", "y.svg"]);
    run(&["fold", "a.data", "b.data", "-o", "both.pb.gz", "-o", "both.folded"]);
    for name in ["x.svg", "y.svg"] {
        let picture = fs::read_to_string(Path::new(&scratch.file(name))).unwrap();
        assert!(["alpha", "beta", "omega"].iter().all(|name| picture.contains(name)), "{name}");
    }
    let sum = |name| folded(&scratch, &["-q", name]).total();
    assert_eq!(sum("a.data") + sum("b.data"), sum("both.folded"));
}
