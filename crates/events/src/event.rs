//! The events that a recording consists of, decoded from the kernel's records.

use std::borrow::Cow;
use std::time::Duration;

use flame_profile::{Cpu, FileOffset, Nanos, NotRead, Pid, ProcessAddress, Tid};

use crate::addresses::Addresses;
use crate::decode::DecodeError;
use crate::images::FileId;
use crate::kernel_symbol::KernelSymbolEvent;

/// One decoded record with its time.
#[derive(Debug)]
pub struct Event<'a> {
    /// When it happened, on the clock that the events were opened with (CLOCK_MONOTONIC live).
    /// Zero when the record carried no time.
    pub time: Nanos,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What a record says.
#[derive(Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// A sample was taken.
    Sample(SampleEvent<'a>),
    /// A file or anonymous memory was mapped as executable.
    Mapping(MappingEvent<'a>),
    /// A thread got a name.
    Comm {
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// The new name, at most 15 bytes of any kind.
        name: Vec<u8>,
        /// The name comes from execve: the process has a new, empty address space.
        exec: bool,
    },
    /// A thread or process began.
    Fork {
        /// The process of the new task; the same as `parent` for a new thread.
        pid: Pid,
        /// The new task.
        tid: Tid,
        /// The process that it came from.
        parent: Pid,
        /// The thread that it came from.
        parent_tid: Tid,
    },
    /// A thread or process ended.
    Exit {
        /// Its process.
        pid: Pid,
        /// The task that ended.
        tid: Tid,
    },
    /// A thread was taken off its CPU, or got one.
    Switch {
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Which of the two.
        to: SwitchTo,
    },
    /// The kernel made or removed code of its own, such as a BPF program.
    KernelSymbol(KernelSymbolEvent),
    /// Records did not fit into the ring.
    Lost {
        /// Into the ring of which of the source's events, by its position.
        event: usize,
        /// How many.
        count: u64,
    },
    /// How many records did not fit into the rings of a CPU or task in the whole recording, as perf
    /// counts them at its end: [`EventKind::Lost`] told of most of them already.
    LostInAll {
        /// How many.
        count: u64,
    },
    /// The kernel stopped an event for a while because its samples came too fast.
    Throttle,
    /// The event goes on.
    Unthrottle,
    /// A record of a kind that flame has no use for.
    Other,
    /// A record that could not be decoded.
    Undecodable(DecodeError),
}

impl EventKind<'_> {
    /// What a record of lost samples says. perf 6.1 and later writes one a counter at its end, without
    /// a time.
    pub(crate) fn of_lost_samples(time: Nanos, count: u64) -> Self {
        match time {
            Nanos(0) => EventKind::LostInAll { count },
            _ => EventKind::Lost { event: 0, count },
        }
    }
}

/// What became of a thread at a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchTo {
    /// It runs.
    Running,
    /// It waits for something.
    Waiting,
    /// It could have gone on, but another thread got its CPU.
    Preempted,
}

/// What a tracepoint was hit in, if not in what the thread itself does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The handler of an interrupt: the thread just had the CPU.
    Hard,
    /// What handlers leave for later: behind an interrupt, or in a call of the thread's own.
    Soft,
}

/// A sample as the kernel recorded it; borrows from the record.
#[derive(Debug)]
pub struct SampleEvent<'a> {
    /// Which of the source's events was sampled, by its position; 0 where there is one.
    pub event: usize,
    /// The process that ran.
    pub pid: Pid,
    /// The thread that ran.
    pub tid: Tid,
    /// The CPU that it ran on.
    pub cpu: Option<Cpu>,
    /// What the sample stands for, in the event's unit, as the kernel reports it.
    pub period: u64,
    /// The field of the tracepoint that the layout reads.
    pub tracepoint: Option<i64>,
    /// What the tracepoint says of interrupts, where the layout reads a field of it.
    pub interrupt: Option<Interrupt>,
    /// Where the CPU was, in the kernel or in user code.
    pub ip: ProcessAddress,
    /// Kernel return addresses, innermost first; empty when the sample hit user code.
    pub kernel_chain: Addresses<'a>,
    /// User return addresses from the frame-pointer chain, innermost first; empty when not asked
    /// for.
    pub user_chain: Addresses<'a>,
    /// User registers, in ascending order of the bits of the mask that was asked for; `None` for
    /// tasks without user registers (kernel threads).
    pub user_registers: Option<Vec<u64>>,
    /// The top of the user stack; `None` when it was not asked for.
    pub user_stack: Option<StackBytes<'a>>,
}

/// Copied stack bytes, in two pieces where the record wrapped around the end of its ring.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackBytes<'a> {
    /// The bytes from the stack pointer upwards.
    pub head: &'a [u8],
    /// Those that follow `head`.
    pub tail: &'a [u8],
    /// Whether all bytes that were asked for were copied, so that the stack may go on.
    pub reached_limit: bool,
    /// What follows `tail`.
    pub rest: Rest<'a>,
}

/// The bytes of a stack beyond those that the kernel copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Read from the process while the thread could not go on: as good as the copy.
    Read {
        /// The bytes that follow. They end where the stack's memory does, or where reading on was
        /// not worth it.
        bytes: &'a [u8],
        /// The stack that a signal has interrupted, where its handler runs on another.
        interrupted: Option<InterruptedStack<'a>>,
        /// What was caught of an interpreter in the process, in that one's own form; empty where there is
        /// none.
        script: &'a [u8],
    },
    /// Not there.
    NotRead(NotRead),
}

/// The bytes of a stack from the stack pointer upwards that a thread had when a signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedStack<'a> {
    /// The stack pointer.
    pub start: ProcessAddress,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Default for Rest<'_> {
    fn default() -> Self {
        Rest::NotRead(NotRead::NoReader)
    }
}

/// Executable memory that appeared.
#[derive(Debug)]
pub struct MappingEvent<'a> {
    /// The process.
    pub pid: Pid,
    /// First address.
    pub start: ProcessAddress,
    /// End, exclusive.
    pub end: ProcessAddress,
    /// Where in the file the mapping starts.
    pub offset: FileOffset,
    /// Which file it was.
    pub file: FileId,
    /// Its path as the kernel prints it; `//anon`, `[vdso]` and others without file included.
    pub path: Cow<'a, [u8]>,
}

/// Where events come from: a live session, a recorded file, a script in a test.
pub trait EventSource {
    /// What may go wrong while reading.
    type Error;

    /// Hands the events that are ready to `sink`, in time order, each once.
    ///
    /// # Errors
    /// The source cannot go on. Damage to single records is not an error but counted by `sink`'s
    /// owner.
    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), Self::Error>;

    /// Waits until there may be something to drain, so long at most. Only a live source has
    /// something to wait for.
    fn wait(&mut self, _timeout: Duration) {}

    /// The time now, on the clock of the events. Only a live source has one.
    fn now(&self) -> Option<Nanos> {
        None
    }

    /// Makes no more events; those that there are can still be drained.
    fn stop(&mut self) {}
}
