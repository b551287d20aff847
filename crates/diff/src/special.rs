//! The distributions that the tests need, as tails and logarithms.

/// `ln(n!)`.
pub(crate) fn ln_factorial(n: f64) -> f64 {
    libm::lgamma(n + 1.0)
}

/// The chance that a standard normal variable is further from 0 than `z`, on either side.
pub(crate) fn normal(z: f64) -> f64 {
    libm::erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// The chance that Student's t with that many degrees of freedom, perhaps infinitely many, is
/// further from 0 than `t`, on either side.
pub(crate) fn student(t: f64, freedom: f64) -> f64 {
    if freedom > 1e6 {
        return normal(t);
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22), evaluated
/// with Lentz's method.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly only on this side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp() / a;
    let away_from_0 = |number: f64| if number.abs() < 1e-300 { 1e-300 } else { number };
    let (mut c, mut d) = (1.0, away_from_0(1.0 - (a + b) * x / (a + 1.0)).recip());
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = away_from_0(1.0 + term * d).recip();
            c = away_from_0(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The derivative of the logarithm of the gamma function: recurrence, then DLMF 5.11.2.
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 8.0 {
        sum -= x.recip();
        x += 1.0;
    }
    let square = (x * x).recip();
    sum + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

/// The derivative of [`digamma`].
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 8.0 {
        sum += (x * x).recip();
        x += 1.0;
    }
    let square = (x * x).recip();
    sum + x.recip() * (1.0 + 0.5 / x + square * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0)))
}

/// Where [`trigamma`] has that value, which is above 0: it falls, so bisection finds it.
pub(crate) fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-8_f64, 1e8_f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expect: f64) {
        assert!((found / expect - 1.0).abs() < 1e-9, "{found} is not {expect}");
    }

    #[test]
    fn tails_are_those_of_tables() {
        close(normal(1.959_963_984_540_054), 0.05);
        close(normal(-6.0), 1.973_175_290_075_396_4e-9);
        close(student(2.776_445_105_197_793, 4.0), 0.05);
        close(student(12.706_204_736_174_7, 1.0), 0.05);
        close(student(1.959_963_984_540_054, f64::INFINITY), 0.05);
        close(student(0.5, 10.0), 0.627_893_605_742_976_3);
        close(student(30.0, 2.5), 2.910_647_091_573_954e-4);
        close(student(2.5, 7.5), 0.038_820_258_273_625_56);
        // Far out nothing is left of a number less than 1, and near 0 the fraction converges slowly.
        close(student(40.0, 20.0), 1.457_469_655_431_076_4e-20);
        close(student(0.001, 10.0), 0.999_221_783_374_741);
        close(student(0.0, 7.5), 1.0);
        assert_eq!(student(f64::INFINITY, 7.5), 0.0);
        assert!((student(3.0, 1e6) / 2.699_862_541_421_8e-3 - 1.0).abs() < 1e-7);
        close(ln_factorial(10.0), 3_628_800_f64.ln());
    }

    #[test]
    fn the_incomplete_beta_function_is_that_of_tables() {
        close(incomplete_beta(2.5, 1.5, 0.2), 0.033_728_715_448_579_81);
        close(incomplete_beta(2.5, 1.5, 0.9), 0.902_119_357_058_620_2);
        close(incomplete_beta(40.0, 0.5, 0.97), 0.119_673_137_138_750_03);
        close(incomplete_beta(40.0, 0.5, 0.999), 0.777_919_867_635_688_1);
        close(incomplete_beta(500.0, 0.5, 0.99), 1.527_357_879_052_989e-3);
        close(incomplete_beta(3.0, 7.0, 0.1), 0.052_972_138);
    }

    #[test]
    fn gamma_derivatives_are_those_of_tables() {
        close(digamma(1.0), -0.577_215_664_901_532_9);
        close(digamma(0.5), -1.963_510_026_021_423_5);
        close(digamma(3.0), 0.922_784_335_098_467_1);
        close(digamma(8.0), 2.015_641_477_955_61);
        close(trigamma(3.0), 0.394_934_066_848_226_4);
        close(trigamma(9.0), 0.117_512_014_694_031_43);
        close(trigamma(1.0), 1.644_934_066_848_226_4);
        close(trigamma(0.5), 4.934_802_200_544_679);
        for x in [0.01, 0.5, 3.0, 500.0] {
            close(inverse_trigamma(trigamma(x)), x);
        }
    }
}
