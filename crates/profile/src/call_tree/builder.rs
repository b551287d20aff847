//! A call tree while it grows: nodes in order of creation, merged once at the end.
//!
//! A child is always a new node, without a look whether its parent has one of that name already:
//! such a look is a cache miss for every frame of a large profile. Equal siblings are merged by
//! [`TreeBuilder::finish`], which has to order siblings by name anyway.

use std::borrow::Cow;

use super::labels::Labels;
use super::merge::{Merge, Merged};
use super::{CallTree, Label, LabelId, Recursion, SiblingOrder};
use crate::frame::FrameKind;
use crate::ids::narrow;
use crate::units::{ValueType, Weight};

/// Grown trees below this many nodes are not worth merging early.
const MIN_COMPACTION: usize = 1 << 22;
/// The same where whole trees are added, most nodes of which are there already.
const MIN_COMPACTION_OF_TREES: usize = 1 << 17;

/// A node of a [`TreeBuilder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuilderNode(u32);

impl BuilderNode {
    /// The root, which stands for the whole profile.
    pub const ROOT: BuilderNode = BuilderNode(0);
}

/// A call tree while it grows.
///
/// ```
/// use flame_profile::{BuilderNode, FrameKind, SiblingOrder, TreeBuilder, ValueType, Weight};
///
/// let mut builder = TreeBuilder::new();
/// let main = builder.label("main", FrameKind::User);
/// let parse = builder.label("parse_json", FrameKind::User);
/// let outer = builder.child(BuilderNode::ROOT, main);
/// let inner = builder.child(outer, parse);
/// builder.add(inner, Weight(7));
/// let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
/// assert_eq!(tree.nodes().len(), 3);
/// assert_eq!(tree.total(), Weight(7));
/// ```
#[derive(Clone, Debug)]
pub struct TreeBuilder {
    labels: Labels,
    nodes: Vec<Grown>,
    /// For each node its self weight in the earlier profile; empty when there is none.
    before: Vec<Weight>,
    decimals: u32,
    /// How many nodes the last compaction left.
    compacted: usize,
}

/// A node; its parent has a smaller index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    pub(super) self_weight: Weight,
    pub(super) parent: u32,
    pub(super) label: u32,
}

impl Default for TreeBuilder {
    fn default() -> TreeBuilder {
        TreeBuilder::new()
    }
}

impl TreeBuilder {
    /// A root alone.
    pub fn new() -> TreeBuilder {
        let mut builder = TreeBuilder {
            labels: Labels::default(),
            nodes: Vec::new(),
            before: Vec::new(),
            decimals: 0,
            compacted: 0,
        };
        let label = builder.label("all", FrameKind::Mark).0;
        builder.nodes.push(Grown { self_weight: Weight(0), parent: 0, label });
        builder
    }

    /// A root alone, in a tree whose weights have that many decimal places.
    pub fn with_decimals(decimals: u32) -> TreeBuilder {
        TreeBuilder { decimals, ..TreeBuilder::new() }
    }

    /// The id of a label, new or known.
    pub fn label(&mut self, name: &str, kind: FrameKind) -> LabelId {
        LabelId(self.labels.number(name, kind))
    }

    /// The same for a label that is most likely new.
    pub(crate) fn new_label(&mut self, name: String, kind: FrameKind) -> LabelId {
        LabelId(self.labels.number_of_new(Label { name, kind }))
    }

    /// For each label its place in the order of names, as far as there are labels now.
    pub(crate) fn ranks(&mut self) -> Vec<u32> {
        self.labels.ranks()
    }

    /// Makes room for that many more nodes and labels.
    pub(crate) fn reserve(&mut self, nodes: usize, labels: usize) {
        self.nodes.reserve_exact(nodes);
        self.labels.reserve(labels);
    }

    /// A new node below `parent`.
    ///
    /// # Panics
    /// At 2^32 nodes; [`TreeBuilder::compact`] keeps trees of repeated stacks far from that.
    pub fn child(&mut self, parent: BuilderNode, label: LabelId) -> BuilderNode {
        let id = narrow(self.nodes.len());
        self.nodes.push(Grown { self_weight: Weight(0), parent: parent.0, label: label.0 });
        BuilderNode(id)
    }

    /// A new node below `parent`, or the node that the path returns to if the new one would end a
    /// run of nodes that stands there twice: see [`Recursion::Collapse`].
    pub fn child_or_repeated(&mut self, parent: BuilderNode, label: LabelId) -> BuilderNode {
        // The labels from the child outwards to below the thread's name, as far as they matter,
        // and the nodes that they belong to but for the child's.
        let mut labels = vec![label.0];
        let mut nodes = Vec::new();
        let mut at = parent;
        while labels.len() < 2 * Recursion::LONGEST_RUN {
            let node = self.nodes[at.0 as usize];
            // The root has itself as its parent, and the threads' names have the root.
            if node.parent == 0 {
                break;
            }
            labels.push(node.label);
            nodes.push(at);
            at = BuilderNode(node.parent);
        }
        let is_repeated = |run: &usize| labels[..*run] == labels[*run..2 * run];
        match (1..=labels.len() / 2).find(is_repeated) {
            Some(run) => nodes[run - 1],
            None => self.child(parent, label),
        }
    }

    /// Adds to the self weight of a node.
    pub fn add(&mut self, node: BuilderNode, weight: Weight) {
        self.nodes[node.0 as usize].self_weight += weight;
    }

    /// Adds to the self weight that a node had in the earlier of two profiles.
    pub fn add_before(&mut self, node: BuilderNode, weight: Weight) {
        if self.before.len() < self.nodes.len() {
            self.before.resize(self.nodes.len(), Weight(0));
        }
        self.before[node.0 as usize] += weight;
    }

    /// Whether a node has a self weight.
    pub fn has_self_weight(&self, node: BuilderNode) -> bool {
        self.nodes[node.0 as usize].self_weight > Weight(0)
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// How many nodes there are; equal siblings may stand for one another still.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many decimal places the weights have.
    pub fn decimals(&self) -> u32 {
        self.decimals
    }

    /// Gives the weights more decimal places; false, and nothing happens, when one would not fit.
    pub fn add_decimals(&mut self, more: u32) -> bool {
        let Some(factor) = 10_u64.checked_pow(more) else { return false };
        let total: Weight = self.nodes.iter().map(|node| node.self_weight).sum();
        let before: Weight = self.before.iter().copied().sum();
        if total.max(before).0.checked_mul(factor).is_none() {
            return false;
        }
        let weights = self.nodes.iter_mut().map(|node| &mut node.self_weight);
        weights.chain(&mut self.before).for_each(|weight| weight.0 *= factor);
        self.decimals += more;
        true
    }

    /// Whether so many nodes have come together that [`TreeBuilder::compact`] is due.
    pub fn is_crowded(&self) -> bool {
        self.nodes.len() >= MIN_COMPACTION.max(2 * self.compacted)
    }

    /// The same for trees that are appended to one another: memory is to grow with the sum of them, not
    /// with their number.
    pub fn is_crowded_with_trees(&self) -> bool {
        self.nodes.len() >= MIN_COMPACTION_OF_TREES.max(2 * self.compacted)
    }

    /// Merges equal siblings now, so that memory grows with distinct stacks and not with the
    /// length of the input. The nodes given out so far are no longer valid.
    pub fn compact(&mut self) {
        // Equal labels have equal numbers, which is all that merging in this order asks for.
        let numbers: Vec<u32> = (0..narrow(self.labels.len())).collect();
        let nodes = std::mem::take(&mut self.nodes);
        let merge = Merge::new(nodes, std::mem::take(&mut self.before), &numbers);
        let Merged { nodes, before, .. } = merge.run(SiblingOrder::First);
        let grown = |node: &super::Node| Grown {
            self_weight: node.self_weight,
            parent: node.parent.0,
            label: node.label.0,
        };
        self.nodes = nodes.iter().map(grown).collect();
        self.before = before.iter().map(|before| before.self_weight).collect();
        self.compacted = self.nodes.len();
    }

    /// A tree that grows on. The order of its siblings is that of their names when it is finished.
    pub(crate) fn of_tree(tree: CallTree) -> TreeBuilder {
        let CallTree { labels, nodes, before, decimals, .. } = tree;
        let mut builder = TreeBuilder::with_decimals(decimals);
        let labels: Vec<u32> =
            labels.into_iter().map(|label| builder.labels.number_of_new(label)).collect();
        let grown = |node: &super::Node| Grown {
            self_weight: node.self_weight,
            parent: node.parent.0,
            label: labels[node.label.index()],
        };
        builder.nodes = nodes.iter().map(grown).collect();
        let before = before.iter().flatten().map(|before| before.self_weight);
        builder.before = before.collect();
        builder
    }

    /// Adds all nodes of another tree, behind those that are here already.
    pub fn append(&mut self, mut other: TreeBuilder) {
        let (here, there) = (self.decimals, other.decimals);
        let fit = self.add_decimals(there.saturating_sub(here))
            && other.add_decimals(here.saturating_sub(there));
        if !fit {
            // Sums that need more than 64 bits: the total shows it, see `CallTree::is_too_large`.
            self.nodes[0].self_weight = Weight(u64::MAX);
        }
        let of_other = other.labels.iter();
        let labels: Vec<u32> =
            of_other.map(|label| self.labels.number(&label.name, label.kind)).collect();
        // All nodes of both have numbers.
        let offset = narrow(self.nodes.len() + other.nodes.len() - 1) - narrow(other.nodes.len());
        self.nodes[0].self_weight += other.nodes[0].self_weight;
        if !other.before.is_empty() || !self.before.is_empty() {
            self.before.resize(self.nodes.len(), Weight(0));
            other.before.resize(other.nodes.len(), Weight(0));
            self.before[0] += other.before[0];
            self.before.extend(&other.before[1..]);
        }
        self.nodes.extend(other.nodes[1..].iter().map(|node| Grown {
            self_weight: node.self_weight,
            parent: if node.parent == 0 { 0 } else { node.parent + offset },
            label: labels[node.label as usize],
        }));
    }

    /// Changes the names of all nodes but the root; those that become equal are merged by
    /// [`TreeBuilder::finish`].
    pub fn rename(&mut self, name: impl Fn(&str) -> Cow<'_, str>) {
        let labels = std::mem::take(&mut self.labels).into_vec();
        let mut renamed = Vec::with_capacity(labels.len());
        for (index, label) in labels.iter().enumerate() {
            let new = if index > 0 { name(&label.name) } else { Cow::Borrowed(&*label.name) };
            renamed.push(self.labels.number(&new, label.kind));
        }
        for node in &mut self.nodes {
            node.label = renamed[node.label as usize];
        }
    }

    /// Gives the node that was added first another name.
    pub(super) fn rename_first(&mut self, name: &str) {
        if let Some(first) = self.nodes.get(1) {
            let label = self.labels.iter().nth(first.label as usize);
            let kind = label.map_or(FrameKind::Mark, |label| label.kind);
            self.nodes[1].label = self.labels.number(name, kind);
        }
    }

    /// Merges equal siblings, orders them and sums the weights up.
    pub fn finish(mut self, value_type: ValueType, order: SiblingOrder) -> CallTree {
        let first = if order == SiblingOrder::Weight { SiblingOrder::Name } else { order };
        let keys = match first {
            SiblingOrder::Name => self.labels.ranks(),
            _ => (0..narrow(self.labels.len())).collect(),
        };
        let has_before = !self.before.is_empty();
        // The labels take the order of their keys, and nodes refer to them by these.
        let merged = Merge::new(self.nodes, self.before, &keys).run(first);
        let Merged { nodes, before, gaps } = merged;
        let before = has_before.then_some(before);
        let gaps = Some(gaps).filter(|gaps| gaps.iter().any(|gap| *gap > Weight(0)));
        let labels = self.labels.into_order_of(&keys);
        let decimals = self.decimals;
        let tree = CallTree { value_type, decimals, labels, nodes, before, gaps, is_turned: false };
        if order == SiblingOrder::Weight { tree.heaviest_first() } else { tree }
    }
}
