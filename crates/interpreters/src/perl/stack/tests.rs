use super::*;
use crate::catch::SampledRegisters;
use crate::caught::Caught;
use crate::function::Function;
use crate::known::Layout;
use crate::perl::layout::PerlBuild;
use crate::testing::{Noise, Process};

const GLOBAL: u64 = 0x10_0000;
const INTERPRETER: u64 = 0x20_0000;
const STACKS: u64 = 0x30_0000;
const CONTEXTS_AT: u64 = 0x40_0000;
const HEAP: u64 = 0x50_0000;
const ENVIRONMENT: u64 = 0x7000_0100;
const THREAD: Thread = Thread {
    pid: 7,
    tid: 8,
    stack_pointer: 0x7000_0000,
    registers: SampledRegisters { instruction: 0, next: 0, base: 0, frame: 0 },
};

/// What an interpreter has in its memory.
struct Perl {
    layout: PerlLayout,
    process: Process,
    /// Where the next value is put.
    next: u64,
    contexts: u64,
}

impl Perl {
    fn new(build: &PerlBuild) -> Perl {
        let mut process = Process::default();
        for at in [GLOBAL, INTERPRETER, STACKS, CONTEXTS_AT] {
            process.piece(at, 1 << 17);
        }
        process.piece(HEAP, 1 << 18);
        process.put(GLOBAL, INTERPRETER);
        Perl { layout: PerlLayout::of(build).unwrap(), process, next: HEAP, contexts: 0 }
    }

    fn threaded() -> Perl {
        Perl::new(&PerlBuild { minor: 36, statement: None })
    }

    fn room(&mut self, len: u64) -> u64 {
        self.next += len;
        self.next - len
    }

    /// Two numbers of four bytes each in one word.
    fn halves(&mut self, at: u64, halves: [u32; 2]) {
        self.process.put(at, u64::from(halves[0]) | u64::from(halves[1]) << 32);
    }

    fn text(&mut self, text: &str) -> u64 {
        let at = self.room(64);
        for (byte, place) in text.bytes().zip(at..) {
            self.process.put_byte(place, byte);
        }
        at
    }

    fn statement(&mut self, file: &str, line: u32) -> u64 {
        let file = match self.layout.is_threaded {
            true => self.text(file),
            false => self.variable(&format!("_<{file}"), 0),
        };
        let at = self.room(64);
        self.halves(at + 32, [self.layout.nextstate, line]);
        self.process.put(at + 48, file);
        self.halves(at + 56, [0, line * 10]);
        at
    }

    fn name(&mut self, name: &str) -> u64 {
        let text = self.text(&format!("12345678{name}"));
        self.halves(text, [0, name.len() as u32]);
        text
    }

    fn value(&mut self, kind: u32, body: u64, other: u64) -> u64 {
        let at = self.room(24);
        self.process.put(at, body);
        self.halves(at + 8, [1, kind]);
        self.process.put(at + 16, other);
        at
    }

    fn variable(&mut self, name: &str, package: u64) -> u64 {
        let (name, body, meant) = (self.name(name), self.room(48), self.room(64));
        self.process.put(body + 32, name);
        self.process.put(body + 40, package);
        let at = self.value(9, body, meant);
        self.process.put(meant + 56, at);
        at
    }

    fn package(&mut self, name: &str) -> u64 {
        let (name, body, slots) = (self.name(name), self.room(64), self.room(128));
        self.process.put(body + 24, 7);
        let known = if self.layout.has_package_in_body { body + 32 } else { slots + 64 };
        self.process.put(known, name);
        self.value(12 | 0x0200_0000, body, slots)
    }

    fn sub(&mut self, (package, name): (&str, &str), first: u64) -> u64 {
        let package = self.package(package);
        let (variable, body) = (self.variable(name, package), self.room(96));
        // What is before the first statement is another operation.
        let before = self.room(64);
        self.process.put(before, first);
        for (at, value) in [(32, package), (40, before), (56, variable)] {
            self.process.put(body + at, value);
        }
        self.value(13, body, 0)
    }

    /// A context further in than those before; its address.
    fn context(&mut self, kind: u64, outside: u64, returns_to: u64) -> u64 {
        let at = CONTEXTS_AT + self.contexts;
        self.contexts += u64::from(self.layout.context);
        self.process.put(at, kind);
        self.process.put(at + 16, outside);
        self.process.put(at + 48, returns_to);
        at
    }

    fn of_sub(&mut self, sub: u64, outside: u64, returns_to: u64) {
        let at = self.context(9, outside, returns_to);
        self.process.put(at + u64::from(self.layout.sub), sub);
    }

    fn of_eval(&mut self, kind: u64, outside: u64) -> u64 {
        let at = self.context(kind, outside, 1);
        self.process.put(at + u64::from(self.layout.catcher), ENVIRONMENT);
        at
    }

    /// The contexts from the first to the last are a stack; the innermost one is that of a sub.
    fn stack(&mut self, at: u64, (first, count): (u64, u32), outside: u64, innermost_sub: u32) {
        self.process.put(at + 8, CONTEXTS_AT + first * u64::from(self.layout.context));
        self.process.put(at + 16, outside);
        self.halves(at + 32, [count.wrapping_sub(1), 100]);
        self.halves(at + 40, [innermost_sub, 1]);
    }

    /// What is caught where that is the statement and the stack.
    fn caught(&mut self, statement: u64, stack: u64) -> Told {
        self.process.put(INTERPRETER + self.layout.statement, statement);
        self.process.put(INTERPRETER + self.layout.stack, stack);
        let runtime = if self.layout.is_threaded { GLOBAL } else { INTERPRETER };
        let mut out = vec![0; Catcher::MOST];
        let layout = Layout::Perl(self.layout.clone());
        let memory = &self.process;
        let len = Catcher::default().catch(&layout, runtime, THREAD, memory, &mut out);
        let caught = Caught::parse(&out[..len]).unwrap();
        let functions: Vec<(u64, Function)> =
            caught.defined().map(|one| (one.function, Function::of(&one, &layout))).collect();
        let label = |entry: &Entry| {
            let found = functions.iter().find(|(function, _)| *function == entry.function);
            let Some((_, found)) = found else { return format!("? {}", entry.position) };
            let (name, file) = (found.name.as_deref(), found.file.as_deref());
            let (name, file) = (name.unwrap_or("?"), file.unwrap_or("?"));
            format!("{name} {file}:{} {}", found.first_line, found.line(entry.position))
        };
        let entries = caught.entries();
        let labels = entries.iter().map(|entry| match entry.is_boundary() {
            true => "-".to_owned(),
            false => label(entry),
        });
        Told { outcome: caught.outcome(), labels: labels.collect(), entries }
    }
}

#[derive(Debug)]
struct Told {
    outcome: Outcome,
    labels: Vec<String>,
    entries: Vec<Entry>,
}

/// A script that sorts by a sub, in a sub, in an eval.
fn sorting(perl: &mut Perl) -> Told {
    let [script, in_sub, first, in_compare] =
        [3, 12, 11, 21].map(|line| perl.statement("/x/a.pl", line));
    let (sub, compare) = (perl.sub(("main", "f"), first), perl.sub(("Pkg", "cmp"), in_compare));
    perl.context(8, script, 0);
    perl.of_eval(11 | 0x40, script);
    perl.of_sub(sub, script, 1);
    perl.context(2, in_sub, 0);
    perl.of_sub(compare, in_sub, 0);
    perl.stack(STACKS, (0, 4), 0, 2);
    perl.stack(STACKS + 64, (4, 1), STACKS, 0);
    perl.caught(in_compare, STACKS + 64)
}

#[test]
fn frames_of_all_versions_are_read() {
    for minor in [28, 30, 32, 34, 36, 38, 40] {
        for statement in [None, Some(0x40)] {
            let mut perl = Perl::new(&PerlBuild { minor, statement });
            let told = sorting(&mut perl);
            let expect = [
                "Pkg::cmp /x/a.pl:21 21",
                "-",
                "f /x/a.pl:11 12",
                "(eval) /x/a.pl:3 3",
                "<script> /x/a.pl:1 3",
                "-",
                "-",
            ];
            assert_eq!(
                (told.outcome, &told.labels[..]),
                (Outcome::Read, &expect.map(str::to_owned)[..]),
                "{minor}"
            );
            assert_eq!(told.entries[3].address, ENVIRONMENT);
            let interpreter = if statement.is_none() { INTERPRETER } else { 0 };
            assert_eq!(told.entries[6].interpreter(), Some(interpreter));
        }
    }
}

#[test]
fn files_and_texts_that_are_run_are_frames() {
    let mut perl = Perl::threaded();
    let [script, in_file, in_text] = [("/x/a.pl", 3), ("/lib/X/Y.pm", 8), ("(eval 12)", 1)]
        .map(|(file, line)| perl.statement(file, line));
    let name = perl.text("X/Y.pm");
    let name = perl.value(4, 0, name);
    for operation in [342, 343] {
        let at = perl.of_eval(11 | operation << 23, script);
        perl.process.put(at + u64::from(perl.layout.name), name);
    }
    perl.of_eval(11 | 0x20, in_file);
    let first = perl.statement("(eval 12)", 2);
    let sub = perl.sub(("main", "__ANON__"), first);
    perl.of_sub(sub, in_text, 1);
    perl.stack(STACKS, (0, 4), 0, 3);
    let told = perl.caught(first, STACKS);
    let expect = [
        "__ANON__ (eval):2 2",
        // The text's own line says nothing of the file.
        "(eval) /lib/X/Y.pm:8 8",
        "do X/Y.pm /lib/X/Y.pm:1 8",
        "require X/Y.pm /x/a.pl:1 3",
        "<script> /x/a.pl:1 3",
    ];
    assert_eq!(told.labels[..5], expect);
}

#[test]
fn subs_that_are_about_to_begin_or_over_are_left_out() {
    let with = |last: &dyn Fn(&mut Perl, u64)| {
        let mut perl = Perl::threaded();
        let [script, first, other] = [3, 11, 21].map(|line| perl.statement("a.pl", line));
        let (sub, stale) = (perl.sub(("main", "f"), first), perl.sub(("main", "g"), other));
        perl.of_sub(sub, script, 1);
        perl.of_sub(stale, first, 1);
        last(&mut perl, stale);
        perl.caught(first, STACKS).labels
    };
    let without = ["f a.pl:11 11", "<script> a.pl:1 3", "-", "-"];
    // The innermost context is there, and says of which sub it was before.
    assert_eq!(with(&|perl, _| perl.stack(STACKS, (0, 2), 0, 0)), without);
    // It has none any more.
    let is_over = |perl: &mut Perl, _| {
        perl.stack(STACKS, (0, 2), 0, 1);
        perl.process.put(CONTEXTS_AT + 104 + 72, 0);
    };
    assert_eq!(with(&is_over), without);
    // One that is called, and not yet at a statement of its own, is at its beginning.
    let begun = with(&|perl, _| perl.stack(STACKS, (0, 2), 0, 1));
    assert_eq!(begun[..2], ["g a.pl:21 21", "f a.pl:11 11"]);
}

#[test]
fn contexts_that_are_no_frames_begin_loops_all_the_same() {
    let mut perl = Perl::threaded();
    let [script, first] = [3, 11].map(|line| perl.statement("a.pl", line));
    let sub = perl.sub(("main", "f"), first);
    // A sub that a regular expression calls into, in place; a defer block; an eval of who calls from C,
    // and what sort compares by.
    perl.of_sub(sub, script, 1);
    let at = perl.context(9 | 0x80, first, 0);
    perl.process.put(at + 72, sub);
    perl.context(13, first, 1);
    perl.context(11 | 0x40, first, 0);
    perl.context(0, first, 0);
    perl.stack(STACKS, (0, 3), 0, 1);
    perl.stack(STACKS + 64, (3, 1), STACKS, 0);
    perl.stack(STACKS + 128, (4, 1), STACKS + 64, 0);
    let told = perl.caught(first, STACKS + 128);
    assert_eq!(told.labels, ["-", "-", "-", "f a.pl:11 11", "<script> a.pl:1 3", "-", "-"]);
}

/// It returns to nowhere, as one does that C calls; but the block has a loop already.
#[test]
fn the_last_sub_of_a_block_has_the_loop_of_the_block() {
    let in_block: [(&str, u64, &[&str]); 4] = [
        ("sort", 0, &["f a.pl:11 11", "-"]),
        ("a regular expression in place", 9 | 0x40 | 0x80, &["f a.pl:11 11", "-"]),
        ("one with a sub of its own", 9 | 0x40, &["f a.pl:11 11", "g a.pl:5 3", "-"]),
        ("a loop", 8, &["f a.pl:11 11", "-", "-"]),
    ];
    for (case, kind, expect) in in_block {
        let mut perl = Perl::threaded();
        let [script, first, other] = [3, 11, 5].map(|line| perl.statement("a.pl", line));
        let (sub, of_block) = (perl.sub(("main", "f"), first), perl.sub(("main", "g"), other));
        let at = perl.context(kind, script, 0);
        perl.process.put(at + 72, of_block);
        perl.of_sub(sub, script, 0);
        perl.stack(STACKS + 64, (0, 2), STACKS, 1);
        perl.stack(STACKS, (2, 0), 0, u32::MAX);
        let told = perl.caught(first, STACKS + 64);
        assert_eq!(told.labels[..expect.len()], *expect, "{case}");
        assert_eq!(told.labels[expect.len()..], ["<script> a.pl:1 3", "-", "-"], "{case}");
    }
}

#[test]
fn functions_are_told_by_what_they_are() {
    let mut perl = Perl::threaded();
    let before = sorting(&mut perl);
    let functions =
        |told: &Told| told.entries.iter().map(|entry| entry.function).collect::<Vec<_>>();
    let again = perl.caught(0, STACKS + 64);
    assert_eq!(again.labels[0], "Pkg::cmp /x/a.pl:21 21", "no statement: that of the definition");
    assert_eq!(functions(&before)[2..], functions(&again)[2..]);
    // Another sub took the place of one: its first statement has another number.
    let sub = word(&perl.process.pieces[&CONTEXTS_AT], 4 * 104 + 72).unwrap();
    let other = perl.statement("/x/a.pl", 30);
    let body = word(&perl.process.pieces[&HEAP], (sub - HEAP) as u32).unwrap();
    perl.process.put(body + 40, other);
    let told = perl.caught(0, STACKS + 64);
    assert_eq!(told.labels[0], "Pkg::cmp /x/a.pl:30 30");
    assert_ne!(functions(&told)[0], functions(&before)[0]);
    // What is no sub has no name.
    perl.process.put(sub + 8, 9 << 32);
    assert_eq!(perl.caught(0, STACKS + 64).labels[0], "? 0");
}

/// Whatever stands in memory: reading ends, after a bounded number of readings.
#[test]
fn memory_that_leads_astray_is_survived() {
    type Change = fn(&mut Perl);
    let cases: [(&str, Change, Outcome); 5] = [
        (
            "a stack in a circle",
            |perl| perl.process.put(STACKS + 16, STACKS + 64),
            Outcome::TooDeep,
        ),
        (
            "contexts without an end",
            |perl| perl.halves(STACKS + 96, [0x7fff_ffff, 0]),
            Outcome::TooDeep,
        ),
        (
            "contexts elsewhere",
            |perl| perl.process.put(STACKS + 72, 0x9999_0000),
            Outcome::Unreadable,
        ),
        ("no stack", |perl| perl.process.put(STACKS + 80, 0x9999_0000), Outcome::Unreadable),
        ("many subs", |perl| perl.halves(STACKS + 32, [1200, 0]), Outcome::Read),
    ];
    for (case, change, outcome) in cases {
        let mut perl = Perl::threaded();
        sorting(&mut perl);
        for index in 5..1201 {
            perl.process.put(CONTEXTS_AT + index * 104, 9);
            perl.process.put(CONTEXTS_AT + index * 104 + 48, 1);
            perl.process.put(CONTEXTS_AT + index * 104 + 72, 0x9999_0000 + index * 4096);
        }
        change(&mut perl);
        perl.process.reads.set(0);
        let told = perl.caught(STACKS, STACKS + 64);
        assert_eq!(told.outcome, outcome, "{case}");
        assert!(perl.process.reads.get() < 1000, "{case}: {}", perl.process.reads.get());
    }
    // Cut off anywhere.
    for piece in [STACKS, CONTEXTS_AT, HEAP] {
        for len in (0..2048).step_by(40) {
            let mut perl = Perl::threaded();
            sorting(&mut perl);
            perl.process.pieces.get_mut(&piece).unwrap().truncate(len);
            perl.process.piece(INTERPRETER, 4096);
            let _ = Catcher::default().catch(
                &Layout::Perl(perl.layout.clone()),
                GLOBAL,
                THREAD,
                &perl.process,
                &mut vec![0; Catcher::MOST],
            );
        }
    }
}

#[test]
fn memory_of_any_content_ends_and_harms_nothing() {
    let mut catcher = Catcher::default();
    let mut out = vec![0; Catcher::MOST];
    for (seed, statement) in (0..600).zip([None, Some(0x40)].into_iter().cycle()) {
        let layout = PerlLayout::of(&PerlBuild { minor: 28 + seed as u32 % 7 * 2, statement });
        let layout = Layout::Perl(layout.unwrap());
        let noise = Noise::of(seed, [9 | u64::from(seed as u32 % 2) << 32, STACKS]);
        let len = catcher.catch(&layout, seed * 8, THREAD, &noise, &mut out);
        let caught = Caught::parse(&out[..len]).unwrap();
        for defined in caught.defined() {
            let function = Function::of(&defined, &layout);
            caught.entries().iter().for_each(|entry| _ = function.line(entry.position));
        }
    }
}
