//! Java VMs: read from their memory, without a flag; and asked for their methods where that cannot be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::runtimes::{has, record_in};
use crate::support::{Scratch, Target, assert_share, complete_share, finish, flame, live};

/// Compiles a program of the tests into the scratch directory.
fn javac(scratch: &Scratch, program: &str) {
    let mut command = Command::new("javac");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let source = sources.join(format!("{program}.java"));
    let status = command.arg("-d").arg(scratch.path()).arg(source).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// Whether Java can be recorded here.
fn has_java() -> bool {
    live() && has("javac") && has("java")
}

/// A Java program that runs until it is killed.
fn java(java: &str, scratch: &Scratch, program: &str, options: &[&str]) -> Target {
    let classes = scratch.path().to_str().unwrap();
    Target::start(java, &[options, &["-cp", classes, program, "120"]].concat())
}

/// The VMs whose stacks are read: the one of the path, and those whose launchers `FLAME_JAVAS` names.
fn vms() -> Vec<String> {
    let others = std::env::var("FLAME_JAVAS").unwrap_or_default();
    let others = others.split(':').filter(|path| !path.is_empty()).map(str::to_owned);
    std::iter::once("java".to_owned()).chain(others).collect()
}

/// Methods that are compiled on their own, so that each has a frame.
const NO_INLINING: [&str; 2] =
    ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Jitted::*"];

/// A VM that cannot be read: one of its tables has another name.
fn unreadable(scratch: &Scratch) -> String {
    let which = Command::new("sh").args(["-c", "command -v java"]).output().unwrap().stdout;
    let found = fs::canonicalize(String::from_utf8(which).unwrap().trim()).unwrap();
    let home = found.parent().and_then(Path::parent).unwrap();
    let copy = scratch.path().join("jdk");
    // Links to all but the launcher, which looks for the VM beside itself, and the VM.
    let link_all = |part: &str, but: &str| {
        fs::create_dir_all(copy.join(part)).unwrap();
        for entry in fs::read_dir(home.join(part)).unwrap().filter_map(Result::ok) {
            // Some lead nowhere, such as the one to the documentation.
            let Ok(target) = fs::canonicalize(entry.path()) else { continue };
            if entry.file_name() != but {
                symlink(target, copy.join(part).join(entry.file_name())).unwrap();
            }
        }
    };
    link_all("", "bin");
    fs::remove_file(copy.join("lib")).unwrap();
    link_all("bin", "java");
    link_all("lib", "server");
    link_all("lib/server", "libjvm.so");
    let launcher: PathBuf = copy.join("bin/java");
    fs::copy(&found, &launcher).unwrap();
    let mut vm = fs::read(home.join("lib/server/libjvm.so")).unwrap();
    let name = b"gHotSpotVMTypes\0";
    let at = vm.windows(name.len()).position(|bytes| bytes == name).unwrap();
    vm[at] = b'x';
    fs::write(copy.join("lib/server/libjvm.so"), vm).unwrap();
    launcher.to_str().unwrap().to_owned()
}

/// Whether the share is the expected one, within three standard errors of this many samples.
#[track_caller]
fn check_share(part: u64, whole: u64, expect: f64) {
    let error = (expect * (1.0 - expect) / whole as f64).sqrt();
    assert_share(part, whole, expect, 3.0 * error);
}

/// Records the program whose shares are known, with these options of the VM.
#[track_caller]
fn check_shares(options: &[&str], kind: &str) {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Shares");
    check_shares_of("java", &scratch, options, kind);
}

/// The same with each VM.
#[track_caller]
fn check_all_shares(options: &[&str], kind: &str) {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Shares");
    for vm in vms() {
        check_shares_of(&vm, &scratch, options, kind);
    }
}

#[track_caller]
fn check_shares_of(vm: &str, scratch: &Scratch, options: &[&str], kind: &str) {
    let target = java(vm, scratch, "Shares", options);
    let pid = target.pid();
    let (folded, stderr) = record_in(scratch, &["-d", "3s", "-p", &target.pid_text()]);
    assert!(complete_share(&stderr) >= 99.0, "{vm}: {stderr}");
    assert!(!stderr.contains("try:"), "{vm}: {stderr}");
    let has = |stack: &[String], names: &[&str]| {
        stack.iter().any(|frame| names.iter().any(|name| frame.starts_with(name)))
    };
    let weight = |names: &[&str]| -> u64 {
        folded.stacks().filter(|(stack, _)| has(stack, names)).map(|(_, weight)| weight).sum()
    };
    let (heavy, light) = (weight(&["LShares$Heavy:::run_"]), weight(&["LShares$Light:::run_"]));
    check_share(heavy, heavy + light, 0.7);
    assert_share(heavy + light, folded.total(), 1.0, 0.05);
    // From the thread's root through the VM into Java.
    let (launcher, main) = (folded.with(&["JavaMain"]), weight(&["LShares:::main_"]));
    assert_share(launcher, folded.total(), 1.0, 0.05);
    assert_share(main, folded.total(), 1.0, 0.05);
    let so = folded.with(&[&format!("LShares$Heavy:::run_[{kind}]")]);
    assert!(so * 10 > heavy * 9, "{vm}: {so} of {heavy}");
    // Nothing was attached, and the VM has written nothing.
    for left in [format!("/tmp/.java_pid{pid}"), format!("/tmp/perf-{pid}.map")] {
        assert!(!Path::new(&left).exists(), "{left}");
    }
}

#[test]
fn a_vm_without_flags_has_whole_stacks_with_inlined_methods() {
    check_all_shares(&[], "i");
}

#[test]
fn code_of_the_first_compiler_has_whole_stacks() {
    let options = [
        "-XX:TieredStopAtLevel=1",
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,Shares*::run",
    ];
    check_shares(&options, "j");
}

#[test]
fn interpreted_methods_are_named_and_their_stacks_are_whole() {
    check_all_shares(&["-Xint"], "s");
}

#[test]
fn code_with_frame_pointers_is_read_as_well() {
    check_shares(&["-XX:+PreserveFramePointer"], "i");
}

/// The innermost frame that is compiled on its own, and whether the stack ends in it.
fn innermost_compiled(stack: &[String]) -> Option<&str> {
    let last = stack.iter().rev().find(|frame| !frame.ends_with("_[i]"))?;
    last.strip_suffix("_[j]")
}

#[test]
fn names_are_those_that_the_vm_writes_down() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Shares");
    let target = java("java", &scratch, "Shares", &[]);
    let (folded, _) = record_in(&scratch, &["-d", "2s", "-p", &target.pid_text()]);
    let status = Command::new("jcmd").args([&target.pid_text(), "Compiler.perfmap"]).output();
    assert!(status.unwrap().status.success());
    let path = format!("/tmp/perf-{}.map", target.pid());
    let map = fs::read_to_string(&path).unwrap();
    let _ = fs::remove_file(&path);
    let names: Vec<String> = map.lines().filter_map(name_in_map).collect();
    let mut known = 0;
    let mut all = 0;
    for (stack, weight) in folded.stacks() {
        if let Some(name) = innermost_compiled(stack) {
            all += weight;
            known += if names.iter().any(|known| known == name) { weight } else { 0 };
        }
    }
    assert!(known * 100 >= all * 99 && all * 10 > folded.total() * 9, "{known} of {all}");
}

/// `LShares:::turn` for `7f0 20 void Shares.turn(Shares$Job, Shares$Job)`.
fn name_in_map(line: &str) -> Option<String> {
    let name = line.splitn(3, ' ').nth(2)?;
    let Some((head, _)) = name.split_once('(').filter(|_| name.ends_with(')')) else {
        return Some(name.to_owned());
    };
    let Some((class, method)) = head.rsplit_once(' ').and_then(|(_, path)| path.rsplit_once('.'))
    else {
        return Some(name.to_owned());
    };
    let class = class.split_once("/0x").map_or(class, |(class, _)| class);
    Some(format!("L{}:::{method}", class.replace('.', "/")))
}

/// How many classes are compiled: a few seconds of work.
const CLASSES: usize = 15;

/// A program of this many classes, each of which calls the next.
fn write_sources(directory: &Path, count: usize) {
    for index in 0..count {
        let mut text = format!("package made;\npublic class C{index} {{\n");
        for method in 0..40 {
            let next = (index + method + 1) % count;
            text += &format!(
                "  public static <T extends Comparable<T>> java.util.List<T> m{method}(java.util.List<T> a, \
                 int n) {{\n    java.util.Map<String, T> all = new java.util.TreeMap<>();\n    for (T t : a) {{ \
                 all.put(\"k\" + t + n, t); }}\n    if (n > {method}) {{ return C{next}.m{method}(a, n - 1); }}\n    \
                 return all.values().stream().filter(t -> t != null).map(t -> t).sorted().toList();\n  }}\n"
            );
        }
        fs::write(directory.join(format!("C{index}.java")), text + "}\n").unwrap();
    }
}

#[test]
fn a_compiler_run_from_start_to_end_has_whole_stacks() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    let sources = scratch.path().join("made");
    fs::create_dir(&sources).unwrap();
    write_sources(&sources, CLASSES);
    let (out, list) = (scratch.file("classes"), scratch.file("list"));
    let files = (0..CLASSES).map(|index| format!("{}/C{index}.java\n", sources.display()));
    fs::write(&list, files.collect::<String>()).unwrap();
    let list = format!("@{list}");
    let (folded, stderr) = record_in(&scratch, &["--", "javac", "-d", &out, &list]);
    assert!(folded.total() > 500, "{stderr}");
    assert!(complete_share(&stderr) >= 97.0, "{stderr}");
    let attributed =
        folded.with_any(|frame| frame.starts_with("Lcom/sun/tools/javac/comp/Attr:::"));
    assert!(attributed * 20 > folded.total(), "{attributed} of {}", folded.total());
}

#[test]
fn a_vm_that_cannot_be_read_is_asked_for_names_and_has_whole_stacks_by_frame_pointers() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Jitted");
    let vm = unreadable(&scratch);
    let first =
        java(&vm, &scratch, "Jitted", &[&NO_INLINING[..], &["-XX:+PreserveFramePointer"]].concat());
    let second =
        java(&vm, &scratch, "Jitted", &[&NO_INLINING[..], &["-XX:+PreserveFramePointer"]].concat());
    let pids = format!("{},{}", first.pid(), second.pid());
    let (folded, stderr) = record_in(&scratch, &["--java", "-d", "2s", "-p", &pids]);
    // Folded text has a colon for the semicolon within a name.
    let work = folded.with(&["LJitted:::work_[j]"]);
    assert_share(work, folded.total(), 1.0, 0.05);
    for (name, share) in [("alpha", 0.5), ("beta", 0.3), ("omega", 0.2)] {
        let weight = folded.with(&["LJitted:::work_[j]", &format!("LJitted:::{name}_[j]")]);
        assert_share(weight, work, share, 0.08);
    }
    // Through compiled code by frame pointers, and on with call frame information to the root.
    let rooted = folded.with_any(|frame| frame.starts_with("JavaCalls::call_helper"));
    assert_share(rooted, folded.total(), 1.0, 0.05);
    // A method that is being entered or left has no frame yet: a few in a thousand.
    let truncated = folded.with(&["[truncated stack]"]);
    assert!(truncated * 100 <= folded.total(), "{truncated} of {} truncated", folded.total());
    assert!(folded.with(&["Interpreter_[j]"]) > 0 && !stderr.contains("try:"), "{stderr}");
    for pid in [first.pid(), second.pid()] {
        let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
}

#[test]
fn a_vm_that_cannot_be_read_without_map_or_frame_pointers_is_told_what_is_missing() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Jitted");
    let vm = unreadable(&scratch);
    let plain = java(&vm, &scratch, "Jitted", &NO_INLINING);
    let pid = plain.pid();
    let (_, stderr) = record_in(&scratch, &["-d", "300ms", "-p", &plain.pid_text()]);
    let unnamed = format!("compiled methods of Java process {pid} have no names");
    assert!(stderr.contains(&unnamed) && stderr.contains("record --java -F"), "{stderr}");
    let (_, stderr) = record_in(&scratch, &["--java", "-d", "300ms", "-p", &plain.pid_text()]);
    let pointers = format!("Java process {pid} keeps no frame pointers");
    assert!(stderr.contains(&pointers) && !stderr.contains(&unnamed), "{stderr}");
    let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
}

#[test]
fn a_vm_that_does_not_listen_is_left_alone() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Jitted");
    let vm = unreadable(&scratch);
    let mut deaf = java(&vm, &scratch, "Jitted", &["-XX:+DisableAttachMechanism"]);
    let (_, stderr) = record_in(&scratch, &["--java", "-d", "300ms", "-p", &deaf.pid_text()]);
    assert!(stderr.contains("did not name its methods: it runs with"), "{stderr}");
    assert!(deaf.is_running());
}

#[test]
fn doctor_says_whether_a_vm_can_be_read() {
    if !has_java() {
        return;
    }
    let scratch = Scratch::new();
    javac(&scratch, "Jitted");
    let target = java("java", &scratch, "Jitted", &[]);
    let said = finish(flame().args(["doctor", "-p", &target.pid_text()])).stdout;
    assert!(said.contains("inlined and interpreted methods and their stacks are read"), "{said}");
    let vm = unreadable(&scratch);
    let target = java(&vm, &scratch, "Jitted", &[]);
    let said = finish(flame().args(["doctor", "-p", &target.pid_text()])).stdout;
    assert!(said.contains("the VM cannot be read: its tables cannot be read"), "{said}");
}
