//! Tasks that start and end without a sample of them.
//!
//! An event that is bound to a task starts each new task with a full interval, so one that lives
//! for less is never sampled, however many of them there are.

use flame_events::EventKind;
use flame_profile::Tid;
use rustc_hash::FxHashSet;

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct ShortTasks {
    /// Those that were started and not sampled so far.
    unsampled: FxHashSet<Tid>,
    unseen: u64,
    ended: u64,
}

impl ShortTasks {
    /// Takes in a start or an end; other events do not matter.
    pub(super) fn apply(&mut self, event: &EventKind<'_>) {
        match event {
            EventKind::Fork { tid, .. } => _ = self.unsampled.insert(*tid),
            EventKind::Exit { tid, .. } => {
                self.unseen += u64::from(self.unsampled.remove(tid));
                self.ended += 1;
            }
            _ => {}
        }
    }

    /// A sample of a task came.
    pub(super) fn saw(&mut self, tid: Tid) {
        self.unsampled.remove(&tid);
    }

    /// How many have ended, sampled or not.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many have ended unseen.
    pub(super) fn unseen(&self) -> u64 {
        self.unseen
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::Pid;

    use super::*;

    #[test]
    fn tasks_that_end_without_a_sample_are_counted() {
        let mut tasks = ShortTasks::default();
        let pid = Pid(1);
        for tid in [Tid(2), Tid(3), Tid(4)] {
            tasks.apply(&EventKind::Fork { pid, tid, parent: pid, parent_tid: Tid(1) });
        }
        tasks.saw(Tid(3));
        tasks.apply(&EventKind::Exit { pid, tid: Tid(2) });
        tasks.apply(&EventKind::Exit { pid, tid: Tid(3) });
        tasks.apply(&EventKind::Exit { pid, tid: Tid(9) });
        assert_eq!((tasks.unseen(), tasks.ended()), (1, 3));
    }
}
