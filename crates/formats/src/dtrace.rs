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
//! nothing but the blank line.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::counted::{CountedLine, read_counted};
use crate::head::Head;
use crate::input::Input;
use crate::names::{
    inlined_parts, is_decimal, without_arguments, without_class_letter, without_offset,
};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};

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
    let words: Vec<&[u8]> =
        line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    match &*words {
        [cpu, id, probe] => is_decimal(cpu) && is_decimal(id) && probe.contains(&b':'),
        _ => line.starts_with(b"dtrace: "),
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    read_counted(input, sink, |line, sink, stack| {
        let text = line.trim_ascii();
        if is_header(text) || is_probe(line) {
            return CountedLine::Nothing;
        }
        push_frames(text, sink, stack);
        CountedLine::Frames
    })
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
        name.extend_from_slice(without_arguments(without_class_letter(part)));
        let name = if name.is_empty() { b"-" } else { &name[..] };
        stack.push(sink.frame(name, if at > 0 { FrameKind::Inlined } else { kind }));
    }
    stack[first..].reverse();
}
