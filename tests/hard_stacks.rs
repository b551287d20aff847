//! Stacks that are hard to unwind: signals, calls of nothing, code without tables.

use std::fs;
use std::io::Read;
use std::process::Command;

use flate2::read::GzDecoder;

use crate::support::{
    Folded, Scratch, assert_share, complete_share, finish, flame, incomplete_stacks, live,
    live_as_root, program,
};

/// Records `hard.c` at 999 Hz; gives the stacks and what flame said.
#[track_caller]
fn hard(way: &str) -> (Folded, String) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program("hard.c");
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &path, "--", &program, "0.6", way]);
    let ended = finish(&mut command).success();
    (Folded::parse(&fs::read_to_string(&path).unwrap()), ended.stderr)
}

/// How often `level` stands on a stack.
fn levels(frames: &[String]) -> usize {
    frames.iter().filter(|frame| *frame == "level").count()
}

/// With the right to sample only, and not to go before the target: the copy holds all of the shallow
/// stacks and all but the outermost levels of the deep ones, which stand where levels of the shallow
/// ones do.
#[test]
fn nothing_wrong_is_read_where_the_target_may_go_on_meanwhile() {
    if !can_record() || !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    for (from, to) in [(env!("CARGO_BIN_EXE_flame"), "flame"), (&program("hard.c"), "hard")] {
        fs::copy(from, scratch.file(to)).unwrap();
    }
    let size = Command::new(scratch.file("hard")).args(["0", "size"]).output().unwrap().stdout;
    let size: usize = String::from_utf8(size).unwrap().trim().parse().unwrap();
    let copy = format!("dwarf,{}", 206 * size);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--inh-caps=+perfmon", "--ambient-caps=+perfmon", "./flame", "record", "-F"]);
    command.args(["999", "--call-graph", &copy, "-o", "out.folded", "-o", "out.pb.gz", "--"]);
    let ended = finish(command.args(["./hard", "2", "depths"]).current_dir(scratch.path()));
    let ended = ended.success();
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    let wrong = folded.stacks().filter(|(frames, _)| {
        let (deep, of) = (levels(frames) > 20, |name: &str| frames.iter().any(|f| f == name));
        (deep && of("ten")) || (!deep && of("many") && levels(frames) > 0)
    });
    // But for one on its way down to where the deep ones are.
    let wrong: u64 = wrong.map(|(_, weight)| weight).sum();
    assert!(wrong * 500 < folded.total(), "{wrong}: {}", ended.stderr);
    // How many are read in time is the scheduler's affair.
    let truncated = folded.with(&["[truncated stack]"]);
    assert!(truncated * 10 < 6 * folded.total(), "{}", ended.stderr);
    assert_eq!(truncated, incomplete_stacks(&ended.stderr), "{}", ended.stderr);
}

/// The kernel copies nothing of a stack whose first page is not there.
#[test]
fn calls_of_the_kernel_below_memory_that_nobody_has_written_to_have_their_callers() {
    if !can_record() || !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &path, "--", &program("untouched.c"), "1"]);
    let said = finish(&mut command).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(&path).unwrap());
    for name in ["large", "small"] {
        let caller = format!("calls_{name}");
        assert_share(folded.with_in_order(&["main", &caller, name]), folded.total(), 0.5, 0.06);
    }
    assert!(complete_share(&said) > 98.0, "{said}");
}

/// What lies beyond the copy is read while the thread stands still, and told apart in the profile: 600
/// levels of at least 16 bytes, of which a copy of 4,096 bytes has 60 to 256.
#[test]
fn stacks_beyond_their_copy_are_read_on_and_marked() {
    if !can_record() || !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let mut command = flame();
    command.args(["record", "-F", "999", "--call-graph", "dwarf,4096"]);
    command.args(["-o", &scratch.file("out.folded"), "-o", &scratch.file("out.pb.gz"), "--"]);
    let said = finish(command.args([&*program("recursion.c"), "0.5", "600"])).success().stderr;
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    let mut bytes = GzDecoder::new(fs::File::open(scratch.file("out.pb.gz")).unwrap());
    let mut profile = Vec::new();
    bytes.read_to_end(&mut profile).unwrap();
    assert!(profile.windows(17).any(|word| word == b"read-from-process"), "{said}");
    assert!(said.contains("read on from the process"), "{said}");
    // How many readers come too late is the scheduler's affair; flame says of each that it did.
    let truncated = folded.with(&["[truncated stack]"]);
    assert_eq!(truncated, incomplete_stacks(&said), "{said}");
    assert!(truncated * 2 < folded.total(), "{said}");
    let whole = folded.total() - truncated;
    assert_share(folded.with(&["main", "descend"]), whole, 1.0, 0.05);
    for (frames, _) in folded.stacks().filter(|(frames, _)| frames.contains(&"bottom".to_owned())) {
        let levels = frames.iter().filter(|frame| *frame == "descend").count();
        let is_truncated = frames[1] == "[truncated stack]";
        assert!(levels == if is_truncated { levels.min(256) } else { 600 }, "{levels}: {said}");
    }
}

/// Whether the programs can be built for this machine and recorded on it.
fn can_record() -> bool {
    cfg!(target_arch = "x86_64") && live()
}

#[test]
fn handlers_on_a_stack_of_their_own_are_rooted() {
    if !can_record() {
        return;
    }
    let (folded, _) = hard("alternate");
    let rooted: u64 = folded
        .stacks()
        .filter(|(frames, _)| {
            let place = |name: &str| frames.iter().position(|frame| frame == name);
            let order = ["main", "work", "interrupted", "handler", "burn"].map(place);
            frames[1] == "_start" && order.iter().all(Option::is_some) && order.is_sorted()
        })
        .map(|(_, weight)| weight)
        .sum();
    // flame reads the other stack late at times; the program is there once in 50 ms only.
    assert_share(rooted, folded.total(), 1.0, 0.1);
}

#[test]
fn a_handler_of_a_call_of_nothing_is_rooted_by_a_guess() {
    if !can_record() {
        return;
    }
    let (folded, said) = hard("null");
    let caller = folded.with(&["_start"]).min(folded.with(&["main", "work", "call_null"]));
    assert_share(caller, folded.total(), 1.0, 0.05);
    let nothing = folded.with_any(|frame| frame.starts_with("[unmapped+"));
    assert_share(nothing, folded.total(), 1.0, 0.05);
    assert_share(folded.with(&["handler", "burn"]), folded.total(), 1.0, 0.05);
    assert!(said.contains("with guessed frames"), "{said}");
}

#[test]
fn what_a_frame_pointer_skipped_is_not_called_complete() {
    if !can_record() {
        return;
    }
    let (folded, said) = hard("bare");
    assert_share(folded.with(&["bare", "burn"]), folded.total(), 1.0, 0.05);
    // The caller is missed, which nobody can know: so nothing is said to be complete.
    assert_share(folded.with(&["work"]), folded.total(), 0.0, 0.05);
    assert!(said.contains("with guessed frames"), "{said}");
}

#[test]
fn a_pair_of_zeros_is_no_root() {
    if !can_record() {
        return;
    }
    let (folded, said) = hard("zeros");
    let truncated = folded.with(&["hard", "[truncated stack]", "zeros"]);
    assert_share(truncated, folded.total(), 1.0, 0.05);
    assert!(said.contains("no unwind information, most in hard"), "{said}");
}
