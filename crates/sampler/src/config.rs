//! What to sample and how.

use std::sync::Arc;

use flame_interpreters::Known;
use flame_profile::{ByteLen, Cpu, Hz, Pid, Tid};

use crate::cgroup::Cgroup;
use crate::event_type::EventType;
use crate::stack_roots::StackRoots;

/// 99 Hz: enough to see a percent in half a minute, cheap enough for production, and out of step
/// with the round numbers that programs wake up at.
pub const DEFAULT_FREQUENCY: Hz = Hz(99);

/// 999 Hz for events that the kernel counts one by one: up to a thousand occurrences a second are
/// all sampled anyway, and no timer is needed for them.
pub const DEFAULT_COUNTING_FREQUENCY: Hz = Hz(999);

/// Bytes of user stack copied with each sample. Most stacks are shorter, and a reader on the CPU reads
/// what others have beyond; measured in docs/perf-events.md.
pub const DEFAULT_STACK_COPY: ByteLen = ByteLen(16 * 1024);

/// The same for events that come in bursts, where nobody reads on: a ring is to hold many.
pub(crate) const BURST_STACK_COPY: ByteLen = ByteLen(32 * 1024);

/// The most that can be asked for: a record's length has 16 bits. The kernel leaves off what the other
/// fields of the record need, some hundred bytes.
pub const MAX_STACK_COPY: ByteLen = ByteLen(65_528);

/// A ring holds at least this much of a second, so that a drain which comes late because the machine
/// is busy loses nothing.
const RING_FRACTION: u64 = 4;

/// The smallest ring a CPU that is chosen by default.
const MIN_RING: u64 = 512 * 1024;

/// The largest ring a CPU that is chosen by default.
const MAX_RING: u64 = 16 * 1024 * 1024;

/// The same for events that are counted one by one: 50,000 a second fill it in 80 ms.
const BURST_RING: u64 = 64 * 1024 * 1024;

/// What the rings of all CPUs take together at most by default.
const MAX_RINGS: u64 = 512 * 1024 * 1024;

/// What a record takes besides its stack copy: header, registers, a kernel call chain.
const RECORD_LEN: u64 = 1024;

/// Which tasks are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All threads of those processes and, with [`SamplerConfig::descendants`], of those below them.
    Processes(Vec<Pid>),
    /// Those threads only.
    Threads(Vec<Tid>),
    /// Every task on the CPUs in question.
    System,
    /// A program that waits to be let go (see [`crate::Launched`]): sampled from its exec on.
    Launched(Pid),
    /// All tasks of a control group and of those below it.
    Cgroup(Cgroup),
}

/// How often samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// This many samples a second.
    Frequency(Hz),
    /// One sample each this many events (nanoseconds for clocks).
    Period(u64),
}

impl Rate {
    /// How often an event is sampled where nothing else is asked for.
    pub fn usual(event: Option<&EventType>) -> Rate {
        // Where each is a fact of its own, many are wanted.
        Rate::Frequency(match event.is_some_and(EventType::is_occurrence) {
            true => DEFAULT_COUNTING_FREQUENCY,
            false => DEFAULT_FREQUENCY,
        })
    }
}

/// Which side of the system call boundary is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Both.
    All,
    /// Kernel code only.
    Kernel,
    /// User code only: samples that hit the kernel are not taken.
    User,
}

/// How user stacks are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// Registers and this many bytes of stack are copied, and unwound by call frame information.
    Dwarf(ByteLen),
    /// The kernel follows the frame pointers.
    FramePointers,
    /// No stacks, but the user registers.
    Registers,
    /// No stacks: only where the CPU was.
    None,
}

/// Everything that [`crate::Session::open`] needs to know.
#[derive(Clone, Debug)]
pub struct SamplerConfig {
    /// Which tasks.
    pub target: Target,
    /// Which event; `None` = cycles where the machine has a PMU, else cpu-clock.
    pub event: Option<EventType>,
    /// How often.
    pub rate: Rate,
    /// User code, kernel code or both.
    pub privilege: Privilege,
    /// How user stacks are walked.
    pub call_graph: CallGraph,
    /// Whether more of the stacks may be copied than `call_graph` says: where no reader can read on
    /// what the copies lack, copies are larger.
    pub copy_may_be_larger: bool,
    /// The user registers to record with a stack copy, as a mask in perf's numbering for this
    /// architecture: those that the unwinder uses.
    pub user_registers: u64,
    /// Whether threads and processes started later are sampled too.
    pub inherit: bool,
    /// Whether processes that those of the target have started already are sampled too.
    pub descendants: bool,
    /// The CPUs to sample on; `None` = all that are online.
    pub cpus: Option<Vec<Cpu>>,
    /// Whether events are bound to the target's tasks even where they could be bound to CPUs: that
    /// costs other tasks nothing, but does not see what lives shorter than an interval.
    pub per_task: bool,
    /// Whether the interval between samples is always the same, rather than drawn around its mean.
    pub fixed_period: bool,
    /// Whether it is recorded, too, when threads are taken off their CPU and when they get one.
    pub switches: bool,
    /// See [`EventSpec::wakes`].
    pub wakes: bool,
    /// Where stacks of threads were seen to end, for those that read them.
    pub stack_roots: Arc<StackRoots>,
    /// Where there are interpreters, whose frames are read with the stacks; `None` = nobody asks.
    pub interpreters: Option<Arc<Known>>,
    /// What random intervals are drawn from; `None` = from the system's randomness.
    pub seed: Option<u64>,
    /// Bytes of ring a CPU, rounded up to a power of two; `None` = what the rate and the stack copy
    /// need, see [`SamplerConfig::ring_len`].
    pub ring: Option<ByteLen>,
}

/// An event that is sampled besides that of a [`SamplerConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Which event.
    pub event: EventType,
    /// How often.
    pub rate: Rate,
    /// See [`SamplerConfig::switches`].
    pub switches: bool,
    /// How its samples' stacks are walked; `None` = as those of the config.
    pub call_graph: Option<CallGraph>,
    /// Whether it is the event that wakes the target's threads: its field is the number of the thread
    /// then, and it is sampled in all tasks, since any of them may be the waker.
    pub wakes: bool,
}

impl EventSpec {
    /// Samples with the config's stacks.
    pub fn new(event: EventType, rate: Rate) -> EventSpec {
        EventSpec { event, rate, switches: false, call_graph: None, wakes: false }
    }
}

impl SamplerConfig {
    /// The same, of another event.
    pub(crate) fn of_event(&self, spec: &EventSpec) -> SamplerConfig {
        let EventSpec { event, rate, switches, call_graph, wakes } = spec.clone();
        let call_graph = call_graph.unwrap_or(self.call_graph);
        let target = if wakes { Target::System } else { self.target.clone() };
        SamplerConfig {
            target,
            event: Some(event),
            rate,
            switches,
            wakes,
            call_graph,
            ..self.clone()
        }
    }

    /// The defaults for a target, with the registers that the unwinder uses.
    pub fn new(target: Target, user_registers: u64) -> SamplerConfig {
        SamplerConfig {
            target,
            event: None,
            rate: Rate::Frequency(DEFAULT_FREQUENCY),
            privilege: Privilege::All,
            call_graph: CallGraph::Dwarf(DEFAULT_STACK_COPY),
            copy_may_be_larger: true,
            user_registers,
            inherit: true,
            descendants: true,
            cpus: None,
            per_task: false,
            fixed_period: false,
            switches: false,
            wakes: false,
            stack_roots: Arc::default(),
            interpreters: None,
            seed: None,
            ring: None,
        }
    }

    /// Whether each thread has its own period: one that is switched all the time must not keep others
    /// from being sampled that wait for long.
    pub(crate) fn samples_by_thread(&self) -> bool {
        let is_clock = self.event.as_ref().is_none_or(EventType::is_clock);
        let is_of_switches = self.switches && !is_clock;
        is_of_switches && !matches!(self.target, Target::System | Target::Cgroup(_))
    }

    /// Bytes of ring for each of this many CPUs, a power of two: by default a quarter of a second of
    /// samples, from 512 KiB to 16 MiB, 64 MiB of what is counted one by one, and 512 MiB in all.
    pub fn ring_len(&self, cpus: usize) -> ByteLen {
        let copy = match self.call_graph {
            CallGraph::Dwarf(_) if self.copy_may_be_larger => MAX_STACK_COPY.0,
            CallGraph::Dwarf(bytes) => bytes.0,
            CallGraph::FramePointers | CallGraph::Registers | CallGraph::None => 0,
        };
        let occurs = self.event.as_ref().is_some_and(EventType::is_occurrence);
        let a_second = match self.rate {
            Rate::Frequency(hz) if !occurs => hz.0.saturating_mul(copy + RECORD_LEN),
            // Nobody knows how often that comes, and events come in bursts: before their interval
            // has followed, each may be sampled.
            _ => BURST_RING * RING_FRACTION,
        };
        let largest = if occurs { BURST_RING } else { MAX_RING };
        let most = (MAX_RINGS / cpus.max(1) as u64).clamp(MIN_RING, largest);
        let chosen = (a_second / RING_FRACTION).clamp(MIN_RING, most);
        let ring = self.ring.map_or(chosen, |ring| ring.0);
        ByteLen(ring.min(1 << 40).next_power_of_two().min(most.max(ring)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rate: Rate, call_graph: CallGraph, cpus: usize, kib: u64) {
        let config = SamplerConfig { rate, call_graph, ..SamplerConfig::new(Target::System, 0) };
        assert_eq!(config.ring_len(cpus), ByteLen(kib * 1024));
    }

    #[test]
    fn rings_grow_with_rate_and_copy_and_are_bounded_in_all() {
        let dwarf = CallGraph::Dwarf(DEFAULT_STACK_COPY);
        check(Rate::Frequency(Hz(99)), dwarf, 2, 2048);
        check(Rate::Frequency(Hz(999)), dwarf, 2, 16384);
        check(Rate::Frequency(Hz(99_999)), dwarf, 2, 16384);
        check(Rate::Frequency(Hz(999)), dwarf, 256, 2048);
        check(Rate::Period(1), dwarf, 2, 16384);
        check(Rate::Frequency(Hz(999)), CallGraph::FramePointers, 2, 512);
    }
}
