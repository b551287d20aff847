//! wallClockProfiler: the full stacks of its report.
//!
//! ```text
//! Full stacks:
//!
//!  60.000% =====================================  (12 samples)
//!        1: poll   (at poll.c:29)
//!        2: wait_for_input   (at server.c:101)
//! ```
//!
//! The innermost frame comes first. Where in a function it stopped is left out, so that a function
//! is one box.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, number, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "wall-clock-profiler",
    description: "wallClockProfiler's report (its full stacks)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.contains(b"Full stacks") && head.lines().any(|line| samples(line).is_some())
    },
    reader: Reader::Stacks(read),
};

/// ` 60.000% =====  (12 samples)`
fn samples(line: &[u8]) -> Option<u64> {
    let text = line.trim_ascii();
    let share = memchr::memchr(b'%', text)?;
    let is_share = text[..share].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let head = text.strip_suffix(b" samples)").or_else(|| text.strip_suffix(b" sample)"))?;
    let at = memchr::memrchr(b'(', head)?;
    number(&head[at + 1..]).filter(|_| is_share)
}

/// `      1: poll   (at poll.c:29)`
fn frame(line: &[u8]) -> Option<&[u8]> {
    let text = line.trim_ascii();
    let colon = memchr::memmem::find(text, b": ").filter(|colon| is_decimal(&text[..*colon]))?;
    let name = &text[colon + 2..];
    let end = rfind(name, b"(at ").unwrap_or(name.len());
    Some(without_arguments(name[..end].trim_ascii()))
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut is_full = false;
    let mut count = 0;
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    while let Some(line) = lines.next_line()? {
        is_full |= line.text.starts_with(b"Full stacks");
        if !is_full {
            continue;
        }
        if let Some(samples) = samples(line.text) {
            sink.end_stack(&mut stack, None, count);
            count = samples;
        } else if let Some(name) = frame(line.text) {
            stack.push(sink.frame(name, FrameKind::User));
        }
    }
    sink.end_stack(&mut stack, None, count);
    Ok(())
}
