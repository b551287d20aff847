//! bpftrace: maps whose keys have stacks.
//!
//! ```text
//! @[
//!     do_sys_open+1
//!     read+14
//! , bash]: 12
//! ```
//!
//! Keys may be several stacks and other values. A stack is innermost first, and the first of several
//! is called by the others, as in `@[kstack, ustack, comm]`; other keys become outermost frames in
//! their order. Offsets are left out. Maps of other names than the first are left out unless
//! they are asked for like events.

use std::collections::BTreeMap;

use flame_profile::FrameKind;

use crate::head::Head;
use crate::input::Input;
use crate::line_cache::{LineCache, LineKey};
use crate::names::{is_decimal, number, rfind, without_arguments, without_offset};
use crate::perf_script::parse_frame;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;
use crate::{NoSuchEvent, ReadError};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "bpftrace",
    description: "bpftrace maps with kstack or ustack keys",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines();
    let starts = lines.any(|line| map_start(line).is_some());
    starts && (head.lines().any(|line| value(line).is_some()) || head.bytes().len() > 60_000)
}

/// The name of the map and what stands behind the bracket: `@stacks[bash, `.
fn map_start(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"@")?;
    let at = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
    (rest[at] == b'[').then(|| (&line[..=at], &rest[at + 1..]))
}

/// What stands before the bracket that ends the keys, and the value: `, bash]: 12`.
fn value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = rfind(line, b"]:")?;
    let value = line[at + 2..].trim_ascii();
    let is_number = is_decimal(value.strip_prefix(b"-").unwrap_or(value)) || value.is_empty();
    is_number.then_some((&line[..at], value))
}

/// An entry of a map that is being read.
#[derive(Default)]
struct Entry {
    /// The map; empty between entries.
    map: Vec<u8>,
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// Keys that are not stacks, in their order.
    keys: Vec<FrameIndex>,
}

impl Entry {
    /// Takes keys that stand on one line, parted by `, `.
    fn add_keys(&mut self, text: &[u8], sink: &mut Sink) {
        let text = text.trim_ascii();
        let text = text.strip_prefix(b",").unwrap_or(text);
        let text = text.strip_suffix(b",").unwrap_or(text).trim_ascii();
        let mut rest = Some(text).filter(|text| !text.is_empty());
        while let Some(key) = rest {
            let (key, next) = match memchr::memmem::find(key, b", ") {
                Some(at) => (&key[..at], Some(&key[at + 2..])),
                None => (key, None),
            };
            self.keys.push(sink.frame(key, FrameKind::Mark));
            rest = next;
        }
    }
}

fn frame(text: &[u8], sink: &mut Sink) -> FrameIndex {
    // `kstack(perf)` prints as perf does.
    let (symbol, kind) = parse_frame(text).unwrap_or((text, FrameKind::User));
    sink.frame(without_arguments(without_decimal(symbol)), kind)
}

/// Without `+14` at the end.
fn without_decimal(text: &[u8]) -> &[u8] {
    let text = without_offset(text);
    match memchr::memrchr(b'+', text) {
        Some(at) if at > 0 && is_decimal(&text[at + 1..]) => &text[..at],
        _ => text,
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let asked = sink.options().event.clone().map(String::into_bytes);
    let mut taken = asked.clone();
    let mut left: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut entry = Entry::default();
    let mut known = LineCache::default();
    let mut last = 0;
    while let Some(line) = lines.next_line()? {
        let (number, text) = (line.number, line.text);
        last = number;
        if !entry.map.is_empty()
            && let Some(frame) = known.find(LineKey::Whole(text))
        {
            entry.stack.push(FrameIndex(frame));
            continue;
        }
        let ending = match map_start(text) {
            Some((map, rest)) => {
                if !entry.map.is_empty() {
                    sink.skip(Place::Line(number), "the stack before it has no value", b"")?;
                }
                // What stands on one line has no stack.
                if value(rest).is_some() {
                    entry = Entry::default();
                    sink.note("values of bpftrace's maps without a stack were left out");
                    continue;
                }
                entry = Entry { map: map.to_vec(), ..Entry::default() };
                entry.add_keys(rest, sink);
                None
            }
            None if entry.map.is_empty() => continue,
            None => value(text).filter(|_| !text.starts_with(b" ")),
        };
        let Some((keys, count)) = ending else {
            if map_start(text).is_none() {
                read_key(text, &mut entry, &mut known, sink);
            }
            continue;
        };
        entry.add_keys(keys, sink);
        let entry = std::mem::take(&mut entry);
        let is_meant = *taken.get_or_insert_with(|| entry.map.clone()) == entry.map
            || asked.as_deref().is_some_and(|asked| entry.map.get(1..) == Some(asked));
        if !is_meant {
            *left.entry(entry.map).or_default() += 1;
            continue;
        }
        add(entry, count, number, text, sink)?;
    }
    if !entry.map.is_empty() {
        sink.skip(Place::Line(last), "the last stack has no value", b"")?;
    }
    say_left(&left, asked.is_some(), taken, sink)
}

/// A line within the keys: a frame, or what parts keys.
fn read_key(text: &[u8], entry: &mut Entry, known: &mut LineCache, sink: &mut Sink) {
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return;
    }
    if text.starts_with(b" ") || text.starts_with(b"\t") {
        let frame = frame(trimmed, sink);
        known.keep(text, frame.0);
        entry.stack.push(frame);
    } else {
        entry.add_keys(trimmed, sink);
    }
}

fn add(
    mut entry: Entry,
    count: &[u8],
    line: u64,
    text: &[u8],
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let Some(count) = number(count) else {
        let reason = match count.first() {
            Some(b'-') => "its value is negative",
            _ => "its value is not a number of samples",
        };
        return sink.skip(Place::Line(line), reason, text);
    };
    entry.stack.extend(entry.keys.iter().rev());
    entry.stack.reverse();
    sink.add(&Sample::new(&entry.stack, &[count]));
    Ok(())
}

/// Says which maps were left out.
fn say_left(
    left: &BTreeMap<Vec<u8>, u64>,
    is_asked: bool,
    taken: Option<Vec<u8>>,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    if left.is_empty() {
        return Ok(());
    }
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let others: Vec<String> =
        left.iter().map(|(map, count)| format!("{} ({count})", shown(map))).collect();
    let (others, taken) = (others.join(", "), shown(&taken.unwrap_or_default()));
    if is_asked && sink.is_empty() {
        return Err(NoSuchEvent { asked: taken, others }.into());
    }
    sink.note(format!("stacks of {taken} only; left out: {others}; --event takes another"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_from_frames() {
        assert_eq!(map_start(b"@["), Some((&b"@"[..], &b""[..])));
        assert_eq!(map_start(b"@st_1[bash, "), Some((&b"@st_1"[..], &b"bash, "[..])));
        assert_eq!(map_start(b"@x: 5"), None);
        assert_eq!(value(b"]: 5"), Some((&b""[..], &b"5"[..])));
        assert_eq!(value(b", bash]: 12"), Some((&b", bash"[..], &b"12"[..])));
        assert_eq!(value(b"    operator[]: x"), None);
        assert_eq!(without_decimal(b"do_idle+14"), b"do_idle");
    }
}
