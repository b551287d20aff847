//! Functions with their change over the whole tree.

use flame_profile::{FrameKind, Label, LabelId, Weight};

use crate::evidence::Evidence;
use crate::tree::{DiffNode, Weights};

/// What became of one function, wherever it stands in the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionChange {
    /// The function: a position of [`crate::DiffTree::labels`].
    pub label: LabelId,
    /// What it weighed before, not scaled; recursion counts once in the total.
    pub before: Weights,
    /// What it weighs after.
    pub after: Weights,
    /// How sure the change of its self weight is.
    pub self_evidence: Evidence,
    /// How sure the change of its total is.
    pub total_evidence: Evidence,
}

/// All functions in the order of their labels, without threads' names and marks in which no samples
/// end.
pub(crate) fn functions(labels: &[Label], nodes: &[DiffNode]) -> Vec<FunctionChange> {
    let none = |index| FunctionChange {
        label: LabelId::from_index(index),
        before: Weights::default(),
        after: Weights::default(),
        self_evidence: Evidence::NONE,
        total_evidence: Evidence::NONE,
    };
    let mut changes: Vec<FunctionChange> = (0..labels.len() as u32).map(none).collect();
    outermost(labels.len(), nodes, |label, index, is_outermost| {
        let (node, change) = (&nodes[index], &mut changes[label.index()]);
        let total = |weight| if is_outermost { weight } else { Weight(0) };
        for (sum, weights) in [(&mut change.before, node.before), (&mut change.after, node.after)] {
            sum.add(Weights { total: total(weights.total), self_weight: weights.self_weight });
        }
    });
    changes.retain(|change| {
        let is_mark = labels[change.label.index()].kind == FrameKind::Mark;
        let (before, after) = (change.before, change.after);
        let weights = if is_mark {
            before.self_weight + after.self_weight
        } else {
            before.total + after.total
        };
        weights > Weight(0)
    });
    changes
}

/// Calls `visit` with each node but the root, its label, and whether none of that label is above.
pub(crate) fn outermost(
    labels: usize,
    nodes: &[DiffNode],
    mut visit: impl FnMut(LabelId, usize, bool),
) {
    // Up to which node each label was met last: below that it is recursion.
    let mut ends: Vec<u32> = vec![0; labels];
    for (index, node) in nodes.iter().enumerate().skip(1) {
        let end = &mut ends[node.label.index()];
        let is_outermost = index as u32 >= *end;
        if is_outermost {
            *end = node.end;
        }
        visit(node.label, index, is_outermost);
    }
}

#[cfg(test)]
mod tests {
    use crate::Scaling;
    use crate::test_runs::diff;

    #[test]
    fn a_function_has_its_total_once_and_a_mark_is_one_where_samples_end() {
        let tree =
            diff("p;a 1\np;b;a 2\nr 4\n", "p;a;a 8\np;c;a;b;a 16\ns;c 32\nu 64\n", Scaling::None);
        let mut found: Vec<_> = tree
            .functions()
            .iter()
            .map(|function| {
                let weights = [function.before, function.after];
                let weights = weights.map(|weights| (weights.total.0, weights.self_weight.0));
                (&*tree.labels()[function.label.index()].name, weights)
            })
            .collect();
        found.sort_unstable();
        let expect = [
            ("a", [(3, 3), (24, 24)]),
            ("b", [(2, 0), (16, 0)]),
            ("c", [(0, 0), (48, 32)]),
            ("r", [(4, 4), (0, 0)]),
            ("u", [(0, 0), (64, 64)]),
        ];
        assert_eq!(found, expect);
    }
}
