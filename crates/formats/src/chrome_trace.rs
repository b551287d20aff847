//! Chrome's trace events: what `chrome://tracing`, Perfetto's legacy export, Hermes, clang's
//! `-ftime-trace` and many others write.
//!
//! Spans are begun and ended (`B`, `E`) or whole (`X`); each thread's spans are nested by their
//! times, and what a span does not share with those within it is its own. Files may also have
//! `samples` with `stackFrames`, or a CPU profile of V8 as recordings of Chrome's tools have, which are
//! then what counts (`--event spans`: the spans all the same). The array may break off: the format
//! allows it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::FxHashMap;

use crate::head::Head;
use crate::input::Input;
use crate::json::{self, Parser, Value, count, integer, number, text, whole};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{Sample, Sink, TaskIndex, TaskName};
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
    fn key(&mut self, event: &Value<'_>) -> Key {
        (self.id(&event["pid"]), self.id(&event["tid"]))
    }

    fn id(&mut self, value: &Value<'_>) -> i64 {
        if let Some(number) = integer(value) {
            return number;
        }
        let Some(text) = value.as_str() else { return 0 };
        let known = self.texts.iter().position(|known| known == text);
        let at = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
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
struct Trace<'v> {
    ids: Ids,
    profiles: Profiles<'v>,
    /// Begins of spans that belong to no thread.
    asynchronous: u64,
    /// Sums of clang's, which span what others do.
    sums: u64,
    threads: BTreeMap<Key, Thread<'v>>,
    process_names: FxHashMap<i64, &'v str>,
    thread_names: FxHashMap<Key, &'v str>,
}

#[derive(Default)]
struct Thread<'v> {
    spans: Vec<Span<&'v str>>,
    /// Those that have begun: the name, the start and the place among the events.
    open: Vec<(&'v str, u64, usize)>,
    /// Ends of what has not begun: the name, the time and the place. What begins at the same time
    /// later in the file lasted no time.
    early_ends: Vec<(&'v str, u64, usize)>,
    last: u64,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = json::read(input)?;
    let (root, is_whole) = match json::parse(&file, "Chrome trace") {
        Ok(root) => (root, true),
        Err(_) => (Value::Array(whole_events(&file)), false),
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
    let mut events: Vec<(usize, &Value<'_>)> = events.iter().enumerate().collect();
    // Stable: events of one time stay in their order.
    events.sort_by_cached_key(|(_, event)| nanoseconds(&event["ts"]).unwrap_or_default());
    for (at, event) in events {
        if let Err(reason) = trace.take(at, event) {
            sink.skip(Place::Record(at as u64 + 1), reason, event.to_string().as_bytes())?;
        }
    }
    let samples = root["samples"].items();
    let asked = sink.options().event.clone();
    if let Some(asked) = asked.as_ref().filter(|asked| *asked != "spans" && *asked != "samples") {
        let others = "samples, spans".to_owned();
        return Err(NoSuchEvent { asked: asked.clone(), others }.into());
    }
    let profiles = std::mem::take(&mut trace.profiles).into_list();
    match root.get("stackFrames").filter(|_| !samples.is_empty()) {
        _ if asked.as_deref() == Some("spans") => trace.add_spans(sink),
        Some(frames) => trace.add_samples(samples, frames, sink),
        _ if !profiles.is_empty() => profiles::add(&profiles, &trace, sink),
        _ => trace.add_spans(sink),
    }
}

/// Microseconds, perhaps with a fraction.
fn nanoseconds(value: &Value<'_>) -> Option<u64> {
    let digits = if let Value::Number(digits) = value { digits } else { text(value) };
    match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(1000),
        Err(_) => number(value).filter(|time| *time >= 0.0).map(|time| whole(time, 1000.0)),
    }
}

/// `Total Frontend`, which clang's `-ftime-trace` puts beside the spans that it sums up, each on a thread of
/// its own.
fn is_sum(event: &Value<'_>) -> bool {
    let args = &event["args"];
    text(&event["name"]).starts_with("Total ")
        && !args["count"].is_null()
        && !args["avg ms"].is_null()
}

impl<'v> Trace<'v> {
    fn take(&mut self, at: usize, event: &'v Value<'v>) -> Result<(), &'static str> {
        let phase = text(&event["ph"]);
        let key = self.ids.key(event);
        if phase == "M" {
            let name = text(&event["args"]["name"]);
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
                let is_same = |end: &(&str, u64, usize)| end.0 == name && end.1 == start;
                match thread.early_ends.iter().position(is_same) {
                    Some(found) => drop(thread.early_ends.swap_remove(found)),
                    None => thread.open.push((shown, start, at)),
                }
            }
            "X" => {
                let length = nanoseconds(&event["dur"]).or_else(|| nanoseconds(&event["tdur"]));
                let end = start.saturating_add(length.ok_or("it has no duration")?);
                thread.last = thread.last.max(end);
                thread.spans.push(Span { name: shown, start, end, order: at });
            }
            _ => {
                let is_named = |open: &(&str, u64, usize)| name.is_empty() || open.0 == name;
                let found = thread.open.iter().rposition(is_named);
                let Some(found) = found else {
                    thread.early_ends.push((name, start, at));
                    return Ok(());
                };
                let (name, begun, order) = thread.open.remove(found);
                thread.spans.push(Span { name, start: begun, end: start, order });
            }
        }
        Ok(())
    }

    fn task(&self, key: Key, sink: &mut Sink) -> TaskIndex {
        let process = self.process_names.get(&key.0).copied();
        let name = match (self.thread_names.get(&key), process) {
            (Some(name), _) => (*name).to_owned(),
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
            let spans = thread.spans.into_iter().map(|Span { name, start, end, order }| {
                let name = sink.frame(name.as_bytes(), FrameKind::User);
                Span { name, start, end, order }
            });
            overlapping += nest(spans.collect(), &mut |stack, start, own| {
                let time = Some(Nanos(start));
                sink.add(&Sample { task: Some(task), time, ..Sample::new(stack, &[own]) });
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
        samples: &[Value<'_>],
        frames: &Value<'_>,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let by_id: FxHashMap<&str, &Value<'_>> = frames.entries().collect();
        let mut stack = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let mut id = shown(&sample["sf"]);
            stack.clear();
            let mut steps = 0;
            while let Some(frame) = by_id.get(&*id) {
                stack.push(sink.frame(text(&frame["name"]).as_bytes(), FrameKind::User));
                steps += 1;
                if frame["parent"].is_null() || steps > 1 << 16 {
                    break;
                }
                id = shown(&frame["parent"]);
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

/// A number of a frame, which may be a text.
fn shown<'v>(id: &'v Value<'_>) -> Cow<'v, str> {
    id.as_str().map_or_else(|| id.to_string().into(), Cow::Borrowed)
}

/// The events of a list that breaks off, or ends with a comma.
fn whole_events(text: &str) -> Box<[Value<'_>]> {
    let list = text.find("\"traceEvents\"").unwrap_or(0);
    let Some(start) = text[list..].find('[') else { return Box::default() };
    let mut at = list + start + 1;
    let mut events = Vec::new();
    while let Some(blank) = memchr::memchr(b'{', &text.as_bytes()[at..]) {
        let mut parser = Parser::new(text, at + blank);
        let Ok(event) = parser.value() else { break };
        events.push(event);
        at = parser.position();
        if text[at..].trim_ascii_start().starts_with(']') {
            break;
        }
    }
    events.into()
}
