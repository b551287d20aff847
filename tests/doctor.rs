//! `flame doctor` on this machine, as root and as nobody, and on targets of every kind.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{
    Build, Ended, Scratch, Target, finish, flame, live, live_as_root, program, program_built,
};

/// The report as JSON; its exit status must say the same as the report.
#[track_caller]
fn report(ended: &Ended) -> Value {
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", ended.stdout, ended.stderr));
    assert_eq!(report["version"], 1);
    assert_eq!(report["complete"], ended.code() == 0);
    let in_the_way = |check: &&Value| check["needed"] == true && check["status"] != "ok";
    assert_eq!(checks(&report).iter().filter(in_the_way).count() == 0, ended.code() == 0);
    report
}

fn checks(report: &Value) -> Vec<Value> {
    report["checks"].as_array().expect("an array").clone()
}

#[track_caller]
fn check(report: &Value, name: &str) -> Value {
    let found = checks(report).into_iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name} in {report:#}"))
}

#[track_caller]
fn status(report: &Value, name: &str) -> String {
    check(report, name)["status"].as_str().expect("a word").to_owned()
}

fn doctor(arguments: &[&str]) -> Ended {
    finish(flame().args(["doctor", "--json"]).args(arguments))
}

/// The same as `nobody`, whose flame is a copy that everybody reaches.
fn doctor_as_nobody(scratch: &Scratch, arguments: &[&str]) -> Ended {
    let flame = scratch.file("flame");
    fs::copy(env!("CARGO_BIN_EXE_flame"), &flame).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &flame, "doctor", "--json"]);
    finish(command.args(arguments).current_dir(scratch.path()))
}

fn paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn root_may_do_everything_that_a_profile_needs() {
    if !live_as_root() {
        return;
    }
    let report = report(&doctor(&[]));
    for name in ["cpu-clock", "kernel stacks", "user stacks", "kallsyms", "by CPU (-a)", "uprobes"]
    {
        assert_eq!(status(&report, name), "ok", "{name}");
    }
    assert_eq!(report["complete"], true);
    assert_eq!(report["target"], Value::Null);
}

#[test]
fn nobody_is_told_what_is_refused_and_what_allows_it() {
    if !live_as_root() || paranoid() != 2 {
        return;
    }
    let scratch = Scratch::new();
    let report = report(&doctor_as_nobody(&scratch, &[]));
    assert_eq!(status(&report, "cpu-clock"), "ok");
    assert_eq!(status(&report, "user stacks"), "ok");
    assert_eq!(status(&report, "kernel stacks"), "missing");
    let fix = |name: &str| check(&report, name)["fix"].as_str().unwrap_or_default().to_owned();
    assert_eq!(fix("kernel stacks"), "sudo sysctl kernel.perf_event_paranoid=1");
    assert_eq!(fix("by CPU (-a)"), "sudo sysctl kernel.perf_event_paranoid=0");
    assert_eq!(report["complete"], false);
}

#[test]
fn a_foreign_process_is_refused_to_nobody_with_its_owner() {
    if !live_as_root() {
        return;
    }
    let target = Target::start(&program("sleeper.c"), &[]);
    let scratch = Scratch::new();
    let report = report(&doctor_as_nobody(&scratch, &["-p", &target.pid_text()]));
    let sampling = check(&report, "sampling it");
    assert_eq!(sampling["status"], "missing");
    let found = sampling["found"].as_str().unwrap();
    assert!(found.starts_with("it belongs to user root, and "), "{found}");
    assert_eq!(status(&report, "memory of it"), "missing");
    assert_eq!(report["target"]["uid"], 0);
}

#[test]
fn a_program_with_symbols_is_told_from_a_stripped_one() {
    if !live() {
        return;
    }
    let plain = program("sleeper.c");
    let scratch = Scratch::new();
    let stripped = scratch.file("stripped");
    let strip = Command::new("strip").args(["-o", &stripped, &plain]).status().unwrap();
    assert!(strip.success());
    for (path, expect) in [(&plain, "ok"), (&stripped, "limited")] {
        let target = Target::start(path, &[]);
        let report = report(&doctor(&["-p", &target.pid_text()]));
        let path = fs::canonicalize(path).unwrap();
        assert_eq!(status(&report, path.to_str().unwrap()), expect, "{report:#}");
        assert_eq!(report["target"]["threads"], 1);
    }
}

#[test]
fn debug_information_beside_a_program_is_found() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (stripped, debug) = (scratch.file("prog"), scratch.file("prog.debug"));
    fs::copy(program_built("sleeper.c", Build::Debug), &debug).unwrap();
    let link = format!("--add-gnu-debuglink={debug}");
    for arguments in [["--strip-all", &debug, &stripped], [&link, &stripped, &stripped]] {
        assert!(Command::new("objcopy").args(arguments).status().unwrap().success());
    }
    let target = Target::start(&stripped, &[]);
    let ended = doctor(&["-p", &target.pid_text()]);
    let report = report(&ended);
    let image = check(&report, &stripped);
    assert_eq!(image["status"], "ok", "{image:#}");
    let found = image["found"].as_str().unwrap();
    assert!(found.ends_with("prog.debug"), "{found}");
}

/// What is said of an image of a process, once it runs.
#[track_caller]
fn image_of(target: &Target, path: &str) -> (String, String, String) {
    let image = check(&report(&doctor(&["-p", &target.pid_text()])), path);
    let text = |name: &str| image[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("found"), text("fix"))
}

#[test]
fn code_in_which_stacks_end_is_no_complete_profile() {
    if !live() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("main.c");
    let text = "#include <stdio.h>
        __asm__(\".globl bare\\n.type bare,@function\\nbare: .fill 63,1,0x90\\nret\\n.size bare,.-bare\");
        void bare(void);
        int main(void) { puts(\"ready\"); fflush(stdout); bare(); return getchar(); }";
    fs::write(&source, text).unwrap();
    let cases = [
        ("gcc", "-O2", "but none for 1 of 3 functions (bare), "),
        ("musl-gcc", "-static", " functions ("),
    ];
    for (compiler, flag, expect) in cases {
        let path = scratch.file(compiler);
        let built = Command::new(compiler).args([flag, "-o", &path, &source]).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("SKIP: no {compiler}");
            continue;
        }
        let (status, found, fix) = image_of(&Target::start(&path, &[]), &path);
        assert_eq!(status, "limited", "{compiler}: {found}");
        assert!(found.contains(expect), "{compiler}: {found}");
        assert!(fix.contains("-fasynchronous-unwind-tables"), "{compiler}: {fix}");
    }
}

#[test]
fn stripped_go_has_its_own_table() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (source, path) = (scratch.file("main.go"), scratch.file("stripped"));
    let text = "package main
        import (\"fmt\"; \"time\")
        func main() { fmt.Println(\"ready\"); time.Sleep(time.Minute) }";
    fs::write(&source, text).unwrap();
    let mut go = Command::new("go");
    go.args(["build", "-ldflags", "-s -w", "-o", &path, &source])
        .env("GOCACHE", scratch.file("cache"));
    if !go.status().is_ok_and(|status| status.success()) {
        eprintln!("SKIP: no go");
        return;
    }
    let (status, found, _) = image_of(&Target::start(&path, &[]), &path);
    assert!(status == "ok" && found.starts_with("Go's frame sizes, "), "{status}: {found}");
    assert!(found.ends_with(" functions in Go's own table"), "{found}");
}

#[test]
fn the_stacks_of_32_bit_code_are_not_promised() {
    if !live() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let scratch = Scratch::new();
    let (source, path) = (scratch.file("main.c"), scratch.file("narrow"));
    // Without a C library of 32 bits: says `ready` and waits.
    let text = r#"
        __asm__(".globl _start\n_start: mov $4,%eax; mov $1,%ebx; mov $text,%ecx; mov $6,%edx\n"
                "int $0x80; mov $29,%eax; int $0x80\n.data\ntext: .ascii \"ready\\n\"\n");"#;
    fs::write(&source, text).unwrap();
    let arguments = ["-m32", "-nostdlib", "-static", "-no-pie", "-o", &path, &source];
    if !Command::new("gcc").args(arguments).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIP: no 32-bit compiler");
        return;
    }
    match Command::new(&path).spawn() {
        Ok(mut probe) => {
            probe.kill().unwrap();
            probe.wait().unwrap();
        }
        Err(_) => {
            eprintln!("SKIP: no 32-bit programs on this kernel");
            return;
        }
    }
    let (status, found, _) = image_of(&Target::start(&path, &[]), &path);
    assert_eq!(status, "missing");
    assert!(found.starts_with("32-bit code: "), "{found}");
}

#[test]
fn debug_information_that_is_torn_is_in_the_way() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("main.c");
    let text =
        "#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return getchar(); }";
    fs::write(&source, text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-gsplit-dwarf", "-o", "prog", "main.c"]).current_dir(scratch.path());
    assert!(gcc.status().unwrap().success());
    let path = scratch.file("prog");
    let target = Target::start(&path, &[]);
    assert_eq!(image_of(&target, &path).0, "ok");
    for file in fs::read_dir(scratch.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(file).unwrap();
        }
    }
    let (status, found, _) = image_of(&target, &path);
    assert_eq!(status, "limited");
    assert!(found.contains(".dwo was not found"), "{found}");
}

#[test]
fn a_program_replaced_while_it_runs_is_reported() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("prog");
    fs::copy(program("sleeper.c"), &path).unwrap();
    let target = Target::start(&path, &[]);
    fs::remove_file(&path).unwrap();
    let report = report(&doctor(&["-p", &target.pid_text()]));
    let image = check(&report, &format!("{path} (deleted)"));
    let found = image["found"].as_str().unwrap();
    assert!(found.starts_with("replaced since, but still readable: unwind tables"), "{found}");
}

#[test]
fn code_without_a_file_needs_a_perf_map() {
    if !live() {
        return;
    }
    let mut target = Target::start(&program("hostile.c"), &["anonymous"]);
    let pid = target.pid_text();
    let map = format!("/tmp/perf-{pid}.map");
    assert!(target.is_running() && !fs::exists(&map).unwrap());
    let before = report(&doctor(&["-p", &pid]));
    assert_eq!(status(&before, "code without a file"), "missing");
    fs::write(&map, "1000 10 f\n").unwrap();
    let after = doctor(&["-p", &pid]);
    fs::remove_file(&map).unwrap();
    assert_eq!(status(&report(&after), "code without a file"), "ok");
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let ended = finish(flame().args(["doctor", "-p", "4194303"]));
    ended.error(1, &["process 4194303", "no such process", "why:", "try:"]);
}

#[test]
fn the_listing_names_the_verdict_last() {
    if !live() {
        return;
    }
    let ended = finish(flame().arg("doctor"));
    let last = ended.stdout.trim_end().rsplit("\n\n").next().unwrap();
    let expect = if ended.code() == 0 { "complete: " } else { "incomplete: " };
    assert!(last.starts_with(expect), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
}
