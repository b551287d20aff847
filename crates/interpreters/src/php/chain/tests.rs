use super::*;
use crate::catch::SampledRegisters;
use crate::caught::Caught;
use crate::function::Function as Named;
use crate::known::Layout;
use crate::php::layout::PhpBuild;
use crate::testing::{Noise, Process};

const GLOBALS: u64 = 0x10_0000;
const FRAMES: u64 = 0x20_0000;
const HEAP: u64 = 0x30_0000;

fn thread(frame: u64) -> Thread {
    let registers = SampledRegisters { frame, ..SampledRegisters::default() };
    Thread { pid: 7, tid: 7, stack_pointer: 0x7000_0000, registers }
}

/// Code that loads from the places of 8.2.
fn layout() -> Layout {
    let file = [0x48, 0x8b, 0x82, 0xe8, 1, 0, 0, 0x48, 0x8b, 0x82, 0x98, 0, 0, 0];
    let line = [0x48, 0x8b, 0x42, 0x58, 0, 0, 0];
    let file: &[u8] = if cfg!(target_arch = "x86_64") {
        &file
    } else {
        // ldr x0, [x1, 488]; ldr x0, [x1, 152]
        &[0x20, 0xf4, 0x40, 0xf9, 0x20, 0x4c, 0x40, 0xf9]
    };
    // ldr x0, [x1, 88]
    let line: &[u8] = if cfg!(target_arch = "x86_64") { &line } else { &[0x20, 0x2c, 0x40, 0xf9] };
    Layout::php(&PhpBuild { globals: GLOBALS, address: 0, file, line }).unwrap()
}

/// A process, and where its next frame and its next object come to lie.
struct Php {
    process: Process,
    frame: u64,
    object: u64,
}

impl Php {
    fn new() -> Php {
        let mut process = Process::default();
        [GLOBALS, FRAMES, HEAP].into_iter().for_each(|at| process.piece(at, 0x8000));
        Php { process, frame: FRAMES, object: HEAP }
    }

    fn room(&mut self, len: u64) -> u64 {
        self.object += len;
        self.object - len
    }

    fn text(&mut self, text: &str) -> u64 {
        let at = self.room(128);
        self.process.put(at + 8, 0x1234);
        self.process.put(at + 16, text.len() as u64);
        text.bytes().zip(at + 24..).for_each(|(byte, at)| self.process.put_byte(at, byte));
        at
    }

    /// A function of three instructions in the lines behind that of its definition; one without a name is the
    /// code of a file.
    fn function(&mut self, class: &str, name: &str, line: u64) -> u64 {
        let at = self.room(192);
        let (file, code) = (self.text("/dir/a.php"), self.room(96));
        self.process.put(at, 2);
        if !name.is_empty() {
            let name = self.text(name);
            self.process.put(at + 8, name);
        }
        if !class.is_empty() {
            let (class, name) = (self.room(16), self.text(class));
            self.process.put(class + 8, name);
            self.process.put(at + 16, class);
        }
        self.process.put(at + 80, 3);
        self.process.put(at + 88, code);
        self.process.put(at + 152, file);
        self.process.put(at + 160, line | (line + 3) << 32);
        (0..3).for_each(|index| self.process.put(code + 32 * index + 24, line + 1 + index));
        at
    }

    fn internal(&mut self, name: &str) -> u64 {
        let (at, name) = (self.room(24), if name.is_empty() { 0 } else { self.text(name) });
        self.process.put(at, 1);
        self.process.put(at + 8, name);
        at
    }

    /// A frame inside of another one, at an instruction.
    fn call(&mut self, function: u64, outside: u64, (instruction, begins): (u64, bool)) -> u64 {
        let at = self.frame;
        self.frame += 80;
        let heap = &self.process.pieces[&HEAP];
        let function_bytes = function.checked_sub(HEAP).map(|at| &heap[at as usize..]);
        let code = function_bytes.and_then(|bytes| word(bytes, 88)).unwrap_or(0);
        self.process.put(at, code + 32 * instruction);
        self.process.put(at + 24, function);
        self.process.put(at + 40, if begins { 1 << 17 } else { 0 });
        self.process.put(at + 48, outside);
        at
    }

    /// The frames from there on: `name file:first line @line`, `-` where a loop ends, and how that went.
    fn look(&self, frame: u64, register: u64) -> (Outcome, Vec<String>) {
        let mut out = vec![0; Catcher::MOST];
        let mut process = Process { pieces: self.process.pieces.clone(), ..Process::default() };
        process.put(GLOBALS + 488, frame);
        let layout = layout();
        let thread = thread(register);
        let len = Catcher::default().catch(&layout, GLOBALS, thread, &process, &mut out);
        let caught = Caught::parse(&out[..len]).unwrap();
        let functions: Vec<(u64, Named)> =
            caught.defined().map(|it| (it.function, Named::of(&it, &layout))).collect();
        let say = |entry: &Entry| match (entry.is_boundary(), entry.function) {
            (true, 0) => "-".to_owned(),
            (true, FIBER) => "fiber".to_owned(),
            (true, _) => format!("inside {:x}", entry.frame_inside().unwrap()),
            (false, function) => {
                let named = &functions.iter().find(|(told_by, _)| *told_by == function).unwrap().1;
                let text = |text: &Option<std::sync::Arc<str>>| text.clone().unwrap_or_default();
                let line = named.line(entry.position);
                let run = if entry.address == 0 { "" } else { " run" };
                let (name, file) = (text(&named.name), text(&named.file));
                format!("{name} {file}:{} @{line}{run}", named.first_line)
            }
        };
        (caught.outcome(), caught.entries().iter().map(say).collect())
    }
}

/// The main script has called `f`, which has called `usort`, which calls `A::by`.
fn program() -> (Php, [u64; 4]) {
    let mut php = Php::new();
    let (main, f) = (php.function("", "", 1), php.function("", "f", 10));
    let (sort, by) = (php.internal("usort"), php.function("A", "by", 20));
    let main = php.call(main, 0, (2, true));
    let f = php.call(f, main, (1, false));
    let sort = php.call(sort, f, (0, false));
    let by = php.call(by, sort, (0, true));
    (php, [main, f, sort, by])
}

#[test]
fn frames_have_their_names_and_lines() {
    let (php, [_, f, _, by]) = program();
    let chain = [
        "A::by /dir/a.php:20 @21 run",
        "-",
        "usort [internal]:0 @0",
        "f /dir/a.php:10 @12 run",
        "<main> /dir/a.php:1 @4 run",
        "-",
        "inside 0",
    ];
    let chain: Vec<String> = chain.map(str::to_owned).to_vec();
    assert_eq!(php.look(by, by), (Outcome::Read, chain.clone()));
    // `A::by` has not begun, or has returned.
    let inside = php.look(f, 0).1;
    assert_eq!((&inside[..3], inside[3].as_str()), (&chain[3..6], "inside 0"));
    let mut other = php;
    let leaf = other.function("", "leaf", 30);
    let leaf = other.call(leaf, f, (0, false));
    assert_eq!(other.look(f, leaf).1[3], format!("inside {leaf:x}"));
    // Another one's.
    assert_eq!(other.look(f, by).1[3], "inside 0");
}

#[test]
fn frames_of_no_function_are_passed_over_and_fibers_begin_with_one() {
    let (mut php, [_, f, ..]) = program();
    let nothing = php.call(0, f, (0, false));
    assert_eq!(php.look(nothing, 0).1.len(), 4);
    let (start, inner) = (php.internal(""), php.function("", "inner", 40));
    let start = php.call(start, f, (0, false));
    let inner = php.call(inner, start, (2, true));
    let expect = ["inner /dir/a.php:40 @43 run", "-", "fiber", "f /dir/a.php:10 @12 run"];
    assert_eq!(php.look(inner, 0).1[..4], expect);
}

#[test]
fn generators_that_wait_for_another_one_stand_outside_of_it() {
    let (mut php, [main, ..]) = program();
    // `first` has its values from `second`, and that one from `third`, which runs.
    let frames: Vec<u64> = (0..3)
        .map(|index| {
            let function = php.function("", ["first", "second", "third"][index], 50);
            php.call(function, 0, (1, true))
        })
        .collect();
    let generators = [(); 3].map(|()| php.room(280));
    for (generator, frame) in generators.iter().zip(&frames) {
        php.process.put(generator + 56, *frame);
    }
    php.process.put(generators[0] + 152, generators[1]);
    php.process.put(generators[1] + 152, generators[2]);
    let stands_for = generators[0] + 184;
    php.process.put(stands_for + 32, generators[0]);
    php.process.put(stands_for + 48, main);
    php.process.put(frames[2] + 48, stands_for);
    let expect = [
        "third /dir/a.php:50 @52 run",
        "-",
        "second /dir/a.php:50 @52",
        "first /dir/a.php:50 @52",
        "<main> /dir/a.php:1 @4 run",
        "-",
        "inside 0",
    ];
    assert_eq!(php.look(frames[2], 0).1, expect);
}

#[test]
fn what_is_no_frame_is_not_believed() {
    let (mut php, [main, f, _, by]) = program();
    // A circle; a function of no kind; no memory.
    php.process.put(main + 48, by);
    assert_eq!(php.look(by, 0).0, Outcome::TooDeep);
    php.process.put(main + 48, 0x6666_0000);
    assert_eq!(php.look(by, 0).0, Outcome::Unreadable);
    php.process.put(main + 48, 0);
    php.process.put(f + 24, HEAP + 0x7000);
    assert_eq!(php.look(by, 0).0, Outcome::Unreadable);
}

#[test]
fn whatever_stands_in_memory_is_survived() {
    let mut out = vec![0; Catcher::MOST];
    for seed in 0..300 {
        let noise = Noise::of(seed, [2, HEAP]);
        let len = Catcher::default().catch(&layout(), GLOBALS, thread(FRAMES), &noise, &mut out);
        assert!(Caught::parse(&out[..len]).is_some(), "{seed}");
    }
}
