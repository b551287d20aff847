//! What is said of a trace, in messages and at the foot of pictures.

use std::io::{Read, Seek};

use flame_message::{Failure, ValueScale, counted as count, group_thousands};
use flame_profile::{ValueType, Weight};

use crate::failure::strange_map;
use crate::follow::Followed;
use crate::functions::Functions;
use crate::layout::ChunkKind;
use crate::map::SymbolMap;
use crate::replay::Facts;
use crate::trace::{Chunk, Trace};

/// Microseconds as people read them: `80 µs`, `9.00 s`.
pub(crate) fn duration(micros: u64) -> String {
    ValueScale::of(&ValueType::new("time", "microseconds")).amount(Weight(micros))
}

/// How much a trace holds, and what was mended: one line.
pub fn summary(facts: &Facts) -> String {
    let Facts { entries, exits, unmatched_exits, open_at_end, .. } = *facts;
    let records = entries + exits + facts.others;
    let mut parts = vec![
        count(records, "record", "records"),
        format!("{} in {}", count(entries, "call", "calls"), duration(facts.span)),
    ];
    let mut part = |number: u64, text: String| parts.extend((number > 0).then_some(text));
    part(
        unmatched_exits,
        count(unmatched_exits, "exit without its entry", "exits without their entry"),
    );
    part(open_at_end, count(open_at_end, "call open at the end", "calls open at the end"));
    let unwound = count(facts.unwound_calls, "call", "calls");
    part(facts.unwound_calls, format!("{unwound} closed without an exit"));
    part(facts.pauses, format!("paused for {}", duration(facts.paused)));
    let back = count(facts.steps_back, "time", "times");
    part(facts.steps_back, format!("the clock went back {back}"));
    parts.join(", ")
}

/// What the user should know of the file: what is missing of it, or not used. `broken_end` says what
/// is wrong with its end if it was packed.
pub fn complaints_of_file<R: Read + Seek>(
    trace: &Trace<R>,
    used: Chunk,
    broken_end: Option<String>,
) -> Vec<String> {
    let mut complaints: Vec<String> = broken_end.into_iter().collect();
    if used.whole < used.declared {
        let missing = count(used.declared - used.whole, "record is", "records are");
        let declared = group_thousands(used.declared);
        complaints.push(format!("the file is truncated: {missing} missing of its {declared}"));
    }
    if trace.left_over() > 0 {
        let left = count(trace.left_over(), "byte", "bytes");
        complaints.push(format!("{left} after the last chunk left out: no chunk starts there"));
    }
    let others = trace.chunks().iter().filter(|chunk| {
        chunk.kind == ChunkKind::Calls && chunk.offset != used.offset && chunk.whole > 0
    });
    let others = others.count() as u64;
    if others > 0 {
        let which = count(others, "other calls chunk is", "other calls chunks are");
        complaints.push(format!("{which} left out: --chunk NUMBER selects one, info lists them"));
    }
    complaints
}

/// What the user should know of the map of that name.
///
/// # Errors
/// It names no function of the trace.
pub fn complaints_of_map(
    map: &SymbolMap,
    name: &str,
    functions: &Functions<'_>,
    followed: &Followed,
) -> Result<Vec<String>, Failure> {
    let mut complaints = Vec::new();
    let (all, unnamed) = functions.counts();
    if unnamed == all && all > 0 {
        return Err(strange_map(name, all));
    }
    if unnamed > 0 {
        let records = count(followed.facts.unnamed, "record", "records");
        complaints.push(format!(
            "{unnamed} of {all} functions ({records}) are not in {name}: is it from the build that \
             made the trace?"
        ));
    }
    if followed.callers.contradict() {
        let callers = followed.callers;
        complaints.push(format!(
            "only {} of {} calls come from inside the caller that {name} names: is it from the build \
             that made the trace? Names may be wrong",
            group_thousands(callers.fitting),
            group_thousands(callers.looked_at)
        ));
    }
    if map.skipped_lines() > 0 {
        let lines = count(map.skipped_lines(), "line", "lines");
        complaints.push(format!("{lines} of {name} left out: not ADDRESS TYPE NAME"));
    }
    Ok(complaints)
}

/// What is known of a trace, for the foot of pictures, with what the user should know of it.
pub fn footer(trace: &str, map: &str, followed: &Followed, complaints: Vec<String>) -> Vec<String> {
    let mut lines = vec![
        format!(concat!("from {}, {}, flame ", env!("CARGO_PKG_VERSION")), trace, map),
        summary(&followed.facts),
    ];
    let outside = followed.graph.outside();
    if outside > 0 {
        lines.push(format!("{} were in no traced function", duration(outside)));
    }
    if followed.graph.excluded_calls() > 0 {
        let calls = count(followed.graph.excluded_calls(), "call", "calls");
        lines.push(format!("{calls} of excluded functions left out"));
    }
    lines.extend(complaints);
    lines
}
