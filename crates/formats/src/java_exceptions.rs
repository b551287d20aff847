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
//! Each trace counts once, a cause as one of its own: the frames that it shares with the trace which it is the cause
//! of are that trace's outermost ones, as `Throwable.printStackTrace` leaves them out. How much else is in the log,
//! but for the line above a trace, is told.

use std::borrow::Cow;

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::lines::Line;
use crate::names::{number, rfind};
use crate::odd::Odd;
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

/// `    ... 12 more`, which logback calls `... 12 common frames omitted`.
fn common_frames(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"... ")?;
    let count =
        rest.strip_suffix(b" more").or_else(|| rest.strip_suffix(b" common frames omitted"));
    number(count?)
}

/// How far a line is indented.
fn indentation(line: &[u8]) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// Whether a line says what was thrown: its class stands before a colon, or last.
fn names_throwable(text: &[u8]) -> bool {
    let has = |part: &[u8]| rfind(text, part).is_some();
    let is_class = |word: &[u8]| {
        let last = word.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        last.len() < word.len() && last.first().is_some_and(u8::is_ascii_uppercase)
    };
    let mut words = text.split(|byte| *byte == b' ').rev();
    words.next().is_some_and(is_class)
        || words.any(|word| word.strip_suffix(b":").is_some_and(is_class))
        || has(b"Exception")
        || has(b"Error")
        || has(b"Throwable")
}

/// How a trace belongs to one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// `Caused by: ` with the indentation of that one.
    Cause,
    /// `Suppressed: `, which is indented further.
    Suppressed,
}

impl Link {
    fn of(text: &[u8]) -> Option<Link> {
        if text.starts_with(b"Caused by: ") {
            return Some(Link::Cause);
        }
        text.starts_with(b"Suppressed: ").then_some(Link::Suppressed)
    }
}

/// What is read of a log, line after line.
#[derive(Default)]
struct Traces {
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// How far its frames are indented.
    indent: usize,
    link: Option<Link>,
    /// The traces that the next one may belong to, with their indentation: each stands further in than the last.
    above: Vec<(usize, Vec<FrameIndex>)>,
    /// Whether a line since the last trace says what was thrown, or parts them.
    is_begun: bool,
    /// The stack is a thread's, and not an exception's.
    is_thread: bool,
    /// The last line is of no trace; a trace below it makes it its own.
    is_other: bool,
    others: u64,
    threads: Odd,
    /// Traces that nothing begins.
    unbegun: Odd,
}

impl Traces {
    fn take(&mut self, line: &Line<'_>, sink: &mut Sink) -> Result<(), ReadError> {
        let place = Place::Line(line.number);
        if let Some(name) = method(line.text) {
            if self.stack.is_empty() {
                self.begin(indentation(line.text), place);
            }
            self.stack.push(sink.frame(&name, FrameKind::User));
            return Ok(());
        }
        let (text, indent) = (line.text.trim_ascii(), indentation(line.text));
        if let Some(count) = common_frames(text) {
            if self.stack.is_empty() {
                self.begin(indent, place);
            }
            let is_whole = self.take_common(count);
            self.end(sink);
            let reason = "the trace above it does not have so many frames";
            return if is_whole { Ok(()) } else { sink.skip(place, reason, text) };
        }
        let is_within = !self.stack.is_empty();
        // `- waiting on <0x76ab>` and `- locked <0x76ab>` stand among the frames.
        if is_within && text.starts_with(b"- ") {
            return Ok(());
        }
        let link = Link::of(text);
        if indent > 0
            && !text.is_empty()
            && link.is_none()
            && (is_within || text.starts_with(b"at "))
        {
            // A frame that breaks off, or has another form: the trace goes on behind it.
            return sink.skip(place, "it is no frame of a method", text);
        }
        self.end(sink);
        self.others += u64::from(self.is_other);
        self.is_other = !text.is_empty();
        // Its message may have several lines.
        self.link = link.or(self.link);
        self.is_begun = self.is_begun || text.is_empty() || names_throwable(text);
        if text.starts_with(b"java.lang.Thread.State: ") {
            self.threads.add(place);
            self.is_thread = true;
        }
        Ok(())
    }

    fn begin(&mut self, indent: usize, place: Place) {
        if !self.is_begun && !self.above.is_empty() {
            self.unbegun.add(place);
        }
        self.indent = indent;
        self.is_other = false;
    }

    /// Takes so many outermost frames from the trace that this one belongs to; false where there are not so many.
    fn take_common(&mut self, count: usize) -> bool {
        let is_above = |(indent, _): &&(usize, Vec<FrameIndex>)| match self.link {
            Some(Link::Cause) => *indent == self.indent,
            Some(Link::Suppressed) => *indent < self.indent,
            None => false,
        };
        let above = self.above.iter().rfind(is_above).map_or(&[][..], |(_, stack)| stack);
        let start = above.len().checked_sub(count);
        start.is_some_and(|start| {
            self.stack.extend_from_slice(&above[start..]);
            true
        })
    }

    /// Adds the trace that ends, if there is one.
    fn end(&mut self, sink: &mut Sink) {
        if self.stack.is_empty() {
            return;
        }
        let first_left = match self.link {
            None => 0,
            Some(_) => self.above.partition_point(|(indent, _)| *indent < self.indent),
        };
        self.above.truncate(first_left);
        self.above.push((self.indent, self.stack.clone()));
        (self.link, self.is_begun) = (None, false);
        match std::mem::take(&mut self.is_thread) {
            true => self.stack.clear(),
            false => sink.end_stack(&mut self.stack, None, 1),
        }
    }

    fn finish(mut self, sink: &mut Sink) -> Result<(), ReadError> {
        self.end(sink);
        let others = self.others + u64::from(self.is_other);
        if others > 0 {
            sink.note(format!("lines of the log that are of no stack trace: {others}"));
        }
        self.threads.say("threads of a thread dump", "--from jstack reads them", sink)?;
        let what = "stack traces that no exception stands above";
        self.unbegun.say(what, "each may be the rest of the one before it", sink)
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut traces = Traces::default();
    while let Some(line) = lines.next_line()? {
        traces.take(&line, sink)?;
    }
    traces.finish(sink)
}

#[cfg(test)]
mod tests {
    use crate::{InputContent, ReadOptions, Source, read_input};

    /// The weight of a log, what is said of it, and why it is refused.
    #[track_caller]
    fn check(text: &str, total: u64, notes: &[&str], refused: Option<&str>) {
        let read = |strict| {
            let options = ReadOptions { strict, ..ReadOptions::default() };
            read_input(Source::of_bytes(text.as_bytes().to_vec()).unwrap(), &options)
        };
        let found = read(false).unwrap();
        assert_eq!(found.notes, notes);
        let InputContent::Stacks(stacks) = found.content else { panic!("no stacks") };
        assert_eq!(stacks.to_profile().total(0).0, total);
        let reason = read(true).err().map(|error| error.to_string());
        assert_eq!(reason.as_deref(), refused);
    }

    const TRACE: &str =
        "java.io.IOException: pipe\n\tat a.B.c(B.java:3)\n\tat a.B.main(B.java:9)\n";

    #[test]
    fn lines_between_traces_are_told_and_no_error() {
        let log = format!("12:00 INFO start\n12:01 INFO go\n{TRACE}12:02 INFO; 7\n\n{TRACE}");
        check(&log, 2, &["lines of the log that are of no stack trace: 3"], None);
        let broken = log.replace("(B.java:9)\n12:02", "\n12:02");
        let refused = "line 5 cannot be read: it is no frame of a method";
        check(&broken, 2, &["lines of the log that are of no stack trace: 3"], Some(refused));
    }

    #[test]
    fn lines_within_a_trace_are_an_error() {
        let indented = TRACE.replace("\tat a.B.main", "\tgarbage\n\tat a.B.main");
        let refused = "line 3 cannot be read: it is no frame of a method";
        check(&format!("{indented}{TRACE}"), 2, &[], Some(refused));
        // Another thread's line may part a trace.
        let parted = TRACE.replace("\tat a.B.main", "12:00 INFO go\n\tat a.B.main");
        let said = "stack traces that no exception stands above: 1; each may be the rest of the one before it";
        let refused = format!("line 4 cannot be read: {said}");
        check(&parted, 2, &[said], Some(&refused));
        check(&format!("{TRACE}a.Timeout: late\n\tat a.B.main(B.java:9)\n"), 2, &[], None);
    }

    #[test]
    fn frames_that_no_trace_has_are_said() {
        let cause = "Caused by: a.Timeout\n\tat a.B.d(B.java:4)\n\t... 3 more\n";
        let refused = "line 6 cannot be read: the trace above it does not have so many frames";
        check(&format!("{TRACE}{cause}"), 2, &[], Some(refused));
        let cause = cause.replace('3', "2");
        check(&format!("{TRACE}{cause}"), 2, &[], None);
        let of_logback = cause.replace("2 more", "2 common frames omitted");
        check(&format!("{TRACE}{of_logback}"), 2, &[], None);
    }

    #[test]
    fn threads_of_a_dump_are_no_exceptions() {
        let log = TRACE.repeat(1500);
        let thread =
            "\"main\" #1 prio=5\n   java.lang.Thread.State: RUNNABLE\n\tat a.B.c(B.java:3)\n\n";
        let said = "threads of a thread dump: 2; --from jstack reads them";
        let others = "lines of the log that are of no stack trace: 3";
        let refused = format!("line 4503 cannot be read: {said}");
        let dump = format!("{log}Full thread dump\n{thread}{thread}{TRACE}");
        check(&dump, 1501, &[others, said], Some(&refused));
    }
}
