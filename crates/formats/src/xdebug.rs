//! Xdebug's function traces in the computer-readable form (`xdebug.trace_format=1`).
//!
//! Fields parted by tabs: level, number of the function, 0 where it is entered and 1 where it is
//! left, seconds, memory, and for those that are entered their name:
//!
//! ```text
//! TRACE START [2024-05-01 12:00:00.000000]
//! 1    0    0    0.000100    400000    {main}    1        /srv/index.php    0    0
//! 2    1    0    0.000200    400100    render    1        /srv/index.php    12    0
//! 2    1    1    0.000900    400200
//! ```

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::number;
use crate::quantity::scaled;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "xdebug",
    description: "Xdebug function traces (xdebug.trace_format=1)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let is_start = |line: &[u8]| line.starts_with(b"TRACE START [");
        head.lines().take(4).any(is_start)
            || head
                .lines()
                .next()
                .is_some_and(|line| Entry::parse(line).is_some_and(|e| e.name.is_some()))
    },
    reader: Reader::Stacks(read),
};

struct Entry<'l> {
    function: u64,
    is_entered: bool,
    nanoseconds: u64,
    name: Option<&'l [u8]>,
    /// What is included or required.
    file: Option<&'l [u8]>,
}

impl Entry<'_> {
    fn parse(line: &[u8]) -> Option<Entry<'_>> {
        let mut fields = line.split(|byte| *byte == b'\t');
        let _level: u64 = number(fields.next()?)?;
        let function = number(fields.next()?)?;
        let is_entered = match fields.next()? {
            b"0" => true,
            b"1" => false,
            _ => return None,
        };
        let nanoseconds = scaled(str::from_utf8(fields.next()?).ok()?, 1_000_000_000)?;
        let name = fields.nth(1).filter(|_| is_entered);
        if is_entered && name.is_none() {
            return None;
        }
        let file = fields.nth(1).filter(|file| !file.is_empty());
        Some(Entry { function, is_entered, nanoseconds, name, file })
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    sink.set_values(vec![ValueType::new("time", "nanoseconds"), ValueType::new("calls", "count")]);
    let mut lines = input.lines();
    // Outermost first, each with the number by which its end is found.
    let mut open: Vec<u64> = Vec::new();
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut last = None;
    while let Some(line) = lines.next_line()? {
        let text = line.text;
        if text.starts_with(b"TRACE START") {
            (open, stack, last) = (Vec::new(), Vec::new(), None);
            continue;
        }
        // What functions returned has an R, what was assigned an A; the last line is a time and a memory size alone.
        let is_other = text.is_empty()
            || text.starts_with(b"TRACE END")
            || text.starts_with(b"Version:")
            || text.starts_with(b"File format:")
            || text.starts_with(b"\t")
            || matches!(text.split(|byte| *byte == b'\t').nth(2), Some(b"R" | b"A"));
        if is_other {
            continue;
        }
        let Some(entry) = Entry::parse(text) else {
            let reason = "it is not an entry of a trace of xdebug.trace_format=1";
            sink.skip(Place::Line(line.number), reason, text)?;
            continue;
        };
        let since = entry.nanoseconds.saturating_sub(last.unwrap_or(entry.nanoseconds));
        last = Some(entry.nanoseconds);
        if !stack.is_empty() {
            sink.add(&Sample::new(&stack, &[since, 0]));
        }
        if entry.is_entered {
            let frame = sink.frame(&name(&entry), FrameKind::User);
            open.push(entry.function);
            stack.push(frame);
            sink.add(&Sample::new(&stack, &[0, 1]));
        } else {
            match open.iter().rposition(|function| *function == entry.function) {
                Some(at) => {
                    open.truncate(at);
                    stack.truncate(at);
                }
                None => {
                    let reason = "it leaves a function that was not entered";
                    sink.skip(Place::Line(line.number), reason, text)?;
                }
            }
        }
    }
    Ok(())
}

/// `require` says which file.
fn name(entry: &Entry<'_>) -> Vec<u8> {
    let name = entry.name.unwrap_or_default();
    let includes = [&b"include"[..], b"include_once", b"require", b"require_once"];
    match entry.file {
        Some(file) if includes.contains(&name) => [name, b" (", file, b")"].concat(),
        _ => name.to_vec(),
    }
}
