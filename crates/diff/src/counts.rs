//! What tells noise from changes: the samples of each side and run, for paths and for functions.

use flame_profile::{CallTree, Nanos, Weight};

use crate::chance::Margins;
use crate::function::outermost;
use crate::run::Run;
use crate::samples::SampleWeights;
use crate::scale::Scaling;
use crate::tree::{DiffNode, Weights};

/// Which weights of a node or a function are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Own,
    Total,
}

/// What each node, or each label, has besides its weights.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Squares of samples' weights: self and total before, self and total after. Empty where all
    /// samples of a side weigh the same.
    pub(crate) squares: Vec<[f64; 4]>,
    /// Weights of each run, all of a node together. Empty where there are no runs to compare.
    pub(crate) runs: Vec<Weights>,
}

/// Collects the details of nodes while their union is walked.
#[derive(Debug)]
pub(crate) struct Counter {
    sample_weights: Vec<SampleWeights>,
    runs_before: usize,
    has_uneven: bool,
    has_runs: bool,
    pub(crate) details: Details,
}

impl Counter {
    pub(crate) fn new(runs: &[&Run], runs_before: usize, factors: &[u64]) -> Counter {
        let sample_weights: Vec<SampleWeights> =
            runs.iter().zip(factors).map(|(run, factor)| SampleWeights::of(run, *factor)).collect();
        let unit = |weights: &SampleWeights| match weights {
            SampleWeights::Even(unit) => Some(*unit),
            SampleWeights::Uneven(_) => None,
        };
        let (before, after) = sample_weights.split_at(runs_before);
        let is_even = |side: &[SampleWeights]| {
            let units = side.iter().map(unit);
            side.first()
                .and_then(unit)
                .is_some_and(|first| units.eq(side.iter().map(|_| Some(first))))
        };
        let has_uneven = !is_even(before) || !is_even(after);
        let has_runs = runs.len() > 2;
        Counter { sample_weights, runs_before, has_uneven, has_runs, details: Details::default() }
    }

    /// A node of a run, which is at that position of the union.
    pub(crate) fn add(&mut self, node: usize, run: usize, at: usize, weights: Weights) {
        if self.has_uneven {
            if self.details.squares.len() <= node {
                self.details.squares.resize(node + 1, [0.0; 4]);
            }
            let squares = self.sample_weights[run].squares(at, weights.self_weight, weights.total);
            let first = if run < self.runs_before { 0 } else { 2 };
            self.details.squares[node][first] += squares[0];
            self.details.squares[node][first + 1] += squares[1];
        }
        if self.has_runs {
            let runs = self.sample_weights.len();
            if self.details.runs.len() <= node * runs {
                self.details.runs.resize((node + 1) * runs, Weights::default());
            }
            self.details.runs[node * runs + run] = weights;
        }
    }

    /// How many samples the runs of each side have.
    pub(crate) fn samples(&self, trees: &[&CallTree], totals: &[Weight]) -> [f64; 2] {
        let samples: Vec<f64> = self
            .sample_weights
            .iter()
            .zip(trees.iter().zip(totals))
            .map(|(weights, (tree, total))| weights.samples(tree, *total))
            .collect();
        let (before, after) = samples.split_at(self.runs_before);
        [before.iter().sum(), after.iter().sum()]
    }

    /// The weight of a sample of each side, on average.
    pub(crate) fn units(&self, before: Weight, after: Weight) -> [f64; 2] {
        let unit = |run: usize, side: usize, total: Weight| match &self.sample_weights[run] {
            SampleWeights::Even(unit) if !self.has_uneven => *unit,
            _ => self.details.squares[0][2 * side + 1] / total.0 as f64,
        };
        [unit(0, 0, before), unit(self.runs_before, 1, after)]
    }
}

impl Details {
    /// Those of labels: what nodes of one label have together, recursion once.
    pub(crate) fn of_labels(&self, labels: usize, nodes: &[DiffNode]) -> Details {
        let runs = self.runs.len() / nodes.len();
        let mut of = Details {
            squares: vec![[0.0; 4]; if self.squares.is_empty() { 0 } else { labels }],
            runs: vec![Weights::default(); labels * runs],
        };
        if self.squares.is_empty() && runs == 0 {
            return of;
        }
        outermost(labels, nodes, |label, node, is_outermost| {
            let label = label.index();
            if let (Some(sums), Some(squares)) = (of.squares.get_mut(label), self.squares.get(node))
            {
                for (at, sum) in sums.iter_mut().enumerate() {
                    let is_own = at % 2 == 0;
                    *sum += if is_own || is_outermost { squares[at] } else { 0.0 };
                }
            }
            let weights = &self.runs[node * runs..(node + 1) * runs];
            for (sum, weights) in of.runs[label * runs..].iter_mut().zip(weights) {
                let total = if is_outermost { weights.total } else { Weight(0) };
                sum.add(Weights { total, ..*weights });
            }
        });
        of
    }
}

/// What samples are compared by in all tests: how they would be shared between the sides if nothing
/// had changed.
#[derive(Debug)]
pub(crate) struct NullModel {
    /// The weight of a sample of each side.
    pub(crate) units: [f64; 2],
    kind: Kind,
    /// For each run what its samples are in proportion to if nothing changed.
    pub(crate) exposures: Vec<f64>,
    pub(crate) runs_before: usize,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// All samples of the sides.
    Shares([f64; 2]),
    /// What part of both sides' samples is after's if nothing changed.
    Rates(f64),
    /// The samples of a function on both sides, which vary by chance themselves.
    Function([f64; 2]),
}

impl NullModel {
    /// `base` has the weights that the sides were made equal in, where those are weights.
    pub(crate) fn new(
        scaling: &Scaling,
        factor: f64,
        units: [f64; 2],
        base: [f64; 2],
        exposures: Vec<f64>,
        runs_before: usize,
    ) -> NullModel {
        let samples = [0, 1].map(|side| base[side] / units[side]);
        let kind = match scaling {
            Scaling::Total => Kind::Shares(samples),
            Scaling::Function(_) => Kind::Function(samples),
            Scaling::None | Scaling::Time => {
                let ratio = factor * units[0] / units[1];
                Kind::Rates(ratio / (1.0 + ratio))
            }
        };
        NullModel { units, kind, exposures, runs_before }
    }

    /// Whether samples are a share of all of their run, which leaves less room for chance.
    pub(crate) fn are_shares(&self) -> bool {
        matches!(self.kind, Kind::Shares(_))
    }

    /// Weights in samples before and after, and what to compare them by.
    pub(crate) fn samples(
        &self,
        weights: [Weight; 2],
        squares: Option<[f64; 2]>,
    ) -> ([f64; 2], Margins) {
        let [b, a] = [0, 1].map(|side| weights[side].0 as f64 / self.units[side]);
        // How much heavier the samples here are than all on average.
        let heavy = squares.filter(|_| b + a > 0.0).map_or(1.0, |[of_b, of_a]| {
            (of_b / self.units[0].powi(2) + of_a / self.units[1].powi(2)) / (b + a)
        });
        let [b, a] = [b / heavy, a / heavy];
        let margins = match self.kind {
            Kind::Shares([before, after]) => {
                Margins::Shares { before: before / heavy, after: after / heavy }
            }
            Kind::Rates(after) => Margins::Rates { after },
            Kind::Function([before, after]) => {
                Margins::Shares { before: b + before / heavy, after: a + after / heavy }
            }
        };
        ([b, a], margins)
    }

    /// How many samples could at most be on the other side of a change.
    pub(crate) fn testable(&self, [before, after]: [f64; 2], margins: Margins) -> f64 {
        // Quotients of weights may be a little less than the whole numbers that they stand for.
        const ROUNDING: f64 = 1e-6;
        let samples = match (self.kind, margins) {
            (Kind::Shares(_), Margins::Shares { before: b, after: a }) => {
                (before + after).min(b + a - before - after)
            }
            _ => before + after,
        };
        samples + ROUNDING
    }
}

/// What the samples of each run are in proportion to, besides what changed.
pub(crate) fn exposures(scaling: &Scaling, runs: &[&Run], totals: &[Weight]) -> Vec<f64> {
    let of_function = |tree: &CallTree, name: &str| {
        let functions = flame_profile::functions(tree);
        let of_name = functions.iter().filter(|f| tree.labels()[f.label.index()].name == name);
        of_name.map(|function| function.total.0 as f64).sum::<f64>()
    };
    let exposure = |(run, total): (&&Run, &Weight)| match scaling {
        Scaling::Total => total.0 as f64,
        Scaling::None => 1.0,
        Scaling::Time => run.duration.unwrap_or(Nanos(1)).as_secs_f64(),
        Scaling::Function(name) => of_function(&run.tree, name),
    };
    runs.iter().zip(totals).map(exposure).collect()
}

/// The weights of a part, before and after, of what has both.
pub(crate) fn part(before: Weights, after: Weights, part: Part) -> [Weight; 2] {
    match part {
        Part::Own => [before.self_weight, after.self_weight],
        Part::Total => [before.total, after.total],
    }
}

/// The squares of a part at a position.
pub(crate) fn squares_of(details: &Details, at: usize, part: Part) -> Option<[f64; 2]> {
    let squares = details.squares.get(at)?;
    Some(match part {
        Part::Own => [squares[0], squares[2]],
        Part::Total => [squares[1], squares[3]],
    })
}

#[cfg(test)]
mod tests;
