//! What a node weighed before and weighs after, in one measure, and which widths follow.

use flame_diff::{DiffNode, DiffTree, Evidence, Presence, Weights};
use flame_message::ValueScale;
use flame_profile::Weight;

use super::{ColourBy, DiffPicture, DiffView};
use crate::layout::Shape;

/// Two profiles with what their picture needs of them at every turn.
#[derive(Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) tree: &'a DiffTree,
    pub(crate) picture: DiffPicture,
    /// The factor of before, as the script gets it.
    pub(crate) numerator: f64,
    pub(crate) denominator: f64,
    /// All of before in the measure of after: what shares are of.
    pub(crate) whole: f64,
    /// The largest change of self weight and of a total, among the real ones if there are any.
    pub(crate) most: [f64; 2],
    /// What vanished, in the measure of after, and what is new.
    pub(crate) vanished: f64,
    pub(crate) added: f64,
    /// How weights are written.
    pub(crate) scale: ValueScale,
    /// How those of before are written, where they are another value.
    pub(crate) scale_before: Option<ValueScale>,
}

/// How sure a change is, as the script gets it: 0 = not tested, then could be noise, real, and
/// real with a p-value below a tenth, 0.05, 0.01, 0.001, 0.0001.
pub(crate) type Level = u8;

/// What could be noise.
pub(crate) const NOISE: Level = 1;

/// The level of what was tested.
pub(crate) fn level(evidence: Evidence) -> Level {
    if !evidence.is_real() {
        return NOISE;
    }
    let limits = [0.1, 0.05, 0.01, 0.001, 0.0001];
    let exceeded = limits.iter().filter(|limit| evidence.p() < **limit);
    exceeded.fold(2, |level, _| level + 1)
}

impl<'a> Sides<'a> {
    pub(crate) fn new(
        tree: &'a DiffTree,
        picture: DiffPicture,
        count_name: Option<&str>,
    ) -> Sides<'a> {
        let (before, after) = (&tree.before().value_type, &tree.after().value_type);
        let scale = |value| ValueScale::with(value, tree.decimals(), count_name);
        let mut sides = Sides {
            tree,
            picture,
            numerator: tree.scale().numerator() as f64,
            denominator: tree.scale().denominator() as f64,
            whole: 0.0,
            most: [0.0; 2],
            vanished: 0.0,
            added: 0.0,
            scale: scale(after),
            scale_before: (before != after).then(|| scale(before)),
        };
        sides.whole = sides.scaled(tree.root().before.total);
        sides.sum_up();
        sides
    }

    /// A weight of before in the measure of after.
    pub(crate) fn scaled(&self, before: Weight) -> f64 {
        before.0 as f64 * self.numerator / self.denominator
    }

    /// What was added to a weight, in the measure of after.
    ///
    /// The model knows it exactly; this is what the script can compute as well.
    pub(crate) fn change(&self, before: Weight, after: Weight) -> f64 {
        let (from, to) = (self.scaled(before), after.0 as f64);
        // Fractions are off in their last digits.
        if (to - from).abs() <= 1e-9 * from.max(to) { 0.0 } else { to - from }
    }

    pub(crate) fn node(&self, index: usize) -> &'a DiffNode {
        &self.tree.nodes()[index]
    }

    /// The change of a node in that respect, and how sure it is.
    pub(crate) fn change_by(&self, node: &DiffNode, by: ColourBy) -> (f64, Level) {
        let (of, evidence): (fn(Weights) -> Weight, _) = match by {
            ColourBy::SelfWeight => (|weights| weights.self_weight, node.self_evidence),
            ColourBy::Total => (|weights| weights.total, node.total_evidence),
        };
        (self.change(of(node.before), of(node.after)), level(evidence))
    }

    /// One pass for all that the whole tree has to be looked at for.
    fn sum_up(&mut self) {
        // Chunks of one size, whatever the machine: sums of fractions depend on it.
        let chunks = self.tree.nodes().chunks(CHUNK).collect();
        let mut sums = Sums::default();
        for chunk in flame_threads::map(chunks, |nodes| self.sums(nodes)) {
            sums.add(&chunk);
        }
        let Sums { real, any, vanished, added } = sums;
        (self.vanished, self.added) = (vanished, added);
        self.most = [0, 1].map(|at| if real[at] > 0.0 { real[at] } else { any[at] });
    }

    fn sums(&self, nodes: &[DiffNode]) -> Sums {
        let mut sums = Sums::default();
        for node in nodes {
            match node.presence() {
                Presence::Both => {}
                Presence::New => sums.added += node.after.self_weight.0 as f64,
                Presence::Vanished => sums.vanished += self.scaled(node.before.self_weight),
            }
            for (at, by) in [ColourBy::SelfWeight, ColourBy::Total].into_iter().enumerate() {
                let (change, level) = self.change_by(node, by);
                sums.any[at] = sums.any[at].max(change.abs());
                if level != NOISE {
                    sums.real[at] = sums.real[at].max(change.abs());
                }
            }
        }
        sums
    }

    /// The width that is a node's own.
    fn own_width(&self, view: DiffView, node: &DiffNode) -> f64 {
        let after = node.after.self_weight.0 as f64;
        match view {
            DiffView::Union if node.after.total == Weight(0) => {
                self.scaled(node.before.self_weight)
            }
            DiffView::Before => self.scaled(node.before.self_weight),
            DiffView::Delta => self.change(node.before.self_weight, node.after.self_weight).abs(),
            _ => after,
        }
    }
}

/// This many nodes are looked at in one go.
const CHUNK: usize = 1 << 14;

/// What is known of some nodes together.
#[derive(Default)]
struct Sums {
    /// The largest change of self weight and of a total: of the real ones, and of all.
    real: [f64; 2],
    any: [f64; 2],
    vanished: f64,
    added: f64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        for at in 0..2 {
            self.real[at] = self.real[at].max(other.real[at]);
            self.any[at] = self.any[at].max(other.any[at]);
        }
        self.vanished += other.vanished;
        self.added += other.added;
    }
}

/// The widths of one graph of a picture.
#[derive(Debug)]
pub(crate) struct Pane<'a> {
    tree: &'a DiffTree,
    /// For each node its width.
    totals: Vec<f64>,
}

impl<'a> Pane<'a> {
    pub(crate) fn new(sides: &Sides<'a>, view: DiffView) -> Pane<'a> {
        let nodes = sides.tree.nodes();
        let mut totals: Vec<f64> = nodes.iter().map(|node| sides.own_width(view, node)).collect();
        // From the last to the first, as the script does: sums of fractions depend on the order.
        for index in (1..nodes.len()).rev() {
            totals[nodes[index].parent.index()] += totals[index];
        }
        Pane { tree: sides.tree, totals }
    }
}

impl Shape for Pane<'_> {
    type Sum = f64;

    fn end(&self, node: usize) -> usize {
        self.tree.nodes()[node].end as usize
    }

    fn width(&self, node: usize) -> f64 {
        self.totals[node]
    }

    fn number(sum: f64) -> f64 {
        sum
    }
}
