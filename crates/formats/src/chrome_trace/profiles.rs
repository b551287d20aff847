//! CPU profiles that V8 wrote into a trace: in chunks (`Profile`, `ProfileChunk`), or whole (`CpuProfile`).

use std::collections::BTreeMap;

use super::{Ids, Key, Trace};
use crate::ReadError;
use crate::cpuprofile::{self, Parts};
use crate::json::{Value, integer, text};
use crate::sink::Sink;
use crate::skipped::Place;

/// The profiles of a trace with their threads, by process and number.
#[derive(Default)]
pub(super) struct Profiles<'v> {
    chunked: BTreeMap<(i64, String), (Key, Parts<'v>)>,
    whole: Vec<(Key, Parts<'v>)>,
}

impl<'v> Profiles<'v> {
    /// Whether an event belongs to a profile.
    pub(super) fn is_of_one(event: &Value<'_>) -> bool {
        let data = &event["args"]["data"];
        match text(&event["name"]) {
            "CpuProfile" => data["cpuProfile"].is_object(),
            "Profile" | "ProfileChunk" => data.is_object(),
            _ => false,
        }
    }

    /// Takes an event that belongs to a profile.
    pub(super) fn take(&mut self, event: &'v Value<'v>, ids: &mut Ids) {
        let data = &event["args"]["data"];
        match text(&event["name"]) {
            "CpuProfile" if data["cpuProfile"].is_object() => {
                self.whole.push((ids.key(event), Parts::of(&data["cpuProfile"])));
            }
            "Profile" if data.is_object() => {
                let profile = self.of(event, ids);
                // Chunks come from a thread of the profiler; this event is of the thread itself.
                profile.0 = ids.key(event);
                profile.1.start = integer(&data["startTime"]);
            }
            "ProfileChunk" if data.is_object() => {
                let profile = &mut self.of(event, ids).1;
                let chunk = &data["cpuProfile"];
                profile.nodes.extend(chunk["nodes"].items());
                profile.samples.extend(chunk["samples"].items());
                for deltas in [&data["timeDeltas"], &chunk["timeDeltas"]] {
                    profile.deltas.extend(deltas.items().iter().map(integer));
                }
                // Up to there lasts the last sample.
                profile.end = integer(&data["endTime"]).or(profile.end);
            }
            _ => {}
        }
    }

    fn of(&mut self, event: &Value<'_>, ids: &mut Ids) -> &mut (Key, Parts<'v>) {
        let key = ids.key(event);
        let number = event["id"].to_string();
        self.chunked.entry((key.0, number)).or_insert_with(|| (key, Parts::default()))
    }

    /// The profiles that have samples.
    pub(super) fn into_list(self) -> Vec<(Key, Parts<'v>)> {
        let all = self.chunked.into_values().chain(self.whole);
        all.filter(|(_, parts)| !parts.samples.is_empty() && !parts.nodes.is_empty()).collect()
    }
}

/// Adds the samples of the profiles.
pub(super) fn add(
    profiles: &[(Key, Parts<'_>)],
    trace: &Trace<'_>,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let has_times = profiles.iter().all(|(_, parts)| parts.has_times());
    sink.set_values(cpuprofile::values(has_times));
    for (key, parts) in profiles {
        let task = trace.task(*key, sink);
        parts.say_lengths(sink)?;
        cpuprofile::add_profile(parts, Some(task), has_times, sink)?;
    }
    let repeated = said_twice(profiles);
    if repeated > 0 {
        let what = format!("CPU profiles of a time that another one of the thread has: {repeated}");
        sink.complain(Place::Record(1), &format!("{what}; they are added up"))?;
    }
    trace.say_spans_left_out(sink);
    Ok(())
}

/// How many profiles begin before another one of their thread has ended.
fn said_twice(profiles: &[(Key, Parts<'_>)]) -> usize {
    let times = profiles.iter().map(|(key, parts)| {
        let start = parts.start.unwrap_or_default();
        let deltas = parts.deltas.iter().flatten();
        (*key, start, deltas.fold(start, |sum, delta| sum.saturating_add(*delta)))
    });
    let mut times: Vec<(Key, i64, i64)> = times.collect();
    times.sort_unstable();
    times.windows(2).filter(|two| two[0].0 == two[1].0 && two[1].1 < two[0].2).count()
}
