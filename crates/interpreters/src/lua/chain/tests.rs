use super::*;
use crate::catch::SampledRegisters;
use crate::caught::Caught;
use crate::function::Function;
use crate::known::Layout;
use crate::lua::layout::{LuaBuild, TEXT_LEN};
use crate::testing::{Noise, Process};

const STACK: u64 = 0x7000_0000;
const STATE_AT: u64 = 0x10_0000;
const GLOBALS: u64 = 0x10_0100;
const VALUES_AT: u64 = 0x20_0000;
const CALLS: u64 = 0x30_0000;
const HEAP: u64 = 0x40_0000;
const THREAD: Thread = Thread {
    pid: 7,
    tid: 8,
    stack_pointer: STACK,
    registers: SampledRegisters { instruction: 0, next: 0, base: 0, frame: 0 },
};

/// What a call of the program is of.
#[derive(Clone, Copy)]
enum Is {
    /// A function in Lua, by the line of its definition, whose instruction that runs is that.
    Lua(u64, u32),
    C,
}

/// A process with one state, and the functions `f1`, `f2` and so on, each by its line.
struct Lua {
    layout: LuaLayout,
    process: Process,
    next: u64,
}

impl Lua {
    fn new(minor: u32, release: u32) -> Lua {
        let layout = LuaLayout::of(&LuaBuild { minor, release }).unwrap();
        let mut process = Process::default();
        for at in [STACK, STATE_AT, VALUES_AT, CALLS, HEAP] {
            process.piece(at, 0x8000);
        }
        process.put(STACK + 0x100, STATE_AT);
        process.put_byte(STATE_AT + 8, 8);
        let globals = if minor == 5 { STATE_AT - 1416 } else { GLOBALS };
        process.put(STATE_AT + u64::from(layout.global), globals);
        process.put(STATE_AT + u64::from(layout.stack), VALUES_AT);
        process.put(STATE_AT + 16, VALUES_AT + 0x100);
        Lua { layout, process, next: HEAP }
    }

    fn room(&mut self, len: u64) -> u64 {
        self.next += len;
        self.next - len
    }

    fn put_half(&mut self, at: u64, value: u32) {
        value
            .to_le_bytes()
            .iter()
            .zip(at..)
            .for_each(|(byte, at)| self.process.put_byte(at, *byte));
    }

    fn string(&mut self, text: &str) -> u64 {
        let at = self.room(128);
        let start = at + u64::from(self.layout.text);
        text.bytes().zip(start..).for_each(|(byte, at)| self.process.put_byte(at, byte));
        at
    }

    /// A string that 5.5 keeps apart from its text, as it does all long ones.
    fn long_string(&mut self, text: &str) -> u64 {
        let at = self.string(text);
        if self.layout.has_text_elsewhere {
            let elsewhere = self.string(text) + u64::from(self.layout.text);
            self.process.put(at + u64::from(self.layout.text), elsewhere);
            self.process.put_byte(at + u64::from(TEXT_LEN), 0xff);
        }
        at
    }

    /// A function in Lua of three instructions: one that loads the global `f` and the next number, that one,
    /// and one that adds. What it is kept in, and the instruction of a number.
    fn function(&mut self, line: u64, runs: u32) -> (u64, u64) {
        let of = self.layout.of;
        let (closure, prototype) = (self.room(64), self.room(128));
        let (code, constants) = (self.room(64), self.room(64));
        let name = self.string(&format!("f{}", line + 1));
        let source = self.long_string("@dir/a.lua");
        let is_new = self.layout.lines == super::super::layout::LuaLines::Steps;
        let (load, add) = match (is_new, self.layout.array.is_some()) {
            (true, _) => (11 | 3 << 7, 46 | 6 << 24),
            (false, true) => (5 | 3 << 6, 12),
            (false, false) => (6 | 3 << 6 | 256 << 14, 13),
        };
        let call = if is_new {
            68 | 3 << 7
        } else {
            (3 << 6) | (u32::from(self.layout.array.is_some()) * 28)
        };
        let call = if call & 0x3f == 0 {
            call | if self.layout.flags == 34 { 29 } else { 36 }
        } else {
            call
        };
        for (index, instruction) in [load, call, add].into_iter().enumerate() {
            self.put_half(code + 4 * index as u64, instruction);
        }
        self.process.put(constants, name);
        self.process.put(constants + 8, 0x44);
        self.process.put(closure + u64::from(self.layout.prototype), prototype);
        for (at, value) in [(of.source, source), (of.code, code), (of.constants, constants)] {
            self.process.put(prototype + u64::from(at), value);
        }
        self.put_half(prototype + u64::from(of.first_line), line as u32);
        self.put_half(prototype + u64::from(of.code_len), 3);
        (closure, code + 4 * u64::from(runs) + 4)
    }

    /// The calls of the state, outermost first, with their flags; of 5.1 with the number of tail calls.
    fn calls(&mut self, calls: &[(Is, u8)]) {
        let layout = self.layout.clone();
        let len = layout.call_len as u64;
        let is_array = layout.array.is_some();
        let first = if is_array { CALLS } else { STATE_AT + 96 };
        let mut last = first;
        for (index, (is, flags)) in (1..).zip(calls) {
            let at = CALLS + len * index;
            let value = VALUES_AT + 16 * index;
            let (function, instruction) = match is {
                Is::Lua(line, runs) => self.function(*line, *runs),
                Is::C => (if is_array { self.room(64) } else { 0x66_0000 }, 0),
            };
            let kind = match (is, is_array) {
                (_, true) => 6,
                (Is::Lua(..), _) => 70,
                (Is::C, _) => 22,
            };
            if matches!(is, Is::C) && is_array {
                self.process.put_byte(function + 10, 1);
                self.process.put(function + 32, 0x66_0000);
            }
            self.process.put(value, function);
            self.process.put_byte(value + 8, kind);
            self.process.put(at + if is_array { 8 } else { 0 }, value);
            self.process.put(at + u64::from(layout.instruction), instruction);
            match layout.array {
                Some(array) => {
                    self.put_half(at + u64::from(array.tails), (*flags).into());
                    self.process.put(STATE_AT + u64::from(array.instruction), instruction);
                }
                None => {
                    self.process.put(at + 16, last);
                    self.process.put(at + 24, at + len);
                    self.process.put_byte(at + u64::from(layout.flags), *flags);
                }
            }
            last = at;
        }
        if let Some(array) = layout.array {
            self.process.put(STATE_AT + u64::from(array.first), first);
        }
        self.process.put(STATE_AT + u64::from(layout.call), last);
    }

    /// What is caught: names and instructions, `-` for the end of what a loop runs.
    fn caught(&self) -> String {
        let layout = Layout::Lua(self.layout.clone());
        let mut out = vec![0; Catcher::MOST];
        let len = Catcher::default().catch(&layout, 0, THREAD, &self.process, &mut out);
        let caught = Caught::parse(&out[..len]).unwrap();
        assert_eq!(caught.outcome(), Outcome::Read);
        let mut names = FxHashMap::default();
        for defined in caught.defined() {
            let function = Function::of(&defined, &layout);
            let file = function.file.as_deref();
            assert!(matches!(file, None | Some("[C]" | "dir/a.lua")), "{function:?}");
            names.insert(defined.function, function.name.unwrap().to_string());
        }
        let entries = caught.entries();
        let shown = entries.iter().map(|entry| match entry {
            entry if entry.ends_states() => String::new(),
            Entry { code: 0, function: FIRST, address: STATE_AT, .. } => "state".to_owned(),
            Entry { code: 0, .. } => "-".to_owned(),
            Entry { function, position, .. } => format!("{}:{position}", names[function]),
        });
        shown.collect::<Vec<String>>().join(" ")
    }
}

#[track_caller]
fn check((minor, release): (u32, u32), calls: &[(Is, u8)], expect: &str) {
    let mut lua = Lua::new(minor, release);
    lua.calls(calls);
    assert_eq!(lua.caught().trim_end(), expect, "5.{minor}.{release}");
}

#[test]
fn calls_that_begin_a_loop_say_so() {
    let calls = |begins: u8, other: u8| {
        [(Is::Lua(0, 1), begins), (Is::Lua(1, 1), other), (Is::C, 2), (Is::Lua(3, 2), begins)]
    };
    // Who is called by C has no name, nor has who is called by no instruction that is known.
    let expect = "state function:2 - f2:0 f1:1 <main>:1 -";
    check((5, 1), &calls(1, 0), expect);
    check((4, 4), &calls(4, 0), expect);
    check((3, 6), &calls(8, 0), expect);
    check((2, 4), &calls(0, 4), expect);
    // Each has one.
    check((4, 0), &calls(0, 0), "state function:2 - f2:0 f1:1 - <main>:1 -");
}

#[test]
fn loops_of_5_1_are_begun_by_who_is_no_call() {
    let calls = [(Is::Lua(0, 1), 0), (Is::Lua(1, 2), 0), (Is::Lua(2, 1), 0)];
    // The second one adds: what it calls is a metamethod.
    check((1, 5), &calls, "state __add:1 - f1:2 <main>:1 -");
    let calls = [(Is::Lua(0, 1), 0), (Is::C, 0), (Is::Lua(2, 1), 0)];
    check((1, 5), &calls, "state function:1 - f1:0 <main>:1 -");
}

#[test]
fn who_has_given_way_is_said_to_have() {
    let calls = [(Is::Lua(0, 1), 4), (Is::Lua(1, 1), 32)];
    check((4, 4), &calls, "state function:1 (...tail calls...):0 <main>:1 -");
    let calls = [(Is::Lua(0, 1), 1), (Is::Lua(1, 1), 64)];
    check((5, 0), &calls, "state function:1 (...tail calls...):0 <main>:1 -");
    let calls = [(Is::Lua(0, 1), 0), (Is::Lua(1, 1), 3)];
    check((1, 5), &calls, "state function:1 (...tail calls...):0 <main>:1 -");
    // Its place is taken, and it is at no instruction of its own.
    let calls = [(Is::Lua(0, 1), 8), (Is::Lua(2, 77), 0), (Is::Lua(2, 1), 0)];
    check((3, 6), &calls, "state function:1 (...tail calls...):0 <main>:1 -");
}

#[test]
fn what_is_no_function_is_over_or_no_call() {
    let mut lua = Lua::new(4, 4);
    lua.calls(&[(Is::Lua(0, 1), 4), (Is::Lua(1, 1), 0), (Is::Lua(2, 1), 0)]);
    // A result takes the place of the innermost function.
    lua.process.put_byte(VALUES_AT + 16 * 3 + 8, 3);
    assert_eq!(lua.caught().trim_end(), "state f1:1 <main>:1 -");
    lua.process.put_byte(VALUES_AT + 16 * 2 + 8, 3);
    lua.process.put_byte(VALUES_AT + 16 * 3 + 8, 70);
    let mut out = vec![0; Catcher::MOST];
    let layout = Layout::Lua(lua.layout.clone());
    let len = Catcher::default().catch(&layout, 0, THREAD, &lua.process, &mut out);
    assert_eq!(Caught::parse(&out[..len]).unwrap().outcome(), Outcome::NoThread);
}

#[test]
fn whatever_stands_in_memory_catching_ends() {
    let (mut catcher, mut out) = (Catcher::default(), vec![0; Catcher::MOST]);
    for seed in 0..600 {
        let build = LuaBuild { minor: 1 + seed as u32 % 5, release: seed as u32 % 7 };
        let layout = Layout::lua(&build).unwrap();
        let noise = Noise::of(seed, [8 | 70 << 16, STATE_AT]);
        let len = catcher.catch(&layout, 0, THREAD, &noise, &mut out);
        let caught = Caught::parse(&out[..len]).unwrap();
        for defined in caught.defined() {
            let function = Function::of(&defined, &layout);
            caught.entries().iter().for_each(|entry| _ = function.line(entry.position));
        }
    }
}
