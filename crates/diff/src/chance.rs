//! The chance that a change like an observed one comes up although nothing changed.
//!
//! Shares of two totals are a two by two table: given how many samples both sides have in all, and
//! how many of both are in the frame, those of after follow the hypergeometric distribution
//! (Fisher's exact test). Rates, for the same time or the same number of runs, have no such totals:
//! given how many samples both sides have in the frame, those of after follow the binomial
//! distribution (Przyborowski and Wilenski 1940). The p-value is twice the smaller tail. Both are
//! taken for normal where the standard deviation is beyond [`EXACT_UP_TO`] samples, and from
//! [`EXACT_ALWAYS`] on where the change is clearly less or more than what is called real.

use crate::special::{ln_factorial, normal};

/// The largest standard deviation, in samples, for which tails are summed up term by term: some
/// thousand at most. Beyond that a normal tail is off by less than a factor of 1.5 as far out as
/// six standard deviations.
const EXACT_UP_TO: f64 = 100.0;
/// Up to this standard deviation, in samples, a tail has few terms, and its normal one is wrong.
const EXACT_ALWAYS: f64 = 10.0;
/// Around how many standard deviations make a change real tails are summed up, by these factors.
const CLEARLY: [f64; 2] = [0.7, 1.4];
/// Changes of less than this many standard deviations could be noise even if nothing else was tested.
const NO_SIGN: f64 = 1.5;

/// What the samples in a frame are compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Margins {
    /// All samples of both sides, those in the frame included.
    Shares { before: f64, after: f64 },
    /// The share of both sides' samples in the frame that after has if nothing changed, in 0 to 1.
    Rates { after: f64 },
}

/// How many standard deviations a change needs for its p-value, two-sided, to be that small.
pub(crate) fn deviations(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal(middle) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Samples in a frame, how they are spread if nothing changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// How many of them after has on average.
    pub(crate) mean: f64,
    /// And the standard deviation of that.
    pub(crate) deviation: f64,
}

impl Margins {
    /// What to expect of a frame with `both` samples on both sides together.
    pub(crate) fn expected(self, both: f64) -> Expected {
        let (mean, variance) = match self {
            Margins::Shares { before, after } => {
                let all = before + after;
                let q = after / all;
                let mean = both * q;
                (mean, mean * (1.0 - q) * (all - both).max(0.0) / (all - 1.0).max(1.0))
            }
            Margins::Rates { after: q } => (both * q, both * q * (1.0 - q)),
        };
        Expected { mean, deviation: variance.sqrt() }
    }

    /// How far a change is from none, in standard deviations; 0 where there can be no change.
    pub(crate) fn distance(self, before: f64, after: f64) -> f64 {
        let Expected { mean, deviation } = self.expected(before + after);
        if deviation > 0.0 { (after - mean) / deviation } else { 0.0 }
    }

    /// The p-value of this many samples before and after; 1 where it is not near anything that could
    /// matter. `critical` is about how many standard deviations make a change real. Where the p-value is
    /// below `least`, that is the result, most often without any tail being summed up; it is asked for
    /// only where there is a sign of a change.
    pub(crate) fn p_value(
        self,
        before: f64,
        after: f64,
        critical: f64,
        least: impl FnOnce() -> f64,
    ) -> f64 {
        let (before, after) = (before.round(), after.round());
        let Expected { mean, deviation } = self.expected(before + after);
        // The distributions are of whole numbers: half a sample on the way to the next one.
        let distance = (after - mean).abs() - 0.5;
        if deviation <= 0.0 || distance < NO_SIGN * deviation {
            return 1.0;
        }
        let least = least();
        let deviations = distance / deviation;
        let [less, more] = CLEARLY.map(|factor| factor * critical);
        let is_clear = !(less..more).contains(&deviations) && deviation > EXACT_ALWAYS;
        if is_clear || deviation > EXACT_UP_TO {
            return normal(deviations).max(least);
        }
        if 2.0 * self.rounded().tail_at_most(before, after, mean) < least {
            return least;
        }
        let tail = match self.rounded() {
            Margins::Shares { before: n1, after: n2 } if n1 + n2 < 1e12 => {
                let table = Table { n1: n1.max(before), n2: n2.max(after), both: before + after };
                table.tail(after, mean)
            }
            // Of so many samples, taking some away leaves the others as they are.
            Margins::Shares { before: n1, after: n2 } => {
                binomial_tail(before + after, n2 / (n1 + n2), after, mean)
            }
            Margins::Rates { after: q } => binomial_tail(before + after, q, after, mean),
        };
        (2.0 * tail).min(1.0).max(least)
    }

    /// What the chance of as many samples after or, seen from the mean, beyond is at most (Hoeffding 1963,
    /// theorems 1 and 4): exp(-n D), where D is the divergence of the observed share from the expected one.
    fn tail_at_most(self, before: f64, after: f64, mean: f64) -> f64 {
        // More than what logarithms and products are off by.
        const ROUNDING: f64 = 1.0 + 1e-6;
        let (both, share) = (before + after, self.share_of_after());
        if (after > mean) != (after > both * share) {
            return 1.0;
        }
        let divergence = |samples: f64, share: f64| match samples > 0.0 {
            true => samples * (samples / (both * share)).ln(),
            false => 0.0,
        };
        let exponent = divergence(after, share) + divergence(before, 1.0 - share);
        (-exponent).exp() * ROUNDING
    }

    /// The share of both sides' samples that after has if nothing changed.
    fn share_of_after(self) -> f64 {
        match self {
            Margins::Shares { before, after } => after / (before + after),
            Margins::Rates { after } => after,
        }
    }

    /// The smallest p-value that so many samples on both sides together can have.
    pub(crate) fn least_p_value(self, both: f64) -> f64 {
        let q = self.share_of_after();
        (2.0 * q.min(1.0 - q).powf(both)).min(1.0)
    }

    fn rounded(self) -> Margins {
        match self {
            Margins::Shares { before, after } => {
                Margins::Shares { before: before.round(), after: after.round() }
            }
            rates => rates,
        }
    }
}

/// A two by two table, all whole numbers.
struct Table {
    n1: f64,
    n2: f64,
    both: f64,
}

impl Table {
    /// The chance of as many samples after as `from` or, seen from the mean, beyond.
    fn tail(&self, from: f64, mean: f64) -> f64 {
        let Table { n1, n2, both } = *self;
        let choose = |n: f64, k: f64| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
        let first = choose(n2, from) + choose(n1, both - from) - choose(n1 + n2, both);
        let up = |k: f64| (both - k) * (n2 - k) / ((k + 1.0) * (n1 - both + k + 1.0));
        sum_beyond(first.exp(), from, mean, up)
    }
}

/// The same for `trials`, each of which is after's with a chance of `q`.
fn binomial_tail(trials: f64, q: f64, from: f64, mean: f64) -> f64 {
    let choose = ln_factorial(trials) - ln_factorial(from) - ln_factorial(trials - from);
    let first = choose + from * q.ln() + (trials - from) * (-q).ln_1p();
    sum_beyond(first.exp(), from, mean, |k| (trials - k) / (k + 1.0) * q / (1.0 - q))
}

/// Sums chances up from the one of `from` on, away from the mean, until they no longer matter;
/// `up` is by what the chance of a number is multiplied to be that of the next.
fn sum_beyond(first: f64, from: f64, mean: f64, up: impl Fn(f64) -> f64) -> f64 {
    let (mut sum, mut term, mut at) = (first, first, from);
    loop {
        let (factor, next) =
            if from > mean { (up(at), at + 1.0) } else { (up(at - 1.0).recip(), at - 1.0) };
        // Outside of what is possible the factor is 0, and its inverse infinite or negative.
        if !(factor > 0.0 && factor.is_finite()) || next < 0.0 {
            return sum;
        }
        (term, at) = (term * factor, next);
        sum += term;
        if term < sum * 1e-12 {
            return sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(margins: Margins, before: f64, after: f64, expect: f64) {
        let found = margins.p_value(before, after, 4.0, || 0.0);
        assert!((found / expect - 1.0).abs() < 1e-6, "{found} is not {expect}");
    }

    #[test]
    fn tables_have_fishers_p_value() {
        // Fisher's tea: 10 and 0 of 10 and 10: twice 1 of C(20, 10) = 184,756.
        check(Margins::Shares { before: 10.0, after: 10.0 }, 0.0, 10.0, 2.0 / 184_756.0);
        check(Margins::Shares { before: 10.0, after: 10.0 }, 10.0, 0.0, 2.0 / 184_756.0);
        // 1 of 10 before, 8 of 10 after: (C(10,8) C(10,1) + C(10,9)) / C(20,9), twice.
        let p = 2.0 * (45.0 * 10.0 + 10.0) / 167_960.0;
        check(Margins::Shares { before: 10.0, after: 10.0 }, 1.0, 8.0, p);
    }

    #[test]
    fn rates_have_the_binomial_p_value() {
        // 10 heads of 10: twice 2^-10.
        check(Margins::Rates { after: 0.5 }, 0.0, 10.0, 2.0 / 1024.0);
        check(Margins::Rates { after: 0.5 }, 10.0, 0.0, 2.0 / 1024.0);
        // 9 of 10 with a chance of 1/4: (10 * 3/4 + 1/4) / 4^9.
        check(Margins::Rates { after: 0.25 }, 1.0, 9.0, 2.0 * (7.5 + 0.25) / 4_f64.powi(9));
    }

    #[test]
    fn exact_and_normal_tails_meet() {
        for z in [3.0, 5.0] {
            for half in [19_000.0, 21_000.0] {
                let rates = Margins::Rates { after: 0.5 };
                let Expected { mean, deviation } = rates.expected(2.0 * half);
                let shift = (z * deviation).round();
                let p = rates.p_value(mean - shift, mean + shift, 4.0, || 0.0);
                let expect = normal((shift - 0.5) / deviation);
                assert!((p / expect - 1.0).abs() < 0.02, "{p} {expect}");
            }
        }
    }

    #[test]
    fn tails_are_summed_up_where_it_matters_and_normal_elsewhere() {
        let half = Margins::Rates { after: 0.5 };
        // Of `both` samples so many more than half after: the standard deviation is sqrt(both) / 2.
        let p =
            |both: f64, more: f64| half.p_value(both / 2.0 - more, both / 2.0 + more, 4.0, || 0.0);
        let of_normal = |both: f64, more: f64| normal((more - 0.5) / (both.sqrt() / 2.0));
        assert_eq!(p(1600.0, 28.0), 1.0, "1.4 deviations are not a sign");
        let normal_ones = [
            (1600.0, 31.0, "clearly less than what is called real"),
            (1600.0, 120.0, "clearly more"),
            (90_000.0, 600.0, "of many samples"),
        ];
        for (both, more, what) in normal_ones {
            assert_eq!(p(both, more), of_normal(both, more), "{what}");
        }
        let exact_ones = [
            (1600.0, 80.0, "near what is called real"),
            (100.0, 30.0, "of few samples"),
            (400.0, 60.0, "of a deviation of 10"),
            (40_000.0, 400.0, "of a deviation of 100"),
        ];
        for (both, more, what) in exact_ones {
            let (found, normal) = (p(both, more), of_normal(both, more));
            assert!(found != normal && (0.1..3.0).contains(&(found / normal)), "{what}: {found}");
        }
        // Of so many samples it does not matter that some are taken away.
        let many = Margins::Shares { before: 1e12, after: 1e12 };
        assert_eq!(many.p_value(30.0, 10.0, 4.0, || 0.0), half.p_value(30.0, 10.0, 4.0, || 0.0));
    }

    #[test]
    fn what_is_below_another_p_value_is_that_one() {
        let shares = |before, after| Margins::Shares { before, after };
        let all = [shares(30.0, 50.0), shares(500.0, 90.0), Margins::Rates { after: 0.3 }];
        for margins in all {
            for (before, after) in (0..30).flat_map(|b| (0..50).map(move |a| (b, a))) {
                let [before, after] = [before, after].map(f64::from);
                let p = margins.p_value(before, after, 4.0, || 0.0);
                for least in [p / 2.0, p * 0.999, p, (p * 1.5).min(1.0), (p * 3.0).min(1.0)] {
                    let found = margins.p_value(before, after, 4.0, || least);
                    assert_eq!(found, p.max(least), "{margins:?}, {before} and {after}");
                }
            }
        }
    }

    #[test]
    fn swapped_sides_are_as_surprising() {
        let one = Margins::Shares { before: 300.0, after: 700.0 };
        let two = Margins::Shares { before: 700.0, after: 300.0 };
        for (before, after) in [(30.0, 20.0), (0.0, 40.0), (250.0, 690.0), (299.0, 600.0)] {
            let (a, b) =
                (one.p_value(before, after, 4.0, || 0.0), two.p_value(after, before, 4.0, || 0.0));
            assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn what_is_as_expected_is_no_sign() {
        let shares = Margins::Shares { before: 1000.0, after: 2000.0 };
        assert_eq!(shares.p_value(100.0, 200.0, 4.0, || 0.0), 1.0);
        assert_eq!(shares.p_value(1000.0, 2000.0, 4.0, || 0.0), 1.0);
        assert_eq!(shares.p_value(0.0, 0.0, 4.0, || 0.0), 1.0);
        assert_eq!(Margins::Rates { after: 0.5 }.p_value(0.0, 0.0, 4.0, || 0.0), 1.0);
        assert_eq!(shares.p_value(0.0, 1.0, 4.0, || 0.0), 1.0);
    }

    /// The hypergeometric distribution of 40 samples of 100 and 300: mean 30, variance 40 * 3/4 * 1/4
    /// * 360/399.
    #[test]
    fn what_is_expected_is_that_of_the_distributions() {
        let close = |found: f64, expect: f64| assert!((found - expect).abs() < 1e-12, "{found}");
        let shares = Margins::Shares { before: 100.0, after: 300.0 };
        let Expected { mean, deviation } = shares.expected(40.0);
        close(mean, 30.0);
        close(deviation * deviation, 7.5 * 360.0 / 399.0);
        // All samples are in the frame: no room to differ; more than all, by rounding, has none.
        close(shares.expected(400.0).deviation, 0.0);
        close(shares.expected(400.5).deviation, 0.0);
        // A single sample: a Bernoulli trial, whose variance must not be divided by 0.
        let single = Margins::Shares { before: 0.5, after: 0.5 };
        close(single.expected(0.5).deviation.powi(2), 0.125 * 0.5);
        let Expected { mean, deviation } = Margins::Rates { after: 0.2 }.expected(50.0);
        close(mean, 10.0);
        close(deviation * deviation, 8.0);
    }

    #[test]
    fn distances_are_in_standard_deviations_with_their_sign() {
        let close = |found: f64, expect: f64| assert!((found - expect).abs() < 1e-12, "{found}");
        let rates = Margins::Rates { after: 0.5 };
        close(rates.distance(10.0, 90.0), 8.0);
        close(rates.distance(90.0, 10.0), -8.0);
        close(rates.distance(0.0, 0.0), 0.0);
        let shares = Margins::Shares { before: 100.0, after: 300.0 };
        close(shares.distance(10.0, 30.0), 0.0);
        close(shares.distance(4.0, 36.0), 6.0 / (7.5_f64 * 360.0 / 399.0).sqrt());
        // All that there is: it cannot have changed.
        close(shares.distance(100.0, 300.0), 0.0);
    }

    #[test]
    fn the_least_p_value_has_all_samples_on_the_rarer_side() {
        let close = |found: f64, expect: f64| assert!((found - expect).abs() < 1e-15, "{found}");
        close(Margins::Shares { before: 100.0, after: 300.0 }.least_p_value(3.0), 2.0 / 64.0);
        close(Margins::Shares { before: 300.0, after: 100.0 }.least_p_value(3.0), 2.0 / 64.0);
        close(Margins::Rates { after: 0.1 }.least_p_value(2.0), 0.02);
        close(Margins::Rates { after: 0.5 }.least_p_value(0.0), 1.0);
    }

    #[test]
    fn deviations_are_those_of_tables() {
        assert!((deviations(0.05) - 1.959_964).abs() < 1e-5);
        assert!((deviations(1e-9) - 6.109_410).abs() < 1e-5);
    }

    #[test]
    fn large_numbers_stay_finite() {
        let huge = Margins::Shares { before: 1e15, after: 2e15 };
        assert!((0.0..1e-3).contains(&huge.p_value(30.0, 10.0, 4.0, || 0.0)));
        assert!(huge.p_value(1e15, 1e15, 4.0, || 0.0) < 1e-100);
    }
}
