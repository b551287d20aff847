use super::*;
use crate::layout::Unknown;
use crate::leave::Thread;
use crate::tables::Tables;
use crate::testing::{CALL, CODE, ENTRY, ENTRY_RETURN, FRAME, INTERPRETER, METHODS, START, Sample};
use crate::x86_64::{FP, R13, RAX, RBX, SP};

/// Where the stack lies, and the frame pointer of an interpreted frame on it.
const STACK: u64 = 0x7ffc_0000_0000;
const BASE: u64 = STACK + 0x40;

/// A thread with a stack of this many words, each of which says where it is, but for these.
struct Sampled {
    registers: Vec<(u8, u64)>,
    words: Vec<(u64, u64)>,
    copied: u64,
}

impl Thread for Sampled {
    fn register(&self, number: u8) -> Option<u64> {
        Some(self.registers.iter().find(|(register, _)| *register == number)?.1)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let known = self.words.iter().find(|(at, _)| *at == address);
        let is_copied = (STACK..STACK + self.copied).contains(&address);
        is_copied.then(|| known.map_or(address ^ 0xf000_0000_0000_0000, |(_, value)| *value))
    }
}

fn open(sample: &Sample) -> Result<Option<Vm>, Unknown> {
    let tables = Tables::read(sample, &Sample::exports())?.ok_or(Unknown::NoTables)?;
    Ok(Vm::open(Layout::of(&tables, sample)?, sample))
}

/// What a frame is left to, and what it is called.
fn leave(sample: &Sample, (pc, is_exact): (u64, bool), thread: &Sampled) -> (Left, Vec<String>) {
    let mut vm = open(sample).unwrap().unwrap();
    let mut names = Names::default();
    let frame = Frame { pc, is_exact, thread };
    let (left, number) = vm.leave(&frame, 0, sample, &mut names);
    let shown = number.and_then(|number| names.get(number));
    let methods = shown.map_or(&[][..], |shown| &shown.methods);
    (left, methods.iter().map(ToString::to_string).collect())
}

fn thread(registers: &[(u8, u64)], words: &[(u64, u64)]) -> Sampled {
    Sampled { registers: registers.to_vec(), words: words.to_vec(), copied: 0x1000 }
}

const RUN: &str = "Lpkg/Outer;::run";
const APPLY: &str = "Lpkg/Inner$$Lambda$1;::apply";

/// A caller at 0x1234 that has these stack and frame pointers.
fn caller(sp: u64, fp: u64) -> Left {
    Left::Caller { pc: 0x1234, sp, fp: Some(fp) }
}

#[test]
fn compiled_frames_are_left_by_their_size_wherever_a_thread_is_in_them() {
    // The frame's end, as far above the stack pointer; where the return address is, and the saved
    // frame pointer if it has been saved.
    let cases: [(u64, bool, u64, bool); 9] = [
        // Behind a call, and at an instruction of the body.
        (CALL, false, FRAME, true),
        (CODE + 0x11, true, FRAME, true),
        // Before the receiver's class is known, at the entry, before and behind push %rbp.
        (CODE, true, 8, false),
        (CODE + 4, true, 8, false),
        (CODE + 11, true, 8, false),
        (CODE + 12, true, 16, true),
        // At the end: before add, pop and ret.
        (CODE + 0x18, true, FRAME, true),
        (CODE + 0x1c, true, 16, true),
        (CODE + 0x1d, true, 8, false),
    ];
    for version in [17, 21, 25] {
        let sample = Sample::new(version);
        for (pc, is_exact, size, is_saved) in cases {
            let end = STACK + size;
            let mut words = vec![(end - 8, 0x1234)];
            if is_saved {
                words.push((end - 16, 0x77));
            }
            let thread = thread(&[(SP, STACK), (FP, 0x66)], &words);
            // 0x20 bytes of room and two words; the sample's frame has two more.
            let (left, names) = leave(&sample, (pc, is_exact), &thread);
            let fp = if is_saved { 0x77 } else { 0x66 };
            assert_eq!(left, caller(end, fp), "{pc:#x} {is_exact}");
            assert_eq!(names.last().map(String::as_str), Some(RUN));
        }
    }
}

#[test]
fn inlined_methods_are_named_in_both_forms_of_debug_information() {
    for version in [17, 21, 25] {
        let sample = Sample::new(version);
        let thread = thread(&[(SP, STACK), (FP, 0x66)], &[]);
        assert_eq!(leave(&sample, (CALL, false), &thread).1, [APPLY, RUN]);
        // The nearest entry behind.
        assert_eq!(leave(&sample, (CODE + 0x11, true), &thread).1, [APPLY, RUN]);
        assert_eq!(leave(&sample, (CODE + 0x18, true), &thread).1, [RUN]);
    }
    // A frame that will go on in the interpreter keeps its return address elsewhere.
    for version in [17, 25] {
        let sample = Sample::new(version);
        let thread = thread(&[(SP, STACK), (FP, 0x66)], &[(STACK + 8, CALL)]);
        assert_eq!(leave(&sample, (CODE + 0x38, false), &thread).1, [APPLY, RUN]);
    }
}

#[test]
fn interpreted_frames_are_left_by_the_frame_pointer() {
    let sample = Sample::new(17);
    let words =
        [(BASE, 0x77), (BASE + 8, 0x1234), (BASE - 8, BASE + 0x30), (BASE - 24, METHODS[1])];
    let in_frame = thread(&[(SP, STACK), (FP, BASE)], &words);
    for (pc, is_exact) in [(INTERPRETER + 0x20, false), (INTERPRETER + 0x20, true)] {
        let (left, names) = leave(&sample, (pc, is_exact), &in_frame);
        assert_eq!(left, caller(BASE + 0x30, 0x77));
        assert_eq!(names, [APPLY]);
    }
    // What is not a method proves nothing.
    let other = thread(&[(SP, STACK), (FP, BASE)], &[(BASE - 24, START + 0x6000)]);
    let (left, names) = leave(&sample, (INTERPRETER + 0x20, false), &other);
    assert_eq!((left, &names[..]), (Left::NotProven, &["Interpreter".to_owned()][..]));
    // leave; pop %r13; mov %rbx,%rsp; jmp *%r13
    let ends = [(FP, 0x66), (SP, STACK), (RBX, STACK + 0x20), (R13, 0x1234)];
    let ending = thread(&ends, &[(STACK, 0x1234)]);
    for pc in [INTERPRETER + 0x15, INTERPRETER + 0x17, INTERPRETER + 0x1a] {
        assert_eq!(leave(&sample, (pc, true), &ending).0, caller(STACK + 0x20, 0x66), "{pc:#x}");
    }
}

#[test]
fn a_method_that_the_interpreter_enters_is_named_and_left_step_by_step() {
    let sample = Sample::new(17);
    let (code, sender) = (ENTRY + 0x10, STACK + 0x80);
    let registers = [(SP, STACK), (FP, BASE), (RAX, 0x1234), (RBX, METHODS[0]), (R13, sender)];
    let cases = [
        (0, vec![(STACK, 0x1234)], BASE),
        (1, vec![(STACK, 0x1234)], BASE),
        (2, vec![], BASE),
        (8, vec![], BASE),
        (9, vec![(STACK, 0x1234)], BASE),
        (10, vec![(STACK + 8, 0x1234)], BASE),
        (13, vec![(BASE, 0x77), (BASE + 8, 0x1234)], 0x77),
        (15, vec![(BASE, 0x77), (BASE + 8, 0x1234), (BASE - 8, sender)], 0x77),
    ];
    for (offset, words, fp) in cases {
        let (left, names) = leave(&sample, (code + offset, true), &thread(&registers, &words));
        assert_eq!(left, caller(sender, fp), "{offset}");
        assert_eq!(names, [RUN], "{offset}");
    }
}

#[test]
fn the_stub_by_which_the_vm_calls_java_is_left_by_the_frame_pointer() {
    let sample = Sample::new(17);
    let thread = thread(&[(SP, STACK), (FP, BASE)], &[(BASE, 0x77), (BASE + 8, 0x1234)]);
    assert_eq!(leave(&sample, (ENTRY_RETURN, false), &thread).0, caller(BASE + 16, 0x77));
    assert_eq!(leave(&sample, (ENTRY_RETURN + 1, false), &thread).0, Left::NotProven);
}

#[test]
fn what_was_not_copied_is_said() {
    let sample = Sample::new(17);
    let mut thread = thread(&[(SP, STACK), (FP, 0x66)], &[]);
    thread.copied = 0x20;
    assert_eq!(leave(&sample, (CALL, false), &thread).0, Left::Needs(STACK + FRAME - 16));
}

#[test]
fn versions_and_tables_that_are_not_known_are_refused() {
    assert_eq!(open(&Sample::new(16)).unwrap_err(), Unknown::Version(16));
    assert_eq!(open(&Sample::new(22)).unwrap_err(), Unknown::Version(22));
    let sample = Sample::new(17);
    // The last of the tables' fields that is asked for: its name.
    let at =
        sample.bytes.borrow().windows(13).position(|bytes| bytes == b"_description\0").unwrap();
    sample.write(START + at as u64, b"x");
    let lacks = Unknown::Lacks("InterpreterCodelet::_description".to_owned());
    assert_eq!(open(&sample).unwrap_err(), lacks);
    // No code yet.
    let sample = Sample::new(17);
    sample.put(START + 0x1_0018, 0);
    assert!(open(&sample).unwrap().is_none());
}

#[test]
fn code_that_takes_the_place_of_other_code_is_noticed() {
    let sample = Sample::new(17);
    let mut vm = open(&sample).unwrap().unwrap();
    let mut names = Names::default();
    let thread = thread(&[(SP, STACK), (FP, 0x66)], &[]);
    let mut name = |now| {
        let frame = Frame { pc: CALL, is_exact: false, thread: &thread };
        let number = vm.leave(&frame, now, &sample, &mut names).1?;
        names.get(number)?.methods.last().cloned()
    };
    assert_eq!(name(0).as_deref(), Some(RUN));
    // Compiled anew, of the other method, which has the same size.
    let blob = CODE - 0x80;
    sample.put(blob + 40, METHODS[1]);
    sample.put(blob + 0x200, METHODS[1]);
    sample.write(blob + 100, &[8]);
    assert_eq!(name(FRESH - 1).as_deref(), Some(RUN));
    assert_eq!(name(FRESH).as_deref(), Some(APPLY));
    // The process has ended: nothing has taken its place.
    sample.bytes.borrow_mut().clear();
    assert_eq!(name(3 * FRESH).as_deref(), Some(APPLY));
}

#[test]
fn memory_that_ends_anywhere_or_says_anything_is_survived() {
    let whole = Sample::new(17);
    let thread = thread(&[(SP, STACK), (FP, BASE), (RBX, METHODS[0])], &[(BASE - 24, METHODS[0])]);
    let pcs = [CALL, CODE + 9, INTERPRETER + 0x20, ENTRY + 0x14, ENTRY_RETURN];
    let look = |sample: &Sample| {
        let Ok(Some(mut vm)) = open(sample) else { return };
        let mut names = Names::default();
        for pc in pcs {
            for is_exact in [true, false] {
                vm.leave(&Frame { pc, is_exact, thread: &thread }, 0, sample, &mut names);
            }
        }
    };
    let len = whole.bytes.borrow().len();
    for end in (0..len).step_by(97) {
        let sample = whole.clone();
        sample.bytes.borrow_mut().truncate(end);
        look(&sample);
    }
    let mut seed = 1_u64;
    for at in (0..len).step_by(7) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if whole.bytes.borrow()[at] == 0 {
            continue;
        }
        let sample = whole.clone();
        sample.bytes.borrow_mut()[at] = (seed >> 56) as u8;
        look(&sample);
    }
}
