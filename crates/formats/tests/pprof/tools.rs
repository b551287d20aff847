//! What `go tool pprof` and speedscope make of the files.
//!
//! Both are looked for and skipped with a message where they are absent;
//! `FLAME_REQUIRE_PPROF_TOOLS=1` makes that a failure. `FLAME_SPEEDSCOPE` is the directory of the
//! npm package (`npm install --prefix DIR speedscope`, then `DIR/node_modules/speedscope`).

use std::path::{Path, PathBuf};
use std::process::Command;

use flame_profile::{Annotations, CallTree, Profile, TreeOptions, write_folded};

use crate::round_trip::written;
use crate::samples::server;

/// Says why a test does not run, or fails where it has to.
fn skip(tool: &str, reason: &str) {
    let required = std::env::var_os("FLAME_REQUIRE_PPROF_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "{tool} is required: {reason}");
    println!("SKIP {tool}: {reason}");
}

/// A file of that name with those bytes, in a directory that cargo provides.
fn scratch(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Standard output of a command that must succeed.
#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `go tool pprof` prints for the server's profile; `None` where there is no Go. Each test
/// passes a file name of its own, since tests run side by side.
fn go_pprof(options: &[&str], name: &str) -> Option<String> {
    if let Err(error) = Command::new("go").arg("version").output() {
        skip("go", &format!("go version: {error}"));
        return None;
    }
    let file = scratch(name, &written(&server()));
    let mut go = Command::new("go");
    go.args(["tool", "pprof"]).args(options).arg(file);
    go.env("HOME", env!("CARGO_TARGET_TMPDIR")).env("TZ", "UTC");
    Some(output(&mut go))
}

#[test]
fn go_sees_every_sample_location_and_mapping() {
    let Some(raw) = go_pprof(&["-raw"], "raw.pb.gz") else { return };
    let lines: Vec<&str> = raw.lines().map(str::trim).collect();
    #[track_caller]
    fn check(lines: &[&str], expect: &[&str]) {
        let found = lines.windows(expect.len()).any(|window| window == expect);
        assert!(found, "{expect:#?} is not in {lines:#?}");
    }
    check(&lines, &["PeriodType: cpu nanoseconds", "Period: 10101010"]);
    check(&lines, &["Samples:", "samples/count cpu/nanoseconds[dflt]"]);
    check(&lines, &["3   30303030: 1 2 3 4"]);
    check(&lines, &["process:[server] thread:[worker 1]", "pid:[4242] tid:[4243]"]);
    let whole = |id, file| format!("{id}: 0x0/0xffffffffffffffff/0x0 {file}");
    let mappings = [
        whole(1, "/opt/server ab01 [FN][FL][LN][IN]"),
        whole(2, "[kernel]  [FN]"),
        whole(3, "/usr/lib/libc.so.6  [FN]"),
        whole(4, "[jit]  [FN]"),
        whole(5, "[mark]  [FN]"),
    ];
    check(&lines, &mappings.each_ref().map(String::as_str));
    // What follows the line differs between versions of Go: a column, the start line.
    let start = lines.iter().position(|line| *line == "Locations").unwrap() + 1;
    let expect = [
        "1: 0xffffffff81200000 M=2 vfs_read :0",
        "2: 0x114980 M=3 read :0",
        "3: 0x1234 M=1 parse_json src/main.rs:12",
        "core::ops::Fn<(A,)>::call src/main.rs:40",
        "4: 0x1000 M=1 _start :0",
        "5: 0x7f00dead0000 M=4 LazyCompile:*render :0",
        "6: 0x0 M=5 [truncated stack] :0",
        "7: 0xbad [0xbad] :0",
        "8: 0x0 [no stack] :0",
    ];
    for (line, expect) in lines[start..].iter().zip(expect) {
        assert!(line.starts_with(expect), "{line} is not {expect}");
    }
    assert_eq!(lines.get(start + expect.len()), Some(&"Mappings"));
}

#[test]
fn go_ranks_functions_and_shows_health() {
    let Some(top) = go_pprof(&["-top"], "top.pb.gz") else { return };
    let lines: Vec<&str> = top.lines().collect();
    let expect = [
        "File: server",
        "Build ID: ab01",
        "flame: 7 samples, 71.4 % of stacks complete, 2 lost, coverage 98.3 %",
        "flame: the ring was halved",
        "Type: cpu",
        "Time: Nov 14, 2023 at 10:13pm (UTC)",
    ];
    assert_eq!(lines[..6], expect);
    let words = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = lines.iter().map(words).collect();
    let head = rows.iter().position(|row| row == "flat flat% sum% cum cum%").unwrap();
    let expect = [
        "30.30ms 50.00% 50.00% 30.30ms 50.00% vfs_read",
        "20.20ms 33.33% 83.33% 20.20ms 33.33% LazyCompile:*render",
        "10.10ms 16.67% 100% 40.40ms 66.67% parse_json (inline)",
    ];
    assert_eq!(rows[head + 1..head + 4], expect);
}

/// Another tool drops flame's own fields; mappings and labels keep what a picture shows.
#[test]
fn a_file_that_go_has_rewritten_gives_the_same_folded_text() {
    let rewritten = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rewritten.pb.gz");
    let output = format!("-output={}", rewritten.display());
    let Some(_) = go_pprof(&["-proto", &output], "original.pb.gz") else { return };
    let read = flame_formats::read_pprof(&std::fs::read(rewritten).unwrap()).unwrap();
    assert_eq!(folded(&read), folded(&server()));
    assert_eq!((&read.meta, &read.health), (&server().meta, &server().health));
}

/// What speedscope's importer sees in a file; `None` where there is no speedscope.
fn speedscope(name: &str, bytes: &[u8]) -> Option<String> {
    let Some(dir) = std::env::var_os("FLAME_SPEEDSCOPE") else {
        skip("speedscope", "FLAME_SPEEDSCOPE names no directory");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pprof/speedscope_import.js");
    let mut node = Command::new("node");
    Some(output(node.arg(script).arg(dir).arg(scratch(name, bytes))))
}

/// speedscope shows the outermost function of a location only: `parse_json`, inlined, is missing.
#[test]
fn speedscope_opens_pprof() {
    let Some(seen) = speedscope("server.pb.gz", &written(&server())) else { return };
    let expect = "nanoseconds 60606065\n\
                  [0xbad] 5\n\
                  [truncated stack];LazyCompile:*render 20202020\n\
                  _start;core::ops::Fn<(A,)>::call 10101010\n\
                  _start;core::ops::Fn<(A,)>::call;read;vfs_read 30303030\n";
    assert_eq!(seen, expect);
}

#[test]
fn speedscope_shows_the_default_value() {
    let mut profile = server();
    profile.default_value = 0;
    let Some(seen) = speedscope("samples.pb.gz", &written(&profile)) else { return };
    assert_eq!(seen.lines().next(), Some("none 7"));
}

fn folded(profile: &Profile) -> String {
    let tree = CallTree::from_profile(profile, &TreeOptions::default());
    let mut folded = Vec::new();
    write_folded(&tree, Annotations::Write, &mut folded).unwrap();
    String::from_utf8(folded).unwrap()
}

#[test]
fn speedscope_opens_folded_text() {
    let text = folded(&server());
    let Some(seen) = speedscope("server.folded", text.as_bytes()) else { return };
    assert_eq!(seen, format!("none 60606065\n{text}"));
}
