//! Samples of code whose runtime writes its log late.
//!
//! Runtimes that say times write through large buffers (V8: 2 MB). What their code was at the time
//! of a sample is known when a later entry is in the log, or the recording over. Until then the
//! sample waits, as addresses.

use std::collections::VecDeque;

use flame_profile::{Cpu, Evidence, Nanos, Pid, ProcessAddress, StackEnd};

use super::super::aggregator::Wait;
use super::super::location::CodeLocation;
use super::super::scripted::EndOfScript;

/// How many locations wait at most, 16 bytes each; the oldest samples give way.
const MAX_WAITING: usize = 2 << 20;

/// A sample as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct DeferredSample {
    pub(crate) time: Nanos,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) pid: Pid,
    /// Its thread, by position.
    pub(crate) thread: usize,
    /// The stack, outermost first; where `jit` says so not yet right.
    pub(crate) path: Vec<CodeLocation>,
    /// The positions in `path` of code without a file, and its addresses.
    pub(crate) jit: Vec<(usize, ProcessAddress)>,
    /// How its stack ends, and what it rests on.
    pub(crate) end: (StackEnd, Evidence),
    /// The same of the script that it runs.
    pub(crate) script: Option<EndOfScript>,
    /// The event that was sampled.
    pub(crate) event: usize,
    /// What the sample stands for.
    pub(crate) period: u64,
    /// Who asks where it was, if that is of a wait.
    pub(crate) waits: Option<Wait>,
}

/// Samples that wait, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    samples: VecDeque<DeferredSample>,
    locations: usize,
}

impl Deferred {
    /// Lets a sample wait.
    pub(crate) fn push(&mut self, sample: DeferredSample) {
        self.locations += sample.path.len();
        self.samples.push_back(sample);
    }

    /// The oldest sample, if nothing more will become known of it or too many wait.
    pub(crate) fn pop_if(
        &mut self,
        is_settled: impl FnOnce(&DeferredSample) -> bool,
    ) -> Option<DeferredSample> {
        let oldest = self.samples.front()?;
        if self.locations <= MAX_WAITING && !is_settled(oldest) {
            return None;
        }
        let oldest = self.samples.pop_front()?;
        self.locations -= oldest.path.len();
        Some(oldest)
    }
}
