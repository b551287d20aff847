use super::*;
use crate::catch::SampledRegisters;
use crate::caught::Caught;
use crate::function::Function;
use crate::join::{Mismatch, NativeFrame, Placed, join};
use crate::known::Layout;
use crate::ruby::layout::RubyBuild;
use crate::testing::{Noise, Process};

const NATIVE_STACK: u64 = 0x7000_0000;
const CONTEXT_AT: u64 = 0x10_0000;
const OTHER_CONTEXT: u64 = 0x10_0100;
const STACK_AT: u64 = 0x20_0000;
const STACK_WORDS: u64 = 0x800;
const RUNTIME: u64 = 0x30_0000;
const HEAP: u64 = 0x40_0000;
const LIBRARY: u64 = 0x50_0000;
const LABELS: u64 = 0x60_0000;
const SELF: Thread = Thread {
    pid: 7,
    tid: 8,
    stack_pointer: NATIVE_STACK,
    registers: SampledRegisters { instruction: 0, next: 0, base: 0, frame: 0 },
};

/// A process with one context, whose frames are added from the outermost on.
struct Ruby {
    layout: RubyLayout,
    process: Process,
    next: u64,
    innermost: u64,
    environment: u64,
}

impl Ruby {
    fn new(major: u32, minor: u32) -> Ruby {
        let build = RubyBuild { major, minor, symbols: [8, 16, 0, 0] };
        let layout = RubyLayout::of(&build).unwrap();
        let mut process = Process::default();
        for at in [NATIVE_STACK, CONTEXT_AT, STACK_AT, RUNTIME, HEAP, LIBRARY, LABELS] {
            process.piece(at, 0x8000);
        }
        process.put(NATIVE_STACK + 0x100, CONTEXT_AT);
        let mut ruby = Ruby {
            layout,
            process,
            next: HEAP,
            innermost: STACK_AT + 8 * STACK_WORDS,
            environment: STACK_AT,
        };
        ruby.context(CONTEXT_AT);
        // The table of symbols is the second of those that may be it: `+`, and number 200.
        let texts = ["+", "each"].map(|text| ruby.text(text));
        let part = ruby.list(&{
            let mut part = vec![4; 402];
            (part[86], part[400]) = (texts[0], texts[1]);
            part
        });
        let table = ruby.list(&[part]);
        ruby.put(RUNTIME + 8, &[LIBRARY]);
        ruby.put(RUNTIME + 16, &[table]);
        ruby
    }

    fn put(&mut self, at: u64, words: &[u64]) -> u64 {
        for (at, word) in (at..).step_by(8).zip(words) {
            self.process.put(at, *word);
        }
        at
    }

    fn object(&mut self, words: &[u64]) -> u64 {
        let at = self.next;
        self.next += 8 * words.len() as u64;
        self.put(at, words)
    }

    fn list(&mut self, items: &[u64]) -> u64 {
        let at = self.object(items);
        self.object(&[7, 0, items.len() as u64, 0, at])
    }

    /// A string, whose text lies in it if it is short.
    fn text(&mut self, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let words = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let words: Vec<u64> = words.collect();
        let len = text.len() as u64;
        if text.len() > 16 {
            let at = self.object(&words);
            return self.object(&[5 | 1 << 13, 0, len, at]);
        }
        let head = if self.layout.has_text_len { vec![5, 0, len] } else { vec![5 | len << 14, 0] };
        self.object(&[&head[..], &words, &[0, 0]].concat())
    }

    fn context(&mut self, at: u64) {
        let head = [STACK_AT, STACK_WORDS, self.innermost, 0, 0, HEAP, HEAP];
        self.put(at, &head);
    }

    /// A class; a single object's is that of a class.
    fn class(&mut self, name: &str, of: Option<u64>) -> u64 {
        let value = of.unwrap_or_else(|| self.text(name));
        // One of the program itself, one that was deleted, and the one that counts.
        let variables = self.object(&[1, 9002, value, u64::MAX, 8000, value, 1, 16 * 300, value]);
        let table = self.object(&[0, 0, 2, 0, 0, 3, variables]);
        let extension = self.object(&[0, table]);
        self.object(&[2 | u64::from(of.is_some()) << 12, 0, 0, extension])
    }

    fn method(&mut self, owner: u64) -> u64 {
        let definition = self.object(&[0, 0, 0, 0, 200 << 4, 0]);
        self.object(&[0x601a, owner, definition, 200 << 4, owner])
    }

    /// Code of eight words, from line 7 on, the second half of which is of line 9.
    fn code(&mut self, label: &str, method: &str) -> u64 {
        let layout = self.layout.clone();
        let [label, method, file] = [label, method, "/srv/shop.rb"].map(|text| self.text(text));
        let path = self.list(&[file, 4]);
        let instructions = self.object(&[0; 8]);
        let lines: Vec<u8> = [7_u32, 0, 0, 9, 0, 0, 0, 0]
            .chunks(3)
            .flat_map(|line| line[..(layout.instruction_len as usize / 4).min(line.len())].to_vec())
            .flat_map(u32::to_le_bytes)
            .collect();
        let lines: Vec<u64> =
            lines.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let lines = self.object(&[&lines[..], &[0]].concat());
        let numbers = (0..8).fold(0, |numbers, at| numbers | (1 + u64::from(at >= 4)) << (7 * at));
        let index = self.object(&[numbers]);
        let mut body = [0; BODY_LEN / 8];
        (body[0], body[1]) = (8 << 32, instructions);
        (body[8], body[9], body[10]) = (path, method, label);
        body[11] = if layout.has_line_values { 7 << 1 | 1 } else { 7 };
        let at = layout.lines as usize / 8;
        (body[at], body[at + 2], body[at + 3]) = (lines, 2, index);
        let body = self.object(&body);
        self.object(&[0x701a, 0, body])
    }

    /// A frame: what it is, its code, the words that it has run, its method.
    fn frame(&mut self, flags: u64, (code, words): (u64, u64), method: u64) -> u64 {
        let outside = self.environment;
        self.environment += 24;
        self.put(self.environment - 16, &[method, outside, flags]);
        self.innermost -= self.layout.frame_len as u64;
        let next = match code {
            0 => 0,
            code => {
                let Some(body) = self.word(code + 16) else { return 0 };
                self.word(body + 8).unwrap() + 8 * words
            }
        };
        let frame = [next, 0, code, 0, self.environment];
        self.put(self.innermost, &frame);
        self.context(CONTEXT_AT);
        self.innermost
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.process.fill(at, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    fn catch(&self) -> Vec<u8> {
        let mut out = vec![0; Catcher::MOST];
        let layout = Layout::Ruby(self.layout.clone());
        let len = Catcher::default().catch(&layout, RUNTIME, SELF, &self.process, &mut out);
        out.truncate(len);
        out
    }

    /// The frames, innermost first, as people see them; `-` ends what a loop runs.
    fn frames(&self) -> Vec<String> {
        let out = self.catch();
        let caught = Caught::parse(&out).unwrap();
        assert_eq!(caught.outcome(), Outcome::Read);
        let layout = Layout::Ruby(self.layout.clone());
        let functions: Vec<(u64, Function)> = caught
            .defined()
            .map(|defined| (defined.function, Function::of(&defined, &layout)))
            .collect();
        let entries = caught.entries();
        let (last, entries) = entries.split_last().unwrap();
        assert!(last.ends_frames() && entries[0].address == CONTEXT_AT);
        let text = |entry: &Entry| {
            let found = functions.iter().find(|(function, _)| *function == entry.function);
            found.map_or("-".to_owned(), |(_, function)| {
                let name = function.name.as_deref().unwrap_or_default();
                let line = function.line(entry.position);
                format!("{name} {}:{line}", function.file.as_deref().unwrap_or_default())
            })
        };
        entries[1..].iter().map(text).collect()
    }
}

/// `<main>` calls a method of a class, which has a method in C call its block.
fn program(major: u32, minor: u32) -> (Ruby, Vec<u64>) {
    let mut ruby = Ruby::new(major, minor);
    let [order, list] = ["Shop::Order", "Array"].map(|name| ruby.class(name, None));
    let single = ruby.class("", Some(order));
    let codes = [("<main>", "<main>"), ("total", "total"), ("block in total", "total")]
        .map(|(label, method)| ruby.code(label, method));
    let [of_class, of_order, of_list] = [single, order, list].map(|class| ruby.method(class));
    let frames = [
        ruby.frame(0x7999_0021, (codes[0], 0), 0),
        ruby.frame(0x7777_0023, (codes[0], 2), 0),
        ruby.frame(0x1111_0003, (codes[1], 3), of_class),
        ruby.frame(0x1111_0003, (codes[1], 6), of_order),
        ruby.frame(0x5555_0083, (0, 0), of_list),
    ];
    // The block is in the frame of the method, not in that of the one in C.
    ruby.environment -= 24;
    let outside = ruby.environment;
    ruby.environment += 24;
    let block = ruby.frame(0x2222_0021, (codes[2], 8), 0);
    let environment = ruby.environment;
    ruby.put(environment - 8, &[outside | 1]);
    (ruby, [&frames[..], &[block]].concat())
}

#[test]
fn frames_are_those_of_the_context_with_classes_and_lines() {
    let (ruby, _) = program(3, 1);
    let expect = [
        "block in Shop::Order#total /srv/shop.rb:9",
        "-",
        "Array#each [C]:0",
        "Shop::Order#total /srv/shop.rb:9",
        "Shop::Order.total /srv/shop.rb:7",
        "<main> /srv/shop.rb:7",
        "-",
    ];
    assert_eq!(ruby.frames(), expect);
    // Where classes are kept is not known of later versions.
    let (ruby, _) = program(3, 3);
    let expect = [
        "block in total /srv/shop.rb:9",
        "-",
        "each [C]:0",
        "total /srv/shop.rb:9",
        "total /srv/shop.rb:7",
        "<main> /srv/shop.rb:7",
        "-",
    ];
    assert_eq!(ruby.frames(), expect);
    assert_eq!(
        program(2, 7).0.frames()[3..5],
        ["Shop::Order#total /srv/shop.rb:9", "Shop::Order.total /srv/shop.rb:7"]
    );
}

#[test]
fn operators_and_methods_of_blocks_have_their_names() {
    let mut ruby = Ruby::new(3, 1);
    let class = ruby.class("Order", None);
    let method = ruby.method(class);
    let codes = [
        ("<=>", "<=>"),
        ("block in <class:Order>", "<class:Order>"),
        ("<class:Order>", "<class:Order>"),
    ]
    .map(|(label, method)| ruby.code(label, method));
    ruby.frame(0x1111_0003, (codes[0], 1), method);
    ruby.frame(0x2222_0043, (codes[1], 1), method);
    ruby.frame(0x3333_0023, (codes[2], 1), method);
    let names: Vec<String> = ruby
        .frames()
        .iter()
        .filter_map(|frame| Some(frame.split_once(" /")?.0.to_owned()))
        .collect();
    // What stands behind the last that returns to C is of nobody.
    assert_eq!(names, ["<class:Order>"]);
    ruby.frame(0x2222_0063, (codes[1], 1), method);
    ruby.frame(0x1111_0023, (codes[0], 1), method);
    let frames = ruby.frames();
    assert_eq!(frames[0], "Order#<=> /srv/shop.rb:7");
    assert_eq!(frames[2], "Order#each /srv/shop.rb:7");
}

#[test]
fn contexts_of_others_are_written_down_beside() {
    let (mut ruby, _) = program(3, 1);
    ruby.context(OTHER_CONTEXT);
    ruby.put(NATIVE_STACK + 0x200, &[OTHER_CONTEXT]);
    let out = ruby.catch();
    let entries = Caught::parse(&out).unwrap().entries();
    let contexts = entries.iter().filter(|entry| entry.function == FIRST && entry.code == 0);
    let contexts: Vec<u64> = contexts.map(|entry| entry.address).collect();
    assert_eq!(contexts, [CONTEXT_AT, OTHER_CONTEXT]);
}

#[test]
fn each_loop_has_its_frame_and_the_instruction_that_is_next() {
    let (ruby, frames) = program(3, 1);
    let out = ruby.catch();
    let entries = Caught::parse(&out).unwrap().entries();
    let [method, block] = [frames[3], frames[5]];
    let next = |at: u64| ruby.word(at).unwrap();
    let native = |index: u64| NativeFrame {
        stack_pointer: NATIVE_STACK + 64 * index,
        runs_frames: index.is_multiple_of(2),
        runs_script: false,
        next: 0,
    };
    let natives: Vec<NativeFrame> = (0..4).map(native).collect();
    let place = |held: &[(usize, u64)]| {
        let holds = |index: usize, word: u64| word == CONTEXT_AT || held.contains(&(index, word));
        join(&entries, &natives, true, &|_| None, &holds)
    };
    let held = [(0, block), (0, next(block)), (2, method), (2, next(method))];
    let placed = vec![Placed { native: 0, frames: 1..2 }, Placed { native: 2, frames: 3..7 }];
    assert_eq!(place(&held), Ok(placed.clone()));
    // The innermost is ahead by an instruction.
    let ahead = [held[0], (0, next(block) + 16), held[2], held[3]];
    assert_eq!(place(&ahead), Ok(placed));
    // Another function stands where that one did, further in or further out.
    assert_eq!(place(&[held[0], held[2], held[3]]), Err(Mismatch::Stack));
    assert_eq!(place(&[held[0], held[1], held[2], (2, next(method) + 16)]), Err(Mismatch::Stack));
    assert_eq!(place(&held[..2]), Err(Mismatch::Stack));
}

#[test]
fn a_stack_of_values_within_the_native_one_is_known_from_the_second_sample_on() {
    let (ruby, _) = program(3, 1);
    let layout = Layout::Ruby(ruby.layout.clone());
    let (mut catcher, mut out) = (Catcher::default(), vec![0; Catcher::MOST]);
    let within = Thread { stack_pointer: STACK_AT - 0x1000, ..SELF };
    assert_eq!(catcher.inner_stack(&layout, within, &ruby.process), None);
    catcher.catch(&layout, RUNTIME, SELF, &ruby.process, &mut out);
    let inner = |catcher: &mut Catcher, thread| catcher.inner_stack(&layout, thread, &ruby.process);
    assert_eq!(inner(&mut catcher, within), Some(STACK_AT..STACK_AT + 8 * STACK_WORDS));
    // Of the first thread it lies elsewhere, and of others it is another one.
    assert_eq!(inner(&mut catcher, SELF), None);
    assert_eq!(inner(&mut catcher, Thread { tid: 9, ..within }), None);
}

#[test]
fn whatever_stands_in_memory_few_readings_are_made() {
    for version in [(2, 7), (3, 1), (3, 2), (3, 4)] {
        let (ruby, _) = program(version.0, version.1);
        let layout = Layout::Ruby(ruby.layout);
        let mut catcher = Catcher::default();
        let mut out = vec![0; Catcher::MOST];
        for seed in 0..200 {
            let noise = Noise::of(seed, [0x701a, STACK_AT]);
            let len = catcher.catch(&layout, RUNTIME, SELF, &noise, &mut out);
            let caught = Caught::parse(&out[..len]).unwrap();
            let names = caught.defined().map(|defined| Function::of(&defined, &layout).line(3));
            assert!(names.count() <= 96);
        }
    }
}

#[test]
fn frames_without_end_are_too_deep() {
    let (mut ruby, _) = program(3, 1);
    let words = 8 * (MOST_FRAMES as u64 + 1);
    ruby.put(CONTEXT_AT, &[STACK_AT, words, STACK_AT]);
    assert_eq!(Caught::parse(&ruby.catch()).unwrap().outcome(), Outcome::TooDeep);
    // An environment that is outside of itself.
    let (mut ruby, _) = program(3, 1);
    let environment = ruby.environment;
    ruby.put(environment - 8, &[environment | 1]);
    assert_eq!(ruby.frames()[0], "block in total /srv/shop.rb:9");
}
