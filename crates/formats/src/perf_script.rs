//! `perf script`: samples as text, with everything that `-F` lets it print.
//!
//! A sample is a line that says who, when and which event, and a line for each frame below it,
//! innermost first, up to a blank line. Samples without a stack have their only frame behind the
//! event.
//!
//! Source: tools/perf/builtin-script.c of Linux.

mod frame;
mod guesses;
mod header;
mod inlined;
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
use crate::{NoSuchEvent, ReadError};
use meaning::{is_aside, is_source_line};
pub(crate) use parser::Event;
use parser::{Asked, Left, Parser, Taker};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "perf-script",
    description: "Linux perf: perf script, with or without -g and any -F",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| {
        let text = line.trim_ascii();
        !text.is_empty() && !text.starts_with(b"#")
    });
    if is_bare(head.bytes()) {
        return true;
    }
    // Lines of other formats before the first sample: `Warning: ...`.
    for line in lines.by_ref().take(8) {
        if let Some(header) = header::parse(line) {
            let next = lines.next();
            let is_indented = |line: &&[u8]| line.first().is_some_and(u8::is_ascii_whitespace);
            let is_frame = |line: &[u8]| frame::parse(line.trim_ascii()).is_some();
            // `-F comm,pid,ip,sym` leaves the name and a number, with frames below.
            let is_sure = !header.event.is_empty()
                || header.time.is_some()
                || next.filter(is_indented).is_some_and(is_frame);
            let follows = next.is_none_or(|line| {
                is_frame(line)
                    || header::parse(line).is_some()
                    || is_source_line(line.trim_ascii())
                    || is_aside(line.trim_ascii())
            });
            return is_sure && follows;
        }
    }
    false
}

/// Whether lines above stacks, if there are any, have one field alone: `-F comm,ip,sym`, `-F ip,sym`.
fn is_bare(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    // A line with no field at all is blank.
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    let Some(first) = first else { return false };
    let is_above = || header::parse(first).is_none();
    is_aligned_frame(first) || (is_above() && lines.next().is_some_and(is_aligned_frame))
}

/// `\t            2364 inner+0x1a (/srv/t)`, with the address in 16 columns, as perf prints it.
fn is_aligned_frame(line: &[u8]) -> bool {
    let address = line.strip_prefix(b"\t").and_then(|line| line.split_at_checked(16));
    address.is_some_and(|(address, rest)| {
        is_hex(address.trim_ascii_start()) && matches!(rest, [b' ', name, ..] if *name != b' ')
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
    let asked = Asked { event: Vec::new(), is_given: false, has_period: false, is_bare: false };
    let mut left = Left::default();
    let mut parser = Parser::new(sink, &asked, &mut left).with_taker(take);
    let mut block = Block::default();
    let mut lines = 0;
    while blocks.next_block(&mut block)? {
        lines = parser.read(block.text(), lines)?;
    }
    finish(&asked, &left, sink)
}

/// What samples are taken for, by the first of them.
fn ask(block: &[u8], sink: &mut Sink) -> Asked {
    let headers = block.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_frame = line.first().is_some_and(u8::is_ascii_whitespace)
            && frame::parse(line.trim_ascii()).is_some()
            && !header::is_sure(line);
        if is_frame || line.starts_with(b"#") { None } else { header::parse(line) }
    });
    let is_record = |text: &[u8]| text.starts_with(b"PERF_RECORD_");
    let mut headers = headers.filter(|header| !is_record(header.event) && !is_record(header.rest));
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
    let has_period = first.period.is_some();
    if has_period && !event.is_empty() {
        let is_clock = matches!(&*event, b"cpu-clock" | b"task-clock");
        let unit = if is_clock { "nanoseconds" } else { "count" };
        let name = String::from_utf8_lossy(&event).into_owned();
        sink.set_values(vec![ValueType::new(name, unit), ValueType::samples()]);
    }
    let has_period = has_period && !first.event.is_empty();
    Asked { event, is_given: asked.is_some(), has_period, is_bare: is_bare(block) }
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
    !line.starts_with(b"#") && !parser::is_frame_line(line) && header::parse(line).is_some()
}

/// Whether a line is one of a stack: its address is what tells it.
fn looks_like_frame(line: &[u8]) -> bool {
    let word = line.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    is_hex(word)
}

#[cfg(test)]
mod tests {
    use crate::skipped::Place;
    use crate::{ReadOptions, Source, read_input};

    #[test]
    fn skipped_lines_have_their_numbers_however_many_threads_read() {
        let sample =
            "prog 7 1.000001:   1 cpu-clock: \n\t            7f00 main+0x1 (/bin/prog)\n\n";
        let count = 20_000_u64;
        let text = format!("{}nonsense\n{sample}nonsense\n", sample.repeat(count as usize));
        for threads in [1, 2] {
            let source = Source::of_bytes(text.clone().into_bytes()).unwrap();
            let options = ReadOptions { threads, ..ReadOptions::default() };
            let input = read_input(source, &options).unwrap();
            let places: Vec<Place> = input.skipped.first().iter().map(|part| part.place).collect();
            let expect = [3 * count + 1, 3 * count + 5].map(Place::Line);
            assert_eq!(places, expect, "{threads} threads");
        }
    }
}
