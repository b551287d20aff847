//! What is in a trace, as lines to read.

use std::fmt::Write as _;
use std::io::{self, Read, Seek};

use flame_message::{Failure, counted as count, group_thousands};

use crate::failure::wrong_trace;
use crate::follow::{Followed, Making, follow};
use crate::functions::Functions;
use crate::layout::{ByteOrder, ChunkKind, HeaderFormat, Layout};
use crate::map::SymbolMap;
use crate::replay::Facts;
use crate::trace::Trace;
use crate::words::{complaints_of_file, duration};

/// Chunks that are listed one by one.
const LISTED: usize = 100;

/// Says what is in the trace of that name. Of its calls the chunk of that number counts, or the last
/// one; `broken_end` says what is wrong with its end if it was packed, and `read_map` reads the map, if
/// there is one, for sites of so many bytes.
///
/// # Errors
/// Neither the trace nor the map can be used.
pub fn info<R: Read + Seek>(
    trace: &mut Trace<R>,
    name: &str,
    broken_end: Option<String>,
    number: Option<usize>,
    read_map: impl FnOnce(u32) -> Result<Option<SymbolMap>, Failure>,
) -> Result<String, Failure> {
    let mut lines = vec![
        ("file", format!("{name}, {}", count(trace.len(), "byte", "bytes"))),
        ("format", format_of(trace.layout())),
    ];
    lines.extend(chunks(trace));
    let wrong_trace = |error| wrong_trace(name, &error);
    let used = match trace.calls(number) {
        Ok(chunk) => Some(chunk),
        Err(error) if number.is_some() => return Err(wrong_trace(error)),
        Err(_) => None,
    };
    let listed = listed_calls(trace).map_err(|error| wrong_trace(error.into()))?;
    if let Some(chunk) = used {
        let map = read_map(trace.layout().site_len())?;
        let mut functions = Functions::new(map.as_ref(), None);
        let followed = follow(trace, chunk, &mut functions, Making::Facts);
        let followed = followed.map_err(wrong_trace)?;
        lines.extend(calls(&followed.facts, map.is_some()));
        lines.push(("dropped", dropped(&followed.facts, listed)));
        let missing = complaints_of_file(trace, chunk, broken_end);
        lines.extend(missing.into_iter().map(|complaint| ("note", complaint)));
        lines.push(("functions", names(&functions, &followed, map.is_some())));
    } else {
        lines.push(("records", "no calls, lists of functions only".to_owned()));
        lines.extend(broken_end.map(|what| ("note", what)));
    }
    let mut text = String::new();
    for (what, line) in lines {
        let _ = writeln!(text, "{what:<11}{line}");
    }
    Ok(text)
}

fn format_of(layout: Layout) -> String {
    let version = match layout.header {
        HeaderFormat::Versioned => "version 1 (U-Boot 2023.04 and later)",
        HeaderFormat::Padded => "no version (64-bit U-Boot 2019.10 to 2023.01)",
        HeaderFormat::Short => "no version (U-Boot 2013.07 to 2019.07, 32-bit to 2023.01)",
    };
    let order = match layout.order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
    };
    format!("{version}, {order}, sites of {} bytes", layout.site_len())
}

fn chunks<R: Read + Seek>(trace: &Trace<R>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut calls = 0;
    for chunk in trace.chunks() {
        let records = group_thousands(chunk.whole);
        let cut = match chunk.declared - chunk.whole {
            0 => String::new(),
            missing => format!(", {} cut off", group_thousands(missing)),
        };
        let text = match chunk.kind {
            ChunkKind::Calls => {
                calls += 1;
                let base = chunk.text_base.map(|base| format!(", text base {base:#x}"));
                let base = base.unwrap_or_default();
                format!("calls {calls}: {records} records{cut}{base}")
            }
            ChunkKind::FunctionList => format!("functions: {records} records{cut}"),
        };
        lines.push(("chunk", text));
    }
    let more = lines.len().saturating_sub(LISTED);
    if more > 0 {
        lines.truncate(LISTED);
        lines.push(("chunk", format!("{} more", group_thousands(more as u64))));
    }
    lines
}

/// All calls that lists of functions count.
fn listed_calls<R: Read + Seek>(trace: &mut Trace<R>) -> io::Result<Option<u64>> {
    // Each list holds the totals up to then, so the last one has them all.
    let lists = trace.chunks().iter().filter(|chunk| chunk.kind == ChunkKind::FunctionList);
    let Some(list) = lists.copied().next_back() else { return Ok(None) };
    let mut sum = 0_u64;
    trace.functions(list, |_, calls| sum = sum.saturating_add(u64::from(calls)))?;
    Ok((list.whole == list.declared).then_some(sum))
}

fn calls(facts: &Facts, has_map: bool) -> Vec<(&'static str, String)> {
    let Facts { entries, exits, others, .. } = *facts;
    let all = count(entries + exits + others, "record", "records");
    let others = match others {
        0 => String::new(),
        others => format!(", {} of the text's address or unknown", group_thousands(others)),
    };
    let mut lines = vec![(
        "records",
        format!(
            "{all}: {}, {}{others}",
            count(entries, "entry", "entries"),
            count(exits, "exit", "exits")
        ),
    )];
    let unwound = match facts.resyncs {
        0 => String::new(),
        resyncs => format!(
            ", {} closed without an exit at {}",
            count(facts.unwound_calls, "call", "calls"),
            count(resyncs, "place", "places")
        ),
    };
    lines.push((
        "unmatched",
        format!(
            "{}, {}{unwound}",
            count(facts.unmatched_exits, "exit without its entry", "exits without their entry"),
            count(facts.open_at_end, "call open at the end", "calls open at the end")
        ),
    ));
    lines.push(("time", time(facts)));
    let (gap, record) = facts.longest_gap;
    if gap > 0 {
        let before = format!("before record {}", group_thousands(record));
        lines.push(("gap", format!("{} at most, {before}", duration(gap))));
    }
    if has_map {
        let pauses = count(facts.pauses, "pause", "pauses");
        lines.push(("paused", format!("{} in {pauses}", duration(facts.paused))));
    }
    lines.push(("depth", format!("{} at most", count(facts.max_depth as u64, "level", "levels"))));
    lines
}

fn time(facts: &Facts) -> String {
    let Some(start) = facts.start else { return "none".to_owned() };
    let seconds = |micros: u64| format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000);
    let start = u64::from(start);
    let mut text = format!(
        "{}, from {} to {}",
        duration(facts.span),
        seconds(start),
        seconds(start + facts.span)
    );
    if facts.wraps > 0 {
        let _ = write!(
            text,
            ", the 30-bit clock wrapped around {}",
            count(facts.wraps, "time", "times")
        );
    }
    if facts.steps_back > 0 {
        let _ = write!(text, ", it went back {}", count(facts.steps_back, "time", "times"));
    }
    text
}

/// A trace does not say what was dropped; a list of functions counts all calls.
fn dropped(facts: &Facts, listed: Option<u64>) -> String {
    match listed {
        None => "not in the file; `trace stats` shows it on the target".to_owned(),
        Some(all) => {
            let dropped = count(all.saturating_sub(facts.entries), "call", "calls");
            format!("{dropped} of {}, too deep, or when the buffer was full", group_thousands(all))
        }
    }
}

fn names(functions: &Functions<'_>, followed: &Followed, has_map: bool) -> String {
    let (all, unnamed) = functions.counts();
    let all = count(all as u64, "function", "functions");
    if !has_map {
        return format!("{all}; -m System.map tells whether a map fits");
    }
    let callers = followed.callers;
    format!(
        "{all}, {} not in the map; {} of {} calls come from inside the caller that it names",
        group_thousands(unnamed as u64),
        group_thousands(callers.fitting),
        group_thousands(callers.looked_at)
    )
}
