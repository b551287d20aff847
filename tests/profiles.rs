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
