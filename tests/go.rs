//! Go programs, with and without their symbols: names, inlined calls, lines and whole stacks.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Folded, Scratch, assert_share, complete_share, finish, flame, live, unread_stacks,
};

/// Whether Go is there; if not, says so, or fails with `FLAME_REQUIRE_RUNTIMES=1`.
pub(crate) fn has_go() -> bool {
    let found = Command::new("go").arg("version").output().is_ok_and(|o| o.status.success());
    let required = std::env::var("FLAME_REQUIRE_RUNTIMES").is_ok_and(|value| value == "1");
    assert!(found || !required, "FLAME_REQUIRE_RUNTIMES=1, but there is no go");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no go");
    }
    found
}

/// The go command, with all that it keeps in the scratch directory.
fn go(scratch: &Scratch) -> Command {
    let mut command = Command::new("go");
    command.env("GOCACHE", scratch.file("cache")).env("GO111MODULE", "off");
    command.env("GOPATH", scratch.file("path")).env("GOFLAGS", "");
    command
}

/// Builds `rounds.go` with these options, under a name.
pub(crate) fn build(scratch: &Scratch, name: &str, options: &[&str]) -> String {
    build_source(scratch, "rounds.go", name, options)
}

/// The same of another program.
fn build_source(scratch: &Scratch, source: &str, name: &str, options: &[&str]) -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let source = programs.join(source);
    let path = scratch.file(name);
    let mut command = go(scratch);
    let status = command.arg("build").args(options).args(["-o", &path]).arg(source).status();
    assert!(status.unwrap().success(), "{command:?}");
    path
}

/// Records a command with these options of flame.
fn record(scratch: &Scratch, options: &[&str], command: &[&str]) -> (Folded, String) {
    let path = scratch.file("out.folded");
    let mut flame = flame();
    flame.env("GOCACHE", scratch.file("built")).env("GO111MODULE", "off");
    flame.current_dir(scratch.path()).args(["record", "-F", "999", "-o", &path]).args(options);
    let ended = finish(flame.arg("--").args(command)).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

/// What the runtime did in threads of its own and in signal handlers. It looks after the program by the
/// clock, and has it give way each 10 ms: the longer a program takes for its CPU time, the more that is.
fn of_runtime(folded: &Folded) -> u64 {
    folded.with_any(|frame| {
        frame.starts_with("runtime.mstart") || frame.starts_with("runtime.sigtramp")
    })
}

/// The shares of what the goroutine did, below its root.
#[track_caller]
fn check_rounds(folded: &Folded, stderr: &str) {
    // A statement `go` that has arguments is a function of its own.
    let root = ["runtime.goexit", "main.main.func1", "main.(*worker).rounds"];
    let rounds = folded.with(&root);
    assert_share(rounds, folded.total() - of_runtime(folded), 1.0, 0.05);
    for (name, share) in [("main.alpha", 0.5), ("main.beta", 0.3), ("main.gamma", 0.2)] {
        assert_share(folded.with(&[root[2], name]), rounds, share, 0.05);
    }
    let spin = folded.with(&["main.alpha", "main.spin"]) + folded.with(&["main.beta", "main.spin"]);
    assert_share(spin, rounds, 0.8, 0.05);
    let inlined = folded.with(&["main.gamma", "main.whirl_[i]"]);
    assert_share(inlined, rounds, 0.2, 0.05);
    // Handlers have a stack of their own, for which a reader may come too late.
    let handlers = folded.with_any(|frame| frame == "runtime.sigtramp");
    let least = 97.0 - 100.0 * handlers as f64 / folded.total() as f64;
    assert!(complete_share(stderr) > least, "{stderr}");
    // gcc links in C code of its own, stripped like the rest.
    let unnamed = folded.with_any(|frame| frame.starts_with('[') && frame.contains("+0x"));
    assert!(unnamed * 50 <= folded.total(), "{stderr}");
}

#[test]
fn a_go_program_without_symbols_has_the_names_and_shares_of_one_with_them() {
    if !live() || !has_go() {
        return;
    }
    let scratch = Scratch::new();
    let ways: [(&str, &[&str]); 4] = [
        ("whole", &[]),
        ("bare", &["-ldflags=-s -w"]),
        ("bare-pie", &["-buildmode=pie", "-ldflags=-s -w"]),
        ("linked-by-gcc", &["-buildmode=pie", "-ldflags=-s -w -linkmode=external"]),
    ];
    for (name, options) in ways {
        let program = build(&scratch, name, options);
        let (folded, stderr) = record(&scratch, &[], &[&program, "1"]);
        check_rounds(&folded, &stderr);
    }
}

#[test]
fn a_go_program_without_section_headers_is_found_by_how_its_table_begins() {
    if !live() || !has_go() {
        return;
    }
    let scratch = Scratch::new();
    let program = build(&scratch, "headless", &["-ldflags=-s -w"]);
    let mut bytes = fs::read(&program).unwrap();
    // e_shoff, e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(&program, bytes).unwrap();
    let (folded, stderr) = record(&scratch, &[], &[&program, "1"]);
    check_rounds(&folded, &stderr);
}

#[test]
fn lines_of_a_go_program_without_symbols_are_those_of_its_source() {
    if !live() || !has_go() {
        return;
    }
    let scratch = Scratch::new();
    let program = build(&scratch, "bare", &["-ldflags=-s -w"]);
    let (folded, _) = record(&scratch, &["--lines"], &[&program, "1"]);
    let source = include_str!("programs/rounds.go");
    let line_of = |text: &str| {
        let line = source.lines().position(|line| line.contains(text));
        line.map(|line| line + 1).unwrap_or_else(|| panic!("no line has {text}"))
    };
    let call = |name: &str, text: &str| format!("main.{name} (rounds.go:{})", line_of(text));
    let own = folded.total() - of_runtime(&folded);
    let (alpha, gamma) = (call("alpha", "func alpha()"), call("gamma", "func gamma()"));
    assert_share(folded.with(&[&alpha]), own, 0.5, 0.06);
    assert_share(folded.with(&[&gamma]), own, 0.2, 0.06);
    let caller = format!("main.(*worker).rounds (rounds.go:{})", line_of("\t\tbeta()"));
    assert_share(folded.with(&[&caller]), own, 0.3, 0.06);
}

/// A source that takes the compiler a second, and nothing of Go's library.
fn many_functions() -> String {
    let function = |n: usize| {
        format!(
            "func f{n}(a []int, m map[int]string) (s int) {{
                for i, x := range a {{
                    if x > {n} {{ s += len(m[i]) * x }} else {{ s ^= f{}(a[i:], m) }}
                }}
                return
            }}\n",
            n / 2
        )
    };
    "package many\n".to_owned() + &(0..1500).map(function).collect::<String>()
}

#[test]
fn debians_stripped_go_compiler_has_names_and_whole_stacks() {
    if !live() || !has_go() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("many.go");
    fs::write(&source, many_functions()).unwrap();
    let (folded, stderr) =
        record(&scratch, &[], &["go", "tool", "compile", "-o", "/dev/null", &source]);
    let in_compiler = folded.with_any(|frame| frame.starts_with("cmd/compile/internal/"));
    assert!(in_compiler * 5 > folded.total(), "{in_compiler} of {}", folded.total());
    let nameless = folded.with_any(|frame| frame.starts_with("[compile+"));
    assert!(nameless * 500 < folded.total(), "{nameless} of {}", folded.total());
    let unread = 100.0 * unread_stacks(&stderr) as f64 / folded.total() as f64;
    assert!(complete_share(&stderr) + unread > 95.0, "{stderr}");
}

#[test]
fn what_runs_on_another_stack_than_its_goroutine_has_its_callers() {
    if !live() || !has_go() {
        return;
    }
    let scratch = Scratch::new();
    for (name, options) in [("whole", &[][..]), ("bare", &["-ldflags=-s -w"])] {
        let program = build_source(&scratch, "garbage.go", name, options);
        let (folded, stderr) = record(&scratch, &[], &[&program, "1.5"]);
        let switched = |frame: &str| frame == "runtime.systemstack";
        let all = folded.with_any(switched);
        assert!(all * 20 > folded.total(), "{all} of {} on another stack", folded.total());
        let has = |frames: &[String], name: &str| frames.iter().any(|frame| frame == name);
        let rooted: u64 = folded
            .stacks()
            .filter(|(frames, _)| {
                let root = has(frames, "runtime.goexit") || has(frames, "runtime.rt0_go");
                has(frames, "runtime.systemstack") && root
            })
            .map(|(_, weight)| weight)
            .sum();
        // Readers that come late leave stacks truncated, on a loaded machine more of them.
        assert!(rooted * 5 > all * 4, "{rooted} of {all} have a root: {stderr}");
        // The collector's own goroutines, and allocations.
        assert!(folded.with(&["runtime.gcBgMarkWorker", "runtime.systemstack"]) > 0, "{stderr}");
    }
}
