//! speedscope's JSON: py-spy, rbspy, dotnet-trace, speedscope itself and others write it.
//!
//! Each profile of a file becomes a thread of its name: sampled ones have stacks with weights, evented
//! ones frames that open and close at times.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{Document, Value, index, number, text, whole};
use crate::nested::NestedIndex;
use crate::odd::{Names, Odd};
use crate::quantity::named_unit;
use crate::registry::{Content, InputFormat, Reader};
use crate::rounded::Rounded;
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex, TaskName};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "speedscope",
    description: "speedscope JSON (py-spy, rbspy, dotnet-trace, speedscope's export)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let has = |part: &[u8]| head.contains(part);
        head.is_json()
            && (has(b"speedscope.app/file-format-schema")
                || (has(b"\"profiles\"")
                    && (has(b"\"sampled\"") || has(b"\"evented\"") || has(b"\"endValue\""))))
    },
    reader: Reader::Stacks(read),
};

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = Document::read(input)?;
    let root = file.root(&["frames", "samples", "weights", "events"]);
    let mut names = Names::default();
    let frames: Vec<FrameIndex> = file
        .elements(&root["shared"]["frames"])
        .zip(1..)
        .map(|(frame, number)| {
            let name = name(&frame, names.of(&frame["name"], Place::Record(number)));
            sink.frame(name.as_bytes(), FrameKind::User)
        })
        .collect();
    let Some(profiles) = root["profiles"].as_array().filter(|profiles| !profiles.is_empty()) else {
        return Err(file.without("speedscope file", "profiles"));
    };
    if frames.is_empty() && file.is_cut() {
        return Err(file.without("speedscope file", "names of functions"));
    }
    let first = text(&profiles[0]["unit"]);
    let (scale, value) = unit(first);
    sink.set_values(vec![value]);
    let (mut record, mut unclosed, mut rounded) = (0, Odd::default(), Rounded::default());
    for profile in profiles {
        if unit(text(&profile["unit"])).1 != unit(first).1 {
            let name = text(&profile["name"]);
            let what =
                format!("profile {name} is left out: its unit differs from that of the first");
            sink.complain(Place::Record(record + 1), &what)?;
            continue;
        }
        let scale =
            if first == text(&profile["unit"]) { scale } else { unit(text(&profile["unit"])).0 };
        let task = (profiles.len() > 1).then(|| {
            let name = names.of(&profile["name"], Place::Record(record + 1));
            sink.task(TaskName { name: name.as_bytes(), ..TaskName::default() })
        });
        let (file, frames) = (&file, &*frames);
        let (record, unclosed, rounded) = (&mut record, &mut unclosed, &mut rounded);
        let is_count = unit(first).1.unit != "nanoseconds";
        let mut one =
            OneProfile { file, frames, scale, is_count, task, record, unclosed, rounded, sink };
        match text(&profile["type"]) {
            "sampled" => one.sampled(profile)?,
            "evented" => one.evented(profile)?,
            _ => {
                let name = text(&profile["name"]);
                let what = format!("profile {name} is left out: it is neither sampled nor evented");
                sink.complain(Place::Record(*record + 1), &what)?;
            }
        }
    }
    if !file.is_cut() {
        let then = "they are drawn to the end of their profile";
        unclosed.say("frames that are not closed", then, sink)?;
    }
    names.say(sink)?;
    rounded.say(sink)?;
    file.say_cut(sink)
}

/// `handle (app.py)`: lines are left out, so that a function is one box.
fn name(frame: &Value<'_>, function: &str) -> String {
    match text(&frame["file"]).rsplit(['/', '\\']).next() {
        Some(file) if !file.is_empty() && !function.contains(file) => {
            format!("{function} ({file})")
        }
        _ => function.to_owned(),
    }
}

/// What weights are scaled by to be whole, and what they mean then.
fn unit(name: &str) -> (f64, ValueType) {
    let time = ValueType::new("time", "nanoseconds");
    match name {
        "nanoseconds" => (1.0, time),
        "microseconds" => (1e3, time),
        "milliseconds" => (1e6, time),
        "seconds" => (1e9, time),
        _ => (1.0, named_unit(name)),
    }
}

struct OneProfile<'p> {
    file: &'p Document,
    frames: &'p [FrameIndex],
    scale: f64,
    /// Whether weights are no times.
    is_count: bool,
    task: Option<TaskIndex>,
    /// The number of samples and events of the profiles so far.
    record: &'p mut u64,
    /// Frames that nothing closes.
    unclosed: &'p mut Odd,
    rounded: &'p mut Rounded,
    sink: &'p mut Sink,
}

/// A frame that is open.
struct Open {
    frame: FrameIndex,
    place: Place,
    /// The stack up to it, once time was spent there.
    stack: Option<NestedIndex>,
}

impl<'p> OneProfile<'p> {
    fn sampled(&mut self, profile: &Value<'p>) -> Result<(), ReadError> {
        let has_weights = profile["weights"].is_array();
        if !has_weights && self.file.is_cut() {
            let name = text(&profile["name"]);
            self.sink.note(format!("profile {name} is left out: its weights are missing"));
            return Ok(());
        }
        let mut weights = self.file.elements(&profile["weights"]);
        let mut stack = Vec::new();
        for sample in self.file.elements(&profile["samples"]) {
            let sample = &sample;
            let weight = weights.next();
            if weight.is_none() && has_weights && self.file.is_cut() {
                break;
            }
            *self.record += 1;
            stack.clear();
            let indices = sample.items();
            if !sample.is_array() {
                self.skip("it is no list of frames", sample)?;
                continue;
            }
            stack.extend(indices.iter().filter_map(|id| self.frames.get(index(id)?)));
            let weight = weight.as_ref().and_then(number);
            let weight = match (weight, has_weights) {
                (Some(weight), _) if weight >= 0.0 => weight,
                (None, false) => 1.0,
                _ => {
                    self.skip("it has no weight", sample)?;
                    continue;
                }
            };
            if stack.len() != indices.len() {
                self.skip("it has a frame that is not in the file", sample)?;
                continue;
            }
            let weights = [self.whole(weight)];
            self.sink.add(&Sample { task: self.task, ..Sample::new(&stack, &weights) });
        }
        match weights.count() {
            more if more > 0 && !self.file.is_cut() => {
                let what = format!("weights that no sample has: {more}; left out");
                self.sink.complain(Place::Record(*self.record + 1), &what)
            }
            _ => Ok(()),
        }
    }

    fn evented(&mut self, profile: &Value<'p>) -> Result<(), ReadError> {
        let mut stack: Vec<Open> = Vec::new();
        let mut last = number(&profile["startValue"]).unwrap_or_default();
        for event in self.file.elements(&profile["events"]) {
            let event = &event;
            *self.record += 1;
            let frame = index(&event["frame"]).and_then(|at| self.frames.get(at)).copied();
            let (Some(frame), Some(at)) = (frame, number(&event["at"])) else {
                self.skip("it has no frame or no time", event)?;
                continue;
            };
            if at < last {
                self.skip("its time is before that of the previous event", event)?;
                continue;
            }
            self.add(&mut stack, at - last);
            last = at;
            match text(&event["type"]) {
                "O" => {
                    let place = Place::Record(*self.record);
                    stack.push(Open { frame, place, stack: None });
                }
                "C" => match stack.iter().rposition(|open| open.frame == frame) {
                    Some(found) => {
                        if found + 1 < stack.len() {
                            self.skip("it closes a frame that is not the innermost one", event)?;
                        }
                        stack.remove(found);
                        // What stood in it stands in another stack now.
                        stack[found..].iter_mut().for_each(|within| within.stack = None);
                    }
                    None => self.skip("it closes a frame that is not open", event)?,
                },
                _ => self.skip("it neither opens nor closes a frame", event)?,
            }
        }
        stack.iter().for_each(|open| self.unclosed.add(open.place));
        // Frames that nothing closes last to the end, if that is in the file.
        let end = number(&profile["endValue"]).filter(|_| !self.file.is_cut()).unwrap_or(last);
        self.add(&mut stack, end - last);
        match end < last {
            true => {
                let place = Place::Record(*self.record);
                self.sink.complain(place, "a profile ends before its last event; all are read")
            }
            false => Ok(()),
        }
    }

    fn add(&mut self, open: &mut [Open], length: f64) {
        if open.is_empty() || length <= 0.0 {
            return;
        }
        // Frames whose time is 0 are no box, so that a stack is made once it has some.
        let known = open.iter().rposition(|open| open.stack.is_some());
        let mut above = known.and_then(|known| open[known].stack);
        for open in &mut open[known.map_or(0, |known| known + 1)..] {
            above = Some(self.sink.nested(above, self.task, open.frame));
            open.stack = above;
        }
        let weights = [self.whole(length)];
        if let Some(stack) = above {
            self.sink.add_nested(stack, &Sample { task: self.task, ..Sample::new(&[], &weights) });
        }
    }

    /// A weight as a whole number. Parts of a nanosecond do not matter, but a count of 0.4 does.
    fn whole(&mut self, weight: f64) -> u64 {
        match self.is_count {
            true => self.rounded.whole(weight, Place::Record(*self.record)),
            false => whole(weight, self.scale),
        }
    }

    fn skip(&mut self, reason: &str, value: &Value<'_>) -> Result<(), ReadError> {
        self.sink.skip(Place::Record(*self.record), reason, value.to_string().as_bytes())
    }
}
