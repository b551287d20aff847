//! The events of a file: what each was opened with, what it is called, and which records are its.

use std::borrow::Cow;

use flame_events::{Attributes, Endianness, Fields, RecordBytes, RecordLayout};
use flame_profile::ValueType;
use rustc_hash::FxHashMap;

use crate::PerfDataError;
use crate::bytes::ReadAt;
use crate::event_names::base_name;
use crate::header::{FileHeader, Section};

const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 0;
/// Events of the kernel's own, by their number.
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
/// Of these two, samples stand for nanoseconds.
const CLOCKS: u64 = 2;
/// Opened for its records of mappings and threads alone.
const DUMMY: u64 = 9;
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// An event of a file.
#[derive(Clone, Debug)]
pub struct RecordedEvent {
    /// Its name as perf has it, with modifiers: `cycles:u`.
    pub name: String,
    /// What it was opened with.
    pub attributes: Attributes,
    /// How its records are laid out.
    pub layout: RecordLayout,
    /// How many samples of it were read so far, those that were left out included.
    pub samples: u64,
}

impl RecordedEvent {
    fn new(attributes: Attributes, endian: Endianness) -> RecordedEvent {
        let name = generic_name(attributes.kind, attributes.config);
        RecordedEvent { name, layout: attributes.layout(endian), attributes, samples: 0 }
    }

    /// Whether samples stand for time on a CPU.
    pub fn is_clock(&self) -> bool {
        self.attributes.kind == SOFTWARE && self.attributes.config < CLOCKS
    }

    /// Whether it makes no samples.
    pub fn is_dummy(&self) -> bool {
        (self.attributes.kind, self.attributes.config) == (SOFTWARE, DUMMY)
    }

    /// Its name without modifiers and kind of core: what it has in common with other parts of one event.
    pub fn base_name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(base_name(self.name.as_bytes()))
    }

    /// What its samples stand for; as one of several values it has its own name, whatever it counts.
    pub fn value_type(&self, is_alone: bool) -> ValueType {
        match (self.is_clock(), is_alone) {
            (true, true) => ValueType::new("cpu", "nanoseconds"),
            (true, false) => ValueType::new(self.base_name(), "nanoseconds"),
            (false, _) => ValueType::new(self.base_name(), "count"),
        }
    }
}

/// The events of a file, and whose each record is.
#[derive(Debug, Default)]
pub(crate) struct RecordedEvents {
    pub(crate) all: Vec<RecordedEvent>,
    by_id: FxHashMap<u64, usize>,
}

impl RecordedEvents {
    /// Those of a file.
    pub(crate) fn read(
        header: &FileHeader,
        endian: Endianness,
        input: &mut dyn ReadAt,
    ) -> Result<RecordedEvents, PerfDataError> {
        const IDS: usize = 16;
        let bytes = header.attributes.read(input)?;
        let len = header.attribute_len;
        if len <= IDS || bytes.len() < len {
            return Err(PerfDataError::Broken("it does not describe any event"));
        }
        let mut events = RecordedEvents::default();
        for entry in bytes.chunks_exact(len) {
            let (attributes, ids) = entry.split_at(len - IDS);
            let mut ids = Fields::new(ids, endian);
            let (start, len) = (ids.u64().unwrap_or(0), ids.u64().unwrap_or(0));
            let ids = Section { start, len }.read(input)?;
            if !events.add(attributes, &ids, endian) {
                return Err(PerfDataError::Broken("the attributes of an event are cut short"));
            }
        }
        Ok(events)
    }

    /// Adds an event with the identifiers of its counters; whether it can be read.
    fn add(&mut self, attributes: &[u8], ids: &[u8], endian: Endianness) -> bool {
        let Some(attributes) = Attributes::parse(attributes, endian) else { return false };
        let mut ids = Fields::new(ids, endian);
        while let Some(id) = ids.u64() {
            self.by_id.insert(id, self.all.len());
        }
        self.all.push(RecordedEvent::new(attributes, endian));
        true
    }

    /// Adds the event that a record of a stream tells of: its attributes, then its identifiers.
    pub(crate) fn add_record(&mut self, body: &[u8], endian: Endianness) {
        let mut fields = Fields::new(body, endian);
        let len = fields.u32().and_then(|_| fields.u32()).and_then(|len| usize::try_from(len).ok());
        if let Some((attributes, ids)) = len.and_then(|len| body.split_at_checked(len)) {
            self.add(attributes, ids, endian);
        }
    }

    /// Gives the event of an identifier, or the one at a position, the name that perf has for it.
    pub(crate) fn set_name(&mut self, position: usize, ids: &[u64], name: String) {
        let by_id = ids.iter().find_map(|id| self.by_id.get(id)).copied();
        if let Some(event) = self.all.get_mut(by_id.unwrap_or(position)) {
            event.name = name;
        }
    }

    /// Whose a record is; the first event's where it does not say.
    pub(crate) fn of_record(&self, record: &RecordBytes<'_>) -> Option<usize> {
        let first = self.all.first()?;
        if self.all.len() == 1 {
            return Some(0);
        }
        match first.layout.id(record) {
            Some(id) => self.by_id.get(&id).copied().or((id == 0).then_some(0)),
            None => Some(0),
        }
    }

    /// Their names, for people.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|event| event.name.as_str()).collect();
        names.join(", ")
    }
}

/// What an event is called of which the file says no name.
fn generic_name(kind: u32, config: u64) -> String {
    let at = usize::try_from(config & 0xffff_ffff).unwrap_or(usize::MAX);
    let known = match kind {
        SOFTWARE => SOFTWARE_NAMES.get(at),
        // The upper half says which kind of core.
        HARDWARE => HARDWARE_NAMES.get(at),
        _ => None,
    };
    known.map_or_else(|| format!("event {kind}:{config:#x}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_a_name_have_that_of_their_number() {
        assert_eq!(generic_name(1, 0), "cpu-clock");
        assert_eq!(generic_name(0, 4 << 32), "cycles");
        assert_eq!(generic_name(2, 291), "event 2:0x123");
    }
}
