//! Stacks interned as parent-linked nodes: a stack costs one node beyond its longest known prefix.

use rustc_hash::FxHashMap;

use crate::ids::StackId;

/// A set of stacks over entries of type `E` (a location, a raw address), outermost entry first.
///
/// Node 0 is the empty stack. A node's parent always has a smaller id.
#[derive(Clone, Debug)]
pub struct StackTable<E> {
    nodes: Vec<Node<E>>,
    children: FxHashMap<(StackId, E), StackId>,
}

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    parent: StackId,
    entry: Option<E>,
    /// The child that was asked for last. Stacks that come after one another have most of their outer
    /// frames in common, so it is the next one, too, most of the time: it saves the hash table's cache
    /// misses.
    last_child: StackId,
}

impl<E: Copy + Eq + std::hash::Hash> Default for StackTable<E> {
    fn default() -> Self {
        let root = Node { parent: StackId::EMPTY, entry: None, last_child: StackId::EMPTY };
        StackTable { nodes: vec![root], children: FxHashMap::default() }
    }
}

impl<E: Copy + Eq + std::hash::Hash> StackTable<E> {
    /// Makes room for that many more stacks.
    pub fn reserve(&mut self, stacks: usize) {
        self.nodes.reserve(stacks);
        self.children.reserve(stacks);
    }

    /// The stack that is `parent` with `entry` called from its innermost one.
    pub fn push(&mut self, parent: StackId, entry: E) -> StackId {
        let last = self.nodes.get(parent.index()).map(|node| node.last_child);
        if let Some(last) = last.filter(|last| self.entry(*last) == Some(entry)) {
            return last;
        }
        let next = StackId::from_index(self.nodes.len());
        let id = *self.children.entry((parent, entry)).or_insert(next);
        if id == next {
            self.nodes.push(Node { parent, entry: Some(entry), last_child: StackId::EMPTY });
        }
        if let Some(node) = self.nodes.get_mut(parent.index()) {
            node.last_child = id;
        }
        id
    }

    /// The stack that is `parent` with `entry` called from its innermost one, if it was pushed before.
    pub fn find(&self, parent: StackId, entry: E) -> Option<StackId> {
        self.children.get(&(parent, entry)).copied()
    }

    /// The stack without its innermost entry; the empty stack is its own parent.
    pub fn parent(&self, id: StackId) -> StackId {
        self.nodes.get(id.index()).map_or(StackId::EMPTY, |node| node.parent)
    }

    /// The innermost entry; `None` for the empty stack.
    pub fn entry(&self, id: StackId) -> Option<E> {
        self.nodes.get(id.index()).and_then(|node| node.entry)
    }

    /// The entries, innermost first.
    pub fn entries(&self, id: StackId) -> impl Iterator<Item = E> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            let entry = self.entry(at)?;
            at = self.parent(at);
            Some(entry)
        })
    }

    /// All stacks but the empty one, each with its parent and its innermost entry; parents come
    /// before their children.
    pub fn nodes(&self) -> impl Iterator<Item = (StackId, StackId, E)> + '_ {
        let node = |(index, node): (usize, &Node<E>)| {
            Some((StackId::from_index(index), node.parent, node.entry?))
        };
        self.nodes.iter().enumerate().filter_map(node)
    }

    /// How many nodes there are, the empty stack included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing but the empty stack.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefixes_are_stored_once() {
        let mut table = StackTable::default();
        let main = table.push(StackId::EMPTY, 'm');
        let ab = table.push(main, 'a');
        let ac = table.push(main, 'c');
        assert_eq!(table.push(main, 'a'), ab);
        assert_eq!((table.push(main, 'a'), table.push(main, 'c')), (ab, ac));
        assert_eq!(table.push(ac, 'a'), table.push(ac, 'a'));
        assert_ne!(table.push(StackId::EMPTY, 'a'), ab);
        assert_eq!((table.find(main, 'c'), table.find(main, 'x')), (Some(ac), None));
        let len = table.len();
        assert_eq!(table.entries(ac).collect::<String>(), "cm");
        assert_eq!(table.push(StackId::EMPTY, 'a').index(), len - 1);
        assert_eq!(table.len(), 6);
        let parents: Vec<_> = table.nodes().map(|(id, parent, _)| (id.index(), parent)).collect();
        let (aca, a) = ((4, ac), (5, StackId::EMPTY));
        assert_eq!(parents, [(1, StackId::EMPTY), (2, main), (3, main), aca, a]);
        assert!(!table.is_empty() && StackTable::<char>::default().is_empty());
    }
}
