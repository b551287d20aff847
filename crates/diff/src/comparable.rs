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
