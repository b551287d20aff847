//! `go tool pprof -raw`: the samples of a profile as text, with the locations they refer to.
//!
//! ```text
//! Samples:
//! samples/count cpu/nanoseconds
//!           3   30000000: 1 2
//! Locations
//!      1: 0x48dc53 M=1 main.work /src/main.go:12:0 s=10
//!              main.run /src/main.go:30:0 s=28
//!      2: 0x43c1f2 M=1 main.main /src/main.go:40:0 s=38
//! Mappings
//! 1: 0x400000/0x4c9000/0x0 /usr/bin/server
//! ```
//!
//! The first function of a location is inlined into the next one. As in a profile that is not text, what is
//! shown first is the value marked as the default one, else the last one; an address without a function
//! is `[server+0x8c53]`; negative values, which differences of profiles have, count as 0; and labels name the
//! thread and the process of a sample.

use std::collections::hash_map::Entry;

use flame_profile::{FrameKind, ValueType};
use rustc_hash::FxHashMap;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_hex, number, rfind};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex};
use crate::skipped::Place;
use labels::Labels;

mod labels;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "go-raw",
    description: "pprof profiles as text (go tool pprof -raw)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| line == b"Samples:")
            && head.lines().any(|line| line == b"Locations" || line.starts_with(b"Period"))
    },
    reader: Reader::Stacks(read),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Samples,
    Locations,
    Mappings,
}

/// All samples, since the names of their locations stand behind them.
#[derive(Default)]
struct Samples {
    rows: Vec<Raw>,
    /// As many for each sample as there are value types.
    values: Vec<u64>,
    /// Of all samples, innermost first.
    locations: Vec<u64>,
}

struct Raw {
    line: u64,
    task: Option<TaskIndex>,
    /// Where its locations end.
    end: usize,
}

#[derive(Default)]
struct Location {
    address: u64,
    mapping: u64,
    /// Innermost first.
    functions: Vec<Vec<u8>>,
}

/// A file that was mapped: where, from which offset on, and its name.
struct Mapping {
    start: u64,
    offset: u64,
    name: Vec<u8>,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut part = Part::Head;
    let mut samples = Samples::default();
    let (mut count, mut default, mut negative) = (0, 0, 0);
    let mut locations: FxHashMap<u64, Location> = FxHashMap::default();
    let mut mappings: FxHashMap<u64, Mapping> = FxHashMap::default();
    let mut labels = Labels::default();
    let mut last = 0;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim_ascii();
        part = match text {
            b"Samples:" => Part::Samples,
            b"Locations" => Part::Locations,
            b"Mappings" => Part::Mappings,
            b"" => continue,
            _ => {
                let is_read = match part {
                    Part::Head => true,
                    Part::Samples if count == 0 => {
                        let mut types = value_types(text);
                        (count, default) = (types.len(), default_value(text, types.len()));
                        types[..=default].rotate_right(1);
                        sink.set_values(types);
                        true
                    }
                    Part::Samples => match samples.take(text, count, line.number) {
                        Some(negatives) => {
                            let task = labels.end_sample(sink);
                            samples.set_task(1, task);
                            negative += negatives;
                            let start = samples.values.len() - count;
                            samples.values[start..=start + default].rotate_right(1);
                            true
                        }
                        None => labels.take(text),
                    },
                    Part::Locations => take_location(text, &mut last, &mut locations),
                    Part::Mappings => take_mapping(text, &mut mappings),
                };
                if !is_read {
                    sink.skip(
                        Place::Line(line.number),
                        "it does not have the form of its section",
                        text,
                    )?;
                }
                part
            }
        };
    }
    let task = labels.end_sample(sink);
    samples.set_task(0, task);
    labels.note().into_iter().for_each(|note| sink.note(note));
    if negative > 0 {
        sink.note(format!("{negative} negative values were taken as 0"));
    }
    add_all(&samples, &locations, &mappings, sink)
}

/// `samples/count cpu/nanoseconds[dflt]`
fn value_types(text: &[u8]) -> Vec<ValueType> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let types = words.map(|word| {
        let word = String::from_utf8_lossy(word);
        let word = word.trim_end_matches("[dflt]");
        let (name, unit) = word.split_once('/').unwrap_or((word, "count"));
        ValueType::new(name, unit)
    });
    types.collect()
}

/// Which value is shown first: the marked one, else the last.
fn default_value(text: &[u8], count: usize) -> usize {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let marked = words.position(|word| word.ends_with(b"[dflt]"));
    marked.unwrap_or(count.saturating_sub(1))
}

impl Samples {
    /// `3   30000000: 1 2`: how many values are negative; none if it is no sample.
    fn take(&mut self, text: &[u8], count: usize, line: u64) -> Option<u64> {
        let (values, end) = (self.values.len(), self.locations.len());
        let negative = self.take_numbers(text);
        if negative.is_none() || self.values.len() != values + count {
            self.values.truncate(values);
            self.locations.truncate(end);
            return None;
        }
        self.rows.push(Raw { line, task: None, end: self.locations.len() });
        negative
    }

    fn take_numbers(&mut self, text: &[u8]) -> Option<u64> {
        let at = memchr::memchr(b':', text)?;
        let mut negative = 0;
        for word in text[..at].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            let digits = word.strip_prefix(b"-").filter(|digits| is_decimal(digits));
            negative += u64::from(digits.is_some());
            self.values.push(if digits.is_some() { 0 } else { number(word)? });
        }
        let mut id: Option<u64> = None;
        for byte in &text[at + 1..] {
            match byte {
                b'0'..=b'9' => {
                    let tens = id.unwrap_or(0).checked_mul(10)?;
                    id = Some(tens.checked_add(u64::from(byte - b'0'))?);
                }
                _ if byte.is_ascii_whitespace() => self.locations.extend(id.take()),
                _ => return None,
            }
        }
        self.locations.extend(id);
        Some(negative)
    }

    /// Gives a sample, the last but so many, the thread that the labels below it name.
    fn set_task(&mut self, behind: usize, task: Option<TaskIndex>) {
        if let Some(row) = self.rows.iter_mut().rev().nth(behind) {
            row.task = task;
        }
    }
}

fn take_location(text: &[u8], last: &mut u64, locations: &mut FxHashMap<u64, Location>) -> bool {
    let start = memchr::memmem::find(text, b": 0x").and_then(|at| Some((at, number(&text[..at])?)));
    let Some((at, id)) = start else {
        let Some(location) = locations.get_mut(last) else { return false };
        location.functions.push(function(text));
        return true;
    };
    *last = id;
    let location = locations.entry(id).or_default();
    let rest = &text[at + 4..];
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let digits = str::from_utf8(&rest[..end]).ok();
    location.address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let mut rest = rest[end..].trim_ascii();
    if let Some(behind) = rest.strip_prefix(b"M=") {
        let end = memchr::memchr(b' ', behind).unwrap_or(behind.len());
        location.mapping = number(&behind[..end]).unwrap_or_default();
        rest = behind[end..].trim_ascii();
    }
    rest = rest.strip_prefix(b"[F]").unwrap_or(rest).trim_ascii();
    if !rest.is_empty() {
        location.functions.push(function(rest));
    }
    true
}

/// `main.work[...] /src/main.go:12:0 s=10`: the function alone, which may hold blanks.
fn function(text: &[u8]) -> Vec<u8> {
    let head = match rfind(text, b" s=") {
        Some(at) => &text[..at],
        None => text,
    };
    // A path may hold blanks, too, if it is an absolute one.
    let path = memchr::memmem::find(head, b" /")
        .or_else(|| windows_path(head))
        .or_else(|| memchr::memrchr(b' ', head));
    let Some(at) = path else { return head.to_vec() };
    let place = &head[at + 1..];
    let is_place =
        memchr::memrchr(b':', place).is_some_and(|colon| is_decimal(&place[colon + 1..]));
    if is_place { head[..at].trim_ascii().to_vec() } else { head.to_vec() }
}

/// The blank before `C:/Program Files/Go/src/runtime/proc.go:271`.
fn windows_path(text: &[u8]) -> Option<usize> {
    let at = text.windows(4).position(
        |four| matches!(four, [b' ', drive, b':', b'/' | b'\\'] if drive.is_ascii_alphabetic()),
    );
    at.filter(|at| *at > 0)
}

/// `1: 0x400000/0x4c9000/0x0 /usr/bin/server 5f3a [FN]`
fn take_mapping(text: &[u8], mappings: &mut FxHashMap<u64, Mapping>) -> bool {
    let Some(at) = memchr::memmem::find(text, b": ") else { return false };
    let Some(id) = number(&text[..at]) else { return false };
    let mut words = text[at + 2..].split(|byte| *byte == b' ');
    let range = str::from_utf8(words.next().unwrap_or_default()).unwrap_or_default();
    let place = |at: usize| {
        let digits = range.split('/').nth(at)?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    let (start, offset) = (place(0).unwrap_or_default(), place(2).unwrap_or_default());
    let path = words.next().unwrap_or_default();
    let is_id = is_hex(path) || path.starts_with(b"[FN]");
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if !base.is_empty() && !is_id {
        mappings.insert(id, Mapping { start, offset, name: base.to_vec() });
    }
    true
}

fn add_all(
    samples: &Samples,
    locations: &FxHashMap<u64, Location>,
    mappings: &FxHashMap<u64, Mapping>,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let mut known: FxHashMap<u64, Vec<FrameIndex>> = FxHashMap::default();
    let (mut stack, mut start) = (Vec::new(), 0);
    let count = samples.values.len() / samples.rows.len().max(1);
    for (sample, values) in samples.rows.iter().zip(samples.values.chunks(count.max(1))) {
        stack.clear();
        let ids = &samples.locations[start..sample.end];
        start = sample.end;
        let missing = ids.iter().rev().find(|id| {
            let frames = match known.entry(**id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => match locations.get(id) {
                    Some(location) => new.insert(frames(location, mappings, sink)),
                    None => return true,
                },
            };
            stack.extend_from_slice(frames);
            false
        });
        if let Some(id) = missing {
            let reason = format!("it has no location {id}");
            sink.skip(Place::Line(sample.line), &reason, b"")?;
            continue;
        }
        sink.add(&Sample { task: sample.task, ..Sample::new(&stack, values) });
    }
    Ok(())
}

/// The frames of a location, outermost first.
fn frames(
    location: &Location,
    mappings: &FxHashMap<u64, Mapping>,
    sink: &mut Sink,
) -> Vec<FrameIndex> {
    if location.functions.is_empty() {
        let name = match mappings.get(&location.mapping) {
            Some(Mapping { start, offset, name }) => {
                let place = location.address.wrapping_sub(*start).wrapping_add(*offset);
                format!("[{}+{place:#x}]", String::from_utf8_lossy(name))
            }
            None => format!("[{:#x}]", location.address),
        };
        return vec![sink.frame(name.as_bytes(), FrameKind::User)];
    }
    let mut frames = Vec::new();
    for (at, name) in location.functions.iter().rev().enumerate() {
        let kind = if at == 0 { FrameKind::User } else { FrameKind::Inlined };
        frames.push(sink.frame(name, kind));
    }
    frames
}
