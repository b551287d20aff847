//! What Instruments copies as text: Edit > Deep Copy of a call tree.
//!
//! A header, then a row a function, tabs between the columns; blanks before the name are its depth:
//!
//! ```text
//! Weight    Self Weight        Symbol Name
//! 4.93 s  100.0%    0 s         start
//! 4.93 s  99.9%    846.00 ms          main
//! ```

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{rust_signs, without_arguments};
use crate::quantity::{Measure, quantity, scaled};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "instruments",
    description: "Xcode Instruments, a call tree copied as text (Edit > Deep Copy)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let header = head.lines().find(|line| !line.is_empty());
        header.is_some_and(|line| Columns::of_header(line).is_some())
    },
    reader: Reader::Stacks(read),
};

/// Where a row has what.
#[derive(Debug, PartialEq, Eq)]
struct Columns {
    /// The column with the row's own weight; without one, it is what the rows below leave over.
    own: Option<usize>,
    /// Whether own weights are numbers of milliseconds.
    in_milliseconds: bool,
    count: usize,
}

impl Columns {
    fn of_header(line: &[u8]) -> Option<Columns> {
        let names: Vec<&[u8]> = line.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii).collect();
        let first = names.first()?;
        let weighs = [&b"Weight"[..], b"Running Time", b"Bytes Used", b"Count", b"Cycles"];
        if !weighs.contains(first) || !names.last()?.starts_with(b"Symbol Name") {
            return None;
        }
        let own = names.iter().position(|name| name.starts_with(b"Self"));
        let in_milliseconds = own.is_some_and(|own| names[own].ends_with(b"(ms)"));
        Some(Columns { own, in_milliseconds, count: names.len() })
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut columns = None;
    let mut rows = None;
    let mut measure = None;
    while let Some(line) = lines.next_line()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        if columns.is_none() {
            columns = Columns::of_header(line.text);
            if columns.is_none() {
                sink.skip(Place::Line(line.number), "no header of a call tree", line.text)?;
            }
            continue;
        }
        let Some(columns) = &columns else { continue };
        let Some(row) = Row::parse(line.text, columns) else {
            sink.skip(Place::Line(line.number), "it is not a row of a call tree", line.text)?;
            continue;
        };
        let measured = *measure.get_or_insert_with(|| {
            sink.set_values(vec![row.measure.value_type(value_name(row.measure))]);
            row.measure
        });
        if row.measure != measured && row.weight != 0 {
            sink.skip(Place::Line(line.number), "its weight has another unit", line.text)?;
            continue;
        }
        let kind = if columns.own.is_some() { Weights::Own } else { Weights::WithRowsBelow };
        let rows = rows.get_or_insert_with(|| TreeRows::new(kind, TopRow::Outermost));
        let frame = sink.frame(&rust_signs(without_arguments(row.name)), FrameKind::User);
        rows.push(sink, row.depth, frame, &[row.weight]);
    }
    if let Some(mut rows) = rows {
        rows.finish(sink);
    }
    Ok(())
}

fn value_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Time => "time",
        Measure::Bytes => "bytes",
        Measure::Cycles => "cycles",
        Measure::Count => "samples",
    }
}

struct Row<'l> {
    depth: usize,
    name: &'l [u8],
    weight: u64,
    measure: Measure,
}

impl Row<'_> {
    fn parse<'l>(line: &'l [u8], columns: &Columns) -> Option<Row<'l>> {
        let fields: Vec<&[u8]> = line.splitn(columns.count, |byte| *byte == b'\t').collect();
        let name = *fields.last().filter(|_| fields.len() == columns.count)?;
        let (total, measure) = weight_of(fields[0])?;
        let weight = match columns.own.map(|own| fields[own].trim_ascii()) {
            None => total,
            Some(b"-" | b"") => 0,
            Some(own) if columns.in_milliseconds => scaled(str::from_utf8(own).ok()?, 1_000_000)?,
            Some(own) => weight_of(own)?.0,
        };
        let bare = name.trim_ascii_start();
        (!bare.is_empty()).then(|| Row {
            depth: name.len() - bare.len(),
            name: bare.trim_ascii_end(),
            weight,
            measure,
        })
    }
}

/// `4.93 s  99.9%`: the number with its unit stands before the share, parted by blanks or a figure
/// space.
fn weight_of(field: &[u8]) -> Option<(u64, Measure)> {
    let text = str::from_utf8(field).ok()?.trim();
    let plain = match text.strip_suffix('%') {
        Some(head) => {
            let head = head.trim_end();
            let is_share = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\u{2007}');
            head.trim_end_matches(is_share).trim_end()
        }
        None => text,
    };
    quantity(plain.as_bytes())
}
