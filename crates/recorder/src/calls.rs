//! What programs ask of the system and of disks, as events: the bytes, the number, or the time of calls.

use flame_profile::ValueType;
use flame_sampler::{
    CallGraph, DEFAULT_COUNTING_FREQUENCY, EventSpec, EventType, ParseEventError, Rate,
    TracepointError,
};
use nix::libc;

use crate::config::RecorderConfig;

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
    libc::SYS_vmsplice,
    libc::SYS_tee,
];

/// What waits in futex(2), with its flags for private futexes and the real-time clock: FUTEX_WAIT,
/// FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2.
const FUTEX_WAITS: [u32; 5] = [0, 6, 9, 11, 13];
const FUTEX_FLAGS: [u32; 4] = [0, 128, 256, 128 + 256];

const ENTER: &str = "raw_syscalls:sys_enter";
const EXIT: &str = "raw_syscalls:sys_exit";
const BRK: &str = "syscalls:sys_exit_brk";
const MMAP: &str = "syscalls:sys_enter_mmap";
const BLOCK: &str = "block:block_rq_issue";

/// Calls of so many bytes, up to and without the second number, are sampled apart from others. A flood of small ones has few
/// of its calls sampled, each of which stands for many; a large one among them would count for as many large ones, or not
/// at all.
pub(crate) const SIZES: [(u64, Option<u64>); 3] =
    [(0, Some(4 << 10)), (4 << 10, Some(64 << 10)), (64 << 10, None)];

/// What calls are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Reading and writing.
    Io,
    /// What is asked of disks.
    BlockIo,
    /// Anything.
    Syscalls,
    /// Address space.
    Mmap,
    /// A larger heap.
    Brk,
    /// Locks that are taken.
    Locks,
}

/// What of a call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How many bytes are transferred.
    Bytes,
    /// How many calls there are.
    Count,
    /// How long calls take.
    Latency,
}

/// What a sample of an event weighs.
#[derive(Clone, Debug)]
pub enum Weighing {
    /// The occurrences that it stands for.
    Occurrences,
    /// What a field of the tracepoint adds up to.
    Field(String),
    /// The same of bytes. Large ones are sampled apart from small ones.
    Sizes(&'static str),
    /// How far the address that a call returns lies beyond the one of the call before.
    Growth,
    /// The time since another event of the thread, the first of these; further ones begin what ends in the same way and
    /// does not count.
    Since(Vec<EventType>),
}

/// Why something cannot be measured.
#[derive(Debug)]
pub enum CallsError {
    /// Such calls have no such measure.
    NotMeasured,
    /// This kernel does not have the event.
    Event(ParseEventError),
    /// The event does not have the field.
    Field(TracepointError),
    /// Growth is measured from one call to the next: none may be left out.
    EachCounts,
}

impl Calls {
    /// The name of what is measured.
    pub fn name(self) -> &'static str {
        match self {
            Calls::Io => "io",
            Calls::BlockIo => "block-io",
            Calls::Syscalls => "syscalls",
            Calls::Mmap => "mmap",
            Calls::Brk => "brk",
            Calls::Locks => "locks",
        }
    }

    /// What counts where nothing is asked for.
    pub fn usual_measure(self) -> Measure {
        match self {
            Calls::Io | Calls::BlockIo | Calls::Mmap | Calls::Brk => Measure::Bytes,
            Calls::Syscalls => Measure::Count,
            Calls::Locks => Measure::Latency,
        }
    }

    /// What is sampled, and what its samples weigh.
    ///
    /// # Errors
    /// They are not measured so, or not on this kernel.
    pub fn sampled(self, by: Measure) -> Result<(EventType, Weighing), CallsError> {
        let transfers = (self == Calls::Io).then(|| one_of(TRANSFERS));
        let futex = || tracepoint("syscalls:sys_enter_futex", Some(futex_waits()));
        Ok(match (self, by) {
            (Calls::Syscalls | Calls::Locks, Measure::Bytes)
            | (Calls::BlockIo | Calls::Mmap | Calls::Brk, Measure::Latency) => {
                return Err(CallsError::NotMeasured);
            }
            (Calls::Locks, Measure::Latency) => {
                let exit = tracepoint("syscalls:sys_exit_futex", None)?;
                let wakes = tracepoint("syscalls:sys_enter_futex", Some(futex_others()))?;
                (exit, Weighing::Since(vec![futex()?, wakes]))
            }
            (Calls::Locks, Measure::Count) => (futex()?, Weighing::Occurrences),
            (Calls::Io | Calls::Syscalls, Measure::Latency) => {
                let exit = tracepoint(EXIT, transfers.clone())?;
                (exit, Weighing::Since(vec![tracepoint(ENTER, transfers)?]))
            }
            (Calls::Brk, Measure::Bytes) => (tracepoint(BRK, None)?, Weighing::Growth),
            (Calls::Brk, Measure::Count) => (tracepoint(BRK, None)?, Weighing::Occurrences),
            (Calls::Io, Measure::Count) => (tracepoint(EXIT, transfers)?, Weighing::Occurrences),
            (Calls::Io, Measure::Bytes) => (tracepoint(EXIT, transfers)?, Weighing::Sizes("ret")),
            (Calls::BlockIo, Measure::Count) => (tracepoint(BLOCK, None)?, Weighing::Occurrences),
            (Calls::BlockIo, Measure::Bytes) => {
                (tracepoint(BLOCK, None)?, Weighing::Sizes("bytes"))
            }
            (Calls::Mmap, Measure::Count) => (tracepoint(MMAP, None)?, Weighing::Occurrences),
            (Calls::Mmap, Measure::Bytes) => (tracepoint(MMAP, None)?, Weighing::Sizes("len")),
            (Calls::Syscalls, Measure::Count) => (tracepoint(ENTER, None)?, Weighing::Occurrences),
        })
    }
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

/// Switches away from threads in the states of these letters; `None` where one is unknown, or none
/// is named.
pub fn switches_of(letters: &str) -> Option<String> {
    let of = |letter| STATES.iter().find(|(known, _)| *known == letter).map(|(_, filter)| *filter);
    let filters: Option<Vec<&str>> = letters.chars().map(of).collect();
    filters.filter(|filters| !filters.is_empty()).map(|filters| filters.join(" || "))
}

/// An event for each of the sizes that are sampled apart, of what passes the filter of one. What has no bytes, or an
/// error's number, is none of them.
fn by_size(event: &EventType, field: &str) -> Vec<EventType> {
    let of_size = |(least, end): (u64, Option<u64>)| {
        let least = least.max(1);
        let below = end.map(|end| format!(" && {field} < {end}")).unwrap_or_default();
        let size = format!("{field} >= {least}{below}");
        let filter =
            event.filter.as_ref().map_or(size.clone(), |other| format!("({other}) && {size}"));
        let mut event = event.clone();
        event.filter = Some(filter);
        // A single one missed is a large part of all bytes.
        event.is_rare = end.is_none();
        event
    };
    SIZES.into_iter().map(of_size).collect()
}

/// The kernel's filter for some system calls.
fn one_of(calls: &[i64]) -> String {
    let calls: Vec<String> = calls.iter().map(|id| format!("id == {id}")).collect();
    calls.join(" || ")
}

/// The kernel's filter for calls of futex(2) that wait.
fn futex_waits() -> String {
    of_futex("==", " || ")
}

/// The same for all others.
fn futex_others() -> String {
    of_futex("!=", " && ")
}

fn of_futex(compare: &str, join: &str) -> String {
    let number = |wait| FUTEX_FLAGS.iter().map(move |flags| wait + flags);
    let all = FUTEX_WAITS.into_iter().flat_map(number).map(|op| format!("op {compare} {op}"));
    all.collect::<Vec<String>>().join(join)
}

/// A tracepoint, of which the kernel records what passes a filter.
///
/// # Errors
/// This kernel does not have it.
pub fn tracepoint(name: &str, filter: Option<String>) -> Result<EventType, CallsError> {
    let mut event: EventType = name.parse().map_err(CallsError::Event)?;
    event.filter = filter;
    Ok(event)
}

impl RecorderConfig {
    /// Samples an event, and calls what it measures by a name. Without a `rate` it is sampled as often
    /// as what is counted is.
    ///
    /// # Errors
    /// The event does not have the field, or has no rate of its own.
    pub fn measure(
        &mut self,
        name: &str,
        event: EventType,
        weighing: Weighing,
        rate: Option<Rate>,
    ) -> Result<(), CallsError> {
        let grows = matches!(weighing, Weighing::Growth);
        let with_field = |event: EventType, name| event.with_field(name).map_err(CallsError::Field);
        let mut others = Vec::new();
        let (event, unit) = match weighing {
            Weighing::Occurrences => (event, "count"),
            Weighing::Sizes(field) => {
                let mut events = by_size(&with_field(event, field)?, field).into_iter();
                let first = events.next().ok_or(CallsError::NotMeasured)?;
                others.extend(events);
                self.options.adds_up = true;
                (first, "bytes")
            }
            Weighing::Growth => {
                self.options.growth = true;
                (with_field(event, "ret")?, "bytes")
            }
            Weighing::Field(field) => (with_field(event, &field)?, "count"),
            Weighing::Since(begins) => {
                let each = |event| EventSpec {
                    call_graph: Some(CallGraph::None),
                    ..EventSpec::new(event, Rate::Period(1))
                };
                let mut begins = begins.into_iter();
                let (begin, end) = (begins.next(), event.clone());
                let edges = begin.into_iter().chain([end]).chain(begins).map(each);
                // Calls that last are those in which a thread is switched away.
                let switches = EventSpec {
                    switches: true,
                    ..EventSpec::new(
                        EventType::context_switches(),
                        Rate::Frequency(DEFAULT_COUNTING_FREQUENCY),
                    )
                };
                self.others = [switches].into_iter().chain(edges).collect();
                self.options.spans = true;
                (event, "nanoseconds")
            }
        };
        self.options.value = Some(ValueType::new(name, unit));
        self.sampler.rate = match (grows, rate) {
            (true, Some(_)) => return Err(CallsError::EachCounts),
            (true, None) => Rate::Period(1),
            (false, rate) => rate.unwrap_or(Rate::Frequency(DEFAULT_COUNTING_FREQUENCY)),
        };
        self.sampler.event = Some(event);
        let rate = self.sampler.rate;
        self.others.extend(others.into_iter().map(|event| EventSpec::new(event, rate)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_is_of_one_event() {
        let mut event = EventType::cpu_clock();
        let filters = |event: &EventType| {
            let events = by_size(event, "ret");
            events.into_iter().filter_map(|event| event.filter).collect::<Vec<_>>()
        };
        let sizes = ["ret >= 1 && ret < 4096", "ret >= 4096 && ret < 65536", "ret >= 65536"];
        assert_eq!(filters(&event), sizes);
        event.filter = Some("id == 0 || id == 1".to_owned());
        assert_eq!(filters(&event), sizes.map(|size| format!("(id == 0 || id == 1) && {size}")));
    }
}
