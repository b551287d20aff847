//! Call trees laid over one another: one node for each path that any of them has.
//!
//! All trees are in pre-order with siblings in the order of their names, so that the union is one
//! pass over all of them side by side, as lists are merged. Of the nodes that come next in their
//! trees the deepest is the next of the union, since it still belongs below the path that was
//! walked last; of those of one depth it is the first by name, since they have one parent.
//!
//! ```text
//!   one: a(b c(d))   next: d, depth 3   -> d, below a;c
//!   two: a(b e)      next: e, depth 2
//! ```

use flame_profile::{CallTree, Label, LabelId, NodeId};

use crate::tree::DiffNode;

/// Behind the last node of a tree.
const END: u64 = u64::MAX;

/// A tree on its way into a union.
struct Cursor<'t> {
    tree: &'t CallTree,
    /// For each label of the tree that of the union.
    labels: Vec<u32>,
    next: usize,
    /// Of the next node: smaller for what comes first in the union.
    key: u64,
}

impl Cursor<'_> {
    fn look(&mut self) {
        self.key = self.tree.nodes().get(self.next).map_or(END, |node| {
            let label = self.labels[node.label.index()];
            u64::from(u32::MAX - 1 - node.depth) << 32 | u64::from(label)
        });
    }
}

/// Which of the trees has siblings that are not in the order of their names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsorted(pub(crate) usize);

/// All labels of the trees in their order, each once, and for each tree the positions of its own.
pub(crate) fn labels(trees: &[&CallTree]) -> (Vec<Label>, Vec<Vec<u32>>) {
    let orders: Vec<Vec<u32>> = trees.iter().map(|tree| order(tree.labels())).collect();
    let mut places: Vec<Vec<u32>> = trees.iter().map(|tree| vec![0; tree.labels().len()]).collect();
    let mut union: Vec<Label> = Vec::with_capacity(orders.iter().map(Vec::len).max().unwrap_or(0));
    let mut next = vec![0_usize; trees.len()];
    let label_of = |tree: usize, at: usize| {
        orders[tree].get(at).map(|label| &trees[tree].labels()[*label as usize])
    };
    loop {
        let firsts = next.iter().enumerate().filter_map(|(tree, at)| label_of(tree, *at));
        let Some(least) = firsts.min() else { return (union, places) };
        for (tree, at) in next.iter_mut().enumerate() {
            if label_of(tree, *at) == Some(least) {
                places[tree][orders[tree][*at] as usize] = union.len() as u32;
                *at += 1;
            }
        }
        union.push(least.clone());
    }
}

/// The positions of labels in the order of their names, which most trees have them in.
fn order(labels: &[Label]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..labels.len() as u32).collect();
    if !labels.is_sorted() {
        order.sort_unstable_by_key(|label| &labels[*label as usize]);
    }
    order
}

/// Walks all trees; `visit` gets, for each path and each tree that has it, the path's node with its
/// position, the number of the tree and the position of its node.
///
/// # Errors
/// When the siblings of a tree are not in the order of their names.
pub(crate) fn walk(
    trees: &[&CallTree],
    labels: Vec<Vec<u32>>,
    mut visit: impl FnMut(&mut DiffNode, usize, usize, usize),
) -> Result<Vec<DiffNode>, Unsorted> {
    let cursor = |(tree, labels)| {
        let mut cursor = Cursor { tree, labels, next: 0, key: END };
        cursor.look();
        cursor
    };
    let mut cursors: Vec<Cursor<'_>> = trees.iter().copied().zip(labels).map(cursor).collect();
    let largest = trees.iter().map(|tree| tree.nodes().len()).max().unwrap_or(0);
    let mut nodes: Vec<DiffNode> = Vec::with_capacity(largest + largest / 8);
    // The path that was walked last, from the root inwards.
    let mut open: Vec<u32> = Vec::new();
    loop {
        let key = cursors.iter().map(|cursor| cursor.key).min().unwrap_or(END);
        if key == END {
            break;
        }
        let (depth, label) = (u32::MAX - 1 - (key >> 32) as u32, key as u32);
        let id = nodes.len() as u32;
        let sibling_before = open.get(depth as usize).map(|id| nodes[*id as usize].label);
        if sibling_before.is_some_and(|before| before.index() as u32 >= label) {
            let guilty = cursors.iter().position(|cursor| cursor.key == key);
            return Err(Unsorted(guilty.unwrap_or(0)));
        }
        close(&mut open, depth as usize, &mut nodes);
        let parent = NodeId::from_index(open.last().copied().unwrap_or(0));
        let mut node = DiffNode::new(LabelId::from_index(label), parent, depth);
        for (number, cursor) in cursors.iter_mut().enumerate() {
            if cursor.key == key {
                visit(&mut node, id as usize, number, cursor.next);
                cursor.next += 1;
                cursor.look();
            }
        }
        open.push(id);
        nodes.push(node);
    }
    close(&mut open, 0, &mut nodes);
    Ok(nodes)
}

/// Ends the nodes of a path from that depth on: nothing more comes below them.
fn close(open: &mut Vec<u32>, depth: usize, nodes: &mut [DiffNode]) {
    let end = nodes.len() as u32;
    for id in open.drain(depth.min(open.len())..) {
        nodes[id as usize].end = end;
    }
}
