//! The evidence of all changes of a tree: what could be noise and what could not.
//!
//! Paths and functions, their self weights and their totals, are tested as one family, each set of
//! samples once: the total of a path with one callee and no samples of its own is its callee's, and
//! a function that stands in one place only is that path.

use std::thread;

use flame_profile::LabelId;

use crate::chance::deviations;
use crate::counts::{Details, Part, Yardstick, part, squares_of};
use crate::evidence::Evidence;
use crate::family::{Census, Holm};
use crate::function::{FunctionChange, outermost};
use crate::spread::{Prior, Spread};
use crate::tree::{DiffNode, Weights};

/// Trees with fewer nodes are not worth a second thread.
const MIN_CHUNK: usize = 1 << 15;
/// More threads than this wait for memory, not for cores.
const MAX_THREADS: usize = 8;

/// p-values of the self weight and of the total; `SAME` for what is tested elsewhere.
type Pair = [f32; 2];
const SAME: f32 = f32::NAN;

/// Tests all changes, and says how many those are.
pub(crate) fn judge(
    nodes: &mut [DiffNode],
    functions: &mut [FunctionChange],
    labels: usize,
    details: &Details,
    yardstick: &Yardstick,
    alpha: f64,
) -> u64 {
    let of_labels = details.of_labels(labels, nodes);
    let places = places(labels, nodes);
    let mut judge = Judge::new(yardstick, details);
    let mut of_functions = Judge::new(yardstick, &of_labels);

    let mut census = Census::new();
    for chunk in in_chunks(nodes, |range, chunk| judge.census(nodes, range, chunk)) {
        census.merge(&chunk);
    }
    let several = |function: &&FunctionChange| places[function.label.index()] == SEVERAL;
    for function in functions.iter().filter(several) {
        of_functions.count(function.label.index(), function.before, function.after, &mut census);
    }
    let (_, margins) = yardstick.samples([nodes[0].before.total, nodes[0].after.total], None);
    let (least, tested) = census.testable(margins, alpha);
    let critical = deviations(alpha / tested.max(1) as f64);
    for judge in [&mut judge, &mut of_functions] {
        (judge.least, judge.critical) = (least, critical);
    }
    if !details.runs.is_empty() {
        judge.prior = judge.prior_of(nodes);
        of_functions.prior = judge.prior;
    }

    let of_nodes: Vec<Pair> =
        in_chunks(nodes, |range, chunk| judge.p_values(nodes, range, chunk)).concat();
    let of_functions: Vec<Pair> = functions
        .iter()
        .map(|function| match places[function.label.index()] {
            SEVERAL => of_functions.pair(function.label.index(), function.before, function.after),
            _ => [SAME; 2],
        })
        .collect();
    let all = of_nodes.iter().chain(&of_functions).flatten().copied();
    let holm = Holm::new(all.filter(|p| f64::from(*p) <= alpha).collect(), tested, alpha);
    set_nodes(nodes, &of_nodes, &holm);
    set_functions(functions, &of_functions, &places, nodes, &holm);
    tested
}

/// Where a label stands: at one node, or here.
const SEVERAL: u32 = u32::MAX;

/// For each label its only node, or [`SEVERAL`].
fn places(labels: usize, nodes: &[DiffNode]) -> Vec<u32> {
    const NOWHERE: u32 = u32::MAX - 1;
    let mut places = vec![NOWHERE; labels];
    outermost(labels, nodes, |label: LabelId, node, _| {
        let place = &mut places[label.index()];
        *place = if *place == NOWHERE { node as u32 } else { SEVERAL };
    });
    places
}

/// Whether the samples of a node are those of its first callee.
fn is_its_callee(nodes: &[DiffNode], index: usize) -> bool {
    let (node, callee) = (&nodes[index], nodes.get(index + 1));
    let callee = callee.filter(|callee| callee.parent.index() == index && index > 0);
    callee.is_some_and(|callee| {
        callee.before.total == node.before.total && callee.after.total == node.after.total
    })
}

fn is_leaf(node: &DiffNode, index: usize) -> bool {
    node.end as usize == index + 1
}

/// Tests what has the details of one kind: nodes or labels.
struct Judge<'a> {
    yardstick: &'a Yardstick,
    details: &'a Details,
    /// The least number of samples that are tested.
    least: f64,
    /// About how many standard deviations make a change real.
    critical: f64,
    prior: Prior,
}

impl<'a> Judge<'a> {
    fn new(yardstick: &'a Yardstick, details: &'a Details) -> Judge<'a> {
        Judge { yardstick, details, least: 0.0, critical: 0.0, prior: Prior::NONE }
    }

    fn census(&self, nodes: &[DiffNode], start: usize, chunk: &[DiffNode]) -> Census {
        let mut census = Census::new();
        for (index, node) in (start..).zip(chunk) {
            self.each(nodes, index, node, |part| {
                let samples = self.testable(index, node.before, node.after, part);
                census.add(samples);
                0.0
            });
        }
        census
    }

    fn count(&self, at: usize, before: Weights, after: Weights, census: &mut Census) {
        for part in [Part::Own, Part::Total] {
            census.add(self.testable(at, before, after, part));
        }
    }

    fn testable(&self, at: usize, before: Weights, after: Weights, of: Part) -> f64 {
        let squares = squares_of(self.details, at, of);
        let (samples, margins) = self.yardstick.samples(part(before, after, of), squares);
        self.yardstick.testable(samples, margins)
    }

    fn p_values(&self, nodes: &[DiffNode], start: usize, chunk: &[DiffNode]) -> Vec<Pair> {
        let of_node = |(index, node): (usize, &DiffNode)| {
            self.each(nodes, index, node, |part| self.p(index, node.before, node.after, part))
        };
        (start..).zip(chunk).map(of_node).collect()
    }

    /// Does something with both parts of a node, where they are sets of samples of their own.
    fn each(
        &self,
        nodes: &[DiffNode],
        index: usize,
        node: &DiffNode,
        mut test: impl FnMut(Part) -> f32,
    ) -> Pair {
        let own = if is_leaf(node, index) { SAME } else { test(Part::Own) };
        let total = if is_its_callee(nodes, index) { SAME } else { test(Part::Total) };
        [own, total]
    }

    fn pair(&self, at: usize, before: Weights, after: Weights) -> Pair {
        [Part::Own, Part::Total].map(|part| self.p(at, before, after, part))
    }

    /// The p-value of one change.
    fn p(&self, at: usize, before: Weights, after: Weights, of: Part) -> f32 {
        let squares = squares_of(self.details, at, of);
        let (samples, margins) = self.yardstick.samples(part(before, after, of), squares);
        if self.yardstick.testable(samples, margins) < self.least {
            return 1.0;
        }
        let p = margins.p_value(samples[0], samples[1], self.critical);
        let spread = Spread::of(self.yardstick, self.details, at, of, (samples, margins));
        let Some(spread) = spread.filter(|_| p < 1.0) else { return p as f32 };
        // Runs that differ more than samples by chance: the weaker of both judgements counts.
        let distance = margins.distance(samples[0], samples[1]);
        p.max(self.prior.p_value(distance, spread)) as f32
    }

    /// How much runs differ in general.
    fn prior_of(&self, nodes: &[DiffNode]) -> Prior {
        let mut spreads = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            self.each(nodes, index, node, |of| {
                let squares = squares_of(self.details, index, of);
                let weights = part(node.before, node.after, of);
                let (samples, margins) = self.yardstick.samples(weights, squares);
                if self.yardstick.testable(samples, margins) >= self.least {
                    let details = self.details;
                    spreads.extend(Spread::of(
                        self.yardstick,
                        details,
                        index,
                        of,
                        (samples, margins),
                    ));
                }
                0.0
            });
        }
        Prior::of(&spreads)
    }
}

/// Does the work on parts of the nodes side by side; results are in their order.
fn in_chunks<T: Send>(nodes: &[DiffNode], work: impl Fn(usize, &[DiffNode]) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, |count| count.get());
    let chunk = nodes.len().div_ceil(cores.min(MAX_THREADS)).max(MIN_CHUNK);
    if nodes.len() <= chunk {
        return vec![work(0, nodes)];
    }
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = nodes
            .chunks(chunk)
            .enumerate()
            .map(|(number, part)| scope.spawn(move || work(number * chunk, part)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

fn evidence(holm: &Holm, p: f32) -> Evidence {
    if p >= 1.0 {
        return Evidence::NONE;
    }
    let (p, is_real) = holm.corrected(p);
    Evidence::new(p, is_real)
}

/// From the last node to the first: callees come before what is the same.
fn set_nodes(nodes: &mut [DiffNode], p: &[Pair], holm: &Holm) {
    for index in (0..nodes.len()).rev() {
        let [own, total] = p[index];
        let total_evidence = match total.is_nan() {
            true => nodes[index + 1].total_evidence,
            false => evidence(holm, total),
        };
        let node = &mut nodes[index];
        node.total_evidence = total_evidence;
        node.self_evidence = if own.is_nan() { total_evidence } else { evidence(holm, own) };
    }
}

fn set_functions(
    functions: &mut [FunctionChange],
    p: &[Pair],
    places: &[u32],
    nodes: &[DiffNode],
    holm: &Holm,
) {
    for (function, [own, total]) in functions.iter_mut().zip(p) {
        (function.self_evidence, function.total_evidence) =
            match nodes.get(places[function.label.index()] as usize) {
                Some(node) => (node.self_evidence, node.total_evidence),
                None => (evidence(holm, *own), evidence(holm, *total)),
            };
    }
}

#[cfg(test)]
mod tests;
