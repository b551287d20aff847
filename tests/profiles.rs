//! Profile files as other tools read them, and those that have nothing to show.

use std::fs;

use flame_formats::{read_pprof, write_pprof};
use flame_profile::{FrameKind, Location, Pid, Profile, StackId, Tid, ValueType};

use crate::support::{Scratch, finish, flame, live, program};

fn write(scratch: &Scratch, name: &str, profile: &Profile) {
    let mut bytes = Vec::new();
    write_pprof(profile, &mut bytes).unwrap();
    fs::write(scratch.file(name), bytes).unwrap();
}

/// Readers take the first mapping for the program: `go tool pprof` heads its reports with it.
#[test]
fn the_first_image_of_a_recording_is_the_program() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("cpu.pb.gz");
    // As root all CPUs are recorded from the start on, the loader's work included.
    let shares = program("shares.c");
    finish(flame().args(["record", "-F", "9999", "-o", &path, "--", &shares, "0.3"])).success();
    let profile = read_pprof(&fs::read(&path).unwrap()).unwrap();
    let names: Vec<&str> = profile.images().iter().map(|image| image.base_name()).collect();
    assert_eq!(names.first(), Some(&"shares"), "{names:?}");
}

/// One file each, named so that flame diff takes them as the runs of a side.
#[test]
fn a_recording_is_repeated_into_numbered_files() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let shares = program("shares.c");
    let record = |name: &str| {
        let command = ["record", "--repeat", "2", "-F", "999", "-o", name, "--", &shares, "0.2"];
        finish(flame().current_dir(scratch.path()).args(command)).success()
    };
    let said = record("old.pb.gz").stderr;
    record("new.pb.gz");
    let expect = ["new.1.pb.gz", "new.2.pb.gz", "old.1.pb.gz", "old.2.pb.gz"];
    let mut names = scratch.names();
    names.sort();
    assert_eq!(names, expect);
    assert!(said.contains("compare with: flame diff --before 'old.*.pb.gz'"), "{said}");
    let sides = ["diff", "--before", "old.*.pb.gz", "--after", "new.*.pb.gz", "--json"];
    let ended = finish(flame().current_dir(scratch.path()).args(sides)).success();
    assert!(ended.stdout.contains(r#""profiles":["old.1.pb.gz","old.2.pb.gz"]"#));
    let nowhere = ["record", "--repeat", "2", "--", "true"];
    finish(flame().args(nowhere)).error(2, &["--repeat needs a file", "try: -o before.pb.gz"]);
}

/// The profile alone is on stdout, whatever the program prints.
#[test]
fn what_a_program_prints_does_not_mix_with_the_profile() {
    if !live() {
        return;
    }
    let shares = program("shares.c");
    let script = format!("echo printed; {shares} 0.2; echo again");
    let command = ["record", "-F", "999", "-o", "-", "--", "sh", "-c", &script];
    let ended = finish(flame().args(command)).success();
    assert!(!ended.stdout.contains("printed") && !ended.stdout.contains("again\n"));
    assert!(ended.stdout.lines().all(|line| line.ends_with(|c: char| c.is_ascii_digit())));
    let said = "what the program prints there goes to stderr";
    assert!(ended.stderr.contains(said) && ended.stderr.contains("printed\n"), "{}", ended.stderr);
}

/// One value of a profile may be 0 in all its samples, and a profile may have none at all.
#[test]
fn a_profile_without_what_is_to_be_shown_says_what_it_has() {
    let scratch = Scratch::new();
    let types = ["alloc_space", "inuse_space"].map(|name| ValueType::new(name, "bytes"));
    let mut profile = Profile::new(types.to_vec());
    profile.default_value = 1;
    write(&scratch, "empty.pb.gz", &profile);
    let main = profile.add_frame("main", FrameKind::User);
    let main = profile.add_location(Location::named(main));
    let stack = profile.push_stack(StackId::EMPTY, main);
    let thread = profile.add_thread("server", Pid(1), Tid(1));
    profile.add_sample(thread, stack, &[512, 0]);
    write(&scratch, "heap.pb.gz", &profile);

    let render = |name: &str| finish(flame().args(["render", &scratch.file(name)]));
    render("empty.pb.gz").error(1, &["no inuse_space in ", "why: it is a profile without samples"]);
    let heap = render("heap.pb.gz");
    heap.error(1, &["no inuse_space in ", "why: its samples have alloc_space only"]);
    heap.error(1, &["try: --value alloc_space"]);
    assert!(!heap.stderr.contains("line"), "{}", heap.stderr);
    let heap = scratch.file("heap.pb.gz");
    let diff = finish(flame().args(["diff", &heap, &heap]));
    diff.error(1, &["no inuse_space in ", "try: --value alloc_space"]);
    let shown = ["render", "--value", "alloc_space", "--format", "folded", &heap];
    assert_eq!(finish(flame().args(shown)).success().stdout, "server;main 512\n");
}
