//! What a reader keeps from one look to the next, and how it reads.

use std::sync::Arc;
use std::time::Duration;

use flame_profile::{Cpu, Nanos, NotRead, Pid, ProcessAddress, Tid};

use crate::latest::Latest;
use crate::places::Places;
use crate::rest::{Read, Wanted};
use crate::scripts::Scripts;
use crate::session::monotonic_now;
use crate::stack_ends::StackEnds;
use crate::stack_roots::StackRoots;
use crate::task_progress::Clocks;
use crate::turns::Turns;
use crate::watch::Watch;

/// How old a sample may be when it is looked at: half of the readers look after 30 us.
const FRESH: Nanos = Nanos(2_000_000);

/// For how long a reader that does not go first may have waited for its CPU. Either it has it at once, or when the turn of the
/// target is over, milliseconds later. How old the sample is says less: to copy its stack takes longer right after a wake-up.
const AT_ONCE: Nanos = Nanos(20_000);

/// How old it may be where nothing ran in between: so long does a virtual machine stand still that has
/// to share its CPUs.
const OLDEST: Nanos = Nanos(20_000_000);

/// What a reader keeps from one look to the next.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) reads: bool,
    /// Whether it goes before the target wherever that has left its CPU.
    pub(crate) goes_first: bool,
    /// Whether a counter of the CPU wakes it at each sample and counts nothing else while it looks.
    pub(crate) is_counted: bool,
    pub(crate) scratch: Vec<u8>,
    pub(crate) scripts: Option<Scripts>,
    pub(crate) places: Places,
    pub(crate) ends: StackEnds,
    pub(crate) roots: Arc<StackRoots>,
    /// When the bell rang last for code that was mapped.
    pub(crate) rang_for_code: Nanos,
    /// Bytes of the ring that came since the bell rang.
    pub(crate) filled: u64,
    pub(crate) turns: Turns,
    pub(crate) watch: Watch,
    /// Of tasks whose intervals are drawn before they are over.
    pub(crate) clocks: Clocks,
    /// For how long it has waited for its CPU before this look, where it does not go first.
    pub(crate) waited: Option<Nanos>,
    /// Before it waits for samples.
    pub(crate) rest: Duration,
    /// What the last look left for the next one.
    pub(crate) left: Latest,
    pub(crate) random: fastrand::Rng,
    /// For how long the reader had run when it drew last.
    pub(crate) own: Nanos,
}

impl Work {
    /// Whether something else may have run on the CPU since a sample of that age.
    pub(crate) fn is_late(&self, age: Nanos) -> bool {
        if !self.goes_first {
            return self.waited.unwrap_or(age) > AT_ONCE;
        }
        let waited = || self.turns.waited_since().is_none_or(|waited| waited > FRESH);
        age > OLDEST || age > FRESH && waited()
    }

    /// Where the stack of a thread ends, as far as that is known.
    pub(crate) fn end_of(&self, tid: Tid, stack_pointer: ProcessAddress) -> Option<ProcessAddress> {
        self.roots.of(tid, stack_pointer).or_else(|| self.ends.of(tid, stack_pointer))
    }

    /// Reads a stack, and what runs in an interpreter.
    pub(crate) fn read(
        &mut self,
        (pid, cpu): (Pid, Cpu),
        wanted: &Wanted,
    ) -> Result<Read, NotRead> {
        let tid = wanted.tid();
        let has_script = self.scripts.as_ref().is_some_and(|scripts| scripts.reads(pid));
        let is_nothing = wanted.is_whole() && !has_script;
        let runs = (!is_nothing).then(|| self.places.runs_of(pid, tid));
        let inner = match &mut self.scripts {
            Some(scripts) if wanted.is_long() => scripts.inner_stack(pid, wanted),
            _ => None,
        };
        let read = match inner {
            Some(inner) => wanted.around(inner).read(&mut self.scratch)?,
            None => wanted.read(&mut self.scratch)?,
        };
        let read = match &mut self.scripts {
            Some(scripts) => scripts.catch(pid, wanted, read, &mut self.scratch),
            None => read,
        };
        let is_nothing = read.stacks() + read.script == 0;
        let mut stays = || {
            self.places.is_on(cpu, pid, tid)
                && runs.is_none_or(|runs| self.places.runs_of(pid, tid) == runs)
        };
        let went_on = !is_nothing && !(stays() && (self.goes_first || wanted.stands()));
        Ok(Read { until: monotonic_now(), went_on, ..read })
    }

    /// Takes note of a thread that was sampled; what was read of it is handed over by now.
    pub(crate) fn note(&mut self, pid: Pid, wanted: &Wanted) {
        let (tid, start) = (wanted.tid(), wanted.start());
        if self.roots.of(tid, start).is_none() {
            self.ends.note((pid, tid), start, &mut self.scratch);
        }
    }
}
