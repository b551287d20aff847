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
//! Each trace counts once, a cause as one of its own. What else is in the log, but for the line above a trace, is
//! counted as not read.

use std::borrow::Cow;

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::lines::Line;
use crate::names::number;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};
use crate::skipped::Place;
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

/// `    at com.example.Server.reply(`: a frame that breaks off, or has another form.
fn may_be_frame(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace) && line.trim_ascii().starts_with(b"at ")
}

/// What is read of a log, line after line.
#[derive(Default)]
struct Traces {
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// The trace before.
    before: Vec<FrameIndex>,
    /// The last line that no trace has; 0 where there is none. A trace below it makes it its own.
    number: u64,
    text: Vec<u8>,
}

impl Traces {
    fn take(&mut self, line: &Line<'_>, sink: &mut Sink) -> Result<(), ReadError> {
        if let Some(name) = method(line.text) {
            self.number = 0;
            self.stack.push(sink.frame(&name, FrameKind::User));
            return Ok(());
        }
        let text = line.text.trim_ascii();
        if may_be_frame(line.text) {
            // The trace goes on behind it.
            return sink.skip(Place::Line(line.number), "it is no frame of a method", text);
        }
        // `- waiting on <0x76ab>` and `- locked <0x76ab>` stand among the frames.
        if text.starts_with(b"- ") && !self.stack.is_empty() {
            return Ok(());
        }
        if let Some(count) = common_frames(line.text) {
            // A cause that was thrown where its trace was caught has no frame that the trace lacks.
            let start = self.before.len().checked_sub(count);
            if let (true, Some(start)) = (self.stack.is_empty(), start) {
                self.number = 0;
                self.stack.extend_from_slice(&self.before[start..]);
            }
            self.end(sink);
            return Ok(());
        }
        self.end(sink);
        self.skip_last(sink)?;
        if !text.is_empty() {
            self.number = line.number;
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        Ok(())
    }

    /// Adds the trace that ends.
    fn end(&mut self, sink: &mut Sink) {
        if !self.stack.is_empty() {
            self.before.clone_from(&self.stack);
        }
        sink.end_stack(&mut self.stack, None, 1);
    }

    /// Counts the last line, below which no trace stands.
    fn skip_last(&mut self, sink: &mut Sink) -> Result<(), ReadError> {
        match std::mem::take(&mut self.number) {
            0 => Ok(()),
            number => sink.skip(Place::Line(number), "it is of no stack trace", &self.text),
        }
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut traces = Traces::default();
    while let Some(line) = lines.next_line()? {
        traces.take(&line, sink)?;
    }
    traces.end(sink);
    traces.skip_last(sink)
}
