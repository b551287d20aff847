use super::*;
use crate::catch::SampledRegisters;
use crate::memory::Part;
use crate::python::layout::PythonBuild;
use crate::testing::Process;

const RUNTIME: u64 = 0x10_0000;
const INTERPRETER: u64 = 0x20_0000;
const STATES: u64 = 0x1000_0000;
const COUNT: u64 = 3000;

fn layout(minor: u32) -> PythonLayout {
    PythonLayout::of(&PythonBuild { minor, code_type: 0 }).unwrap()
}

fn state(index: u64) -> u64 {
    STATES + index * 1024
}

/// A process with so many threads, from number 1 on: the newest has the highest number, and is the first of the list.
fn crowd(layout: &PythonLayout, count: u64) -> Process {
    let mut process = Process::default();
    process.piece(RUNTIME, 4096);
    process.piece(INTERPRETER, 16_384);
    process.piece(STATES, (count as usize + 1) * 1024);
    process.put(RUNTIME + u64::from(layout.interpreters), INTERPRETER);
    (1..=count).for_each(|number| begin(&mut process, layout, number, number));
    process
}

/// A thread begins, with its state at a place of that index.
fn begin(process: &mut Process, layout: &PythonLayout, number: u64, index: u64) {
    let (head, at) = (INTERPRETER + u64::from(layout.threads), state(index));
    let next = pointer(process, head, 0).unwrap_or(0);
    if next != 0 {
        process.put(next + u64::from(layout.previous_thread), at);
    }
    process.put(head, at);
    process.put(at + u64::from(layout.previous_thread), 0);
    process.put(at + u64::from(layout.next_thread), next);
    process.put(at + u64::from(layout.interpreter), INTERPRETER);
    // Its frame is on the stack, or wherever.
    process.put(at + u64::from(layout.frame), stack_of(number) + 64);
    match layout.thread_id {
        ThreadId::Native(field) => process.put(at + u64::from(field), number),
        ThreadId::Pthread(field) => {
            process.put(at + u64::from(field), at + 0x80);
            process.put(at + 0x80 + PTHREAD_TID, number);
        }
    }
}

/// The state of a thread ends: its neighbours lead past it.
fn end(process: &mut Process, layout: &PythonLayout, index: u64) {
    let [before, next] = [layout.previous_thread, layout.next_thread]
        .map(|at| pointer(process, state(index), at).unwrap_or(0));
    let link = match before {
        0 => INTERPRETER + u64::from(layout.threads),
        before => before + u64::from(layout.next_thread),
    };
    process.put(link, next);
    if next != 0 {
        process.put(next + u64::from(layout.previous_thread), before);
    }
}

fn stack_of(number: u64) -> u64 {
    0x7000_0000_0000 + number * 0x4000_0000
}

fn thread(number: u64) -> Thread {
    let registers = SampledRegisters::default();
    Thread { pid: 7, tid: number as u32, stack_pointer: stack_of(number), registers }
}

/// The state that is found, and in how many reads.
fn found(
    catcher: &mut Catcher,
    layout: &PythonLayout,
    number: u64,
    process: &Process,
) -> (Option<u64>, usize) {
    process.reads.set(0);
    let found = find(catcher, (layout, RUNTIME), thread(number), process);
    (found.map(|state| state.address), process.reads.get())
}

#[test]
fn each_of_thousands_of_threads_is_found_and_from_then_on_at_once() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let process = crowd(&layout, COUNT);
        let mut looks = 0;
        loop {
            let (place, reads) = found(&mut catcher, &layout, 1, &process);
            assert!(reads < 300, "3.{minor}: {reads} reads");
            looks += 1;
            if place.is_some() {
                break;
            }
            assert!(looks < 32, "3.{minor}");
        }
        for number in 1..=COUNT {
            let (place, reads) = found(&mut catcher, &layout, number, &process);
            assert_eq!(place, Some(state(number)), "3.{minor}");
            assert!(reads <= 100, "3.{minor}: thread {number} took {reads} reads");
            let (place, reads) = found(&mut catcher, &layout, number, &process);
            assert_eq!((place, reads <= 3), (Some(state(number)), true), "3.{minor}: {reads}");
        }
    }
}

#[test]
fn a_state_that_was_taken_out_is_not_that_of_a_thread_any_more() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        for (number, before_it_goes) in [(9, None), (5, None), (5, Some(6)), (1, None)] {
            let mut process = crowd(&layout, 9);
            assert_eq!(found(&mut catcher, &layout, number, &process).0, Some(state(number)));
            // What it says stands there still.
            before_it_goes.into_iter().for_each(|index| end(&mut process, &layout, index));
            assert_eq!(found(&mut catcher, &layout, number, &process).0, Some(state(number)));
            end(&mut process, &layout, number);
            assert_eq!(found(&mut catcher, &layout, number, &process).0, None, "3.{minor}");
            // Its neighbour ends behind it.
            let neighbour = if number == 9 { 8 } else { number + 2 };
            end(&mut process, &layout, neighbour);
            assert_eq!(found(&mut catcher, &layout, number, &process).0, None, "3.{minor}");
            begin(&mut process, &layout, number, 0);
            assert_eq!(found(&mut catcher, &layout, number, &process).0, Some(state(0)));
        }
    }
}

#[test]
fn a_walk_does_not_go_on_from_a_state_that_was_taken_out() {
    let (layout, mut catcher) = (layout(11), Catcher::default());
    let mut process = crowd(&layout, COUNT);
    assert_eq!(found(&mut catcher, &layout, 1, &process).0, None);
    let stopped = catcher.met.stopped_at(7);
    // It leads to what is no list.
    end(&mut process, &layout, (stopped - STATES) / 1024);
    process.put(stopped + u64::from(layout.next_thread), 0);
    let again = (0..20).find_map(|_| found(&mut catcher, &layout, 1, &process).0);
    assert_eq!(again, Some(state(1)));
}

#[test]
fn a_list_in_a_circle_ends() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let mut process = crowd(&layout, 500);
        process.put(state(1) + u64::from(layout.next_thread), state(500));
        for look in 0..100 {
            let (place, reads) = found(&mut catcher, &layout, 900, &process);
            assert_eq!(place, None);
            // Who was looked for so often in vain runs native code.
            let most = if look > 32 && look % 32 != 0 { 80 } else { 300 };
            assert!(reads < most, "3.{minor}, {look}: {reads}");
        }
    }
}

/// The memory of a thread that has another number in its own namespace.
struct Inside<'p>(&'p Process, u32);

impl Memory for Inside<'_> {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        self.0.read(parts, into)
    }

    fn own_number(&self) -> Option<u32> {
        Some(self.1)
    }
}

#[test]
fn threads_are_known_by_the_numbers_of_their_own_namespace() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let process = crowd(&layout, 40);
        for number in 1..=40 {
            // As if flame's number of each were that of another.
            let sampled = Thread { tid: 41 - number, ..thread(number.into()) };
            for _ in 0..6 {
                process.reads.set(0);
                let inside = Inside(&process, number);
                let state = find(&mut catcher, (&layout, RUNTIME), sampled, &inside);
                let state = state.map(|found| found.address);
                assert_eq!(state, Some(self::state(number.into())), "3.{minor}");
            }
            assert!(process.reads.get() <= 3, "3.{minor}: {}", process.reads.get());
        }
    }
}
