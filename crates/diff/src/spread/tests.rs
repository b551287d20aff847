use flame_profile::Weight;

use super::*;
use crate::Scaling;

/// The spread of a position where each run has a weight and an exposure, two runs before and the
/// others after; a sample weighs 2 before and 4 after.
fn spread_of<const RUNS: usize>(scaling: &Scaling, runs: [(u64, f64); RUNS]) -> Spread {
    let exposures: Vec<f64> = runs.iter().map(|(_, exposure)| *exposure).collect();
    let base = [exposures[..2].iter().sum(), exposures[2..].iter().sum()];
    let null_model = NullModel::new(scaling, 1.0, [2.0, 4.0], base, exposures, 2);
    // Position 0 is another one's.
    let own = runs.map(|(weight, _)| Weights { total: Weight(7), self_weight: Weight(weight) });
    let runs = [[Weights::default(); RUNS], own].concat();
    let sum = |runs: &[Weights]| runs.iter().map(|run| run.self_weight).sum::<Weight>();
    let (before, after) = runs[RUNS..].split_at(2);
    let compared = null_model.samples([sum(before), sum(after)], None);
    let details = Details { squares: Vec::new(), runs };
    Spread::of(&null_model, &details, 1, Part::Own, compared).unwrap()
}

#[track_caller]
fn check_spread(found: Spread, value: f64, freedom: f64, room: f64) {
    let close = |found: f64, expect: f64| (found - expect).abs() < 1e-5;
    let is_it = close(found.value, value) && close(found.room, room);
    assert!(is_it && found.freedom == freedom, "{found:?}");
}

#[test]
fn the_spread_is_the_variance_of_runs_by_that_of_samples() {
    // A half of 100 and 300 and a quarter of 400 and 800 are 25, 75, 25 and 50 samples: each run
    // is 5 beside that. The share that a side does not have is what is left of the variance.
    let runs = [(40, 100.0), (160, 300.0), (120, 400.0), (180, 800.0)];
    let squares = [25.0 / 12.5, 25.0 / 37.5, 25.0 / 18.75, 25.0 / 37.5];
    let found = spread_of(&Scaling::Total, runs);
    check_spread(found, squares.iter().sum::<f64>() / 2.0, 2.0, 175.0 / 4.0);
    // Rates have all of the variance: 25 samples a run before, 15 after.
    let runs = [(40, 1.0), (60, 1.0), (40, 1.0), (80, 1.0), (60, 1.0)];
    let value = (50.0 / 25.0 + 50.0 / 15.0) / 3.0;
    check_spread(spread_of(&Scaling::None, runs), value, 3.0, 95.0 / 5.0);
}

#[test]
fn only_sides_whose_runs_can_differ_have_degrees_of_freedom() {
    let (own, other) = ([(40, 100.0), (160, 300.0)], [(0, 400.0), (0, 800.0)]);
    let of = |before: [_; 2], after: [_; 2]| {
        spread_of(&Scaling::Total, [before[0], before[1], after[0], after[1]])
    };
    let value = 25.0 / 12.5 + 25.0 / 37.5;
    // After has nothing of it, or all of its samples are in it.
    check_spread(of(own, other), value, 1.0, 100.0 / 4.0);
    check_spread(of(own, [(400, 400.0), (800, 800.0)]), value, 1.0, 100.0 / 4.0);
    check_spread(of([(0, 100.0), (0, 300.0)], other), 0.0, 0.0, 0.0);
    // The function that stands for the work is in no run of a side, or in one only.
    let by = Scaling::Function("request".to_owned());
    let found = spread_of(&by, [(40, 100.0), (160, 300.0), (8, 0.0), (8, 0.0)]);
    check_spread(found, 25.0 / 25.0 + 25.0 / 75.0, 1.0, 104.0 / 4.0);
    let found = spread_of(&by, [(40, 100.0), (160, 300.0), (80, 40.0), (0, 0.0)]);
    check_spread(found, (25.0 / 25.0 + 25.0 / 75.0) / 2.0, 2.0, 120.0 / 4.0);
}

#[test]
fn frames_that_spread_alike_are_believed_like_many_runs() {
    // Quantiles of chi-squared with 4 degrees of freedom, by 4.
    let quantiles = [1.064, 1.649, 2.195, 2.753, 3.357, 4.045, 4.878, 5.989, 7.779];
    let spread = |value: f64| Spread { value: value / 4.0, freedom: 4.0, room: 100.0 };
    let spreads: Vec<Spread> = quantiles.iter().map(|value| spread(*value)).collect();
    let prior = Prior::of(&spreads);
    assert_eq!(prior.freedom, f64::INFINITY);
    assert!((prior.value - 1.0).abs() < 0.1, "{prior:?}");
    let p = prior.p_value(4.0, spread(4.0));
    // Not far from the 6.3e-5 of a normal variable; 0.016 with the four degrees alone.
    assert!((6.3e-5..1e-4).contains(&p), "{p}");
}

#[test]
fn frames_that_spread_differently_are_judged_by_their_own() {
    let spread = |value: f64| Spread { value, freedom: 4.0, room: 100.0 };
    let spreads: Vec<Spread> =
        (0..20).map(|at| spread(if at % 2 == 0 { 0.5 } else { 50.0 })).collect();
    let prior = Prior::of(&spreads);
    assert!(prior.freedom < 4.0, "{prior:?}");
    let calm = prior.p_value(6.0, spread(1.0));
    let wild = prior.p_value(6.0, spread(50.0));
    assert!(calm < wild && wild > 0.2, "{calm} {wild}");
}

#[test]
fn what_all_frames_and_one_show_is_weighed_by_its_degrees_of_freedom() {
    let prior = Prior { value: 9.0, freedom: 6.0 };
    let calm = Spread { value: 1.0, freedom: 2.0, room: 100.0 };
    assert_eq!(prior.p_value(6.0, calm), student(6.0 / 7_f64.sqrt(), 8.0));
}

#[test]
fn frames_of_one_side_are_believed_by_its_runs() {
    // Quantiles of chi-squared with 2 and 4 degrees of freedom: the same spread.
    let spread = |value: f64, freedom: f64| Spread { value: value / freedom, freedom, room: 50.0 };
    let two = [0.211, 0.446, 0.713, 1.022, 1.386, 1.833, 2.408, 3.219, 4.605];
    let four = [1.064, 1.649, 2.195, 2.753, 3.357, 4.045, 4.878, 5.989, 7.779];
    let spreads = two.iter().map(|value| spread(*value, 2.0));
    let spreads: Vec<Spread> =
        spreads.chain(four.iter().map(|value| spread(*value, 4.0))).collect();
    let prior = Prior::of(&spreads);
    assert!((prior.value - 1.0).abs() < 0.1 && prior.freedom == f64::INFINITY, "{prior:?}");
    // What no two runs can differ in says nothing about the others, nor about itself.
    let silent = Spread { value: 0.0, freedom: 0.0, room: 500.0 };
    let with_silent = Prior::of(&[&spreads[..], &[silent; 9]].concat());
    assert_eq!(with_silent.value, prior.value);
    assert_eq!(Prior::NONE.p_value(9.0, silent), 1.0);
}

#[test]
fn what_spreads_less_than_samples_makes_nothing_less_sure() {
    let spread = |value: f64| Spread { value, freedom: 4.0, room: 100.0 };
    let quantiles = [1.064, 1.649, 2.195, 2.753, 3.357, 4.045, 4.878, 5.989, 7.779];
    let mut spreads: Vec<Spread> = quantiles.iter().map(|value| spread(value / 4.0)).collect();
    spreads.extend([0.01, 0.03, 0.07].map(spread));
    let prior = Prior::of(&spreads);
    assert!(prior.freedom > 20.0, "{prior:?}");
    // As before of what spreads more.
    spreads.extend([9.0, 12.0, 30.0].map(spread));
    assert!(Prior::of(&spreads).freedom < 8.0, "{:?}", Prior::of(&spreads));
}

#[test]
fn the_logarithm_of_a_spread_has_that_mean_and_variance() {
    // Chi-squared with 4 degrees of freedom, by 4, is 0.265 in a tenth of all cases; 200,000
    // sums of four squares of normal variables, those below taken for that, gave -0.214 and 0.461.
    let found = FloorLog::new(4.0);
    let close = |found: f64, expect: f64| assert!((found - expect).abs() < 0.01, "{found}");
    close(found.least, 0.266);
    close(found.mean, -0.214);
    close(found.variance, 0.461);
}

#[test]
fn the_least_distance_is_where_changes_begin_to_be_real() {
    let close = |found: f64, expect: f64| assert!((found - expect).abs() < 1e-4, "{found}");
    close(Prior::SAMPLES.least_distance(0.05, 4.0), 1.959_964);
    // Twice the variance: its root times the distance.
    close(Prior::ONE_RUN.least_distance(0.05, 0.0), 1.959_964 * 2_f64.sqrt());
    // Student's t of the runs alone, where nothing is known of frames in general.
    close(Prior::NONE.least_distance(0.05, 4.0), 2.776_445);
    assert_eq!(Prior::NONE.least_distance(0.05, 0.0), f64::INFINITY);
    // What spreads less than samples do is judged as they are.
    let even = Prior { value: 0.2, freedom: f64::INFINITY };
    close(even.least_distance(0.05, 4.0), 1.959_964);
}

#[test]
fn what_frames_have_in_common_follows_from_how_their_spreads_vary() {
    // Each ten times the one before: the variance of their logarithms is the square of that of 10,
    // of which chance brings some. Three are the fewest that say anything.
    let spreads = [0.5, 5.0, 50.0].map(|value| Spread { value, freedom: 4.0, room: 10.0 });
    let chance = FloorLog::new(4.0);
    let half = inverse_trigamma(10_f64.ln().powi(2) - chance.variance);
    let centre = 5_f64.ln() - chance.mean + digamma(half) - half.ln();
    let prior = Prior::of(&spreads);
    let close = |found: f64, expect: f64| assert!((found / expect - 1.0).abs() < 1e-9, "{found}");
    close(prior.freedom, 2.0 * half);
    close(prior.value, centre.exp());
}

#[test]
fn few_frames_say_nothing() {
    let few = [Spread { value: 9.0, freedom: 2.0, room: 100.0 }; 2];
    assert_eq!(Prior::of(&few).freedom, 0.0);
    let poor = [Spread { value: 9.0, freedom: 2.0, room: 1.0 }; 9];
    assert_eq!(Prior::of(&poor).freedom, 0.0);
    assert_eq!(Prior::of(&[]).freedom, 0.0);
}
