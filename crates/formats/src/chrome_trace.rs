//! Chrome's trace events: what `chrome://tracing`, Perfetto's legacy export, Hermes, clang's
//! `-ftime-trace` and many others write.
//!
//! Spans are begun and ended (`B`, `E`) or whole (`X`); each thread's spans are nested by their
//! times, and what a span does not share with those within it is its own. Files may also have
//! `samples` with `stackFrames`, or a CPU profile of V8 as recordings of Chrome's tools have, which are
//! then what counts (`--event spans`: the spans all the same). A list that is all of the file may lack
//! its end behind a whole event: the format allows it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flame_profile::{FrameKind, Nanos, ValueType, narrow};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::callers::Callers;
use crate::head::Head;
use crate::input::Input;
use crate::json::{Document, Value, integer, number, text, whole};
use crate::registry::{Content, InputFormat, Reader};
use crate::rounded::Rounded;
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

/// What a span without a name is called.
const UNNAMED: &str = "(unnamed)";
const NO_TIME: &str = "it has no time";

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

/// A name of spans: its place among all.
type Name = u32;

#[derive(Default)]
struct Trace<'v> {
    ids: Ids,
    names: IndexSet<Box<str>, FxBuildHasher>,
    /// Events that are of CPU profiles perhaps, in the order of their times once all are there.
    of_profiles: Vec<(u64, Value<'v>)>,
    /// Begins and ends of spans, in the order of their times once all are there.
    edges: Vec<Edge>,
    /// Begins of spans that belong to no thread: the first place among the events, and how many.
    asynchronous: Option<(usize, u64)>,
    /// Sums of clang's, which span what others do.
    sums: u64,
    threads: BTreeMap<Key, Thread>,
    process_names: FxHashMap<i64, String>,
    thread_names: FxHashMap<Key, String>,
}

/// The begin or the end of a span.
struct Edge {
    time: u64,
    /// The place among the events.
    at: usize,
    key: Key,
    /// `None` = it does not say.
    name: Option<Name>,
    is_begin: bool,
}

#[derive(Default)]
struct Thread {
    spans: Vec<Span<Name>>,
    /// Those that have begun: the name, the start and the place among the events.
    open: Vec<(Option<Name>, u64, usize)>,
    /// Ends of what has not begun: the name, the time and the place. What begins at the same time
    /// later in the file lasted no time.
    early_ends: Vec<(Option<Name>, u64, usize)>,
    last: u64,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = Document::read(input)?;
    let root = file.root(&["traceEvents", "samples"]);
    let events = root.get("traceEvents").unwrap_or(&root);
    let mut trace = Trace::default();
    let mut count = 0;
    for event in file.elements(events) {
        count += 1;
        if let Err((reason, event)) = trace.take(count - 1, event) {
            sink.skip(Place::Record(count as u64), reason, event.to_string().as_bytes())?;
        }
    }
    if !events.is_array() || (count == 0 && file.is_cut()) {
        return Err(file.without("Chrome trace", "list of events"));
    }
    trace.end_events();
    let asked = sink.options().event.clone();
    if let Some(asked) = asked.as_ref().filter(|asked| *asked != "spans" && *asked != "samples") {
        let others = "samples, spans".to_owned();
        return Err(NoSuchEvent { asked: asked.clone(), others }.into());
    }
    let of_profiles = std::mem::take(&mut trace.of_profiles);
    let mut profiles = Profiles::default();
    of_profiles.iter().for_each(|(_, event)| profiles.take(event, &mut trace.ids));
    let profiles = profiles.into_list();
    let has_samples = file.elements(&root["samples"]).next().is_some();
    match root.get("stackFrames").filter(|_| has_samples) {
        _ if asked.as_deref() == Some("spans") => trace.add_spans(sink)?,
        Some(frames) => trace.add_samples(file.elements(&root["samples"]), frames, sink)?,
        _ if !profiles.is_empty() => profiles::add(&profiles, &trace, sink)?,
        _ => trace.add_spans(sink)?,
    }
    // A list that is all of the file may lack its end: the format says so. An event that breaks off is
    // lost all the same, as is what stands behind the list.
    match file.only_lacks_end() && root.get("traceEvents").is_none() {
        true => sink.note("the list of events is truncated; its complete part was read"),
        false => file.say_cut(sink)?,
    }
    Ok(())
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
    /// Takes an event in, which is handed back with a reason where it cannot be read. Whole spans need
    /// no order; what begins or ends, and what belongs to a profile, waits for all others.
    fn take(&mut self, at: usize, event: Value<'v>) -> Result<(), (&'static str, Value<'v>)> {
        let key = self.ids.key(&event);
        let name = text(&event["name"]);
        let start = nanoseconds(&event["ts"]);
        match text(&event["ph"]) {
            "M" => self.take_name(key, &event),
            "X" if is_sum(&event) => self.sums += 1,
            "X" => {
                let Some(start) = start else { return Err((NO_TIME, event)) };
                let length = nanoseconds(&event["dur"]).or_else(|| nanoseconds(&event["tdur"]));
                let Some(length) = length else { return Err(("it has no duration", event)) };
                let end = start.saturating_add(length);
                let name = self.name(if name.is_empty() { UNNAMED } else { name });
                let thread = self.threads.entry(key).or_default();
                thread.last = thread.last.max(end);
                thread.spans.push(Span { name, start, end, order: at });
            }
            phase @ ("B" | "E") => {
                let Some(time) = start else { return Err((NO_TIME, event)) };
                let is_begin = phase == "B";
                let name = (!name.is_empty()).then(|| self.name(name));
                self.edges.push(Edge { time, at, key, name, is_begin });
            }
            phase => {
                if matches!(phase, "b" | "S") {
                    self.asynchronous.get_or_insert((at, 0)).1 += 1;
                }
                if Profiles::is_of_one(&event) {
                    self.of_profiles.push((start.unwrap_or_default(), event));
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Name {
        let known = self.names.get_index_of(name);
        narrow(known.unwrap_or_else(|| self.names.insert_full(name.into()).0))
    }

    /// Takes in what a process or a thread is called.
    fn take_name(&mut self, key: Key, event: &Value<'_>) {
        let name = text(&event["args"]["name"]).to_owned();
        match text(&event["name"]) {
            "process_name" => drop(self.process_names.insert(key.0, name)),
            "thread_name" => drop(self.thread_names.insert(key, name)),
            _ => {}
        }
    }

    /// Makes spans of what begins and ends, once all events are there.
    fn end_events(&mut self) {
        // Stable: events of one time stay in their order.
        self.of_profiles.sort_by_key(|(time, _)| *time);
        let mut edges = std::mem::take(&mut self.edges);
        edges.sort_by_key(|edge| edge.time);
        let unnamed = edges.iter().any(|edge| edge.name.is_none()).then(|| self.name(UNNAMED));
        for Edge { time, at, key, name, is_begin } in edges {
            let thread = self.threads.entry(key).or_default();
            thread.last = thread.last.max(time);
            if is_begin {
                let is_same = |end: &(Option<Name>, u64, usize)| end.0 == name && end.1 == time;
                match thread.early_ends.iter().position(is_same) {
                    Some(found) => drop(thread.early_ends.swap_remove(found)),
                    None => thread.open.push((name, time, at)),
                }
                continue;
            }
            let is_named = |open: &(Option<Name>, u64, usize)| name.is_none() || open.0 == name;
            match thread.open.iter().rposition(is_named) {
                Some(found) => {
                    let (name, start, order) = thread.open.remove(found);
                    let name = name.or(unnamed).unwrap_or_default();
                    thread.spans.push(Span { name, start, end: time, order });
                }
                None => thread.early_ends.push((name, time, at)),
            }
        }
        for thread in self.threads.values_mut() {
            for (name, ..) in thread.open.iter_mut().filter(|(name, ..)| name.is_none()) {
                *name = unnamed;
            }
        }
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
        let names = std::mem::take(&mut self.names);
        let mut frame = |name: &str| sink.frame(name.as_bytes(), FrameKind::User);
        let frames: Vec<FrameIndex> = names.iter().map(|name| frame(name)).collect();
        for (key, mut thread) in std::mem::take(&mut self.threads) {
            unended += thread.open.len();
            for (name, _, at) in &thread.early_ends {
                let reason = "it ends a span that has not begun";
                let name = name.and_then(|name| names.get_index(name as usize));
                let name = name.map_or(&b""[..], |name| name.as_bytes());
                sink.skip(Place::Record(*at as u64 + 1), reason, name)?;
            }
            for (name, start, order) in std::mem::take(&mut thread.open) {
                let name = name.unwrap_or_default();
                thread.spans.push(Span { name, start, end: thread.last, order });
            }
            let task = self.task(key, sink);
            let spans = thread.spans.into_iter();
            let named = spans.map(|span| Span {
                name: frames[span.name as usize],
                start: span.start,
                end: span.end,
                order: span.order,
            });
            overlapping += nest(named.collect(), task, sink);
        }
        if unended > 0 {
            sink.note(format!(
                "spans without an end: {unended}; they are drawn to the end of the trace"
            ));
        }
        if let Some((at, count)) = self.asynchronous {
            let what = format!("asynchronous spans, which are of no thread: {count}; left out");
            sink.complain(Place::Record(at as u64 + 1), &what)?;
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
        samples: impl Iterator<Item = Value<'v>>,
        frames: &Value<'_>,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let frames: Vec<(&str, &Value<'_>)> = frames.entries().collect();
        let ids = frames.iter().enumerate().map(|(at, (id, _))| (*id, at));
        let by_id: FxHashMap<&str, usize> = ids.collect();
        let mut callers: FxHashMap<TaskIndex, Callers> = FxHashMap::default();
        let (mut lacking, mut rounded) = (None, Rounded::default());
        for (at, sample) in samples.enumerate() {
            let place = Place::Record(at as u64 + 1);
            let mut entry = |at: usize, sink: &mut Sink| {
                let (_, frame) = frames.get(at)?;
                let parent = &frame["parent"];
                let caller = by_id.get(&*shown(parent)).copied();
                if caller.is_none() && !parent.is_null() {
                    lacking.get_or_insert((place, 0_usize)).1 += 1;
                }
                Some((Some(sink.frame(text(&frame["name"]).as_bytes(), FrameKind::User)), caller))
            };
            let weight = &sample["weight"];
            let weight = if weight.is_null() { Some(1) } else { rounded.whole_of(weight, place) };
            let innermost = by_id.get(&*shown(&sample["sf"])).copied();
            let (Some(weight), Some(innermost)) = (weight, innermost) else {
                let reason = match innermost {
                    None => "its frame is not in stackFrames",
                    Some(_) => "its weight is no number, or a negative one",
                };
                sink.skip(place, reason, sample.to_string().as_bytes())?;
                continue;
            };
            let key = self.ids.key(&sample);
            let task = self.task(key, sink);
            let (time, weights) = (nanoseconds(&sample["ts"]).map(Nanos), [weight]);
            let counted = Sample { task: Some(task), time, ..Sample::new(&[], &weights) };
            let of_task = callers.entry(task).or_default();
            if !of_task.add((innermost, frames.len()), &mut entry, &counted, sink) {
                let reason = "the callers of its frame go round";
                sink.skip(place, reason, sample.to_string().as_bytes())?;
            }
        }
        rounded.say(sink)?;
        let Some((first, count)) = lacking else { return Ok(()) };
        let what = "frames whose callers are not in stackFrames, and which stacks begin with";
        sink.complain(first, &format!("{what}: {count}"))
    }
}

/// A number of a frame, which may be a text.
fn shown<'v>(id: &'v Value<'_>) -> Cow<'v, str> {
    id.as_str().map_or_else(|| id.to_string().into(), Cow::Borrowed)
}
