//! What a recording has become before anything has a name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flame_events::{KernelSymbolEvent, Processes};
use flame_profile::{
    Evidence, Health, ImageId, Nanos, Pid, ProcessAddress, StackEnd, StackId, StackTable, Tid,
    ValueType,
};
use flame_sampler::Session;
use flame_symbolize::ImageFile;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::completion::{Chains, Cuts};
use super::super::images::{Images, OpenImage};
use super::super::jit::{JitCode, JitId, JitNames};
use super::super::location::CodeLocation;
use super::SAMPLES_VALUE;

/// A thread as samples saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    pub(crate) name: Arc<str>,
    pub(crate) process: Arc<str>,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
}

/// What a recording has become before anything has a name.
#[derive(Debug, Default)]
pub struct Collected {
    pub(crate) stacks: StackTable<CodeLocation>,
    pub(crate) threads: IndexSet<ThreadKey, FxBuildHasher>,
    /// (position in `threads`, stack, what it rests on) and the two values.
    pub(crate) samples: IndexMap<(usize, StackId, Evidence), [u64; 2], FxBuildHasher>,
    /// Samples whose stack is not known yet to be complete.
    pub(crate) cuts: Cuts,
    pub(crate) images: Images,
    /// What the kernel said it made while running, in order; by each event that heard of it.
    pub(crate) kernel_code: IndexSet<KernelSymbolEvent, FxBuildHasher>,
    pub(crate) jit: JitCode,
    /// What was code without a file in stacks that were completed at the end.
    pub(crate) late_jit: FxHashMap<(Pid, ProcessAddress), JitId>,
    pub(crate) jit_names: Option<JitNames>,
    pub(crate) health: Health,
}

/// The values that samples of a session have: how many they are, and what they stand for.
pub(super) fn value_types(session: &Session) -> Vec<ValueType> {
    let event = session.event();
    let own = match event.is_clock() {
        true => ValueType::new("cpu", "nanoseconds"),
        false => ValueType::new(event.name.clone(), "count"),
    };
    vec![ValueType::samples(), own]
}

/// The names of those values, for `--value`.
pub fn value_names(session: &Session) -> Vec<String> {
    value_types(session).into_iter().map(|value| value.name).collect()
}

impl Collected {
    pub(super) fn add(
        &mut self,
        thread: usize,
        stack: StackId,
        evidence: Evidence,
        values: [u64; 2],
    ) {
        let sums = self.samples.entry((thread, stack, evidence)).or_default();
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Samples taken in.
    pub fn samples(&self) -> u64 {
        self.health.samples
    }

    /// The file of an image, if it could be opened.
    pub fn file(&self, id: ImageId) -> Option<&ImageFile> {
        match self.images.get(id) {
            Some(OpenImage::File(file, _)) => Some(file),
            _ => None,
        }
    }

    /// What was there to name the code of processes that has no names, and why it was not believed.
    pub fn refused_code(&self) -> Vec<String> {
        self.jit.refused()
    }

    /// In how many samples' user stacks each image is.
    pub fn samples_by_image(&self) -> BTreeMap<ImageId, u64> {
        let mut samples = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for ((_, stack, _), values) in &self.samples {
            seen.extend(self.stacks.entries(*stack).filter_map(|entry| match entry {
                CodeLocation::Image(image, _) => Some(image),
                _ => None,
            }));
            while let Some(image) = seen.pop_first() {
                *samples.entry(image).or_default() += values[SAMPLES_VALUE];
            }
        }
        samples
    }

    /// Completes what was cut, or marks it.
    pub(super) fn finish_cuts(&mut self, chains: &Chains) {
        let cuts = std::mem::take(&mut self.cuts);
        let samples = cuts.finish(chains, &mut self.stacks, &mut self.health);
        for (thread, stack, evidence, values) in samples {
            self.add(thread, stack, evidence, values);
        }
    }

    /// Looks at which code stands where stacks that were completed at the end have some without a
    /// file: that which stood there last.
    pub(super) fn locate_late_jit(&mut self, now: Nanos, processes: &Processes) {
        for (_, _, location) in self.stacks.nodes() {
            if let CodeLocation::Anonymous(pid, address) = location {
                let jit = &mut self.jit;
                let locate = || jit.locate(pid, address, now, processes);
                self.late_jit.entry((pid, address)).or_insert_with(locate);
            }
        }
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
    user.chain(kernel_locations(kernel)).fold(outer, |stack, location| stacks.push(stack, location))
}

/// The kernel's frames, given innermost first, outermost first.
pub(super) fn kernel_locations(
    kernel: &[ProcessAddress],
) -> impl Iterator<Item = CodeLocation> + '_ {
    kernel.iter().enumerate().rev().map(|(index, address)| {
        // All but the innermost are return addresses.
        CodeLocation::Kernel(ProcessAddress(address.0.saturating_sub(u64::from(index > 0))))
    })
}

/// What stands in place of the frames that are missing.
pub(super) fn mark_of(end: StackEnd) -> CodeLocation {
    match end {
        StackEnd::FrameLimit => CodeLocation::BeyondMaxDepth,
        _ => CodeLocation::Truncated,
    }
}
