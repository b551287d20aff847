//! Code that runtimes make while they run: programs of the tests' own, Node.js and others.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Folded, Scratch, Target, assert_share, complete_share, finish, flame, live, live_as_root,
    program,
};

/// Records a command in that directory, and reads the folded file.
#[track_caller]
pub(crate) fn record_in(scratch: &Scratch, arguments: &[&str]) -> (Folded, String) {
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.current_dir(scratch.path()).args(["record", "-F", "999", "-o", &path]);
    let ended = finish(command.args(arguments)).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

/// Removes the perf map of the process that started with these frames' root, if it left one.
fn remove_perf_maps(mentioning: &str) {
    for entry in fs::read_dir("/tmp").unwrap().filter_map(Result::ok) {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_map = is_file && name.starts_with("perf-") && name.ends_with(".map");
        if is_map && fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(mentioning)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a runtime is there; if not, says so, or fails with `FLAME_REQUIRE_RUNTIMES=1`.
pub(crate) fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    let required = std::env::var("FLAME_REQUIRE_RUNTIMES").is_ok_and(|value| value == "1");
    assert!(found || !required, "FLAME_REQUIRE_RUNTIMES=1, but there is no {tool}");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no {tool}");
    }
    found
}

/// Three functions at one address, with 50, 30 and 20 % of the time.
#[track_caller]
fn check_reused(how: &str) {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (folded, _) = record_in(&scratch, &["--", &program("jit_reuse.c"), how, "1"]);
    for (name, share) in [("first", 0.5), ("second", 0.3), ("third", 0.2)] {
        let frame = format!("{name} in place_[j]");
        let weight = folded.with(&["main", "run_code", &frame]);
        assert_share(weight, folded.with(&["main", "run_code"]), share, 0.05);
    }
    assert_eq!(folded.with(&["never run_[j]"]), 0);
    remove_perf_maps(" first in place\n");
}

#[test]
fn reused_address_has_the_name_that_the_map_had_at_the_time() {
    check_reused("map");
}

#[test]
fn reused_and_moved_code_of_a_jitdump_is_named_by_its_times() {
    check_reused("dump");
}

#[test]
fn jitdump_that_is_written_at_the_end_names_all_that_ran_before() {
    check_reused("late");
}

#[test]
fn perf_map_of_another_mount_and_pid_namespace_is_found() {
    if !live_as_root() {
        return;
    }
    let _ = fs::remove_file("/tmp/perf-1.map");
    let scratch = Scratch::new();
    let jit = program("jit.c");
    // A /tmp of its own, and a process that is number 1.
    let script = format!("exec 9<{jit} && mount -t tmpfs none /tmp && exec /proc/self/fd/9 60");
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    let target = Target::spawn(&mut inside);
    let children = format!("/proc/{0}/task/{0}/children", target.pid());
    let mut pid = String::new();
    crate::support::wait_until("the program to run in its namespaces", || {
        pid = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
        let map = format!("/proc/{pid}/root/tmp/perf-1.map");
        !pid.is_empty() && fs::read_to_string(map).is_ok_and(|map| map.contains("jit_inner"))
    });
    let (folded, _) = record_in(&scratch, &["-d", "500ms", "-p", &pid]);
    let chain = folded.with(&["main", "run_jitted", "jit_outer_[j]", "jit_inner_[j]"]);
    assert_share(chain, folded.total(), 1.0, 0.05);
    assert!(!Path::new("/tmp/perf-1.map").exists());
}

#[test]
fn bpf_program_that_is_unloaded_before_the_end_has_its_name() {
    if !live_as_root() {
        return;
    }
    let bpf = program("bpf.c");
    if Command::new(&bpf).arg("0").status().unwrap().code() == Some(3) {
        let _ = writeln!(std::io::stderr(), "SKIP live: no BPF programs on this kernel");
        return;
    }
    let scratch = Scratch::new();
    let (folded, _) = record_in(&scratch, &["--", &bpf, "0.5"]);
    let is_program =
        |frame: &str| frame.starts_with("bpf_prog_") && frame.contains("_flame_loop_[k]");
    assert_share(folded.with_any(is_program), folded.total(), 1.0, 0.1);
}

/// Records `fib.js` under node with these options.
fn node(options: &[&str]) -> Option<(Folded, String)> {
    if !live() || !has("node") {
        return None;
    }
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/jitted.js");
    let command = [&["--", "node"], options, &[script.to_str().unwrap(), "1.5"]].concat();
    let recorded = record_in(&scratch, &command);
    remove_perf_maps("programs/jitted.js");
    Some(recorded)
}

/// The weight of the functions of that mark, `*` optimised, `^` baseline, `~` interpreted.
fn of_mark(folded: &Folded, mark: char) -> u64 {
    let is_it = |frame: &str| {
        let name = frame.strip_suffix("_[j]").and_then(|frame| frame.split_once(mark));
        name.is_some_and(|(kind, rest)| kind == "JS:" && rest.contains("programs/jitted.js"))
    };
    folded.with_any(is_it)
}

#[test]
fn functions_of_node_are_named_with_how_they_were_compiled() {
    let options = ["--perf-basic-prof", "--interpreted-frames-native-stack"];
    let Some((folded, stderr)) = node(&options) else { return };
    let optimised = of_mark(&folded, '*');
    assert!(optimised * 2 > folded.total(), "{optimised} of {}", folded.total());
    let interpreted = of_mark(&folded, '~');
    assert!(interpreted > 0 && !stderr.contains("have no names"), "{stderr}");
    assert_share(folded.with_any(|frame| frame.starts_with("[anon+")), folded.total(), 0.0, 0.02);
}

#[test]
fn functions_of_node_are_named_by_its_jitdump() {
    let options = ["--perf-prof", "--interpreted-frames-native-stack"];
    let Some((folded, _)) = node(&options) else { return };
    let optimised = of_mark(&folded, '*');
    assert!(optimised * 2 > folded.total(), "{optimised} of {}", folded.total());
    assert_share(folded.with_any(|frame| frame.starts_with("[anon+")), folded.total(), 0.0, 0.02);
}

#[test]
fn node_without_map_is_told_which_flags_bring_it() {
    let Some((_, stderr)) = node(&[]) else { return };
    assert!(stderr.contains("JavaScript functions in process"), "{stderr}");
    assert!(stderr.contains("--perf-basic-prof --interpreted-frames-native-stack"), "{stderr}");
}

/// Code without frame pointers, written down in that way, and what it calls.
#[track_caller]
fn check_frameless(how: &str, inner: &str) {
    if !live() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let scratch = Scratch::new();
    let (folded, stderr) = record_in(&scratch, &["--", &program("jit_frameless.c"), how, "1"]);
    let chain = folded.with(&["main", "run_jitted", "jit_outer_[j]", inner]);
    assert_share(chain, folded.total(), 1.0, 0.05);
    assert!(complete_share(&stderr) > 97.0, "{stderr}");
    remove_perf_maps(" jit_outer\n");
}

#[test]
fn code_without_frame_pointers_is_left_by_the_tables_of_its_jitdump() {
    check_frameless("dump", "jit_inner_[j]");
}

#[test]
fn a_trampoline_without_frame_pointers_is_left_by_what_it_does_behind_its_call() {
    check_frameless("trampoline", "spin");
}

/// A Python that can write down its functions in that way, whether it keeps frame pointers or not: of
/// pyenv or the system, from 3.12 on.
fn python(option: &str) -> Option<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let builds = fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    let builds = builds.into_iter().flatten().filter_map(Result::ok);
    let built = builds.map(|build| build.path().join("bin/python3"));
    let mut pythons: Vec<String> = built.map(|path| path.display().to_string()).collect();
    pythons.push("python3".to_owned());
    pythons.sort();
    let is_it = |path: &&String| {
        // An unknown `-X` is no error.
        let oldest = if option == "perf" { "3, 12" } else { "3, 13" };
        let test = format!("import sys; sys.exit(sys.version_info < ({oldest}))");
        Command::new(path).args(["-c", &test]).status().is_ok_and(|status| status.success())
    };
    let found = pythons.iter().find(is_it).cloned();
    if found.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no python3 with -X {option}");
    }
    found
}

#[track_caller]
fn check_python(option: &str) {
    if !live() {
        return;
    }
    let Some(python) = python(option) else { return };
    let scratch = Scratch::new();
    let script = scratch.file("calls.py");
    let text = "
import time
def spin(n):
    s = 0
    for i in range(n): s += i * i
    return s
def alpha(): return spin(3000)
def beta(): return spin(1000)
def main(end):
    while time.process_time() < end: alpha(); beta()
main(1.5)
";
    fs::write(&script, text).unwrap();
    let (folded, stderr) =
        record_in(&scratch, &["--no-script", "--", &python, "-X", option, &script]);
    let name = |function: &str| format!("py::{function}:{script}_[j]");
    let main = folded.with_any(|frame| frame == name("main"));
    let of = |function: &str| folded.with_any(|frame| frame == name(function));
    assert_share(of("alpha"), main, 0.75, 0.07);
    assert_share(of("beta"), main, 0.25, 0.07);
    assert!(main * 10 > folded.total() * 8, "{main} of {}", folded.total());
    assert!(complete_share(&stderr) > 97.0, "{stderr}");
    remove_perf_maps(&script);
}

#[test]
fn functions_of_python_are_named_and_their_stacks_whole() {
    check_python("perf");
}

#[test]
fn functions_of_python_are_named_by_its_jitdump() {
    check_python("perf_jit");
}

/// Records a script under a runtime that may not be there, with these arguments before it; what
/// flame says.
fn script(tool: &str, arguments: &[&str], text: &str) -> Option<String> {
    if !live() {
        return None;
    }
    if !Command::new(tool).arg("-v").output().is_ok_and(|output| output.status.success()) {
        let _ = writeln!(std::io::stderr(), "SKIP live: there is no {tool}");
        return None;
    }
    let scratch = Scratch::new();
    let path = scratch.file("script");
    fs::write(&path, text).unwrap();
    let command = [&["--", tool], arguments, &[path.as_str()]].concat();
    Some(record_in(&scratch, &command).1)
}

const PHP: &str = "<?php
function spin($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s = ($s * 31 + $i) & 0xffffff; } return $s; }
$end = microtime(true) + 1; while (microtime(true) < $end) { spin(3000); }
";

const LUA: &str = "
local function spin(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 16777216 end return s end
local stop = os.clock() + 1
while os.clock() < stop do spin(3000) end
";

#[test]
fn code_that_php_compiles_is_told_what_it_lacks() {
    let compiling = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=16M"];
    let Some(stderr) = script("php", &compiling, PHP) else { return };
    if stderr.contains("[anon]") {
        assert!(stderr.contains("try: start PHP with -d opcache.jit_debug=16"), "{stderr}");
        assert!(stderr.contains("stacks end in functions that PHP compiled"), "{stderr}");
        assert!(stderr.contains("try: start PHP with -d opcache.jit=off"), "{stderr}");
        let named = [&compiling[..], &["-d", "opcache.jit_debug=16"]].concat();
        let stderr = script("php", &named, PHP).unwrap();
        assert!(!stderr.contains("have no names"), "{stderr}");
        let off = [&compiling[..], &["-d", "opcache.jit=off"]].concat();
        assert!(complete_share(&script("php", &off, PHP).unwrap()) > 97.0);
    }
    remove_perf_maps("$spin$");
}

#[test]
fn traces_of_luajit_are_told_what_they_lack() {
    let Some(stderr) = script("luajit", &[], LUA) else { return };
    let is_said =
        ["stacks end in traces of LuaJIT", "in traces, without what is compiled into them"];
    assert!(is_said.iter().any(|said| stderr.contains(said)), "{stderr}");
    let stderr = script("luajit", &["-joff"], LUA).unwrap();
    assert!(!stderr.contains("traces of LuaJIT") && complete_share(&stderr) > 97.0, "{stderr}");
}
