//! Chrome's trace events: what `chrome://tracing`, Perfetto's legacy export, Hermes, clang's
//! `-ftime-trace` and many others write.
//!
//! Spans are begun and ended (`B`, `E`) or whole (`X`); each thread's spans are nested by their
//! times, and what a span does not share with those within it is its own. Files may also have
//! `samples` with `stackFrames`, or a CPU profile of V8 as recordings of Chrome's tools have, which are
//! then what counts (`--event spans`: the spans all the same). The array may break off: the format
//! allows it.

use std::collections::BTreeMap;

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::head::Head;
use crate::input::Input;
use crate::json::{self, count, integer, number, text, whole};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex, TaskName};
use crate::skipped::Place;
use crate::spans::{Span, nest};
use crate::{NoSuchEvent, ReadError};
use profiles::Profiles;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "chrome-trace",
    description: "Chrome trace events (chrome://tracing, DevTools, Perfetto's JSON, -ftime-trace)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.is_json()
            && (head.contains(b"\"traceEvents\"")
                || (head.text().starts_with(b"[") && head.contains(b"\"ph\"")))
    },
    reader: Reader::Stacks(read),
};

mod profiles;

/// A thread: the numbers of its process and of itself.
type Key = (i64, i64);

/// Numbers of processes and threads. Some tools write names in their place.
#[derive(Default)]
struct Ids {
    texts: Vec<String>,
}

impl Ids {
    fn key(&mut self, event: &Value) -> Key {
        (self.id(&event["pid"]), self.id(&event["tid"]))
    }

    fn id(&mut self, value: &Value) -> i64 {
        if let Some(number) = integer(value) {
            return number;
        }
        let Value::String(text) = value else { return 0 };
        let known = self.texts.iter().position(|known| known == text);
        let at = known.unwrap_or_else(|| {
            self.texts.push(text.clone());
            self.texts.len() - 1
        });
        i64::MIN.saturating_add(i64::try_from(at).unwrap_or(i64::MAX))
    }

    /// The text that stands for a number.
    fn text(&self, id: i64) -> Option<&str> {
        let at = usize::try_from(id.checked_sub(i64::MIN)?).ok()?;
        self.texts.get(at).map(String::as_str)
    }
}

#[derive(Default)]
struct Trace {
    ids: Ids,
    profiles: Profiles,
    /// Begins of spans that belong to no thread.
    asynchronous: u64,
    /// Sums of clang's, which span what others do.
    sums: u64,
    threads: BTreeMap<Key, Thread>,
    process_names: FxHashMap<i64, String>,
    thread_names: FxHashMap<Key, String>,
}

#[derive(Default)]
struct Thread {
    spans: Vec<Span<String>>,
    /// Those that have begun: the name, the start and the place among the events.
    open: Vec<(String, u64, usize)>,
    /// Ends of what has not begun: the name, the time and the place. What begins at the same time
    /// later in the file lasted no time.
    early_ends: Vec<(String, u64, usize)>,
    last: u64,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let bytes = json::bytes(input)?;
    let (root, is_whole) = match serde_json::from_slice::<Value>(&bytes) {
        Ok(root) => (root, true),
        Err(_) => (Value::Array(whole_events(&bytes)), false),
    };
    let events = root.get("traceEvents").unwrap_or(&root).as_array();
    let Some(events) = events.filter(|events| is_whole || !events.is_empty()) else {
        return Err(ReadError::Broken {
            format: "Chrome trace",
            what: "it has no list of events".to_owned(),
        });
    };
    if !is_whole {
        sink.note("the list of events is truncated; its complete part was read");
    }
    let mut trace = Trace::default();
    let mut events: Vec<(usize, &Value)> = events.iter().enumerate().collect();
    // Stable: events of one time stay in their order.
    events.sort_by_key(|(_, event)| nanoseconds(&event["ts"]).unwrap_or_default());
    for (at, event) in events {
        if let Err(reason) = trace.take(at, event) {
            sink.skip(Place::Record(at as u64 + 1), reason, event.to_string().as_bytes())?;
        }
    }
    let samples = root.get("samples").and_then(Value::as_array);
    let asked = sink.options().event.clone();
    if let Some(asked) = asked.as_ref().filter(|asked| *asked != "spans" && *asked != "samples") {
        let others = "samples, spans".to_owned();
        return Err(NoSuchEvent { asked: asked.clone(), others }.into());
    }
    let profiles = std::mem::take(&mut trace.profiles).into_list();
    match (samples.filter(|samples| !samples.is_empty()), root.get("stackFrames")) {
        _ if asked.as_deref() == Some("spans") => trace.add_spans(sink),
        (Some(samples), Some(frames)) => trace.add_samples(samples, frames, sink),
        _ if !profiles.is_empty() => profiles::add(&profiles, &trace, sink),
        _ => trace.add_spans(sink),
    }
}

/// Microseconds, perhaps with a fraction.
fn nanoseconds(value: &Value) -> Option<u64> {
    match integer(value).filter(|_| !value.is_f64()) {
        Some(whole) => u64::try_from(whole).ok()?.checked_mul(1000),
        None => number(value).filter(|time| *time >= 0.0).map(|time| whole(time, 1000.0)),
    }
}

/// `Total Frontend`, which clang's `-ftime-trace` puts beside the spans that it sums up, each on a thread of
/// its own.
fn is_sum(event: &Value) -> bool {
    let args = &event["args"];
    text(&event["name"]).starts_with("Total ")
        && !args["count"].is_null()
        && !args["avg ms"].is_null()
}

impl Trace {
    fn take(&mut self, at: usize, event: &Value) -> Result<(), &'static str> {
        let phase = text(&event["ph"]);
        let key = self.ids.key(event);
        if phase == "M" {
            let name = text(&event["args"]["name"]).to_owned();
            match text(&event["name"]) {
                "process_name" => drop(self.process_names.insert(key.0, name)),
                "thread_name" => drop(self.thread_names.insert(key, name)),
                _ => {}
            }
            return Ok(());
        }
        if !matches!(phase, "B" | "E" | "X") {
            self.profiles.take(event, &mut self.ids);
            self.asynchronous += u64::from(matches!(phase, "b" | "S"));
            return Ok(());
        }
        if phase == "X" && is_sum(event) {
            self.sums += 1;
            return Ok(());
        }
        let start = nanoseconds(&event["ts"]).ok_or("it has no time")?;
        let thread = self.threads.entry(key).or_default();
        thread.last = thread.last.max(start);
        let name = text(&event["name"]);
        let shown = if name.is_empty() { "(unnamed)" } else { name };
        match phase {
            "B" => {
                let is_same = |end: &(String, u64, usize)| end.0 == name && end.1 == start;
                match thread.early_ends.iter().position(is_same) {
                    Some(found) => drop(thread.early_ends.swap_remove(found)),
                    None => thread.open.push((shown.to_owned(), start, at)),
                }
            }
            "X" => {
                let length = nanoseconds(&event["dur"]).or_else(|| nanoseconds(&event["tdur"]));
                let end = start.saturating_add(length.ok_or("it has no duration")?);
                thread.last = thread.last.max(end);
                thread.spans.push(Span { name: shown.to_owned(), start, end, order: at });
            }
            _ => {
                let is_named = |open: &(String, u64, usize)| name.is_empty() || open.0 == name;
                let found = thread.open.iter().rposition(is_named);
                let Some(found) = found else {
                    thread.early_ends.push((name.to_owned(), start, at));
                    return Ok(());
                };
                let (name, begun, order) = thread.open.remove(found);
                thread.spans.push(Span { name, start: begun, end: start, order });
            }
        }
        Ok(())
    }

    fn task(&self, key: Key, sink: &mut Sink) -> TaskIndex {
        let process = self.process_names.get(&key.0).map(String::as_str);
        let name = match (self.thread_names.get(&key), process) {
            (Some(name), _) => name.clone(),
            (None, Some(process)) => process.to_owned(),
            (None, None) => match self.ids.text(key.1) {
                Some(text) => text.to_owned(),
                None => format!("thread {}", key.1),
            },
        };
        let process = process.or_else(|| self.ids.text(key.0));
        let id = |id: i64| u32::try_from(id).ok();
        sink.task(TaskName {
            name: name.as_bytes(),
            process: process.map(str::as_bytes),
            pid: id(key.0),
            tid: id(key.1),
        })
    }

    fn add_spans(mut self, sink: &mut Sink) -> Result<(), ReadError> {
        sink.set_values(vec![ValueType::new("time", "nanoseconds")]);
        let mut overlapping = 0;
        let mut unended = 0;
        for (key, mut thread) in std::mem::take(&mut self.threads) {
            unended += thread.open.len();
            for (name, _, at) in &thread.early_ends {
                let reason = "it ends a span that has not begun";
                sink.skip(Place::Record(*at as u64 + 1), reason, name.as_bytes())?;
            }
            for (name, start, order) in std::mem::take(&mut thread.open) {
                thread.spans.push(Span { name, start, end: thread.last, order });
            }
            let task = self.task(key, sink);
            overlapping += nest(thread.spans, &mut |stack, start, own| {
                let stack: Vec<FrameIndex> =
                    stack.iter().map(|name| sink.frame(name.as_bytes(), FrameKind::User)).collect();
                let time = Some(Nanos(start));
                sink.add(&Sample { task: Some(task), time, ..Sample::new(&stack, &[own]) });
            });
        }
        if unended > 0 {
            sink.note(format!(
                "spans without an end: {unended}; they are drawn to the end of the trace"
            ));
        }
        if self.asynchronous > 0 {
            let count = self.asynchronous;
            sink.note(format!("asynchronous spans, which are of no thread: {count}; left out"));
        }
        if self.sums > 0 {
            let count = self.sums;
            sink.note(format!("sums of other spans (\"Total ...\"): {count}; left out"));
        }
        if overlapping > 0 {
            sink.note(format!(
                "spans that outlast the one they began in: {overlapping}; they are drawn to its end"
            ));
        }
        Ok(())
    }

    /// The frames of `stackFrames` name their parents.
    fn add_samples(
        mut self,
        samples: &[Value],
        frames: &Value,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let mut stack = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let mut id = match &sample["sf"] {
                Value::String(id) => id.clone(),
                id => id.to_string(),
            };
            stack.clear();
            let mut steps = 0;
            while let Some(frame) = frames.get(&id) {
                stack.push(sink.frame(text(&frame["name"]).as_bytes(), FrameKind::User));
                steps += 1;
                id = match &frame["parent"] {
                    Value::Null => break,
                    Value::String(id) => id.clone(),
                    id => id.to_string(),
                };
                if steps > 1 << 16 {
                    break;
                }
            }
            if stack.is_empty() {
                let reason = "its frame is not in stackFrames";
                sink.skip(Place::Record(at as u64 + 1), reason, sample.to_string().as_bytes())?;
                continue;
            }
            stack.reverse();
            let weight = count(&sample["weight"]);
            let key = self.ids.key(sample);
            let task = Some(self.task(key, sink));
            let time = nanoseconds(&sample["ts"]).map(Nanos);
            let weights = [weight.unwrap_or(1)];
            sink.add(&Sample { task, time, ..Sample::new(&stack, &weights) });
        }
        Ok(())
    }
}

/// The events of a list that breaks off, or ends with a comma.
fn whole_events(bytes: &[u8]) -> Vec<Value> {
    let list = memchr::memmem::find(bytes, b"\"traceEvents\"").unwrap_or(0);
    let Some(start) = memchr::memchr(b'[', &bytes[list..]) else { return Vec::new() };
    let mut rest = &bytes[list + start + 1..];
    let mut events = Vec::new();
    while let Some(at) = memchr::memchr(b'{', rest) {
        let mut values = serde_json::Deserializer::from_slice(&rest[at..]).into_iter::<Value>();
        let Some(Ok(event)) = values.next() else { break };
        rest = &rest[at + values.byte_offset()..];
        events.push(event);
        if rest.trim_ascii_start().starts_with(b"]") {
            break;
        }
    }
    events
}
