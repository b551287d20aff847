//! What a session watches, and what it had to do without.

use flame_profile::{ByteLen, Pid};

/// Something that was asked for and could not be had; the session goes on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concession {
    /// No PMU: cpu-clock instead of cycles.
    NoPmu,
    /// No permission for kernel code: user code only.
    UserOnly,
    /// Processes below those that were named may not be sampled.
    DescendantsDenied {
        /// How many.
        count: usize,
    },
    /// No permission to lock that much memory.
    SmallerRing {
        /// Bytes of ring a CPU that it became.
        ring: ByteLen,
        /// Bytes of ring a CPU that it should have been.
        wanted: ByteLen,
    },
}

/// What the events of a session are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// CPUs: whatever runs there is seen, and the target's tasks are kept.
    Cpus,
    /// The target's tasks and, by inheritance, what they start: a task that lives for less than an
    /// interval is not seen.
    Tasks(PerTask),
}

/// Why events are bound to tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerTask {
    /// No permission to bind them to CPUs.
    NoPermission,
    /// It was asked for.
    AskedFor,
    /// Occurrences of an event are counted, and it is the target's that are meant; or samples come so
    /// often that no task is too short for them.
    NothingMissed,
}

/// What was found of a target that existed already.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The processes, those below the named ones included.
    pub processes: Vec<Pid>,
    /// How many of the processes were not named.
    pub descendants: usize,
    /// How many threads they had.
    pub threads: usize,
}
