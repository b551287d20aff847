//! Where each box stands: a call tree into cells with left and right edges.
//!
//! Weights stay whole numbers until here. An edge is rounded once, from the sum of all weight to
//! its left, so a box can never stick out of its parent, and siblings neither overlap nor drift
//! apart. Siblings too thin to see are put together into one cell that says what it holds.

use std::ops::{Add, Range};

use flame_profile::{CallTree, NodeId, Weight, narrow};

/// A horizontal position or length in hundredths of a pixel.
pub(crate) type Units = u32;

/// A tree in pre-order whose nodes have widths. A node is at least as wide as its children
/// together.
pub(crate) trait Shape {
    /// A sum of widths.
    type Sum: Copy + Default + Add<Output = Self::Sum>;

    /// One past the position of the last node below a node.
    fn end(&self, node: usize) -> usize;

    /// The width of a node.
    fn width(&self, node: usize) -> Self::Sum;

    /// How much room there is between a node and the sibling before, or the start of its parent.
    fn gap(&self, _node: usize) -> Self::Sum {
        Self::Sum::default()
    }

    /// A width as a number.
    fn number(sum: Self::Sum) -> f64;
}

/// As wide as the weights.
impl Shape for CallTree {
    type Sum = Weight;

    fn end(&self, node: usize) -> usize {
        self.nodes()[node].end as usize
    }

    fn width(&self, node: usize) -> Weight {
        self.nodes()[node].total
    }

    fn gap(&self, node: usize) -> Weight {
        self.gaps().map_or(Weight(0), |gaps| gaps[node])
    }

    fn number(sum: Weight) -> f64 {
        sum.0 as f64
    }
}

/// What a cell stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// One node of the tree.
    Frame(NodeId),
    /// Neighbouring siblings, each too thin to draw, with everything below them.
    Thin {
        /// The first of them.
        first: NodeId,
        /// One past the last node of the run and below it.
        end: u32,
    },
    /// One node with everything above it, which is deeper than all but few samples.
    Tower(NodeId),
}

impl Content {
    /// The first node that it stands for.
    pub(crate) fn first(self) -> NodeId {
        match self {
            Content::Frame(id) | Content::Tower(id) | Content::Thin { first: id, .. } => id,
        }
    }

    /// The siblings that it stands for, from the first to one past the last node below them; `end`
    /// is one past the last node below a node.
    pub(crate) fn run(self, end: impl Fn(usize) -> usize) -> Range<usize> {
        match self {
            Content::Frame(id) | Content::Tower(id) => id.index()..end(id.index()),
            Content::Thin { first, end } => first.index()..end as usize,
        }
    }
}

/// The positions of siblings that stand beside each other, of which the nodes are given.
pub(crate) fn siblings(
    run: Range<usize>,
    end: impl Fn(usize) -> usize,
) -> impl Iterator<Item = usize> {
    let mut at = run.start;
    std::iter::from_fn(move || {
        let node = at;
        (node < run.end).then(|| {
            at = end(node);
            node
        })
    })
}

/// A box of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// What it stands for.
    pub(crate) content: Content,
    /// Row, counted from the root's, which is 0.
    pub(crate) depth: u32,
    /// Left edge, from the left edge of the root.
    pub(crate) left: Units,
    /// Right edge; never less than `left`.
    pub(crate) right: Units,
}

/// What is too narrow to be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    /// Frames are at least that wide; thinner ones are put together.
    pub(crate) frame: Units,
    /// So are runs of thin frames, which are left out otherwise; at least 1.
    pub(crate) run: Units,
}

/// The cells of a whole tree, in pre-order, siblings from left to right. A tree without width has
/// none.
pub(crate) fn layout<S: Shape>(shape: &S, width: Units, narrow: Narrow) -> Vec<Cell> {
    let total = S::number(shape.width(0));
    if total == 0.0 {
        return Vec::new();
    }
    let row = Row { shape, scale: Scale { width, total }, narrow };
    let root = Cell { content: Content::Frame(NodeId::ROOT), depth: 0, left: 0, right: width };
    let mut cells = Vec::with_capacity(USUAL_CELLS);
    let mut pending = vec![(root, S::Sum::default())];
    let mut children = Vec::new();
    while let Some((cell, start)) = pending.pop() {
        cells.push(cell);
        if let Content::Frame(node) = cell.content {
            row.above(node.index(), &cell, start, &mut children);
            pending.extend(children.drain(..).rev());
        }
    }
    cells
}

/// As many cells as most pictures of large trees have room for.
const USUAL_CELLS: usize = 1 << 13;

/// Turns the sum of the width to the left of an edge into the edge's position.
struct Scale {
    width: Units,
    total: f64,
}

impl Scale {
    /// Not decreasing in `sum`: each of the steps is not.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast takes the whole part, without a call as `floor` would be"
    )]
    fn edge(&self, sum: f64) -> Units {
        let exact = sum * f64::from(self.width) / self.total;
        ((exact + 0.5) as Units).min(self.width)
    }
}

/// What the children of a node are laid out by.
struct Row<'s, S> {
    shape: &'s S,
    scale: Scale,
    narrow: Narrow,
}

impl<S: Shape> Row<'_, S> {
    /// The cells of a node's children, each with the width to its left, into `out`.
    fn above(&self, node: usize, below: &Cell, mut start: S::Sum, out: &mut Vec<(Cell, S::Sum)>) {
        let shape = self.shape;
        // Sums of fractions may be off in their last digit.
        let edge = |sum| self.scale.edge(S::number(sum)).min(below.right);
        for child in siblings(node + 1..shape.end(node), |child| shape.end(child)) {
            start = start + shape.gap(child);
            let (next, end) = (start + shape.width(child), narrow(shape.end(child)));
            let (left, right) = (edge(start), edge(next));
            let thin = right - left < self.narrow.frame;
            let id = NodeId::from_index(narrow(child));
            let content = if thin { Content::Thin { first: id, end } } else { Content::Frame(id) };
            match out.last_mut().filter(|(before, _)| thin && before.right == left) {
                Some((Cell { content: Content::Thin { end: last, .. }, right: edge, .. }, _)) => {
                    *last = end;
                    *edge = right;
                }
                _ => out.push((Cell { content, depth: below.depth + 1, left, right }, start)),
            }
            start = next;
        }
        let is_drawn = |cell: &Cell| match cell.content {
            Content::Frame(_) | Content::Tower(_) => cell.left < cell.right,
            Content::Thin { .. } => cell.right - cell.left >= self.narrow.run,
        };
        out.retain(|(cell, _)| is_drawn(cell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trees::{Random, tree_of};

    fn describe(tree: &CallTree, width: Units, min_width: Units) -> Vec<(String, u32, u32, u32)> {
        let describe = |cell: &Cell| {
            let name = match cell.content {
                Content::Frame(id) | Content::Tower(id) => {
                    tree.label(&tree.nodes()[id.index()]).name.clone()
                }
                Content::Thin { first, end } => {
                    let frames = end as usize - first.index();
                    format!("{frames} thin {}", weight_of(tree, cell))
                }
            };
            (name, cell.depth, cell.left, cell.right)
        };
        let narrow = Narrow { frame: min_width, run: 1 };
        layout(tree, width, narrow).iter().map(describe).collect()
    }

    fn weight_of(tree: &CallTree, cell: &Cell) -> Weight {
        let run = siblings(cell.content.run(|node| tree.end(node)), |node| tree.end(node));
        run.map(|node| tree.width(node)).sum()
    }

    #[track_caller]
    fn check(stacks: &[(&str, u64)], min_width: Units, expect: &[(&str, u32, u32, u32)]) {
        let found = describe(&tree_of(stacks), 1000, min_width);
        let found: Vec<_> = found.iter().map(|(n, d, l, r)| (n.as_str(), *d, *l, *r)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn children_stand_in_name_order_from_the_left_of_their_parent() {
        let stacks = [("c;b", 2), ("c;a;x", 5), ("c", 1), ("d", 2)];
        let expect = [
            ("all", 0, 0, 1000),
            ("c", 1, 0, 800),
            ("a", 2, 0, 500),
            ("x", 3, 0, 500),
            ("b", 2, 500, 700),
            ("d", 1, 800, 1000),
        ];
        check(&stacks, 1, &expect);
    }

    #[test]
    fn thirds_share_their_edges() {
        let stacks = [("a", 1), ("b", 1), ("c", 1)];
        let expect =
            [("all", 0, 0, 1000), ("a", 1, 0, 333), ("b", 1, 333, 667), ("c", 1, 667, 1000)];
        check(&stacks, 1, &expect);
    }

    #[test]
    fn neighbours_too_thin_to_draw_are_one_cell() {
        let stacks = [("a", 20), ("b;x;y", 10), ("b;z", 5), ("c", 900), ("d", 65)];
        let expect =
            [("all", 0, 0, 1000), ("5 thin 35", 1, 0, 35), ("c", 1, 35, 935), ("d", 1, 935, 1000)];
        check(&stacks, 50, &expect);
    }

    #[test]
    fn a_run_that_is_narrower_than_asked_for_is_left_out() {
        let tree = tree_of(&[("a", 20), ("b;x;y", 10), ("b;z", 5), ("c", 900), ("d", 65)]);
        let drawn = |run| layout(&tree, 1000, Narrow { frame: 50, run }).len();
        assert_eq!((drawn(35), drawn(36)), (4, 3));
    }

    #[test]
    fn what_a_parent_does_in_between_parts_its_callees() {
        let mut reader = flame_profile::FoldedReader::new(
            flame_profile::Columns::One,
            flame_profile::SiblingOrder::Time,
        );
        reader.read(&mut &b"a 1\na;b 2\na 1\na;b 5\na 1\n"[..]).unwrap();
        let tree = reader.finish(flame_profile::ValueType::samples());
        let found = describe(&tree, 1000, 1);
        let found: Vec<_> = found.iter().map(|(n, d, l, r)| (n.as_str(), *d, *l, *r)).collect();
        let expect =
            [("all", 0, 0, 1000), ("a", 1, 0, 1000), ("b", 2, 100, 300), ("b", 2, 400, 900)];
        assert_eq!(found, expect);
        // Thin neighbours are one cell only where they touch.
        let thin = describe(&tree, 1000, 600);
        let thin: Vec<_> = thin.iter().skip(2).map(|(_, _, l, r)| (*l, *r)).collect();
        assert_eq!(thin, [(100, 300), (400, 900)]);
    }

    #[test]
    fn a_tree_without_weight_has_no_cells() {
        check(&[], 1, &[]);
    }

    #[test]
    fn weights_near_the_limit_keep_their_order() {
        let tree = tree_of(&[("a", u64::MAX / 2), ("b", u64::MAX / 2 - 7), ("c", 3)]);
        let found = describe(&tree, 118_000, 1);
        assert_eq!(found.last().map(|cell| (cell.2, cell.3)), Some((59_000, 118_000)));
    }

    /// The number of frames and their weight in the cells right above each other must add up.
    #[test]
    fn random_trees_have_no_overlap_and_lose_nothing() {
        for seed in 1..200 {
            let mut random = Random::new(seed);
            let tree = tree_of(&random.stacks(60));
            let (width, min_width) = (50 + random.below(200_000), 1 + random.below(60));
            let cells = layout(&tree, width, Narrow { frame: min_width, run: 1 });
            // The right edge that the next cell of each row must not be left of.
            let mut row_edge: Vec<Units> = Vec::new();
            let mut above: Vec<Cell> = Vec::new();
            for cell in &cells {
                above.retain(|parent| parent.depth < cell.depth);
                assert!(cell.left < cell.right, "seed {seed}: {cell:?} has no width");
                if let Some(parent) = above.last() {
                    let inside = parent.left <= cell.left && cell.right <= parent.right;
                    assert!(inside, "seed {seed}: {cell:?} sticks out of {parent:?}");
                    assert_eq!(parent.depth + 1, cell.depth, "seed {seed}: {cell:?} hangs");
                }
                row_edge.resize(row_edge.len().max(cell.depth as usize + 1), 0);
                let edge = &mut row_edge[cell.depth as usize];
                assert!(*edge <= cell.left, "seed {seed}: {cell:?} overlaps its neighbour");
                *edge = cell.right;
                above.push(*cell);
                check_size(&tree, cell, width, min_width);
            }
            check_weights(&tree, &cells, seed);
        }
    }

    #[track_caller]
    fn check_size(tree: &CallTree, cell: &Cell, width: Units, min_width: Units) {
        if let Content::Frame(_) = cell.content {
            assert!(cell.right - cell.left >= min_width.min(width));
        }
        let exact = weight_of(tree, cell).share_of(tree.total()) * f64::from(width);
        let drawn = f64::from(cell.right - cell.left);
        assert!((exact - drawn).abs() <= 1.0, "{cell:?} should be {exact} wide");
    }

    /// Self weight of the drawn frames, plus thin weight, is everything but what rounds to no
    /// width at all.
    #[track_caller]
    fn check_weights(tree: &CallTree, cells: &[Cell], seed: u64) {
        let shown: Weight = cells
            .iter()
            .map(|cell| match cell.content {
                Content::Frame(id) => tree.nodes()[id.index()].self_weight,
                Content::Thin { .. } | Content::Tower(_) => weight_of(tree, cell),
            })
            .sum();
        let lost = (tree.total() - shown).share_of(tree.total());
        assert!(shown <= tree.total(), "seed {seed}: weight was drawn twice");
        assert!(lost <= 0.05, "seed {seed}: {lost} of the weight is not drawn");
    }
}
