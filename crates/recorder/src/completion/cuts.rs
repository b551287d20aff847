//! Samples whose stack was cut, until the recording is over.

use flame_profile::{Completion, Evidence, Health, NotCompleted, StackEnd, StackId, StackTable};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::chains::{Activation, Callers, Chains, MemoryId, NodeId};
use crate::config::Complete;
use crate::location::CodeLocation;

/// In how many stacks an activation must have been read from the process, always with the same
/// callers, to complete one that had changed before it could be read. Of gcc and rustc, both copied
/// whole to know the truth and cut at 4 to 16 KiB, 1 in 5 such completions was wrong that rested on a single stack, 1 in 40 on four to
/// nine, and one of 4,500 on ten or more.
const OFTEN: u32 = 12;

/// What is known of a stack that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// The thread.
    pub(crate) memory: MemoryId,
    /// How the walk through the copy ended.
    pub(crate) end: StackEnd,
    /// The outermost frame that the copy shows; `None` where it is not known how far it reaches.
    pub(crate) outermost: Option<Activation>,
    /// Its caller as read from the process, or why that was not possible.
    pub(crate) read: Result<NodeId, NotCompleted>,
    /// Whether frames were guessed on the way to the root that was read.
    pub(crate) guessed: bool,
}

impl Cut {
    /// The frame that called the outermost one, and how that is known.
    pub(crate) fn caller(&self, chains: &Chains) -> Result<(NodeId, Completion), NotCompleted> {
        let seen = self.outermost.map(|outermost| chains.callers(self.memory, outermost));
        match (seen, self.read) {
            (Some(Callers::Several), _) => Err(NotCompleted::Ambiguous),
            // It was read when hardly anybody ever was there.
            (Some(Callers::One(seen, _)), Ok(node)) if seen != node => Err(NotCompleted::Ambiguous),
            (_, Ok(node)) => Ok((node, Completion::ReadFromProcess)),
            (Some(Callers::One(node, reads)), Err(NotCompleted::Changed))
                if reads >= OFTEN && chains.completes() == Complete::All =>
            {
                Ok((node, Completion::EarlierStack))
            }
            (Some(Callers::One(..) | Callers::Unknown) | None, Err(why)) => Err(why),
        }
    }
}

impl Cut {
    /// What a stack rests on that was completed like that.
    fn evidence(&self, how: Completion) -> Evidence {
        match how {
            Completion::EarlierStack => Evidence::OtherStack,
            Completion::ReadFromProcess if self.guessed => Evidence::GuessedFrames,
            Completion::ReadFromProcess => Evidence::ReadFromProcess,
        }
    }

    /// How a stack ends that was completed like that: only what was read is no guess.
    fn end_of(&self, how: Completion) -> StackEnd {
        match how {
            Completion::ReadFromProcess if !self.guessed => StackEnd::Root,
            _ => StackEnd::Guessed,
        }
    }
}

/// All of them, merged where nothing distinguishes them.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    /// The frames that are known of each, the outermost one below the root.
    pub(crate) stacks: StackTable<CodeLocation>,
    /// By position of the thread and stack.
    samples: IndexMap<(usize, StackId, Cut), [u64; 2], FxBuildHasher>,
}

impl Cuts {
    /// Adds a sample with its two values, the first of which counts it.
    pub(crate) fn add(&mut self, thread: usize, stack: StackId, cut: Cut, values: [u64; 2]) {
        let sums = self.samples.entry((thread, stack, cut)).or_default();
        *sums = [sums[0].saturating_add(values[0]), sums[1].saturating_add(values[1])];
    }

    /// Gives every sample: its thread, its stack, now in `stacks`, and its values. How each was
    /// completed, or why not, is counted.
    pub(crate) fn finish(
        self,
        chains: &Chains,
        stacks: &mut StackTable<CodeLocation>,
        health: &mut Health,
    ) -> Vec<(usize, StackId, Evidence, [u64; 2])> {
        let mut finished = Vec::with_capacity(self.samples.len());
        for ((thread, stack, cut), values) in self.samples {
            let (path, evidence) = match cut.caller(chains) {
                Ok((node, how)) => {
                    *health.completed.entry(how).or_default() += values[0];
                    *health.stack_ends.entry(cut.end_of(how)).or_default() += values[0];
                    (chains.path(node), cut.evidence(how))
                }
                Err(why) => {
                    *health.not_completed.entry(why).or_default() += values[0];
                    *health.stack_ends.entry(cut.end).or_default() += values[0];
                    let mark = cut.end.is_truncated().then_some(CodeLocation::Truncated);
                    (mark.into_iter().collect(), Evidence::Copied)
                }
            };
            let mut inner: Vec<CodeLocation> = self.stacks.entries(stack).collect();
            inner.reverse();
            let whole = path.into_iter().chain(inner);
            let whole = whole.fold(StackId::EMPTY, |stack, entry| stacks.push(stack, entry));
            finished.push((thread, whole, evidence, values));
        }
        finished
    }
}

#[cfg(test)]
mod tests;
