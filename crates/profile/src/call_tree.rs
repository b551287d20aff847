//! The call tree: stacks merged by name, one node a distinct path.
//!
//! Two frames are the same box when they have the same name and kind, whatever image, line or
//! address they came from. The tree is a trie, so siblings whose names share a prefix can never
//! split a tower, and weights stay whole numbers. A [`TreeBuilder`] makes one.

mod builder;
mod from_profile;
mod join;
mod labels;
mod lanes;
mod merge;
mod root_name;
mod transform;
mod unsorted;

use crate::frame::FrameKind;
use crate::ids::narrow;
use crate::units::{ValueType, Weight};
pub use builder::{BuilderNode, TreeBuilder};
pub use lanes::{Lane, Run};
pub use root_name::{RootFrame, RootName};
pub use transform::TooLarge;
pub use unsorted::UnsortedStacks;

/// A label of a [`CallTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);

impl LabelId {
    /// The label at a position of [`CallTree::labels`].
    pub fn from_index(index: u32) -> LabelId {
        LabelId(index)
    }

    /// The position in [`CallTree::labels`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of a [`CallTree`]: its position in [`CallTree::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The root, which stands for the whole profile.
    pub const ROOT: NodeId = NodeId(0);

    /// The node at a position of [`CallTree::nodes`].
    pub fn from_index(index: u32) -> NodeId {
        NodeId(index)
    }

    /// The position in [`CallTree::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What stands in a box: the name as it is shown, and the kind of code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The name, without annotation.
    pub name: String,
    /// The kind of code, for colours and annotations.
    pub kind: FrameKind,
}

impl Label {
    /// Whether somebody who types `name` means this function: with or without the annotation that
    /// folded text has.
    pub fn is_called(&self, name: &str) -> bool {
        name == self.name || name.strip_prefix(&*self.name) == Some(self.kind.annotation())
    }
}

/// One distinct path. A child's weight is part of its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What stands in the box.
    pub label: LabelId,
    /// The caller; the root is its own parent.
    pub parent: NodeId,
    /// 0 for the root, 1 for the threads' names, and so on inwards.
    pub depth: u32,
    /// Weight of the samples on this path or below it.
    pub total: Weight,
    /// Weight of the samples that end exactly here.
    pub self_weight: Weight,
    /// One past the position of the last node below this one.
    pub end: u32,
}

/// How a call tree is made from a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Which value weighs the boxes; `None` = the profile's default.
    pub value: Option<usize>,
    /// What the root frames say besides the thread's name: `name-PID`, `name-PID/TID` (both as
    /// `stackcollapse-perf.pl` writes them) or `name-TID`.
    pub root: RootFrame,
    /// Source lines behind the names, see [`crate::Profile::frame_label`]; calls from different lines of
    /// a function are different boxes then.
    pub lines: bool,
    /// Whether recursion is folded.
    pub recursion: Recursion,
    /// In which order siblings stand.
    pub order: SiblingOrder,
}

/// What becomes of functions that call themselves, directly or through others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// Each call has its box.
    #[default]
    Keep,
    /// Walking inwards, as soon as a path ends with the same run of boxes twice, the second run is
    /// taken away: `f;f;f` becomes `f`, `a;b;a;b;a` becomes `a;b;a`. The shortest run goes first;
    /// runs longer than [`Recursion::LONGEST_RUN`] are not looked for. The thread's name is no
    /// part of a run.
    Collapse,
}

impl Recursion {
    /// The most functions that call each other in a circle and are folded.
    pub const LONGEST_RUN: usize = 32;
}

/// In which order siblings stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiblingOrder {
    /// In byte order of their names.
    #[default]
    Name,
    /// The heaviest first, those of one weight in byte order of their names.
    Weight,
    /// In the order in which the input first has them.
    First,
    /// In the order of the input, which is that of time: only calls that follow each other at once
    /// are merged, so a name may stand several times below one parent, and what the parent does
    /// itself in between stays in between ([`CallTree::gaps`]).
    Time,
}

impl SiblingOrder {
    /// Whether it does not matter in which order stacks come.
    pub(crate) fn is_of_names(self) -> bool {
        matches!(self, SiblingOrder::Name | SiblingOrder::Weight)
    }
}

/// What a node weighed in the earlier of two profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Weight of the samples on this path or below it.
    pub total: Weight,
    /// Weight of the samples that ended exactly here.
    pub self_weight: Weight,
}

/// A call tree, its nodes in pre-order: a parent before its children, siblings in byte order of
/// their names unless another [`SiblingOrder`] was asked for, the nodes below a node directly
/// behind it up to its `end`.
#[derive(Clone, Debug)]
pub struct CallTree {
    value_type: ValueType,
    decimals: u32,
    labels: Vec<Label>,
    nodes: Vec<Node>,
    before: Option<Vec<Before>>,
    gaps: Option<Vec<Weight>>,
    is_turned: bool,
}

impl CallTree {
    /// What the weights mean.
    pub fn value_type(&self) -> &ValueType {
        &self.value_type
    }

    /// How many decimal places the weights have: a weight of 125 is 1.25 at two places. 0 unless
    /// the counts of the input were fractions.
    pub fn decimals(&self) -> u32 {
        self.decimals
    }

    /// Whether stacks start with their leaves, as those of [`CallTree::reversed`] and
    /// [`CallTree::callers`] do: a self weight says then where stacks begin, not where they end.
    pub fn is_turned(&self) -> bool {
        self.is_turned
    }

    /// What each node weighed before, in the order of [`CallTree::nodes`]; `None` when the tree is
    /// of one profile. Nodes that are gone since have a total of 0.
    pub fn before(&self) -> Option<&[Before]> {
        self.before.as_deref()
    }

    /// For each node the self weight of its parent that comes right before it, after the sibling
    /// before; the rest of that self weight comes after the last child. `None` = all of it does,
    /// as it is in every order but [`SiblingOrder::Time`].
    pub fn gaps(&self) -> Option<&[Weight]> {
        self.gaps.as_deref()
    }

    /// The self weights in the order of time, each with its node: a node has several where its
    /// callees come in between.
    pub(super) fn pieces(&self) -> Vec<(NodeId, Weight)> {
        let mut pieces = Vec::new();
        let mut left: Vec<Weight> = self.nodes.iter().map(|node| node.self_weight).collect();
        let mut open: Vec<NodeId> = Vec::new();
        for index in 0..self.nodes.len() {
            let id = NodeId(narrow(index));
            while open.last().is_some_and(|last| self.nodes[last.index()].end <= id.0) {
                pieces.extend(open.pop().map(|last| (last, left[last.index()])));
            }
            let gap = self.gaps.as_ref().map_or(Weight(0), |gaps| gaps[index]);
            if let Some(parent) = open.last().filter(|_| gap > Weight(0)) {
                left[parent.index()] = left[parent.index()] - gap;
                pieces.push((*parent, gap));
            }
            open.push(id);
        }
        pieces.extend(open.into_iter().rev().map(|last| (last, left[last.index()])));
        pieces
    }

    /// The nodes in pre-order; the first is the root. Never empty.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The labels that nodes refer to, each once; in the order of their names in trees that were
    /// grown in an order that asks for it.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The label of a node.
    pub fn label(&self, node: &Node) -> &Label {
        &self.labels[node.label.index()]
    }

    /// The weight of the whole profile.
    pub fn total(&self) -> Weight {
        self.nodes[0].total
    }

    /// Whether its weights do not fit into 64 bits, so that none of its sums can be
    /// believed.
    pub fn is_too_large(&self) -> bool {
        let before = self.before.as_ref().and_then(|before| before.first());
        // Sums saturate.
        self.total().max(before.map_or(Weight(0), |before| before.total)) == Weight(u64::MAX)
    }

    /// The greatest depth of a node; 0 when there is only the root.
    pub fn max_depth(&self) -> u32 {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    /// The children of a node with their ids, in their order.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let end = self.nodes[node.index()].end;
        let mut at = node.0 + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let id = NodeId(at);
            let child = &self.nodes[id.index()];
            at = child.end;
            Some((id, child))
        })
    }

    /// The nodes from the root's child down to `node`, outermost first.
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut at = node;
        while at != NodeId::ROOT {
            path.push(at);
            at = self.nodes[at.index()].parent;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
pub(crate) mod tests;
