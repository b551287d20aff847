//! What a picture is of: one profile, or two of which the change is shown.

use flame_profile::{CallTree, Label, LabelId};

use crate::diff::Sides;

/// The tree that is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// One profile, which may have weights before.
    One(&'a CallTree),
    /// Two profiles.
    Two(&'a Sides<'a>),
}

impl<'a> Subject<'a> {
    /// How many nodes there are.
    pub(super) fn len(self) -> usize {
        match self {
            Subject::One(tree) => tree.nodes().len(),
            Subject::Two(sides) => sides.tree.nodes().len(),
        }
    }

    /// The largest sum of weights.
    pub(super) fn total(self) -> u64 {
        match self {
            Subject::One(tree) => tree.total().0,
            Subject::Two(sides) => {
                let root = sides.tree.root();
                root.before.total.max(root.after.total).0
            }
        }
    }

    /// The labels that nodes refer to.
    pub(super) fn labels(self) -> &'a [Label] {
        match self {
            Subject::One(tree) => tree.labels(),
            Subject::Two(sides) => sides.tree.labels(),
        }
    }

    /// The label of a node.
    pub(super) fn label_id(self, node: usize) -> LabelId {
        match self {
            Subject::One(tree) => tree.nodes()[node].label,
            Subject::Two(sides) => sides.node(node).label,
        }
    }

    /// The label of a node.
    pub(super) fn label(self, node: usize) -> &'a Label {
        &self.labels()[self.label_id(node).index()]
    }

    /// How many callers a node has.
    pub(super) fn depth(self, node: usize) -> u32 {
        match self {
            Subject::One(tree) => tree.nodes()[node].depth,
            Subject::Two(sides) => sides.node(node).depth,
        }
    }

    /// One past the position of the last node below a node.
    pub(super) fn end(self, node: usize) -> usize {
        match self {
            Subject::One(tree) => tree.nodes()[node].end as usize,
            Subject::Two(sides) => sides.node(node).end as usize,
        }
    }

    /// The tree, where there is one.
    pub(super) fn one(self) -> Option<&'a CallTree> {
        match self {
            Subject::One(tree) => Some(tree),
            Subject::Two(_) => None,
        }
    }

    /// The sides, where there are two.
    pub(super) fn sides(self) -> Option<&'a Sides<'a>> {
        match self {
            Subject::One(_) => None,
            Subject::Two(sides) => Some(sides),
        }
    }
}
