//! DTrace's aggregations of stacks: `dtrace -n 'profile-99 { @[stack(), ustack()] = count(); }'`.
//!
//! A stack is a frame a line, innermost first, and a line with nothing but a count behind it:
//!
//! ```text
//!               genunix`kmem_cache_free+0xce
//!               unix`sys_syscall+0x17a
//!               libc.so.1`read
//!                 1
//! ```
//!
//! Stacks of several keys stand one after the other, parted by a blank line; an empty one leaves
//! nothing but the blank line. Other keys, as in `@[execname, pid, ustack()]`, stand on a line before the
//! stack and less far in, or behind it before the count; they become outermost frames.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::line_cache::{LineCache, LineKey};
use crate::names::{
    inlined_parts, is_decimal, number, rfind, rust_signs, without_arguments, without_class_letter,
    without_offset,
};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "dtrace",
    description: "DTrace aggregations of stack(), ustack() and jstack()",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.is_empty());
    if head.lines().take(8).any(is_header) {
        return true;
    }
    let is_frame = |line: &&[u8]| line.starts_with(b" ") && line.contains(&b'`');
    let first = lines.next().filter(is_frame);
    // A frame, and a count somewhere below; nothing else stands at the start of a line.
    first.is_some()
        && head.lines().all(|line| line.is_empty() || line.starts_with(b" "))
        && lines.any(|line| is_decimal(line.trim_ascii()))
}

/// `CPU     ID                    FUNCTION:NAME`
fn is_header(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut is = |expect: &[u8]| words.next() == Some(expect);
    is(b"CPU") && is(b"ID") && is(b"FUNCTION:NAME")
}

/// The probe that ended the recording, below the header: `  0  64091      :tick-60s`, and what
/// dtrace says of itself.
fn is_probe(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (cpu, id, probe) = (words.next(), words.next(), words.next());
    line.starts_with(b"dtrace: ")
        || [cpu, id].iter().all(|word| word.is_some_and(is_decimal))
            && probe.is_some_and(|probe| probe.contains(&b':'))
            && words.next().is_none()
}

/// What was read of an entry.
#[derive(Default)]
struct Entry {
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// Keys that are no stacks, outermost first.
    keys: Vec<FrameIndex>,
    /// A line that may have keys: where its text starts, and the text. What follows tells.
    first: Option<(usize, Vec<u8>)>,
    /// Whether the rows of a distribution follow.
    is_distribution: bool,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut entry = Entry::default();
    let mut known = LineCache::default();
    let mut last = 0;
    while let Some(line) = lines.next_line()? {
        last = line.number;
        if entry.is_in_stack()
            && let Some(frame) = known.find(LineKey::Whole(line.text))
        {
            entry.stack.push(FrameIndex(frame));
            continue;
        }
        let text = line.text.trim_ascii();
        if text.is_empty() {
            entry.settle(last, sink)?;
            entry.is_distribution = false;
            continue;
        }
        if entry.is_distribution || is_header(text) || is_probe(line.text) {
            continue;
        }
        let indent = line.text.len() - line.text.trim_ascii_start().len();
        match entry.first.take() {
            Some((before, keys)) if indent > before && !is_decimal(text) => {
                entry.keys = keys_of(&keys, sink);
            }
            first => {
                entry.first = first;
                entry.settle(last, sink)?;
            }
        }
        if text.starts_with(b"value ") && memchr::memmem::find(text, b" Distribution ").is_some() {
            sink.skip(Place::Line(last), "it has a distribution in place of a count", text)?;
            entry = Entry { is_distribution: true, ..Entry::default() };
        } else if entry.stack.is_empty() && entry.keys.is_empty() && may_be_keys(line.text) {
            entry.first = Some((indent, text.to_vec()));
        } else if is_decimal(text) {
            entry.end(text, last, sink)?;
        } else if let Some((keys, count)) = keys_and_count(text) {
            entry.keys.extend(keys_of(keys, sink));
            entry.end(count, last, sink)?;
        } else {
            let first = entry.stack.len();
            push_frames(text, sink, &mut entry.stack);
            if let [frame] = entry.stack[first..] {
                known.keep(line.text, frame.0);
            }
        }
    }
    entry.settle(last, sink)?;
    if !entry.stack.is_empty() {
        sink.skip(Place::Line(last), "the last stack has no count", b"")?;
    }
    Ok(())
}

impl Entry {
    /// Whether a line that was a frame before is one here, too.
    fn is_in_stack(&self) -> bool {
        let is_begun = !self.stack.is_empty() || !self.keys.is_empty();
        is_begun && self.first.is_none() && !self.is_distribution
    }

    /// A first line that no stack follows has no keys: it is a frame, or the count of an empty stack.
    fn settle(&mut self, line: u64, sink: &mut Sink) -> Result<(), ReadError> {
        let Some((_, text)) = self.first.take() else { return Ok(()) };
        if is_decimal(&text) {
            return self.end(&text, line, sink);
        }
        push_frames(&text, sink, &mut self.stack);
        Ok(())
    }

    fn end(&mut self, count: &[u8], line: u64, sink: &mut Sink) -> Result<(), ReadError> {
        let Entry { mut stack, mut keys, .. } = std::mem::take(self);
        match number(count) {
            Some(count) => {
                keys.extend(stack.drain(..).rev());
                sink.add(&Sample::new(&keys, &[count]));
                Ok(())
            }
            None => sink.skip(Place::Line(line), "its count is too large", count),
        }
    }
}

/// Names are written two blanks in, and numbers in fewer columns than the 17 that a count has.
fn may_be_keys(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let indent = line.len() - line.trim_ascii_start().len();
    if is_decimal(text) {
        return line.trim_ascii_end().len() < 17;
    }
    (1..=2).contains(&indent) && !text.contains(&b'`') && !text.starts_with(b"0x")
}

/// `bash                1234                 5`: keys that stand behind the stacks, and the count.
fn keys_and_count(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = rfind(text, b"  ")?;
    let count = &text[at + 2..];
    is_decimal(count).then_some((&text[..at], count))
}

/// `bash                1234`: keys are parted by two blanks or more.
fn keys_of(text: &[u8], sink: &mut Sink) -> Vec<FrameIndex> {
    let text = String::from_utf8_lossy(text);
    let keys = text.split("  ").map(str::trim).filter(|key| !key.is_empty());
    keys.map(|key| sink.frame(key.as_bytes(), FrameKind::Mark)).collect()
}

/// The frames of a line, innermost first: several where a method has others inlined.
fn push_frames(text: &[u8], sink: &mut Sink, stack: &mut Vec<FrameIndex>) {
    let symbol = without_offset(text);
    let (module, function) = match memchr::memchr(b'`', symbol) {
        Some(at) => symbol.split_at(at + 1),
        None => symbol.split_at(0),
    };
    let kind = match module {
        b"genunix`" | b"unix`" | b"kernel`" | b"mach_kernel`" => FrameKind::Kernel,
        _ if module.ends_with(b".ko`") => FrameKind::Kernel,
        _ => FrameKind::User,
    };
    let first = stack.len();
    let mut name = Vec::with_capacity(symbol.len());
    for (at, part) in inlined_parts(function).enumerate() {
        name.clear();
        name.extend_from_slice(module);
        name.extend_from_slice(&rust_signs(without_arguments(without_class_letter(part))));
        let name = if name.is_empty() { b"-" } else { &name[..] };
        stack.push(sink.frame(name, if at > 0 { FrameKind::Inlined } else { kind }));
    }
    stack[first..].reverse();
}
