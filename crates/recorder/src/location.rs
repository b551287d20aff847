//! Where a frame's code was, before it has a name.

use flame_profile::{FileOffset, ImageId, ProcessAddress};

/// One piece of code at one address of one process: a position among all that were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct JitId(pub(super) u32);

/// A function of an interpreted program, at a line: a position among all that were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScriptId(pub(super) u32);

/// A thread, by its position among all that were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadPosition(pub(super) usize);

/// One entry of a recorded stack. What is looked up is inside the call for a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CodeLocation {
    /// In a file, or the vdso.
    Image(ImageId, FileOffset),
    /// In the kernel.
    Kernel(ProcessAddress),
    /// In the kernel, where a thread waits, among threads that run.
    Waiting(ProcessAddress),
    /// In executable memory without a file: JIT code.
    Jit(JitId),
    /// In code of a Java VM: the number of what it is called.
    Java(u32),
    /// In an interpreted program: a function of it, at a line.
    Script(ScriptId),
    /// In an interpreted program, and which function was not found out.
    ScriptUnknown,
    /// In the interpreter of that language; what ran in it could not be read at the moment of the sample.
    ScriptNotRead(&'static str),
    /// In an interpreted program: the frames that stand here, callers of those further in, could not be read.
    ScriptCallersNotRead,
    /// In no executable memory that is known.
    Unmapped(ProcessAddress),
    /// Not code: a chain of frame pointers led there.
    NoCaller,
    /// Not code: frames above are missing.
    Truncated,
    /// Not code: frames above were left out, because there are more than were asked for.
    BeyondMaxDepth,
    /// Not code: frames further in were left out, because all stacks together have too many.
    NotKept,
    /// Not code: the thread could have gone on, but another one got its CPU.
    Preempted,
    /// Not code: time of a thread that no sample stands for.
    NotSampled,
    /// Not code: the same, of calls.
    CallsNotSampled,
    /// Not code: a thread had a CPU, and was never sampled there.
    RanUnsampled,
    /// Not code: the thread waited already when the recording began.
    WaitedBefore,
    /// Not code: what stands above is who ended the wait.
    Waker,
    /// Not code: a thread that woke another one.
    WokenBy(ThreadPosition),
    /// Not code: an interrupt woke the thread, whatever ran when it came.
    WokenByInterrupt,
    /// Not code: who woke the thread was not sampled.
    WakerNotSampled,
    /// Not code: the thread was not woken before the recording ended.
    NotWoken,
}
