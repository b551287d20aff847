//! The first line of a sample: `java  3245/3270 [001] 30143.481: 10101010 cpu_core/cycles:u/: ...`.
//!
//! `perf script -F` chooses what is in it, and the name of a thread may hold blanks and numbers, so
//! the line is read from what cannot be mistaken: the CPU, the time or the event.

use flame_profile::Nanos;

use super::looks_like_frame;
use crate::names::{is_decimal, number};
use crate::sink::TaskIndex;

/// What the first line of a sample says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header<'l> {
    /// The thread's name; empty where it was not printed.
    pub(super) comm: &'l [u8],
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    /// Name and numbers as they stand in the line.
    pub(super) task: &'l [u8],
    pub(super) cpu: Option<u32>,
    pub(super) time: Option<Nanos>,
    pub(super) period: Option<u64>,
    /// As it stands in the line, without the colon; empty where it was not printed.
    pub(super) event: &'l [u8],
    /// What stands behind the event: arguments of a tracepoint, or the only frame.
    pub(super) rest: &'l [u8],
}

/// An event as the line above its stack has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'l> {
    /// `sched:sched_switch`
    pub(crate) name: &'l [u8],
    /// What stands behind the name.
    pub(crate) arguments: &'l [u8],
    pub(crate) task: Option<TaskIndex>,
    pub(crate) tid: Option<u32>,
    pub(crate) time: Option<Nanos>,
    pub(crate) cpu: Option<u32>,
}

/// A word and where it stands in its line.
#[derive(Clone, Copy)]
struct Word<'l> {
    text: &'l [u8],
    start: usize,
    end: usize,
}

/// This many words at most stand before what a line is recognised by.
const MOST_WORDS: usize = 24;

/// Reads a line; `None` for one that starts no sample.
pub(super) fn parse(line: &[u8]) -> Option<Header<'_>> {
    let (ids, behind) = by_anchor(line).or_else(|| by_event(line))?;
    let comm = line[..ids.start].trim_ascii();
    let (pid, tid) = task_ids(ids.text);
    let task = line[..ids.end].trim_ascii_start();
    let mut header = Header { comm, pid, tid, task, ..Header::default() };
    read_rest(line, behind, &mut header);
    Some(header)
}

/// The task of the line before: the next one is of the same task most of the time.
#[derive(Debug, Default)]
pub(super) struct LastTask {
    /// The line up to the numbers of the task, and where they start.
    start: Vec<u8>,
    ids: usize,
    numbers: (Option<u32>, Option<u32>),
}

impl LastTask {
    /// The line up to the end of the task's numbers.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }
}

/// The same as [`parse`], faster where the task is that of the line before.
pub(super) fn parse_next<'l>(line: &'l [u8], last: &mut LastTask) -> Option<Header<'l>> {
    let end = last.start.len();
    let is_same = end > 0
        && line.get(end).is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        && line.starts_with(&last.start);
    if is_same {
        let next = (Words { line, at: end }).next();
        // What stands before is the same, and was found not to be the task's numbers.
        if let Some(next) = next.filter(|word| is_anchor(word.text)) {
            let (comm, task) = (line[..last.ids].trim_ascii(), line[..end].trim_ascii_start());
            let (pid, tid) = last.numbers;
            let mut header = Header { comm, pid, tid, task, ..Header::default() };
            read_rest(line, next.start, &mut header);
            return Some(header);
        }
    }
    let header = parse(line)?;
    if let Some((ids, _)) = by_anchor(line) {
        last.start.clear();
        last.start.extend_from_slice(&line[..ids.end]);
        (last.ids, last.numbers) = (ids.start, (header.pid, header.tid));
    }
    Some(header)
}

/// Whether a word is a CPU or a time.
fn is_anchor(word: &[u8]) -> bool {
    cpu(word).is_some() || time(word).is_some()
}

/// The words of a line.
struct Words<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Iterator for Words<'l> {
    type Item = Word<'l>;

    fn next(&mut self) -> Option<Word<'l>> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = self.at + self.line[self.at..].iter().position(|byte| !is_blank(byte))?;
        let len = self.line[start..].iter().position(is_blank).unwrap_or(self.line.len() - start);
        self.at = start + len;
        Some(Word { text: &self.line[start..self.at], start, end: self.at })
    }
}

/// Whether a line begins a sample though its first word may pass for an address: there are threads called
/// `dd`, and `  4453  2096.636015: ...` has no name.
pub(super) fn is_sure(line: &[u8]) -> bool {
    parse(line).is_some_and(|header| {
        header.time.is_some() || header.cpu.is_some() || looks_like_frame(header.rest)
    })
}

/// The numbers of the task before a CPU or a time, and where what follows starts.
fn by_anchor(line: &[u8]) -> Option<(Word<'_>, usize)> {
    let (mut before, mut second) = (None::<Word<'_>>, None::<Word<'_>>);
    for word in (Words { line, at: 0 }).take(MOST_WORDS) {
        if is_anchor(word.text) {
            // What `-F +misc` prints stands between.
            let of_second = second.filter(|_| before.is_some_and(|word| is_misc(word.text)));
            let ids = [before, of_second].into_iter().flatten().find(|ids| is_task_ids(ids.text));
            if let Some(ids) = ids {
                return Some((ids, word.start));
            }
        }
        (second, before) = (before, Some(word));
    }
    None
}

/// Without CPU and time: a number, perhaps a period, and an event are what is left.
fn by_event(line: &[u8]) -> Option<(Word<'_>, usize)> {
    let line = line.trim_ascii_end();
    let mut words = [Word { text: b"", start: 0, end: 0 }; MOST_WORDS];
    let found = words.iter_mut().zip(Words { line, at: 0 });
    let count = found.map(|(place, word)| *place = word).count();
    let words = &words[..count];
    let is_event = |word: &Word<'_>| word.text.len() > 1 && word.text.ends_with(b":");
    for (at, ids) in words.iter().enumerate() {
        if !is_task_ids(ids.text) {
            continue;
        }
        match &words[at + 1..] {
            [event, ..] if is_event(event) && !is_period(line, ids) => {
                return Some((*ids, ids.end));
            }
            [period, event, ..] if is_decimal(period.text) && is_event(event) => {
                return Some((*ids, ids.end));
            }
            _ => {}
        }
    }
    None
}

/// Whether a number stands in the columns of a period, of which there are 10: numbers of threads have 7 at most.
fn is_period(line: &[u8], word: &Word<'_>) -> bool {
    let before = &line[..word.start];
    let blanks = before.iter().rev().take_while(|byte| **byte == b' ').count();
    // A blank stands behind each field before it.
    let of_others = usize::from(blanks < before.len());
    blanks + word.text.len() >= 10 + of_others
}

/// What stands behind the numbers of the task.
fn read_rest<'l>(line: &'l [u8], behind: usize, header: &mut Header<'l>) {
    let mut words = Words { line, at: behind };
    let (mut rest, mut number_at) = (behind, behind);
    for word in words.by_ref() {
        rest = word.start;
        if header.time.is_none()
            && header.cpu.is_none()
            && let Some(cpu) = cpu(word.text)
        {
            header.cpu = Some(cpu);
        } else if header.time.is_none()
            && let Some(time) = time(word.text)
        {
            header.time = Some(time);
        } else if header.time.is_none()
            && header.cpu.is_some()
            && (is_flags(word.text) || is_misc(word.text))
        {
            // Interrupts and preemption at a tracepoint, `d.h3.`, and what `-F +misc` prints.
        } else if header.period.is_none() && is_decimal(word.text) {
            (header.period, number_at) = (number(word.text), word.start);
        } else {
            break;
        }
        rest = word.end;
    }
    let text = line[rest..].trim_ascii();
    let first = text.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
    match first.strip_suffix(b":") {
        Some(event) if !event.is_empty() => {
            header.event = event;
            header.rest = text[first.len()..].trim_ascii_start();
        }
        // Without `-F event` a number with something behind it is the address of a frame.
        _ if header.period.is_some() && !text.is_empty() => {
            header.period = None;
            header.rest = line[number_at..].trim_ascii();
        }
        _ => header.rest = text,
    }
}

fn is_task_ids(word: &[u8]) -> bool {
    let (pid, tid) = match word.iter().position(|byte| *byte == b'/') {
        Some(at) => (&word[..at], &word[at + 1..]),
        None => (word, &b"0"[..]),
    };
    let is_number = |text: &[u8]| is_decimal(text.strip_prefix(b"-").unwrap_or(text));
    is_number(pid) && is_number(tid)
}

/// Process and thread; a number alone is that of the thread.
fn task_ids(word: &[u8]) -> (Option<u32>, Option<u32>) {
    match word.iter().position(|byte| *byte == b'/') {
        Some(at) => (number(&word[..at]), number(&word[at + 1..])),
        None => (None, number(word)),
    }
}

/// `[003]`
pub(super) fn cpu(word: &[u8]) -> Option<u32> {
    number(word.strip_prefix(b"[")?.strip_suffix(b"]")?)
}

/// `30143.481555:`, in seconds.
pub(super) fn time(word: &[u8]) -> Option<Nanos> {
    let text = word.strip_suffix(b":")?;
    let (mut seconds, mut nanos, mut places) = (0_u64, 0_u64, None);
    for byte in text {
        match (byte, &mut places) {
            (b'0'..=b'9', None) => {
                seconds = seconds.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            }
            (b'0'..=b'9', Some(places)) if *places < 9 => {
                nanos = nanos * 10 + u64::from(byte - b'0');
                *places += 1;
            }
            (b'.', None) => places = Some(0),
            _ => return None,
        }
    }
    let places = places.filter(|places| *places > 0 && text[0] != b'.')?;
    let nanos = nanos * 10_u64.pow(9 - places);
    Some(Nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

/// `K`, `U`, `Sp`: where a sample was taken, and what an event is about.
pub(super) fn is_misc(word: &[u8]) -> bool {
    word.len() <= 3 && word.iter().all(|byte| b"KUHGgMESFLXVDxp+".contains(byte))
}

/// What `-F flags` and tracepoints have between CPU and time.
fn is_flags(word: &[u8]) -> bool {
    (4..=8).contains(&word.len())
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#'))
        && word.contains(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, comm: &str, ids: (Option<u32>, Option<u32>), rest: (u64, &str, &str)) {
        let header = parse(line.as_bytes()).unwrap_or_else(|| panic!("no header: {line}"));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(text(header.comm), comm, "{line}");
        assert_eq!((header.pid, header.tid), ids, "{line}");
        let found = (header.period.unwrap_or(0), text(header.event), text(header.rest));
        assert_eq!((found.0, &*found.1, &*found.2), rest, "{line}");
    }

    #[test]
    fn headers_are_read_whatever_fields_they_have() {
        let tid = |tid| (None, Some(tid));
        check(
            "dd 29776 666709.771979:   10101010 cpu-clock: ",
            "dd",
            tid(29776),
            (10_101_010, "cpu-clock", ""),
        );
        check("java 3244 cpu-clock: ", "java", tid(3244), (0, "cpu-clock", ""));
        check("java 19983 cycles:", "java", tid(19983), (0, "cycles", ""));
        check(
            "iperf 27409/28744 [000] 441995.133575: cpu-clock: ",
            "iperf",
            (Some(27409), Some(28744)),
            (0, "cpu-clock", ""),
        );
        check(
            "            java  3244 [001] 1.5:  1 cycles:ppp: ",
            "java",
            tid(3244),
            (1, "cycles:ppp", ""),
        );
        check("x 7 1.0: 3 cycles: ", "x", tid(7), (3, "cycles", ""));
        check(
            "redis 7 server 123 [000] 12.345678: 1 cycles: ",
            "redis 7 server",
            tid(123),
            (1, "cycles", ""),
        );
        check("redis 7 server 123 1 cycles: ", "redis 7 server", tid(123), (1, "cycles", ""));
        check("dd 2 1 cycles:", "dd", tid(2), (1, "cycles", ""));
        check("29776 666709.771979: cpu-clock:", "", tid(29776), (0, "cpu-clock", ""));
        check(
            "a b 5 [002] d.h3. 9.1: sched:sched_switch: prev_comm=x prev_pid=5",
            "a b",
            tid(5),
            (0, "sched:sched_switch", "prev_comm=x prev_pid=5"),
        );
        check(
            "cc1 10 [001] 5.000001: 4000 cpu_core/cycles/: ",
            "cc1",
            tid(10),
            (4000, "cpu_core/cycles/", ""),
        );
        check(":-1 -1 [000] 1.0: cycles:", ":-1", (None, None), (0, "cycles", ""));
        check(
            "ls 5 1.5: 2 cycles:  ffff81 do_idle ([kernel.kallsyms])",
            "ls",
            tid(5),
            (2, "cycles", "ffff81 do_idle ([kernel.kallsyms])"),
        );
    }

    #[test]
    fn fields_may_be_missing_and_what_is_no_header_is_none() {
        let tid = |tid| (None, Some(tid));
        check("ls 5 [000] 1.5: ", "ls", tid(5), (0, "", ""));
        check("t 27115 U      1.5:    7 cycles: ", "t", tid(27115), (7, "cycles", ""));
        check("t 5 [001] U      1.5:    7 cycles: ", "t", tid(5), (7, "cycles", ""));
        check("t 5 [001] K     cycles: ", "t", tid(5), (0, "cycles", ""));
        check("a K 5 [001] 1.5:    7 cycles: ", "a K", tid(5), (7, "cycles", ""));
        check("ls 5 1.5:   250000 ", "ls", tid(5), (250_000, "", ""));
        check("ls 5 1.5:   401136 main (/bin/ls)", "ls", tid(5), (0, "", "401136 main (/bin/ls)"));
        let (period, named) = ("   1001001 cycles: 7f a", "          ls    1001001 cycles: 7f a");
        for line in
            ["", "ls", "ls 7", "  7f12 main (/bin/x)", "Warning: x", "a.c:12", period, named]
        {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_read_one_after_the_other_are_what_they_are_alone() {
        let lines = [
            "redis 7 server 123 [000] 12.345678: 1 cycles: ",
            "redis 7 server 123 [001] 12.345679: 2 cycles: ",
            "redis 7 server 123 4.0: 2 cycles: ",
            "redis 7 server 1234 [000] 1.0: 3 cycles: ",
            "redis 7 server 123 [000] 1.0: 3 cycles: ",
            "redis 7 server 123 99 [000] 1.0: 3 cycles: ",
            "redis 7 server 123",
            "redis 7 server 123 1 cycles: ",
            "  x 5/6 [000] 1.0: 3 cycles: ",
            "  x 5/6 [000] 1.0: 401136 main (/x)",
            "x 5/6 [000] 1.0: 3 cycles: ",
            "no header",
        ];
        let mut random = fastrand::Rng::with_seed(5);
        let mut last = LastTask::default();
        for _ in 0..2000 {
            let line = random.choice(lines).unwrap().as_bytes();
            assert_eq!(parse_next(line, &mut last), parse(line));
        }
    }

    #[test]
    fn times_are_nanoseconds() {
        let header = parse(b"a 1 [3] 12.000345: cycles:").unwrap();
        assert_eq!((header.time, header.cpu), (Some(Nanos(12_000_345_000)), Some(3)));
        let header = parse(b"a 1 12.000345678: cycles:").unwrap();
        assert_eq!(header.time, Some(Nanos(12_000_345_678)));
        for word in
            ["1:", "1.:", ".5:", "1.5", "1.0000000001:", "1.2.3:", "99999999999.0:", "-1.0:"]
        {
            assert_eq!(time(word.as_bytes()), None, "{word}");
        }
    }
}
