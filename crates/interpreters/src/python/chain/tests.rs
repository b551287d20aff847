use std::collections::BTreeMap;

use super::*;
use crate::catch::SampledRegisters;
use crate::caught::Caught;
use crate::function::Function;
use crate::known::Layout;
use crate::python::layout::PythonBuild;
use crate::testing::{Noise, Process};

const RUNTIME: u64 = 0x10_0000;
const INTERPRETER: u64 = 0x20_0000;
const STATE: u64 = 0x30_0000;
const STACK: u64 = 0x7000_0000;
const HEAP: u64 = 0x40_0000;
const CODE_TYPE: u64 = 0x800;

/// The frame below all others, which lies in the state of its thread.
const BASE: u64 = STATE + 888;
const THREAD: Thread = Thread {
    pid: 7,
    tid: 8,
    stack_pointer: STACK,
    registers: SampledRegisters { instruction: 0, next: 0, base: 0, frame: 0 },
};

impl Process {
    /// One with a thread, that of [`THREAD`], and a stack.
    fn new(layout: &PythonLayout) -> Process {
        let mut process = Process::default();
        process.piece(RUNTIME, 4096);
        process.piece(INTERPRETER, 16_384);
        process.piece(STATE, 2048);
        process.piece(HEAP, 1 << 17);
        process.piece(STACK, 8192);
        process.put(RUNTIME + u64::from(layout.interpreters), INTERPRETER);
        process.put(INTERPRETER + u64::from(layout.threads), STATE);
        process.put(STATE + u64::from(layout.interpreter), INTERPRETER);
        match layout.thread_id {
            crate::python::layout::ThreadId::Native(at) => process.put(STATE + u64::from(at), 8),
            crate::python::layout::ThreadId::Pthread(at) => {
                process.put(STATE + u64::from(at), HEAP + 0x1_0000);
                process.put(HEAP + 0x1_0000 + 0x2d0, 8);
            }
        }
        process
    }

    /// A function of that name; each takes 1 KiB.
    fn function(&mut self, layout: &PythonLayout, at: u64, name: &str) {
        self.put(at + 8, RUNTIME + CODE_TYPE);
        self.put(at + u64::from(layout.first_line), 10);
        self.text(layout, at + 512, name);
        self.text(layout, at + 640, "/x/a.py");
        self.put(at + 768 + 16, 0);
        self.put(at + u64::from(layout.name), at + 512);
        self.put(at + u64::from(layout.file), at + 640);
        self.put(at + u64::from(layout.line_table), at + 768);
    }

    fn text(&mut self, layout: &PythonLayout, at: u64, text: &str) {
        self.put(at + 16, text.len() as u64);
        self.put(at + 32, 1 << 2 | 1 << 5 | 1 << 6);
        for (index, byte) in text.bytes().enumerate() {
            self.put_byte(at + u64::from(layout.ascii) + index as u64, byte);
        }
    }

    fn frame(&mut self, layout: &PythonLayout, at: u64, (previous, code, flag): (u64, u64, u8)) {
        self.put(at + u64::from(layout.previous), previous);
        // From 3.14 on it says whether the reference is counted.
        let tag = u64::from(layout.minor >= 14 && code % 2048 == 0);
        self.put(at + u64::from(layout.code), code | tag);
        match layout.frames {
            Frames::Objects => {}
            Frames::Entries { is_entry: flag_at, .. } | Frames::Shims { owner: flag_at, .. } => {
                self.put_byte(at + u64::from(flag_at), flag);
            }
        }
        let start = code + u64::from(layout.instructions);
        let position = if layout.position_is == Position::Address { start + 6 } else { 6 };
        // Only four bytes of it are the position before 3.11.
        self.put(at + u64::from(layout.position), position);
    }
}

fn layout(minor: u32) -> PythonLayout {
    PythonLayout::of(&PythonBuild { minor, code_type: CODE_TYPE }).unwrap()
}

/// The functions of a chain as they are named, `|` at each boundary, and how the catching ended.
fn caught(catcher: &mut Catcher, layout: &PythonLayout, process: &Process) -> (Outcome, String) {
    let mut out = vec![0; Catcher::MOST];
    let layout = Layout::Python(layout.clone());
    let len = catcher.catch(&layout, RUNTIME, THREAD, process, &mut out);
    let caught = Caught::parse(&out[..len]).unwrap();
    let functions: BTreeMap<u64, Function> = caught
        .defined()
        .map(|defined| (defined.function, Function::of(&defined, &layout)))
        .collect();
    let name = |entry: &Entry| match functions.get(&entry.function) {
        _ if entry.is_boundary() => "|".to_owned(),
        Some(function) => function.name.as_deref().unwrap_or("?").to_owned(),
        None => "!".to_owned(),
    };
    (caught.outcome(), caught.entries().iter().map(name).collect::<Vec<_>>().join(" "))
}

/// main calls f, f calls through native code key, key calls g.
fn process(layout: &PythonLayout) -> Process {
    let mut process = Process::new(layout);
    let code = |index: u64| HEAP + 0x2000 + index * 1024;
    for (index, name) in ["main", "f", "key", "g"].into_iter().enumerate() {
        process.function(layout, code(index as u64), name);
    }
    let frame = |index: u64| HEAP + 0x100 + index * 128;
    let (outer, inner) = (STACK + 1024, STACK + 256);
    match layout.frames {
        Frames::Objects => {
            for index in 0..4 {
                let previous = if index == 0 { 0 } else { frame(index - 1) };
                process.frame(layout, frame(index), (previous, code(index), 0));
            }
            process.put(STATE + u64::from(layout.frame), frame(3));
        }
        Frames::Entries { current, outside, .. } => {
            process.frame(layout, frame(0), (0, code(0), 1));
            process.frame(layout, frame(1), (frame(0), code(1), 0));
            process.frame(layout, frame(2), (frame(1), code(2), 1));
            process.frame(layout, frame(3), (frame(2), code(3), 0));
            let root = STATE + 400;
            for (place, first, out) in [(inner, frame(3), outer), (outer, frame(1), root)] {
                process.put(place + u64::from(current), first);
                process.put(place + u64::from(outside), out);
            }
            process.put(STATE + u64::from(layout.frame), inner);
        }
        Frames::Shims { through, .. } => {
            let below = layout.base_frame.map_or(0, |at| {
                process.frame(layout, BASE, (0, 0, 3));
                process.put(STATE + u64::from(at), BASE);
                BASE
            });
            process.frame(layout, outer, (below, 0, 3));
            process.frame(layout, frame(0), (outer, code(0), 0));
            process.frame(layout, frame(1), (frame(0), code(1), 0));
            process.frame(layout, inner, (frame(1), 0, 3));
            process.frame(layout, frame(2), (inner, code(2), 1));
            process.frame(layout, frame(3), (frame(2), code(3), 0));
            let through = through.map(|at| {
                process.put(STACK + 64 + u64::from(at), frame(3));
                STACK + 64
            });
            process.put(STATE + u64::from(layout.frame), through.unwrap_or(frame(3)));
        }
    }
    process
}

#[test]
fn chains_of_all_versions_are_read() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let expect = match layout.frames {
            Frames::Objects => "g | key | f | main |",
            _ => "g key | f main |",
        };
        let process = process(&layout);
        let found = caught(&mut catcher, &layout, &process);
        assert_eq!(found, (Outcome::Read, expect.to_owned()), "3.{minor}");
        // What was said of functions is not said again, until it is asked for.
        let again = caught(&mut catcher, &layout, &process).1;
        assert!(!again.contains("main"), "3.{minor}: {again}");
        catcher.define_again(1);
        assert_eq!(caught(&mut catcher, &layout, &process), found, "3.{minor}");
    }
}

/// Since 3.15 its thread has a frame all the same.
#[test]
fn a_thread_that_runs_nothing_has_an_empty_chain() {
    for minor in 12..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let mut process = process(&layout);
        let Frames::Shims { through, .. } = layout.frames else { panic!() };
        let at = if through.is_some() { STACK + 64 } else { STATE + u64::from(layout.frame) };
        process.put(at, if layout.base_frame.is_some() { BASE } else { 0 });
        assert_eq!(caught(&mut catcher, &layout, &process), (Outcome::Read, String::new()));
    }
}

/// A thread has a state in each, and one has entered the other: whichever is found first.
#[test]
fn frames_of_all_interpreters_of_a_thread_are_read() {
    let (inner_state, inner) = (STATE + 0x1_0000, INTERPRETER + 0x1_0000);
    for (minor, is_newer) in (12..=15).flat_map(|minor| [(minor, false), (minor, true)]) {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let Frames::Shims { through, .. } = layout.frames else { panic!() };
        let crate::python::layout::ThreadId::Native(id) = layout.thread_id else { panic!() };
        let mut process = process(&layout);
        process.piece(inner_state, 2048);
        process.piece(inner, 16_384);
        let (code, frame) = (HEAP + 0x2000 + 4 * 1024, HEAP + 0x100 + 4 * 128);
        process.function(&layout, code, "inside");
        process.frame(&layout, STACK + 128, (0, 0, 3));
        process.frame(&layout, frame, (STACK + 128, code, 0));
        process.put(inner_state + u64::from(layout.interpreter), inner);
        process.put(inner_state + u64::from(id), 8);
        process.put(inner + u64::from(layout.threads), inner_state);
        let first = through.map(|at| {
            process.put(STACK + 32 + u64::from(at), frame);
            STACK + 32
        });
        process.put(inner_state + u64::from(layout.frame), first.unwrap_or(frame));
        // The newest interpreter is the first of the list.
        let (head, next) = if is_newer { (inner, INTERPRETER) } else { (INTERPRETER, inner) };
        process.put(RUNTIME + u64::from(layout.interpreters), head);
        process.put(head + u64::from(layout.next_interpreter), next);
        let expect = (Outcome::Read, "inside | g key | f main |".to_owned());
        assert_eq!(caught(&mut catcher, &layout, &process), expect, "3.{minor} {is_newer}");
    }
}

#[test]
fn a_chain_that_was_read_before_takes_few_calls() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let process = process(&layout);
        caught(&mut catcher, &layout, &process);
        process.reads.set(0);
        caught(&mut catcher, &layout, &process);
        assert!(process.reads.get() <= 10, "3.{minor}: {}", process.reads.get());
    }
}

#[test]
fn deep_chains_of_objects_are_whole_after_some_samples() {
    let (layout, mut catcher) = (layout(8), Catcher::default());
    let (mut process, frames) = (process(&layout), 0x50_0000);
    process.piece(frames, 1000 * 128);
    for index in 0..1000 {
        let caller = if index == 0 { 0 } else { frames + (index - 1) * 128 };
        process.frame(&layout, frames + index * 128, (caller, HEAP + 0x2000, 0));
    }
    process.put(STATE + u64::from(layout.frame), frames + 999 * 128);
    let outcomes: Vec<Outcome> =
        (0..12).map(|_| caught(&mut catcher, &layout, &process).0).collect();
    assert_eq!((outcomes[0], outcomes[11]), (Outcome::TooDeep, Outcome::Read), "{outcomes:?}");
}

#[test]
fn frames_in_a_circle_end() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let mut process = process(&layout);
        let (first, second) = (HEAP + 0x100 + 2 * 128, HEAP + 0x100 + 3 * 128);
        process.frame(&layout, first, (second, HEAP + 0x2000, 0));
        let (outcome, _) = caught(&mut catcher, &layout, &process);
        assert_eq!(outcome, Outcome::TooDeep, "3.{minor}");
        assert!(process.reads.get() < 1000, "3.{minor}: {}", process.reads.get());
    }
}

#[test]
fn what_is_no_code_has_no_function() {
    let (layout, mut catcher) = (layout(11), Catcher::default());
    let mut process = process(&layout);
    // Not of the type; not there.
    process.put(HEAP + 0x2000 + 2 * 1024 + 8, 1);
    process.put(HEAP + 0x100 + 128 + u64::from(layout.code), 0x66_0000);
    let (outcome, chain) = caught(&mut catcher, &layout, &process);
    assert_eq!((outcome, &*chain), (Outcome::Read, "g ! | ! main |"));
}

/// Where one has died, and all that it led to.
#[test]
fn another_code_of_the_same_places_is_another_function() {
    for minor in 12..=15 {
        let (layout, mut catcher) = (layout(minor), Catcher::default());
        let mut process = process(&layout);
        caught(&mut catcher, &layout, &process);
        process.function(&layout, HEAP + 0x2000 + 3 * 1024, "h");
        let at = HEAP + 0x2000 + 3 * 1024 + u64::from(layout.version.unwrap());
        process.put_byte(at, 9);
        assert_eq!(caught(&mut catcher, &layout, &process).1, "h ! | ! ! |", "3.{minor}");
    }
}

#[test]
fn a_frame_that_is_not_linked_yet_is_left_out() {
    let (layout, mut catcher) = (layout(11), Catcher::default());
    let Frames::Entries { current, .. } = layout.frames else { panic!() };
    for wrong in [0x66_0000, HEAP + 0x100] {
        let mut process = process(&layout);
        process.put(STACK + 256 + u64::from(current), wrong);
        catcher.was_lost();
        let found = caught(&mut catcher, &layout, &process);
        assert_eq!(found, (Outcome::Read, "f main |".to_owned()), "{wrong:#x}");
    }
    // Further out nothing is left out.
    let mut process = process(&layout);
    process.put(STACK + 1024 + u64::from(current), 0x66_0000);
    assert_ne!(caught(&mut catcher, &layout, &process).0, Outcome::Read);
}

#[test]
fn threads_are_told_apart() {
    let (layout, mut catcher) = (layout(11), Catcher::default());
    let mut process = process(&layout);
    process.piece(STATE + 0x1_0000, 2048);
    // Another thread, and the one that was sampled has another number in its namespace.
    process.put(STATE + u64::from(layout.next_thread), STATE + 0x1_0000);
    process.put(STATE + 160, 99);
    assert_eq!(caught(&mut catcher, &layout, &process).1, "g key | f main |");
    // One that begins has the number of another for a moment, and frames of another above it.
    let (mut catcher, other) = (Catcher::default(), STATE + 0x1_0000);
    process.put(STATE + 160, 99);
    process.put(other + u64::from(layout.frame), STACK + 4096);
    let at_first = std::mem::replace(process.pieces.get_mut(&STATE).unwrap(), vec![0; 2048]);
    process.put(STATE + u64::from(layout.next_thread), other);
    assert_ne!(caught(&mut catcher, &layout, &process).1, "g key | f main |");
    process.pieces.insert(STATE, at_first);
    process.put(STATE + 160, 8);
    catcher.was_lost();
    let found = |_| caught(&mut catcher, &layout, &process).1.contains("key");
    assert!((0..10).any(found));
    // Its frames are on another stack.
    process.put(STATE + u64::from(layout.next_thread), 0);
    process.put(STATE + u64::from(layout.frame), 0x6000_0000);
    assert_eq!(caught(&mut catcher, &layout, &process).0, Outcome::NoThread);
    assert_eq!(caught(&mut catcher, &layout, &Process::default()).0, Outcome::NoThread);
}

#[test]
fn memory_of_any_content_ends_and_harms_nothing() {
    for minor in 8..=15 {
        let (layout, mut catcher) = (Layout::Python(layout(minor)), Catcher::default());
        let mut out = vec![0; Catcher::MOST];
        for seed in 0..300 {
            let noise = Noise::of(seed, [u64::from(THREAD.tid), STACK]);
            let len = catcher.catch(&layout, seed * 8, THREAD, &noise, &mut out);
            let caught = Caught::parse(&out[..len]).unwrap();
            for defined in caught.defined() {
                let function = Function::of(&defined, &layout);
                caught.entries().iter().for_each(|entry| _ = function.line(entry.position));
            }
        }
    }
}
