//! What is remembered of threads, and when it is used.

use super::*;

const PID: Pid = Pid(7);
const TID: Tid = Tid(8);

/// A frame of the function at `function` with its stack pointer there.
fn frame(stack_pointer: u64, function: u64) -> KnownFrame {
    let address = ProcessAddress(function + 5);
    let location = CodeLocation::Unmapped(address);
    KnownFrame { stack_pointer: ProcessAddress(stack_pointer), address, location }
}

fn learn(chains: &mut Chains, memory: MemoryId, frames: &[KnownFrame], wanted: usize) -> NodeId {
    learn_doubtful(chains, memory, frames, wanted, 0)
}

fn learn_doubtful(
    chains: &mut Chains,
    memory: MemoryId,
    frames: &[KnownFrame],
    wanted: usize,
    doubtful: usize,
) -> NodeId {
    let mut function = |index: usize| ProcessAddress(frames[index].address.0 - 5);
    let sight = Sight::Read { doubtful };
    chains.learn(memory, frames, wanted, sight, &mut function).expect("there is room")
}

fn activation(end: u64, function: u64) -> Activation {
    Activation { end: ProcessAddress(end), function: ProcessAddress(function) }
}

fn path(chains: &Chains, callers: Callers) -> Vec<u64> {
    let Callers::One(node, _) = callers else { panic!("{callers:?}") };
    let address = |location| match location {
        CodeLocation::Unmapped(address) => address.0,
        location => panic!("{location:?}"),
    };
    chains.path(node).into_iter().map(address).collect()
}

/// leaf (0x100) at 0x1000, called by work (0x200) at 0x1100, called by main (0x300) at 0x1200.
fn stack() -> [KnownFrame; 3] {
    [frame(0x1000, 0x100), frame(0x1100, 0x200), frame(0x1200, 0x300)]
}

#[test]
fn an_activation_has_the_callers_that_it_was_seen_with() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    let work = learn(&mut chains, memory, &stack(), 1);
    assert_eq!(path(&chains, Callers::One(work, 1)), [0x305, 0x205]);
    assert_eq!(path(&chains, chains.callers(memory, activation(0x1100, 0x100))), [0x305, 0x205]);
    assert_eq!(path(&chains, chains.callers(memory, activation(0x1200, 0x200))), [0x305]);
    // Neither the same function at another place nor another function at the same place.
    assert_eq!(chains.callers(memory, activation(0x1108, 0x100)), Callers::Unknown);
    assert_eq!(chains.callers(memory, activation(0x1100, 0x110)), Callers::Unknown);
}

#[test]
fn two_chains_of_callers_are_one_too_many() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    learn(&mut chains, memory, &stack(), 1);
    learn(&mut chains, memory, &stack(), 1);
    let seen = chains.callers(memory, activation(0x1100, 0x100));
    assert!(matches!(seen, Callers::One(_, 2)), "{seen:?}");
    let seen = chains.callers(memory, activation(0x1200, 0x200));
    assert!(matches!(seen, Callers::One(_, 2)), "{seen:?}");
    // The same leaf at the same place below other_work, which main calls as well.
    let [leaf, _, main] = stack();
    learn(&mut chains, memory, &[leaf, frame(0x1100, 0x280), main], 1);
    assert_eq!(chains.callers(memory, activation(0x1100, 0x100)), Callers::Several);
    assert_eq!(path(&chains, chains.callers(memory, activation(0x1200, 0x200))), [0x305]);
    assert_eq!(path(&chains, chains.callers(memory, activation(0x1200, 0x280))), [0x305]);
}

#[test]
fn two_call_sites_in_one_caller_are_two_chains() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    let [leaf, work, main] = stack();
    learn(&mut chains, memory, &[leaf, work, main], 1);
    let elsewhere = KnownFrame { address: ProcessAddress(0x20a), ..work };
    let function = |index: usize| ProcessAddress([0x100, 0x200, 0x300][index]);
    chains
        .learn(memory, &[leaf, elsewhere, main], 1, Sight::Read { doubtful: 0 }, &mut { function });
    assert_eq!(chains.callers(memory, activation(0x1100, 0x100)), Callers::Several);
    assert_eq!(path(&chains, chains.callers(memory, activation(0x1200, 0x200))), [0x305]);
}

#[test]
fn another_image_at_the_same_address_is_another_caller() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    let [leaf, work, main] = stack();
    learn(&mut chains, memory, &[leaf, work, main], 1);
    let other = CodeLocation::Anonymous(PID, work.address);
    learn(&mut chains, memory, &[leaf, KnownFrame { location: other, ..work }, main], 1);
    assert_eq!(chains.callers(memory, activation(0x1100, 0x100)), Callers::Several);
}

#[test]
fn threads_have_memories_of_their_own_and_forked_processes_begin_with_their_parents() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    learn(&mut chains, memory, &stack(), 1);
    let fork = |pid, tid| EventKind::Fork { pid, tid, parent: PID, parent_tid: TID };
    chains.apply(&fork(PID, Tid(9)));
    assert_eq!(chains.memory(PID, Tid(9)), None);
    chains.apply(&fork(Pid(10), Tid(10)));
    let child = chains.memory(Pid(10), Tid(10)).expect("it has its parent's stack");
    let leaf = activation(0x1100, 0x100);
    assert_eq!(path(&chains, chains.callers(child, leaf)), [0x305, 0x205]);
    // What the child does is its own.
    let [innermost, _, main] = stack();
    learn(&mut chains, child, &[innermost, frame(0x1100, 0x280), main], 1);
    assert_eq!(path(&chains, chains.callers(child, leaf)), [0x305, 0x285]);
    assert_eq!(path(&chains, chains.callers(memory, leaf)), [0x305, 0x205]);
}

#[test]
fn exec_and_the_end_of_a_thread_end_its_memory() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    chains.note_call(PID, ProcessAddress(0x205), ProcessAddress(0x100));
    assert!(chains.knows_call(PID, ProcessAddress(0x205), ProcessAddress(0x100)));
    let comm = |exec| EventKind::Comm { pid: PID, tid: TID, name: b"new".to_vec(), exec };
    chains.apply(&comm(false));
    assert_eq!(chains.memory(PID, TID), Some(memory));
    chains.apply(&comm(true));
    assert_eq!(chains.memory(PID, TID), None);
    assert!(!chains.knows_call(PID, ProcessAddress(0x205), ProcessAddress(0x100)));
    let memory = chains.begin_memory(PID, TID);
    chains.apply(&EventKind::Exit { pid: PID, tid: TID });
    assert_ne!(chains.begin_memory(PID, TID), memory);
}

#[test]
fn a_chain_that_ends_in_the_copy_has_no_callers() {
    let mut chains = Chains::default();
    let memory = chains.begin_memory(PID, TID);
    let node = learn(&mut chains, memory, &stack(), 3);
    assert_eq!(chains.path(node), []);
}

/// Learns the stack so often below work, and so often below another function, which are certain of
/// their leaf or not; gives what is known of the leaf.
#[track_caller]
fn check_strays(work: (u32, bool), other: (u32, bool), expect: Option<(u64, u32)>) {
    let [leaf, frame_of_work, main] = stack();
    let stacks = [([leaf, frame_of_work, main], work), ([leaf, frame(0x1100, 0x280), main], other)];
    for order in [[0, 1], [1, 0]] {
        let mut chains = Chains::default();
        let memory = chains.begin_memory(PID, TID);
        for (frames, (times, certain)) in order.map(|index| stacks[index]) {
            for _ in 0..times {
                learn_doubtful(&mut chains, memory, &frames, 1, usize::from(!certain));
            }
        }
        let seen = match chains.callers(memory, activation(0x1100, 0x100)) {
            Callers::One(node, times) => Some((path(&chains, Callers::One(node, times))[1], times)),
            Callers::Several => None,
            Callers::Unknown => panic!("nothing is known"),
        };
        assert_eq!(seen, expect, "in order {order:?}");
    }
}

#[test]
fn rare_doubtful_sights_do_not_count_against_certain_ones() {
    check_strays((16, true), (1, false), Some((0x205, 16)));
    check_strays((15, true), (1, false), None);
    check_strays((150, true), (3, false), Some((0x205, 150)));
    check_strays((50, true), (1, true), None);
    check_strays((500, false), (1, false), None);
    check_strays((1, true), (500, false), None);
}
