//! Stacks of Python: `faulthandler.dump_traceback`, and `py-spy dump`.
//!
//! ```text
//! Thread 0x00007f01 (most recent call first):
//!   File "/srv/app.py", line 12 in handle
//!   File "/srv/app.py", line 30 in main
//! ```
//!
//! ```text
//! Process 4242: python3 app.py
//! Thread 4242 (active): "MainThread"
//!     handle (app.py:12)
//!         Arguments:
//!             request: <Request at 0x7f01>
//!     main (app.py:30)
//! ```
//!
//! Variables (`py-spy dump --locals`) are left out. Lines are left out of the frames: a function that was met at several of them is one box.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::foreign::Foreign;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, number, rfind};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskName};

pub(crate) const FAULTHANDLER: InputFormat = InputFormat {
    name: "faulthandler",
    description: "Python's faulthandler.dump_traceback and dump_traceback_later",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| line.trim_ascii_end().ends_with(b"(most recent call first):"))
            && head.lines().any(|line| file_frame(line).is_some())
    },
    reader: Reader::Stacks(|input, sink| {
        read(input, sink, FAULTHANDLER.name, (file_frame, is_fault_header))
    }),
};

pub(crate) const PY_SPY_DUMP: InputFormat = InputFormat {
    name: "py-spy-dump",
    description: "py-spy dump (py-spy record -f raw writes folded text)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| py_spy_thread(line).is_some())
            && head.lines().any(|line| py_spy_frame(line).is_some())
    },
    reader: Reader::Stacks(|input, sink| {
        read(input, sink, PY_SPY_DUMP.name, (py_spy_frame, |line| !line.is_empty()))
    }),
};

/// `  File "/srv/app.py", line 12 in handle` is `handle (app.py)`.
fn file_frame(line: &[u8]) -> Option<Vec<u8>> {
    let rest = line.trim_ascii_start().strip_prefix(b"File \"")?;
    let at = rfind(rest, b"\", line ")?;
    let behind = &rest[at + b"\", line ".len()..];
    let end = memchr::memmem::find(behind, b" in ")?;
    let is_line = is_decimal(&behind[..end]) || &behind[..end] == b"???";
    is_line.then(|| in_file(behind[end + 4..].trim_ascii(), &rest[..at]))
}

/// `    handle (app.py:12)`; variables stand further in.
fn py_spy_frame(line: &[u8]) -> Option<Vec<u8>> {
    let text = line.strip_prefix(b"    ").filter(|text| !text.starts_with(b" "))?;
    let text = text.trim_ascii_end().strip_suffix(b")")?;
    let at = rfind(text, b" (")?;
    let place = &text[at + 2..];
    let colon = memchr::memrchr(b':', place).filter(|colon| is_decimal(&place[colon + 1..]));
    let file = &place[..colon.unwrap_or(place.len())];
    Some(in_file(&text[..at], file))
}

fn in_file(function: &[u8], file: &[u8]) -> Vec<u8> {
    let base = file.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(file);
    [function, b" (", base, b")"].concat()
}

/// `Thread 0x00007f01 [worker] (most recent call first):`, `Current thread 0x...`.
fn is_fault_header(line: &[u8]) -> bool {
    line.ends_with(b"(most recent call first):")
}

/// `Thread 4242 (active+gil): "MainThread"`: the number and the name.
fn py_spy_thread(line: &[u8]) -> Option<(u32, &[u8])> {
    let rest = line.strip_prefix(b"Thread ")?;
    let end = memchr::memmem::find(rest, b" (")?;
    let name = match memchr::memmem::find(rest, b"\"") {
        Some(at) => rest[at + 1..].trim_ascii_end().strip_suffix(b"\"")?,
        None => &line[..b"Thread ".len() + end],
    };
    Some((number(&rest[..end])?, name))
}

/// What a line is.
type OfLine<T> = fn(&[u8]) -> T;

fn read(
    input: &mut Input<'_>,
    sink: &mut Sink,
    own: &'static str,
    (frame, is_header): (OfLine<Option<Vec<u8>>>, OfLine<bool>),
) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut task = None;
    let mut foreign = Foreign::to(own);
    while let Some(line) = lines.next_line()? {
        if foreign.takes(&line, sink)? {
            sink.end_stack(&mut stack, task, 1);
            continue;
        }
        if let Some(name) = frame(line.text) {
            stack.push(sink.frame(&name, FrameKind::User));
            continue;
        }
        if line.text.starts_with(b"        ") {
            continue;
        }
        sink.end_stack(&mut stack, task, 1);
        if is_header(line.text.trim_ascii_end()) {
            task = py_spy_thread(line.text).map(|(tid, name)| {
                sink.task(TaskName { name, tid: Some(tid), ..TaskName::default() })
            });
        }
    }
    sink.end_stack(&mut stack, task, 1);
    Ok(())
}
