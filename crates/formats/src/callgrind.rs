//! Valgrind's callgrind and whatever else writes its format (Xdebug's profiler, rbspy).
//!
//! The format has the cost of each function and of each call from one function to another, but no
//! stacks. A flame graph needs stacks, so what a function's callees cost is shared among its callers
//! as its own inclusive cost is: a guess where callers differ in what they make a function do. The
//! note that goes with the profile says so.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::foreign::begins_folded;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use graph::Graph;

mod graph;

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
    /// What each event is multiplied by.
    scales: Vec<u64>,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut parser = Parser { positions: 1, ..Parser::default() };
    while let Some(line) = lines.next_line()? {
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
    if parser.graph.has_shared_callees() {
        sink.note(
            "callgrind counts calls, not stacks: what a function with several callers calls is \
             shared among them in proportion",
        );
    }
    let frames: Vec<_> = {
        let names = parser.graph.names().iter();
        let name = |name| without_arguments(without_level(name));
        names.map(|text| sink.frame(name(text), FrameKind::User)).collect()
    };
    parser.graph.add_stacks(count, &frames, sink);
    Ok(())
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
            *last = cost(word, *last).ok_or("a cost is not a number")?;
            costs[at] = last.saturating_mul(self.scales[at]);
        }
        let Some(function) = self.function else { return Err("the cost belongs to no function") };
        match (is_call, self.called) {
            (false, _) => self.graph.add_own(function, &costs),
            (true, Some(called)) => self.graph.add_call(function, called, &costs),
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

/// `fib'2`, as `--separate-recs` calls the inner levels of a recursion, is `fib`.
fn without_level(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\'', name) {
        Some(at) if at > 0 && is_decimal(&name[at + 1..]) => &name[..at],
        _ => name,
    }
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}
