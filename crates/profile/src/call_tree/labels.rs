//! The labels of a tree while it grows: each once, and in the order of their names when asked for.

use indexmap::{Equivalent, IndexSet};
use rustc_hash::FxBuildHasher;

use super::Label;
use crate::frame::FrameKind;
use crate::ids::narrow;

/// Labels, each once, numbered as they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    set: IndexSet<Label, FxBuildHasher>,
    /// The numbers of the first labels in the order of their names. Labels that came later are not
    /// in it.
    sorted: Vec<u32>,
}

/// A label that is looked up without making a string of it.
#[derive(Hash)]
struct LabelKey<'n> {
    name: &'n str,
    kind: FrameKind,
}

impl Equivalent<Label> for LabelKey<'_> {
    fn equivalent(&self, label: &Label) -> bool {
        self.name == label.name && self.kind == label.kind
    }
}

impl Labels {
    /// The number of a label, new or known.
    pub(super) fn number(&mut self, name: &str, kind: FrameKind) -> u32 {
        let known = self.set.get_index_of(&LabelKey { name, kind });
        narrow(
            known.unwrap_or_else(|| self.set.insert_full(Label { name: name.to_owned(), kind }).0),
        )
    }

    /// The same for a label that is most likely new.
    pub(super) fn number_of_new(&mut self, label: Label) -> u32 {
        narrow(self.set.insert_full(label).0)
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.set.reserve(more);
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    /// All labels in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.set.iter()
    }

    pub(super) fn into_vec(self) -> Vec<Label> {
        self.set.into_iter().collect()
    }

    /// All labels, each at the place that it is given.
    pub(super) fn into_order_of(self, places: &[u32]) -> Vec<Label> {
        let empty = Label { name: String::new(), kind: FrameKind::User };
        let mut ordered = vec![empty; self.len()];
        for (label, place) in self.set.into_iter().zip(places) {
            ordered[*place as usize] = label;
        }
        ordered
    }

    /// Puts the labels in order that are not yet.
    pub(super) fn sort(&mut self) {
        let known = self.sorted.len();
        let mut rest: Vec<([u128; 2], u32)> =
            self.set[known..].iter().zip(narrow(known)..).map(|(l, n)| (head(l), n)).collect();
        let whole = |entry: &([u128; 2], u32)| &self.set[entry.1 as usize];
        rest.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| whole(a).cmp(whole(b))));
        self.merge(rest.into_iter().map(|(_, number)| number));
    }

    /// Merges numbers in the order of their names into those that are sorted; quick when they are
    /// few.
    fn merge(&mut self, more: impl ExactSizeIterator<Item = u32>) {
        let known = std::mem::take(&mut self.sorted);
        if known.is_empty() {
            self.sorted = more.collect();
            return;
        }
        self.sorted.reserve(known.len() + more.len());
        let mut rest = &known[..];
        for number in more {
            let label = &self.set[number as usize];
            let is_before = |known: &u32| self.set[*known as usize].cmp(label).is_lt();
            // In steps that grow, then within the last of them.
            let mut step = 1;
            while rest.get(step).is_some_and(is_before) {
                step *= 2;
            }
            let count = rest[..rest.len().min(step)].partition_point(is_before);
            self.sorted.extend(&rest[..count]);
            self.sorted.push(number);
            rest = &rest[count..];
        }
        self.sorted.extend(rest);
    }

    /// For each label its place in the order of names.
    pub(super) fn ranks(&mut self) -> Vec<u32> {
        self.sort();
        let mut ranks = vec![0; self.len()];
        for (number, rank) in self.sorted.iter().zip(0..) {
            ranks[*number as usize] = rank;
        }
        ranks
    }
}

/// The start of a name: most comparisons end within it, and it lies beside those of the others.
fn head(label: &Label) -> [u128; 2] {
    const HALF: usize = size_of::<u128>();
    let name = label.name.as_bytes();
    let half = |from: usize| {
        let part = name.get(from..).unwrap_or_default();
        let mut half = [0; HALF];
        let length = part.len().min(HALF);
        half[..length].copy_from_slice(&part[..length]);
        u128::from_be_bytes(half)
    };
    [half(0), half(HALF)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Labels {
        let mut labels = Labels::default();
        for name in names {
            labels.number(name, FrameKind::User);
        }
        labels
    }

    #[test]
    fn ranks_are_in_the_order_of_names_whenever_labels_come() {
        let mut set = labels(&["same_sixteen_bytes_b", "z", "same_sixteen_bytes_a"]);
        assert_eq!(set.ranks(), [1, 2, 0]);
        set.number("z", FrameKind::Kernel);
        set.number("a", FrameKind::User);
        set.number("zz", FrameKind::User);
        assert_eq!(set.ranks(), [2, 3, 1, 4, 0, 5]);
    }

    #[test]
    fn each_of_many_labels_has_its_own_number() {
        let mut set = Labels::default();
        for _ in 0..2 {
            for number in 0..2000 {
                assert_eq!(set.number(&format!("work_{number}"), FrameKind::User), number);
            }
        }
        let mut set = labels(&["work"]);
        assert_eq!(set.number("work", FrameKind::Jit), 1);
    }
}
