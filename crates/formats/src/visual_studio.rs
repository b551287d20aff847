//! Visual Studio's profiler: the call tree as CSV (`VSPerfReport /summary:calltree`), of sampling
//! and of instrumentation.
//!
//! ```text
//! Level,Function Name,Inclusive Samples,Exclusive Samples,Module Name
//! 0,server.exe,"1,234",0,
//! 1,main,"1,230",12,server.exe
//! ```

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
    name: "visual-studio",
    description: "Visual Studio call trees as CSV, sampled or instrumented",
    content: Content::Text,
    detect: |head: &Head<'_>| head.lines().take(8).any(|line| Columns::of_header(line).is_some()),
    reader: Reader::Stacks(read),
};

#[derive(Debug)]
struct Columns {
    level: usize,
    function: usize,
    weights: What,
}

#[derive(Debug)]
enum What {
    /// The column of a row's own samples.
    Own(usize),
    /// That of the samples of a row and all below it.
    WithRowsBelow(usize),
    /// Those of the number of calls and of the mean own time of one, in milliseconds.
    Calls { count: usize, own_time: usize },
}

impl Columns {
    fn of_header(line: &[u8]) -> Option<Columns> {
        let names = fields(line, b',');
        let level = column(&names, |name| name == "level")?;
        let function = column(&names, |name| name.starts_with("function"))?;
        let is_number = |name: &str| !name.contains('%');
        let own = column(&names, |name| name.starts_with("exclusive") && is_number(name));
        let below = column(&names, |name| name.starts_with("inclusive") && is_number(name));
        let calls = column(&names, |name| name == "number of calls");
        let own_time = column(&names, |name| name.starts_with("avg elapsed exclusive"));
        let weights = match (own, below, calls, own_time) {
            (Some(own), ..) => What::Own(own),
            (_, Some(below), ..) => What::WithRowsBelow(below),
            (_, _, Some(count), Some(own_time)) => What::Calls { count, own_time },
            _ => return None,
        };
        Some(Columns { level, function, weights })
    }

    fn weight(&self, row: &[Vec<u8>]) -> Option<u64> {
        let text = |at: usize| str::from_utf8(row.get(at)?).ok().map(str::trim);
        match self.weights {
            What::Own(at) | What::WithRowsBelow(at) => scaled(text(at)?, 1),
            What::Calls { count, own_time } => {
                scaled(text(count)?, 1)?.checked_mul(scaled(text(own_time)?, 1_000_000)?)
            }
        }
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut known: Option<(Columns, TreeRows)> = None;
    while let Some(line) = lines.next_line()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let Some((columns, rows)) = &mut known else {
            known = Columns::of_header(line.text).map(|columns| {
                let is_time = matches!(columns.weights, What::Calls { .. });
                if is_time {
                    sink.set_values(vec![ValueType::new("time", "nanoseconds")]);
                }
                let kind = match columns.weights {
                    What::WithRowsBelow(_) => Weights::WithRowsBelow,
                    What::Own(_) | What::Calls { .. } => Weights::Own,
                };
                (columns, TreeRows::new(kind, TopRow::Outermost))
            });
            continue;
        };
        let row = fields(line.text, b',');
        let level = row.get(columns.level).and_then(|level| number(level.trim_ascii()));
        let name = row.get(columns.function);
        let (Some(level), Some(name), Some(weight)) = (level, name, columns.weight(&row)) else {
            sink.skip(Place::Line(line.number), "it is not a row of a call tree", line.text)?;
            continue;
        };
        let frame = sink.frame(without_arguments(name.trim_ascii()), FrameKind::User);
        rows.push(sink, level, frame, &[weight]);
    }
    if let Some((_, mut rows)) = known {
        rows.finish(sink);
    }
    Ok(())
}
