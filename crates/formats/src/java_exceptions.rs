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
//! of are that trace's outermost ones, as `Throwable.printStackTrace` leaves them out. Logs with the root cause first
//! (`%rEx` of logback and log4j) have that trace below it, behind `Wrapped by: `. How much else is in the log, but for
//! the line above a trace, is told.

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

/// Traces that may share frames with each other: real ones have a few causes.
const MAX_LINKED: usize = 1000;

/// How a trace belongs to one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// `Caused by: ` with the indentation of that one.
    Cause,
    /// `Suppressed: `, which is indented further.
    Suppressed,
    /// `Wrapped by: ` with the indentation of that one, which is the cause.
    Wrapper,
}

impl Link {
    fn of(text: &[u8]) -> Option<Link> {
        let links = [
            (&b"Caused by: "[..], Link::Cause),
            (b"Suppressed: ", Link::Suppressed),
            (b"Wrapped by: ", Link::Wrapper),
        ];
        links.into_iter().find(|(start, _)| text.starts_with(start)).map(|(_, link)| link)
    }
}

/// A trace, of which outermost frames may stand in another one only.
#[derive(Default)]
struct Trace {
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// How far its frames are indented.
    indent: usize,
    link: Option<Link>,
    /// How many frames are left out, and where that is said.
    common: Option<(usize, Place, Vec<u8>)>,
    /// The stack is a thread's, and not an exception's.
    is_thread: bool,
}

/// The trace that has the frames which another one lacks.
fn owner(traces: &[Trace], at: usize) -> Option<usize> {
    let Trace { indent, link, .. } = traces[at];
    let (above, below) = (&traces[..at], &traces[at + 1..]);
    let next = below.iter().position(|trace| trace.indent <= indent);
    let is_wrapper = |trace: &Trace| trace.indent == indent && trace.link == Some(Link::Wrapper);
    if let Some(next) = next.filter(|next| is_wrapper(&below[*next])) {
        return Some(at + 1 + next);
    }
    match link? {
        Link::Cause => above
            .iter()
            .rposition(|trace| trace.indent <= indent)
            .filter(|found| above[*found].indent == indent),
        Link::Suppressed | Link::Wrapper => above.iter().rposition(|trace| trace.indent < indent),
    }
}

/// Gives traces the frames that others have, and adds them all.
fn add_all(traces: &mut Vec<Trace>, sink: &mut Sink) -> Result<(), ReadError> {
    for at in 0..traces.len() {
        // An owner may lack frames itself. None is its own: of two neighbours only one refers to the other.
        let lacks = |at: &usize| traces[*at].common.is_some();
        let next = |at: &usize| owner(traces, *at).filter(lacks);
        let path: Vec<usize> = std::iter::successors(Some(at).filter(lacks), next).collect();
        for at in path.into_iter().rev() {
            let Some((count, place, text)) = traces[at].common.take() else { continue };
            let owner = owner(traces, at).map_or(&[][..], |owner| &traces[owner].stack);
            let Some(start) = owner.len().checked_sub(count) else {
                let reason = "the trace that it belongs to does not have so many frames";
                sink.skip(place, reason, &text)?;
                continue;
            };
            let common = owner[start..].to_vec();
            traces[at].stack.extend(common);
        }
    }
    for mut trace in traces.drain(..).filter(|trace| !trace.is_thread) {
        sink.end_stack(&mut trace.stack, None, 1);
    }
    Ok(())
}

/// What is read of a log, line after line.
#[derive(Default)]
struct Traces {
    /// The one that is read.
    trace: Trace,
    /// Those above it that it may belong to, or that may belong to it.
    linked: Vec<Trace>,
    /// Whether a line since the last trace says what was thrown, or parts them.
    is_begun: bool,
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
            self.begin(indentation(line.text), place);
            self.trace.stack.push(sink.frame(&name, FrameKind::User));
            return Ok(());
        }
        let (text, indent) = (line.text.trim_ascii(), indentation(line.text));
        if let Some(count) = common_frames(text) {
            self.begin(indent, place);
            self.trace.common = Some((count, place, text.to_vec()));
            return self.end(sink);
        }
        let is_within = !self.trace.stack.is_empty();
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
        self.end(sink)?;
        self.others += u64::from(self.is_other);
        self.is_other = !text.is_empty();
        // Its message may have several lines.
        self.trace.link = link.or(self.trace.link);
        self.is_begun = self.is_begun || text.is_empty() || names_throwable(text);
        if text.starts_with(b"java.lang.Thread.State: ") {
            self.threads.add(place);
            self.trace.is_thread = true;
        }
        Ok(())
    }

    /// Begins a trace, if none is begun.
    fn begin(&mut self, indent: usize, place: Place) {
        if !self.trace.stack.is_empty() {
            return;
        }
        if !self.is_begun && !self.linked.is_empty() {
            self.unbegun.add(place);
        }
        self.trace.indent = indent;
        self.is_other = false;
    }

    /// Ends the trace, if there is one.
    fn end(&mut self, sink: &mut Sink) -> Result<(), ReadError> {
        if self.trace.stack.is_empty() && self.trace.common.is_none() {
            return Ok(());
        }
        if self.trace.link.is_none() || self.linked.len() >= MAX_LINKED {
            add_all(&mut self.linked, sink)?;
        }
        self.linked.push(std::mem::take(&mut self.trace));
        self.is_begun = false;
        Ok(())
    }

    fn finish(mut self, sink: &mut Sink) -> Result<(), ReadError> {
        self.end(sink)?;
        add_all(&mut self.linked, sink)?;
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
    use super::MAX_LINKED;
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
        let refused =
            "line 6 cannot be read: the trace that it belongs to does not have so many frames";
        check(&format!("{TRACE}{cause}"), 2, &[], Some(refused));
        let cause = cause.replace('3', "2");
        check(&format!("{TRACE}{cause}"), 2, &[], None);
        let of_logback = cause.replace("2 more", "2 common frames omitted");
        check(&format!("{TRACE}{of_logback}"), 2, &[], None);
    }

    #[test]
    fn wrappers_have_the_frames_that_their_cause_lacks() {
        let cause = "a.Timeout\n\tat a.B.d(B.java:4)\n\t... 2 more\nWrapped by: ";
        check(&format!("{cause}{TRACE}"), 2, &[], None);
        let refused =
            "line 3 cannot be read: the trace that it belongs to does not have so many frames";
        check(&format!("{cause}{TRACE}").replace("2 more", "3 more"), 2, &[], Some(refused));
        let other = format!("{cause}{TRACE}").replace("Wrapped by: ", "");
        check(&other, 2, &[], Some(refused));
        // However many traces belong together, all are counted.
        let many = format!("Caused by: {TRACE}").repeat(MAX_LINKED * 2 + 7);
        check(&many, MAX_LINKED as u64 * 2 + 7, &[], None);
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
