//! DHAT's JSON, of Valgrind and of the Rust crate `dhat`: who allocated what, summed over the run.
//!
//! Each program point has its bytes and blocks in all, those alive at the peak, and a stack.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{Document, Value, index, text};
use crate::names::{is_hex, rfind, without_arguments};
use crate::odd::{Names, Odd};
use crate::quantity::named_unit;
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
static VALUES: [(&str, &str, &str); 5] = [
    ("tb", "allocated", "bytes"),
    ("tbk", "allocations", "count"),
    ("gb", "peak", "bytes"),
    ("gbk", "peak_blocks", "count"),
    ("eb", "end", "bytes"),
];

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = Document::read(input)?;
    let root = file.root(&["pps", "ftbl"]);
    if !root["pps"].is_array() || !root["ftbl"].is_array() {
        return Err(file.without("DHAT file", "program points or no frames"));
    }
    let values = values_in(&file, &root["pps"]);
    if values.is_empty() {
        return file.say_cut(sink);
    }
    sink.set_values(values.iter().map(|value| value_type(value, &root)).collect());
    let mut names = Names::default();
    let frames: Vec<Option<FrameIndex>> = file
        .elements(&root["ftbl"])
        .zip(1..)
        .map(|(frame, number)| {
            let name = function(names.of(&frame, Place::Record(number)))?;
            Some(sink.frame(name, FrameKind::User))
        })
        .collect();
    names.say(sink)?;
    // The names stand behind the program points: those that are missing are the last.
    let missing = file.is_cut().then(|| Some(sink.frame(b"[unknown]", FrameKind::User)));
    let (mut unnamed, mut odd) = (0, Odd::default());
    for (at, point) in file.elements(&root["pps"]).enumerate() {
        let ids = point["fs"].items();
        let is_missing = |id| index(id).is_some_and(|at| at >= frames.len());
        unnamed += u64::from(missing.is_some() && ids.iter().any(is_missing));
        let frame = |id| index(id).and_then(|at| frames.get(at)).or(missing.as_ref());
        let found: Option<Vec<_>> = ids.iter().map(frame).collect();
        let place = Place::Record(at as u64 + 1);
        let has_frames = point["fs"].is_array();
        let Some(found) = found.filter(|_| has_frames) else {
            let reason = match has_frames {
                true => "it has a frame that is not in the file",
                false => "it has no list of frames",
            };
            sink.skip(place, reason, point.to_string().as_bytes())?;
            continue;
        };
        let stack: Vec<FrameIndex> = found.into_iter().rev().copied().flatten().collect();
        let weights: Vec<u64> =
            values.iter().map(|(key, ..)| odd.weight(&point[*key], place)).collect();
        sink.add(&Sample::new(&stack, &weights));
    }
    odd.say_weights(sink)?;
    if unnamed > 0 {
        let what = "program points with functions whose names are missing";
        sink.note(format!("{what}: {unnamed}; these are [unknown]"));
    }
    file.say_cut(sink)
}

/// What a value counts: of the heap, of copies (`--mode=copy`), or of what the program itself says (`--mode=ad-hoc`).
fn value_type((key, name, unit): &(&str, &str, &str), root: &Value<'_>) -> ValueType {
    match (text(&root["mode"]), *key) {
        ("copy", "tb") => ValueType::new("copied", "bytes"),
        ("copy", "tbk") => ValueType::new("copies", "count"),
        ("ad-hoc", "tb") => named_unit(text(&root["bsu"])),
        ("ad-hoc", "tbk") => ValueType::new("events", "count"),
        _ => ValueType::new(*name, *unit),
    }
}

/// Those of [`VALUES`] that program points have.
fn values_in(
    file: &Document,
    points: &Value<'_>,
) -> Vec<&'static (&'static str, &'static str, &'static str)> {
    let mut has = [false; VALUES.len()];
    for point in file.elements(points) {
        for (has, (key, ..)) in has.iter_mut().zip(&VALUES) {
            *has |= !point[*key].is_null();
        }
    }
    VALUES.iter().zip(has).filter(|(_, has)| *has).map(|(value, _)| value).collect()
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
