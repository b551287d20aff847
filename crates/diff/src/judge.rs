//! The evidence of all changes of a tree: what could be noise and what could not.
//!
//! Paths and functions, their self weights and their totals, are tested as one family, each set of
//! samples once: the total of a path with one callee and no samples of its own is its callee's, and
//! a function that stands in one place only is that path.

use flame_profile::LabelId;

use crate::chance::deviations;
use crate::counts::{Details, NullModel, Part, part, squares_of};
use crate::evidence::Evidence;
use crate::family::{Holm, TestableCounts};
use crate::function::{FunctionChange, outermost};
use crate::interrupts::Interrupts;
use crate::of_kernel::OfKernel;
use crate::spread::{Prior, Spread};
use crate::tree::{DiffNode, Weights};

/// This many nodes or functions are judged in one go: enough to be worth a thread, and few enough
/// that all threads are done at about the same time.
const CHUNK: usize = 1 << 13;

/// p-values of the self weight and of the total; `SAME` for what is tested elsewhere.
type Pair = [f32; 2];
const SAME: f32 = f32::NAN;

/// What runs there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runs<'i> {
    /// Several: how much they differ is seen, for the kernel's functions apart.
    Several(&'i OfKernel),
    /// Two values of one recording, which do not differ as recordings do.
    Same,
    /// One recording a side: how much they differ is known from others only, and what interrupts
    /// brought says nothing about the program.
    OneASide(&'i Interrupts),
}

/// What the changes of a tree were judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// How many changes were tested.
    pub(crate) tested: u64,
    /// How much runs usually differ in the program's functions.
    pub(crate) usual: Prior,
}

/// Tests all changes.
pub(crate) fn judge(
    (nodes, functions): (&mut [DiffNode], &mut [FunctionChange]),
    places: &[u32],
    details: &Details,
    null_model: &NullModel,
    (alpha, runs): (f64, Runs<'_>),
) -> Judged {
    let of_labels = details.of_labels(places.len(), nodes);
    let mut judge = Judge::new(null_model, details);
    let mut of_functions = Judge::new(null_model, &of_labels);

    let mut testable_counts = TestableCounts::new();
    for chunk in in_chunks(nodes, |range, chunk| judge.count_nodes(nodes, range, chunk)) {
        testable_counts.merge(&chunk);
    }
    let several = |function: &&FunctionChange| places[function.label.index()] == SEVERAL;
    for function in functions.iter().filter(several) {
        of_functions.count(
            function.label.index(),
            function.before,
            function.after,
            &mut testable_counts,
        );
    }
    let (_, margins) = null_model.samples([nodes[0].before.total, nodes[0].after.total], None);
    let (least, tested) = testable_counts.testable(margins, alpha);
    let critical = deviations(alpha / tested.max(1) as f64);
    for judge in [&mut judge, &mut of_functions] {
        (judge.least, judge.critical) = (least, critical);
    }
    match runs {
        Runs::Several(kernel) => {
            (judge.kernel, of_functions.kernel) = (&kernel.nodes, &kernel.labels);
            judge.priors = judge.priors_of(nodes);
        }
        Runs::OneASide(_) => judge.priors = [Prior::ONE_RUN; 2],
        Runs::Same => {}
    }
    of_functions.priors = judge.priors;

    let of_nodes = Tested::of(nodes, alpha, |at, node| judge.node(nodes, at, node));
    let of_functions =
        Tested::of(functions, alpha, |_, function| match places[function.label.index()] {
            SEVERAL => of_functions.pair(function.label.index(), function.before, function.after),
            _ => [SAME; 2],
        });
    let holm = Holm::new([of_nodes.small, of_functions.small].concat(), tested, alpha);
    let (of_nodes, of_functions) = (of_nodes.p, of_functions.p);
    set_nodes(nodes, &of_nodes, &holm);
    set_functions(functions, &of_functions, places, nodes, &holm);
    if let Runs::OneASide(interrupts) = runs {
        leave_out(interrupts, nodes, functions);
    }
    let usual = if matches!(runs, Runs::Same) { Prior::SAMPLES } else { judge.priors[0] };
    Judged { tested, usual }
}

/// Nothing is called real of what interrupts brought.
fn leave_out(interrupts: &Interrupts, nodes: &mut [DiffNode], functions: &mut [FunctionChange]) {
    for (node, is_one) in nodes.iter_mut().zip(&interrupts.nodes) {
        if *is_one {
            node.self_evidence = node.self_evidence.not_real();
            node.total_evidence = node.total_evidence.not_real();
        }
    }
    for function in functions.iter_mut().filter(|f| interrupts.labels[f.label.index()]) {
        function.self_evidence = function.self_evidence.not_real();
        function.total_evidence = function.total_evidence.not_real();
    }
}

/// Where a label stands: at one node, or here.
const SEVERAL: u32 = u32::MAX;

/// For each label its only node, or [`SEVERAL`].
pub(crate) fn places(labels: usize, nodes: &[DiffNode]) -> Vec<u32> {
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
    null_model: &'a NullModel,
    details: &'a Details,
    /// The least number of samples that are tested.
    least: f64,
    /// About how many standard deviations make a change real.
    critical: f64,
    /// How much runs differ in general: in the program's functions, and in the kernel's.
    priors: [Prior; 2],
    /// Whether what is at a position is the kernel's; empty where that makes no difference.
    kernel: &'a [[bool; 2]],
}

impl<'a> Judge<'a> {
    fn new(null_model: &'a NullModel, details: &'a Details) -> Judge<'a> {
        Judge {
            null_model,
            details,
            least: 0.0,
            critical: 0.0,
            priors: [Prior::NONE; 2],
            kernel: &[],
        }
    }

    fn count_nodes(&self, nodes: &[DiffNode], start: usize, chunk: &[DiffNode]) -> TestableCounts {
        let mut testable_counts = TestableCounts::new();
        for (index, node) in (start..).zip(chunk) {
            self.each(nodes, index, node, |part| {
                let samples = self.testable(index, node.before, node.after, part);
                testable_counts.add(samples);
                0.0
            });
        }
        testable_counts
    }

    fn count(
        &self,
        at: usize,
        before: Weights,
        after: Weights,
        testable_counts: &mut TestableCounts,
    ) {
        for part in [Part::Own, Part::Total] {
            testable_counts.add(self.testable(at, before, after, part));
        }
    }

    fn testable(&self, at: usize, before: Weights, after: Weights, of: Part) -> f64 {
        let squares = squares_of(self.details, at, of);
        let (samples, margins) = self.null_model.samples(part(before, after, of), squares);
        self.null_model.testable(samples, margins)
    }

    fn node(&self, nodes: &[DiffNode], index: usize, node: &DiffNode) -> Pair {
        self.each(nodes, index, node, |part| self.p(index, node.before, node.after, part))
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
        let (samples, margins) = self.null_model.samples(part(before, after, of), squares);
        if self.null_model.testable(samples, margins) < self.least {
            return 1.0;
        }
        let spread = Spread::of(self.null_model, self.details, at, of, (samples, margins));
        // Runs that differ more than samples by chance: the weaker of both judgements counts.
        let distance = margins.distance(samples[0], samples[1]);
        let prior = self.priors[self.group(at, of)];
        let of_runs = || match spread {
            Some(spread) => prior.p_value(distance, spread),
            None if prior.is_known() => prior.p_value_alone(distance),
            None => 0.0,
        };
        margins.p_value(samples[0], samples[1], self.critical, of_runs) as f32
    }

    /// Which of the priors is that of a position.
    fn group(&self, at: usize, of: Part) -> usize {
        let [own, total] = self.kernel.get(at).copied().unwrap_or_default();
        usize::from(if of == Part::Own { own } else { total })
    }

    /// How much runs differ in general, by group; of a group that says too little, as in all.
    fn priors_of(&self, nodes: &[DiffNode]) -> [Prior; 2] {
        let mut spreads = [Vec::new(), Vec::new()];
        for (index, node) in nodes.iter().enumerate() {
            self.each(nodes, index, node, |of| {
                let squares = squares_of(self.details, index, of);
                let weights = part(node.before, node.after, of);
                let (samples, margins) = self.null_model.samples(weights, squares);
                if self.null_model.testable(samples, margins) >= self.least {
                    let details = self.details;
                    spreads[self.group(index, of)].extend(Spread::of(
                        self.null_model,
                        details,
                        index,
                        of,
                        (samples, margins),
                    ));
                }
                0.0
            });
        }
        let all = Prior::of(&spreads.concat());
        spreads.map(|spreads| Some(Prior::of(&spreads)).filter(Prior::is_known).unwrap_or(all))
    }
}

/// The p-values of a list.
#[derive(Default)]
struct Tested {
    p: Vec<Pair>,
    /// Those that are at most alpha.
    small: Vec<f32>,
}

impl Tested {
    fn of<T: Sync>(all: &[T], alpha: f64, p: impl Fn(usize, &T) -> Pair + Sync) -> Tested {
        let of_chunk = |start: usize, chunk: &[T]| {
            let p: Vec<Pair> = (start..).zip(chunk).map(|(at, one)| p(at, one)).collect();
            let small = p.iter().flatten().copied().filter(|p| f64::from(*p) <= alpha).collect();
            Tested { p, small }
        };
        let mut tested = Tested { p: Vec::with_capacity(all.len()), small: Vec::new() };
        for Tested { p, small } in in_chunks(all, of_chunk) {
            tested.p.extend(p);
            tested.small.extend(small);
        }
        tested
    }
}

/// Does the work on parts of a list side by side; results are in their order.
fn in_chunks<T: Sync, U: Send>(all: &[T], work: impl Fn(usize, &[T]) -> U + Sync) -> Vec<U> {
    let parts = all.chunks(CHUNK).enumerate().collect();
    flame_threads::map(parts, |(number, part): (usize, &[T])| work(number * CHUNK, part))
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
    let chunks: Vec<_> = nodes.chunks_mut(CHUNK).zip(p.chunks(CHUNK)).collect();
    flame_threads::map(chunks, |(nodes, p): (&mut [DiffNode], &[Pair])| {
        for index in (0..nodes.len()).rev() {
            let total = p[index][1];
            let total =
                if total.is_nan() { of_callee(nodes, index) } else { evidence(holm, total) };
            set_node(&mut nodes[index], p[index], total, holm);
        }
    });
    // What is the same as the first node of the next chunk, which was not known.
    for end in (1..nodes.len().div_ceil(CHUNK)).rev().map(|chunk| chunk * CHUNK) {
        let same = p[..end].iter().rev().take_while(|p| p[1].is_nan()).count();
        for index in (end - same..end).rev() {
            let total = of_callee(nodes, index);
            set_node(&mut nodes[index], p[index], total, holm);
        }
    }
}

/// The evidence of the total of the first callee, where that is among the nodes.
fn of_callee(nodes: &[DiffNode], index: usize) -> Evidence {
    nodes.get(index + 1).map_or(Evidence::NONE, |callee| callee.total_evidence)
}

fn set_node(node: &mut DiffNode, [own, _]: Pair, total: Evidence, holm: &Holm) {
    node.total_evidence = total;
    node.self_evidence = if own.is_nan() { total } else { evidence(holm, own) };
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
