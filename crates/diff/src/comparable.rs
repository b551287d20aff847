//! A tree of differences as a call tree with weights before, as folded text has it.

use flame_profile::{BuilderNode, CallTree, LabelId, SiblingOrder, TreeBuilder, Weight};

use crate::tree::DiffTree;

/// Decimal places that scaled weights get, if they are not whole and there is room.
const DECIMALS: u32 = 6;

impl DiffTree {
    /// The same paths with the weights of after, and those of before scaled, each rounded on its
    /// own: to whole numbers where all of them are, to millionths where 64 bits allow it.
    pub fn to_call_tree(&self) -> CallTree {
        let most = self.whole().max(self.after.total.0 as f64);
        let is_whole = |weight: Weight| self.scale.of(weight).fract() == 0.0;
        let all_whole = self.nodes.iter().all(|node| is_whole(node.before.self_weight));
        let fits = |places: &u32| most * 10_f64.powi(*places as i32) < 1e18;
        let places = if all_whole { 0 } else { (0..=DECIMALS).rev().find(fits).unwrap_or(0) };
        let unit = 10_u64.pow(places);
        let mut builder = TreeBuilder::with_decimals(self.decimals + places);
        let label = |label: &flame_profile::Label| builder.label(&label.name, label.kind);
        let labels: Vec<LabelId> = self.labels.iter().map(label).collect();
        let mut ids = vec![BuilderNode::ROOT];
        for (index, node) in self.nodes.iter().enumerate() {
            if index > 0 {
                ids.push(builder.child(ids[node.parent.index()], labels[node.label.index()]));
            }
            builder.add(ids[index], Weight(node.after.self_weight.0.saturating_mul(unit)));
            let before = self.scale.of(node.before.self_weight) * unit as f64;
            builder.add_before(ids[index], Weight(before.round() as u64));
        }
        builder.finish(self.after.value_type.clone(), SiblingOrder::Name)
    }
}

#[cfg(test)]
mod tests {
    use crate::Scaling;
    use crate::test_runs::diff;

    /// Decimal places, then self weights of before and after of all nodes but the roots.
    #[track_caller]
    fn check(before: &str, after: &str, expect: (u32, &[(u64, u64)])) {
        let tree = diff(before, after, Scaling::Total).to_call_tree();
        let weights = tree.before().unwrap().iter().zip(tree.nodes()).skip(2);
        let weights: Vec<_> =
            weights.map(|(b, node)| (b.self_weight.0, node.self_weight.0)).collect();
        assert_eq!((tree.decimals(), &*weights), expect);
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
