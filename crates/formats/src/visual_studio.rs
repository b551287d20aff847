//! Visual Studio's profiler: the call tree as CSV (`VSPerfReport /summary:calltree`), of sampling
//! and of instrumentation.
//!
//! ```text
//! Level,Function Name,Inclusive Samples,Exclusive Samples,Module Name
//! 0,server.exe,"1,234",0,
//! 1,main,"1,230",12,server.exe
//! ```
//!
//! Instrumented programs have the mean time of a call, to a hundredth of a millisecond, and shares of all time,
//! to a hundredth of a percent. Of functions that are called often the mean says little (`0.00`), so what
//! is the more exact of both counts.

use std::borrow::Cow;

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
    /// Those of calls.
    Calls(Calls),
}

/// The columns of a function's calls.
#[derive(Clone, Copy, Debug)]
struct Calls {
    count: usize,
    /// The mean own time of one, in milliseconds.
    own_time: usize,
    /// The mean time of one with all that it calls.
    time: Option<usize>,
    /// The shares of all time, in percent: own, and with all that is called.
    shares: Option<(usize, usize)>,
}

impl Calls {
    /// The own time of a row in nanoseconds, where all rows take `total`.
    fn own(&self, row: &[Cow<'_, [u8]>], total: Option<u64>) -> Option<u64> {
        let calls = scaled(text(row, self.count)?, 1)?;
        let by_mean = calls.checked_mul(scaled(text(row, self.own_time)?, MILLISECOND)?)?;
        let (Some(total), Some((own, _))) = (total, self.shares) else { return Some(by_mean) };
        // Half of the last digit of each is what they may be wrong by.
        let wrong_by_mean = u128::from(calls) * u128::from(MILLISECOND / 200);
        let wrong_by_share = u128::from(total / 20_000);
        if wrong_by_mean <= wrong_by_share {
            return Some(by_mean);
        }
        let share = scaled(text(row, own)?, 100)?;
        u64::try_from(u128::from(total) * u128::from(share) / 10_000).ok()
    }

    /// The time of all rows in nanoseconds, by a row whose share is known, and how exactly.
    fn total(&self, row: &[Cow<'_, [u8]>]) -> Option<(u64, u64)> {
        let calls = scaled(text(row, self.count)?, 1)?;
        let time = calls.checked_mul(scaled(text(row, self.time?)?, MILLISECOND)?)?;
        let share = scaled(text(row, self.shares?.1)?, 100).filter(|share| *share > 0)?;
        let total = u64::try_from(u128::from(time) * 10_000 / u128::from(share)).ok()?;
        // Digits that the mean has, but no more than the share.
        let digits = (time / calls.max(1) / (MILLISECOND / 100)).min(share);
        Some((digits, total)).filter(|_| time > 0)
    }
}

const MILLISECOND: u64 = 1_000_000;

fn text<'r>(row: &'r [Cow<'_, [u8]>], at: usize) -> Option<&'r str> {
    str::from_utf8(row.get(at)?).ok().map(str::trim)
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
            (_, _, Some(count), Some(own_time)) => {
                let share = |name| column(&names, |found| found == name);
                let (own, all) =
                    (share("elapsed exclusive time %"), share("elapsed inclusive time %"));
                let time = column(&names, |name| name.starts_with("avg elapsed inclusive"));
                What::Calls(Calls { count, own_time, time, shares: own.zip(all) })
            }
            _ => return None,
        };
        Some(Columns { level, function, weights })
    }

    fn weight(&self, row: &[Cow<'_, [u8]>], total: Option<u64>) -> Option<u64> {
        match self.weights {
            What::Own(at) | What::WithRowsBelow(at) => scaled(text(row, at)?, 1),
            What::Calls(calls) => calls.own(row, total),
        }
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut columns = None;
    // The time of all is known when all rows are.
    let mut rows: Vec<(u64, Vec<Cow<'static, [u8]>>)> = Vec::new();
    let mut total: Option<(u64, u64)> = None;
    while let Some(line) = lines.next_line()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let Some(Columns { weights, .. }) = &columns else {
            columns = Columns::of_header(line.text);
            continue;
        };
        let row = fields(line.text, b',');
        if let What::Calls(calls) = weights {
            total = total.max(calls.total(&row));
        }
        let row = row.into_iter().map(|field| field.into_owned().into()).collect();
        rows.push((line.number, row));
    }
    let Some(columns) = columns else { return Ok(()) };
    if let What::Calls(_) = columns.weights {
        sink.set_values(vec![ValueType::new("time", "nanoseconds")]);
    }
    let kind = match columns.weights {
        What::WithRowsBelow(_) => Weights::WithRowsBelow,
        What::Own(_) | What::Calls(_) => Weights::Own,
    };
    let mut tree = TreeRows::new(kind, TopRow::Outermost);
    let total = total.map(|(_, total)| total);
    for (number_of_line, row) in rows {
        let level = row.get(columns.level).and_then(|level| number(level.trim_ascii()));
        let name = row.get(columns.function).filter(|name| !name.is_empty());
        let weight = columns.weight(&row, total);
        let (Some(level), Some(name), Some(weight)) = (level, name, weight) else {
            let text = row.join(&b',');
            sink.skip(Place::Line(number_of_line), "it is not a row of a call tree", &text)?;
            continue;
        };
        let frame = sink.frame(without_arguments(name.trim_ascii()), FrameKind::User);
        tree.push(sink, level, frame, &[weight]);
    }
    tree.finish(sink);
    Ok(())
}
