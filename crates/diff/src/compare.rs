//! Runs into a tree of their differences.

use flame_profile::{CallTree, Nanos, Weight};

use crate::counts::{Counter, NullModel, exposures};
use crate::error::DiffError;
use crate::evidence::Evidence;
use crate::function::{FunctionChange, functions};
use crate::interrupts::Interrupts;
use crate::judge::{Judged, Runs, judge, places};
use crate::of_kernel::OfKernel;
use crate::run::Run;
use crate::scale::{Scale, Scaling};
use crate::spread::Prior;
use crate::tree::{DiffNode, DiffTree, Side, Weights};
use crate::union::{Unsorted, labels, walk};

/// One in twenty: the chance of a false alarm that people are used to, and what the size of a
/// change is read with.
pub const DEFAULT_ALPHA: f64 = 0.05;

/// Recordings of one unchanged program differ by less than that, in points, in most of what they
/// differ in: with one recording a side such a difference is not listed. Measured: docs/diff.md.
pub const ONE_RUN_LEAST: f64 = 0.5;

/// How profiles are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffConfig {
    /// What the sides are made equal in; [`Scaling::Total`] by default.
    pub scaling: Scaling,
    /// The chance, above 0 and below 1, that anything at all is called real that is not;
    /// [`DEFAULT_ALPHA`] by default.
    pub alpha: f64,
    /// Whether changes are tested; without that all of them have [`Evidence::NONE`], which is
    /// enough for their weights. They are by default.
    pub tested: bool,
}

impl Default for DiffConfig {
    fn default() -> DiffConfig {
        DiffConfig { scaling: Scaling::Total, alpha: DEFAULT_ALPHA, tested: true }
    }
}

impl DiffTree {
    /// Compares the runs before with the runs after. The sides may have measured different values:
    /// whether that makes sense only the user knows.
    ///
    /// # Errors
    /// See [`DiffError`].
    pub fn new(before: &[Run], after: &[Run], config: &DiffConfig) -> Result<DiffTree, DiffError> {
        let mut sides = (side("before", before)?, side("after", after)?);
        let runs: Vec<&Run> = before.iter().chain(after).collect();
        let trees: Vec<&CallTree> = runs.iter().map(|run| &run.tree).collect();
        let decimals = trees.iter().map(|tree| tree.decimals()).max().unwrap_or(0);
        let factors: Vec<u64> =
            trees.iter().map(|tree| factor(tree, decimals)).collect::<Result<_, _>>()?;
        let (labels, of_trees) = labels(&trees);
        let mut counter = Counter::new(&runs, before.len(), &factors);
        let add = |node: &mut DiffNode, id, run: usize, at: usize| {
            let (of, factor) = (&trees[run].nodes()[at], factors[run]);
            let scaled = |weight: Weight| Weight(weight.0.saturating_mul(factor));
            let weights = Weights { total: scaled(of.total), self_weight: scaled(of.self_weight) };
            if run < before.len() {
                node.before.add(weights)
            } else {
                node.after.add(weights)
            }
            counter.add(id, run, at, weights);
        };
        let nodes = walk(&trees, of_trees, add)
            .map_err(|Unsorted(run)| DiffError::Unsorted { name: runs[run].name.clone() })?;
        let total = |(tree, factor): (&&CallTree, &u64)| Weight(tree.total().0 * factor);
        let totals: Vec<Weight> = trees.iter().zip(&factors).map(total).collect();
        (sides.0.total, sides.1.total) = (nodes[0].before.total, nodes[0].after.total);
        [sides.0.samples, sides.1.samples] = counter.samples(&trees, &totals);
        let (functions, places) = flame_threads::join(
            || functions(&labels, &nodes),
            || config.tested.then(|| places(labels.len(), &nodes)),
        );
        let mut tree = DiffTree {
            functions,
            labels,
            before: sides.0,
            after: sides.1,
            decimals,
            scaling: config.scaling.clone(),
            scale: Scale::ONE,
            alpha: config.alpha,
            judged: Judged { tested: 0, usual: Prior::NONE },
            interrupts: Default::default(),
            nodes,
        };
        let base = base(&tree, before.len(), after.len())?;
        tree.scale = Scale::between(base[0], base[1]).unwrap_or(Scale::ONE);
        if let Some(places) = places {
            let exposures = exposures(&config.scaling, &runs, &totals);
            tree.judge(&counter, base, exposures, &places, before.len());
        }
        Ok(tree)
    }

    fn judge(
        &mut self,
        counter: &Counter,
        base: [u128; 2],
        exposures: Vec<f64>,
        places: &[u32],
        before: usize,
    ) {
        let units = counter.units(self.before.total, self.after.total);
        let base = base.map(|weight| weight as f64);
        let factor = self.scale.factor();
        let number = exposures.len();
        let null_model = NullModel::new(&self.scaling, factor, units, base, exposures, before);
        let interrupts = Interrupts::of(&self.labels, &self.nodes);
        let of_kernel;
        let runs = match self.is_one_run_a_side() {
            true => Runs::OneASide(&interrupts),
            false if number == 2 => Runs::Same,
            false => {
                of_kernel = OfKernel::of(&self.labels, &self.nodes);
                Runs::Several(&of_kernel)
            }
        };
        let all = (&mut *self.nodes, &mut *self.functions);
        self.judged = judge(all, places, &counter.details, &null_model, (self.alpha, runs));
        if let Runs::OneASide(_) = runs {
            self.leave_out_small();
        }
        self.interrupts = interrupts.weights;
        self.sort_functions();
    }

    /// Treats small differences between two recordings as those that recordings of one program have anyway.
    fn leave_out_small(&mut self) {
        // Of the larger side, so that it does not matter which is which.
        let (scale, whole) = (self.scale, self.whole().max(self.after.total.0 as f64));
        let is_small = |before: Weight, after: Weight| {
            (100.0 * scale.change(before, after) / whole).abs() < ONE_RUN_LEAST
        };
        // Most are not called real anyway, and an exact change takes divisions of 128 bits.
        let of = |before: Weights, after: Weights, own: &mut Evidence, total: &mut Evidence| {
            if own.is_real() && is_small(before.self_weight, after.self_weight) {
                *own = own.not_real();
            }
            if total.is_real() && is_small(before.total, after.total) {
                *total = total.not_real();
            }
        };
        for node in &mut self.nodes {
            of(node.before, node.after, &mut node.self_evidence, &mut node.total_evidence);
        }
        for function in &mut self.functions {
            let (before, after) = (function.before, function.after);
            of(before, after, &mut function.self_evidence, &mut function.total_evidence);
        }
    }

    /// What matters first.
    fn sort_functions(&mut self) {
        let scale = self.scale;
        let key = |function: &FunctionChange| {
            let (before, after) = (function.before, function.after);
            let own = scale.change(before.self_weight, after.self_weight).abs();
            let total = scale.change(before.total, after.total).abs();
            match (function.self_evidence.is_real(), function.total_evidence.is_real()) {
                (true, _) => (0, own, total),
                (_, true) => (1, total, own),
                _ => (2, own, total),
            }
        };
        let mut keyed: Vec<_> = self.functions.iter().map(|f| (key(f), *f)).collect();
        keyed.sort_unstable_by(|(a, f), (b, g)| {
            let by_class = a.0.cmp(&b.0);
            let by_weight = b.1.total_cmp(&a.1).then(b.2.total_cmp(&a.2));
            by_class.then(by_weight).then(f.label.cmp(&g.label))
        });
        self.functions = keyed.into_iter().map(|(_, function)| function).collect();
    }
}

/// What is known of a side before anything is summed up.
fn side(which: &str, runs: &[Run]) -> Result<Side, DiffError> {
    let first = runs.first().ok_or_else(|| DiffError::Empty { name: which.to_owned() })?;
    let value_type = first.tree.value_type().clone();
    for run in runs {
        if run.tree.total() == Weight(0) {
            return Err(DiffError::Empty { name: run.name.clone() });
        }
        if *run.tree.value_type() != value_type {
            let (one, other) = (first.name.clone(), run.name.clone());
            return Err(DiffError::MixedSide { one, other });
        }
    }
    let durations = runs.iter().map(|run| run.duration);
    let duration = durations.reduce(|sum, next| Some(sum? + next?)).flatten();
    let names = runs.iter().map(|run| run.name.clone()).collect();
    Ok(Side { names, value_type, total: Weight(0), samples: 0.0, duration })
}

/// What a tree's weights are multiplied by to have that many decimal places.
fn factor(tree: &CallTree, decimals: u32) -> Result<u64, DiffError> {
    let factor = 10_u64.checked_pow(decimals - tree.decimals());
    factor.filter(|factor| tree.total().0.checked_mul(*factor).is_some()).ok_or(DiffError::TooLarge)
}

/// What the sides are made equal in, as numbers of both.
fn base(tree: &DiffTree, runs_before: usize, runs_after: usize) -> Result<[u128; 2], DiffError> {
    let numbers = |before: Weight, after: Weight| [u128::from(before.0), u128::from(after.0)];
    match &tree.scaling {
        Scaling::Total => Ok(numbers(tree.before.total, tree.after.total)),
        Scaling::None => Ok([runs_before as u128, runs_after as u128]),
        Scaling::Time => Ok([nanos(&tree.before)?, nanos(&tree.after)?]),
        Scaling::Function(name) => {
            let (before, after) = of_function(tree, name);
            let missing = |side| DiffError::NoFunction { side, function: name.clone() };
            match (before.total, after.total) {
                (Weight(0), _) => Err(missing("before")),
                (_, Weight(0)) => Err(missing("after")),
                (before, after) => Ok(numbers(before, after)),
            }
        }
    }
}

/// The weights of all that has that name, whatever kind of code it is.
fn of_function(tree: &DiffTree, name: &str) -> (Weights, Weights) {
    let mut sums = (Weights::default(), Weights::default());
    for function in &tree.functions {
        if tree.labels[function.label.index()].name == name {
            sums.0.add(function.before);
            sums.1.add(function.after);
        }
    }
    sums
}

fn nanos(side: &Side) -> Result<u128, DiffError> {
    let missing = || DiffError::NoDuration { name: side.names.join(", ") };
    side.duration.filter(|time| *time > Nanos(0)).map(|time| u128::from(time.0)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use flame_profile::{Columns, FoldedReader, Nanos, SiblingOrder, ValueType};

    use crate::test_runs::{diff, run};
    use crate::{DiffConfig, DiffError, DiffTree, Run, Scaling};

    fn cycles(text: &str) -> Run {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader.read(&mut text.as_bytes()).unwrap();
        Run { tree: reader.finish(ValueType::new("cycles", "count")), ..run(text) }
    }

    #[track_caller]
    fn check(before: &[Run], after: &[Run], scaling: Scaling, expect: DiffError) {
        let config = DiffConfig { scaling, ..DiffConfig::default() };
        assert_eq!(DiffTree::new(before, after, &config).err(), Some(expect));
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let one = || run("p;a 1\n");
        let name = || "test.folded".to_owned();
        let before = DiffError::Empty { name: "before".to_owned() };
        check(&[], &[one()], Scaling::Total, before);
        check(&[one()], &[one(), run("")], Scaling::Total, DiffError::Empty { name: name() });
        let cycles = Run { name: "cycles.folded".to_owned(), ..cycles("p;a 1\n") };
        let mixed = DiffError::MixedSide { one: name(), other: cycles.name.clone() };
        check(&[one()], &[one(), cycles], Scaling::Total, mixed);
        let (large, small) = (run("p;a 10000000000000000\n"), run("p;a 0.000001\n"));
        check(&[large], &[small], Scaling::Total, DiffError::TooLarge);
        let (function, after) = ("a".to_owned(), run("p;b 1\n"));
        let missing = DiffError::NoFunction { side: "after", function: function.clone() };
        check(&[one()], &[after], Scaling::Function(function), missing);
        let timed = |nanos| Run { duration: Some(Nanos(nanos)), ..one() };
        let no_duration = DiffError::NoDuration { name: "test.folded, test.folded".to_owned() };
        check(&[timed(1)], &[timed(0), timed(0)], Scaling::Time, no_duration);
    }

    #[test]
    fn a_side_lasted_as_long_as_its_runs_where_all_say_it() {
        let side = |durations: [Option<u64>; 2]| {
            let timed = |nanos: Option<u64>| Run { duration: nanos.map(Nanos), ..run("p;a 1\n") };
            let before = durations.map(timed);
            let tree = DiffTree::new(&before, &[run("p;a 1\n")], &DiffConfig::default());
            tree.unwrap().before().duration
        };
        assert_eq!(side([Some(3), Some(4)]), Some(Nanos(7)));
        assert_eq!([side([Some(3), None]), side([None, Some(4)])], [None, None]);
    }

    #[test]
    fn between_two_recordings_less_than_half_a_point_is_nothing() {
        let before = "p;f 10000\np;g 10000\np;r 980000\n";
        let after = "p;f 14999\np;g 15000\np;r 970001\n";
        let tree = diff(before, after, Scaling::Total);
        let mut real: Vec<_> = tree
            .functions()
            .iter()
            .map(|function| {
                let evidence = [function.self_evidence, function.total_evidence];
                (
                    &*tree.labels()[function.label.index()].name,
                    evidence.map(|evidence| evidence.is_real()),
                )
            })
            .collect();
        real.sort_unstable();
        assert_eq!(real, [("f", [false; 2]), ("g", [true; 2]), ("r", [true; 2])]);
        let nodes = tree.nodes().iter().skip(2);
        let nodes = nodes.map(|node| [node.self_evidence.is_real(), node.total_evidence.is_real()]);
        assert!(nodes.eq([[false; 2], [true; 2], [true; 2]]));
    }

    #[test]
    fn two_values_of_one_recording_differ_by_chance_alone() {
        let before = run("p;a 600\np;b 400\n");
        let after = cycles("p;a 600\np;b 400\n");
        let tree = DiffTree::new(&[before], &[after], &DiffConfig::default()).unwrap();
        // No run of a side says how others differ: the smallest change goes by samples, by sqrt(p(1 - p)).
        let [fifth, half] = [0.2, 0.5].map(|share| tree.smallest_change(share).unwrap());
        assert!((half / fifth - 1.25).abs() < 1e-9, "{half} {fifth}");
    }

    #[test]
    fn what_changed_itself_comes_first_then_what_calls_it() {
        let before = "p;b;n 4000\np;a;q 3000\np;a;c 2000\np;aa 1000\n";
        let after = "p;b;n 5980\np;a;q 1500\np;a;c 1500\np;aa 1020\n";
        let tree = diff(before, after, Scaling::Total);
        let names = tree.functions().iter().map(|f| &*tree.labels()[f.label.index()].name);
        assert_eq!(names.collect::<Vec<_>>(), ["n", "q", "c", "a", "b", "aa"]);
    }

    #[test]
    fn all_functions_of_a_name_are_what_is_scaled_by() {
        let by = Scaling::Function("work".to_owned());
        let tree = diff("p;work 30\np;work_[k] 10\n", "p;work 40\np;work_[k] 20\np 9\n", by);
        assert_eq!(tree.scale().factor(), 1.5);
    }
}
