//! How long a thread has waited for its turn on the CPU.
//!
//! A reader that looks late at a sample was either kept waiting, while others ran, the target among
//! them; or nothing ran there at all, because a virtual machine stood still. The scheduler counts the
//! first and not the second.
//!
//! Source: the second number of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).

use std::fs::File;
use std::os::unix::fs::FileExt;

use flame_profile::Nanos;

/// Three numbers of 20 digits at most.
const LONGEST: usize = 64;

/// Follows the calling thread.
#[derive(Debug)]
pub(crate) struct Turns {
    file: Option<File>,
    before: Option<Nanos>,
}

impl Turns {
    /// Of the calling thread, from now on.
    pub(crate) fn of_this_thread() -> Turns {
        let mut turns =
            Turns { file: File::open("/proc/thread-self/schedstat").ok(), before: None };
        turns.begin();
        turns
    }

    /// Counts from now on.
    pub(crate) fn begin(&mut self) {
        self.before = self.waited();
    }

    /// How long it has waited since [`Turns::begin`]; `None` where the kernel does not say.
    pub(crate) fn waited_since(&self) -> Option<Nanos> {
        Some(self.waited()?.saturating_since(self.before?))
    }

    fn waited(&self) -> Option<Nanos> {
        let mut text = [0; LONGEST];
        let len = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..len)?).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel counts it, as most do.
    #[test]
    fn waiting_is_counted_on_and_on() {
        let mut turns = Turns::of_this_thread();
        let Some(first) = turns.waited() else { return };
        std::thread::yield_now();
        let waited = turns.waited_since().unwrap();
        assert!(turns.waited().unwrap() >= Nanos(first.0 + waited.0));
        turns.begin();
        assert!(turns.before >= Some(first));
    }
}
