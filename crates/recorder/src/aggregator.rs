//! Samples become rows: one for each thread, stack and what the stack rests on, with the sums of
//! the values. Memory grows with distinct stacks, not with time.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use flame_profile::{Evidence, Health, Pid, ProcessAddress, StackEnd, StackId, StackTable, Tid};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use crate::location::CodeLocation;

/// What a sample adds: one, and what it stands for.
type Values = [u64; 2];

/// A thread as samples saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    pub(crate) name: Arc<str>,
    pub(crate) process: Arc<str>,
    /// Nothing where it was given up before the sample; the same below.
    pub(crate) pid: Option<Pid>,
    pub(crate) tid: Option<Tid>,
}

/// What a row is told from others by: the position of its thread, its stack, and what that rests on.
type RowKey = (usize, StackId, Evidence);

/// Where a sample was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenStack {
    /// The position of its thread.
    pub(crate) thread: usize,
    pub(crate) stack: StackId,
    /// How the stack ends, and what it rests on.
    pub(crate) end: (StackEnd, Evidence),
}

/// Where a thread waits, once it is known which code that was.
pub(crate) type Wait = Arc<OnceLock<SeenStack>>;

/// Takes in samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aggregator {
    threads: IndexSet<ThreadKey, FxBuildHasher>,
    stacks: StackTable<CodeLocation>,
    rows: IndexMap<RowKey, Values, FxBuildHasher>,
    ends: BTreeMap<StackEnd, u64>,
}

/// All samples of a recording, before anything has a name.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) threads: IndexSet<ThreadKey, FxBuildHasher>,
    pub(crate) stacks: StackTable<CodeLocation>,
    pub(crate) rows: IndexMap<RowKey, Values, FxBuildHasher>,
}

impl Aggregator {
    /// The position of a thread.
    pub(crate) fn thread(&mut self, key: ThreadKey) -> usize {
        self.threads.insert_full(key).0
    }

    /// The stack of a path, outermost frame first.
    pub(crate) fn stack(&mut self, path: &[CodeLocation]) -> StackId {
        path.iter().fold(StackId::EMPTY, |stack, location| self.inside(stack, *location))
    }

    /// A stack with one more frame inside.
    pub(crate) fn inside(&mut self, stack: StackId, location: CodeLocation) -> StackId {
        self.stacks.push(stack, location)
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, seen: SeenStack, period: u64) {
        let SeenStack { thread, stack, end: (end, evidence) } = seen;
        *self.ends.entry(end).or_default() += 1;
        add(self.rows.entry((thread, stack, evidence)).or_default(), [1, period]);
    }

    /// All rows; how their stacks ended is counted in `health`.
    pub(crate) fn into_rows(self, health: &mut Health) -> Rows {
        let Aggregator { threads, stacks, rows, ends } = self;
        for (end, count) in ends {
            *health.stack_ends.entry(end).or_default() += count;
        }
        health.samples = rows.values().map(|values| values[0]).sum();
        Rows { threads, stacks, rows }
    }
}

fn add(sums: &mut Values, values: Values) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(value);
    }
}

/// The kernel's frames, given innermost first, outermost first.
pub(crate) fn kernel_locations(
    kernel: &[ProcessAddress],
) -> impl Iterator<Item = CodeLocation> + '_ {
    kernel.iter().enumerate().rev().map(|(index, address)| {
        // All but the innermost are return addresses.
        CodeLocation::Kernel(ProcessAddress(address.0.saturating_sub(u64::from(index > 0))))
    })
}
