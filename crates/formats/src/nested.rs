//! Stacks that stand within one another, as spans of time do and the nodes of a tree: each is a node below that
//! of its caller. Memory grows with the nodes, where whole stacks would grow with the square of their depth.

use flame_profile::narrow;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::sink::FrameIndex;

/// A stack, by its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NestedIndex(u32);

/// The innermost frame of a stack, and the stack that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// `None` for an outermost frame.
    pub(crate) above: Option<NestedIndex>,
    pub(crate) task: u32,
    pub(crate) frame: FrameIndex,
    /// Differs among equal ones that are to stay apart.
    copy: u32,
}

/// Stacks with their weights.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    /// Callers before what they call.
    nodes: IndexSet<Node, FxBuildHasher>,
    /// One for each value type and node.
    weights: Vec<u64>,
    /// Where nodes stay in their order, the last one below each.
    last: FxHashMap<(Option<NestedIndex>, u32), NestedIndex>,
    /// Where nodes stay in their order: what a node has itself comes behind what it calls, so that it goes on as
    /// another one once it has something itself and calls again.
    goes_on_as: FxHashMap<NestedIndex, NestedIndex>,
}

impl NestedIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Nested {
    /// Whether no stack weighs anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.weights.iter().all(|weight| *weight == 0)
    }

    /// The stack of a frame below another stack, or as the outermost one of a thread, with so many values. If
    /// nodes stay `in_order`, equal ones are one where they follow each other.
    pub(crate) fn node(
        &mut self,
        above: Option<NestedIndex>,
        (task, frame): (u32, FrameIndex),
        in_order: bool,
        values: usize,
    ) -> NestedIndex {
        let above = above.map(|above| if in_order { self.calling(above, values) } else { above });
        let last = self.last.get(&(above, task)).filter(|_| in_order);
        if let Some(last) = last.filter(|last| self.nodes[last.index()].frame == frame) {
            return *last;
        }
        let copy = if in_order { narrow(self.nodes.len()) } else { 0 };
        let node = self.insert(Node { above, task, frame, copy }, values);
        if in_order {
            self.last.insert((above, task), node);
        }
        node
    }

    fn insert(&mut self, node: Node, values: usize) -> NestedIndex {
        let (at, _) = self.nodes.insert_full(node);
        self.weights.resize(self.nodes.len() * values, 0);
        NestedIndex(narrow(at))
    }

    /// The node that a node goes on as.
    fn newest(&mut self, node: NestedIndex) -> NestedIndex {
        let Some(mut newest) = self.goes_on_as.get(&node).copied() else { return node };
        while let Some(next) = self.goes_on_as.get(&newest) {
            newest = *next;
        }
        self.goes_on_as.insert(node, newest);
        newest
    }

    /// The node that stands for another one that calls now.
    fn calling(&mut self, node: NestedIndex, values: usize) -> NestedIndex {
        let newest = self.newest(node);
        let at = newest.index();
        if self.weights[at * values..(at + 1) * values].iter().all(|weight| *weight == 0) {
            return newest;
        }
        let copy = narrow(self.nodes.len());
        let next = self.insert(Node { copy, ..self.nodes[at] }, values);
        self.last.insert((self.nodes[at].above, self.nodes[at].task), next);
        self.goes_on_as.insert(newest, next);
        next
    }

    pub(crate) fn add(&mut self, node: NestedIndex, weights: &[u64]) {
        let node = self.newest(node);
        let sums = &mut self.weights[node.index() * weights.len()..];
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = sum.saturating_add(*weight);
        }
    }

    /// All nodes, callers before what they call, with their weights; `None` for those that neither weigh
    /// anything themselves nor call what does.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<(&Node, &[u64])>> {
        let values = self.weights.len().checked_div(self.nodes.len()).unwrap_or(0);
        let weights = move |at: usize| &self.weights[at * values..(at + 1) * values];
        let mut weighs: Vec<bool> =
            (0..self.nodes.len()).map(|at| weights(at).iter().any(|weight| *weight > 0)).collect();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Some(above) = node.above.filter(|_| weighs[at]) {
                weighs[above.index()] = true;
            }
        }
        let nodes = self.nodes.iter().enumerate();
        nodes.map(move |(at, node)| weighs[at].then(|| (node, weights(at))))
    }
}
