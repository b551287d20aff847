//! Stacks that are hard to unwind: signals, calls of nothing, code without tables.

use std::fs;

use crate::support::{Folded, Scratch, assert_share, finish, flame, live, program};

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
    assert!(said.contains("no unwind information"), "{said}");
}
