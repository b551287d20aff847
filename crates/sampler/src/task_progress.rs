//! How much of a task's interval is over: a clock of the task says, which the kernel counts along with the event.

use std::collections::BTreeMap;

use flame_profile::{Cpu, Nanos, Tid};

use crate::descriptor::Descriptor;
use crate::open::Plan;

/// Of the tasks of one CPU that were asked about; `None` where that cannot be known. A reader keeps it in its own process, of
/// which the descriptors are.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<Tid, Option<Progress>>);

impl Clocks {
    /// How much of the interval of a task is over, and left. What is over when a task is asked about first is not known, and
    /// counts as nothing.
    pub(crate) fn get(&mut self, plan: &Plan, cpu: Cpu, tid: Tid) -> Option<(Nanos, Nanos)> {
        let clock = self.0.entry(tid).or_insert_with(|| {
            let clock = plan.open_clock(tid, cpu).ok()?;
            Some(Progress { clock, set_at: Nanos(0), interval: Nanos(1), before: Nanos(0) })
        });
        clock.as_ref()?.get()
    }

    /// Takes note that the timer was set to an interval of which so much was over before.
    pub(crate) fn set(&mut self, tid: Tid, interval: Nanos, before: Nanos) {
        if let Some(Some(progress)) = self.0.get_mut(&tid) {
            progress.set_at = progress.now().unwrap_or(progress.set_at);
            (progress.interval, progress.before) = (interval, before);
        }
    }
}

#[derive(Debug)]
struct Progress {
    /// How long the task has run on the CPU.
    clock: Descriptor,
    /// What it said when the timer was set last.
    set_at: Nanos,
    /// What the timer was set to.
    interval: Nanos,
    /// How much of the interval was over by then.
    before: Nanos,
}

impl Progress {
    fn now(&self) -> Option<Nanos> {
        self.clock.read::<1>().ok().map(|[time]| Nanos(time))
    }

    fn get(&self) -> Option<(Nanos, Nanos)> {
        let since = self.now()?.saturating_since(self.set_at);
        Some(progress(since, self.interval, self.before))
    }
}

/// How much of an interval is over, and left, so long since the timer was set to what was left of it then. It begins anew as
/// often as it is over.
fn progress(since: Nanos, set: Nanos, before: Nanos) -> (Nanos, Nanos) {
    let (round, of_round) = (since.0 / set.0.max(1), since.0 % set.0.max(1));
    let passed = if round == 0 { before.0 + of_round } else { of_round };
    (Nanos(passed), Nanos(set.0 - of_round.min(set.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_go_on_where_nobody_sets_them() {
        let progress = |since| progress(Nanos(since), Nanos(700), Nanos(200));
        let progress = |since| (progress(since).0.0, progress(since).1.0);
        let expect = [(200, 700), (899, 1), (0, 700), (699, 1), (100, 600)];
        assert_eq!([0, 699, 700, 1399, 1500].map(progress), expect);
    }
}
