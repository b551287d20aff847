//! What becomes of cut stacks at the end.

use flame_profile::{Pid, ProcessAddress, Tid};

use super::super::chains::{KnownFrame, Sight};
use super::*;

fn at(address: u64) -> CodeLocation {
    CodeLocation::Unmapped(ProcessAddress(address))
}

fn frame(stack_pointer: u64, address: u64) -> KnownFrame {
    let stack_pointer = ProcessAddress(stack_pointer);
    KnownFrame { stack_pointer, address: ProcessAddress(address), location: at(address) }
}

/// The leaf function at 0x100 whose caller's stack pointer is 0x1100.
const LEAF: Activation =
    Activation { end: ProcessAddress(0x1100), function: ProcessAddress(0x100) };

/// Chains in which LEAF was called from each of `callers`, all of which main (0x300) calls.
fn chains(callers: &[u64]) -> (Chains, MemoryId, Option<NodeId>) {
    chains_seen(callers, Sight::Read { doubtful: 0 })
}

fn chains_seen(callers: &[u64], sight: Sight) -> (Chains, MemoryId, Option<NodeId>) {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(Pid(7), Tid(7));
    let mut last = None;
    for caller in callers.iter().flat_map(|caller| [caller; OFTEN as usize / 2]) {
        let frames = [frame(0x1000, 0x105), frame(0x1100, *caller), frame(0x1200, 0x300)];
        let mut function = |index: usize| match index {
            0 => LEAF.function,
            _ => frames[index].address,
        };
        last = chains.learn(memory, &frames, 1, sight, &mut function);
    }
    (chains, memory, last)
}

/// Finishes one cut of LEAF and gives its whole stack, outermost first, with the counts.
fn finish(
    chains: &Chains,
    memory: MemoryId,
    outermost: Option<Activation>,
    read: Result<NodeId, NotCompleted>,
) -> (Vec<CodeLocation>, Health) {
    let mut cuts = Cuts::default();
    let stack = cuts.stacks.push(StackId::EMPTY, at(0x105));
    let cut = Cut { memory, end: StackEnd::CopyTooShort, outermost, read, guessed: false };
    cuts.add(3, stack, cut, [1, 10]);
    cuts.add(3, stack, cut, [1, 30]);
    let (mut stacks, mut health) = (StackTable::default(), Health::default());
    let finished = cuts.finish(chains, &mut stacks, &mut health);
    let [(3, stack, evidence, [2, 40])] = finished[..] else { panic!("{finished:?}") };
    assert_eq!(evidence != Evidence::Copied, !health.completed.is_empty());
    let mut frames: Vec<_> = stacks.entries(stack).collect();
    frames.reverse();
    (frames, health)
}

#[track_caller]
fn check_complete(health: &Health, how: Completion) {
    assert_eq!(health.completed.iter().collect::<Vec<_>>(), [(&how, &2)]);
    let end = match how {
        Completion::ReadFromProcess => StackEnd::Root,
        Completion::EarlierStack => StackEnd::Guessed,
    };
    assert_eq!(health.stack_ends.iter().collect::<Vec<_>>(), [(&end, &2)]);
    assert!(health.not_completed.is_empty());
}

#[track_caller]
fn check_cut(health: &Health, why: NotCompleted) {
    assert_eq!(health.not_completed.iter().collect::<Vec<_>>(), [(&why, &2)]);
    assert_eq!(health.stack_ends.iter().collect::<Vec<_>>(), [(&StackEnd::CopyTooShort, &2)]);
    assert!(health.completed.is_empty());
}

#[test]
fn a_stack_that_was_read_is_complete() {
    let (chains, memory, node) = chains(&[0x205]);
    let (frames, health) = finish(&chains, memory, Some(LEAF), Ok(node.unwrap()));
    assert_eq!(frames, [at(0x300), at(0x205), at(0x105)]);
    check_complete(&health, Completion::ReadFromProcess);
    // Where the frame's end is not known, the reading must do.
    let (frames, health) = finish(&chains, memory, None, Ok(node.unwrap()));
    assert_eq!(frames, [at(0x300), at(0x205), at(0x105)]);
    check_complete(&health, Completion::ReadFromProcess);
}

#[test]
fn a_stack_that_changed_is_completed_by_others() {
    // Not by a few of them.
    let (few, memory, _) = chains(&[0x205]);
    let (frames, health) = finish(&few, memory, Some(LEAF), Err(NotCompleted::Changed));
    assert_eq!(frames, [CodeLocation::Truncated, at(0x105)]);
    check_cut(&health, NotCompleted::Changed);
    let (chains, memory, _) = chains(&[0x205, 0x205]);
    let (frames, health) = finish(&chains, memory, Some(LEAF), Err(NotCompleted::Changed));
    assert_eq!(frames, [at(0x300), at(0x205), at(0x105)]);
    check_complete(&health, Completion::EarlierStack);
}

/// Stacks that are whole in their copies are not like those that are not: here `work` is called ten
/// frames deep, and 211 deep by another function.
#[test]
fn stacks_that_were_only_copied_complete_no_other() {
    let (chains, memory, _) = chains_seen(&[0x205; 20], Sight::Copied);
    for why in [NotCompleted::Changed, NotCompleted::Unreadable] {
        let (frames, health) = finish(&chains, memory, Some(LEAF), Err(why));
        assert_eq!(frames, [CodeLocation::Truncated, at(0x105)]);
        check_cut(&health, why);
    }
}

#[test]
fn a_process_that_cannot_be_read_is_completed_by_nothing() {
    let (chains, memory, _) = chains(&[0x205, 0x205]);
    let (frames, health) = finish(&chains, memory, Some(LEAF), Err(NotCompleted::Unreadable));
    assert_eq!(frames, [CodeLocation::Truncated, at(0x105)]);
    check_cut(&health, NotCompleted::Unreadable);
}

#[test]
fn nothing_known_means_truncated() {
    let (chains, memory, _) = chains(&[]);
    for outermost in [Some(LEAF), None] {
        let (frames, health) = finish(&chains, memory, outermost, Err(NotCompleted::Unreadable));
        assert_eq!(frames, [CodeLocation::Truncated, at(0x105)]);
        check_cut(&health, NotCompleted::Unreadable);
    }
}

#[test]
fn with_two_callers_to_choose_from_not_even_a_reading_is_believed() {
    let (chains, memory, node) = chains(&[0x205, 0x285]);
    for read in [Err(NotCompleted::Changed), Ok(node.unwrap())] {
        let (frames, health) = finish(&chains, memory, Some(LEAF), read);
        assert_eq!(frames, [CodeLocation::Truncated, at(0x105)]);
        check_cut(&health, NotCompleted::Ambiguous);
    }
}
