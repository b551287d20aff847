//! The call tree: stacks merged by name, one node a distinct path.
//!
//! Two frames are the same box when they have the same name and kind, whatever image, line or
//! address they came from. The tree is a trie, so siblings whose names share a prefix can never
//! split a tower, and weights stay whole numbers.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::frame::FrameKind;
use crate::ids::{FrameId, StackId, ThreadId};
use crate::profile::Profile;
use crate::units::{ValueType, Weight};

/// A label of a [`CallTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);

impl LabelId {
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

/// What the first frame of each stack is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootFrame {
    /// Write `process/thread` where a thread has another name than its process.
    pub process: bool,
    /// Put the thread id into the root frame, so that threads of one name stand apart.
    pub tid: bool,
    /// Put the process id into the root frame.
    pub pid: bool,
}

/// How a call tree is made from a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Which value weighs the boxes; `None` = the profile's default.
    pub value: Option<usize>,
    /// What the root frames say besides the thread's name: `name-PID`, `name-PID/TID` (both as
    /// `stackcollapse-perf.pl` writes them) or `name-TID`.
    pub root: RootFrame,
    /// Source lines behind the names, see [`Profile::frame_label`]; calls from different lines of
    /// a function are different boxes then.
    pub lines: bool,
    /// Whether recursion is folded.
    pub recursion: Recursion,
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

/// A call tree, its nodes in pre-order: a parent before its children, siblings in byte order of
/// their names, the nodes below a node directly behind it up to its `end`.
#[derive(Clone, Debug)]
pub struct CallTree {
    value_type: ValueType,
    labels: Vec<Label>,
    nodes: Vec<Node>,
}

impl CallTree {
    /// Merges the stacks of a profile. Samples that weigh 0 leave no node.
    pub fn from_profile(profile: &Profile, options: &TreeOptions) -> CallTree {
        let value = options.value.unwrap_or(profile.default_value);
        let mut trie = Trie::new();
        let mut labels_of_frames = FxHashMap::default();
        let mut tops: FxHashMap<(u32, StackId), u32> = FxHashMap::default();
        let mut pending = Vec::new();
        for sample in profile.samples() {
            let weight = sample.values.get(value).copied().unwrap_or(0);
            if weight == 0 {
                continue;
            }
            let root_label = trie.label(&root_name(profile, sample.thread, options.root));
            let root = trie.child(0, root_label);
            // Descend to the deepest prefix of this stack that already has a node, then come back.
            let mut at = sample.stack;
            let mut node = loop {
                if at == StackId::EMPTY {
                    break root;
                }
                if let Some(node) = tops.get(&(root, at)) {
                    break *node;
                }
                pending.push(at);
                at = profile.stacks().parent(at);
            };
            while let Some(stack) = pending.pop() {
                if let Some(location) = profile.stacks().entry(stack) {
                    for frame in profile.location(location).frames.iter().rev() {
                        let label =
                            trie.frame_label(profile, *frame, options.lines, &mut labels_of_frames);
                        node = match options.recursion {
                            Recursion::Keep => trie.child(node, label),
                            Recursion::Collapse => trie.child_or_repeated(node, label),
                        };
                    }
                }
                tops.insert((root, stack), node);
            }
            trie.nodes[node as usize].self_weight += Weight(weight);
        }
        let value_type = profile.value_types().get(value).cloned();
        trie.finish(value_type.unwrap_or_else(ValueType::samples))
    }

    /// What the weights mean.
    pub fn value_type(&self) -> &ValueType {
        &self.value_type
    }

    /// The nodes in pre-order; the first is the root. Never empty.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The labels that nodes refer to, each once.
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

    /// The greatest depth of a node; 0 when there is only the root.
    pub fn max_depth(&self) -> u32 {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    /// The children of a node with their ids, in byte order of their names.
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

fn root_name(profile: &Profile, thread: ThreadId, root: RootFrame) -> Label {
    let thread = profile.thread(thread);
    let mut name = profile.text(thread.name).to_owned();
    let process = thread.process.filter(|process| root.process && *process != thread.name);
    if let Some(process) = process {
        name = format!("{}/{name}", profile.text(process));
    }
    let pid = thread.pid.filter(|_| root.pid).map(|pid| pid.to_string());
    let tid = thread.tid.filter(|_| root.tid).map(|tid| tid.to_string());
    let ids: Vec<String> = pid.into_iter().chain(tid).collect();
    if !ids.is_empty() {
        name = format!("{name}-{}", ids.join("/"));
    }
    Label { name, kind: FrameKind::Mark }
}

/// The tree while it grows: nodes in order of creation, children found by hash.
struct Trie {
    labels: IndexSet<Label, FxBuildHasher>,
    nodes: Vec<TrieNode>,
    children: FxHashMap<(u32, u32), u32>,
}

struct TrieNode {
    label: u32,
    parent: u32,
    self_weight: Weight,
}

impl Trie {
    fn new() -> Trie {
        let mut trie =
            Trie { labels: IndexSet::default(), nodes: Vec::new(), children: FxHashMap::default() };
        let label = trie.label(&Label { name: "all".to_owned(), kind: FrameKind::Mark });
        trie.nodes.push(TrieNode { label, parent: 0, self_weight: Weight(0) });
        trie
    }

    fn label(&mut self, label: &Label) -> u32 {
        match self.labels.get_index_of(label) {
            Some(index) => index as u32,
            None => self.labels.insert_full(label.clone()).0 as u32,
        }
    }

    fn frame_label(
        &mut self,
        profile: &Profile,
        frame: FrameId,
        lines: bool,
        known: &mut FxHashMap<FrameId, u32>,
    ) -> u32 {
        *known.entry(frame).or_insert_with(|| {
            let frame = profile.frame(frame);
            let name = profile.frame_label(frame, lines).into_owned();
            self.labels.insert_full(Label { name, kind: frame.kind }).0 as u32
        })
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let id = *self.children.entry((parent, label)).or_insert(next);
        if id == next {
            self.nodes.push(TrieNode { label, parent, self_weight: Weight(0) });
        }
        id
    }

    /// The child, or the node that the path returns to if the child would end a run of frames that
    /// stands there twice.
    fn child_or_repeated(&mut self, parent: u32, label: u32) -> u32 {
        // The labels from the child outwards to below the thread's name, as far as they matter,
        // and the nodes that they belong to but for the child's.
        let mut labels = vec![label];
        let mut nodes = Vec::new();
        let mut at = parent;
        while labels.len() < 2 * Recursion::LONGEST_RUN {
            let node = &self.nodes[at as usize];
            // The root has itself as its parent, and the threads' names have the root.
            if node.parent == 0 {
                break;
            }
            labels.push(node.label);
            nodes.push(at);
            at = node.parent;
        }
        let is_repeated = |run: &usize| labels[..*run] == labels[*run..2 * run];
        match (1..=labels.len() / 2).find(is_repeated) {
            Some(run) => nodes[run - 1],
            None => self.child(parent, label),
        }
    }

    /// Children have larger ids than their parents, so one pass backwards sums the totals.
    fn totals(&self) -> Vec<Weight> {
        let mut totals: Vec<Weight> = self.nodes.iter().map(|node| node.self_weight).collect();
        for index in (1..self.nodes.len()).rev() {
            let total = totals[index];
            totals[self.nodes[index].parent as usize] += total;
        }
        totals
    }

    /// Orders labels once, so that siblings sort by a number.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.labels.len() as u32).collect();
        order.sort_by_key(|index| &self.labels[*index as usize]);
        let mut ranks = vec![0; order.len()];
        for (rank, index) in order.into_iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        ranks
    }

    fn finish(self, value_type: ValueType) -> CallTree {
        let totals = self.totals();
        let ranks = self.ranks();
        // All nodes but the root, grouped by parent, siblings in reverse order: popping from a
        // stack of them then visits in pre-order.
        let mut order: Vec<u32> = (1..self.nodes.len() as u32).collect();
        let rank_of = |id: u32| ranks[self.nodes[id as usize].label as usize];
        order.sort_unstable_by_key(|id| (self.nodes[*id as usize].parent, rank_of(*id)));
        let mut first = vec![0u32; self.nodes.len() + 1];
        for id in &order {
            first[self.nodes[*id as usize].parent as usize + 1] += 1;
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut stack = vec![(0u32, NodeId::ROOT, 0u32)];
        while let Some((old, parent, depth)) = stack.pop() {
            let id = NodeId(nodes.len() as u32);
            let node = &self.nodes[old as usize];
            nodes.push(Node {
                label: LabelId(node.label),
                parent,
                depth,
                total: totals[old as usize],
                self_weight: node.self_weight,
                end: id.0 + 1,
            });
            let range = first[old as usize] as usize..first[old as usize + 1] as usize;
            stack.extend(order[range].iter().rev().map(|child| (*child, id, depth + 1)));
        }
        for index in (1..nodes.len()).rev() {
            let (parent, end) = (nodes[index].parent, nodes[index].end);
            let parent = &mut nodes[parent.index()];
            parent.end = parent.end.max(end);
        }
        CallTree { value_type, labels: self.labels.into_iter().collect(), nodes }
    }
}

#[cfg(test)]
pub(crate) mod tests;
