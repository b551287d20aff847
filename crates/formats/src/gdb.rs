//! Backtraces of gdb: `thread apply all bt`, once or many times over.
//!
//! ```text
//! Thread 2 (Thread 0x7f0a (LWP 4243) "worker"):
//! #0  0x00007f01 in poll () from /lib/libc.so.6
//! #1  0x00401136 in wait_for<int, char> (n=1, s=0x0) at wait.cc:12
//! ```
//!
//! Each stack counts once. Arguments may go on in further lines, which are left out.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_hex, number, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskName};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "gdb",
    description: "gdb backtraces (gdb -batch -ex 'thread apply all bt' -p PID), pstack",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| frame_of(line).is_some_and(|(level, _)| level == 0))
            && !head.lines().any(|line| line.starts_with(b"TID "))
    },
    reader: Reader::Stacks(read),
};

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut task = None;
    while let Some(line) = lines.next_line()? {
        if let Some(found) = thread(line.text) {
            sink.end_stack(&mut stack, task, 1);
            task = found.map(|found| sink.task(found));
            continue;
        }
        let Some((level, text)) = frame_of(line.text) else { continue };
        if level == 0 {
            sink.end_stack(&mut stack, task, 1);
        }
        let frame = sink.frame(&function(text), FrameKind::User);
        stack.push(frame);
    }
    sink.end_stack(&mut stack, task, 1);
    Ok(())
}

/// `Thread 2 (Thread 0x7f0a (LWP 4243) "worker"):`, also `Thread 2 (LWP 4243):`, which has no name
/// that tells more than its number.
fn thread(line: &[u8]) -> Option<Option<TaskName<'_>>> {
    let rest = line.strip_prefix(b"Thread ")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let behind = rest[end..].strip_prefix(b" (")?;
    let tid = memchr::memmem::find(behind, b"LWP ").and_then(|at| {
        let digits = &behind[at + 4..];
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        number(&digits[..end])
    });
    let quoted = memchr::memchr(b'"', behind).and_then(|at| {
        let name = &behind[at + 1..];
        Some(&name[..memchr::memchr(b'"', name)?])
    });
    Some(quoted.map(|name| TaskName { name, tid, ..TaskName::default() }))
}

/// `#12 0x... in f (...)`: the number and what stands behind it.
fn frame_of(line: &[u8]) -> Option<(u32, &[u8])> {
    let rest = line.strip_prefix(b"#")?;
    let end = memchr::memchr(b' ', rest).filter(|end| is_decimal(&rest[..*end]))?;
    Some((number(&rest[..end])?, rest[end..].trim_ascii()))
}

fn function(text: &[u8]) -> Vec<u8> {
    let text = match text.strip_prefix(b"0x") {
        Some(rest) => match memchr::memmem::find(rest, b" in ") {
            Some(at) if is_hex(&rest[..at]) => &rest[at + 4..],
            _ => return text.to_vec(),
        },
        None => text,
    };
    let name = without_arguments(&text[..end_of_name(text)]);
    if name != b"??" {
        return name.to_vec();
    }
    // `?? () from /lib/libc.so.6`
    match memchr::memmem::rfind(text, b" from ") {
        Some(at) => {
            let path = &text[at + 6..];
            let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            [b"[", base, b"]"].concat()
        }
        None => b"[unknown]".to_vec(),
    }
}

/// Where the blank before the arguments' bracket is: brackets within templates belong to the name.
fn end_of_name(text: &[u8]) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'<' | b'{' => depth += 1,
            b'>' | b'}' if at > 0 && text[at - 1] != b'-' => depth -= 1,
            b' ' if depth <= 0 && text.get(at + 1) == Some(&b'(') => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_keep_templates_and_lose_arguments() {
        for (text, expect) in [
            ("0x00007f01 in poll () from /lib/libc.so.6", "poll"),
            ("0x1 in foo<int, char> (a=1) at x.cc:3", "foo<int, char>"),
            ("main (argc=1, argv=0x7ff) at m.c:4", "main"),
            ("ns::(anonymous namespace)::f (this=0x1) at a.cc:1", "ns::(anonymous namespace)::f"),
            ("0x2 in S::operator() (this=0x1) at a.cc:1", "S::operator()"),
            (
                "0x2 in std::function<void (int)>::operator()(int) const (a=1) at f:1",
                "std::function<void (int)>::operator()",
            ),
            ("0x00007f01 in ?? () from /usr/lib/libc.so.6", "[libc.so.6]"),
            ("0x00007f01 in ?? ()", "[unknown]"),
            ("<signal handler called>", "<signal handler called>"),
        ] {
            let found = function(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expect, "{text}");
        }
    }
}
