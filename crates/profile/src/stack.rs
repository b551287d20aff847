//! Stacks interned as parent-linked nodes: a stack costs one node beyond its longest known prefix.

use rustc_hash::FxHashMap;

use crate::ids::StackId;

/// A set of stacks over entries of type `E` (a location, a raw address), outermost entry first.
///
/// Node 0 is the empty stack. A node's parent always has a smaller id.
#[derive(Clone, Debug)]
pub struct StackTable<E> {
    nodes: Vec<(StackId, Option<E>)>,
    children: FxHashMap<(StackId, E), StackId>,
}

impl<E: Copy + Eq + std::hash::Hash> Default for StackTable<E> {
    fn default() -> Self {
        StackTable { nodes: vec![(StackId::EMPTY, None)], children: FxHashMap::default() }
    }
}

impl<E: Copy + Eq + std::hash::Hash> StackTable<E> {
    /// The stack that is `parent` with `entry` called from its innermost one.
    pub fn push(&mut self, parent: StackId, entry: E) -> StackId {
        let next = StackId::from_index(self.nodes.len());
        let id = *self.children.entry((parent, entry)).or_insert(next);
        if id == next {
            self.nodes.push((parent, Some(entry)));
        }
        id
    }

    /// The stack without its innermost entry; the empty stack is its own parent.
    pub fn parent(&self, id: StackId) -> StackId {
        self.nodes.get(id.index()).map_or(StackId::EMPTY, |node| node.0)
    }

    /// The innermost entry; `None` for the empty stack.
    pub fn entry(&self, id: StackId) -> Option<E> {
        self.nodes.get(id.index()).and_then(|node| node.1)
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
        let node = |(index, (parent, entry)): (usize, &(StackId, Option<E>))| {
            Some((StackId::from_index(index), *parent, (*entry)?))
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
        assert_eq!(table.entries(ac).collect::<String>(), "cm");
        assert_eq!(table.len(), 4);
    }
}
