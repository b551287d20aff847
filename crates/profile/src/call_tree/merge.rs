//! Grown nodes into pre-order, equal siblings merged on the way.
//!
//! A merged node stands for a group of grown nodes on the same path; its children are those of the
//! whole group, sorted by a key of their label and grouped again. Every node is touched a few
//! times, in passes over dense arrays; there is no hash table.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::builder::Grown;
use super::{Before, Label, LabelId, Node, NodeId, SiblingOrder};
use crate::units::Weight;

/// The merge of a grown tree.
pub(super) struct Merge<'b> {
    nodes: &'b [Grown],
    order: SiblingOrder,
    /// For each label what siblings are sorted by; equal only for equal labels.
    keys: Vec<u32>,
    /// The children of all nodes, those of one parent together and in order of creation.
    children: Vec<u32>,
    /// For each node where its children start; one more entry ends the last.
    first: Vec<u32>,
}

/// A group of grown nodes that becomes one node.
struct Group {
    /// Where it starts in the list of waiting nodes, which it reaches the end of.
    start: usize,
    parent: NodeId,
    depth: u32,
}

impl<'b> Merge<'b> {
    /// Siblings are sorted by the numbers of their labels unless [`Merge::rank_by`] is called.
    pub(super) fn new(nodes: &'b [Grown], labels: usize, order: SiblingOrder) -> Merge<'b> {
        let mut first = vec![0_u32; nodes.len() + 1];
        for node in &nodes[1..] {
            first[node.parent as usize + 1] += 1;
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut children = vec![0_u32; nodes.len() - 1];
        // Each start moves on to the next one's, which shifts the array by one.
        for (id, node) in nodes.iter().enumerate().skip(1) {
            let slot = &mut first[node.parent as usize];
            children[*slot as usize] = id as u32;
            *slot += 1;
        }
        first.pop();
        first.insert(0, 0);
        Merge { nodes, order, keys: (0..labels as u32).collect(), children, first }
    }

    /// Sorts siblings by name, then by kind.
    pub(super) fn rank_by(&mut self, labels: &IndexSet<Label, FxBuildHasher>) {
        // Most comparisons end within the first bytes, which then lie beside each other.
        let head = |label: &Label| {
            let mut head = [0; 16];
            let name = label.name.as_bytes();
            let length = name.len().min(head.len());
            head[..length].copy_from_slice(&name[..length]);
            u128::from_be_bytes(head)
        };
        let mut order: Vec<(u128, u32)> =
            labels.iter().zip(0..).map(|(label, index)| (head(label), index)).collect();
        let by_head = |a: &(u128, u32), b: &(u128, u32)| a.0.cmp(&b.0);
        let whole = |entry: &(u128, u32)| &labels[entry.1 as usize];
        order.sort_unstable_by(|a, b| by_head(a, b).then_with(|| whole(a).cmp(whole(b))));
        for (rank, (_, index)) in order.into_iter().enumerate() {
            self.keys[index as usize] = rank as u32;
        }
    }

    /// The merged nodes, and their weights before where `before` has those of the grown ones.
    pub(super) fn run(&self, before: &[Weight]) -> (Vec<Node>, Vec<Before>) {
        let mut merged: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut merged_before = Vec::new();
        let mut waiting = vec![0_u32];
        let mut groups = vec![Group { start: 0, parent: NodeId::ROOT, depth: 0 }];
        let mut siblings: Vec<(u32, u32)> = Vec::new();
        while let Some(group) = groups.pop() {
            let id = NodeId(merged.len() as u32);
            let members = &waiting[group.start..];
            let weights = members.iter().map(|id| self.nodes[*id as usize].self_weight);
            let self_weight: Weight = weights.sum();
            merged.push(Node {
                label: LabelId(self.nodes[members[0] as usize].label),
                parent: group.parent,
                depth: group.depth,
                total: self_weight,
                self_weight,
                end: id.0 + 1,
            });
            if !before.is_empty() {
                let of = |id: &u32| before.get(*id as usize).copied().unwrap_or_default();
                let self_weight: Weight = members.iter().map(of).sum();
                merged_before.push(Before { total: self_weight, self_weight });
            }
            siblings.clear();
            for member in members {
                let range = self.first[*member as usize]..self.first[*member as usize + 1];
                let children = &self.children[range.start as usize..range.end as usize];
                siblings.extend(children.iter().map(|child| (self.key(*child), *child)));
            }
            waiting.truncate(group.start);
            self.sort(&mut siblings);
            push_groups(&siblings, id, group.depth + 1, &mut waiting, &mut groups);
        }
        sum_up(&mut merged, &mut merged_before);
        (merged, merged_before)
    }

    fn key(&self, id: u32) -> u32 {
        self.keys[self.nodes[id as usize].label as usize]
    }

    fn sort(&self, siblings: &mut [(u32, u32)]) {
        match self.order {
            SiblingOrder::Time => siblings.sort_unstable_by_key(|(_, id)| *id),
            SiblingOrder::Name | SiblingOrder::Weight => siblings.sort_unstable(),
            SiblingOrder::First => {
                siblings.sort_unstable();
                // Grouped now: give each group the first of its ids as its key.
                let (mut key, mut first) = (u32::MAX, 0);
                for sibling in siblings.iter_mut() {
                    if sibling.0 != key {
                        (key, first) = *sibling;
                    }
                    sibling.0 = first;
                }
                siblings.sort_unstable();
            }
        }
    }
}

/// Puts siblings of one key together; the last group is pushed first, so that it is popped last.
fn push_groups(
    siblings: &[(u32, u32)],
    parent: NodeId,
    depth: u32,
    waiting: &mut Vec<u32>,
    groups: &mut Vec<Group>,
) {
    for group in siblings.chunk_by(|a, b| a.0 == b.0).rev() {
        groups.push(Group { start: waiting.len(), parent, depth });
        waiting.extend(group.iter().map(|(_, id)| *id));
    }
}

/// Totals and ends, from the last node to the first: a parent comes before its children.
fn sum_up(nodes: &mut [Node], before: &mut [Before]) {
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
