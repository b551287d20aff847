//! Whether anything else can have run on a reader's CPU since a sample.
//!
//! A reader that looks late at a sample was either kept waiting, while others ran, the target among
//! them; or nothing ran there at all, because a virtual machine stood still. The scheduler counts the
//! first and not the second.
//!
//! The target also goes on while a reader that was woken in time waits for something else: a lock that the session holds,
//! which is behind others on a busy machine, or memory. The kernel counts how often a thread gave up its CPU to wait, and
//! how often it was taken: a reader of the normal class has no more right to it than the target.
//!
//! Source: the second number of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst); `ru_nvcsw` and
//! `ru_nivcsw` in getrusage(2).

use std::fs::File;
use std::os::unix::fs::FileExt;

use flame_profile::Nanos;
use nix::sys::resource::{Usage, UsageWho, getrusage};

use crate::schedstat::{LONGEST, Schedstat};
use crate::session::monotonic_now;

/// How long a thread had waited is asked once in so many looks, since asking takes a tenth of a look. In between it
/// waits for some microseconds each time.
const LOOKS: u32 = 64;

/// Follows the calling thread.
#[derive(Debug)]
pub(crate) struct Turns {
    file: Option<File>,
    before: Option<Nanos>,
    looks: u32,
    /// When it began to wait for samples.
    asleep: Nanos,
    /// How often it had left its CPU when it was woken.
    waits: i64,
}

impl Turns {
    /// Of the calling thread, from now on.
    pub(crate) fn of_this_thread() -> Turns {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let mut turns = Turns { file, before: None, looks: 0, asleep: Nanos(0), waits: 0 };
        turns.before = turns.waited();
        turns
    }

    /// A look is over.
    pub(crate) fn end_look(&mut self) {
        self.looks += 1;
        if self.looks == LOOKS {
            (self.looks, self.before) = (0, self.waited());
        }
    }

    /// It is about to wait for samples.
    pub(crate) fn falls_asleep(&mut self) {
        self.asleep = monotonic_now();
    }

    /// It was woken.
    pub(crate) fn wakes_up(&mut self) {
        self.waits = waits();
    }

    /// Whether a sample of that time found it asleep, and it has not left its CPU since it was woken.
    pub(crate) fn is_undisturbed_since(&self, time: Nanos) -> bool {
        time >= self.asleep && waits() == self.waits
    }

    /// How long it has waited in the last looks; `None` where the kernel does not say.
    pub(crate) fn waited_since(&self) -> Option<Nanos> {
        Some(self.waited()?.saturating_since(self.before?))
    }

    /// The same since this was asked last: of a reader that asks at each look, for how long others ran on its CPU before it.
    pub(crate) fn waited_now(&mut self) -> Option<Nanos> {
        let waited = self.waited_since()?;
        self.before = Some(Nanos(self.before?.0 + waited.0));
        Some(waited)
    }

    fn waited(&self) -> Option<Nanos> {
        let mut text = [0; LONGEST];
        let len = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        Schedstat::parse(text.get(..len)?).map(|stat| stat.waited)
    }
}

/// How often the calling thread has left its CPU.
fn waits() -> i64 {
    let all =
        |usage: Usage| usage.voluntary_context_switches() + usage.involuntary_context_switches();
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_between_the_sample_and_the_end_of_the_reading_is_disturbed() {
        let mut turns = Turns::of_this_thread();
        let before = monotonic_now();
        turns.falls_asleep();
        let sampled = monotonic_now();
        std::thread::sleep(std::time::Duration::from_millis(1));
        turns.wakes_up();
        assert!(turns.is_undisturbed_since(sampled));
        // It was at something else then.
        assert!(!turns.is_undisturbed_since(Nanos(before.0 - 1)));
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(!turns.is_undisturbed_since(sampled));
    }

    /// Where the kernel counts it, as most do.
    #[test]
    fn waiting_is_counted_on_and_on() {
        let mut turns = Turns::of_this_thread();
        let Some(first) = turns.waited() else { return };
        std::thread::yield_now();
        let waited = turns.waited_since().unwrap();
        assert!(turns.waited().unwrap() >= Nanos(first.0 + waited.0));
        (0..LOOKS).for_each(|_| turns.end_look());
        assert!(turns.before >= Some(first));
    }
}
