//! Intel VTune's call trees as CSV: `vtune -report top-down -format csv`, hotspots and memory.
//!
//! ```text
//! Function Stack,CPU Time:Self,Module
//! Total,0,
//!  main,0.010000,server
//!   poll,1.250000,libc.so.6
//! ```
//!
//! Blanks before the function are its depth; own times are in seconds, or say their unit. Any delimiter of
//! `-csv-delimiter` parts the columns. Reports without a time have a count: `Clockticks:Self`.

use std::borrow::Cow;

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::csv::{column, fields};
use crate::head::Head;
use crate::input::Input;
use crate::line_cache::{LineCache, LineKey};
use crate::names::{number, without_arguments};
use crate::quantity::{Measure, quantity, scaled};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};
use crate::skipped::Place;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "vtune",
    description: "Intel VTune call trees as CSV (vtune -report top-down -format csv)",
    content: Content::Text,
    detect: |head: &Head<'_>| head.lines().take(20).any(|line| Columns::of_header(line).is_some()),
    reader: Reader::Stacks(read),
};

#[derive(Debug)]
struct Columns {
    separator: u8,
    function: usize,
    module: Option<usize>,
    weights: What,
}

/// What the rows weigh.
#[derive(Debug)]
enum What {
    /// The column of own time in seconds.
    Time(usize),
    /// The column of another number of a function's own, and what it counts.
    Count(usize, String),
    /// Those of allocated bytes, and of the number of allocations.
    Memory { bytes: usize, count: Option<usize> },
}

impl Columns {
    fn of_header(line: &[u8]) -> Option<Columns> {
        // Colons stand in names, too.
        let is_there = |separator: &u8| memchr::memchr(*separator, line).is_some();
        let separator = [b'\t', b';', b'|'].into_iter().find(is_there).unwrap_or(b',');
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let names = fields(line, separator);
        let function = column(&names, |name| {
            matches!(name, "function stack" | "function / call stack" | "call stack")
        })?;
        let module = column(&names, |name| name == "module");
        let is_own = |name: &str| name.contains(":self") || name.contains(": self");
        let time =
            column(&names, |name| name.replace(": ", ":") == "cpu time:self").or_else(|| {
                column(&names, |name| name.starts_with("cpu time") && name.contains("self"))
            });
        let bytes = column(&names, |name| name.starts_with("allocation size"));
        let other = column(&names, is_own).and_then(|at| Some((at, names.get(at)?)));
        let weights = match (time, bytes, other) {
            (Some(time), ..) => What::Time(time),
            (_, Some(bytes), _) => What::Memory {
                bytes,
                count: column(&names, |name| name.starts_with("allocations")),
            },
            (_, _, Some((at, name))) => {
                let name = String::from_utf8_lossy(name);
                let name = name.trim().trim_end_matches("Self").trim_end_matches([' ', ':']);
                match name.to_lowercase().contains("time") {
                    true => What::Time(at),
                    false => What::Count(at, name.to_lowercase().replace(' ', "-")),
                }
            }
            _ => return None,
        };
        Some(Columns { separator, function, module, weights })
    }

    fn values(&self) -> Vec<ValueType> {
        match &self.weights {
            What::Time(_) => vec![ValueType::new("cpu", "nanoseconds")],
            What::Count(_, name) => vec![ValueType::new(name.clone(), "count")],
            What::Memory { count: None, .. } => vec![ValueType::new("allocated", "bytes")],
            What::Memory { count: Some(_), .. } => {
                vec![ValueType::new("allocated", "bytes"), ValueType::new("allocations", "count")]
            }
        }
    }

    fn weights(&self, row: &[Cow<'_, [u8]>]) -> Option<Vec<u64>> {
        let field = |at: usize| row.get(at).map(|field| field.trim_ascii());
        let whole = |at: usize| match field(at)? {
            b"" => Some(0),
            text => number(text),
        };
        Some(match &self.weights {
            What::Time(at) => match field(*at)? {
                b"" | b"0" => vec![0],
                text => vec![self.nanoseconds(text)?],
            },
            What::Count(at, _) => match field(*at)? {
                b"" => vec![0],
                text => vec![scaled(str::from_utf8(text).ok()?, 1)?],
            },
            What::Memory { bytes, count: None } => vec![whole(*bytes)?],
            What::Memory { bytes, count: Some(count) } => vec![whole(*bytes)?, whole(*count)?],
        })
    }

    /// `0.010000`, `0.010s`, `12ms`, and `0,010000` where commas do not part columns.
    fn nanoseconds(&self, text: &[u8]) -> Option<u64> {
        let text = str::from_utf8(text).ok()?;
        let is_decimal_comma = self.separator != b',' && !text.contains('.');
        let text = match is_decimal_comma {
            true => Cow::Owned(text.replacen(',', ".", 1)),
            false => Cow::Borrowed(text),
        };
        match quantity(text.as_bytes())? {
            (nanoseconds, Measure::Time) => Some(nanoseconds),
            (_, Measure::Count) => scaled(&text, 1_000_000_000),
            _ => None,
        }
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut columns: Option<Columns> = None;
    let mut rows = TreeRows::new(Weights::Own, TopRow::Outermost);
    let mut frames = LineCache::default();
    while let Some(line) = lines.next_line()? {
        // `war:` starts what vtune says of itself.
        if line.text.trim_ascii().is_empty() || line.text.starts_with(b"war:") {
            continue;
        }
        let Some(known) = &columns else {
            columns = Columns::of_header(line.text);
            if let Some(columns) = &columns {
                sink.set_values(columns.values());
            }
            continue;
        };
        let row = fields(line.text, known.separator);
        let (Some(name), Some(weights)) = (row.get(known.function), known.weights(&row)) else {
            sink.skip(Place::Line(line.number), "it is not a row of a call tree", line.text)?;
            continue;
        };
        let bare = name.trim_ascii_start();
        let depth = name.len() - bare.len();
        if bare == b"Total" && depth == 0 {
            continue;
        }
        let module = known.module.and_then(|at| row.get(at)).map(|module| module.trim_ascii());
        let module = module.filter(|_| !bare.starts_with(b"[")).unwrap_or_default();
        let frame = frames.get_or(LineKey::Around(bare, module), || {
            let function = without_arguments(bare.trim_ascii_end());
            let parted = [module, b"`", function].concat();
            let name = if module.is_empty() { function } else { &parted };
            sink.frame(name, FrameKind::User).0
        });
        rows.push(sink, depth, FrameIndex(frame), &weights);
    }
    rows.finish(sink);
    Ok(())
}
