//! Two trees put together, quickly where all of one comes before all of the other.
//!
//! That is so for the halves of a sorted text, but for the path that the first ends and the second
//! starts with: the nodes of the second then follow those of the first, and nothing has to be
//! sorted or looked up.

use super::{Before, CallTree, Label, LabelId, Node, NodeId, SiblingOrder, TreeBuilder};
use crate::ids::narrow;
use crate::units::Weight;

impl CallTree {
    /// The sum of two trees with siblings in the order of their names; the value type is the first
    /// one's.
    pub(crate) fn followed_by(mut self, mut other: CallTree) -> CallTree {
        let path = self.last_path();
        let shared =
            (self.decimals == other.decimals).then(|| self.shared(&path, &other)).flatten();
        let Some(shared) = shared else { return self.merged_with(other) };
        let (labels, [here, there]) =
            united(std::mem::take(&mut self.labels), std::mem::take(&mut other.labels));
        self.labels = labels;
        for node in &mut self.nodes {
            node.label = LabelId(here[node.label.index()]);
        }
        self.add_shared(&path[..shared], &other);
        // All nodes of both have numbers.
        let offset =
            narrow(self.nodes.len() + other.nodes.len() - shared) - narrow(other.nodes.len());
        let moved = |node: &Node| Node {
            label: LabelId(there[node.label.index()]),
            parent: match path[..shared].get(node.parent.index()) {
                Some(parent) => *parent,
                None => NodeId(node.parent.0 + offset),
            },
            end: node.end + offset,
            ..*node
        };
        self.nodes.extend(other.nodes[shared..].iter().map(moved));
        if let (Some(here), Some(there)) = (&mut self.before, &other.before) {
            here.extend(&there[shared..]);
        }
        self
    }

    /// The root, its last child, the last child of that, and so on.
    fn last_path(&self) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut at = NodeId(narrow(self.nodes.len() - 1));
        while at != NodeId::ROOT {
            path.push(at);
            at = self.nodes[at.index()].parent;
        }
        path.push(NodeId::ROOT);
        path.reverse();
        path
    }

    /// How many of the first nodes of the other are the same as the first of this path, where all
    /// others of it come after all that is here; `None` where they do not.
    fn shared(&self, path: &[NodeId], other: &CallTree) -> Option<usize> {
        if self.before.is_some() != other.before.is_some() {
            return None;
        }
        let mut shared = 1;
        // The nodes of the other down to its first leaf are its first ones.
        while let (Some(last), Some(first)) = (path.get(shared), other.nodes.get(shared)) {
            if first.depth as usize != shared {
                break;
            }
            let (last, first) = (self.label(&self.nodes[last.index()]), other.label(first));
            match last.cmp(first) {
                std::cmp::Ordering::Less => break,
                std::cmp::Ordering::Equal => shared += 1,
                std::cmp::Ordering::Greater => return None,
            }
        }
        Some(shared)
    }

    /// Adds the first nodes of the other to those of a path, which are the same.
    fn add_shared(&mut self, path: &[NodeId], other: &CallTree) {
        let offset = narrow(self.nodes.len() - path.len());
        for (at, (id, more)) in path.iter().zip(&other.nodes).enumerate() {
            let node = &mut self.nodes[id.index()];
            node.total += more.total;
            node.self_weight += more.self_weight;
            // What has children besides the path has them behind all that is here.
            node.end = node.end.max(more.end + offset);
            if let (Some(here), Some(there)) = (&mut self.before, &other.before) {
                let (before, more): (&mut Before, &Before) = (&mut here[id.index()], &there[at]);
                before.total += more.total;
                before.self_weight += more.self_weight;
            }
        }
    }

    /// The sum of two trees of as many decimal places, in one pass over both side by side.
    fn laid_over(mut self, mut other: CallTree) -> CallTree {
        let (labels, places) =
            united(std::mem::take(&mut self.labels), std::mem::take(&mut other.labels));
        let trees = [&self, &other];
        let mut next =
            [0, 1].map(|tree| Next { nodes: &trees[tree].nodes, labels: &places[tree], at: 0 });
        let room = self.nodes.len() + other.nodes.len() / 2;
        let mut nodes: Vec<Node> = Vec::with_capacity(room);
        let mut before = self.before.as_ref().map(|_| Vec::<Before>::with_capacity(room));
        // The path that was walked last.
        let mut open: Vec<NodeId> = Vec::new();
        loop {
            let keys = [next[0].key(), next[1].key()];
            let key = keys[0].min(keys[1]);
            if key == Next::END {
                break;
            }
            let id = NodeId(narrow(nodes.len()));
            let mut sum = Before::default();
            let (mut total, mut self_weight) = (Weight(0), Weight(0));
            let (mut label, mut depth) = (0, 0);
            for ((next, tree), _) in
                next.iter_mut().zip(trees).zip(keys).filter(|(_, own)| *own == key)
            {
                let node = &next.nodes[next.at];
                (label, depth) = (next.labels[node.label.index()], node.depth);
                total += node.total;
                self_weight += node.self_weight;
                if let Some(before) = &tree.before {
                    sum.total += before[next.at].total;
                    sum.self_weight += before[next.at].self_weight;
                }
                next.at += 1;
            }
            open.truncate(depth as usize);
            let parent = open.last().copied().unwrap_or(NodeId::ROOT);
            let label = LabelId(label);
            nodes.push(Node { label, parent, depth, total, self_weight, end: id.0 + 1 });
            before.iter_mut().for_each(|before| before.push(sum));
            open.push(id);
        }
        for index in (1..nodes.len()).rev() {
            let Node { parent, end, .. } = nodes[index];
            let parent = &mut nodes[parent.index()];
            parent.end = parent.end.max(end);
        }
        CallTree { labels, nodes, before, ..self }
    }

    /// The sum of two trees with siblings in the order of their names.
    fn merged_with(self, other: CallTree) -> CallTree {
        if self.decimals == other.decimals && self.before.is_some() == other.before.is_some() {
            return self.laid_over(other);
        }
        let value_type = self.value_type.clone();
        let mut builder = TreeBuilder::of_tree(self);
        builder.append(TreeBuilder::of_tree(other));
        builder.finish(value_type, SiblingOrder::Name)
    }
}

/// The next node of one of two trees that are laid over one another.
struct Next<'t> {
    nodes: &'t [Node],
    /// For each label its place in both.
    labels: &'t [u32],
    at: usize,
}

impl Next<'_> {
    /// Behind the last node.
    const END: u64 = u64::MAX;

    /// Smaller for what comes first: the deeper node, which still belongs below the path that was walked
    /// last, and of siblings the first by name.
    fn key(&self) -> u64 {
        self.nodes.get(self.at).map_or(Next::END, |node| {
            u64::from(u32::MAX - 1 - node.depth) << 32 | u64::from(self.labels[node.label.index()])
        })
    }
}

/// Labels of two trees in their order, each once, and for each of a tree's its place among them.
fn united(here: Vec<Label>, there: Vec<Label>) -> (Vec<Label>, [Vec<u32>; 2]) {
    let mut places = [Vec::with_capacity(here.len()), Vec::with_capacity(there.len())];
    let mut labels = Vec::with_capacity(here.len() + there.len() / 8);
    let (mut here, mut there) = (here.into_iter().peekable(), there.into_iter().peekable());
    loop {
        let order = match (here.peek(), there.peek()) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return (labels, places),
        };
        let place = narrow(labels.len());
        let mut label = None;
        if order.is_le() {
            places[0].push(place);
            label = here.next();
        }
        if order.is_ge() {
            places[1].push(place);
            label = there.next();
        }
        labels.extend(label);
    }
}

#[cfg(test)]
mod tests;
