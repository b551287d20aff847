//! Where names come from: files that are gone, replaced, elsewhere or stripped, code that was
//! copied, debug files in directories and from a server.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{
    Build, Ended, Folded, Running, Scratch, Target, assert_share, finish, flame, live,
    live_as_root, program, program_built, record_nowhere,
};

/// Records with these arguments; what came out, and what was said.
#[track_caller]
fn recorded(change: impl FnOnce(&mut Command), arguments: &[&str]) -> (Folded, String, Ended) {
    let scratch = Scratch::new();
    let (folded, text) = (scratch.file("out.folded"), scratch.file("out.txt"));
    let mut command = flame();
    command.args(["record", "-F", "4999", "-o", &folded, "-o", &text]).args(arguments);
    change(&mut command);
    let ended = finish(&mut command).success();
    let folded = Folded::parse(&fs::read_to_string(folded).unwrap());
    (folded, fs::read_to_string(text).unwrap(), ended)
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?}");
}

/// Attaches for a second, in which a busy machine may leave the target little time.
#[track_caller]
fn attached(target: &Target) -> (Folded, String, Ended) {
    recorded(|_| {}, &["-d", "1s", "-p", &target.pid_text()])
}

/// What starts a program takes next to nothing, but for on a busy virtual machine: the host may take
/// the CPU away at each instruction that it has to emulate, and the loader asks for CPUID often.
#[track_caller]
fn assert_work_is_named(folded: &Folded) {
    assert_share(folded.with(&["main", "work"]), folded.with(&["main"]), 1.0, 0.03);
    assert_share(folded.with(&["main"]), folded.total(), 1.0, 0.4);
}

#[test]
fn code_that_was_copied_into_anonymous_memory_keeps_its_names() {
    if !live() {
        return;
    }
    let path = program("remapped.c");
    let note = format!("code of {path} ran from a copy in anonymous memory; its names are");
    let (launched, text, _) = recorded(|_| {}, &["--", &path, "0.3"]);
    assert_work_is_named(&launched);
    assert!(text.contains(&note), "{text}");

    let target = Target::start(&path, &["30"]);
    let (attached, text, _) = attached(&target);
    assert_work_is_named(&attached);
    assert!(text.contains(&note), "{text}");
}

#[test]
fn other_code_in_the_place_of_a_file_does_not_get_its_names() {
    if !live() {
        return;
    }
    let (folded, text, _) = recorded(|_| {}, &["--", &program("remapped.c"), "0.3", "other"]);
    assert_eq!(folded.with(&["work"]), 0);
    let generated = folded.with_any(|frame| frame.starts_with("[anon+0x"));
    assert_share(generated, folded.total(), 1.0, 0.4);
    assert!(!text.contains("remapped ran"), "{text}");
}

#[test]
fn files_that_are_deleted_or_replaced_are_found_through_the_process() {
    // Without the right to follow the kernel's links there is /proc/PID/exe.
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    for replaced in [false, true] {
        let path = scratch.file("busy");
        fs::copy(program("shares.c"), &path).unwrap();
        let target = Target::spawn(Command::new(&path).arg("30"));
        target.wait_for_cpu(0.02);
        fs::remove_file(&path).unwrap();
        if replaced {
            fs::copy(program("recursion.c"), &path).unwrap();
        }
        assert_work_is_named(&attached(&target).0);
    }
}

/// Records two programs that are put at one path in turn, each for half of the time.
fn of_programs_in_turn(put: &str) -> (Folded, String) {
    let scratch = Scratch::new();
    let (first, second) = (program("shares.c"), program("recursion.c"));
    let script = format!(
        "put() {{ {put}; }}; busy={}; for i in 1 2 3 4 5; do
             put {first}; $busy 0.05 3; put {second}; $busy 0.05 3; done",
        scratch.file("busy"),
    );
    let (folded, _, ended) = recorded(|_| {}, &["--", "sh", "-c", &script]);
    (folded.of("busy"), ended.stderr)
}

#[test]
fn programs_that_replace_each_other_keep_their_own_names() {
    if !live() {
        return;
    }
    for put in ["rm -f $busy; cp $1 $busy", "cp $1 $busy.new; mv $busy.new $busy"] {
        let (busy, _) = of_programs_in_turn(put);
        let work = busy.with(&["main", "work"]);
        let recursion = busy.with(&["main", "descend", "descend", "descend", "bottom"]);
        assert_share(work, work + recursion, 0.5, 0.15);
        assert_share(work + recursion, busy.with(&["main"]), 1.0, 0.02);
        // The loader asks for CPUID, for which a busy host may take the CPU away for long.
        let started = busy.total() - busy.with(&["_dl_start"]);
        // What was replaced before flame came to look at it has no names, and is said to.
        assert_share(busy.with(&["main"]), started, 1.0, 0.5);
    }
}

/// The bytes that ran first are nowhere any more, and those that are there belong to the other one.
#[test]
fn a_program_that_was_written_over_has_no_names() {
    if !live() {
        return;
    }
    let (busy, said) = of_programs_in_turn("cp $1 $busy");
    assert_eq!(busy.with(&["main"]), 0);
    let unnamed = busy.with_any(|frame| frame.starts_with("[busy+0x"));
    assert_share(unnamed, busy.total(), 1.0, 0.2);
    assert!(said.contains("/busy: file replaced since it was mapped"), "{said}");
}

#[test]
fn a_file_of_another_mount_namespace_is_not_mistaken_for_the_hosts() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let (host, inner) = (scratch.file("tool"), scratch.file("inner"));
    fs::copy(program("recursion.c"), &host).unwrap();
    fs::copy(program("shares.c"), &inner).unwrap();
    let script = format!("mount --bind {inner} {host} && exec {host} 30");
    let target = Target::spawn(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    target.wait_for_cpu(0.02);
    assert_work_is_named(&attached(&target).0);
    assert_eq!(fs::read(&host).unwrap(), fs::read(program("recursion.c")).unwrap());
}

#[test]
fn debug_files_of_another_root_are_found_below_it() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let root = scratch.file("root");
    fs::create_dir_all(format!("{root}/bin")).unwrap();
    let whole = program_built("shares.c", Build::Static);
    let (path, debug) = (format!("{root}/bin/tool"), format!("{root}/bin/tool.debug"));
    run("objcopy", &["--only-keep-debug", &whole, &debug]);
    run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={debug}"), &whole, &path]);
    // It ends before it is named: what is below its root has to be opened while it runs.
    let arguments = ["--", "chroot", &root, "/bin/tool", "0.3"];
    let (folded, _, _) = recorded(|_| {}, &arguments);
    let tool = folded.of("tool");
    assert_work_is_named(&tool);
}

/// A program without symbols, and beside it, not named after it, what was stripped.
fn stripped(scratch: &Scratch) -> (String, String) {
    let (path, debug) = (scratch.file("prog"), scratch.file("kept"));
    run(
        "gcc",
        &["-O2", "-g", "-fomit-frame-pointer", "-Wl,--build-id", "-o", &path, &source("shares.c")],
    );
    run("objcopy", &["--only-keep-debug", &path, &debug]);
    run("strip", &[&path]);
    (path, debug)
}

fn source(name: &str) -> String {
    format!("{}/../../tests/programs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The build id that `readelf` prints.
fn build_id(path: &str) -> String {
    let output = Command::new("readelf").args(["-n", path]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_directory_of_debug_files_brings_names_and_explain_says_what_is_missing() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (path, debug) = stripped(&scratch);
    let (folded, _, ended) = recorded(|_| {}, &["--explain", "--", &path, "0.3"]);
    let unnamed = folded.with_any(|frame| frame.starts_with("[prog+0x"));
    assert_share(unnamed, folded.total(), 1.0, 0.03);
    let row = ended.stderr.lines().find(|line| line.contains(&format!(" {path} "))).unwrap();
    assert!(row.contains(": stripped; inlined functions, lines"), "{row}");
    assert!(row.ends_with("  compile with -g, do not strip"), "{row}");

    let id = build_id(&path);
    let directory = scratch.file("debug");
    fs::create_dir_all(format!("{directory}/.build-id/{}", &id[..2])).unwrap();
    fs::rename(debug, format!("{directory}/.build-id/{}/{}.debug", &id[..2], &id[2..])).unwrap();
    let (folded, _, ended) =
        recorded(|_| {}, &["--explain", "--debug-dir", &directory, "--", &path, "0.3"]);
    assert_work_is_named(&folded);
    let row = ended.stderr.lines().find(|line| line.contains(&format!(" {path} "))).unwrap();
    assert!(row.ends_with("  nothing"), "{row}");
}

/// A debuginfod server with one file, as long as the test program runs; its address.
fn serve(id: &str, bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let path = format!("GET /buildid/{id}/debuginfo HTTP/1.1");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let (status, body) = match request == path {
                true => ("200 OK", &*bytes),
                false => ("404 Not Found", &b""[..]),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
            let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
            let _ = stream.write_all(body);
        }
    });
    url
}

#[test]
fn servers_are_asked_for_what_is_missing_and_the_cache_keeps_it() {
    if !live() || !cfg!(feature = "debuginfod") {
        return;
    }
    let scratch = Scratch::new();
    let (path, debug) = stripped(&scratch);
    let id = build_id(&path);
    let url = serve(&id, fs::read(&debug).unwrap());
    fs::remove_file(&debug).unwrap();
    let cache = scratch.file("cache");
    let with = |url: &str| {
        let (url, cache) = (url.to_owned(), cache.clone());
        move |command: &mut Command| {
            command.env("DEBUGINFOD_URLS", url).env("DEBUGINFOD_CACHE_PATH", cache);
        }
    };
    let (folded, _, ended) = recorded(with(&url), &["--", &path, "0.3"]);
    assert_work_is_named(&folded);
    assert!(!ended.stderr.contains("could not be fetched"), "{}", ended.stderr);
    assert!(Path::new(&format!("{cache}/{id}/debuginfo")).exists());
    // The second time from the cache, without any server.
    let (folded, _, _) = recorded(with(""), &["--", &path, "0.3"]);
    assert_work_is_named(&folded);
    // A server that nobody reaches is one note, and costs no recording.
    let _ = fs::remove_dir_all(&cache);
    let (_, text, ended) = recorded(with("http://127.0.0.1:9"), &["--", &path, "0.3"]);
    assert!(
        ended.stderr.contains(" of debug information could not be fetched: http://127.0.0.1:9")
    );
    assert!(text.contains("could not be fetched"), "{text}");
}

/// What is in the caller's cache leads where the caller wants, and root is not to write there.
#[test]
fn the_cache_under_sudo_is_not_the_callers() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let (path, debug) = stripped(&scratch);
    let cache = scratch.file("home/.cache/debuginfod_client");
    let place = format!("{cache}/{}", build_id(&path));
    fs::create_dir_all(&place).unwrap();
    fs::rename(debug, format!("{place}/debuginfo")).unwrap();
    let (home, xdg) = (scratch.file("home"), scratch.file("home/.cache"));
    for (name, value) in [("HOME", home), ("XDG_CACHE_HOME", xdg), ("DEBUGINFOD_CACHE_PATH", cache)]
    {
        let with = |sudo: bool| {
            let (folded, ..) = recorded(
                |command| {
                    command.env_remove("XDG_CACHE_HOME").env(name, &value);
                    if sudo {
                        command.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
                    }
                },
                &["--", &path, "0.3"],
            );
            folded
        };
        assert_work_is_named(&with(false));
        let folded = with(true);
        let unnamed = folded.with_any(|frame| frame.starts_with("[prog+0x"));
        assert_share(unnamed, folded.total(), 1.0, 0.03);
    }
}

/// A server that never answers; its address, and a word whenever somebody asked it.
fn serve_nothing() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            open.push(stream);
            let _ = asked.send(());
        }
    });
    (url, heard)
}

#[test]
fn a_signal_ends_the_fetching_and_nothing_else() {
    if !live() || !cfg!(feature = "debuginfod") {
        return;
    }
    let scratch = Scratch::new();
    let (path, _) = stripped(&scratch);
    let (url, asked) = serve_nothing();
    let (cache, output) = (scratch.file("cache"), scratch.file("out.folded"));
    let mut command = flame();
    command.env("DEBUGINFOD_URLS", url).env("DEBUGINFOD_CACHE_PATH", cache);
    command.env("DEBUGINFOD_MAXTIME", "600");
    command.args(["record", "-F", "4999", "-o", &output, "--", &path, "0.3"]);
    let running = Running::new(&mut command);
    asked.recv_timeout(Duration::from_secs(60)).expect("the server is asked");
    running.signal(Signal::SIGINT);
    let ended = running.end().success();
    let note = "files of debug information were not waited for (interrupted)";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
    let folded = Folded::parse(&fs::read_to_string(output).unwrap());
    let unnamed = folded.with_any(|frame| frame.starts_with("[prog+0x"));
    assert_share(unnamed, folded.total(), 1.0, 0.03);
}

/// The images of frames without a name: `prog` of `[prog+0x1234]`.
fn images_without_names(folded: &Folded) -> BTreeSet<String> {
    let frames = folded.stacks().flat_map(|(frames, _)| frames);
    let image = |frame: &String| Some(frame.strip_prefix('[')?.split_once("+0x")?.0.to_owned());
    frames.filter_map(image).collect()
}

/// Every frame has the name of a function, or its image a reason in the table of `--explain`, and
/// the summary names reasons, too.
#[track_caller]
fn check_reasons(program: &str, arguments: &[&str]) {
    let exists = Path::new(program).exists();
    if !live() || !exists {
        let _ = writeln!(std::io::stderr(), "SKIP live: no {program}");
        return;
    }
    let command = [&["--explain", "--", program], arguments].concat();
    let (folded, _, ended) = recorded(|_| {}, &command);
    let unnamed = images_without_names(&folded);
    let (_, table) = ended.stderr.split_once("what would bring it\n").expect("there is a table");
    for image in &unnamed {
        let is_of = |line: &&str| {
            line.contains(&format!("/{image} ")) || line.contains(&format!(" [{image}] "))
        };
        let row = table.lines().find(is_of);
        let row = row.unwrap_or_else(|| panic!("no row for {image}:\n{}", ended.stderr));
        assert!(row.contains("names"), "no reason for {image}: {row}");
    }
    // Those that are hardly there are left to the table.
    let all = folded.with_any(|frame| frame.starts_with('[') && frame.contains("+0x"));
    let said = ended.stderr.contains("\n  unnamed ");
    let is_visible = all * 1000 >= folded.total() * 2;
    assert!(said || !is_visible, "{}", ended.stderr);
    assert!(!said || all > 0, "{}", ended.stderr);
}

#[test]
fn every_unnamed_frame_of_an_interpreter_has_a_reason() {
    let code = "import json\nfor i in range(9): json.dumps(list(range(99999)))";
    check_reasons("/usr/bin/python3", &["-c", code]);
    let code = "my %h; for my $i (1..300000){$h{$i%999}.=\"x$i\"; $h{$i%999}=~s/x1/y/}";
    check_reasons("/usr/bin/perl", &["-e", code]);
}

#[test]
fn every_unnamed_frame_of_a_compiler_has_a_reason() {
    check_reasons("/usr/bin/gcc", &["-O2", "-c", &source("names.cpp"), "-o", "/dev/null"]);
}

#[test]
fn every_unnamed_frame_of_a_jit_has_a_reason() {
    let code = "function f(n){return n<2?n:f(n-1)+f(n-2)} f(30)";
    check_reasons("/usr/bin/node", &["-e", code]);
    check_reasons("/usr/bin/java", &["-version"]);
}

#[test]
fn every_unnamed_frame_of_a_stripped_rust_program_has_a_reason() {
    let scratch = Scratch::new();
    let path = scratch.file("rusty");
    let flags = ["-O", "-C", "strip=symbols", "-o", &path];
    let built = Command::new("rustc").args(flags).arg(source("inlining.rs")).status();
    if built.is_ok_and(|status| status.success()) {
        check_reasons(&path, &["0.3"]);
    }
}

#[test]
fn debug_files_that_are_missing_or_of_another_build_are_named_in_a_note() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let run = |line: &str| {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        let status = command.args(words).current_dir(scratch.path()).status().unwrap();
        assert!(status.success(), "{line}");
    };
    fs::write(
        scratch.file("main.c"),
        "int main(void) { for (volatile long i = 0; i < 400000000; i++) {} return 0; }",
    )
    .unwrap();
    run("gcc -g -gsplit-dwarf -o split main.c");
    run("gcc -g -Wl,--build-id=none -o whole main.c");
    run("objcopy --only-keep-debug whole linked.debug");
    run("objcopy --strip-all whole linked");
    run("objcopy --add-gnu-debuglink=linked.debug linked");
    let said = |name: &str| {
        let path = scratch.file(name);
        record_nowhere(&["-F", "499", "--", &path]).success().stderr
    };
    for name in ["split", "linked"] {
        assert!(!said(name).contains("debug file") && !said(name).contains(".dwo"), "{name}");
    }
    for file in fs::read_dir(scratch.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(file).unwrap();
        }
    }
    let split = said("split");
    assert!(split.contains(".dwo is not found"), "{split}");
    let other = fs::read(scratch.file("linked.debug")).unwrap();
    fs::write(scratch.file("linked.debug"), [&other[..], &[0]].concat()).unwrap();
    let linked = said("linked");
    assert!(linked.contains("linked.debug is of another build"), "{linked}");
}
