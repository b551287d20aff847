//! What to sample and how.

use flame_profile::{ByteLen, Cpu, Hz, Pid, Tid};

use crate::event_type::EventType;

/// 99 Hz: enough to see a percent in half a minute, cheap enough for production, and out of step
/// with the round numbers that programs wake up at.
pub const DEFAULT_FREQUENCY: Hz = Hz(99);

/// Bytes of user stack copied with each sample when nothing else is asked for. Measured on cc1, see
/// docs/perf-events.md: smaller copies cut deep stacks, larger ones cost ring space only.
pub const DEFAULT_STACK_COPY: ByteLen = ByteLen(32 * 1024);

/// The most that the kernel copies: a record's length has 16 bits, and its other fields need room.
pub const MAX_STACK_COPY: ByteLen = ByteLen(65_528 - 1_024);

/// Bytes of ring a CPU, a power of two: at 999 Hz and the default stack copy an eighth of a second,
/// so that a drain which comes late because the machine is busy loses nothing.
pub const DEFAULT_RING: ByteLen = ByteLen(4 * 1024 * 1024);

/// Which tasks are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All threads of those processes.
    Processes(Vec<Pid>),
    /// Those threads only.
    Threads(Vec<Tid>),
    /// Every task on the CPUs in question.
    System,
    /// A program that waits to be let go (see [`crate::Launched`]): sampled from its exec on.
    Launched(Pid),
}

/// How often samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many samples a second.
    Frequency(Hz),
    /// One sample each so many events (nanoseconds for clocks).
    Period(u64),
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
    /// Registers and so many bytes of stack are copied, and unwound by call frame information.
    Dwarf(ByteLen),
    /// The kernel follows the frame pointers.
    FramePointers,
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
    /// Whether threads and processes started later are sampled too.
    pub inherit: bool,
    /// The CPUs to sample on; `None` = all that are online.
    pub cpus: Option<Vec<Cpu>>,
    /// Bytes of ring a CPU; rounded up to a power of two.
    pub ring: ByteLen,
}

impl SamplerConfig {
    /// The defaults for a target.
    pub fn new(target: Target) -> SamplerConfig {
        SamplerConfig {
            target,
            event: None,
            rate: Rate::Frequency(DEFAULT_FREQUENCY),
            privilege: Privilege::All,
            call_graph: CallGraph::Dwarf(DEFAULT_STACK_COPY),
            inherit: true,
            cpus: None,
            ring: DEFAULT_RING,
        }
    }
}
