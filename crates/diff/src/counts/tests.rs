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
