//! CPU profiles that V8 wrote into a trace: in chunks (`Profile`, `ProfileChunk`), or whole (`CpuProfile`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Ids, Key, Trace};
use crate::ReadError;
use crate::cpuprofile;
use crate::json::text;
use crate::sink::Sink;

/// The profiles of a trace with their threads, by process and number.
#[derive(Default)]
pub(super) struct Profiles {
    chunked: BTreeMap<(i64, String), (Key, Map<String, Value>)>,
    whole: Vec<(Key, Value)>,
}

impl Profiles {
    /// Takes an event that belongs to a profile; false for any other.
    pub(super) fn take(&mut self, event: &Value, ids: &mut Ids) -> bool {
        let data = &event["args"]["data"];
        match text(&event["name"]) {
            "CpuProfile" if data["cpuProfile"].is_object() => {
                self.whole.push((ids.key(event), data["cpuProfile"].clone()));
            }
            "Profile" if data.is_object() => {
                let profile = self.of(event, ids);
                // Chunks come from a thread of the profiler; this event is of the thread itself.
                profile.0 = ids.key(event);
                profile.1.insert("startTime".to_owned(), data["startTime"].clone());
            }
            "ProfileChunk" if data.is_object() => {
                let profile = &mut self.of(event, ids).1;
                append(profile, "nodes", &data["cpuProfile"]["nodes"]);
                append(profile, "samples", &data["cpuProfile"]["samples"]);
                let deltas = [&data["timeDeltas"], &data["cpuProfile"]["timeDeltas"]];
                deltas.into_iter().for_each(|deltas| append(profile, "timeDeltas", deltas));
            }
            _ => return false,
        }
        true
    }

    fn of(&mut self, event: &Value, ids: &mut Ids) -> &mut (Key, Map<String, Value>) {
        let key = ids.key(event);
        let number = event["id"].to_string();
        self.chunked.entry((key.0, number)).or_insert_with(|| (key, Map::new()))
    }

    /// The profiles that have samples.
    pub(super) fn into_list(self) -> Vec<(Key, Value)> {
        let chunked = self.chunked.into_values().map(|(key, map)| (key, Value::Object(map)));
        let all = chunked.chain(self.whole);
        let has_samples = |(_, profile): &(Key, Value)| {
            let samples = profile["samples"].as_array();
            samples.is_some_and(|samples| !samples.is_empty()) && profile["nodes"].is_array()
        };
        all.filter(has_samples).collect()
    }
}

fn append(profile: &mut Map<String, Value>, name: &str, more: &Value) {
    if let Some(more) = more.as_array() {
        let list = profile.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.extend_from_slice(more);
        }
    }
}

/// Adds the samples of the profiles.
pub(super) fn add(
    profiles: &[(Key, Value)],
    trace: &Trace,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let has_times = profiles.iter().all(|(_, profile)| cpuprofile::has_times(profile));
    sink.set_values(cpuprofile::values(has_times));
    for (key, profile) in profiles {
        let task = trace.task(*key, sink);
        cpuprofile::add_profile(profile, Some(task), has_times, sink)?;
    }
    let spans: usize = trace.threads.values().map(|thread| thread.spans.len()).sum();
    if spans > 0 {
        sink.note(format!(
            "its CPU profile was read; left out: {spans} spans; --event spans takes them"
        ));
    }
    Ok(())
}
