//! `--mode` of system calls and memory, and what else a recording of tracepoints may measure: bytes,
//! occurrences, or the time between two.

use flame_profile::ValueType;
use flame_recorder::{Argument, RecorderConfig};
use flame_sampler::{
    CallGraph, DEFAULT_COUNTING_FREQUENCY, EventSpec, EventType, Rate, SamplerConfig,
};
use nix::libc;

use super::plan::rate;
use crate::cli::{Measure, Mode, SamplingArgs};
use crate::message::Failure;

/// System calls that read or write, and return how many bytes they did.
const TRANSFERS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_splice,
];

/// What waits in futex(2), with its flags for private futexes and the real-time clock: FUTEX_WAIT,
/// FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2.
const FUTEX_WAITS: [u32; 5] = [0, 6, 9, 11, 13];
const FUTEX_FLAGS: [u32; 4] = [0, 128, 256, 128 + 256];

const ENTER: &str = "raw_syscalls:sys_enter";
const EXIT: &str = "raw_syscalls:sys_exit";

/// What a sample of an event weighs.
enum Weight {
    Occurrences,
    /// What a field of the tracepoint adds up to, in that unit.
    Field(String, &'static str),
    /// How far the address that a call returns lies beyond the one of the call before.
    Growth,
    /// The time until another event of the thread.
    Until(EventType),
}

/// Sets what the mode, --weight or --pair measure; nothing for other modes.
pub(super) fn set(config: &mut RecorderConfig, sampling: &SamplingArgs) -> Result<(), Failure> {
    if let Some(field) = &sampling.weight {
        let event = config.sampler.event.take();
        if let Some(function) = event.as_ref().filter(|event| event.is_function()) {
            config.options.arguments = vec![argument(field)?];
            return measure(config, sampling, field, function.clone(), Weight::Occurrences);
        }
        let Some(event) = event.filter(EventType::is_tracepoint) else {
            return Err(Failure::new(
                "--weight takes a field of a tracepoint or an argument of a function",
            )
            .why("other events carry no value that could be added up"));
        };
        return measure(config, sampling, field, event, Weight::Field(field.clone(), "count"));
    }
    if let Some(pair) = &sampling.pair {
        let [enter, exit] = pair.0.as_slice() else {
            return Err(Failure::usage("--pair takes two events: ENTER,EXIT"));
        };
        let name = enter.name.clone();
        return measure(config, sampling, &name, enter.clone(), Weight::Until(exit.clone()));
    }
    let Some((name, by)) = mode_of(sampling)? else { return Ok(()) };
    let (event, what) = sampled(name, by)?;
    measure(config, sampling, name, event, what)
}

/// The mode's name, and how it is measured; `None` for modes that are made of something else.
fn mode_of(sampling: &SamplingArgs) -> Result<Option<(&'static str, Measure)>, Failure> {
    Ok(Some(match (sampling.mode, sampling.measure) {
        (Some(Mode::Io), by) => ("io", by.unwrap_or(Measure::Bytes)),
        (Some(Mode::BlockIo), by) => ("block-io", by.unwrap_or(Measure::Bytes)),
        (Some(Mode::Syscalls), by) => ("syscalls", by.unwrap_or(Measure::Count)),
        (Some(Mode::Brk), by) => ("brk", by.unwrap_or(Measure::Bytes)),
        (Some(Mode::Mmap), by) => ("mmap", by.unwrap_or(Measure::Bytes)),
        (Some(Mode::Locks), by) => ("locks", by.unwrap_or(Measure::Latency)),
        (_, None) => return Ok(None),
        (_, Some(_)) => {
            return Err(Failure::new(
                "--measure is for --mode io, block-io, syscalls, mmap, brk and locks",
            ));
        }
    }))
}

/// What is sampled in a mode, and what its samples weigh.
fn sampled(name: &str, by: Measure) -> Result<(EventType, Weight), Failure> {
    let transfers = (name == "io").then(|| one_of(TRANSFERS));
    Ok(match (name, by) {
        ("syscalls" | "locks", Measure::Bytes) => {
            return Err(Failure::new(format!("--mode {name} is not measured by bytes"))
                .or_try("--mode io, for calls that read and write"));
        }
        ("locks", Measure::Latency) => {
            let exit = tracepoint("syscalls:sys_exit_futex", None)?;
            (tracepoint("syscalls:sys_enter_futex", Some(futex_waits()))?, Weight::Until(exit))
        }
        ("locks", Measure::Count) => {
            (tracepoint("syscalls:sys_enter_futex", Some(futex_waits()))?, Weight::Occurrences)
        }
        ("io" | "syscalls", Measure::Latency) => {
            let exit = tracepoint(EXIT, transfers.clone())?;
            (tracepoint(ENTER, transfers)?, Weight::Until(exit))
        }
        ("brk", Measure::Bytes) => (tracepoint("syscalls:sys_exit_brk", None)?, Weight::Growth),
        ("brk", Measure::Count) => {
            (tracepoint("syscalls:sys_exit_brk", None)?, Weight::Occurrences)
        }
        ("block-io" | "mmap" | "brk", Measure::Latency) => {
            return Err(Failure::new(format!("--mode {name} is not measured by latency"))
                .or_try("--mode io --measure latency, or --mode off-cpu"));
        }
        ("io", Measure::Count) => (tracepoint(EXIT, transfers)?, Weight::Occurrences),
        ("io", Measure::Bytes) => (tracepoint(EXIT, transfers)?, field("ret")),
        ("block-io", Measure::Count) => {
            (tracepoint("block:block_rq_issue", None)?, Weight::Occurrences)
        }
        ("block-io", Measure::Bytes) => (tracepoint("block:block_rq_issue", None)?, field("bytes")),
        ("mmap", Measure::Count) => {
            (tracepoint("syscalls:sys_enter_mmap", None)?, Weight::Occurrences)
        }
        ("mmap", Measure::Bytes) => (tracepoint("syscalls:sys_enter_mmap", None)?, field("len")),
        _ => (tracepoint(ENTER, None)?, Weight::Occurrences),
    })
}

/// States of a thread that has no CPU, by their letters, and how a switch away says so: it may be
/// interrupted, it may not, it was preempted, it is stopped, it is an idle thread of the kernel.
const STATES: [(char, &str); 5] = [
    ('S', "prev_state == 1"),
    ('D', "prev_state == 2"),
    ('R', "prev_state == 0 || prev_state >= 256"),
    ('T', "prev_state == 4 || prev_state == 8"),
    ('I', "prev_state == 128"),
];

/// The kernel's filter for switches away from threads in these states.
pub(super) fn switches_of(letters: &str) -> Result<String, Failure> {
    let of = |letter| {
        let known = STATES.iter().find(|(known, _)| *known == letter);
        let unknown = || Failure::usage(format!("no thread waits in state '{letter}'"));
        known.map(|(_, filter)| *filter).ok_or_else(unknown)
    };
    let filters: Result<Vec<&str>, Failure> = letters.chars().map(of).collect();
    let filters = filters.and_then(|filters| match filters.is_empty() {
        true => Err(Failure::usage("--state names no state")),
        false => Ok(filters.join(" || ")),
    });
    filters.map_err(|failure| {
        failure.why("S may be interrupted, D may not (disks), R is preempted, T stopped, I idle")
    })
}

/// `arg1` to `arg6`.
fn argument(text: &str) -> Result<Argument, Failure> {
    let number = text.strip_prefix("arg").and_then(|number| number.parse::<usize>().ok());
    let number = number.filter(|number| (1..=6).contains(number));
    let number = number.ok_or_else(|| {
        Failure::usage(format!("a function has no argument '{text}': they are arg1 to arg6"))
    })?;
    Ok(Argument::One(number - 1))
}

fn field(name: &str) -> Weight {
    Weight::Field(name.to_owned(), "bytes")
}

/// The kernel's filter for some system calls.
fn one_of(calls: &[i64]) -> String {
    let calls: Vec<String> = calls.iter().map(|id| format!("id == {id}")).collect();
    calls.join(" || ")
}

/// The kernel's filter for calls of futex(2) that wait.
fn futex_waits() -> String {
    let with_flags = |wait| FUTEX_FLAGS.iter().map(move |flags| format!("op == {}", wait + flags));
    let all: Vec<String> = FUTEX_WAITS.into_iter().flat_map(with_flags).collect();
    all.join(" || ")
}

pub(super) fn tracepoint(name: &str, filter: Option<String>) -> Result<EventType, Failure> {
    let event: Result<EventType, _> = name.parse();
    let mut event = event.map_err(|error| Failure::new(error.to_string()))?;
    event.filter = filter;
    Ok(event)
}

/// Samples an event, and calls what it measures by a name.
fn measure(
    config: &mut RecorderConfig,
    sampling: &SamplingArgs,
    name: &str,
    event: EventType,
    what: Weight,
) -> Result<(), Failure> {
    let grows = matches!(what, Weight::Growth);
    let (event, unit) = match what {
        Weight::Occurrences => (event, "count"),
        Weight::Growth => {
            config.options.growth = true;
            let event = event.with_field("ret");
            (event.map_err(|error| Failure::usage(error.to_string()))?, "bytes")
        }
        Weight::Field(field, unit) => {
            let event = event.with_field(&field);
            (event.map_err(|error| Failure::usage(error.to_string()))?, unit)
        }
        Weight::Until(event_of_end) => {
            let rate = Rate::Period(1);
            config.others = vec![EventSpec {
                call_graph: Some(CallGraph::None),
                ..EventSpec::new(event_of_end, rate)
            }];
            config.options.spans = true;
            (event, "nanoseconds")
        }
    };
    config.options.value = Some(ValueType::new(name, unit));
    let default = Rate::Frequency(DEFAULT_COUNTING_FREQUENCY);
    let asked = sampling.period.is_some() || sampling.frequency.is_some();
    let rate = match (grows, asked) {
        (true, true) => {
            return Err(Failure::usage("--mode brk takes neither -F nor -c")
                .why("growth is measured from one call to the next: none may be left out")
                .or_try("--measure count"));
        }
        (true, false) => Rate::Period(1),
        (false, true) => rate(Some(&event), sampling),
        (false, false) => default,
    };
    config.sampler = SamplerConfig { event: Some(event), rate, ..config.sampler.clone() };
    Ok(())
}
