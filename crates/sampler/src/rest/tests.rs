//! Stacks of this process, read on.

use super::*;

/// A stack in this process, of which everything up to `from` was copied.
fn wanted(stack: &[u8], from: usize) -> Wanted {
    let known = from.min(KNOWN);
    let mut last = [0; KNOWN];
    last[..known].copy_from_slice(&stack[from - known..from]);
    let tid = Tid(nix::unistd::gettid().as_raw() as u32);
    let start = ProcessAddress(stack.as_ptr() as u64);
    let from = ProcessAddress(start.0 + from as u64);
    Wanted {
        time: Nanos(7),
        tid,
        start,
        registers: SampledRegisters::default(),
        from,
        most: MOST,
        goroutine: 0,
        last,
        known,
        first: [0; TOP],
        others: [None; 2],
    }
}

#[test]
fn memory_within_a_stack_is_left_out() {
    let stack = stack();
    let at = |offset: usize| stack.as_ptr() as u64 + offset as u64;
    let whole = wanted(&stack, 128);
    let mut scratch = vec![0; SCRATCH];
    let read = whole.around(at(4096)..at(MOST)).read(&mut scratch).unwrap();
    assert_eq!(read.rest, 4096 - 128);
    assert_eq!(read.interrupted, Some((ProcessAddress(at(MOST)), MOST_ELSEWHERE)));
    assert_eq!(scratch[..4096 - 128], stack[128..4096]);
    assert_eq!(scratch[4096 - 128..][..MOST_ELSEWHERE], stack[MOST..][..MOST_ELSEWHERE]);
    // It lies further out than is read, or the stack leads to another one already.
    assert_eq!(whole.around(at(2 * MOST)..at(3 * MOST)).most, MOST);
    let start = ProcessAddress(at(64));
    let signal = Wanted { others: [Some(Other::interrupted(start, start)), None], ..whole };
    assert_eq!(signal.around(at(4096)..at(MOST)).most, MOST);
}

fn stack() -> Vec<u8> {
    (0..2 * MOST).map(|index| (index / 7) as u8).collect()
}

fn scratch() -> Vec<u8> {
    vec![0; SCRATCH]
}

#[test]
fn the_rest_follows_the_copy() {
    let (stack, mut scratch) = (stack(), scratch());
    for from in [0, 5, KNOWN, 16_384] {
        let read = wanted(&stack, from).read(&mut scratch);
        let rest = MOST - from.min(KNOWN);
        assert_eq!(read, Ok(Read { rest, ..Read::default() }), "{from}");
        assert_eq!(scratch[..rest], stack[from..from + rest], "{from}");
    }
}

#[test]
fn a_stack_with_a_known_end_is_read_up_to_there() {
    let (stack, mut scratch) = (stack(), scratch());
    for most in [0, 1, 5000] {
        let wanted = Wanted { most, ..wanted(&stack, 16_384) };
        let read = wanted.read(&mut scratch);
        assert_eq!(read, Ok(Read { rest: most, ..Read::default() }));
        assert_eq!(scratch[..most], stack[16_384..16_384 + most], "{most}");
    }
}

#[test]
fn a_goroutine_is_read_up_to_its_bounds() {
    let (stack, mut scratch) = (stack(), scratch());
    let wanted = wanted(&stack, 1000);
    let (start, from) = (wanted.start.0, wanted.from.0);
    for (bounds, rest) in [
        ([start - 8, from + 300], 300),
        // The copy goes further than the stack.
        ([start, start + 8], 0),
        // Those of another stack.
        ([start + 8, from + 300], MOST - KNOWN),
        ([0, start], MOST - KNOWN),
    ] {
        let goroutine = bounds.as_ptr() as u64;
        let read = Wanted { goroutine, ..wanted }.read(&mut scratch);
        assert_eq!(read, Ok(Read { rest, ..Read::default() }), "{bounds:x?}");
    }
    let nowhere = Wanted { goroutine: 0x1000, ..wanted }.read(&mut scratch);
    assert_eq!(nowhere.map(|read| read.rest), Ok(MOST - KNOWN));
}

#[test]
fn an_interrupted_stack_follows_the_rest() {
    let (stack, other, mut scratch) = (stack(), vec![9; MOST_INTERRUPTED], scratch());
    let start = ProcessAddress(other.as_ptr() as u64);
    let led_by = ProcessAddress(stack.as_ptr() as u64 + 8);
    let others = [Some(Other::interrupted(led_by, start)), None];
    let wanted = Wanted { others, ..wanted(&stack, 1000) };
    let (rest, len) = (MOST - KNOWN, MOST_INTERRUPTED);
    let read = wanted.read(&mut scratch);
    assert_eq!(read, Ok(Read { rest, interrupted: Some((start, len)), ..Read::default() }));
    assert_eq!(scratch[rest..rest + len], other);
}

#[test]
fn the_stack_of_a_caller_is_read_unless_it_is_the_same() {
    let (stack, mut scratch) = (stack(), scratch());
    let from = 1000;
    let at = |offset: usize| stack.as_ptr() as u64 + offset as u64;
    // A goroutine has its stack right behind that of its thread, which ends 300 bytes after the copy.
    for (offset, is_other) in [(from + 200, false), (from + 301, true), (from + 9000, true)] {
        let bounds = [at(0), at(from + 300)];
        let goroutine = bounds.as_ptr() as u64;
        let frame_pointer = ProcessAddress(at(offset));
        let saved_at = Some(ProcessAddress(at(8)));
        let others = [None, Other::of_caller(Found { frame_pointer, saved_at })];
        let wanted = Wanted { goroutine, others, ..wanted(&stack, from) };
        let read = wanted.read(&mut scratch).unwrap();
        let start = ProcessAddress(at(offset) - BELOW_FRAME_POINTER);
        assert_eq!(read.rest, 300);
        assert_eq!(read.interrupted, is_other.then_some((start, MOST_ELSEWHERE)), "{offset}");
    }
}

#[test]
fn what_was_copied_of_other_stacks_leads_nowhere() {
    let (stack, mut scratch) = (stack(), scratch());
    let at = |offset: usize| ProcessAddress(stack.as_ptr() as u64 + offset as u64);
    let bounds = [at(0).0, at(300).0];
    let others = |led_by, register| {
        let caller = Found { frame_pointer: at(MOST), saved_at: register };
        [Some(Other::interrupted(led_by, at(5000))), Other::of_caller(caller)]
    };
    let mut start_of_other = |goroutine: &[u64], others| {
        let goroutine = goroutine.as_ptr() as u64;
        let wanted = Wanted { goroutine, others, ..wanted(&stack, 1000) };
        wanted.read(&mut scratch).unwrap().interrupted.map(|(start, _)| start)
    };
    let caller = Some(ProcessAddress(at(MOST).0 - BELOW_FRAME_POINTER));
    assert_eq!(start_of_other(&bounds, others(at(296), Some(at(8)))), Some(at(5000)));
    // An old signal's frame behind the stack, and one that leads nowhere.
    assert_eq!(start_of_other(&bounds, others(at(304), Some(at(8)))), caller);
    let nowhere = Some(Other::interrupted(at(8), ProcessAddress(0x1000)));
    let [_, of_caller] = others(at(8), Some(at(8)));
    assert_eq!(start_of_other(&bounds, [nowhere, of_caller]), caller);
    // A register leads to the caller's stack where a goroutine runs.
    assert_eq!(start_of_other(&bounds, others(at(304), None)), caller);
    assert_eq!(start_of_other(&[0, 0], [None, others(at(8), None)[1]]), None);
}

#[test]
fn a_copy_that_does_not_stand_any_more_has_no_rest() {
    let mut stack = stack();
    let wanted = wanted(&stack, 1000);
    stack[999] ^= 1;
    assert_eq!(wanted.read(&mut scratch()), Err(NotRead::Changed));
}

#[test]
fn what_cannot_be_read_has_a_reason() {
    let stack = stack();
    let nowhere = Wanted { from: ProcessAddress(0x1000), known: 0, ..wanted(&stack, 1) };
    assert_eq!(nowhere.read(&mut scratch()), Err(NotRead::Unreadable));
    let nobody = Wanted { tid: Tid(0x7fff_ffff), ..wanted(&stack, 1) };
    assert_eq!(nobody.read(&mut scratch()), Err(NotRead::Unreadable));
}
