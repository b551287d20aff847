//! GHC's cost-centre profiles: `+RTS -p` as text, `-pj` as JSON.
//!
//! ```text
//! COST CENTRE MODULE    SRC             no.  entries  %time %alloc   %time %alloc  ticks  bytes
//!
//! MAIN        MAIN      <built-in>      115       0    0.0    0.0   100.0  100.0      0     16
//!  main       Main      Main.hs:5:1-20  230       1   40.0   10.0    60.0   55.0    399    900
//! ```
//!
//! Blanks before a cost centre are its depth. With `-P` there are ticks and bytes; otherwise the own
//! share of the time is all that is known, to a tenth of a percent.

use flame_profile::{FrameKind, ValueType};
use rustc_hash::FxHashMap;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{self, Value, count, integer};
use crate::names::number;
use crate::odd::{Names, Odd};
use crate::quantity::scaled;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const TEXT: InputFormat = InputFormat {
    name: "ghc",
    description: "GHC cost-centre profiles (+RTS -p, -P: .prof)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.contains(b"Time and Allocation Profiling Report") || head.lines().any(is_tree_header)
    },
    reader: Reader::Stacks(read_text),
};

pub(crate) const JSON: InputFormat = InputFormat {
    name: "ghc-json",
    description: "GHC cost-centre profiles as JSON (+RTS -pj)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.is_json() && head.contains(b"\"cost_centres\"") && head.contains(b"\"rts_arguments\"")
    },
    reader: Reader::Stacks(read_json),
};

fn is_tree_header(line: &[u8]) -> bool {
    line.starts_with(b"COST CENTRE") && memchr::memmem::find(line, b" entries ").is_some()
}

fn read_text(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut has_ticks = None;
    let mut rows = TreeRows::new(Weights::Own, TopRow::Outermost);
    while let Some(line) = lines.next_line()? {
        if is_tree_header(line.text) {
            let ticks = memchr::memmem::find(line.text, b" ticks ").is_some();
            // Behind a report another may follow, which is added up if it counts the same.
            if let Some(before) = has_ticks {
                if before != ticks {
                    let reason = "it begins a report that counts something else";
                    sink.skip(Place::Line(line.number), reason, line.text)?;
                }
                continue;
            }
            has_ticks = Some(ticks);
            sink.set_values(match ticks {
                true => {
                    vec![ValueType::new("ticks", "count"), ValueType::new("allocated", "bytes")]
                }
                false => vec![
                    ValueType::new("time", "permille"),
                    ValueType::new("allocated", "permille"),
                ],
            });
            continue;
        }
        let Some(has_ticks) = has_ticks else { continue };
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let Some((depth, name, weights)) = text_row(line.text, has_ticks) else {
            sink.skip(Place::Line(line.number), "it is not a row of a cost centre", line.text)?;
            continue;
        };
        let frame = sink.frame(&name, FrameKind::User);
        rows.push(sink, depth, frame, &weights);
    }
    rows.finish(sink);
    Ok(())
}

/// Source locations may hold blanks, so the numbers are counted from the end.
fn text_row(line: &[u8], has_ticks: bool) -> Option<(usize, Vec<u8>, [u64; 2])> {
    let bare = line.trim_ascii_start();
    let words: Vec<&[u8]> =
        bare.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let numbers = if has_ticks { 8 } else { 6 };
    let first = words.len().checked_sub(numbers).filter(|first| *first >= 2)?;
    let share = |word: &[u8]| scaled(str::from_utf8(word).ok()?, 10);
    let weights = match has_ticks {
        true => [number(words[first + 6])?, number(words[first + 7])?],
        false => [share(words[first + 2])?, share(words[first + 3])?],
    };
    let _entries: u64 = number(words[first + 1])?;
    Some((line.len() - bare.len(), [words[1], b".", words[0]].concat(), weights))
}

fn read_json(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = json::read(input)?;
    let root = json::parse(&file, "GHC profile")?;
    let tick = count(&root["tick_interval"]);
    let tick = tick.unwrap_or(1000).saturating_mul(1000);
    sink.set_values(vec![
        ValueType::new("cpu", "nanoseconds"),
        ValueType::new("allocated", "bytes"),
    ]);
    let mut names: FxHashMap<i64, FrameIndex> = FxHashMap::default();
    let mut no_names = Names::default();
    for (centre, number) in root["cost_centres"].items().iter().zip(1..) {
        let mut name = |key| no_names.of(&centre[key], Place::Record(number));
        let name = format!("{}.{}", name("module"), name("label"));
        let frame = sink.frame(name.as_bytes(), FrameKind::User);
        names.insert(integer(&centre["id"]).unwrap_or_default(), frame);
    }
    no_names.say(sink)?;
    add_tree(&root["profile"], &names, tick, sink)
}

/// Adds the nodes of a tree, which may be deeper than a thread's own stack is.
fn add_tree(
    root: &Value<'_>,
    names: &FxHashMap<i64, FrameIndex>,
    tick: u64,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let (mut stack, mut left) = (Vec::new(), vec![(0, root)]);
    let (mut record, mut odd) = (0, Odd::default());
    while let Some((depth, node)) = left.pop() {
        record += 1;
        let place = Place::Record(record);
        let Some(frame) = integer(&node["id"]).and_then(|id| names.get(&id)) else {
            let reason = "its cost centre is not in the file";
            sink.skip(place, reason, node["id"].to_string().as_bytes())?;
            continue;
        };
        stack.truncate(depth);
        stack.push(*frame);
        let mut count = |key: &str| odd.weight(&node[key], place);
        let weights = [count("ticks").saturating_mul(tick), count("alloc")];
        sink.add(&Sample::new(&stack, &weights));
        left.extend(node["children"].items().iter().rev().map(|child| (depth + 1, child)));
    }
    odd.say_weights(sink)
}
