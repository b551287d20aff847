//! What a reader and the session share.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use flame_profile::Nanos;
use nix::sched::{CpuSet, sched_setaffinity};

use crate::apart::fetch;
use crate::reader::lock;
use crate::session::monotonic_now;

/// What a reader and the session share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whether stacks are read.
    pub(crate) reads: AtomicBool,
    /// Whether the target may go before the reader, which then reads less of some samples than of others.
    pub(crate) yields: AtomicBool,
    /// The time of the last sample that the reader is done with.
    pub(crate) done_until: AtomicU64,
    /// The interval that is set, in nanoseconds; 0 where none is drawn.
    interval: AtomicU64,
    /// The reader's thread; 0 before it runs.
    pub(crate) thread: AtomicI32,
}

impl Shared {
    /// Of a reader that looks at what comes from now on.
    pub(crate) fn starting() -> Shared {
        Shared { done_until: AtomicU64::new(monotonic_now().0), ..Shared::default() }
    }

    /// Whether the reader reads stacks; not yet before it runs.
    pub(crate) fn reads_stacks(&self) -> bool {
        self.reads.load(Ordering::Relaxed)
    }

    /// Lets the reader run on any CPU. On its own it may never run again: a real-time thread of a higher
    /// priority goes before it for as long as it likes, and a process does not end before its threads
    /// have.
    pub(crate) fn unpin(&self) {
        let mut anywhere = CpuSet::new();
        for cpu in 0..CpuSet::count() {
            let _ = anywhere.set(cpu);
        }
        let thread = self.thread.load(Ordering::Relaxed);
        if thread != 0
            && let Err(error) = sched_setaffinity(nix::unistd::Pid::from_raw(thread), &anywhere)
        {
            tracing::debug!(%error, thread, "reader stays on its CPU");
        }
    }

    /// Whether its thread waits in the kernel, and not for a CPU; or has ended, since it ran for too long.
    pub(crate) fn waits(&self) -> bool {
        let thread = self.thread.load(Ordering::Relaxed);
        let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
        // The name may hold brackets; the state stands behind it.
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['D', 'S', 'Z', 'X']))
    }

    /// Fetches what is left of the reader's process.
    pub(crate) fn fetch(&self) {
        let process = self.thread.load(Ordering::Relaxed);
        if process != 0 {
            fetch(nix::unistd::Pid::from_raw(process));
        }
    }

    /// The time of the last sample that the reader is done with.
    pub(crate) fn done_until(&self) -> Nanos {
        Nanos(self.done_until.load(Ordering::Acquire))
    }

    /// An interval was drawn, or the mean set.
    pub(crate) fn set_interval(&self, interval: Nanos) {
        self.interval.store(interval.0, Ordering::Relaxed);
    }

    /// The interval that is set; 0 where none is drawn.
    pub(crate) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }
}

/// Rings when a ring is to be emptied.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    ringing: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        *lock(&self.rung) = true;
        self.ringing.notify_one();
    }

    /// Waits until it rings, or `timeout` is over.
    pub(crate) fn wait(&self, timeout: Duration) {
        let rung = lock(&self.rung);
        let waited = self.ringing.wait_timeout_while(rung, timeout, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}
