//! Events by name: `cycles`, `cpu-clock`, `r1a8`, with the modifiers `:u` and `:k`, tracepoints:
//! `sched:sched_process_exec`, and events that a device describes: `cpu/event=0xc2,umask=0x2/u`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use flame_events::TracepointField;
use flame_profile::FileOffset;
use perf_event_open_sys::bindings;

use crate::config::Privilege;
use crate::pmu::{self, PmuError};
use crate::tracepoints::{self, TracepointError};
use crate::uprobe::Uprobe;

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventUnit {
    /// CPU time in nanoseconds.
    Nanoseconds,
    /// Occurrences.
    Count,
}

impl EventUnit {
    /// What profiles call it.
    pub fn name(self) -> &'static str {
        match self {
            EventUnit::Nanoseconds => "nanoseconds",
            EventUnit::Count => "count",
        }
    }
}

/// A kernel event that samples can be taken of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// The name in perf's spelling, without modifiers.
    pub name: String,
    /// What it counts.
    pub unit: EventUnit,
    /// What a modifier restricts it to.
    pub privilege: Option<Privilege>,
    /// Which occurrences of a tracepoint are meant, in the kernel's words; all where there is none.
    pub filter: Option<String>,
    /// Whether few are to be expected on the whole machine: each is sampled until there are many.
    pub is_rare: bool,
    /// A field of a tracepoint that samples say the value of.
    pub field: Option<TracepointField>,
    /// Where the function starts whose calls are meant.
    pub(crate) uprobe: Option<Uprobe>,
    pub(crate) kind: u32,
    /// `config`, `config1` and `config2` of the attributes.
    pub(crate) configs: [u64; 3],
}

const HARDWARE: u32 = bindings::PERF_TYPE_HARDWARE;
const SOFTWARE: u32 = bindings::PERF_TYPE_SOFTWARE;

/// Names, the kernel's type and number, and further names that perf accepts.
const EVENTS: &[(&str, u32, u32, &[&str])] = &[
    ("cycles", HARDWARE, bindings::PERF_COUNT_HW_CPU_CYCLES, &["cpu-cycles"]),
    ("instructions", HARDWARE, bindings::PERF_COUNT_HW_INSTRUCTIONS, &[]),
    ("cache-misses", HARDWARE, bindings::PERF_COUNT_HW_CACHE_MISSES, &[]),
    ("cache-references", HARDWARE, bindings::PERF_COUNT_HW_CACHE_REFERENCES, &[]),
    ("branch-misses", HARDWARE, bindings::PERF_COUNT_HW_BRANCH_MISSES, &[]),
    ("branches", HARDWARE, bindings::PERF_COUNT_HW_BRANCH_INSTRUCTIONS, &["branch-instructions"]),
    ("cpu-clock", SOFTWARE, bindings::PERF_COUNT_SW_CPU_CLOCK, &[]),
    ("task-clock", SOFTWARE, bindings::PERF_COUNT_SW_TASK_CLOCK, &[]),
    ("page-faults", SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS, &["faults"]),
    ("minor-faults", SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS_MIN, &[]),
    ("major-faults", SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS_MAJ, &[]),
    ("context-switches", SOFTWARE, bindings::PERF_COUNT_SW_CONTEXT_SWITCHES, &["cs"]),
    ("cpu-migrations", SOFTWARE, bindings::PERF_COUNT_SW_CPU_MIGRATIONS, &["migrations"]),
];

/// The text is not an event that flame can sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseEventError {
    /// No event has that name.
    #[error(
        "unknown event '{text}': it is one of {}, a tracepoint (GROUP:NAME), an event of a device \
         (PMU/EVENT/), or rNNN in hexadecimal, with :u or :k",
        event_names().join(", ")
    )]
    Unknown {
        /// What was typed.
        text: String,
    },
    /// It looks like a tracepoint, and there is none.
    #[error(transparent)]
    Tracepoint(#[from] TracepointError),
    /// It looks like an event of a device, and there is none.
    #[error(transparent)]
    Pmu(#[from] PmuError),
}

/// The events that every kernel knows by name, whatever the machine has of them.
pub fn event_names() -> Vec<&'static str> {
    EVENTS.iter().map(|event| event.0).collect()
}

impl EventType {
    /// CPU cycles, the best measure of CPU time where there is a PMU.
    pub fn cycles() -> EventType {
        EventType::known(0)
    }

    /// The CPU's clock by a timer, which every machine has.
    pub fn cpu_clock() -> EventType {
        EventType::known(6)
    }

    /// Pages of memory that were not there when they were first used.
    pub fn page_faults() -> EventType {
        EventType::known(8)
    }

    /// Threads taken off their CPUs.
    pub fn context_switches() -> EventType {
        EventType::known(11)
    }

    fn known(index: usize) -> EventType {
        let (name, kind, config, _) = EVENTS[index];
        let clock = name.ends_with("-clock");
        let unit = if clock { EventUnit::Nanoseconds } else { EventUnit::Count };
        EventType { unit, ..EventType::counted(name, kind, config.into()) }
    }

    fn counted(name: &str, kind: u32, config: u64) -> EventType {
        EventType {
            name: name.to_owned(),
            unit: EventUnit::Count,
            privilege: None,
            filter: None,
            is_rare: false,
            field: None,
            uprobe: None,
            kind,
            configs: [config, 0, 0],
        }
    }

    /// Calls of a function: its name, and where in a file its code starts. Filters know its arguments `arg1` to `arg3`.
    pub fn function(name: &str, file: &Path, start: FileOffset) -> EventType {
        let uprobe = Some(Uprobe::new(file, start));
        EventType { uprobe, ..EventType::counted(name, bindings::PERF_TYPE_TRACEPOINT, 0) }
    }

    /// The same function, sampled where it returns.
    pub fn at_return(self) -> EventType {
        let uprobe = self.uprobe.map(Uprobe::at_return);
        EventType { uprobe, name: format!("return of {}", self.name), filter: None, ..self }
    }

    /// Whether it is the call of a function.
    pub fn is_function(&self) -> bool {
        self.uprobe.is_some()
    }

    /// The same tracepoint, with the value of one of its fields.
    ///
    /// # Errors
    /// It has no such field that is a number, or is not a tracepoint.
    pub fn with_field(self, name: &str) -> Result<EventType, TracepointError> {
        let field = Some(tracepoints::field(&self.name, name)?);
        Ok(EventType { field, ..self })
    }

    /// Whether the CPU counts it: then it shares counters with other events.
    pub fn is_hardware(&self) -> bool {
        !matches!(self.kind, SOFTWARE | bindings::PERF_TYPE_TRACEPOINT)
    }

    /// Whether it is a place in the kernel's code.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == bindings::PERF_TYPE_TRACEPOINT && self.uprobe.is_none()
    }

    /// Whether the kernel itself counts it, one by one: page faults, context switches.
    pub fn is_occurrence(&self) -> bool {
        !self.is_hardware() && !self.is_clock()
    }

    /// Whether the event is a clock: its samples stand for CPU time.
    pub fn is_clock(&self) -> bool {
        self.unit == EventUnit::Nanoseconds
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let letter = match self.privilege {
            Some(Privilege::User) => "u",
            Some(Privilege::Kernel) => "k",
            _ => return Ok(()),
        };
        let colon = if self.name.ends_with('/') { "" } else { ":" };
        write!(f, "{colon}{letter}")
    }
}

impl FromStr for EventType {
    type Err = ParseEventError;

    fn from_str(text: &str) -> Result<EventType, ParseEventError> {
        let unknown = || ParseEventError::Unknown { text: text.to_owned() };
        if let Some((device, rest)) = text.split_once('/') {
            let (terms, modifier) = rest.split_once('/').ok_or_else(unknown)?;
            let is_known = modifier.is_empty() || privilege(modifier).is_some();
            let config = pmu::event(device, terms)?;
            let event = EventType::counted(&format!("{device}/{terms}/"), config.kind, 0);
            let event = EventType { configs: config.configs, ..event };
            let restricted = EventType { privilege: privilege(modifier), ..event };
            return is_known.then_some(restricted).ok_or_else(unknown);
        }
        let restricted = text.rsplit_once(':');
        let restricted = restricted.and_then(|(name, letters)| Some((name, privilege(letters)?)));
        let (name, privilege) = restricted.map_or((text, None), |(name, of)| (name, Some(of)));
        let known = EVENTS.iter().position(|event| event.0 == name || event.3.contains(&name));
        let counted = |kind, config| EventType::counted(name, kind, config);
        let event = match (known, name.split_once(':'), name.strip_prefix('r')) {
            (Some(index), ..) => EventType::known(index),
            (None, Some((event, _)), _) if EVENTS.iter().any(|known| known.0 == event) => {
                return Err(unknown());
            }
            (None, Some(_), _) => {
                counted(bindings::PERF_TYPE_TRACEPOINT, tracepoints::number(name)?)
            }
            (None, None, Some(digits)) => {
                let config = u64::from_str_radix(digits, 16).map_err(|_| unknown())?;
                counted(bindings::PERF_TYPE_RAW, config)
            }
            (None, None, None) => return Err(unknown()),
        };
        Ok(EventType { privilege, ..event })
    }
}

/// What a modifier restricts an event to.
fn privilege(letters: &str) -> Option<Privilege> {
    match letters {
        "u" => Some(Privilege::User),
        "k" => Some(Privilege::Kernel),
        "uk" | "ku" => Some(Privilege::All),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(&str, u32, u64, Option<Privilege>)>) {
        let event = text.parse::<EventType>().ok();
        let fields = event
            .as_ref()
            .map(|event| (&*event.name, event.kind, event.configs[0], event.privilege));
        assert_eq!(fields, expect, "{text}");
    }

    #[test]
    fn names_aliases_and_modifiers_are_understood() {
        check("cycles", Some(("cycles", 0, 0, None)));
        check("cpu-cycles:u", Some(("cycles", 0, 0, Some(Privilege::User))));
        check("cpu-clock", Some(("cpu-clock", 1, 0, None)));
        check("task-clock:k", Some(("task-clock", 1, 1, Some(Privilege::Kernel))));
        check("faults", Some(("page-faults", 1, 2, None)));
        check("context-switches", Some(("context-switches", 1, 3, None)));
        check("r1a8", Some(("r1a8", 4, 0x1a8, None)));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for text in ["", "rxyz", "r", "cycles:x", "no-such-event"] {
            check(text, None);
        }
    }

    #[test]
    fn the_clocks_count_nanoseconds() {
        assert!(EventType::cpu_clock().is_clock());
        assert!(!EventType::cycles().is_clock());
        assert_eq!(EventType::context_switches().name, "context-switches");
        assert_eq!(EventType::page_faults().name, "page-faults");
    }
}
