//! Chrome's trace events: what `chrome://tracing`, Perfetto's legacy export, Hermes, clang's
//! `-ftime-trace` and many others write.
//!
//! Spans are begun and ended (`B`, `E`) or whole (`X`); each thread's spans are nested by their
//! times, and what a span does not share with those within it is its own. Files may also have
//! `samples` with `stackFrames`, or a CPU profile of V8 as recordings of Chrome's tools have, which are
//! then what counts (`--event spans`: the spans all the same). A list that is all of the file may lack
//! its end behind a whole event: the format allows it.

use std::collections::BTreeMap;

use flame_profile::{FrameKind, ValueType, narrow};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::head::Head;
use crate::input::Input;
use crate::json::{Document, Value, integer, text};
use crate::odd::{Names, Odd, UNNAMED};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink, TaskIndex, TaskName};
use crate::skipped::Place;
use crate::spans::{Span, nest};
use crate::{NoSuchEvent, ReadError};
use profiles::Profiles;
use times::{MicroTime, nanoseconds};

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
mod samples;
mod times;

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
    /// Begins of spans that belong to no thread.
    asynchronous: Odd,
    /// Samples among the events.
    samples: Odd,
    /// Whole spans that only say how long they had a CPU.
    cpu_times: Odd,
    /// What names are null.
    no_names: Names,
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
    let of_profiles = std::mem::take(&mut trace.of_profiles);
    let mut profiles = Profiles::default();
    of_profiles.iter().for_each(|(_, event)| profiles.take(event, &mut trace.ids));
    let profiles = profiles.into_list();
    let has_samples = file.elements(&root["samples"]).next().is_some();
    let frames = root.get("stackFrames").filter(|_| has_samples);
    if has_samples && frames.is_none() {
        let what = "its list of samples is left out: it has no stackFrames";
        sink.complain(Place::Record(1), what)?;
    }
    let asked = asked.filter(|asked| asked != "samples");
    match (frames, asked) {
        (_, Some(asked)) if asked == "spans" => trace.add_spans(sink)?,
        (Some(frames), asked) => {
            if !profiles.is_empty() {
                sink.note("its list of samples was read; left out: the CPU profile of V8");
            }
            trace.add_samples(file.elements(&root["samples"]), frames, asked, sink)?;
        }
        (None, Some(asked)) => {
            let others = "samples, spans".to_owned();
            return Err(NoSuchEvent { asked, others }.into());
        }
        (None, None) if !profiles.is_empty() => profiles::add(&profiles, &trace, sink)?,
        (None, None) => trace.add_spans(sink)?,
    }
    // A list that is all of the file may lack its end: the format says so. An event that breaks off is
    // lost all the same, as is what stands behind the list.
    match file.only_lacks_end() && root.get("traceEvents").is_none() {
        true => sink.note("the list of events is truncated; its complete part was read"),
        false => file.say_cut(sink)?,
    }
    Ok(())
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
        match text(&event["ph"]) {
            "M" => self.take_name(key, &event),
            "X" if is_sum(&event) => self.sums += 1,
            "X" => {
                let Some(start) = MicroTime::of(&event["ts"]) else { return Err((NO_TIME, event)) };
                let has_length = !event["dur"].is_null();
                let length = MicroTime::of(&event["dur"]).or_else(|| MicroTime::of(&event["tdur"]));
                let Some(length) = length else { return Err(("it has no duration", event)) };
                if !has_length {
                    self.cpu_times.add(place_of(at));
                }
                let (start, end) = (start.nanoseconds(), start.plus(length).nanoseconds());
                let name = self.name_of(at, &event).unwrap_or_else(|| self.name(UNNAMED));
                let thread = self.threads.entry(key).or_default();
                thread.last = thread.last.max(end);
                thread.spans.push(Span { name, start, end, order: at });
            }
            phase @ ("B" | "E") => {
                let Some(time) = nanoseconds(&event["ts"]) else { return Err((NO_TIME, event)) };
                let is_begin = phase == "B";
                // Ends need no name.
                let has_name = is_begin || event["name"].as_str().is_some();
                let name = if has_name { self.name_of(at, &event) } else { None };
                self.edges.push(Edge { time, at, key, name, is_begin });
            }
            "" => return Err(("it has no phase", event)),
            phase => {
                if Profiles::is_of_one(&event) {
                    let time = nanoseconds(&event["ts"]).unwrap_or_default();
                    self.of_profiles.push((time, event));
                    return Ok(());
                }
                match phase {
                    "b" | "S" => self.asynchronous.add(place_of(at)),
                    "P" => self.samples.add(place_of(at)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Name {
        let known = self.names.get_index_of(name);
        narrow(known.unwrap_or_else(|| self.names.insert_full(name.into()).0))
    }

    /// What a span is called, if it has a name.
    fn name_of(&mut self, at: usize, event: &Value<'_>) -> Option<Name> {
        let name = event.get("name").filter(|name| name.as_str() != Some(""))?;
        let name = self.no_names.of(name, place_of(at));
        Some(self.name(name))
    }

    /// Takes in what a process or a thread is called.
    fn take_name(&mut self, key: Key, event: &Value<'_>) {
        let name = text(&event["args"]["name"]).to_owned();
        if name.is_empty() {
            return;
        }
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
        let (mut overlapping, mut unended) = (Odd::default(), Odd::default());
        let names = std::mem::take(&mut self.names);
        let mut frame = |name: &str| sink.frame(name.as_bytes(), FrameKind::User);
        let frames: Vec<FrameIndex> = names.iter().map(|name| frame(name)).collect();
        for (key, mut thread) in std::mem::take(&mut self.threads) {
            for (name, _, at) in &thread.early_ends {
                let reason = "it ends a span that has not begun";
                let name = name.and_then(|name| names.get_index(name as usize));
                let name = name.map_or(&b""[..], |name| name.as_bytes());
                sink.skip(place_of(*at), reason, name)?;
            }
            for (name, start, order) in std::mem::take(&mut thread.open) {
                unended.add(place_of(order));
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
            nest(named.collect(), task, &mut overlapping, sink);
        }
        let to_end = "they are drawn to the end of the trace";
        unended.say("spans without an end", to_end, sink)?;
        let what = "asynchronous spans, which are of no thread";
        self.asynchronous.say(what, "left out", sink)?;
        self.samples.say("samples among the spans", "left out", sink)?;
        if self.sums > 0 {
            let count = self.sums;
            sink.note(format!("sums of other spans (\"Total ...\"): {count}; left out"));
        }
        let what = "spans that say only how long they had a CPU";
        self.cpu_times.say(what, "they are as long as that", sink)?;
        let what = "spans that outlast the one they began in";
        overlapping.say(what, "they are drawn to its end", sink)?;
        self.no_names.say(sink)
    }

    /// Says how many spans are not shown, where something else is.
    fn say_spans_left_out(&self, sink: &mut Sink) {
        let spans: usize = self.threads.values().map(|thread| thread.spans.len()).sum();
        if spans > 0 {
            sink.note(format!("left out: {spans} spans; --event spans takes them"));
        }
    }
}

/// Where an event stands in the file.
fn place_of(event: usize) -> Place {
    Place::Record(event as u64 + 1)
}
