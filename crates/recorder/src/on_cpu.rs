//! Time that threads have a CPU, by their switches: what samples of a timer estimate is known exactly
//! then.

use flame_events::{EventKind, SwitchTo};
use flame_profile::{Nanos, Pid, Tid};
use rustc_hash::{FxHashMap, FxHashSet};

/// Follows which threads run.
#[derive(Debug, Default)]
pub(crate) struct OnCpu {
    begun: Nanos,
    /// Since when all switches are known.
    whole_since: Nanos,
    running: FxHashMap<Tid, (Pid, Nanos)>,
    /// Threads that were met since then: who is met running first has run since then.
    known: FxHashSet<Tid>,
}

/// A time that a thread had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    /// When it left the CPU.
    pub(crate) until: Nanos,
    pub(crate) duration: Nanos,
}

impl OnCpu {
    /// Takes in an event of a thread that counts: the times that are over with it.
    pub(crate) fn apply(&mut self, now: Nanos, kind: &EventKind<'_>) -> Vec<Ran> {
        match *kind {
            EventKind::Fork { tid, .. } => self.started(tid),
            EventKind::Switch { pid, tid, to: SwitchTo::Running }
            | EventKind::Comm { pid, tid, exec: true, .. } => self.came_back(now, pid, tid),
            EventKind::Switch { pid, tid, .. } | EventKind::Exit { pid, tid } => {
                return self.left(now, pid, tid).into_iter().collect();
            }
            EventKind::Lost { .. } => return self.lost(now),
            _ => {}
        }
        Vec::new()
    }

    /// The recording begins, while these threads wait.
    pub(crate) fn begin(&mut self, now: Nanos, waiting: impl IntoIterator<Item = Tid>) {
        (self.begun, self.whole_since) = (now, now);
        self.known.extend(waiting);
    }

    /// A thread was started; it does not run yet.
    fn started(&mut self, tid: Tid) {
        self.running.remove(&tid);
        self.known.insert(tid);
    }

    /// A thread got a CPU, or began a program.
    fn came_back(&mut self, now: Nanos, pid: Pid, tid: Tid) {
        self.known.insert(tid);
        self.running.insert(tid, (pid, now));
    }

    /// A thread was seen running.
    pub(crate) fn sampled(&mut self, pid: Pid, tid: Tid) {
        if self.known.insert(tid) {
            self.running.insert(tid, (pid, self.whole_since));
        }
    }

    /// A thread has left its CPU, or ended.
    fn left(&mut self, now: Nanos, pid: Pid, tid: Tid) -> Option<Ran> {
        self.sampled(pid, tid);
        self.running.remove(&tid).map(|(_, since)| self.ran(pid, tid, since, now))
    }

    /// Records were lost, maybe of switches: the times of those that ran until then.
    fn lost(&mut self, now: Nanos) -> Vec<Ran> {
        let ran = self.so_far(now);
        self.running.clear();
        self.known.clear();
        self.whole_since = now;
        ran
    }

    /// The times of those that run still, until now.
    pub(crate) fn so_far(&self, now: Nanos) -> Vec<Ran> {
        let running = self.running.iter();
        running.map(|(tid, (pid, since))| self.ran(*pid, *tid, *since, now)).collect()
    }

    fn ran(&self, pid: Pid, tid: Tid, since: Nanos, now: Nanos) -> Ran {
        Ran { pid, tid, until: now, duration: now.saturating_since(since.max(self.begun)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);

    fn ran(until: u64, duration: u64) -> Option<Ran> {
        Some(Ran { pid: PID, tid: Tid(8), until: Nanos(until), duration: Nanos(duration) })
    }

    #[test]
    fn a_thread_runs_from_a_switch_to_the_next() {
        let mut all = OnCpu::default();
        all.begin(Nanos(100), [Tid(8)]);
        assert_eq!(all.left(Nanos(110), PID, Tid(8)), None);
        all.came_back(Nanos(120), PID, Tid(8));
        all.sampled(PID, Tid(8));
        assert_eq!(all.left(Nanos(150), PID, Tid(8)), ran(150, 30));
        assert_eq!(all.left(Nanos(160), PID, Tid(8)), None);
    }

    #[test]
    fn who_is_met_running_has_run_since_the_beginning() {
        let mut all = OnCpu::default();
        all.begin(Nanos(100), []);
        assert_eq!(all.left(Nanos(110), PID, Tid(8)), ran(110, 10));
        all.sampled(PID, Tid(9));
        let others = Ran { pid: PID, tid: Tid(9), until: Nanos(150), duration: Nanos(50) };
        assert_eq!(all.so_far(Nanos(150)), [others]);
        all.started(Tid(9));
        all.sampled(PID, Tid(9));
        assert_eq!(all.so_far(Nanos(150)), []);
    }

    #[test]
    fn who_has_left_among_lost_records_does_not_run_for_ever() {
        let mut all = OnCpu::default();
        all.begin(Nanos(100), []);
        all.came_back(Nanos(110), PID, Tid(8));
        assert_eq!(all.lost(Nanos(140)), [ran(140, 30).unwrap()]);
        assert_eq!(all.so_far(Nanos(900)), []);
        // Without a switch since then it has not stopped.
        all.sampled(PID, Tid(8));
        assert_eq!(all.left(Nanos(150), PID, Tid(8)), ran(150, 10));
    }

    #[test]
    fn nothing_counts_that_was_before_the_recording() {
        let mut all = OnCpu::default();
        all.begin(Nanos(100), []);
        all.came_back(Nanos(90), PID, Tid(8));
        assert_eq!(all.left(Nanos(110), PID, Tid(8)), ran(110, 10));
    }
}
