//! Lines that only their columns tell apart: `-F ip,sym`, `-F comm,period,ip,sym`, `-F time,ip,sym`.
//!
//! perf prints fields in one order, and most of them in a width of their own: a thread's number in 5 or 7 columns,
//! a period in 10, a name in 16 where the frame stands behind it, an address in 16 behind one more blank. Which
//! fields a text has is found by its first lines, and all others have the same.
//!
//! Source: perf_sample__fprintf_start() and process_event() in tools/perf/builtin-script.c of Linux.

use flame_profile::Nanos;

use super::header::{self, Header};
use super::is_aligned_frame;
use crate::names::{is_decimal, is_hex, number};

/// An address and the blank before it.
const ADDRESS: usize = 17;
/// The name of a thread where the frame stands on the same line; no thread has a longer one.
const COMM: usize = 16;
/// `U     `
const MISC: usize = 6;
/// This many samples at the start of a text are looked at.
const LOOKED_AT: usize = 64;

/// Which fields stand before a frame or above a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(u8);

impl Fields {
    const COMM: Fields = Fields(1);
    const IDS: Fields = Fields(1 << 1);
    const CPU: Fields = Fields(1 << 2);
    const MISC: Fields = Fields(1 << 3);
    const TIME: Fields = Fields(1 << 4);
    const PERIOD: Fields = Fields(1 << 5);
    const EVENT: Fields = Fields(1 << 6);
    /// What a tracepoint says: any text. Where no event stands before it, it is all that is known of the line.
    const TRACE: Fields = Fields(1 << 7);

    /// Whether stacks have no line above them: `-F ip,sym`.
    pub(super) fn are_none(self) -> bool {
        self == Fields::default()
    }

    /// Whether a line of them is hardly one of something else.
    fn are_plain(self) -> bool {
        self.has(Fields::TIME) || self.has(Fields::EVENT)
    }

    fn has(self, other: Fields) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Fields) {
        self.0 |= other.0;
    }

    /// The fields of a text; `None` where its first line is neither a frame, nor above one, nor has one behind it.
    pub(super) fn of(text: &[u8]) -> Option<Fields> {
        let first = Samples::new(text).next()?;
        let samples: Vec<Above<'_>> = Samples::new(text).take(LOOKED_AT).collect();
        // Of a few it may not be known: lines of something else may stand there.
        let fits = |fields: &Fields| {
            let count = samples.iter().filter(|above| above.header(*fields).is_some()).count();
            count * 8 >= samples.len() * 7
        };
        first.candidates().find(fits)
    }

    /// Those of a text that has a stack below each line, whatever stands there: `-F trace,ip,sym`.
    pub(super) fn of_trace(text: &[u8]) -> Option<Fields> {
        let first = Samples::new(text).next()?;
        (!first.is_before_frame).then_some(Fields::TRACE)
    }

    /// Whether a line of them ends with a number, which would pass for a count.
    fn is_number_last(self) -> bool {
        !self.are_plain()
            && !self.has(Fields::MISC)
            && (self.has(Fields::IDS) || self.has(Fields::PERIOD))
    }
}

/// What the samples of a text with these fields say of themselves.
pub(super) fn headers(text: &[u8], fields: Fields) -> impl Iterator<Item = Header<'_>> {
    Samples::new(text).filter_map(move |above| above.header(fields))
}

/// Whether a text is that of `-F comm,tid,sym` and the like: lines that say which thread, and nothing of where it
/// was. They would pass for folded text, with the thread's number for a count.
pub(super) fn lacks_frames(text: &[u8]) -> bool {
    let whole = memchr::memrchr(b'\n', text).map_or(text, |end| &text[..end]);
    let lines =
        whole.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).peekable();
    let is_task = |text: &[u8]| {
        let mut candidates = Above { text, is_before_frame: true }.candidates();
        text.ends_with(b" ") && candidates.any(Fields::is_number_last)
    };
    lines.peek().is_some() && lines.all(is_task)
}

/// What stands above a stack or before the only frame of a sample.
#[derive(Clone, Copy)]
struct Above<'l> {
    text: &'l [u8],
    is_before_frame: bool,
}

/// The first lines of a text, if they are those of samples.
#[derive(Clone)]
struct Samples<'t> {
    rest: &'t [u8],
    is_first: bool,
    in_stack: bool,
}

impl<'t> Samples<'t> {
    fn new(text: &'t [u8]) -> Samples<'t> {
        Samples { rest: text, is_first: true, in_stack: false }
    }
}

impl<'t> Iterator for Samples<'t> {
    type Item = Above<'t>;

    fn next(&mut self) -> Option<Above<'t>> {
        while !self.rest.is_empty() {
            let line = super::first_line(self.rest);
            self.rest = self.rest.get(line.len() + 1..).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(b"#") || line.trim_ascii().is_empty() {
                self.in_stack &= line.starts_with(b"#");
                continue;
            }
            if self.in_stack {
                continue;
            }
            let is_first = std::mem::replace(&mut self.is_first, false);
            if is_aligned_frame(line) {
                self.in_stack = true;
                return Some(Above { text: b"", is_before_frame: false });
            }
            if let Some((text, _)) = before_address(line) {
                return Some(Above { text, is_before_frame: true });
            }
            if is_aligned_frame(super::first_line(self.rest)) {
                self.in_stack = true;
                return Some(Above { text: line, is_before_frame: false });
            }
            if is_first {
                return None;
            }
        }
        None
    }
}

impl<'l> Above<'l> {
    /// All fields that it may have, the shortest name first.
    fn candidates(self) -> impl Iterator<Item = Fields> {
        let without_name = Columns::read(self.text, None).map(|(fields, _)| fields);
        let splits = splits(self.text).filter(move |at| !self.is_before_frame || *at == COMM);
        let splits = splits.filter(move |at| is_name(&self.text[..*at]));
        let with_name = splits.filter_map(move |at| {
            let (mut fields, _) = Columns::read(&self.text[at + 1..], None)?;
            fields.add(Fields::COMM);
            Some(fields)
        });
        let is_name = if self.is_before_frame {
            self.text.len() == COMM + 1 && self.text[COMM - 1] != b' '
        } else {
            is_name(self.text)
        };
        without_name.into_iter().chain(with_name).chain(is_name.then_some(Fields::COMM))
    }

    fn header(self, fields: Fields) -> Option<Header<'l>> {
        header(self.text, fields)
    }
}

/// Whether a thread may be called that: only those of the kernel have longer names, without blanks.
fn is_name(text: &[u8]) -> bool {
    let name = text.trim_ascii();
    !name.is_empty() && (name.len() < COMM || !name.contains(&b' '))
}

/// Where a blank stands behind a name, which may end with some: `Web Content `.
fn splits(text: &[u8]) -> impl Iterator<Item = usize> {
    let begins = text.iter().take_while(|byte| **byte == b' ').count();
    (begins + 1..text.len()).filter(|at| text[*at] == b' ')
}

/// What a line says that has these fields, and stands above a stack or before a frame.
fn header(text: &[u8], fields: Fields) -> Option<Header<'_>> {
    if fields == Fields::TRACE {
        return Some(Header::default());
    }
    if !fields.has(Fields::COMM) {
        return Columns::read(text, Some(fields)).map(|(_, header)| header);
    }
    let comm = |end: usize| Header { comm: text[..end].trim_ascii(), ..Header::default() };
    if fields == Fields::COMM {
        let Header { comm, .. } = comm(text.len());
        return is_name(comm).then_some(Header { comm, task: comm, ..Header::default() });
    }
    let others = Fields(fields.0 & !Fields::COMM.0);
    splits(text).filter(|at| is_name(&text[..*at])).find_map(|at| {
        let (_, mut header) = Columns::read(&text[at + 1..], Some(others))?;
        header.comm = text[..at].trim_ascii();
        // The numbers stand behind the name.
        let ids = header.task.len();
        header.task = text[..at + 1 + ids].trim_ascii();
        Some(header)
    })
}

/// A sample whose only frame stands on the same line: its header and the frame.
pub(super) fn sample_of_one_line(line: &[u8], fields: Fields) -> Option<(Header<'_>, &[u8])> {
    let (text, frame) = before_address(line)?;
    Some((header(text, fields)?, frame))
}

/// The header of a stack, which `next` begins with.
pub(super) fn above_stack<'l>(line: &'l [u8], next: &[u8], fields: Fields) -> Option<Header<'l>> {
    let next = super::first_line(next);
    // A stack may be empty, but anything with a blank line below it would pass for a name.
    let is_empty = next.trim_ascii().is_empty() && fields.are_plain();
    let is_above = is_aligned_frame(next) || is_empty;
    if is_above && !fields.are_none() { header(line, fields) } else { None }
}

/// Whether a line has an address in the columns of an only frame.
pub(super) fn has_address(line: &[u8]) -> bool {
    before_address(line).is_some()
}

/// What stands before an address in its columns, with the blank behind it, and what stands from the address on.
/// Nothing before it can be taken for one: the other fields are narrower, and names shorter.
fn before_address(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if line.first() == Some(&b'\t') {
        return None;
    }
    let mut at = 0;
    while at < line.len() {
        let start = at + line[at..].iter().position(|byte| *byte != b' ')?;
        let end = line[start..].iter().position(|byte| *byte == b' ');
        let end = end.map_or(line.len(), |len| start + len);
        at = end;
        let Some(columns) = end.checked_sub(ADDRESS) else { continue };
        let is_alone = line.get(columns..start).is_some_and(|text| text.iter().all(|b| *b == b' '));
        let before = &line[..columns];
        let is_behind = before.ends_with(b" ") && !before.trim_ascii().is_empty();
        let is_address = is_alone && columns < start && is_hex(&line[start..end]);
        if is_address && (before.is_empty() || is_behind) {
            return Some((before, &line[start..]));
        }
    }
    None
}

/// A line whose fields are read one behind the other.
struct Columns<'l> {
    rest: &'l [u8],
    fields: Fields,
    header: Header<'l>,
}

impl<'l> Columns<'l> {
    /// Reads all of a text but the name: the fields that are asked for, or those that are there.
    fn read(text: &'l [u8], asked: Option<Fields>) -> Option<(Fields, Header<'l>)> {
        let mut columns =
            Columns { rest: text, fields: Fields::default(), header: Header::default() };
        let is_asked = |field| asked.is_none_or(|asked| asked.has(field));
        if is_asked(Fields::IDS) && columns.ids().is_some() {
            columns.fields.add(Fields::IDS);
            columns.header.task = &text[..text.len() - columns.rest.len()];
        }
        if is_asked(Fields::CPU)
            && let Some(cpu) = columns.word(header::cpu, 0)
        {
            columns.fields.add(Fields::CPU);
            columns.header.cpu = Some(cpu);
        }
        if is_asked(Fields::MISC) && columns.misc(asked.is_some()) {
            columns.fields.add(Fields::MISC);
        }
        if is_asked(Fields::TIME)
            && let Some(time) = columns.word(header::time, 4)
        {
            columns.fields.add(Fields::TIME);
            columns.header.time = Some::<Nanos>(time);
        }
        if is_asked(Fields::PERIOD)
            && let Some(period) = columns.period()
        {
            columns.fields.add(Fields::PERIOD);
            columns.header.period = Some(period);
        }
        if is_asked(Fields::EVENT)
            && let Some(event) = columns.word(event, usize::MAX)
        {
            columns.fields.add(Fields::EVENT);
            columns.header.event = event;
        }
        if is_asked(Fields::TRACE) && columns.fields.has(Fields::EVENT) {
            let is_there = asked.is_some() || !columns.rest.trim_ascii().is_empty();
            columns.fields.add(if is_there { Fields::TRACE } else { Fields::default() });
            columns.rest = b"";
        }
        let is_whole = columns.rest.trim_ascii().is_empty();
        let are_all = asked.is_none_or(|asked| asked == columns.fields);
        (is_whole && are_all).then_some((columns.fields, columns.header))
    }

    /// The next word, with so many blanks before it at most, and one behind it unless it is the last.
    fn word<T>(&mut self, read: impl Fn(&'l [u8]) -> Option<T>, most: usize) -> Option<T> {
        let (blanks, word) = next_word(self.rest);
        let found = read(word).filter(|_| blanks <= most)?;
        self.step(blanks + word.len() + 1);
        Some(found)
    }

    fn step(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    /// `  840 `, `  840/840   `: in 5 columns, in 7 since Linux 6.2.
    fn ids(&mut self) -> Option<()> {
        let (blanks, word) = next_word(self.rest);
        let parts = word.iter().position(|byte| *byte == b'/').map(|at| word.split_at(at));
        let first = parts.map_or(word, |(first, _)| first);
        let columns = blanks + first.len();
        let is_number = |text: &[u8]| is_decimal(text.strip_prefix(b"-").unwrap_or(text));
        let is_aligned = matches!((blanks, columns), (0, 5..=7) | (_, 5 | 7));
        if !is_number(first) || !is_aligned {
            return None;
        }
        let Some((_, second)) = parts else {
            self.header.tid = number(first);
            self.step(columns + 1);
            return Some(());
        };
        let second = &second[1..];
        if !is_number(second) {
            return None;
        }
        (self.header.pid, self.header.tid) = (number(first), number(second));
        let width = if columns == 7 { 7 } else { 5 };
        self.step(columns + 1 + second.len().max(width) + 1);
        Some(())
    }

    /// `U     `; blanks alone only where it is known to be there.
    fn misc(&mut self, is_known: bool) -> bool {
        let Some((columns, _)) = self.rest.split_at_checked(MISC) else { return false };
        let word = columns.trim_ascii_end();
        let is_misc = header::is_misc(word) && (is_known || !word.is_empty());
        if is_misc {
            self.step(MISC);
        }
        is_misc
    }

    fn period(&mut self) -> Option<u64> {
        let (blanks, word) = next_word(self.rest);
        let columns = blanks + word.len();
        let is_aligned = columns == 10 || (blanks == 0 && columns > 10);
        let period = number(word).filter(|_| is_aligned)?;
        self.step(columns + 1);
        Some(period)
    }
}

/// How many blanks stand before the next word, and the word.
fn next_word(text: &[u8]) -> (usize, &[u8]) {
    let blanks = text.iter().take_while(|byte| **byte == b' ').count();
    let word = text[blanks..].split(|byte| *byte == b' ').next().unwrap_or_default();
    (blanks, word)
}

fn event(word: &[u8]) -> Option<&[u8]> {
    word.strip_suffix(b":").filter(|event| !event.is_empty())
}
