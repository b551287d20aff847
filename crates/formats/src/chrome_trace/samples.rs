//! The list `samples` of a trace, whose stacks are in `stackFrames`, where frames name their parents.

use std::borrow::Cow;

use flame_profile::{FrameKind, Nanos};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::{Trace, nanoseconds};
use crate::callers::Callers;
use crate::json::{Value, text};
use crate::odd::{Names, Odd};
use crate::rounded::Rounded;
use crate::sink::{Sample, Sink, TaskIndex};
use crate::skipped::Place;
use crate::{NoSuchEvent, ReadError};

/// What the samples are of (`cycles`), the first one's or as it was asked for, and what else there is.
struct Events {
    taken: Option<String>,
    is_asked: bool,
    count: u64,
    others: IndexMap<String, u64>,
}

impl Events {
    fn take(&mut self, event: &str) -> bool {
        let is_taken = *self.taken.get_or_insert_with(|| event.to_owned()) == event;
        match is_taken {
            true => self.count += 1,
            false => *self.others.entry(event.to_owned()).or_default() += 1,
        }
        is_taken
    }

    fn finish(self, sink: &mut Sink) -> Result<(), ReadError> {
        if self.others.is_empty() {
            return Ok(());
        }
        let shown = |(event, count): (&String, &u64)| match &**event {
            "" => format!("those without a name ({count})"),
            event => format!("{event} ({count})"),
        };
        let others = self.others.iter().map(shown).collect::<Vec<_>>().join(", ");
        let taken = self.taken.unwrap_or_default();
        if self.count == 0 && self.is_asked {
            let others = format!("{others}, spans");
            return Err(NoSuchEvent { asked: taken, others }.into());
        }
        let taken = if taken.is_empty() { "without a name" } else { &format!("of {taken}") };
        sink.note(format!("samples {taken} only; left out: {others}; --event takes another"));
        Ok(())
    }
}

impl Trace<'_> {
    /// Adds the samples of the event that is asked for, or of that of the first one.
    pub(super) fn add_samples<'v>(
        mut self,
        samples: impl Iterator<Item = Value<'v>>,
        frames: &Value<'_>,
        asked: Option<String>,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let frames: Vec<(&str, &Value<'_>)> = frames.entries().collect();
        let ids = frames.iter().enumerate().map(|(at, (id, _))| (*id, at));
        let by_id: FxHashMap<&str, usize> = ids.collect();
        let mut callers: FxHashMap<TaskIndex, Callers> = FxHashMap::default();
        let (mut lacking, mut rounded, mut names) =
            (Odd::default(), Rounded::default(), Names::default());
        let is_asked = asked.is_some();
        let mut events = Events { taken: asked, is_asked, count: 0, others: IndexMap::new() };
        for (at, sample) in samples.enumerate() {
            if !events.take(text(&sample["name"])) {
                continue;
            }
            let place = Place::Record(at as u64 + 1);
            let mut entry = |at: usize, sink: &mut Sink| {
                let (_, frame) = frames.get(at)?;
                let parent = &frame["parent"];
                let caller = by_id.get(&*shown(parent)).copied();
                if caller.is_none() && !parent.is_null() {
                    lacking.add(place);
                }
                let name = names.of(&frame["name"], place);
                Some((Some(sink.frame(name.as_bytes(), FrameKind::User)), caller))
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
        events.finish(sink)?;
        rounded.say(sink)?;
        names.say(sink)?;
        self.say_spans_left_out(sink);
        let what = "frames whose callers are not in stackFrames";
        lacking.say(what, "stacks begin with them", sink)
    }
}

/// A number of a frame, which may be a text.
fn shown<'v>(id: &'v Value<'_>) -> Cow<'v, str> {
    id.as_str().map_or_else(|| id.to_string().into(), Cow::Borrowed)
}
