use super::*;
use crate::Architecture;
use crate::row::{SHORT_ROW_SAVES, Table};
use crate::stack_copy::StackLimit;
use crate::testing::{SP, X86_64, image};

const RCX: u8 = 2;
const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
const RIP: u8 = 16;
const X30: u8 = 30;
const SP_OF_AARCH64: u8 = 31;

/// Words of a stack from [`SP`] on, each twice its place.
fn bytes(words: u64) -> Vec<u8> {
    (0..words).flat_map(|place| (2 * place).to_le_bytes()).collect()
}

fn copy(bytes: &[u8]) -> StackCopy<'_> {
    StackCopy::new(ProcessAddress(SP), bytes, &[], StackLimit::StackEnded)
}

fn frame<'f>(architecture: Architecture, stack: &'f StackCopy<'f>) -> Frame<'f> {
    Frame { facts: architecture.facts(), stack, is_exact: false }
}

fn registers(known: &[(u8, u64)]) -> Registers {
    let mut registers = Registers::default();
    known.iter().for_each(|(register, value)| registers.set(*register, *value));
    registers
}

/// A row with the CFA at that distance from the stack pointer, and what was saved how many words from
/// there.
fn short(cfa_offset: i32, saves: &[(u8, i16)]) -> ShortRow {
    let mut row = ShortRow {
        cfa_register: RSP,
        saves: saves.len() as u8,
        cfa_offset,
        saved: [0; SHORT_ROW_SAVES],
        word_offsets: [0; SHORT_ROW_SAVES],
    };
    for (place, (register, words)) in saves.iter().enumerate() {
        (row.saved[place], row.word_offsets[place]) = (*register, *words);
    }
    row
}

#[test]
fn what_a_frame_saved_is_known_in_its_caller_beside_what_every_callee_keeps() {
    let bytes = bytes(8);
    let stack = copy(&bytes);
    let mut found = registers(&[(RSP, SP), (RIP, 1), (RCX, 1), (RBX, 5), (RBP, 7)]);
    let row = short(32, &[(RCX, -2), (RIP, -1)]);
    let step = frame(Architecture::X86_64, &stack).apply_short(&row, &mut found);
    assert_eq!(step, Step::Caller(FrameAddress::Return(ProcessAddress(6))));
    let expect = [(RCX, Some(4)), (RBX, Some(5)), (RBP, Some(7)), (RSP, Some(SP + 32)), (0, None)];
    for (register, value) in expect {
        assert_eq!(found.get(register), value, "{register}");
    }
}

#[test]
fn what_was_saved_where_nothing_can_be_read_is_not_known_in_the_caller() {
    let bytes = bytes(8);
    let stack = copy(&bytes);
    let mut found = registers(&[(RSP, SP), (RIP, 1), (RBX, 5), (RBP, 7)]);
    // 20 words above the CFA, where the copy has ended.
    let row = short(32, &[(RBX, 20), (RIP, -1)]);
    let step = frame(Architecture::X86_64, &stack).apply_short(&row, &mut found);
    assert_eq!(step, Step::Caller(FrameAddress::Return(ProcessAddress(6))));
    assert_eq!((found.get(RBX), found.get(RBP)), (None, Some(7)));
}

#[test]
fn only_what_lies_right_below_the_stack_pointer_was_popped() {
    let bytes = bytes(8);
    let stack = copy(&bytes);
    let frame = frame(Architecture::X86_64, &stack);
    let known = registers(&[(RSP, SP), (RBX, 5)]);
    let saved = |address| frame.saved(RBX, address, SP, &known);
    // On the stack, all general registers below it, and a word more.
    assert_eq!((saved(SP), saved(SP + 8)), (Ok(0), Ok(2)));
    assert_eq!((saved(SP - 8), saved(SP - 32 * 8)), (Ok(5), Ok(5)));
    assert_eq!(saved(SP - 33 * 8), Err(Unreadable::OutsideStack));
}

#[test]
fn a_process_starts_with_as_many_arguments_as_the_kernel_takes() {
    const MOST: u64 = 786_432;
    for (arguments, expect) in [(0, true), (1, true), (MOST, true), (MOST + 1, false)] {
        let first = arguments.to_le_bytes();
        let end = ProcessAddress(SP + (arguments + 1) * 8);
        let stack = copy(&first).with_interrupted(end, &[0; 8]);
        let registers = registers(&[(RSP, SP)]);
        let found = frame(Architecture::X86_64, &stack).process_start(&registers);
        assert_eq!(found, expect.then_some(StackEnd::Root), "{arguments}");
    }
}

fn long(return_address: u8, cfa: (u8, i64), signal_frame: bool) -> LongRow {
    let rules = vec![(return_address, Rule::Offset(-8))];
    let cfa = Cfa::Register(cfa.0, cfa.1);
    LongRow { cfa, rules, return_address, signal_frame, table: Table::EhFrame }
}

#[test]
fn a_signal_gives_all_registers_back_and_a_call_those_that_callees_keep() {
    let bytes = bytes(8);
    let stack = copy(&bytes);
    let module = Module::new(Architecture::X86_64, image(X86_64, &[]));
    for is_signal in [false, true] {
        let mut found = registers(&[(RSP, SP), (RIP, 1), (RCX, 4), (RBX, 5)]);
        let row = long(RIP, (RSP, 32), is_signal);
        frame(Architecture::X86_64, &stack).apply_long(&row, &module, &mut found);
        assert_eq!(found.get(RCX), is_signal.then_some(4));
        assert_eq!((found.get(RBX), found.get(RIP)), (Some(5), Some(6)));
    }
}

/// The link register of a caller is what it was before the call only where a signal came.
#[test]
fn a_callers_link_register_is_not_the_one_that_led_to_it() {
    let bytes = bytes(8);
    let stack = copy(&bytes);
    let module = Module::new(Architecture::Aarch64, image(crate::testing::AARCH64, &[]));
    for is_signal in [false, true] {
        let mut found = registers(&[(SP_OF_AARCH64, SP), (X30, 1)]);
        let row = long(X30, (SP_OF_AARCH64, 32), is_signal);
        frame(Architecture::Aarch64, &stack).apply_long(&row, &module, &mut found);
        assert_eq!(found.get(X30), is_signal.then_some(6));
    }
}
