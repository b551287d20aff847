//! How weights of before are made comparable with those of after: one exact factor.

use flame_profile::Weight;

/// What the two sides are made equal in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// The total: changes are changes of shares. The default, since recordings seldom have the same
    /// length and load, and shares are what a flame graph shows.
    #[default]
    Total,
    /// Nothing but the number of runs: weights are compared as they are, a run with a run.
    None,
    /// The time that was recorded: changes are changes of weight a second.
    Time,
    /// The total weight of the function of that name, which stands for the work done: changes are
    /// changes of weight for the same work.
    Function(String),
}

/// The factor that weights of before are multiplied by, as a fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    numerator: u64,
    denominator: u64,
}

impl Scale {
    /// Leaves weights as they are.
    pub const ONE: Scale = Scale { numerator: 1, denominator: 1 };

    /// Turns `before` into `after`; `None` when one of them is 0.
    pub(crate) fn between(before: u128, after: u128) -> Option<Scale> {
        if before == 0 || after == 0 {
            return None;
        }
        let divisor = gcd(before, after);
        let (mut numerator, mut denominator) = (after / divisor, before / divisor);
        // Products with weights have to fit into 127 bits. Beyond 62 bits the last is not known.
        while numerator.max(denominator) >= 1 << 62 {
            (numerator, denominator) = (numerator.div_ceil(2), denominator.div_ceil(2));
        }
        let fits = |number| u64::try_from(number).ok();
        Some(Scale { numerator: fits(numerator)?, denominator: fits(denominator)? })
    }

    /// The factor's numerator.
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The factor's denominator; never 0.
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// A weight of before in the measure of after.
    pub fn of(self, before: Weight) -> f64 {
        self.quotient(u128::from(before.0) * u128::from(self.numerator))
    }

    /// A number by the denominator: whole and part on their own, so that whole numbers stay whole.
    fn quotient(self, number: u128) -> f64 {
        let denominator = self.denominator;
        // A division of 128 bits takes several times as long, and hardly any weight asks for it.
        let (whole, part) = match u64::try_from(number) {
            Ok(number) => ((number / denominator) as f64, number % denominator),
            Err(_) => {
                let denominator = u128::from(denominator);
                ((number / denominator) as f64, (number % denominator) as u64)
            }
        };
        whole + part as f64 / denominator as f64
    }

    /// What was added to a weight, in the measure of after: 0 exactly where nothing was, and of the
    /// right sign always.
    pub fn change(self, before: Weight, after: Weight) -> f64 {
        let before = u128::from(before.0.min(i64::MAX as u64)) * u128::from(self.numerator);
        let after = u128::from(after.0.min(i64::MAX as u64)) * u128::from(self.denominator);
        let sign = if after < before { -1.0 } else { 1.0 };
        sign * self.quotient(after.abs_diff(before))
    }
}

/// The greatest common divisor; the other number where one is 0.
pub(crate) fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact() {
        let scale = Scale::between(300, 200).unwrap();
        assert_eq!((scale.numerator(), scale.denominator()), (2, 3));
        assert_eq!(scale.of(Weight(300)), 200.0);
        assert_eq!(scale.of(Weight(1)), 2.0 / 3.0);
        assert_eq!(scale.change(Weight(3), Weight(2)), 0.0);
        assert!(scale.change(Weight(3), Weight(2)).is_sign_positive());
        assert_eq!(scale.change(Weight(3), Weight(1)), -1.0);
        assert_eq!(scale.change(Weight(0), Weight(7)), 7.0);
        assert_eq!(Scale::between(0, 5), None);
        assert_eq!(Scale::between(5, 0), None);
    }

    #[test]
    fn large_weights_keep_their_sign() {
        let scale = Scale::between(u128::from(u64::MAX), u128::from(u64::MAX - 1)).unwrap();
        assert!(scale.numerator() < 1 << 62 && scale.denominator() < 1 << 62);
        let exact = Scale::between(1 << 61, (1 << 61) - 1).unwrap();
        assert_eq!(exact.change(Weight(1 << 61), Weight((1 << 61) - 1)), 0.0);
        assert!(exact.change(Weight(1 << 61), Weight((1 << 61) - 2)) < 0.0);
        assert!(exact.change(Weight((1 << 61) - 3), Weight((1 << 61) - 3)) > 0.0);
    }
}
