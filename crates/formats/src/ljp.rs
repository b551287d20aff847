//! The Lightweight Java Profiler: `traces.txt`.
//!
//! ```text
//! 42 2 java.util.HashMap.hash(HashMap.java:338)
//!      com.example.Cache.get(Cache.java:12)
//! Total trace count = 1, Total method count = 2
//! ```
//!
//! A trace starts with its count and its number of frames, the innermost one first.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::number;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};
use crate::skipped::Place;
use crate::thread_dump::method_name;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "ljp",
    description: "Lightweight Java Profiler (traces.txt)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let is_method = |name: &[u8]| {
            // perf prints a blank before the bracket.
            let bracket = name.iter().position(|byte| *byte == b'(');
            name.ends_with(b")") && bracket.is_some_and(|at| at > 0 && name[at - 1] != b' ')
        };
        let is_start = |line: &[u8]| start(line).is_some_and(|(_, _, name)| is_method(name));
        head.lines().find(|line| !line.trim_ascii().is_empty()).is_some_and(is_start)
    },
    reader: Reader::Stacks(read),
};

/// The count, the number of frames and the first frame of a trace.
fn start(line: &[u8]) -> Option<(u64, usize, &[u8])> {
    let text = line.trim_ascii();
    let (count, rest) = text.split_at(memchr::memchr(b' ', text)?);
    let rest = rest.trim_ascii_start();
    let (depth, rest) = rest.split_at(memchr::memchr(b' ', rest)?);
    Some((number(count)?, number(depth)?, rest.trim_ascii()))
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut count = 0;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim_ascii();
        if text.is_empty() || text.starts_with(b"Total ") {
            sink.end_stack(&mut stack, None, count);
            continue;
        }
        let first = match start(line.text) {
            Some((weight, _, name)) => {
                sink.end_stack(&mut stack, None, count);
                count = weight;
                name
            }
            None if stack.is_empty() => {
                sink.skip(Place::Line(line.number), "it belongs to no trace", text)?;
                continue;
            }
            None => text,
        };
        stack.push(sink.frame(&method_name(first), FrameKind::User));
    }
    sink.end_stack(&mut stack, None, count);
    Ok(())
}
