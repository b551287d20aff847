//! Why sampling cannot start, and what could not be had on the way.

use std::io;

use flame_profile::{ByteLen, Cpu, Hz, Pid, Tid};

/// Events that could not be opened while the session was going on, which goes on without them.
#[derive(Debug)]
pub struct Refusal {
    /// What they were for.
    pub what: Refused,
    /// Why not.
    pub error: SamplerError,
}

/// What is asked for once sampling has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A CPU that came online: it is not sampled.
    Cpu(Cpu),
    /// Events that sample some of the occurrences, when they come too fast for all: from then on
    /// there are no samples.
    Occurrences,
    /// What a stack has beyond its copy, on a CPU whose reader waits for memory that does not come.
    Stacks(Cpu),
}

/// What went wrong, with all that the message to the user has to say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// No process has that id.
    #[error("no process {pid}")]
    NoSuchProcess {
        /// What was asked for.
        pid: Pid,
    },
    /// No thread has that id.
    #[error("no thread {tid}")]
    NoSuchThread {
        /// What was asked for.
        tid: Tid,
    },
    /// The kernel refuses to let this user sample that task.
    #[error("not allowed to sample thread {tid}")]
    TaskDenied {
        /// The task.
        tid: Tid,
        /// Its owner, where known.
        owner: Option<u32>,
    },
    /// The kernel refuses to let this user sample at all, or all tasks.
    #[error("not allowed to sample {what}")]
    Denied {
        /// What was asked for, in words: `all processes`, `kernel code`.
        what: &'static str,
        /// The highest kernel.perf_event_paranoid that allows it to everybody, if any does.
        level: Option<i32>,
    },
    /// Threads have other numbers in this namespace than in tracepoints.
    #[error("cannot tell which threads were woken: flame runs in a PID namespace of its own")]
    OtherNumbers,
    /// The CPU or kernel has no such event.
    #[error("event {event} cannot be sampled on this machine")]
    EventUnsupported {
        /// The event's name.
        event: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel does not take the filter.
    #[error("event {event} does not take the filter {filter}")]
    Filter {
        /// The event's name.
        event: String,
        /// What was typed.
        filter: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// More samples a second than the kernel allows.
    #[error("{asked} is more than the kernel allows")]
    FrequencyTooHigh {
        /// What was asked for.
        asked: Hz,
        /// The limit.
        limit: Hz,
    },
    /// Events need more descriptors than this process may open.
    #[error("out of file descriptors: {needed} are needed, {limit} allowed")]
    TooManyFiles {
        /// Descriptors for the threads and CPUs found so far.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Not even the smallest ring may be locked into memory.
    #[error("not allowed to lock {ring:?} of ring a CPU into memory")]
    LockedMemory {
        /// The smallest ring tried.
        ring: ByteLen,
        /// kernel.perf_event_mlock_kb as it is.
        mlock_kb: Option<u64>,
        /// The value of it that the default ring needs.
        needed_kb: u64,
    },
    /// A CPU that was asked for is not online.
    #[error("CPU {cpu} is not online")]
    NoSuchCpu {
        /// What was asked for.
        cpu: Cpu,
        /// Those that are.
        online: String,
    },
    /// The target is an empty list: nothing is meant.
    #[error("an empty list of {what}")]
    NothingNamed {
        /// What is missing, in words: `processes`.
        what: &'static str,
    },
    /// The program to launch does not exist.
    #[error("program {program} not found")]
    ProgramNotFound {
        /// What was typed.
        program: String,
    },
    /// The program to launch exists but cannot be run.
    #[error("cannot run {program}")]
    ProgramNotRunnable {
        /// What was typed.
        program: String,
        /// The kernel's answer to exec.
        source: io::Error,
    },
    /// Something else that the system refused.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted, in words.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}
