//! Lines of another profiler's text in a text that has lines of many kinds: files put together, a script that
//! called two tools.
//!
//! Debuggers and logs print so much besides stacks that what is unknown there is not worth a word; what begins
//! another text is, and everything behind it: its frames would be taken for those of the stack before.

use crate::ReadError;
use crate::head::Head;
use crate::lines::Line;
use crate::names::is_decimal;
use crate::sink::Sink;
use crate::skipped::Place;

/// Keeps another profiler's lines out of what is read.
#[derive(Debug)]
pub(crate) struct Foreign {
    /// The format that is read.
    own: &'static str,
    /// Whether anything may stand in it, as in a log.
    is_log: bool,
    /// The format of the lines that are left out.
    other: Option<&'static str>,
}

impl Foreign {
    /// For a text that a tool wrote.
    pub(crate) fn to(own: &'static str) -> Foreign {
        Foreign { own, is_log: false, other: None }
    }

    /// For one that may be the log of a program.
    pub(crate) fn to_log(own: &'static str) -> Foreign {
        Foreign { is_log: true, ..Foreign::to(own) }
    }

    /// Whether a line is another profiler's, which is counted then.
    ///
    /// # Errors
    /// Where nothing may be left out.
    pub(crate) fn takes(&mut self, line: &Line<'_>, sink: &mut Sink) -> Result<bool, ReadError> {
        let begun = begun_by(line.text);
        if begun.is_some() {
            self.other = begun.filter(|format| *format != self.own);
        }
        let is_folded = || begun.is_none() && !self.is_log && is_folded(line.text);
        let Some(format) = self.other.or_else(|| is_folded().then_some("folded")) else {
            return Ok(false);
        };
        if !line.text.trim_ascii().is_empty() {
            let reason = format!("it is of another format: {format}");
            sink.skip(Place::Line(line.number), &reason, line.text)?;
        }
        Ok(true)
    }
}

/// The format of which a text or a thread begins with a line.
fn begun_by(line: &[u8]) -> Option<&'static str> {
    let starts = |start: &[u8]| line.starts_with(start);
    // `TID 4242:`, `PID 4242 - process`, `Thread 2 (`
    let behind_number = |start: &[u8]| {
        let rest = line.strip_prefix(start)?;
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        (end > 0).then_some(&rest[end..])
    };
    match line.first()? {
        b'T' if behind_number(b"TID ") == Some(b":") => Some("eu-stack"),
        b'P' if behind_number(b"PID ")?.starts_with(b" - ") => Some("eu-stack"),
        b'T' if line.ends_with(b"(most recent call first):") => Some("faulthandler"),
        b'T' => match behind_number(b"Thread ")?.strip_prefix(b" (")? {
            rest if rest.starts_with(b"Thread 0x") || rest.starts_with(b"LWP ") => Some("gdb"),
            rest if rest.starts_with(b"active") || rest.starts_with(b"idle") => Some("py-spy-dump"),
            _ => None,
        },
        b'F' if starts(b"Full thread dump ") => Some("jstack"),
        b't' if starts(b"time_unit: ") => Some("massif"),
        b's' if starts(b"snapshot=") => Some("massif"),
        b'h' if starts(b"heap_tree=") => Some("massif"),
        b'#' if starts(b"# callgrind format") => Some("callgrind"),
        _ => None,
    }
}

/// `main;parse;read 12`
fn is_folded(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(blank) = memchr::memrchr(b' ', line) else { return false };
    let (stack, count) = (&line[..blank], &line[blank + 1..]);
    is_decimal(count)
        && memchr::memchr(b';', stack).is_some()
        // Frames have a number; variables are indented or have a sign of equality, and source lines stand behind their number and a tab.
        && !matches!(stack[0], b' ' | b'\t' | b'#')
        && memchr::memchr(b'\t', stack).is_none()
        && memchr::memmem::find(stack, b" = ").is_none()
}

/// Whether a text begins with a folded line: what stands behind it may be another's, but the text is not.
pub(crate) fn begins_folded(head: &Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty());
    lines.find(|line| !line.starts_with(b"#")).is_some_and(|line| {
        let mut words = line.trim_ascii_end().rsplit(|byte| *byte == b' ');
        // `main 12`, but not `version: 1`
        let mut is_frame = || {
            words.next().is_some_and(is_decimal)
                && words.next().is_some_and(|word| !word.is_empty())
                && !line.iter().any(|byte| matches!(byte, b':' | b'='))
        };
        is_folded(line) || is_frame()
    })
}

/// Where a text that begins with folded lines goes on as callgrind's, whose costs would pass for stacks (`16 400`):
/// the number of that line, and where it starts.
pub(crate) fn callgrind_behind_folded(head: &Head<'_>) -> Option<(u64, usize)> {
    if !begins_folded(head) {
        return None;
    }
    let (mut at, mut keys) = (0, None);
    for (number, line) in (1..).zip(head.bytes().split(|byte| *byte == b'\n')) {
        let key = memchr::memchr(b':', line).map(|colon| &line[..colon]);
        let is_key =
            key.is_some_and(|key| key.iter().all(u8::is_ascii_lowercase)) && !is_folded(line);
        // `version: 1`, `pid: 4242` and others stand before the line that tells what they are.
        keys = (is_key || line.trim_ascii().is_empty()).then(|| keys.unwrap_or((number, at)));
        if line.starts_with(b"# callgrind format") {
            return Some((number, at));
        } else if is_key && key == Some(b"events") {
            return keys;
        }
        at += line.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;

    /// Which of these lines are left out.
    #[track_caller]
    fn check(mut foreign: Foreign, lines: &[(&str, bool)]) {
        let mut sink = Sink::new(&ReadOptions::default());
        for (number, (line, expect)) in (1..).zip(lines) {
            let line = Line { number, text: line.as_bytes() };
            let is_foreign = foreign.takes(&line, &mut sink).unwrap();
            assert_eq!(is_foreign, *expect, "{}", String::from_utf8_lossy(line.text));
        }
        let count = lines.iter().filter(|(line, is_out)| *is_out && !line.is_empty()).count();
        assert_eq!(sink.finish().1.count(), count as u64);
    }

    #[test]
    fn another_text_is_left_out_up_to_the_next_thread() {
        let gdb = "Thread 2 (Thread 0x7f0a (LWP 4243) \"worker\"):";
        check(
            Foreign::to("gdb"),
            &[
                (gdb, false),
                ("#0  0x00007f01 in poll () from /lib/libc.so.6", false),
                ("PID 4242 - process", true),
                ("TID 4242:", true),
                ("#0  0x00007f01a2 __poll", true),
                ("", true),
                (gdb, false),
                ("#0  0x00007f01 in poll () from /lib/libc.so.6", false),
                ("Thread 4242 (active): \"MainThread\"", true),
                ("    handle (app.py:12)", true),
                ("Thread 1 (LWP 4242):", false),
                ("main;parse 12", true),
                ("Full thread dump OpenJDK 64-Bit Server VM (17.0.15 mixed mode):", true),
                ("\"main\" #1 prio=5 os_prio=0", true),
            ],
        );
    }

    #[test]
    fn what_debuggers_and_logs_print_besides_is_not_another_text() {
        let lines = [
            "[New LWP 13355]",
            "Using host libthread_db library \"/lib/x86_64-linux-gnu/libthread_db.so.1\".",
            "__futex_wait (private=<optimized out>, op=393) at ./nptl/futex-internal.c:57",
            "        buf = \"a;b\", '\\000' <repeats 12 times>, n = 5",
            "#3  0x0000401136 - 1 pack::<[u8; 8]> 12",
            "rest = {a = \"x;y\"}, n = 12",
            "57\t  for (i = 0; i < 10; i++) n += 12",
            "48\t../sysdeps/unix/sysv/linux/clock_nanosleep.c: No such file or directory.",
            "[Inferior 1 (process 13353) detached]",
            "Thread 1 \"python3\" received signal SIGINT, Interrupt.",
        ];
        check(Foreign::to("gdb"), &lines.map(|line| (line, false)));
        let log = "GET /index;jsessionid=7 200";
        check(Foreign::to_log("jstack"), &[(log, false), (lines[0], false)]);
    }

    #[track_caller]
    fn check_behind(text: &str, expect: Option<(u64, usize)>) {
        let head = Head::new(text.as_bytes());
        assert_eq!(callgrind_behind_folded(&head), expect, "{text}");
    }

    #[test]
    fn callgrind_behind_folded_lines_begins_with_its_keys() {
        let callgrind = "version: 1\npid: 42\nevents: Ir\nfn=main\n16 400\n";
        check_behind(&format!("main;f 5\ng;h 3\n{callgrind}"), Some((3, 15)));
        check_behind(&format!("main 5\n# callgrind format\n{callgrind}"), Some((2, 7)));
        check_behind(callgrind, None);
        check_behind("main;f 5\nevents: a;b 7\nevents: 4\nnt::f;g 7\n", Some((3, 23)));
        check_behind("main;f 5\nstd::events: read;b 7\n", None);
    }
}
