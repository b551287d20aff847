//! [`Meta`] and [`Health`] as comments of a pprof file, and back.
//!
//! Lines that start with `flame: ` are for people; pprof shows them above its reports. Lines that
//! start with `#flame.` are for flame, one fact each: `#flame.health.lost_records 12`. pprof does
//! not show comments that start with `#`. The first word is the key, the rest of the line the
//! value; where a value has several words, free text is the last, so that nothing needs quoting.
//! Counts that are zero are left out, but for the samples.

use std::collections::{BTreeMap, HashSet};

use flame_profile::{
    ByteLen, Coverage, Health, Hz, Meta, Missing, Nanos, NotRead, Occurrences, OffCpuTime,
    ScriptEnd, StackCopies, StackEnd, ValueType,
};

const FOR_PEOPLE: &str = "flame: ";
const FOR_FLAME: &str = "#flame.";
const FORMAT: &str = "format";
const FORMAT_VERSION: &str = "1";

/// What the comments of a file say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The circumstances; `None` = flame did not write them, or several files were merged.
    pub(super) meta: Option<Meta>,
    /// What was lost. Comments of other tools, and what could not be read, stand in its notes.
    pub(super) health: Health,
    /// Whether the counts of `health` are flame's own.
    pub(super) has_health: bool,
    /// What values are called that have a portable name in the file, by their position.
    pub(super) value_names: BTreeMap<usize, String>,
}

/// The comment that keeps the name of a value that has another one in the file.
pub(super) fn value_name(position: usize, name: &str) -> String {
    format!("{FOR_FLAME}value.{position} {name}")
}

/// The comments that keep `meta` and `health`.
pub(super) fn comments(meta: &Meta, health: &Health) -> Vec<String> {
    let mut lines = vec![format!("{FOR_PEOPLE}{}", health.one_line())];
    lines.extend(health.notes.iter().map(|note| format!("{FOR_PEOPLE}{note}")));
    let mut fact = |key: &str, value: String| lines.push(format!("{FOR_FLAME}{key} {value}"));
    fact(FORMAT, FORMAT_VERSION.to_owned());
    let meta_facts = [
        ("meta.event", meta.event.clone()),
        ("meta.frequency", meta.frequency.map(|hz| hz.0.to_string())),
        ("meta.period", meta.period.map(|period| period.to_string())),
        ("meta.start", meta.start.map(|start| start.0.to_string())),
        ("meta.duration", meta.duration.map(|duration| duration.0.to_string())),
        ("meta.host", meta.host.clone()),
        ("meta.target", meta.target.clone()),
        ("meta.command", meta.command.clone()),
        ("meta.producer", meta.producer.clone()),
    ];
    for (key, value) in meta_facts {
        if let Some(value) = value {
            fact(key, value);
        }
    }
    health_facts(health, &mut fact);
    lines
}

fn health_facts(health: &Health, fact: &mut impl FnMut(&str, String)) {
    fact("health.samples", health.samples.to_string());
    let counts = [
        ("health.lost_records", health.lost_records),
        ("health.lost_samples", health.lost_samples),
        ("health.lost_side_band", health.lost_side_band),
        ("health.throttled", health.throttled),
        ("health.throttled_time", health.throttled_time.0),
        ("health.multiplexed_time", health.multiplexed_time.0),
        ("health.undecodable_records", health.undecodable_records),
        ("health.outside_mappings", health.outside_mappings),
        ("health.short_tasks", health.short_tasks),
        ("health.stray_samples", health.stray_samples),
        ("health.idle_samples", health.idle_samples),
        ("health.skipped_lines", health.skipped_lines),
        ("health.read_on", health.read_on),
    ];
    for (key, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        fact(key, count.to_string());
    }
    for (end, count) in &health.stack_ends {
        fact("health.stack_end", format!("{count} {}", stack_end_word(*end)));
    }
    for (why, count) in &health.not_read {
        fact("health.not_read", format!("{count} {}", not_read_word(*why)));
    }
    if health.stack_copies != StackCopies::default() {
        let StackCopies { samples, asked, copied } = health.stack_copies;
        fact("health.stack_copies", format!("{samples} {} {}", asked.0, copied.0));
    }
    for ((language, end), count) in &health.scripts {
        fact("health.script", format!("{count} {} {language}", end.word()));
    }
    if let Some(value) = &health.script_value {
        fact("health.script_value", format!("{} {}", value.unit, value.name));
    }
    for (image, count) in &health.no_unwind_info {
        fact("health.no_unwind_info", format!("{count} {image}"));
    }
    for ((image, missing), count) in &health.unnamed {
        fact("health.unnamed", format!("{count} {} {image}", missing_word(*missing)));
    }
    if let Some(Occurrences { event, sampled, happened, effective }) = health.occurrences {
        fact("health.occurrences", format!("{sampled} {happened} {effective} {event}"));
    }
    if health.standard_error > 0 {
        fact("health.standard_error", health.standard_error.to_string());
    }
    if let Some(off_cpu) = health.off_cpu {
        fact("health.off_cpu", off_cpu.to_numbers().map(|number| number.to_string()).join(" "));
    }
    if let Some(Coverage { sampled, accounted }) = health.coverage {
        fact("health.coverage", format!("{} {}", sampled.0, accounted.0));
    }
    for note in &health.notes {
        fact("health.note", note.clone());
    }
}

/// Reads what [`comments`] wrote, among comments of other tools.
pub(super) fn parse<'a>(comments: impl IntoIterator<Item = &'a str>) -> Facts {
    let mut reader = FactReader::default();
    for comment in comments {
        if let Some(line) = comment.strip_prefix(FOR_FLAME) {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            if reader.fact(key, value).is_none() {
                reader.unreadable += 1;
            }
        } else if !comment.starts_with(FOR_PEOPLE) {
            reader.health.notes.push(comment.to_owned());
        }
    }
    reader.finish()
}

#[derive(Default)]
struct FactReader {
    is_flame: bool,
    meta: Meta,
    health: Health,
    /// Keys that stand once in a file; one that comes again shows that files were merged.
    seen: HashSet<String>,
    is_merged: bool,
    value_names: BTreeMap<usize, String>,
    unreadable: u64,
}

impl FactReader {
    /// `None` = the key or its value makes no sense.
    fn fact(&mut self, key: &str, value: &str) -> Option<()> {
        let table = matches!(
            key,
            "health.stack_end"
                | "health.not_read"
                | "health.script"
                | "health.no_unwind_info"
                | "health.unnamed"
                | "health.note"
        );
        // Files of the same values may say the same of them.
        let repeats = table || key.starts_with("value.");
        if !repeats && !self.seen.insert(key.to_owned()) {
            self.is_merged = true;
        }
        if key == FORMAT {
            self.is_flame = true;
            return (value == FORMAT_VERSION).then_some(());
        }
        match key.split_once('.')? {
            ("meta", key) => self.meta_fact(key, value),
            ("health", key) => self.health_fact(key, value),
            ("value", position) => {
                self.value_names.insert(position.parse().ok()?, value.to_owned());
                Some(())
            }
            _ => None,
        }
    }

    fn meta_fact(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "event" => self.meta.event = Some(value.to_owned()),
            "frequency" => self.meta.frequency = Some(Hz(value.parse().ok()?)),
            "period" => self.meta.period = Some(value.parse().ok()?),
            "start" => self.meta.start = Some(Nanos(value.parse().ok()?)),
            "duration" => self.meta.duration = Some(Nanos(value.parse().ok()?)),
            "host" => self.meta.host = Some(value.to_owned()),
            "target" => self.meta.target = Some(value.to_owned()),
            "command" => self.meta.command = Some(value.to_owned()),
            "producer" => self.meta.producer = Some(value.to_owned()),
            _ => return None,
        }
        Some(())
    }

    fn health_fact(&mut self, key: &str, value: &str) -> Option<()> {
        let health = &mut self.health;
        match key {
            "samples" => health.samples = value.parse().ok()?,
            "lost_records" => health.lost_records = value.parse().ok()?,
            "lost_samples" => health.lost_samples = value.parse().ok()?,
            "lost_side_band" => health.lost_side_band = value.parse().ok()?,
            "throttled" => health.throttled = value.parse().ok()?,
            "throttled_time" => health.throttled_time = Nanos(value.parse().ok()?),
            "multiplexed_time" => health.multiplexed_time = Nanos(value.parse().ok()?),
            "outside_mappings" => health.outside_mappings = value.parse().ok()?,
            "stray_samples" => health.stray_samples = value.parse().ok()?,
            "short_tasks" => health.short_tasks = value.parse().ok()?,
            "undecodable_records" => health.undecodable_records = value.parse().ok()?,
            "idle_samples" => health.idle_samples = value.parse().ok()?,
            "skipped_lines" => health.skipped_lines = value.parse().ok()?,
            "standard_error" => health.standard_error = value.parse().ok()?,
            "read_on" => health.read_on = value.parse().ok()?,
            "occurrences" => {
                let numbers = value.split(' ').map(str::parse);
                let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
                let (first, event) = numbers.split_first_chunk()?;
                let ([sampled, happened, effective], event) = (*first, event.first());
                let event = usize::try_from(event.copied().unwrap_or(0)).ok()?;
                health.occurrences = Some(Occurrences { event, sampled, happened, effective });
            }
            "off_cpu" => {
                let numbers = value.split(' ').map(str::parse);
                let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
                health.off_cpu = Some(OffCpuTime::from_numbers(&numbers)?);
            }
            "coverage" => {
                let (sampled, accounted) = value.split_once(' ')?;
                let sampled = Nanos(sampled.parse().ok()?);
                let accounted = Nanos(accounted.parse().ok()?);
                health.coverage = Some(Coverage { sampled, accounted });
            }
            "stack_copies" => {
                let mut numbers = value.splitn(3, ' ').map(|number| number.parse().ok());
                let mut next = || numbers.next().flatten();
                health.stack_copies = StackCopies {
                    samples: next()?,
                    asked: ByteLen(next()?),
                    copied: ByteLen(next()?),
                };
            }
            "script_value" => {
                let (unit, name) = value.split_once(' ')?;
                health.script_value = Some(ValueType::new(name, unit));
            }
            "note" => health.notes.push(value.to_owned()),
            table => {
                let (count, rest) = value.split_once(' ')?;
                self.count(table, count.parse().ok()?, rest)?;
            }
        }
        Some(())
    }

    fn count(&mut self, table: &str, count: u64, rest: &str) -> Option<()> {
        let health = &mut self.health;
        let sum = match table {
            "script" => {
                let (end, language) = rest.split_once(' ')?;
                let key = (language.to_owned(), ScriptEnd::of_word(end)?);
                health.scripts.entry(key).or_default()
            }
            "stack_end" => health.stack_ends.entry(stack_end_of(rest)?).or_default(),
            "not_read" => health.not_read.entry(not_read_of(rest)?).or_default(),
            "no_unwind_info" => health.no_unwind_info.entry(rest.to_owned()).or_default(),
            "unnamed" => {
                let (word, image) = rest.split_once(' ')?;
                health.unnamed.entry((image.to_owned(), missing_of(word)?)).or_default()
            }
            _ => return None,
        };
        *sum = sum.saturating_add(count);
        Some(())
    }

    fn finish(mut self) -> Facts {
        if self.is_merged {
            // pprof merges comments as a set: equal counts of two files would count once.
            self.health = Health { notes: self.health.notes, ..Health::default() };
            let note = "several profiles were merged into this one: what was lost in them is \
                        not known any more";
            self.health.notes.push(note.to_owned());
        }
        if self.unreadable > 0 {
            let note = format!(
                "{} comments of a newer flame were not understood and left out",
                self.unreadable
            );
            self.health.notes.push(note);
        }
        let whole = self.is_flame && !self.is_merged;
        Facts {
            meta: whole.then_some(self.meta),
            health: self.health,
            has_health: whole,
            value_names: self.value_names,
        }
    }
}

const STACK_ENDS: [StackEnd; 9] = [
    StackEnd::Root,
    StackEnd::Guessed,
    StackEnd::CopyTooShort,
    StackEnd::NoUnwindInfo,
    StackEnd::BadValue,
    StackEnd::OtherStack,
    StackEnd::FrameLimit,
    StackEnd::ChainEnd,
    StackEnd::NotRecorded,
];

/// Written into files: never changes, unlike what `Display` shows.
fn stack_end_word(end: StackEnd) -> &'static str {
    match end {
        StackEnd::Root => "root",
        StackEnd::Guessed => "guessed",
        StackEnd::CopyTooShort => "copy-too-short",
        StackEnd::NoUnwindInfo => "no-unwind-info",
        StackEnd::BadValue => "bad-value",
        StackEnd::OtherStack => "other-stack",
        StackEnd::FrameLimit => "frame-limit",
        StackEnd::ChainEnd => "chain-end",
        StackEnd::NotRecorded => "not-recorded",
    }
}

fn stack_end_of(word: &str) -> Option<StackEnd> {
    STACK_ENDS.into_iter().find(|end| stack_end_word(*end) == word)
}

/// Written into files: never changes, unlike what `Display` shows.
fn not_read_word(why: NotRead) -> &'static str {
    match why {
        NotRead::NoReader => "no-reader",
        NotRead::Late => "late",
        NotRead::NoRoom => "no-room",
        NotRead::RealTime => "real-time",
        NotRead::Denied => "denied",
        NotRead::Unreadable => "unreadable",
        NotRead::Changed => "changed",
        NotRead::TooDeep => "too-deep",
    }
}

fn not_read_of(word: &str) -> Option<NotRead> {
    NotRead::ALL.into_iter().find(|why| not_read_word(*why) == word)
}

const MISSINGS: [Missing; 9] = [
    Missing::NotMapped,
    Missing::NoPerfMap,
    Missing::FileUnreadable,
    Missing::FileReplaced,
    Missing::NotElf,
    Missing::NoSymbol,
    Missing::Stripped,
    Missing::KernelHidden,
    Missing::OtherKernel,
];

/// Written into files: never changes, unlike what `Display` shows.
fn missing_word(missing: Missing) -> &'static str {
    match missing {
        Missing::NotMapped => "not-mapped",
        Missing::NoPerfMap => "no-perf-map",
        Missing::FileUnreadable => "file-unreadable",
        Missing::FileReplaced => "file-replaced",
        Missing::NotElf => "not-elf",
        Missing::NoSymbol => "no-symbol",
        Missing::Stripped => "stripped",
        Missing::KernelHidden => "kernel-hidden",
        Missing::OtherKernel => "other-kernel",
    }
}

fn missing_of(word: &str) -> Option<Missing> {
    MISSINGS.into_iter().find(|missing| missing_word(*missing) == word)
}

#[cfg(test)]
mod tests;
