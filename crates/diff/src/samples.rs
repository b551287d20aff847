//! How many samples stand behind weights, and how unequal those are.
//!
//! Samples of different weight are noisier than as many of the same: their sum has the variance of
//! the sum of their squares. A side counts as the number of equal samples that has the same
//! relative variance (Bohm and Zech 2014, "Statistics of weighted Poisson events and its
//! applications"), and a frame whose samples are heavier than those of its side as fewer.

use flame_profile::{CallTree, Weight};

use crate::run::{Run, Samples};
use crate::scale::gcd;

/// By chance numbers have a divisor in common, too: it counts only if that is less likely than one
/// in 2 to the power of this.
const LEAST_BITS: f64 = 10.0;

/// How the weights of a run are made of samples.
#[derive(Debug)]
pub(crate) enum SampleWeights {
    /// All samples weigh the same.
    Even(f64),
    /// For each node what the squares of its samples' weights are: of those that end there, and of
    /// all that are there or below.
    Uneven(Vec<[f64; 2]>),
}

impl SampleWeights {
    /// Of a run whose weights are multiplied by `factor`.
    pub(crate) fn of(run: &Run, factor: u64) -> SampleWeights {
        let factor = factor as f64;
        let unit = 10_f64.powi(run.tree.decimals() as i32) * factor;
        match run.samples {
            Samples::PerUnit(number) => SampleWeights::Even(unit / number),
            Samples::Divisor => {
                SampleWeights::Even(divisor(&run.tree).map_or(unit, |d| d as f64 * factor))
            }
            Samples::Counted => SampleWeights::Uneven(squares(&run.tree, factor)),
        }
    }

    /// The squares of the weights of a node's samples.
    pub(crate) fn squares(&self, node: usize, own: Weight, total: Weight) -> [f64; 2] {
        match self {
            SampleWeights::Even(unit) => [own.0 as f64 * unit, total.0 as f64 * unit],
            SampleWeights::Uneven(squares) => squares[node],
        }
    }

    /// How many samples a run has.
    pub(crate) fn samples(&self, tree: &CallTree, total: Weight) -> f64 {
        match self {
            SampleWeights::Even(unit) => total.0 as f64 / unit,
            SampleWeights::Uneven(_) => {
                tree.before().and_then(|counts| counts.first()).map_or(0.0, |n| n.total.0 as f64)
            }
        }
    }
}

/// What all weights of a tree are multiples of, where that is no accident; 1 for whole numbers
/// that have nothing in common, `None` for fractions.
fn divisor(tree: &CallTree) -> Option<u64> {
    let own = tree.nodes().iter().map(|node| node.self_weight.0).filter(|weight| *weight > 0);
    let mut count = 0_u32;
    let mut divisor = 0;
    for weight in own {
        divisor = gcd(divisor, u128::from(weight));
        count += 1;
        if divisor == 1 {
            break;
        }
    }
    // Fractions with fewer places than another have tens in common, and so what tens are made of
    // says nothing about samples: one weight of nine places would make billions of them.
    let telling = if tree.decimals() > 0 { without_tens(divisor) } else { divisor };
    let is_accident = f64::from(count) * (telling.max(1) as f64).log2() < LEAST_BITS;
    match u64::try_from(divisor) {
        Ok(divisor) if !is_accident => Some(divisor),
        _ if tree.decimals() == 0 => Some(1),
        _ => None,
    }
}

/// A number without the twos and fives that it is made of.
fn without_tens(mut number: u128) -> u128 {
    for prime in [2, 5] {
        while number > 0 && number.is_multiple_of(prime) {
            number /= prime;
        }
    }
    number
}

/// The squares of samples' weights, those of one stack taken for equal. The tree has the number of
/// samples as its weights before.
fn squares(tree: &CallTree, factor: f64) -> Vec<[f64; 2]> {
    let counts = tree.before().unwrap_or_default();
    let nodes = tree.nodes();
    let mut squares = vec![[0.0; 2]; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        let count = counts.get(index).map_or(0, |count| count.self_weight.0).max(1) as f64;
        let weight = node.self_weight.0 as f64 * factor;
        squares[index][0] = weight * weight / count;
        squares[index][1] += squares[index][0];
        if index > 0 {
            let below = squares[index][1];
            squares[node.parent.index()][1] += below;
        }
    }
    squares
}

#[cfg(test)]
mod tests {
    use flame_profile::{BuilderNode, FrameKind, SiblingOrder, TreeBuilder, ValueType};

    use super::*;
    use crate::test_runs::run;

    #[track_caller]
    fn check_divisor(text: &str, expect: Option<u64>) {
        assert_eq!(divisor(&run(text).tree), expect, "{text}");
    }

    #[test]
    fn a_divisor_counts_where_it_is_no_accident() {
        check_divisor("a;b 7\na;c 4\na;d 9\n", Some(1));
        check_divisor("a;b 6\na;c 4\na;d 8\n", Some(1));
        check_divisor("a;b 10101010\na;c 30303030\n", Some(10_101_010));
        check_divisor("a;b 12\na;c 8\na;d 4\na;e 20\na;f 4\n", Some(4));
        check_divisor("a;b 0.5\na;c 1.3\n", None);
        check_divisor("a;b 1000.5\na;c 2001\na;d 3001.5\n", Some(10_005));
        // All even, and multiples of a million but for one: that is how fractions are written.
        let fractions: String = (1..40).map(|n| format!("a;f{n} {n}7.08\n")).collect();
        check_divisor(&format!("{fractions}a;b 0.333333334\n"), None);
    }

    #[test]
    fn samples_are_found_in_weights() {
        let samples = |samples, text| {
            let run = Run { samples, ..run(text) };
            SampleWeights::of(&run, 1).samples(&run.tree, run.tree.total())
        };
        assert_eq!(samples(Samples::PerUnit(1.0), "a 30\nb 10\n"), 40.0);
        assert_eq!(samples(Samples::PerUnit(0.5), "a 30\nb 10\n"), 20.0);
        assert_eq!(samples(Samples::PerUnit(2.0), "a 0.5\nb 10\n"), 21.0);
        assert_eq!(samples(Samples::Divisor, "a 2000000\nb 1000000\n"), 3.0);
    }

    /// What a sample of folded text weighs, in units of its last decimal place.
    #[track_caller]
    fn check_unit(text: &str, expect: f64) {
        let run = Run { samples: Samples::Divisor, ..run(text) };
        match SampleWeights::of(&run, 1) {
            SampleWeights::Even(unit) => assert_eq!(unit, expect, "{text}"),
            SampleWeights::Uneven(_) => panic!("{text}"),
        }
        let SampleWeights::Even(scaled) = SampleWeights::of(&run, 100) else { panic!("{text}") };
        assert_eq!(scaled, 100.0 * expect, "{text}");
    }

    #[test]
    fn a_divisor_that_few_numbers_share_is_an_accident() {
        // Two numbers share a divisor of 32 once in 1,024 times; one of 31, more often.
        check_unit("a 32\nb 96\n", 32.0);
        check_unit("a 31\nb 93\n", 1.0);
        check_unit("a 31\nb 93\nc 62\n", 31.0);
        check_unit("a 1024\n", 1024.0);
        check_unit("a 1023\n", 1.0);
        // Weights of 0 are none: they have every divisor.
        check_unit("a 31\nb 93\nc 0\nd 0\n", 1.0);
        check_unit("a 7\nb 9\nc 63\n", 1.0);
    }

    #[test]
    fn twos_and_fives_of_fractions_come_from_writing_in_tens() {
        // 0.5, 1.5 and so on have 5 in common, whatever was counted: a whole unit is a sample then.
        check_unit("a 0.5\nb 1.5\nc 2.5\nd 4.5\ne 3.5\n", 10.0);
        check_unit("a 0.4\nb 0.8\nc 1.6\nd 3.2\ne 2.8\n", 10.0);
        // Seven numbers that have 3 in common besides are multiples of 1.2 by no accident.
        check_unit("a 1.2\nb 2.4\nc 3.6\nd 4.8\ne 6.0\nf 7.2\ng 8.4\n", 12.0);
        check_unit("a 1.2\nb 2.4\nc 3.6\nd 4.8\ne 6.0\nf 7.2\n", 10.0);
    }

    #[test]
    fn a_unit_of_weight_has_as_many_samples_as_is_said() {
        let run = Run { samples: Samples::PerUnit(4.0), ..run("a 10.5\nb 9.5\n") };
        let weights = SampleWeights::of(&run, 1);
        assert_eq!(weights.samples(&run.tree, run.tree.total()), 80.0);
        // A sample weighs a quarter of a unit, 2.5 at one decimal place.
        assert_eq!(weights.squares(0, Weight(100), Weight(200)), [250.0, 500.0]);
        // The same weights with a further decimal place are as many samples.
        let finer = SampleWeights::of(&run, 10);
        assert_eq!(finer.samples(&run.tree, Weight(run.tree.total().0 * 10)), 80.0);
    }

    #[test]
    fn squares_are_summed_up_from_callees_to_callers() {
        let mut builder = TreeBuilder::new();
        let mut add = |parent, name: &str, weight, samples| {
            let label = builder.label(name, FrameKind::User);
            let node = builder.child(parent, label);
            builder.add(node, Weight(weight));
            builder.add_before(node, Weight(samples));
            node
        };
        let a = add(BuilderNode::ROOT, "a", 40, 4);
        add(a, "b", 30, 1);
        // No sample is counted for it: its weight is taken for that of one.
        add(a, "c", 5, 0);
        let tree = builder.finish(ValueType::new("cpu", "nanoseconds"), SiblingOrder::Name);
        let run = Run { tree, samples: Samples::Counted, ..run("x 1\n") };
        let weights = SampleWeights::of(&run, 1);
        let of = |weights: &SampleWeights| {
            [0, 1, 2, 3].map(|node| weights.squares(node, Weight(0), Weight(0)))
        };
        let (a, b, c) = (400.0, 900.0, 25.0);
        assert_eq!(of(&weights), [[0.0, a + b + c], [a, a + b + c], [b, b], [c, c]]);
        let doubled = of(&weights).map(|squares| squares.map(|square| 4.0 * square));
        assert_eq!(of(&SampleWeights::of(&run, 2)), doubled);
        assert_eq!(weights.samples(&run.tree, run.tree.total()), 5.0);
    }
}
