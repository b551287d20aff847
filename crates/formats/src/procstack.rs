//! AIX `procstack PID`, once or many times over.
//!
//! ```text
//! 4260022: /opt/server/bin/server
//! ---------- tid# 18153583 (pthread ID:  1) ----------
//! 0x090000000067e3f4  _event_sleep(??, ??) + 0x514
//! 0x0900000000680ac4  _event_wait(??, ??) + 0x344
//! ```

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_hex, number, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskName};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "procstack",
    description: "AIX stacks (procstack PID)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| line.starts_with(b"---------- tid# "))
            || (head.lines().next().is_some_and(|line| process(line).is_some())
                && head.lines().nth(1).is_some_and(|line| frame(line).is_some()))
    },
    reader: Reader::Stacks(read),
};

/// `4260022: /opt/server/bin/server`
fn process(line: &[u8]) -> Option<(u32, &[u8])> {
    let at = memchr::memmem::find(line, b": ")?;
    Some((number(&line[..at])?, line[at + 2..].trim_ascii()))
}

/// `0x090000000067e3f4  _event_sleep(??, ??) + 0x514`: the function, or the address where it has no
/// name.
fn frame(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"0x")?;
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    if !is_hex(&rest[..end]) {
        return None;
    }
    let symbol = rest[end..].trim_ascii();
    let symbol = match rfind(symbol, b" + 0x") {
        Some(at) => symbol[..at].trim_ascii(),
        None => symbol,
    };
    let name = without_arguments(symbol);
    let is_unknown = name.is_empty() || name == b"????????";
    Some(if is_unknown { &line[..2 + end] } else { name })
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut task = None;
    let mut command: Option<(u32, Vec<u8>)> = None;
    while let Some(line) = lines.next_line()? {
        if let Some(name) = frame(line.text) {
            stack.push(sink.frame(name, FrameKind::User));
            continue;
        }
        sink.end_stack(&mut stack, task, 1);
        if let Some(rest) = line.text.strip_prefix(b"---------- tid# ") {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            let (pid, name) = match &command {
                Some((pid, name)) => (Some(*pid), &name[..]),
                None => (None, &b"[unknown]"[..]),
            };
            let found = TaskName { name, process: None, pid, tid: number(&rest[..end]) };
            task = Some(sink.task(found));
        } else if let Some((pid, path)) = process(line.text) {
            let path = path.split(|byte| *byte == b' ').next().unwrap_or(path);
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let found = TaskName { name, pid: Some(pid), ..TaskName::default() };
            task = Some(sink.task(found));
            command = Some((pid, name.to_vec()));
        }
    }
    sink.end_stack(&mut stack, task, 1);
    Ok(())
}
