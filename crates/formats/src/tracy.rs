//! Tracy's zones as CSV: `tracy-csvexport`, with `-u` each zone, with `-g` those of the GPU.
//!
//! ```text
//! name,src_file,src_line,ns_since_start,exec_time_ns,thread,value
//! Frame,src/main.cpp,30,1000,16000000,4242,
//! Draw,src/draw.cpp,12,2000,9000000,4242,level 3
//! ```
//!
//! Zones of a thread stand within one another by their times. Without `-u` there are sums alone, which
//! are not stacks: a frame each. Nothing is quoted, so a name may hold the separator.
//!
//! Source: csvexport.cpp of Tracy 0.11.

use std::collections::BTreeMap;
use std::mem;

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::number;
use crate::odd::Odd;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskName};
use crate::skipped::Place;
use crate::spans::{Span, nest};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "tracy",
    description: "Tracy's zones as CSV (tracy-csvexport; with -u for stacks)",
    content: Content::Text,
    detect: |head: &Head<'_>| head.lines().next().is_some_and(|line| Columns::of(line).is_some()),
    reader: Reader::Stacks(read),
};

/// What the rows are, and what parts their fields.
#[derive(Clone, Copy, Debug)]
struct Columns {
    separator: u8,
    rows: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// name, file, line, start, time, thread, text
    Zones,
    /// name, file, start, time
    GpuZones,
    /// name, file, line, time, share, count, ...
    Sums,
}

impl Columns {
    fn of(header: &[u8]) -> Option<Columns> {
        let rest = header.trim_ascii_end().strip_prefix(b"name")?;
        let (separator, rest) = rest.split_first()?;
        let separator = *separator;
        let names: Vec<&[u8]> = rest.split(|byte| *byte == separator).collect();
        let rows = match &*names {
            [b"src_file", b"src_line", b"ns_since_start", b"exec_time_ns", b"thread", ..] => {
                Rows::Zones
            }
            [b"src_file", b"Time from start of program", b"GPU execution time"] => Rows::GpuZones,
            [b"src_file", b"src_line", b"total_ns", b"total_perc", b"counts", ..] => Rows::Sums,
            _ => return None,
        };
        Some(Columns { separator, rows })
    }

    /// The name of a row and the numbers behind the file's name.
    fn row<'l>(&self, line: &'l [u8]) -> Option<(&'l [u8], [u64; 4])> {
        let count = match self.rows {
            Rows::GpuZones => 2,
            Rows::Zones | Rows::Sums => 4,
        };
        let ends: Vec<usize> = memchr::memchr_iter(self.separator, line).collect();
        let field = |at: usize| -> Option<&[u8]> {
            let start = if at == 0 { 0 } else { ends.get(at - 1)? + 1 };
            line.get(start..ends.get(at).copied().unwrap_or(line.len()))
        };
        // The first place where as many numbers follow as there must be.
        let file = (1..=ends.len()).find(|file| {
            (1..=count).all(|at| {
                let text = field(file + at).unwrap_or_default();
                match (self.rows, at) {
                    (Rows::Sums, 3) => str::from_utf8(text).is_ok_and(|t| t.parse::<f64>().is_ok()),
                    _ => number::<u64>(text).is_some(),
                }
            })
        })?;
        let mut numbers = [0; 4];
        for (place, number_of) in numbers.iter_mut().zip(1..=count) {
            // A share has a fraction, and is not used.
            *place = number(field(file + number_of)?).unwrap_or(0);
        }
        Some((&line[..ends[file - 1]], numbers))
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let header = lines.next_line()?.and_then(|line| Columns::of(line.text));
    let Some(columns) = header else {
        return sink.skip(Place::Line(1), "it is not a head of zones", b"");
    };
    sink.set_values(match columns.rows {
        Rows::Sums => vec![ValueType::new("time", "nanoseconds"), ValueType::new("zones", "count")],
        _ => vec![ValueType::new("time", "nanoseconds")],
    });
    let mut threads: BTreeMap<u64, Vec<Span<FrameIndex>>> = BTreeMap::new();
    let (mut order, mut plots, mut has_sums) = (0, 0, false);
    while let Some(line) = lines.next_line()? {
        let Some((name, numbers)) = columns.row(line.text) else {
            let is_plot = columns.rows == Rows::Zones && is_plot(line.text, columns.separator);
            if is_plot {
                plots += 1;
            } else if !line.text.trim_ascii().is_empty() && Columns::of(line.text).is_none() {
                sink.skip(Place::Line(line.number), "it is not a zone", line.text)?;
            }
            continue;
        };
        let frame = sink.frame(name, FrameKind::User);
        let (thread, start, time) = match columns.rows {
            Rows::Zones => (numbers[3], numbers[1], numbers[2]),
            Rows::GpuZones => (0, numbers[0], numbers[1]),
            Rows::Sums => {
                sink.add(&Sample::new(&[frame], &[numbers[1], numbers[3]]));
                has_sums = true;
                continue;
            }
        };
        let end = start.saturating_add(time);
        threads.entry(thread).or_default().push(Span { name: frame, start, end, order });
        order += 1;
    }
    let mut overlapping = Odd::default();
    for (thread, spans) in mem::take(&mut threads) {
        let name = match columns.rows {
            Rows::GpuZones => "GPU".to_owned(),
            _ => format!("thread {thread}"),
        };
        let tid = u32::try_from(thread).ok().filter(|_| columns.rows == Rows::Zones);
        let task = sink.task(TaskName { name: name.as_bytes(), tid, ..TaskName::default() });
        nest(spans, task, &mut overlapping, sink);
    }
    if has_sums {
        sink.note("sums of zones are not stacks, and include nested zones: use csvexport -u");
    }
    if plots > 0 {
        sink.note(format!("values of plots, which are not zones: {plots}"));
    }
    let what = "zones that outlast the one they began in";
    overlapping.say(what, "they are drawn to its end", sink)
}

/// `fps,,,123000,,,60.0`
fn is_plot(line: &[u8], separator: u8) -> bool {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == separator).collect();
    matches!(&*fields, [.., b"", b"", time, b"", b"", _] if number::<u64>(time).is_some())
}
