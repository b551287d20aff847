//! Which records of all tasks on a CPU are the target's.
//!
//! Events that are bound to CPUs see every task; the target's are told from the others here, by
//! the records of tasks that start. That misses no short-lived task, whatever it lives for. What
//! the other ways of keeping the target's tasks only cost is measured in docs/perf-events.md.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flame_events::{Glance, RecordBytes};
use flame_profile::{Pid, Tid};

use crate::strangers::Strangers;
use crate::threads::{all_processes, parent_of, threads_of};

/// Between two looks for processes whose start was not recorded.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The tasks of a target as they come and go. Show it every record, in time order.
#[derive(Debug)]
pub(crate) struct Filter {
    pids: HashSet<Pid>,
    /// Only those threads, where not whole processes are meant.
    tids: Option<HashSet<Tid>>,
    /// Whether what the target starts belongs to it.
    follow: bool,
    /// A launched program that has not been exec'd yet: until then it is flame's own code that runs.
    waits_for_exec: Option<Pid>,
    /// Processes that were there before and are not the target's, even if their parent is.
    strangers: HashSet<Pid>,
    /// What readers are told of them and of others.
    told: Arc<Strangers>,
    /// Records were lost since the last look for processes whose start was among them.
    has_gaps: bool,
    next_look: Instant,
}

impl Filter {
    /// Processes with all their threads and, with `follow`, what they start from now on.
    pub(crate) fn of_processes(pids: &[Pid], follow: bool) -> Filter {
        let strangers = all_processes().filter(|pid| !pids.contains(pid)).collect();
        Filter { follow, strangers, ..Filter::of(pids) }
    }

    /// Those threads and nothing else, with the processes that they belong to.
    pub(crate) fn of_threads(tids: &[Tid], pids: &[Pid]) -> Filter {
        Filter { tids: Some(tids.iter().copied().collect()), ..Filter::of(pids) }
    }

    /// A program from its exec on.
    pub(crate) fn of_launched(pid: Pid, follow: bool) -> Filter {
        let tids = (!follow).then(|| HashSet::from([Tid(pid.0)]));
        let strangers = all_processes().filter(|other| *other != pid).collect();
        Filter { follow, tids, waits_for_exec: Some(pid), strangers, ..Filter::of(&[pid]) }
    }

    fn of(pids: &[Pid]) -> Filter {
        Filter {
            pids: pids.iter().copied().collect(),
            tids: None,
            follow: false,
            waits_for_exec: None,
            strangers: HashSet::new(),
            told: Arc::default(),
            has_gaps: false,
            next_look: Instant::now(),
        }
    }

    /// The tasks of the target that exist now.
    pub(crate) fn tasks(&self) -> Vec<Tid> {
        let of_processes = self.pids.iter().flat_map(|pid| threads_of(*pid));
        let is_meant = |tid: &Tid| self.tids.as_ref().is_none_or(|tids| tids.contains(tid));
        let mut tasks: Vec<Tid> = of_processes.filter(is_meant).collect();
        tasks.sort_unstable();
        tasks
    }

    /// The threads that were seen and are not the target's, as they come and go.
    pub(crate) fn told(&self) -> Arc<Strangers> {
        Arc::clone(&self.told)
    }

    /// Takes in a process that exists already.
    pub(crate) fn add(&mut self, pid: Pid) {
        self.told.forget(Tid(pid.0));
        self.pids.insert(pid);
        self.strangers.remove(&pid);
    }

    /// Whether a record is the target's or concerns all.
    pub(crate) fn keep(&mut self, record: &RecordBytes<'_>) -> bool {
        match Glance::at(record) {
            Glance::Sample { pid, tid } if !self.pids.contains(&pid) => {
                self.told.add_process(pid, tid);
                false
            }
            Glance::Sample { pid, tid } => {
                self.tids.as_ref().is_none_or(|tids| tids.contains(&tid))
                    && self.waits_for_exec != Some(pid)
            }
            Glance::Switch { pid, tid, .. } => {
                self.pids.contains(&pid)
                    && self.tids.as_ref().is_none_or(|tids| tids.contains(&tid))
                    && self.waits_for_exec != Some(pid)
            }
            Glance::Mapping { pid, .. } => self.pids.contains(&pid),
            Glance::Exit { pid, tid } => {
                self.told.forget(tid);
                self.pids.contains(&pid)
            }
            Glance::Comm { pid, exec, .. } => {
                if exec && self.waits_for_exec == Some(pid) {
                    self.waits_for_exec = None;
                }
                self.pids.contains(&pid)
            }
            Glance::Fork { pid, parent, tid } => {
                self.told.forget(tid);
                self.fork(pid, parent)
            }
            Glance::Lost => {
                self.has_gaps = true;
                true
            }
            Glance::Throttle | Glance::Unthrottle | Glance::Other => true,
        }
    }

    fn fork(&mut self, pid: Pid, parent: Pid) -> bool {
        if pid == parent {
            return self.pids.contains(&pid);
        }
        let ours = self.follow && self.pids.contains(&parent);
        if ours {
            self.pids.insert(pid);
        } else {
            // The number is in use again, by a process of somebody else's.
            self.pids.remove(&pid);
        }
        ours
    }

    /// Among lost records may have been those of processes that the target started: their parents
    /// tell. All of /proc is read for that, which a flame that is late already cannot do often.
    pub(crate) fn fill_gaps(&mut self) {
        if !self.follow || !self.has_gaps || Instant::now() < self.next_look {
            return;
        }
        self.has_gaps = false;
        self.next_look = Instant::now() + BETWEEN_LOOKS;
        let others: Vec<(Pid, Pid)> = all_processes()
            .filter(|pid| !self.pids.contains(pid) && !self.strangers.contains(pid))
            .filter_map(|pid| Some((pid, parent_of(pid)?)))
            .collect();
        // Children of children: until nothing is added any more.
        while let Some((pid, _)) = others
            .iter()
            .find(|(pid, parent)| self.pids.contains(parent) && !self.pids.contains(pid))
        {
            self.told.forget(Tid(pid.0));
            self.pids.insert(*pid);
        }
    }
}

#[cfg(test)]
mod tests;
