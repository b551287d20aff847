//! How the samples of a text look, by the first of them: every other one has the same fields, and what lacks them is
//! no sample.

use super::columns::{self, Fields};
use super::frame;
use super::header::{self, Header};
use super::meaning::{is_aside, is_source_line};
use super::{first_line, is_aligned_frame, looks_like_frame};

/// Lines of something else may stand before the first sample: `Warning: ...`.
const BEFORE: usize = 8;
/// What `--show-task-events` and the like print between samples.
pub(super) const RECORD: &[u8] = b"PERF_RECORD_";

/// How the lines above stacks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// By a time, a CPU or an event behind the thread's numbers; they have all of these.
    Words(Needs),
    /// By their columns.
    Columns(Fields),
}

/// What the first sample has, and so has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// A time, and an event if there is one.
    Time { event: bool },
    /// An event, and a frame or a blank line behind it if the first has a frame: `-F comm,tid,event,ip,sym`.
    Event { frame: bool },
    /// A CPU: `-F comm,tid,cpu,ip,sym`.
    Cpu,
}

impl Layout {
    /// The layout of a text; `None` where it has no sample near its start.
    pub(super) fn of(text: &[u8]) -> Option<Layout> {
        let of_words = first_sample(text);
        let words = of_words.map(|(header, next, _)| Layout::Words(Needs::of(&header, next)));
        // Numbers that stand beside each other are told by a time between them, and by their columns.
        let is_sure = of_words.is_some_and(|(header, _, is_first)| {
            is_first && header.time.is_some() && !header.event.is_empty()
        });
        if is_sure {
            return words;
        }
        // Lines of something else may stand before the first sample if words tell it.
        let text = behind_warnings(text);
        let of_columns = || Fields::of(text).map(Layout::Columns);
        of_columns().or(words).or_else(|| Fields::of_trace(text).map(Layout::Columns))
    }

    /// The layout of a text whose start has no sample.
    pub(super) const DEFAULT: Layout = Layout::Words(Needs::Time { event: true });

    /// What the samples of a text say of themselves.
    pub(super) fn headers(self, text: &[u8]) -> Box<dyn Iterator<Item = Header<'_>> + '_> {
        match self {
            Layout::Columns(fields) => Box::new(columns::headers(text, fields)),
            Layout::Words(needs) => Box::new(lines(text).filter_map(move |(line, next)| {
                let is_frame = line.first().is_some_and(u8::is_ascii_whitespace)
                    && frame::parse(line.trim_ascii()).is_some()
                    && !header::is_sure(line);
                let header = if is_frame { None } else { header::parse(line) };
                header.filter(|header| needs.are_met(header, next) && !is_record(header))
            })),
        }
    }
}

/// A text without the warnings that perf prints before the first sample, where standard error is in it.
fn behind_warnings(text: &[u8]) -> &[u8] {
    const START: &[u8] = b"warning: ";
    let mut rest = text;
    let starts = |line: &[u8]| line.get(..START.len()).map(<[u8]>::to_ascii_lowercase);
    while starts(first_line(rest)).as_deref() == Some(START) {
        rest = rest.get(first_line(rest).len() + 1..).unwrap_or_default();
    }
    rest
}

/// The lines of a text that are no comments, each with what follows it.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    let next = move || {
        let line = first_line(rest);
        let is_any = !rest.is_empty();
        rest = rest.get(line.len() + 1..).unwrap_or_default();
        is_any.then_some((line.strip_suffix(b"\r").unwrap_or(line), rest))
    };
    std::iter::from_fn(next).filter(|(line, _)| !line.starts_with(b"#"))
}

impl Needs {
    fn of(header: &Header<'_>, next: &[u8]) -> Needs {
        let event = !header.event.is_empty();
        match header.time {
            // Records of other things have no event, and samples do.
            Some(_) => Needs::Time { event: event || is_record(header) },
            None if event => Needs::Event { frame: has_frame(header, next) },
            None => Needs::Cpu,
        }
    }

    /// Whether a line is a sample as the first one is; `next` follows it.
    #[inline]
    pub(super) fn are_met(self, header: &Header<'_>, next: &[u8]) -> bool {
        let met = match self {
            Needs::Time { event } => header.time.is_some() && (!event || !header.event.is_empty()),
            Needs::Event { frame } => {
                let is_alone = || first_line(next).trim_ascii().is_empty();
                !header.event.is_empty() && (!frame || has_frame(header, next) || is_alone())
            }
            Needs::Cpu => header.cpu.is_some(),
        };
        met || is_record(header)
    }
}

/// Whether it is no sample, but what perf prints of another record.
pub(super) fn is_record(header: &Header<'_>) -> bool {
    header.event.starts_with(RECORD) || header.rest.starts_with(RECORD)
}

/// Whether a frame stands behind a header or on the line below it.
fn has_frame(header: &Header<'_>, next: &[u8]) -> bool {
    let next = first_line(next);
    let is_indented = next.first().is_some_and(u8::is_ascii_whitespace);
    looks_like_frame(header.rest) || (is_indented && frame::parse(next.trim_ascii()).is_some())
}

/// The first sample of a text that words tell, what follows it, and whether nothing else stands before it.
fn first_sample(text: &[u8]) -> Option<(Header<'_>, &[u8], bool)> {
    let (mut before, mut record) = (0, None);
    for (line, rest) in lines(text).filter(|(line, _)| !line.trim_ascii().is_empty()) {
        if before == BEFORE {
            break;
        }
        let header = header::parse(line).filter(|_| !is_aligned_frame(line));
        match header.filter(|header| is_record(header) || is_sample(header, rest)) {
            Some(header) if is_record(&header) => {
                record = record.or(Some((header, rest, before == 0)))
            }
            Some(header) => return Some((header, rest, before == 0)),
            // A text that begins within a stack has its other frames first.
            None => before += usize::from(!is_aligned_frame(line)),
        }
    }
    record
}

/// Whether a line that may be a sample is one, by what follows it.
fn is_sample(header: &Header<'_>, behind: &[u8]) -> bool {
    let mut lines = behind.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let next = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let is_frame = |line: &[u8]| frame::parse(line.trim_ascii()).is_some();
    let is_next = |line: &[u8]| {
        let is_alike = |next: Header<'_>| {
            next.time.is_some() == header.time.is_some()
                && next.event.is_empty() == header.event.is_empty()
        };
        is_frame(line)
            || header::parse(line).is_some_and(|next| is_alike(next) || is_record(&next))
            || is_source_line(line.trim_ascii())
            || is_aside(line.trim_ascii())
    };
    if header.time.is_some() || header.cpu.is_some() {
        return next.is_none_or(is_next);
    }
    // `line 12 error:` is none.
    let follows = has_frame(header, behind) || next.is_some_and(is_next);
    !header.event.is_empty() && follows
}
