use super::*;
use crate::catch::Thread;
use crate::lua::layout::{LuaBuild, PROTOTYPE};
use crate::testing::Process;

const CODE: u64 = 0x10_0000;
const CONSTANTS: u64 = 0x20_0000;
const LOCALS: u64 = 0x30_0000;
const UPVALUES: u64 = 0x40_0000;
const CHILDREN: u64 = 0x50_0000;

/// A function with strings for constants and upvalues, which have their numbers for addresses, and
/// one local variable, in register 0 from the second instruction on.
struct Function {
    process: Process,
    layout: LuaLayout,
    prototype: [u8; PROTOTYPE],
}

impl Function {
    fn of(minor: u32, code: &[u32]) -> Function {
        let layout = LuaLayout::of(&LuaBuild { minor, release: 4 }).unwrap();
        let mut process = Process::default();
        for place in [CODE, CONSTANTS, LOCALS, UPVALUES, CHILDREN] {
            process.piece(place, 0x1000);
        }
        for (index, pair) in code.chunks(2).enumerate() {
            let other = pair.get(1).map_or(0, |other| u64::from(*other));
            process.put(CODE + 8 * index as u64, u64::from(pair[0]) | other << 32);
        }
        for index in 0..64 {
            process.put(CONSTANTS + 16 * index, 0xc000 + index);
            process.put(CONSTANTS + 16 * index + 8, 0x44);
            process.put(UPVALUES + layout.of.upvalue * index, 0xb000 + index);
        }
        process.put(LOCALS, 0xa000);
        process.put(LOCALS + 8, 1 | 99 << 32);
        let mut prototype = [0; PROTOTYPE];
        let mut put = |at: u32, bytes: &[u8]| {
            prototype[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        };
        let of = layout.of;
        put(of.code, &CODE.to_le_bytes());
        put(of.code_len, &(code.len() as u32).to_le_bytes());
        put(of.constants, &CONSTANTS.to_le_bytes());
        put(of.locals, &LOCALS.to_le_bytes());
        put(of.locals_len, &1_u32.to_le_bytes());
        put(of.upvalues, &UPVALUES.to_le_bytes());
        put(of.children, &CHILDREN.to_le_bytes());
        Function { process, layout, prototype }
    }

    fn at<T>(&self, position: u64, ask: impl Fn(Caller<'_>, &mut Recall, &Process) -> T) -> T {
        let mut recall = Recall::default();
        recall
            .begin(Thread { pid: 7, tid: 7, stack_pointer: 0, ..Thread::default() }, &self.process);
        let caller = Caller { layout: &self.layout, prototype: &self.prototype, position };
        ask(caller, &mut recall, &self.process)
    }
}

/// Instructions to 5.3 and of 5.4: the operation, and its operands.
fn old(operation: u32, first: u32, second: u32, third: u32) -> u32 {
    operation | first << 6 | third << 14 | second << 23
}

fn new(operation: u32, first: u32, second: u32, third: u32) -> u32 {
    operation | first << 7 | second << 16 | third << 24
}

#[track_caller]
fn check(minor: u32, code: &[u32], expect: Name) {
    let function = Function::of(minor, code);
    let last = code.len() as u64 - 1;
    let name = function.at(last, |caller, recall, memory| caller.name(recall, memory));
    assert_eq!(name, expect, "5.{minor}: {code:x?}");
}

#[test]
fn calls_are_called_by_what_was_loaded_to_be_called() {
    let call = old(28, 3, 1, 1);
    // GETGLOBAL; GETTABLE with a constant, and with a register; SELF; GETUPVAL.
    check(1, &[5 | 3 << 6 | 9 << 14, call], Name::String(0xc009));
    check(1, &[old(6, 3, 0, 256 + 7), call], Name::String(0xc007));
    check(1, &[old(6, 3, 0, 7), call], Name::Unknown);
    check(1, &[old(11, 3, 0, 256 + 5), call], Name::String(0xc005));
    check(1, &[old(4, 3, 2, 0), call], Name::String(0xb002));
    // GETTABUP and MOVE from a register that is a local variable.
    check(2, &[old(6, 3, 0, 256 + 4), old(29, 3, 1, 1)], Name::String(0xc004));
    check(3, &[old(0, 9, 9, 0), old(0, 3, 0, 0), old(36, 3, 1, 1)], Name::String(0xa000));
    // GETFIELD, SELF with and without a constant, GETTABUP.
    let call = new(68, 3, 1, 1);
    check(4, &[new(14, 3, 0, 6), call], Name::String(0xc006));
    check(4, &[new(20, 3, 0, 6) | 1 << 15, call], Name::String(0xc006));
    check(4, &[new(20, 3, 0, 6), call], Name::Unknown);
    check(4, &[new(11, 3, 0, 8), call], Name::String(0xc008));
    // Nothing was loaded; a call in between has overwritten it.
    check(4, &[call], Name::Unknown);
    check(4, &[new(14, 3, 0, 6), new(68, 2, 1, 1), call], Name::Unknown);
}

#[test]
fn what_two_ways_lead_to_has_no_name() {
    // GETFIELD; JMP +1; GETFIELD; CALL
    let (get, other) = (new(14, 3, 0, 6), new(14, 3, 0, 7));
    let jump = |by: u32| 56 | (16_777_215 + by) << 7;
    check(4, &[get, jump(1), other, new(68, 3, 1, 1)], Name::Unknown);
    check(4, &[jump(0), other, new(68, 3, 1, 1)], Name::String(0xc007));
}

#[test]
fn metamethods_are_called_by_their_events() {
    let event = |name: &str| Name::Event(EVENTS.iter().position(|event| *event == name).unwrap());
    let cases = [
        (1, old(12, 0, 0, 0), "__add"),
        (1, old(15, 0, 0, 0), "__div"),
        (1, old(17, 0, 0, 0), "__pow"),
        (1, old(33, 0, 0, 0), "for iterator"),
        (1, old(9, 0, 0, 0), "__newindex"),
        (2, old(17, 0, 0, 0), "__mod"),
        (2, old(25, 0, 0, 0), "__lt"),
        (2, old(7, 0, 0, 0), "__index"),
        (3, old(19, 0, 0, 0), "__idiv"),
        (3, old(24, 0, 0, 0), "__shr"),
        (3, old(26, 0, 0, 0), "__bnot"),
        (4, new(46, 0, 0, 8), "__mul"),
        (4, new(53, 0, 0, 0), "__concat"),
        (4, new(65, 0, 0, 0), "__le"),
        (4, new(76, 0, 0, 0), "for iterator"),
        (4, new(70, 0, 0, 0), "__close"),
    ];
    for (minor, instruction, name) in cases {
        check(minor, &[instruction], event(name));
    }
    check(4, &[new(46, 0, 0, 99)], Name::Unknown);
    check(4, &[new(1, 0, 0, 0)], Name::Unknown);
}

#[track_caller]
fn check_made(minor: u32, code: &[u32], expect: Option<[Name; 2]>) {
    let made =
        Function::of(minor, code).at(0, |caller, recall, memory| caller.made(recall, memory));
    assert_eq!(made, expect, "5.{minor}: {code:x?}");
}

#[test]
fn functions_are_called_by_where_they_are_kept_when_they_are_made() {
    // An instruction that does nothing with it.
    let (none, nothing) = (Name::Unknown, 1);
    let closure = old(36, 3, 0, 0);
    // SETGLOBAL, behind what 5.1 captures; SETTABLE of the local variable; SETUPVAL.
    check_made(1, &[closure, 7 | 3 << 6 | 9 << 14], Some([none, Name::String(0xc009)]));
    check_made(
        1,
        &[closure, old(0, 0, 1, 0), 7 | 3 << 6 | 9 << 14],
        Some([none, Name::String(0xc009)]),
    );
    let local = Name::String(0xa000);
    check_made(1, &[closure, old(9, 0, 256 + 4, 3)], Some([local, Name::String(0xc004)]));
    check_made(1, &[closure, old(8, 3, 2, 0)], Some([none, Name::String(0xb002)]));
    check_made(1, &[closure, old(9, 0, 256 + 4, 5)], None);
    // The local variable itself.
    check_made(1, &[old(36, 0, 0, 0), nothing], Some([none, local]));
    check_made(4, &[new(79, 0, 0, 0), nothing], Some([none, local]));
    // SETTABUP and SETFIELD.
    check_made(3, &[old(44, 3, 0, 0), old(8, 0, 256 + 2, 3)], Some([none, Name::String(0xc002)]));
    check_made(4, &[new(79, 3, 0, 0), new(15, 0, 2, 3)], Some([none, Name::String(0xc002)]));
    check_made(4, &[new(79, 3, 0, 0), new(18, 0, 2, 3)], Some([local, Name::String(0xc002)]));
    check_made(4, &[new(79, 3, 0, 0)], None);
}
