//! What a recording has become before anything has a name.

use std::sync::Arc;

use flame_profile::{Health, Pid, ProcessAddress, StackEnd, StackId, StackTable, Tid};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::super::completion::{Chains, Cuts};
use super::super::images::Images;
use super::super::location::CodeLocation;
use super::super::perf_maps::Owners;

/// A thread as samples saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::record) struct ThreadKey {
    pub(in crate::record) name: Arc<str>,
    pub(in crate::record) process: Arc<str>,
    pub(in crate::record) pid: Pid,
    pub(in crate::record) tid: Tid,
}

/// What a recording has become before anything has a name.
#[derive(Debug, Default)]
pub(in crate::record) struct Collected {
    pub(in crate::record) stacks: StackTable<CodeLocation>,
    pub(in crate::record) threads: IndexSet<ThreadKey, FxBuildHasher>,
    /// (position in `threads`, stack) and the two values.
    pub(in crate::record) samples: IndexMap<(usize, StackId), [u64; 2], FxBuildHasher>,
    /// Samples whose stack is not known yet to be complete.
    pub(in crate::record) cuts: Cuts,
    pub(in crate::record) images: Images,
    pub(in crate::record) owners: Owners,
    pub(in crate::record) health: Health,
}

impl Collected {
    pub(super) fn add(&mut self, thread: usize, stack: StackId, values: [u64; 2]) {
        let sums = self.samples.entry((thread, stack)).or_default();
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Completes what was cut, or marks it.
    pub(super) fn finish_cuts(&mut self, chains: &Chains) {
        let cuts = std::mem::take(&mut self.cuts);
        let samples = cuts.finish(chains, &mut self.stacks, &mut self.health);
        samples.into_iter().for_each(|(thread, stack, values)| self.add(thread, stack, values));
    }
}

/// Adds user frames, then kernel frames, both given innermost first.
pub(super) fn push(
    stacks: &mut StackTable<CodeLocation>,
    outer: StackId,
    user: &[CodeLocation],
    kernel: &[ProcessAddress],
) -> StackId {
    let user = user.iter().rev().copied();
    let kernel = kernel.iter().enumerate().rev().map(|(index, address)| {
        // All but the innermost are return addresses.
        CodeLocation::Kernel(ProcessAddress(address.0.saturating_sub(u64::from(index > 0))))
    });
    user.chain(kernel).fold(outer, |stack, location| stacks.push(stack, location))
}

/// What stands in place of the frames that are missing.
pub(super) fn mark_of(end: StackEnd) -> CodeLocation {
    match end {
        StackEnd::FrameLimit => CodeLocation::BeyondMaxDepth,
        _ => CodeLocation::Truncated,
    }
}
