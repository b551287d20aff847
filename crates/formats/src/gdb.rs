//! Backtraces of gdb: `thread apply all bt`, once or many times over.
//!
//! ```text
//! Thread 2 (Thread 0x7f0a (LWP 4243) "worker"):
//! #0  0x00007f01 in poll () from /lib/libc.so.6
//! #1  0x00401136 in wait_for<int, char> (n=1, s=0x0) at wait.cc:12
//! ```
//!
//! Each stack counts once. What a terminal's width made gdb write on further lines belongs to the frame
//! above; variables (`bt full`) are left out. Stacks of a crash that systemd-coredump or a sanitizer
//! printed have the same form, but for blanks before it.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::foreign::Foreign;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_within_word, number, operator_len, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskName};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "gdb",
    description: "gdb backtraces (gdb -batch -ex 'thread apply all bt' -p PID), pstack",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| frame_of(line).is_some())
            && !head.lines().any(|line| line.starts_with(b"TID "))
    },
    reader: Reader::Stacks(read),
};

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut task = None;
    // The frame whose lines are being read; empty between frames.
    let mut frame: Vec<u8> = Vec::new();
    let mut foreign = Foreign::to(FORMAT.name);
    while let Some(line) = lines.next_line()? {
        if foreign.takes(&line, sink)? {
            push(&mut frame, &mut stack, sink);
            sink.end_stack(&mut stack, task, 1);
            continue;
        }
        if !frame.is_empty() && is_continued(line.text) {
            frame.push(b' ');
            frame.extend_from_slice(line.text.trim_ascii());
            continue;
        }
        push(&mut frame, &mut stack, sink);
        if let Some(found) = thread(line.text) {
            sink.end_stack(&mut stack, task, 1);
            task = found.map(|found| sink.task(found));
            continue;
        }
        let Some((level, text)) = frame_of(line.text) else { continue };
        if level == 0 {
            sink.end_stack(&mut stack, task, 1);
        }
        frame.extend_from_slice(text);
    }
    push(&mut frame, &mut stack, sink);
    sink.end_stack(&mut stack, task, 1);
    Ok(())
}

/// Puts the frame that is complete on the stack.
fn push(frame: &mut Vec<u8>, stack: &mut Vec<FrameIndex>, sink: &mut Sink) {
    if !frame.is_empty() {
        stack.push(sink.frame(&function(frame), FrameKind::User));
        frame.clear();
    }
}

/// Whether a line goes on with the frame above it: `    s=0x0) at wait.cc:12`, `   from /lib/libc.so.6`.
/// Variables stand further in.
fn is_continued(line: &[u8]) -> bool {
    matches!(line, [b' ', b' ', b' ', rest @ ..]
        if !matches!(rest, [] | [b' ', b' ' | b'\t', ..] | [b'#' | b'\t', ..] | [b' ', b'#', ..]))
}

/// `Thread 2 (Thread 0x7f0a (LWP 4243) "worker"):`, also `Thread 2 (LWP 4243):`, which has no name
/// that tells more than its number.
fn thread(line: &[u8]) -> Option<Option<TaskName<'_>>> {
    let line = line.trim_ascii();
    if line.starts_with(b"Stack trace of thread ") {
        return Some(None);
    }
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
    let rest = line.trim_ascii_start().strip_prefix(b"#")?;
    let end = memchr::memchr(b' ', rest).filter(|end| is_decimal(&rest[..*end]))?;
    let text = rest[end..].trim_ascii();
    Some((number(&rest[..end])?, text)).filter(|_| is_frame(text))
}

/// Whether it is a frame of gdb's, and not a line of another list: `#0 /srv/index.php(12): run()`.
fn is_frame(text: &[u8]) -> bool {
    text.starts_with(b"0x") || text.starts_with(b"<") || memchr::memmem::find(text, b" (").is_some()
}

fn function(text: &[u8]) -> Vec<u8> {
    let text = match text.strip_prefix(b"0x") {
        Some(rest) => {
            let digits = rest.iter().position(|byte| !byte.is_ascii_hexdigit());
            let (digits, behind) = rest.split_at(digits.unwrap_or(rest.len()));
            let behind = behind.trim_ascii_start();
            if digits.is_empty() || behind.is_empty() {
                return text.to_vec();
            }
            // systemd-coredump has the function behind the address.
            behind.strip_prefix(b"in ").unwrap_or(behind)
        }
        None => text,
    };
    let end = end_of_name(text);
    let name = without_arguments(text[..end].trim_ascii());
    match (name, image(text)) {
        (b"??" | b"n/a" | b"", Some(image)) => [b"[", image, b"]"].concat(),
        (b"??" | b"n/a" | b"", None) => b"[unknown]".to_vec(),
        _ => name.to_vec(),
    }
}

/// `?? () from /lib/libc.so.6`, `n/a (libc.so.6 + 0x3e)`, `(/lib/libc.so.6+0x3e)`: the file's name.
fn image(text: &[u8]) -> Option<&[u8]> {
    let path = match rfind(text, b" from ") {
        Some(at) => text[at + 6..].trim_ascii(),
        None => {
            let mut brackets = text.split(|byte| *byte == b'(').skip(1);
            let path = brackets.find_map(|bracket| {
                let bracket = bracket.split(|byte| *byte == b')').next()?;
                Some(&bracket[..memchr::memchr(b'+', bracket)?])
            });
            path?.trim_ascii()
        }
    };
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    (!base.is_empty()).then_some(base)
}

/// Where the blank before the arguments' bracket is: brackets within templates belong to the name.
fn end_of_name(text: &[u8]) -> usize {
    let mut depth = 0_i32;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"operator") && !is_within_word(text, at) {
            at += operator_len(rest);
            continue;
        }
        match rest[0] {
            b'<' | b'{' => depth += 1,
            b'>' | b'}' if at > 0 && text[at - 1] != b'-' => depth -= 1,
            b'(' if at == 0 && !rest.starts_with(b"(anonymous ") => return 0,
            b' ' if depth <= 0 && rest.get(1) == Some(&b'(') => return at,
            _ => {}
        }
        at += 1;
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
            (
                "0x3 in T<int, long>::operator< (o=..., this=0x7) at t.cc:14",
                "T<int, long>::operator<",
            ),
            (
                "0x4 in std::operator<< <std::char_traits<char> > (o=..., s=0x1) at ostream:1",
                "std::operator<< <std::char_traits<char> >",
            ),
            ("0x5 in S::operator-> (this=0x1) at t.cc:1", "S::operator->"),
            ("0x00007f01 raise (libc.so.6 + 0x3e987)", "raise"),
            ("0x00007f01 n/a (libc.so.6 + 0x3e987)", "[libc.so.6]"),
            ("0x4a5 in parse(char const*, int) /src/a.cc:12:3", "parse"),
            ("0x4a5 (/usr/lib/libz.so.1+0x3e) (BuildId: 5f3a)", "[libz.so.1]"),
            ("0x4a5", "0x4a5"),
        ] {
            let found = function(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expect, "{text}");
        }
    }
}
