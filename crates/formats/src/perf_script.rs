//! `perf script`: samples as text, with everything that `-F` lets it print.
//!
//! A sample is a line that says who, when and which event, and a line for each frame below it,
//! innermost first, up to a blank line. Samples without a stack have their only frame behind the
//! event.
//!
//! Source: tools/perf/builtin-script.c of Linux.

mod asked;
mod columns;
mod frame;
mod guesses;
mod header;
mod inlined;
mod keys;
mod layout;
mod meaning;
mod parser;
mod usual;

use std::sync::{Mutex, PoisonError};

use flame_perf_data::{base_name, is_meant};
use flame_profile::{FrameKind, ValueType};

use crate::blocks::{Block, Blocks};
use crate::head::Head;
use crate::input::Input;
use crate::names::is_hex;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use crate::{NoSuchEvent, ReadError};
use asked::{Asked, Left};
pub(crate) use header::Event;
use layout::Layout;
use parser::{Parser, Taker};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "perf-script",
    description: "Linux perf: perf script, with or without -g and any -F",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    Layout::of(head.bytes()).is_some()
}

/// Whether a text is what perf prints without frames, and so has nothing to be read.
pub(crate) fn lacks_frames(head: &Head<'_>) -> bool {
    columns::lacks_frames(head.bytes())
}

/// `\t            2364 inner+0x1a (/srv/t)`, `\t            2364`, with the address in 16 columns, as perf prints it.
fn is_aligned_frame(line: &[u8]) -> bool {
    let address = line.strip_prefix(b"\t").and_then(|line| line.split_at_checked(16));
    address.is_some_and(|(address, rest)| {
        // A symbol may be blank, or not be printed.
        let is_frame = match rest {
            [b' ', b' ', module @ ..] => module.starts_with(b"("),
            [b' ', ..] | [] | [b'\r'] => true,
            _ => false,
        };
        is_hex(address.trim_ascii_start()) && is_frame
    })
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let threads = if sink.keeps_order() { 1 } else { input.threads() };
    let reader = input.reader();
    let mut blocks = if threads == 1 { Blocks::new(reader) } else { Blocks::numbered(reader) };
    let mut first = Block::default();
    if !blocks.next_block(&mut first)? {
        return Ok(());
    }
    let asked = ask(first.text(), sink);
    let mut left = Left::default();
    let blocks = Mutex::new((blocks, Some(first)));
    let next = |block: &mut Block| -> std::io::Result<bool> {
        let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
        match blocks.1.take() {
            Some(first) => {
                *block = first;
                Ok(true)
            }
            None => blocks.0.next_block(block),
        }
    };
    let work = |sink: &mut Sink, left: &mut Left| -> Result<(), ReadError> {
        let mut parser = Parser::new(sink, &asked, left);
        let mut block = Block::default();
        let mut lines = 0;
        while next(&mut block)? {
            let before = if threads == 1 { lines } else { block.lines };
            lines = parser.read(block.text(), before)?;
        }
        Ok(())
    };
    let fork = sink.fork();
    let others = Mutex::new(Vec::new());
    let there = || {
        let (mut sink, mut left) = (fork.fork(), Left::default());
        let result = work(&mut sink, &mut left);
        let mut others = others.lock().unwrap_or_else(PoisonError::into_inner);
        others.push((sink, left, result));
    };
    flame_threads::beside(threads - 1, there, || work(sink, &mut left))?;
    for (other, of_other, result) in others.into_inner().unwrap_or_else(PoisonError::into_inner) {
        result?;
        sink.merge(other);
        left.merge(of_other);
    }
    if sink.options().inlined {
        inlined::look_up(sink);
    }
    finish(&asked, &left, sink)
}

/// Gives the events of a text to `take`, one by one.
pub(crate) fn for_each(
    input: &mut Input<'_>,
    sink: &mut Sink,
    take: Taker<'_>,
) -> Result<(), ReadError> {
    let mut blocks = Blocks::new(input.reader());
    let layout = Layout::DEFAULT;
    let event = Vec::new();
    let asked = Asked { event, is_given: false, has_period: false, layout, is_aligned: false };
    let mut left = Left::default();
    let mut parser = Parser::new(sink, &asked, &mut left).with_taker(take);
    let mut block = Block::default();
    let mut lines = 0;
    while blocks.next_block(&mut block)? {
        lines = parser.read(block.text(), lines)?;
    }
    finish(&asked, &left, sink)
}

/// So many samples are looked at to see whether they have a period.
const LOOKED_AT: usize = 100;

/// What samples are taken for, by the first of them.
fn ask(block: &[u8], sink: &mut Sink) -> Asked {
    let layout = Layout::of(block).unwrap_or(Layout::DEFAULT);
    let mut headers = layout.headers(block);
    let asked = sink.options().event.clone().map(String::into_bytes);
    let is_asked = |event: &[u8]| asked.as_deref().is_none_or(|asked| is_meant(asked, event));
    let first = headers.find(|header| is_asked(header.event)).unwrap_or_default();
    if let Some(time) = first.time {
        sink.start_at(time);
    }
    let event = match &asked {
        Some(asked) => asked.clone(),
        None => base_name(first.event).to_vec(),
    };
    // By its words alone, it may be another number.
    let is_sure = !event.is_empty() || matches!(layout, Layout::Columns(_));
    // One that is unlike the others may come first.
    let of_event = headers.filter(|header| base_name(header.event) == base_name(first.event));
    let (mut with, mut all) = (usize::from(first.period.is_some()), 1);
    of_event.take(LOOKED_AT).for_each(|header| {
        with += usize::from(header.period.is_some());
        all += 1;
    });
    let has_period = with * 2 >= all && with > 0 && is_sure;
    if has_period {
        let name = if event.is_empty() { b"period" } else { &*event };
        let is_clock = matches!(name, b"cpu-clock" | b"task-clock");
        let unit = if is_clock { "nanoseconds" } else { "count" };
        let name = String::from_utf8_lossy(name).into_owned();
        sink.set_values(vec![ValueType::new(name, unit), ValueType::samples()]);
    }
    let is_given = asked.is_some();
    let is_aligned = matches!(layout, Layout::Columns(_)) || has_aligned_frames(block);
    Asked { event, is_given, has_period, layout, is_aligned }
}

/// Whether the first frame of a text stands in its columns.
fn has_aligned_frames(text: &[u8]) -> bool {
    let is_frame = |line: &&[u8]| {
        line.first().is_some_and(u8::is_ascii_whitespace)
            && header::parse(line).is_none()
            && frame::parse(line.trim_ascii()).is_some()
    };
    let is_aligned = |line: &[u8]| is_aligned_frame(line) || columns::has_address(line);
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find(|line| is_aligned(line) || is_frame(line)).is_none_or(is_aligned)
}

/// Says what was left out.
fn finish(asked: &Asked, left: &Left, sink: &mut Sink) -> Result<(), ReadError> {
    let shown = |event: &[u8]| String::from_utf8_lossy(event).into_owned();
    let others: Vec<String> =
        left.events.iter().map(|(event, count)| format!("{} ({count})", shown(event))).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        if asked.is_given && left.taken == 0 {
            let asked = shown(&asked.event);
            return Err(NoSuchEvent { asked, others }.into());
        }
        let taken = shown(&asked.event);
        sink.note(format!("samples of {taken} only; left out: {others}; --event takes another"));
    }
    if asked.event == b"sched:sched_switch" {
        sink.note("switches are counted; --from perf-sched weighs them by the time off CPU");
    }
    if let Some(first) = left.first_period.filter(|_| !asked.has_period && !asked.event.is_empty())
    {
        let count = left.periods;
        let what =
            format!("samples that have a period: {count}; all count as 1, as most have none");
        sink.complain(Place::Line(first), &what)?;
    }
    if left.lost > 0 {
        sink.note(format!("perf lost {} events", left.lost));
    }
    Ok(())
}

/// The function and the kind of code of a line that is printed as perf does.
pub(crate) fn parse_frame(text: &[u8]) -> Option<(&[u8], FrameKind)> {
    let line = frame::parse(text).filter(|line| !line.module.is_empty() && line.is_named())?;
    Some((line.symbol, line.kind()))
}

/// Whether a line, which is not blank, is the first of a sample.
pub(crate) fn begins_sample(line: &[u8]) -> bool {
    let is_sample = || !frame::is_frame_line(line) && header::parse(line).is_some();
    !line.starts_with(b"#") && (columns::has_address(line) || is_sample())
}

fn first_line(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]
}

/// Whether a line is one of a stack: its address is what tells it.
fn looks_like_frame(line: &[u8]) -> bool {
    let word = line.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    is_hex(word)
}

#[cfg(test)]
mod tests;
