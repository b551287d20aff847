//! Stacks that come in no order, sorted before they become nodes.
//!
//! A stack that shares nothing with the one before becomes as many nodes as it has frames, and merging those costs
//! a cache miss for each. As numbers, stacks are sorted in a fraction of that time, and neighbours then share
//! most of their nodes.

use super::{BuilderNode, LabelId, TreeBuilder};
use crate::ids::narrow;
use crate::units::Weight;

/// This many frames and stacks are kept at most: 32 and 40 MiB.
const MOST_FRAMES: usize = 1 << 23;
const MOST_ROWS: usize = 1 << 20;
/// This many stacks are compared as wholes.
const FEW: usize = 12;

/// Stacks that are no nodes yet, for trees whose siblings are to stand in the order of their names.
#[derive(Debug, Default)]
pub struct UnsortedStacks {
    /// The labels of all stacks, outermost first.
    frames: Vec<u32>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// The frames that it is sorted by now.
    key: u64,
    start: u32,
    len: u32,
    /// How many frames it shares with the one before, in sorted rows.
    shared: u32,
    before: Weight,
    after: Weight,
}

impl Row {
    /// Its frames from that depth on.
    fn frames(self, frames: &[u32], depth: usize) -> &[u32] {
        &frames[self.start as usize..][..self.len as usize][depth..]
    }
}

impl UnsortedStacks {
    /// Adds a stack, outermost frame first, with what it weighed in the earlier of two profiles and what it
    /// weighs.
    ///
    /// # Panics
    /// At 2^32 frames, long after [`UnsortedStacks::is_full`].
    pub fn push(&mut self, stack: &[LabelId], before: Weight, after: Weight) {
        let (start, len) = (narrow(self.frames.len()), narrow(stack.len()));
        self.frames.extend(stack.iter().map(|label| narrow(label.index())));
        self.rows.push(Row { key: 0, start, len, shared: 0, before, after });
    }

    /// Whether there are so many that they should become nodes.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= MOST_FRAMES || self.rows.len() >= MOST_ROWS
    }

    /// Makes nodes of all stacks, in pre-order and siblings in the order of their names; no stack is left.
    /// `has_before` says whether the tree is one of two profiles.
    pub fn drain_into(&mut self, builder: &mut TreeBuilder, has_before: bool) {
        if self.rows.is_empty() {
            return;
        }
        let ranks = builder.ranks();
        let mut labels = vec![LabelId::from_index(0); ranks.len()];
        for (label, rank) in (0..).zip(&ranks) {
            labels[*rank as usize] = LabelId::from_index(label);
        }
        for frame in &mut self.frames {
            *frame = ranks[*frame as usize];
        }
        self.sort(Keys::of_ranks(labels.len()));
        let mut nodes: Vec<BuilderNode> = Vec::new();
        for row in &self.rows {
            nodes.truncate(row.shared as usize);
            let mut leaf = nodes.last().copied().unwrap_or(BuilderNode::ROOT);
            for rank in row.frames(&self.frames, row.shared as usize) {
                leaf = builder.child(leaf, labels[*rank as usize]);
                nodes.push(leaf);
            }
            builder.add(leaf, row.after);
            if has_before {
                builder.add_before(leaf, row.before);
            }
        }
        self.frames.clear();
        self.rows.clear();
    }

    /// Sorts the stacks by their frames, as many at a time as a key holds.
    fn sort(&mut self, keys: Keys) {
        let UnsortedStacks { frames, rows } = self;
        // Rows that share this many frames. What the first of them shares with the one before is known.
        let mut pending = vec![(0..rows.len(), 0)];
        while let Some((range, depth)) = pending.pop() {
            let mut start = range.start;
            let rows = &mut rows[range];
            let first = rows[0].shared;
            if rows.len() <= FEW {
                rows.sort_unstable_by(|a, b| a.frames(frames, depth).cmp(b.frames(frames, depth)));
                for at in 1..rows.len() {
                    let pair = [at - 1, at].map(|at| rows[at].frames(frames, depth));
                    rows[at].shared = narrow(depth + common(pair));
                }
            } else {
                for row in &mut *rows {
                    row.key = keys.key(row.frames(frames, depth));
                }
                rows.sort_unstable_by_key(|row| row.key);
                let mut before = 0;
                for same in rows.chunk_by_mut(|a, b| a.key == b.key) {
                    same[0].shared = narrow(depth + keys.shared(before, same[0].key));
                    before = same[0].key;
                    let end = depth + keys.frames as usize;
                    if same[0].len as usize >= end {
                        if same.len() > 1 {
                            pending.push((start..start + same.len(), end));
                        }
                    } else {
                        // Without any other frames they are the same stack.
                        same[1..].iter_mut().for_each(|row| row.shared = row.len);
                    }
                    start += same.len();
                }
            }
            rows[0].shared = first;
        }
    }
}

/// How many frames are the same at the start.
fn common([one, other]: [&[u32]; 2]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Some frames as one number, in whose order they are. Each key takes a cache miss for every stack, so it holds
/// as many frames as there is room for.
#[derive(Clone, Copy, Debug)]
struct Keys {
    /// Bits of a frame, none of which are set where there is no frame.
    bits: u32,
    frames: u32,
}

impl Keys {
    /// Of frames that are numbers below that.
    fn of_ranks(number: usize) -> Keys {
        let bits = usize::BITS - number.leading_zeros();
        Keys { bits, frames: u64::BITS / bits }
    }

    /// The first frames; where there is none, it comes before all others.
    fn key(self, frames: &[u32]) -> u64 {
        let frame = |at| frames.get(at as usize).map_or(0, |frame| u64::from(*frame) + 1);
        (0..self.frames).fold(0, |key, at| key << self.bits | frame(at))
    }

    /// How many frames are the same at the start of two keys that differ.
    fn shared(self, one: u64, other: u64) -> usize {
        let same_bits = (one ^ other).leading_zeros() - (u64::BITS - self.bits * self.frames);
        (same_bits / self.bits) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::SiblingOrder;
    use crate::frame::FrameKind;
    use crate::units::ValueType;

    /// Stacks of few functions, of which many share much and some are the same.
    fn random_stacks(random: &mut impl FnMut(usize) -> usize, most: usize) -> Vec<Vec<usize>> {
        let mut stacks: Vec<Vec<usize>> = Vec::new();
        for _ in 0..1 + random(80) {
            let mut stack = match stacks.len() {
                0 => Vec::new(),
                count => stacks[random(count)].clone(),
            };
            stack.truncate(random(stack.len() + 1));
            let more = usize::from(stack.is_empty()) + random(most);
            stack.extend((0..more).map(|_| random(4)));
            stacks.push(stack);
        }
        stacks
    }

    #[test]
    fn many_stacks_and_many_frames_are_both_enough() {
        let row = Row { key: 0, start: 0, len: 0, shared: 0, before: Weight(0), after: Weight(1) };
        let is_full = |frames: usize, rows: usize| {
            UnsortedStacks { frames: vec![0; frames], rows: vec![row; rows] }.is_full()
        };
        assert!(!is_full(MOST_FRAMES - 1, MOST_ROWS - 1));
        assert!(is_full(MOST_FRAMES, 1));
        assert!(is_full(1, MOST_ROWS));
    }

    #[test]
    fn nodes_come_in_order_and_each_once() {
        let mut state = 5_u64;
        let mut random = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % limit
        };
        for case in 0..400 {
            let stacks = random_stacks(&mut random, 1 + case % 9);
            let new_builder = || {
                let mut builder = TreeBuilder::new();
                let names = ["d", "b", "a", "c"];
                let labels = names.map(|name| builder.label(name, FrameKind::User));
                (builder, labels)
            };
            let (mut expect, labels) = new_builder();
            let (mut builder, _) = new_builder();
            let mut unsorted = UnsortedStacks::default();
            for stack in &stacks {
                let (before, after) = (Weight(random(5) as u64), Weight(random(9) as u64));
                let stack: Vec<LabelId> = stack.iter().map(|name| labels[*name]).collect();
                unsorted.push(&stack, before, after);
                let root = BuilderNode::ROOT;
                let leaf = stack.iter().fold(root, |node, label| expect.child(node, *label));
                expect.add(leaf, after);
                expect.add_before(leaf, before);
            }
            unsorted.drain_into(&mut builder, true);
            let grown = builder.len();
            let [tree, expect] = [builder, expect]
                .map(|builder| builder.finish(ValueType::samples(), SiblingOrder::Name));
            assert_eq!(grown, tree.nodes().len(), "case {case}: nothing is left to be merged");
            assert_eq!(tree.nodes(), expect.nodes(), "case {case}");
            assert_eq!(tree.before(), expect.before(), "case {case}");
        }
    }
}
