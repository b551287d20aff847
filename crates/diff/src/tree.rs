//! Two profiles as one tree.

use flame_profile::{Label, LabelId, Nanos, NodeId, ValueType, Weight};

use crate::evidence::Evidence;
use crate::function::FunctionChange;
use crate::judge::Judged;
use crate::scale::{Scale, Scaling};

/// What a path or a function weighs on one side, all runs together and as they were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Weight of the samples on this path or below it.
    pub total: Weight,
    /// Weight of the samples that end exactly here.
    pub self_weight: Weight,
}

impl Weights {
    pub(crate) fn add(&mut self, other: Weights) {
        self.total += other.total;
        self.self_weight += other.self_weight;
    }
}

/// Which sides have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Before and after.
    Both,
    /// After only.
    New,
    /// Before only.
    Vanished,
}

/// One path that at least one side has. A child's weights are part of its parent's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffNode {
    /// What stands in the box: a position of [`DiffTree::labels`].
    pub label: LabelId,
    /// The caller; the root is its own parent.
    pub parent: NodeId,
    /// 0 for the root, 1 for the threads' names, and so on inwards.
    pub depth: u32,
    /// One past the position of the last node below this one.
    pub end: u32,
    /// What it weighed before, not scaled: see [`DiffTree::scale`].
    pub before: Weights,
    /// What it weighs after.
    pub after: Weights,
    /// How sure the change of its self weight is.
    pub self_evidence: Evidence,
    /// How sure the change of its total is.
    pub total_evidence: Evidence,
}

impl DiffNode {
    pub(crate) fn new(label: LabelId, parent: NodeId, depth: u32) -> DiffNode {
        DiffNode {
            label,
            parent,
            depth,
            end: 0,
            before: Weights::default(),
            after: Weights::default(),
            self_evidence: Evidence::NONE,
            total_evidence: Evidence::NONE,
        }
    }

    /// Which sides have it.
    pub fn presence(&self) -> Presence {
        match (self.before.total, self.after.total) {
            (Weight(0), _) => Presence::New,
            (_, Weight(0)) => Presence::Vanished,
            _ => Presence::Both,
        }
    }
}

/// What is known of a side as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What its runs are called.
    pub names: Vec<String>,
    /// What its weights mean.
    pub value_type: ValueType,
    /// The weight of all of it, not scaled.
    pub total: Weight,
    /// How many samples that is, as far as it is known.
    pub samples: f64,
    /// How long was recorded, all runs together; `None` where one of them does not say.
    pub duration: Option<Nanos>,
}

/// The union of two profiles, its nodes in pre-order: a parent before its children, siblings in
/// the order of their names, the nodes below a node directly behind it up to its `end`.
///
/// Weights are as they were measured; those of before become comparable by [`DiffTree::scale`], in
/// which all changes are given. Parts add up: the changes of a node's self weight and of its
/// children's totals are that of its total, and all changes of self weight that of the whole.
#[derive(Clone, Debug)]
pub struct DiffTree {
    pub(crate) labels: Vec<Label>,
    pub(crate) nodes: Vec<DiffNode>,
    pub(crate) functions: Vec<FunctionChange>,
    pub(crate) before: Side,
    pub(crate) after: Side,
    pub(crate) decimals: u32,
    pub(crate) scaling: Scaling,
    pub(crate) scale: Scale,
    pub(crate) alpha: f64,
    pub(crate) judged: Judged,
    pub(crate) interrupts: [Weights; 2],
}

impl DiffTree {
    /// The nodes in pre-order; the first is the root. Never empty.
    pub fn nodes(&self) -> &[DiffNode] {
        &self.nodes
    }

    /// The labels that nodes refer to, each once, in the order of their names.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The label of a node.
    pub fn label(&self, node: &DiffNode) -> &Label {
        &self.labels[node.label.index()]
    }

    /// The root: all of both sides.
    pub fn root(&self) -> &DiffNode {
        &self.nodes[0]
    }

    /// The children of a node with their ids, in the order of their names.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &DiffNode)> {
        let end = self.nodes[node.index()].end;
        let mut at = node.index() as u32 + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let id = NodeId::from_index(at);
            let child = &self.nodes[id.index()];
            at = child.end;
            Some((id, child))
        })
    }

    /// All functions, wherever they stand in the tree, what matters first: real changes by how
    /// much self weight they are, then the others. Threads' names and marks are left out unless
    /// samples end in them.
    pub fn functions(&self) -> &[FunctionChange] {
        &self.functions
    }

    /// The earlier side.
    pub fn before(&self) -> &Side {
        &self.before
    }

    /// The later side.
    pub fn after(&self) -> &Side {
        &self.after
    }

    /// How many decimal places all weights have: a weight of 125 is 1.25 at two places.
    pub fn decimals(&self) -> u32 {
        self.decimals
    }

    /// What the sides were made equal in.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// What weights of before are multiplied by to be compared with those of after.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// What changes are a share of: all of before, scaled. Above 0.
    pub fn whole(&self) -> f64 {
        self.scale.of(self.before.total)
    }

    /// The change of a total, in the measure of after.
    pub fn total_change(&self, before: Weights, after: Weights) -> f64 {
        self.scale.change(before.total, after.total)
    }

    /// The change of a self weight, in the measure of after.
    pub fn self_change(&self, before: Weights, after: Weights) -> f64 {
        self.scale.change(before.self_weight, after.self_weight)
    }

    /// A change in points: hundredths of [`DiffTree::whole`].
    pub fn points(&self, change: f64) -> f64 {
        100.0 * change / self.whole()
    }

    /// The chance that anything at all is called real, in the tree or among the functions, that is
    /// not: what [`Evidence::is_real`] was decided by.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// About how many points the share of a function with that share (0 to 1) has to change by to be
    /// called real, if it is one of the program's that differs between runs as those usually do: a
    /// change of that size is found half of the time. `None` where sides are not compared by shares,
    /// where nothing was tested, and where runs are too few for any change to be called real.
    pub fn smallest_change(&self, share: f64) -> Option<f64> {
        self.smallest(share, [&self.before, &self.after].map(|side| side.names.len()))
    }

    /// The same if each side had that many runs (2 at least), as long as the present ones are.
    pub fn smallest_change_with(&self, share: f64, runs: usize) -> Option<f64> {
        self.smallest(share, [runs.max(2); 2])
    }

    fn smallest(&self, share: f64, runs: [usize; 2]) -> Option<f64> {
        let Judged { tested, usual } = self.judged;
        if self.scaling != Scaling::Total || tested == 0 {
            return None;
        }
        let sides = [&self.before, &self.after].into_iter().zip(runs);
        let samples: f64 = sides
            .map(|(side, runs)| (side.samples * runs as f64 / side.names.len() as f64).recip())
            .sum();
        let deviation = (share * (1.0 - share) * samples).sqrt();
        let freedom = (runs[0] + runs[1] - 2) as f64;
        let points = 100.0 * deviation * usual.least_distance(self.alpha / tested as f64, freedom);
        points.is_finite().then_some(points)
    }

    /// Whether each side is one recording of its own: how much recordings of the same program differ
    /// is not known then, but by experience ([`Evidence::is_real`] says of them only that they
    /// differ). Two values of one recording do not differ by that.
    pub fn is_one_run_a_side(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        let runs = before.names.len() + after.names.len();
        runs == 2 && (before.names != after.names || before.value_type == after.value_type)
    }

    /// What interrupts brought, before and after: the machine's work, which hits whoever is running.
    /// With one run a side none of it is called real.
    pub fn interrupts(&self) -> [Weights; 2] {
        self.interrupts
    }

    /// How many changes were tested, which p-values are corrected for: those of paths and of
    /// functions with enough samples to show any, each set of samples once.
    pub fn tested(&self) -> u64 {
        self.judged.tested
    }
}

#[cfg(test)]
mod tests;
