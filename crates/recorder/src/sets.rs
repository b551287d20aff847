//! What the frames of each stack have, as sets: few are different, and a stack has what its caller has and
//! at most one thing more, so that no stack has to be walked for it.

use flame_profile::StackId;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// The sets of stacks that are added one by one, a caller before those that it calls.
#[derive(Debug)]
pub(crate) struct Sets {
    /// For each stack the position of its set.
    of_stack: Vec<u32>,
    /// Each sorted.
    sets: IndexSet<Vec<u32>, FxBuildHasher>,
    /// The position of the set that is another with one thing more.
    with: FxHashMap<(u32, u32), u32>,
}

impl Sets {
    /// The empty stack alone, which has nothing.
    pub(crate) fn new() -> Sets {
        let sets = IndexSet::from_iter([Vec::new()]);
        Sets { of_stack: vec![0], sets, with: FxHashMap::default() }
    }

    /// Adds a stack: what its innermost frame has, if it has something. One that was added before stays as
    /// it is.
    pub(crate) fn add(&mut self, stack: StackId, caller: StackId, has: Option<u32>) {
        if stack.index() < self.of_stack.len() {
            return;
        }
        let of_caller = self.of_stack.get(caller.index()).copied().unwrap_or(0);
        let set = has.map_or(of_caller, |has| self.with(of_caller, has));
        self.of_stack.resize(stack.index() + 1, 0);
        self.of_stack[stack.index()] = set;
    }

    fn with(&mut self, set: u32, has: u32) -> u32 {
        if let Some(known) = self.with.get(&(set, has)) {
            return *known;
        }
        let mut all = self.sets.get_index(set as usize).cloned().unwrap_or_default();
        if let Err(at) = all.binary_search(&has) {
            all.insert(at, has);
        }
        let (at, _) = self.sets.insert_full(all);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.with.insert((set, has), at);
        at
    }

    /// Adds up numbers of stacks: for each thing the sum of all stacks that have it, by the things'
    /// numbers.
    pub(crate) fn sums(&self, all: impl Iterator<Item = (StackId, u64)>) -> Vec<(u32, u64)> {
        let mut of_sets = vec![0_u64; self.sets.len()];
        for (stack, number) in all {
            let set = self.of_stack.get(stack.index()).copied().unwrap_or(0);
            of_sets[set as usize] += number;
        }
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        for (set, sum) in self.sets.iter().zip(of_sets).filter(|(_, sum)| *sum > 0) {
            set.iter().for_each(|has| *sums.entry(*has).or_default() += sum);
        }
        let mut sums: Vec<(u32, u64)> = sums.into_iter().collect();
        sums.sort_unstable();
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_counts_once_for_each_thing_that_it_has() {
        let mut sets = Sets::new();
        let at = StackId::from_index;
        for (stack, caller, has) in
            [(1, 0, Some(7)), (2, 1, None), (3, 2, Some(5)), (4, 3, Some(7)), (5, 0, None)]
        {
            sets.add(at(stack), at(caller), has);
        }
        // A stack that two others became.
        sets.add(at(5), at(4), Some(9));
        let sums = |stacks: &[(usize, u64)]| {
            sets.sums(stacks.iter().map(|(stack, number)| (at(*stack), *number)))
        };
        assert_eq!(sums(&[(2, 10), (4, 3), (5, 100)]), [(5, 3), (7, 13)]);
        assert_eq!(sums(&[(0, 10)]), []);
    }
}
