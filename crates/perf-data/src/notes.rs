//! What a user should know of a file that was read, as sentences.

use std::collections::BTreeMap;

use flame_profile::{Missing, Profile};

use crate::PerfDataError;
use crate::files::RecordedFiles;
use crate::machine::is_this_machine;
use crate::recorded_events::RecordedEvent;
use crate::source::{Left, PerfData};

/// How many images are named that lack names.
const MAX_IMAGES: usize = 3;
/// Below this share of the samples nobody misses names: 1 %.
const MIN_SHARE: f64 = 0.01;

/// What was left out, and how the file ends.
///
/// # Errors
/// There is no sample of the event that was chosen, but there are of others.
pub(crate) fn of_file(file: &PerfData<'_>) -> Result<Vec<String>, PerfDataError> {
    let mut notes = Vec::new();
    let left = file.left();
    let of = |is_chosen: bool| {
        let events = file.events().filter(move |(_, value)| value.is_some() == is_chosen);
        events.map(|(event, _)| event).filter(|event| !event.is_dummy()).collect::<Vec<_>>()
    };
    let (taken, others) = (of(true), of(false));
    let with_counts: Vec<String> = others
        .iter()
        .filter(|event| event.samples > 0)
        .map(|event| format!("{} ({})", event.name, event.samples))
        .collect();
    let names: Vec<&str> = taken.iter().map(|event| event.name.as_str()).collect();
    let (names, with_counts) = (names.join(", "), with_counts.join(", "));
    if !with_counts.is_empty() {
        if taken.iter().all(|event| event.samples == 0) {
            return Err(PerfDataError::NoSuchEvent { asked: names, others: with_counts });
        }
        notes.push(format!(
            "samples of {names} only; left out: {with_counts}; --event takes another"
        ));
    }
    notes.extend(of_values(file));
    if file.facts().is_directory && !file.has_parts {
        notes.push(
            "most of the recording is in other files of its directory: name that instead"
                .to_owned(),
        );
    }
    of_end(&left, &mut notes);
    if !left.unknown.is_empty() {
        let count: u64 = left.unknown.values().sum();
        let kinds: Vec<String> = left.unknown.keys().take(5).map(u32::to_string).collect();
        let kinds = kinds.join(", ");
        notes.push(format!("{count} records of kinds that flame does not know ({kinds}) skipped"));
    }
    if left.guests > 0 {
        notes.push(format!("{} samples of virtual machines left out", left.guests));
    }
    if left.nobodys > 0 {
        let count = left.nobodys;
        notes.push(format!("{count} records of events that the file does not describe skipped"));
    }
    if left.late > 0 {
        notes.push(format!("{} records came too late to be sorted", left.late));
    }
    Ok(notes)
}

/// How the file ends.
fn of_end(left: &Left, notes: &mut Vec<String>) {
    if let Some(at) = left.cut_at {
        notes.push(format!(
            "it is truncated or damaged at byte {at}; everything before that was read"
        ));
    }
    if let Some(at) = left.behind {
        notes.push(format!(
            "something stands behind its end at byte {at} and was not read: another recording, if files \
             were put together; name each of them instead"
        ));
    }
    if left.has_no_facts {
        notes.push(
            "what perf writes at a recording's end is missing: build IDs, or names of events"
                .to_owned(),
        );
    }
    if left.broken_packing {
        notes.push("its compressed records are broken; those before were read".to_owned());
    }
}

/// Which events have samples, if there are several.
fn of_values(file: &PerfData<'_>) -> Option<String> {
    let mut values = file.values();
    values.retain(|(_, samples)| *samples > 0);
    let (first, _) = values.first().filter(|_| values.len() > 1)?;
    let name =
        |(event, samples): &(&RecordedEvent, u64)| format!("{} ({samples})", event.base_name());
    let all: Vec<String> = values.iter().map(name).collect();
    Some(format!(
        "samples of several events: {}; {} is shown unless --value names another",
        all.join(", "),
        first.base_name()
    ))
}

/// What is to be said of the machine that names came from.
pub(crate) fn of_places(files: &RecordedFiles, unproven: u64) -> Option<String> {
    if unproven > 0 {
        return Some(format!(
            "{unproven} files of --sysroot are assumed to be those of the recording, which has no \
             build IDs for them"
        ));
    }
    let host = files.facts.host.as_ref().filter(|_| files.sysroot.is_none())?;
    (is_this_machine(&files.facts) == Some(false)).then(|| {
        format!(
            "it was recorded on {host}: files of this machine are used only if they have the same \
             build ID; --sysroot DIR names a copy of that machine's"
        )
    })
}

/// Which images most samples lack names of, and why.
pub(crate) fn of_names(profile: &Profile) -> Vec<String> {
    let all = profile.health.samples.max(1) as f64;
    let is_told = |missing: &Missing| {
        matches!(missing, Missing::FileReplaced | Missing::FileUnreadable | Missing::OtherKernel)
    };
    let mut unnamed: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for ((image, missing), samples) in &profile.health.unnamed {
        if is_told(missing) && *samples as f64 / all >= MIN_SHARE {
            let share = *samples as f64 * 100.0 / all;
            let note =
                format!("{share:.0} % of samples have code without names: {image}: {missing}");
            unnamed.entry(*samples).or_default().push(note);
        }
    }
    unnamed.into_values().rev().flatten().take(MAX_IMAGES).collect()
}
