//! bcc's tools with a frame a line: `profile`, `offcputime`, `stackcount` without `-f`.
//!
//! ```text
//!     finish_task_switch
//!     --
//!     read
//!     main
//!     -                nginx (5036)
//!         17
//! ```
//!
//! Frames are innermost first, those of the kernel before `--` where that is asked for.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::counted::{CountedLine, read_counted};
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_hex, number, without_arguments, without_offset};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskName};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "bcc",
    description: "bcc tools with one frame per line (profile, offcputime, stackcount)",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.is_empty());
    let is_count = |line: &[u8]| line.starts_with(b" ") && is_decimal(line.trim_ascii());
    while let Some(line) = lines.next() {
        let is_task = dashed_task(line.trim_ascii()).is_some() && line.starts_with(b"    -");
        if is_task && lines.next().is_none_or(is_count) {
            return true;
        }
    }
    let header = head.lines().find(|line| !line.is_empty()).unwrap_or_default();
    header.starts_with(b"Tracing ") && header.contains(&b'"') && head.lines().any(is_count)
}

/// `-                nginx (5036)`: the thread that a stack is of.
fn dashed_task(text: &[u8]) -> Option<(&[u8], u32)> {
    let rest = text.strip_prefix(b"- ")?;
    bracketed(rest.trim_ascii_start(), b'(', b')')
}

/// A name and a number in brackets.
fn bracketed(text: &[u8], open: u8, close: u8) -> Option<(&[u8], u32)> {
    let rest = text.strip_suffix(&[close])?;
    let at = memchr::memrchr(open, rest)?;
    let name = rest[..at].strip_suffix(b" ")?;
    Some((name, number(&rest[at + 1..])?)).filter(|(name, _)| !name.is_empty())
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    read_counted(input, sink, |line, sink, stack| {
        let text = line.trim_ascii();
        // Messages start at the margin.
        if !line.first().is_some_and(u8::is_ascii_whitespace) {
            return CountedLine::Nothing;
        }
        if let Some((name, pid)) = dashed_task(text).or_else(|| bracketed(text, b'[', b']')) {
            let (process, tid) = (None, Some(pid));
            return CountedLine::Task(sink.task(TaskName { name, process, pid: Some(pid), tid }));
        }
        if text == b"--" || text == b"-" {
            as_kernel(stack, sink);
            return CountedLine::Nothing;
        }
        let (text, kind) = match text.strip_suffix(b"_[k]") {
            Some(text) => (text, FrameKind::Kernel),
            None => (text, FrameKind::User),
        };
        let text = text.strip_prefix(b"b'").and_then(|t| t.strip_suffix(b"'")).unwrap_or(text);
        stack.push(sink.frame(without_arguments(without_offset(without_address(text))), kind));
        CountedLine::Frames
    })
}

/// With `-v` frames start with their address.
fn without_address(text: &[u8]) -> &[u8] {
    let at = text.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let is_address = text[..at].len() >= 8 && is_hex(&text[..at]);
    if is_address { text[at..].trim_ascii_start() } else { text }
}

/// What stands before the delimiter is the kernel's.
fn as_kernel(stack: &mut [FrameIndex], sink: &mut Sink) {
    for frame in stack {
        *frame = sink.frame_of_kind(*frame, FrameKind::Kernel);
    }
}
