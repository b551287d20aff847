//! A tree of differences as folded text with two counts a line has it.

use flame_profile::{FoldedTree, Label, LineCounts, Weight};

use crate::tree::DiffTree;

/// Decimal places that scaled weights get, if they are not whole and there is room.
const DECIMALS: u32 = 6;

/// The paths of a [`DiffTree`] with the weights of after, and those of before scaled, each rounded
/// on its own: to whole numbers where all of them are, to millionths where 64 bits allow it.
#[derive(Clone, Copy, Debug)]
pub struct Comparable<'t> {
    tree: &'t DiffTree,
    places: u32,
}

impl DiffTree {
    /// The tree with weights that can be compared as they are written.
    pub fn comparable(&self) -> Comparable<'_> {
        let most = self.whole().max(self.after.total.0 as f64);
        let is_whole = |weight: Weight| self.scale.of(weight).fract() == 0.0;
        let all_whole = self.nodes.iter().all(|node| is_whole(node.before.self_weight));
        let fits = |places: &u32| most * 10_f64.powi(*places as i32) < 1e18;
        let places = if all_whole { 0 } else { (0..=DECIMALS).rev().find(fits).unwrap_or(0) };
        Comparable { tree: self, places }
    }
}

impl FoldedTree for Comparable<'_> {
    fn labels(&self) -> &[Label] {
        &self.tree.labels
    }

    fn label(&self, node: usize) -> usize {
        self.tree.nodes[node].label.index()
    }

    fn end(&self, node: usize) -> usize {
        self.tree.nodes[node].end as usize
    }

    fn counts(&self, node: usize) -> LineCounts {
        let (node, unit) = (&self.tree.nodes[node], 10_u64.pow(self.places));
        let before = self.tree.scale.of(node.before.self_weight) * unit as f64;
        LineCounts {
            before: Weight(before.round() as u64),
            after: Weight(node.after.self_weight.0.saturating_mul(unit)),
        }
    }

    fn has_before(&self) -> bool {
        true
    }

    fn decimals(&self) -> u32 {
        self.tree.decimals + self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;
    use crate::test_runs::diff;

    /// Decimal places, then self weights of before and after of all nodes but the roots.
    #[track_caller]
    fn check(before: &str, after: &str, expect: (u32, &[(u64, u64)])) {
        let tree = diff(before, after, Scaling::Total);
        let comparable = tree.comparable();
        let counts = (2..tree.nodes().len()).map(|node| comparable.counts(node));
        let counts: Vec<_> = counts.map(|counts| (counts.before.0, counts.after.0)).collect();
        assert_eq!((comparable.decimals(), &*counts), expect);
    }

    #[test]
    fn weights_before_are_scaled_with_as_many_places_as_fit() {
        check("p;a 3\np;b 1\n", "p;a 1\np;c 7\n", (0, &[(6, 1), (2, 0), (0, 7)]));
        let thirds = [(1_333_333, 0), (2_666_667, 4_000_000)];
        check("p;a 1\np;b 2\n", "p;b 4\n", (6, &thirds));
        // A place more would make 1e18 of it.
        let large = [(12_207_031_250_000, 0), (99_987_792_968_750_000, 100_000_000_000_000_000)];
        check("p;a 1\np;b 8191\n", "p;b 1000000000000\n", (5, &large));
        check("p;a 0.1\np;b 0.2\n", "p;b 0.4\n", (7, &[(1_333_333, 0), (2_666_667, 4_000_000)]));
    }
}
