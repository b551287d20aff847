//! Grown nodes into pre-order, equal siblings merged on the way.
//!
//! Nodes that are grown from the lines of a file are in pre-order already, and most parents have
//! children of different names in the right order: such subtrees are copied as they are. Elsewhere
//! a merged node stands for a group of grown nodes on the same path; its children are those of the
//! whole group, sorted by a key of their label and grouped again. Every node is touched a few
//! times, in passes over dense arrays; there is no hash table.

use super::builder::Grown;
use super::{Before, LabelId, Node, NodeId, SiblingOrder};
use crate::ids::narrow;
use crate::units::Weight;

/// The merge of a grown tree.
pub(super) struct Merge<'k> {
    /// In pre-order.
    nodes: Vec<Grown>,
    /// For each node its weight before; empty or shorter where the others have none.
    before: Vec<Weight>,
    /// For each node one past the last node below it.
    ends: Vec<u32>,
    /// For each node when it was grown; `None` = in this order.
    grown: Option<Vec<u32>>,
    /// For each label what siblings are sorted by, and what merged nodes have for it; equal only for
    /// equal labels.
    keys: &'k [u32],
}

/// A group of grown nodes that becomes one node.
struct Group {
    /// Where it starts in the list of waiting nodes, which it reaches the end of.
    start: usize,
    parent: NodeId,
    depth: u32,
    /// The self weight of the parent right before it.
    gap: Weight,
}

/// The merged tree so far.
pub(super) struct Merged {
    pub(super) nodes: Vec<Node>,
    /// Their weights before, where there are such.
    pub(super) before: Vec<Before>,
    /// See [`super::CallTree::gaps`]; empty unless the order is that of time.
    pub(super) gaps: Vec<Weight>,
}

impl<'k> Merge<'k> {
    /// Nodes, a parent before its children, the root first; `keys` has one for each label.
    pub(super) fn new(nodes: Vec<Grown>, before: Vec<Weight>, keys: &'k [u32]) -> Merge<'k> {
        if let Some(ends) = subtree_ends(&nodes) {
            return Merge { nodes, before, ends, grown: None, keys };
        }
        let (nodes, grown) = in_pre_order(&nodes);
        let weight = |id: &u32| before.get(*id as usize).copied().unwrap_or_default();
        let before = if before.is_empty() { before } else { grown.iter().map(weight).collect() };
        let ends = subtree_ends(&nodes).expect("the nodes were put in pre-order");
        Merge { nodes, before, ends, grown: Some(grown), keys }
    }

    /// The merged nodes. In the order of time, the self weight of a grown node comes after what is
    /// below it.
    pub(super) fn run(&self, order: SiblingOrder) -> Merged {
        let plain = self.plain_subtrees(order);
        let nodes = Vec::with_capacity(self.nodes.len());
        let mut merged = Merged { nodes, before: Vec::new(), gaps: Vec::new() };
        let mut waiting = vec![0_u32];
        let root = Group { start: 0, parent: NodeId::ROOT, depth: 0, gap: Weight(0) };
        let mut groups = vec![root];
        let mut siblings: Vec<(u32, u32)> = Vec::new();
        let mut gaps: Vec<Weight> = Vec::new();
        while let Some(group) = groups.pop() {
            let members = &waiting[group.start..];
            if let [only] = members
                && plain[*only as usize]
            {
                self.copy(*only, &group, &mut merged);
                waiting.truncate(group.start);
            } else {
                let id = self.push_merged(members, &group, &mut merged);
                siblings.clear();
                gaps.clear();
                let mut gap = Weight(0);
                for member in members {
                    self.push_children(*member, &mut siblings);
                    if order == SiblingOrder::Time {
                        self.push_gaps(*member, &mut gap, siblings.len(), &mut gaps);
                    }
                }
                waiting.truncate(group.start);
                self.sort(&mut siblings, order);
                push_groups(&siblings, &gaps, (id, group.depth + 1), &mut waiting, &mut groups);
            }
            if order == SiblingOrder::Time {
                merged.gaps.push(group.gap);
                merged.gaps.resize(merged.nodes.len(), Weight(0));
            }
        }
        sum_up(&mut merged);
        merged
    }

    /// What comes before the children of a member, of which there are `children` now: before the
    /// first of them what the members before did themselves since their last child.
    fn push_gaps(&self, member: u32, gap: &mut Weight, children: usize, gaps: &mut Vec<Weight>) {
        if gaps.len() < children {
            gaps.push(std::mem::take(gap));
            gaps.resize(children, Weight(0));
        }
        *gap += self.nodes[member as usize].self_weight;
    }

    /// For each node whether there is nothing to merge or to sort in all that is below it.
    fn plain_subtrees(&self, order: SiblingOrder) -> Vec<bool> {
        const NONE: u32 = u32::MAX;
        let mut plain = vec![true; self.nodes.len()];
        // For each node the key of its last child so far.
        let mut last = vec![NONE; self.nodes.len()];
        for node in self.nodes.iter().skip(1) {
            let key = self.keys[node.label as usize];
            let before = std::mem::replace(&mut last[node.parent as usize], key);
            let follows = match order {
                SiblingOrder::Time => before != key,
                // Names that come in order come once each.
                _ => before < key,
            };
            plain[node.parent as usize] &= before == NONE || follows;
        }
        for (id, node) in self.nodes.iter().enumerate().skip(1).rev() {
            plain[node.parent as usize] &= plain[id];
        }
        plain
    }

    /// Copies a subtree as it is.
    fn copy(&self, first: u32, group: &Group, merged: &mut Merged) {
        let (base, end) = (narrow(merged.nodes.len()), self.ends[first as usize]);
        let nodes = &self.nodes[first as usize..end as usize];
        let ends = &self.ends[first as usize..end as usize];
        for (node, end) in nodes.iter().zip(ends) {
            let (parent, depth) = match merged.nodes.len() == base as usize {
                true => (group.parent, group.depth),
                false => {
                    let parent = NodeId(node.parent - first + base);
                    (parent, merged.nodes[parent.index()].depth + 1)
                }
            };
            merged.nodes.push(Node {
                label: LabelId(self.keys[node.label as usize]),
                parent,
                depth,
                total: node.self_weight,
                self_weight: node.self_weight,
                end: end - first + base,
            });
        }
        if !self.before.is_empty() {
            let before = (first..end).map(|id| self.weight_before(id));
            merged
                .before
                .extend(before.map(|weight| Before { total: weight, self_weight: weight }));
        }
    }

    /// Puts a group together as one node.
    fn push_merged(&self, members: &[u32], group: &Group, merged: &mut Merged) -> NodeId {
        let id = NodeId(narrow(merged.nodes.len()));
        let weights = members.iter().map(|id| self.nodes[*id as usize].self_weight);
        let self_weight: Weight = weights.sum();
        merged.nodes.push(Node {
            label: LabelId(self.keys[self.nodes[members[0] as usize].label as usize]),
            parent: group.parent,
            depth: group.depth,
            total: self_weight,
            self_weight,
            end: id.0 + 1,
        });
        if !self.before.is_empty() {
            let self_weight: Weight = members.iter().map(|id| self.weight_before(*id)).sum();
            merged.before.push(Before { total: self_weight, self_weight });
        }
        id
    }

    fn weight_before(&self, id: u32) -> Weight {
        self.before.get(id as usize).copied().unwrap_or_default()
    }

    /// The children of a node with what they are sorted by.
    fn push_children(&self, node: u32, out: &mut Vec<(u32, u32)>) {
        let mut child = node + 1;
        while child < self.ends[node as usize] {
            out.push((self.keys[self.nodes[child as usize].label as usize], child));
            child = self.ends[child as usize];
        }
    }

    /// When a node was grown.
    fn grown_at(&self, id: u32) -> u32 {
        self.grown.as_ref().map_or(id, |grown| grown[id as usize])
    }

    fn sort(&self, siblings: &mut [(u32, u32)], order: SiblingOrder) {
        match order {
            // Members of a group stand in the order in which they were grown.
            SiblingOrder::Time => {}
            SiblingOrder::Name | SiblingOrder::Weight => siblings.sort_unstable(),
            SiblingOrder::First => {
                siblings.sort_unstable_by_key(|(key, id)| (*key, self.grown_at(*id)));
                // Grouped now: give each group the first of its times as its key.
                let (mut key, mut first) = (u32::MAX, 0);
                for sibling in siblings.iter_mut() {
                    if sibling.0 != key {
                        (key, first) = (sibling.0, self.grown_at(sibling.1));
                    }
                    sibling.0 = first;
                }
                siblings.sort_unstable();
            }
        }
    }
}

/// For each node one past the last node below it; `None` for nodes that are not in pre-order.
fn subtree_ends(nodes: &[Grown]) -> Option<Vec<u32>> {
    let mut ends: Vec<u32> = (1..=narrow(nodes.len())).collect();
    let mut sizes = vec![1_u32; nodes.len()];
    for (id, node) in nodes.iter().enumerate().skip(1).rev() {
        let parent = node.parent as usize;
        ends[parent] = ends[parent].max(ends[id]);
        sizes[parent] += sizes[id];
    }
    let is_whole = |((id, end), size): ((u32, &u32), &u32)| end - id == *size;
    (0..).zip(&ends).zip(&sizes).all(is_whole).then_some(ends)
}

/// The nodes in pre-order, those of one parent in the order in which they were grown, and where
/// each was before.
fn in_pre_order(nodes: &[Grown]) -> (Vec<Grown>, Vec<u32>) {
    // The next sibling and the first child of each; 0 = none, which the root is of nobody.
    let mut next = vec![0_u32; nodes.len()];
    let mut first = vec![0_u32; nodes.len()];
    for (id, node) in nodes.iter().enumerate().skip(1).rev() {
        next[id] = std::mem::replace(&mut first[node.parent as usize], narrow(id));
    }
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut grown = Vec::with_capacity(nodes.len());
    let mut pending = vec![(0_u32, 0_u32)];
    while let Some((id, parent)) = pending.pop() {
        let at = narrow(ordered.len());
        ordered.push(Grown { parent, ..nodes[id as usize] });
        grown.push(id);
        if next[id as usize] != 0 {
            pending.push((next[id as usize], parent));
        }
        if first[id as usize] != 0 {
            pending.push((first[id as usize], at));
        }
    }
    (ordered, grown)
}

/// Puts siblings of one key together; the last group is pushed first, so that it is popped last.
/// `gaps` has what comes before each of them, if anything does: a gap parts siblings of one key.
fn push_groups(
    siblings: &[(u32, u32)],
    gaps: &[Weight],
    (parent, depth): (NodeId, u32),
    waiting: &mut Vec<u32>,
    groups: &mut Vec<Group>,
) {
    let gap_before = |at: usize| gaps.get(at).copied().unwrap_or_default();
    let mut end = siblings.len();
    for at in (0..siblings.len()).rev() {
        let gap = gap_before(at);
        let follows = at > 0 && siblings[at - 1].0 == siblings[at].0 && gap == Weight(0);
        if !follows {
            groups.push(Group { start: waiting.len(), parent, depth, gap });
            waiting.extend(siblings[at..end].iter().map(|(_, id)| *id));
            end = at;
        }
    }
}

/// Totals and ends, from the last node to the first: a parent comes before its children.
fn sum_up(merged: &mut Merged) {
    let (nodes, before) = (&mut merged.nodes, &mut merged.before);
    for index in (1..nodes.len()).rev() {
        let Node { parent, end, total, .. } = nodes[index];
        let parent_node = &mut nodes[parent.index()];
        parent_node.end = parent_node.end.max(end);
        parent_node.total += total;
        if !before.is_empty() {
            let total = before[index].total;
            before[parent.index()].total += total;
        }
    }
}
