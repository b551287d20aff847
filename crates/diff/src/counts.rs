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
mod tests {
    use super::*;
    use crate::Samples;
    use crate::test_runs::{diff, run};

    fn weights(total: u64, own: u64) -> Weights {
        Weights { total: Weight(total), self_weight: Weight(own) }
    }

    /// Runs of a root and one function, of which a unit of weight is that many samples; `before` of
    /// them are of the earlier side.
    fn counted(runs: &[(u64, f64)], before: usize) -> (Counter, Vec<Run>) {
        let run_of = |(weight, number): &(u64, f64)| Run {
            samples: Samples::PerUnit(*number),
            ..run(&format!("a {weight}\n"))
        };
        let made: Vec<Run> = runs.iter().map(run_of).collect();
        let made_refs: Vec<&Run> = made.iter().collect();
        let mut counter = Counter::new(&made_refs, before, &vec![1; runs.len()]);
        for (number, (weight, _)) in runs.iter().enumerate() {
            counter.add(0, number, 0, weights(*weight, 0));
        }
        for (number, (weight, _)) in runs.iter().enumerate() {
            counter.add(1, number, 1, weights(*weight, weight / 2));
        }
        (counter, made)
    }

    #[test]
    fn squares_are_kept_where_samples_of_a_side_weigh_differently() {
        let (counter, runs) = counted(&[(10, 1.0), (10, 2.0), (8, 4.0)], 2);
        // Samples weigh 1 and 0.5 before and 0.25 after.
        assert_eq!(counter.details.squares, [[0.0, 15.0, 0.0, 2.0], [7.5, 15.0, 1.0, 2.0]]);
        assert_eq!(squares_of(&counter.details, 1, Part::Own), Some([7.5, 1.0]));
        assert_eq!(squares_of(&counter.details, 1, Part::Total), Some([15.0, 2.0]));
        assert_eq!(counter.units(Weight(20), Weight(8)), [0.75, 0.25]);
        let trees: Vec<&CallTree> = runs.iter().map(|run| &run.tree).collect();
        assert_eq!(counter.samples(&trees, &[10, 10, 8].map(Weight)), [30.0, 32.0]);
        // It does not matter which side that is.
        let (counter, _) = counted(&[(8, 4.0), (10, 1.0), (10, 2.0)], 1);
        assert_eq!(counter.details.squares[0], [0.0, 2.0, 0.0, 15.0]);
        assert_eq!(counter.units(Weight(8), Weight(20)), [0.25, 0.75]);
        // Within each side they weigh the same.
        let (counter, _) = counted(&[(10, 1.0), (10, 1.0), (8, 4.0)], 2);
        assert_eq!(counter.details.squares, [[0.0; 4]; 0]);
        assert_eq!(squares_of(&counter.details, 1, Part::Own), None);
        assert_eq!(counter.units(Weight(20), Weight(8)), [1.0, 0.25]);
    }

    #[test]
    fn weights_of_each_run_are_kept_where_a_side_has_several() {
        let (counter, _) = counted(&[(10, 1.0), (12, 1.0), (8, 1.0)], 2);
        let whole = [weights(10, 0), weights(12, 0), weights(8, 0)];
        let function = [weights(10, 5), weights(12, 6), weights(8, 4)];
        assert_eq!(counter.details.runs, [whole, function].concat());
        let (counter, _) = counted(&[(10, 1.0), (8, 1.0)], 1);
        assert_eq!(counter.details.runs, []);
    }

    #[test]
    fn a_function_has_what_its_nodes_have_and_recursion_once() {
        let text = "m;f;g;f 1\nm;g 1\n";
        let tree = diff(text, text, Scaling::Total);
        let at = |name: &str| tree.labels().iter().position(|label| label.name == name).unwrap();
        // The root, m, f, g, f and the other g.
        let powers = || (0..6).map(|node| 1_u64 << node);
        let squares = |power: u64| [1, 10, 100, 1000].map(|factor| (factor * power) as f64);
        let of_runs = |power| [weights(power, 10 * power), weights(100 * power, 1000 * power)];
        let details = Details {
            squares: powers().map(squares).collect(),
            runs: powers().flat_map(of_runs).collect(),
        };
        let found = details.of_labels(tree.labels().len(), tree.nodes());
        assert_eq!(found.squares[at("f")], [20.0, 40.0, 2000.0, 4000.0]);
        assert_eq!(found.squares[at("g")], [40.0, 400.0, 4000.0, 40_000.0]);
        let runs = |name: &str| &found.runs[2 * at(name)..][..2];
        assert_eq!(runs("f"), [weights(4, 200), weights(400, 20_000)]);
        assert_eq!(runs("g"), [weights(40, 400), weights(4000, 40_000)]);
        // Of what nodes have none of there is none.
        let none = Details::default().of_labels(tree.labels().len(), tree.nodes());
        assert!(none.squares.is_empty() && none.runs.is_empty());
        let of_runs = Details { squares: Vec::new(), runs: details.runs };
        assert_eq!(of_runs.of_labels(tree.labels().len(), tree.nodes()).runs, found.runs);
        let of_squares = Details { squares: details.squares, runs: Vec::new() };
        let only = of_squares.of_labels(tree.labels().len(), tree.nodes());
        assert_eq!(only.squares, found.squares);
    }

    /// Samples weigh 2 before and 4 after; each side was made equal in a weight of 400.
    fn null_model(scaling: &Scaling) -> NullModel {
        NullModel::new(scaling, 3.0, [2.0, 4.0], [400.0; 2], Vec::new(), 1)
    }

    #[test]
    fn samples_are_compared_by_what_the_sides_were_made_equal_in() {
        let of = |scaling: Scaling| null_model(&scaling).samples([Weight(40), Weight(60)], None);
        let shares = Margins::Shares { before: 200.0, after: 100.0 };
        assert_eq!(of(Scaling::Total), ([20.0, 15.0], shares));
        // A weight of 2, of before, is one of 6 of after: 1.5 samples for each, 3 of 5.
        let rates = Margins::Rates { after: 0.6 };
        assert_eq!(of(Scaling::None), ([20.0, 15.0], rates));
        assert_eq!(of(Scaling::Time), ([20.0, 15.0], rates));
        let of_function = Margins::Shares { before: 220.0, after: 115.0 };
        assert_eq!(of(Scaling::Function("f".to_owned())), ([20.0, 15.0], of_function));
    }

    #[test]
    fn samples_that_are_heavier_than_others_count_as_fewer() {
        let of = |scaling: Scaling, weights: [u64; 2], squares| {
            null_model(&scaling).samples(weights.map(Weight), Some(squares))
        };
        // 10 samples of 4 before and 5 of 12 after, where others weigh 2 and 4: their squares are 85
        // times those of one of these, for a weight of 35. Half of it on one side alone, twice as heavy.
        let heavy = 85.0 / 35.0;
        let shares = Margins::Shares { before: 200.0 / heavy, after: 100.0 / heavy };
        let samples = [20.0 / heavy, 15.0 / heavy];
        assert_eq!(of(Scaling::Total, [40, 60], [160.0, 720.0]), (samples, shares));
        let of_function = Margins::Shares { before: 220.0 / heavy, after: 115.0 / heavy };
        let by = Scaling::Function("f".to_owned());
        assert_eq!(of(by, [40, 60], [160.0, 720.0]), (samples, of_function));
        let halves = Margins::Shares { before: 100.0, after: 50.0 };
        assert_eq!(of(Scaling::Total, [40, 0], [160.0, 0.0]), ([10.0, 0.0], halves));
        assert_eq!(of(Scaling::Total, [0, 60], [0.0, 480.0]), ([0.0, 7.5], halves));
        // Nothing is no heavier than all.
        let shares = Margins::Shares { before: 200.0, after: 100.0 };
        assert_eq!(of(Scaling::Total, [0, 0], [0.0, 0.0]), ([0.0, 0.0], shares));
    }

    #[test]
    fn what_has_few_samples_or_almost_all_can_change_by_few() {
        let of = |scaling: &Scaling, samples: [f64; 2], margins: Margins| {
            null_model(scaling).testable(samples, margins).floor()
        };
        let shares = Margins::Shares { before: 20.0, after: 30.0 };
        assert_eq!(of(&Scaling::Total, [5.0, 7.0], shares), 12.0);
        assert_eq!(of(&Scaling::Total, [18.0, 25.0], shares), 7.0);
        // All of the function's samples are not all samples.
        assert_eq!(of(&Scaling::Function("f".to_owned()), [18.0, 25.0], shares), 43.0);
        assert_eq!(of(&Scaling::None, [18.0, 25.0], Margins::Rates { after: 0.5 }), 43.0);
        // A whole number of samples is as many, however its quotient was rounded.
        assert_eq!(of(&Scaling::Total, [4.9999999, 7.0], shares), 12.0);
    }

    #[test]
    fn exposures_are_what_runs_were_made_equal_in() {
        let mut runs = [run("m;f 3\nm;f_[k] 4\nm;f;f 5\n"), run("m;f 2\nm;g 9\n")];
        runs[0].duration = Some(Nanos(1_500_000_000));
        let runs: Vec<&Run> = runs.iter().collect();
        let of = |scaling| exposures(&scaling, &runs, &[Weight(12), Weight(11)]);
        assert_eq!(of(Scaling::Total), [12.0, 11.0]);
        assert_eq!(of(Scaling::None), [1.0, 1.0]);
        assert_eq!(of(Scaling::Time)[0], 1.5);
        assert_eq!(of(Scaling::Function("f".to_owned())), [12.0, 2.0]);
    }
}
