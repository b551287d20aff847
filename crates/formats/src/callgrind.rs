//! Valgrind's callgrind and whatever else writes its format (Xdebug's profiler, rbspy).
//!
//! The format has the cost of each function and of each call from one function to another, but no
//! stacks. A flame graph needs stacks, so what a function's callees cost is shared among its callers
//! as its own inclusive cost is: a guess where callers differ in what they make a function do, which is said
//! with the share of the costs that rest on it.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::foreign::begins_folded;
use crate::head::Head;
use crate::input::Input;
use crate::names::{number, without_arguments};
use crate::odd::Odd;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use graph::Graph;
use sums::Sums;

mod graph;
mod sums;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "callgrind",
    description: "callgrind (valgrind --tool=callgrind, Xdebug's cachegrind.out.*)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let has = |start: &[u8]| head.lines().any(|line| line.starts_with(start));
        head.bytes().starts_with(b"# callgrind format")
            || (has(b"events:") && (has(b"fn=") || has(b"fl=")) && !begins_folded(head))
    },
    reader: Reader::Stacks(read),
};

/// What is read of a file, line after line.
#[derive(Default)]
struct Parser {
    graph: Graph,
    events: Vec<String>,
    positions: usize,
    function: Option<usize>,
    called: Option<usize>,
    /// The next line has the cost of a call.
    is_call: bool,
    /// The next line belongs to a jump.
    is_jump: bool,
    last_costs: Vec<u64>,
    /// Costs below 0, and those that are differences to the last ones.
    negative: Odd,
    relative: Odd,
    /// What the file says that all costs are together, and what they are.
    sums: Sums,
    /// The number of the line.
    line: u64,
    /// What each event is multiplied by.
    scales: Vec<u64>,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut parser = Parser { positions: 1, ..Parser::default() };
    while let Some(line) = lines.next_line()? {
        parser.line = line.number;
        if let Err(reason) = parser.take(line.text.trim_ascii()) {
            sink.skip(Place::Line(line.number), reason, line.text)?;
        }
    }
    let types: Vec<ValueType> = parser.events.iter().map(|name| value_type(name).0).collect();
    if types.is_empty() {
        return Err(ReadError::Broken {
            format: "callgrind file",
            what: "it does not say which events it counts".to_owned(),
        });
    }
    let count = types.len();
    sink.set_values(types);
    parser.negative.say("costs that are negative", "they count as 0", sink)?;
    let then = "the format has none, and they are read as differences to the last ones";
    parser.relative.say("costs with a sign or a star", then, sink)?;
    parser.sums.say(&parser.events, sink)?;
    let names = parser.graph.names();
    let frames: Vec<_> =
        names.map(|name| sink.frame(without_arguments(name), FrameKind::User)).collect();
    parser.graph.add_stacks(count, &frames, sink)
}

impl Parser {
    fn take(&mut self, text: &[u8]) -> Result<(), &'static str> {
        // `#0  0x7f01 in poll ()` is gdb's.
        let is_comment = text.starts_with(b"#") && !text.get(1).is_some_and(u8::is_ascii_digit);
        if text.is_empty() || is_comment {
            return Ok(());
        }
        if text[0].is_ascii_digit() || matches!(text[0], b'+' | b'-' | b'*') {
            return self.take_costs(text);
        }
        let named = split_at_byte(text, b'=').filter(|(key, _)| key.iter().all(is_of_key));
        if let Some((key, value)) = named {
            self.take_name(key, value.trim_ascii());
            return Ok(());
        }
        let named = split_at_byte(text, b':').filter(|(key, _)| key.iter().all(is_of_key));
        let Some((key, value)) = named else {
            return Err("it is neither a cost nor a name");
        };
        let words = || value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        match key {
            b"events" => {
                let events: Vec<String> =
                    words().map(|word| String::from_utf8_lossy(word).into()).collect();
                // What was added up so far has the costs of the first.
                if !self.events.is_empty() && self.events != events {
                    return Err("it counts other events than before");
                }
                self.events = events;
                self.last_costs = vec![0; self.events.len()];
                self.scales = self.events.iter().map(|name| value_type(name).1).collect();
            }
            b"positions" => self.positions = words().count().max(1),
            b"creator" => self.sums.is_of_xdebug = value.trim_ascii().starts_with(b"xdebug"),
            b"summary" => self.sums.summary.add(self.line, words())?,
            b"totals" => self.sums.totals.add(self.line, words())?,
            _ => {}
        }
        Ok(())
    }

    fn take_name(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"fn" => self.function = Some(self.graph.function(value)),
            b"cfn" => self.called = Some(self.graph.function(value)),
            b"calls" => self.is_call = true,
            b"jump" | b"jcnd" => self.is_jump = true,
            _ => {}
        }
    }

    /// `16 400 20000`: as many positions as there are, then a cost an event.
    fn take_costs(&mut self, text: &[u8]) -> Result<(), &'static str> {
        if std::mem::take(&mut self.is_jump) {
            return Ok(());
        }
        let is_call = std::mem::take(&mut self.is_call);
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut costs = vec![0; self.events.len()];
        for (at, word) in words.skip(self.positions).enumerate() {
            let Some(last) = self.last_costs.get_mut(at) else {
                return Err("it has more costs than there are events");
            };
            let place = Place::Line(self.line);
            if matches!(word[0], b'*' | b'+') {
                self.relative.add(place);
            }
            // The format has no such differences. Where none is known to be one, a cost below 0 is what it says.
            if word[0] == b'-' && self.relative.is_none() && number::<u64>(&word[1..]).is_some() {
                self.negative.add(place);
                continue;
            }
            *last = cost(word, *last).ok_or("a cost is not a number")?;
            costs[at] = *last;
        }
        let Some(function) = self.function else { return Err("the cost belongs to no function") };
        if !is_call {
            self.sums.add(&costs);
        }
        costs.iter_mut().zip(&self.scales).for_each(|(cost, by)| *cost = cost.saturating_mul(*by));
        match (is_call, self.called) {
            (false, _) => self.graph.add_own(function, &costs),
            (true, Some(called)) => self.graph.add_call((function, called), &costs, self.line),
            (true, None) => return Err("a call without a function"),
        }
        Ok(())
    }
}

/// Whether a key has such a sign: `fn`, `summary`. Folded text and others' have more before a sign like those behind
/// keys.
fn is_of_key(byte: &u8) -> bool {
    byte.is_ascii_alphabetic() || *byte == b'_'
}

/// A cost, or its difference to the last one.
fn cost(word: &[u8], last: u64) -> Option<u64> {
    let text = str::from_utf8(word).ok()?;
    match text.as_bytes().first()? {
        b'*' => Some(last),
        b'+' => last.checked_add(text[1..].parse().ok()?),
        b'-' => last.checked_sub(text[1..].parse().ok()?),
        _ if text.starts_with("0x") => u64::from_str_radix(&text[2..], 16).ok(),
        _ => text.parse().ok(),
    }
}

/// What an event counts, and what its numbers are multiplied by: Xdebug's `Time_(10ns)` is a time.
fn value_type(name: &str) -> (ValueType, u64) {
    match name {
        "Time_(10ns)" => (ValueType::new("time", "nanoseconds"), 10),
        "Memory_(bytes)" => (ValueType::new("memory", "bytes"), 1),
        _ if name.to_lowercase().contains("bytes") => (ValueType::new(name, "bytes"), 1),
        _ => (ValueType::new(name, "count"), 1),
    }
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

    use crate::{InputContent, ReadOptions, Source, read_input};

    /// What is said of a file, how much it weighs by its first event, and why it is refused.
    #[track_caller]
    fn check(text: &str, total: u64, notes: &[&str], line: u64) {
        let read = |strict| {
            let options = ReadOptions { strict, ..ReadOptions::default() };
            read_input(Source::of_bytes(text.as_bytes().to_vec()).unwrap(), &options)
        };
        let found = read(false).unwrap();
        assert_eq!(found.notes, notes);
        assert_eq!(found.skipped.count(), 0);
        let InputContent::Stacks(stacks) = found.content else { panic!("no stacks") };
        assert_eq!(stacks.to_profile().total(0).0, total);
        let refused = read(true).err().map(|error| error.to_string());
        let expect = format!("line {line} cannot be read: {}", notes.first().unwrap_or(&""));
        assert_eq!(refused, (line > 0).then_some(expect));
    }

    const HEAD: &str = "# callgrind format\nevents: Ir\n";

    #[test]
    fn sums_that_differ_from_the_costs_are_said() {
        let file = |sums: &str| format!("{HEAD}fl=a.c\nfn=main\n1 16\n2 4\n{sums}");
        check(&file("summary: 20\ntotals: 20\n"), 20, &[], 0);
        // A program costs more than its lines say, as the format allows, but those are all there.
        check(&file("summary: 25\ntotals: 20\n"), 20, &[], 0);
        let said = "the costs of Ir are 20 together, 5 less than the 25 of its totals";
        check(&file("totals: 25\n"), 20, &[said], 7);
        let said = "the costs of Ir are 20 together, 2 more than the 18 of its summary";
        check(&file("summary: 18\n"), 20, &[said], 7);
        let parts = "totals: 20\npart: 2\nfn=main\n1 5\ntotals: 5\n";
        check(&file(parts), 25, &[], 0);
    }

    /// Xdebug 3.2 writes 0 for memory that a function frees. Its summary has its own time, too.
    #[test]
    fn negative_costs_are_said() {
        let file = "version: 1\ncreator: xdebug 3.2.0 (PHP 8.2.36)\npositions: line\n\
                    events: Time_(10ns) Memory_(bytes)\nfl=(1) php:internal\nfn=(1) php::unset\n\
                    3 288 -696\nfl=(2) /srv/index.php\nfn=(2) {main}\n1 112 304\ncfn=(1)\n\
                    calls=1 0 0\n3 288 -696\nsummary: 410 436792\n";
        let negative = "costs that are negative: 2; they count as 0";
        let sum = "the costs of Time_(10ns) are 400 together, 10 less than the 410 of its summary";
        check(file, 4000, &[negative, sum], 7);
    }

    #[test]
    fn what_is_shared_among_callers_is_said_to_be_a_guess() {
        let calls = |of: &str, costs: u32| format!("cfn={of}\ncalls=1 1\n1 {costs}\n");
        let file = |callee: &str| {
            format!(
                "{HEAD}fl=a.c\nfn=main\n1 10\n{}{}fn=a\n1 10\n{}fn=b\n1 10\n{}{callee}",
                calls("a", 40),
                calls("b", 60),
                calls("f", 30),
                calls("f", 50),
            )
        };
        // What a function costs that calls nothing else is known for each caller.
        let alone = format!("fn=f\n1 80\n{}", calls("f", 30));
        check(&file(&alone), 110, &[], 0);
        let calling = format!("fn=f\n1 20\n{}fn=g\n1 60\n", calls("g", 60));
        let said = "callgrind counts calls, not stacks: what functions with several callers do, 1 of them, is \
                    shared among these in proportion, which is a guess; 72.7 % of all costs rest on it";
        check(&file(&calling), 110, &[said], 21);
    }

    #[track_caller]
    fn check_stacks(text: &str, expect: &[&str]) {
        let options = ReadOptions { strict: true, ..ReadOptions::default() };
        let source = Source::of_bytes(text.as_bytes().to_vec()).unwrap();
        let InputContent::Stacks(stacks) = read_input(source, &options).unwrap().content else {
            panic!("no stacks")
        };
        let tree = stacks.to_builder(&TreeOptions::default());
        let tree = tree.finish(ValueType::samples(), SiblingOrder::Name);
        let mut folded = Vec::new();
        write_folded(&tree, Annotations::Write, &mut folded).unwrap();
        assert_eq!(String::from_utf8(folded).unwrap().lines().collect::<Vec<_>>(), expect);
    }

    /// `--separate-callers=100` of valgrind 3.19 makes a function for each stack.
    #[test]
    fn functions_that_are_told_apart_by_their_callers_are_exact() {
        let calls = |of: &str, costs: u32| format!("cfn={of}\ncalls=1 1\n1 {costs}\n");
        let file = format!(
            "{HEAD}fl=a.c\nfn=(1) main\n1 1\n{}{}fn=(2)\n1 2\n{}fn=(3)\n1 3\n{}{}\
             fn=(4)\n1 4\n{}fn=(6)\n1 6\n{}fn=(5)\n1 5\nfn=(7)\n1 7\nfn=(8)\n1 8\n",
            calls("(2) a'main", 11),
            calls("(3) b'main", 24),
            calls("(4) f(int)'a'main", 9),
            calls("(6) f(int)'b'main", 13),
            calls("(8) g<'b'>'b'main", 8),
            calls("(5) f(int)'2'a'main", 5),
            calls("(7) f(int)'2'b'main", 7),
        );
        let stacks = [
            "main 1",
            "main;a 2",
            "main;a;f 4",
            "main;a;f;f 5",
            "main;b 3",
            "main;b;f 6",
            "main;b;f;f 7",
            "main;b;g<'b'> 8",
        ];
        check_stacks(&file, &stacks);
    }

    #[test]
    fn functions_of_one_name_in_two_objects_are_two() {
        let file = format!(
            "{HEAD}ob=(1) x\nfn=(1) (below main)\n1 1\ncob=(2) libc.so\ncfn=(3) start\ncalls=1 1\n1 9\n\
             ob=(2)\nfn=(3)\n1 2\ncfn=(5) (below main)\ncalls=1 1\n1 7\nfn=(5)\n1 3\n\
             cob=(1)\ncfn=(7) main\ncalls=1 1\n1 4\nob=(1)\nfn=(7)\n1 4\n"
        );
        let stack = "(below main);start;(below main)";
        let stacks = [
            "(below main) 1",
            "(below main);start 2",
            &format!("{stack} 3"),
            &format!("{stack};main 4"),
        ];
        check_stacks(&file, &stacks);
    }

    #[test]
    fn stacks_that_are_too_deep_are_said() {
        let mut text = HEAD.to_owned();
        for depth in 0..600 {
            let left = 2 * (600 - depth) - 2;
            write!(text, "fn=f{depth}\n1 2\ncfn=f{}\ncalls=1 1\n1 {left}\n", depth + 1).unwrap();
        }
        let said = "stacks end at 512 functions, and there are 2000000 at most: 14.6 % of all costs stand at a \
                    function that called others for them";
        check(&text, 1200, &[said], 1);
    }
}
