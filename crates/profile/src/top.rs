//! Functions with their self and total weight over the whole tree.

use rustc_hash::FxHashMap;

use crate::call_tree::{CallTree, LabelId};
use crate::frame::FrameKind;
use crate::units::Weight;

/// What one function weighs, wherever it stands in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionShare {
    /// The function.
    pub label: LabelId,
    /// Weight of the samples that ended in it.
    pub self_weight: Weight,
    /// Weight of the samples that had it on their stack; recursion counts once.
    pub total: Weight,
}

/// All functions (threads' names and marks left out, unless samples end in them), most self weight
/// first, then most total, then by name. A tree that is turned round gives what it gave before, and
/// one of callers the function that is called as the one where samples end.
pub fn functions(tree: &CallTree) -> Vec<FunctionShare> {
    let mut shares: FxHashMap<LabelId, FunctionShare> = FxHashMap::default();
    // How often each label stands on the current path: only its outermost node adds to the total.
    let mut on_path: Vec<u32> = vec![0; tree.labels().len()];
    let mut path: Vec<LabelId> = Vec::new();
    for node in &tree.nodes()[1..] {
        for label in path.drain(node.depth as usize - 1..) {
            on_path[label.index()] -= 1;
        }
        path.push(node.label);
        let seen = &mut on_path[node.label.index()];
        *seen += 1;
        let zero = Weight(0);
        let share = shares.entry(node.label);
        let share =
            share.or_insert(FunctionShare { label: node.label, self_weight: zero, total: zero });
        share.self_weight += match tree.is_turned() {
            true if node.depth == 1 => node.total,
            true => zero,
            false => node.self_weight,
        };
        if *seen == 1 {
            share.total += node.total;
        }
    }
    let is_mark = |share: &FunctionShare| {
        tree.labels()[share.label.index()].kind == FrameKind::Mark && share.self_weight == Weight(0)
    };
    let mut shares: Vec<FunctionShare> =
        shares.into_values().filter(|share| !is_mark(share)).collect();
    shares.sort_by(|a, b| {
        let weights = (b.self_weight, b.total).cmp(&(a.self_weight, a.total));
        weights.then_with(|| tree.labels()[a.label.index()].cmp(&tree.labels()[b.label.index()]))
    });
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::tests::profile_of;
    use crate::call_tree::{SiblingOrder, TreeOptions};

    #[test]
    fn recursion_counts_once_in_the_total() {
        let profile = profile_of(&[("c;main;f;f;g", 3), ("c;main;f", 2), ("c;main", 1)]);
        let tree = CallTree::from_profile(&profile, &TreeOptions::default());
        let shares: Vec<(&str, u64, u64)> = functions(&tree)
            .iter()
            .map(|f| {
                let name = tree.labels()[f.label.index()].name.as_str();
                (name, f.self_weight.0, f.total.0)
            })
            .collect();
        assert_eq!(shares, [("g", 3, 3), ("f", 2, 5), ("main", 1, 6)]);
    }

    #[test]
    fn a_turned_tree_has_the_functions_of_the_stacks() {
        let profile = profile_of(&[("c;main;f;f;g", 3), ("c;main;f", 2), ("c;main", 1)]);
        let tree = CallTree::from_profile(&profile, &TreeOptions::default());
        let shares = |tree: &CallTree| -> Vec<(String, u64, u64)> {
            let share = |f: &FunctionShare| {
                (tree.labels()[f.label.index()].name.clone(), f.self_weight.0, f.total.0)
            };
            functions(tree).iter().map(share).collect()
        };
        assert_eq!(shares(&tree.reversed(SiblingOrder::Name)), shares(&tree));
        let callers = [("f".to_owned(), 5, 5), ("main".to_owned(), 0, 5)];
        assert_eq!(shares(&tree.callers("f", SiblingOrder::Name)), callers);
    }
}
