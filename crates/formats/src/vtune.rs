//! Intel VTune's call trees as CSV: `vtune -report top-down -format csv`, hotspots and memory.
//!
//! ```text
//! Function Stack,CPU Time:Self,Module
//! Total,0,
//!  main,0.010000,server
//!   poll,1.250000,libc.so.6
//! ```
//!
//! Blanks before the function are its depth; own times are in seconds.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::csv::{column, fields};
use crate::head::Head;
use crate::input::Input;
use crate::names::{number, without_arguments};
use crate::quantity::scaled;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
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
    /// Those of allocated bytes, and of the number of allocations.
    Memory { bytes: usize, count: Option<usize> },
}

impl Columns {
    fn of_header(line: &[u8]) -> Option<Columns> {
        let separator = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b',' };
        let names = fields(line, separator);
        let function = column(&names, |name| {
            matches!(name, "function stack" | "function / call stack" | "call stack")
        })?;
        let module = column(&names, |name| name == "module");
        let time = column(&names, |name| name == "cpu time:self").or_else(|| {
            column(&names, |name| name.starts_with("cpu time") && name.contains("self"))
        });
        let weights = match time {
            Some(time) => What::Time(time),
            None => What::Memory {
                bytes: column(&names, |name| name.starts_with("allocation size"))?,
                count: column(&names, |name| name.starts_with("allocations")),
            },
        };
        Some(Columns { separator, function, module, weights })
    }

    fn values(&self) -> Vec<ValueType> {
        match self.weights {
            What::Time(_) => vec![ValueType::new("cpu", "nanoseconds")],
            What::Memory { count: None, .. } => vec![ValueType::new("allocated", "bytes")],
            What::Memory { count: Some(_), .. } => {
                vec![ValueType::new("allocated", "bytes"), ValueType::new("allocations", "count")]
            }
        }
    }

    fn weights(&self, row: &[Vec<u8>]) -> Option<Vec<u64>> {
        let field = |at: usize| row.get(at).map(|field| field.trim_ascii());
        let whole = |at: usize| match field(at)? {
            b"" => Some(0),
            text => number(text),
        };
        Some(match self.weights {
            What::Time(at) => match field(at)? {
                b"" => vec![0],
                text => {
                    let text = str::from_utf8(text).ok()?;
                    vec![scaled(text.trim_end_matches('s'), 1_000_000_000)?]
                }
            },
            What::Memory { bytes, count: None } => vec![whole(bytes)?],
            What::Memory { bytes, count: Some(count) } => vec![whole(bytes)?, whole(count)?],
        })
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut columns: Option<Columns> = None;
    let mut rows = TreeRows::new(Weights::Own, TopRow::Outermost);
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
        let mut text = match module {
            Some(module) if !module.is_empty() && !bare.starts_with(b"[") => {
                [module, b"`"].concat()
            }
            _ => Vec::new(),
        };
        text.extend_from_slice(without_arguments(bare.trim_ascii_end()));
        let frame = sink.frame(&text, FrameKind::User);
        rows.push(sink, depth, frame, &weights);
    }
    rows.finish(sink);
    Ok(())
}
