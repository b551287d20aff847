//! What of a comparison is the kernel's: how much that does depends on what else the machine runs, so that
//! runs of one program differ in it by far more than in the program's own functions.

use flame_profile::{FrameKind, Label, Weight};

use crate::function::outermost;
use crate::tree::DiffNode;

/// Whether most samples are the kernel's.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfKernel {
    /// Whether most samples of each node are the kernel's: of its self weight, and of its total.
    pub(crate) nodes: Vec<[bool; 2]>,
    /// The same of each label.
    pub(crate) labels: Vec<[bool; 2]>,
}

impl OfKernel {
    pub(crate) fn of(labels: &[Label], nodes: &[DiffNode]) -> OfKernel {
        let is_kernel: Vec<bool> = labels
            .iter()
            .map(|label| matches!(label.kind, FrameKind::Kernel | FrameKind::Waiting))
            .collect();
        let weight = |one: Weight, other: Weight| one.0 as f64 + other.0 as f64;
        // Of each node the samples in the kernel, there and below; callees come behind callers.
        let mut below = vec![0.0; nodes.len()];
        for (index, node) in nodes.iter().enumerate().rev() {
            if is_kernel[node.label.index()] {
                below[index] += weight(node.before.self_weight, node.after.self_weight);
            }
            if index > 0 {
                below[node.parent.index()] += below[index];
            }
        }
        let mut sums = vec![[0.0; 2]; labels.len()];
        outermost(labels.len(), nodes, |label, node, is_outermost| {
            if is_outermost {
                let weights = &nodes[node];
                sums[label.index()][0] += below[node];
                sums[label.index()][1] += weight(weights.before.total, weights.after.total);
            }
        });
        let of_node = |(node, below): (&DiffNode, &f64)| {
            let total = weight(node.before.total, node.after.total);
            [is_kernel[node.label.index()], 2.0 * below > total]
        };
        let of_label =
            |(is_kernel, [below, total]): (&bool, &[f64; 2])| [*is_kernel, 2.0 * below > *total];
        OfKernel {
            nodes: nodes.iter().zip(&below).map(of_node).collect(),
            labels: is_kernel.iter().zip(&sums).map(of_label).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;
    use crate::test_runs::diff;

    #[test]
    fn a_total_is_the_kernels_where_most_of_it_is() {
        let text = "m;reads 1\nm;reads;copy_[k] 9\nm;works 9\nm;works;copy_[k] 1\n";
        let tree = diff(text, text, Scaling::Total);
        let found = OfKernel::of(tree.labels(), tree.nodes());
        let of = |name: &str| {
            let is_it = |node: &DiffNode| tree.labels()[node.label.index()].name == name;
            let at = tree.nodes().iter().position(is_it).unwrap();
            (found.nodes[at], found.labels[tree.nodes()[at].label.index()])
        };
        assert_eq!(of("reads"), ([false, true], [false, true]));
        assert_eq!(of("works"), ([false, false], [false, false]));
        assert_eq!(of("copy"), ([true, true], [true, true]));
        // Half of it is no more than half.
        assert_eq!(of("m"), ([false, false], [false, false]));
        assert_eq!(found.nodes[0], [false, false], "the whole is no other thing than m");
    }
}
