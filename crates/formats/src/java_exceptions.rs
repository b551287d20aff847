//! Stack traces of Java exceptions in a log.
//!
//! ```text
//! 12:00:01 ERROR java.io.IOException: broken pipe
//!     at sun.nio.ch.FileDispatcherImpl.write0(Native Method)
//!     at com.example.Server.reply(Server.java:33)
//! Caused by: java.lang.IllegalStateException
//!     at com.example.Pool.take(Pool.java:9)
//!     ... 12 more
//! ```
//!
//! Each trace counts once, a cause as one of its own.

use std::borrow::Cow;

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::number;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};
use crate::thread_dump::method_name;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "java-exceptions",
    description: "stack traces of Java exceptions in a log",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let frames = head.lines().filter(|line| method(line).is_some()).count();
        frames >= 2 && !head.contains(b"java.lang.Thread.State: ")
    },
    reader: Reader::Stacks(read),
};

/// `    at com.example.Server.reply(Server.java:33)`
fn method(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let bare = line.trim_ascii_start();
    let rest = bare.strip_prefix(b"at ").filter(|_| bare.len() < line.len())?;
    let end = memchr::memchr(b'(', rest)?;
    let name = method_name(rest);
    let is_method = memchr::memchr(b'.', &name).is_some()
        && !rest[..end].contains(&b' ')
        && memchr::memchr(b')', &rest[end..]).is_some();
    is_method.then_some(name)
}

/// `    ... 12 more`
fn common_frames(line: &[u8]) -> Option<usize> {
    number(line.trim_ascii().strip_prefix(b"... ")?.strip_suffix(b" more")?)
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    // The trace before.
    let mut before: Vec<FrameIndex> = Vec::new();
    while let Some(line) = lines.next_line()? {
        if let Some(name) = method(line.text) {
            stack.push(sink.frame(&name, FrameKind::User));
            continue;
        }
        // A cause that was thrown where its trace was caught has no frame that the trace lacks.
        let common = common_frames(line.text).and_then(|count| before.len().checked_sub(count));
        if let (true, Some(start)) = (stack.is_empty(), common) {
            stack.extend_from_slice(&before[start..]);
        }
        // `- waiting on <0x76ab>` and `- locked <0x76ab>` stand among the frames.
        if !line.text.trim_ascii_start().starts_with(b"- ") {
            if !stack.is_empty() {
                before.clone_from(&stack);
            }
            sink.end_stack(&mut stack, None, 1);
        }
    }
    sink.end_stack(&mut stack, None, 1);
    Ok(())
}
