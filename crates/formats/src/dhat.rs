//! DHAT's JSON, of Valgrind and of the Rust crate `dhat`: who allocated what, summed over the run.
//!
//! Each program point has its bytes and blocks in all, those alive at the peak, and a stack.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{self, Value, index, text};
use crate::names::{is_hex, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "dhat",
    description: "DHAT heap profiles (valgrind --tool=dhat, the Rust crate dhat)",
    content: Content::Text,
    detect: |head: &Head<'_>| head.is_json() && head.contains(b"\"dhatFileVersion\""),
    reader: Reader::Stacks(read),
};

/// The keys of a program point, and what they count: bytes and blocks in all, bytes and blocks at the
/// time of the largest heap, bytes at the end.
const VALUES: [(&str, &str, &str); 5] = [
    ("tb", "allocated", "bytes"),
    ("tbk", "allocations", "count"),
    ("gb", "peak", "bytes"),
    ("gbk", "peak_blocks", "count"),
    ("eb", "end", "bytes"),
];

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = json::read(input)?;
    let root = json::parse(&file, "DHAT file")?;
    let (Some(points), Some(table)) = (root["pps"].as_array(), root["ftbl"].as_array()) else {
        let what = "it has no program points or no frames".to_owned();
        return Err(ReadError::Broken { format: "DHAT file", what });
    };
    let has = |key: &&(&str, &str, &str)| points.iter().any(|point| !point[key.0].is_null());
    let values: Vec<_> = VALUES.iter().filter(has).collect();
    if values.is_empty() {
        return Ok(());
    }
    let types = values.iter().map(|(_, name, unit)| ValueType::new(*name, *unit));
    sink.set_values(types.collect());
    let frames: Vec<Option<FrameIndex>> = table
        .iter()
        .map(|frame| function(text(frame)).map(|name| sink.frame(name, FrameKind::User)))
        .collect();
    for (at, point) in points.iter().enumerate() {
        let ids = point["fs"].items();
        let found: Option<Vec<_>> = ids.iter().map(|id| frames.get(index(id)?)).collect();
        let Some(found) = found else {
            let reason = "it has a frame that is not in the file";
            sink.skip(Place::Record(at as u64 + 1), reason, point.to_string().as_bytes())?;
            continue;
        };
        let stack: Vec<FrameIndex> = found.into_iter().rev().copied().flatten().collect();
        let weight =
            |value: &&(&str, &str, &str)| Value::as_u64(&point[value.0]).unwrap_or_default();
        let weights: Vec<u64> = values.iter().map(weight).collect();
        sink.add(&Sample::new(&stack, &weights));
    }
    Ok(())
}

/// `0x10915E: parse (parse.c:12)`; `[root]` is not a frame.
fn function(text: &str) -> Option<&[u8]> {
    let text = text.as_bytes();
    if text == b"[root]" {
        return None;
    }
    let name = match text.strip_prefix(b"0x").and_then(|hex| {
        let colon = memchr::memmem::find(hex, b": ")?;
        is_hex(&hex[..colon]).then(|| &hex[colon + 2..])
    }) {
        Some(name) => name,
        None => text,
    };
    let end = rfind(name, b" (").unwrap_or(name.len());
    let name = without_arguments(&name[..end]);
    Some(if name == b"???" { b"[unknown]" } else { name })
}
