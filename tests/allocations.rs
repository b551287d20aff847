//! What is asked of malloc, and calls of any function.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Build, Folded, Scratch, Target, finish, flame, live_as_root, program, program_built, run,
};
use crate::tracepoints::has_tracepoints;

/// Bytes of a round in each function of the program.
const ROUND: [(&str, u64); 4] =
    [("small", 100), ("array", 600), ("grown", 1200), ("aligned", 4096)];

#[track_caller]
fn record(options: &[&str], rounds: u64) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-o", &path]).args(options).arg("--");
    let ended = finish(command.arg(program("allocations.c")).arg(rounds.to_string())).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

#[test]
fn bytes_that_are_asked_for_are_counted_at_their_callers() {
    if !live_as_root() {
        return;
    }
    let (folded, said) = record(&["--mode", "alloc"], 50);
    for (function, bytes) in ROUND {
        assert_eq!(folded.with(&["main", function]), 50 * bytes, "{function}: {said}");
    }
    assert!(said.contains(" calls that hit a breakpoint"), "{said}");
}

/// Breakpoints are inherited: the kernel must not need flame's memory for that, or the program starts neither
/// threads nor processes.
#[test]
fn a_program_starts_threads_and_processes_while_its_calls_are_seen() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    for options in [&["--mode", "alloc"][..], &["--mode", "alloc", "--live"]] {
        let mut command = flame();
        command.args(["record", "-o", &path]).args(options);
        command.args(["--", "sh", "-c", "(exit 7); echo forked $?; $0 50 && echo ended"]);
        let ended = finish(command.arg(program("starts.c"))).success();
        assert_eq!(ended.stdout, "forked 7\nended\n", "{}", ended.stderr);
        let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
        assert_eq!(folded.with(&["keeps"]), 50 * 1000, "{folded:?}\n{}", ended.stderr);
    }
    // Nothing is left of it in the kernel.
    let all = fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap();
    let pids = all.lines().filter_map(|line| line.split_once("flame/f")?.1.split('_').next());
    let dead: Vec<&str> = pids.filter(|pid| !Path::new("/proc").join(pid).exists()).collect();
    assert!(dead.is_empty(), "{all}");
}

/// What is freed, or moved by realloc, is not there any more.
#[test]
fn what_is_not_freed_is_told_from_what_is() {
    if !live_as_root() {
        return;
    }
    let leaks = |rounds: u64| {
        let scratch = Scratch::new();
        let path = scratch.file("out.folded");
        let mut command = flame();
        command.args(["record", "--mode", "alloc", "--live", "-o", &path, "--"]);
        let ended = finish(command.arg(program("leaks.c")).arg(rounds.to_string())).success();
        (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
    };
    let (folded, said) = leaks(50);
    let kept = |name| folded.with(&["main", name]);
    assert_eq!((kept("lost"), kept("grown"), folded.total()), (5000, 50_000, 55_000), "{said}");
    // Some of the calls that allocate are sampled, but each that frees is seen.
    let rounds = 10_000;
    let (folded, said) = leaks(rounds);
    let kept = |name| folded.with(&["main", name]) as f64 / rounds as f64;
    let what = format!("{folded:?}\n{said}");
    assert!((80.0..120.0).contains(&kept("lost")), "{what}");
    assert!((850.0..1150.0).contains(&kept("grown")), "{what}");
    if !said.contains("may have been freed") {
        assert_eq!(folded.total(), folded.with(&["lost"]) + folded.with(&["grown"]), "{what}");
    }
    run(&["record", "--mode", "io", "--live", "--", "true"]).error(1, &["--live is for"]);
}

#[test]
fn growth_of_heaps_is_seen_to_the_byte() {
    if !has_tracepoints() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "--mode", "brk", "-o", &path, "--", &program("heap.c")]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    let seen = ["grow", "little", "back"].map(|function| folded.with(&["main", function]));
    assert_eq!(seen, [40 * 65536, 10 * 16384, 0], "{folded:?}\n{said}");
    run(&["record", "--mode", "brk", "-F", "99", "--", "true"])
        .error(2, &["--mode brk takes neither -F nor -c"]);
}

#[test]
fn a_flood_of_allocations_is_sampled_and_sums_stay_right() {
    if !live_as_root() {
        return;
    }
    let rounds = 60_000;
    let (folded, said) = record(&["--mode", "alloc"], rounds);
    let all: u64 = ROUND.iter().map(|(_, bytes)| rounds * bytes).sum();
    let off = folded.total() as f64 / all as f64 - 1.0;
    assert!(off.abs() < 0.01, "{} of {all}: {said}", folded.total());
    for (function, bytes) in ROUND {
        let share = folded.with(&["main", function]) as f64 / (rounds * bytes) as f64;
        // Two of the functions call the same one: which it was is sampled.
        assert!((share - 1.0).abs() < 0.05, "{function}: {share}, {said}");
    }
}

/// Large blocks and transfers among a flood of small ones count for what they are.
#[test]
fn rare_large_sizes_among_a_flood_of_small_ones_are_counted() {
    if !live_as_root() || !has_tracepoints() {
        return;
    }
    let rounds = 200_000;
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    for mode in ["io", "alloc"] {
        let mut command = flame();
        command.args(["record", "--mode", mode, "-o", &path, "--", &program("sizes.c")]);
        let said = finish(command.arg(rounds.to_string())).success().stderr;
        let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
        let of = |function, bytes: u64| folded.with(&["main", function]) as f64 / bytes as f64;
        let small = of("small", rounds * 100);
        let (middle, large) =
            (of("middle", rounds / 50 * 8192), of("large", (rounds / 5000) << 20));
        assert!((small - 1.0).abs() < 0.1, "{mode}: {small} of small ones, {said}");
        assert!((middle - 1.0).abs() < 0.1, "{mode}: {middle} of middle ones, {said}");
        assert!((large - 1.0).abs() < 0.05, "{mode}: {large} of large ones, {said}");
    }
}

#[test]
fn calls_of_a_function_are_counted_and_weighed_by_an_argument() {
    if !live_as_root() {
        return;
    }
    let program = program("allocations.c");
    let event = format!("uprobe:{program}:array");
    let (folded, said) = record(&["-e", &event], 70);
    assert_eq!(folded.with(&["main", "array"]), 70, "{said}");
    assert_eq!(folded.total(), 70, "{said}");
    // calloc(10, 60): its second argument.
    let ended = run(&["record", "--mode", "alloc", "--allocator", "/bin/true", "--", "true"]);
    ended.error(1, &["no function malloc was found", "--allocator FILE"]);
    let ended = run(&["record", "-e", &event, "--weight", "ret", "--", "true"]);
    ended.error(2, &["no argument 'ret'", "arg1 to arg6"]);
    let ended = run(&["record", "-e", "uprobe:/bin/true:no_such", "--", "true"]);
    ended.error(2, &["has no function symbol 'no_such'"]);
}

/// A program that is linked statically calls no library's malloc, and has its own until it is stripped.
#[test]
fn static_programs_have_an_allocator_of_their_own_or_none() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program_built("allocations.c", Build::Static);
    let mut command = flame();
    command.args(["record", "--mode", "alloc", "-o", &path, "--", &program, "50"]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(folded.with(&["main", "array"]), 50 * 600, "{folded:?}\n{said}");
    // One that runs: at a low address, in which the kernel's link to its file has no zeros.
    let target = Target::spawn(Command::new(&program).args(["1000000000"]));
    target.wait_for_cpu(0.02);
    let pid = target.pid_text();
    let mut command = flame();
    command.args(["record", "--mode", "alloc", "-d", "0.3s", "-o", &path, "-p", &pid]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    assert!(folded.with(&["main", "array"]) > 0, "{folded:?}\n{said}");
    drop(target);
    let stripped = scratch.file("stripped");
    let run_it = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
    };
    run_it("strip", &["-o", &stripped, &program]);
    run(&["record", "--mode", "alloc", "--", &stripped, "50"])
        .error(1, &["no function malloc was found", "linked statically", "--allocator FILE"]);
}
