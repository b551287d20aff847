//! How much the runs of one side differ, beyond what samples do by chance.
//!
//! The spread of a frame is Pearson's: the squared distances of its runs from their side's mean,
//! divided by the variance that sampling alone gives. Few runs estimate it badly, so what all frames
//! show is used, too, as far as frames are alike (Smyth 2004, "Linear models and empirical Bayes methods
//! for assessing differential expression in microarray experiments"): the more alike, the more
//! degrees of freedom the test has. A spread below 1, less than samples have by chance, counts as 1.

use crate::chance::Margins;
use crate::counts::{Details, NullModel, Part};
use crate::special::{digamma, inverse_trigamma, student};
use crate::tree::Weights;

/// Frames with fewer samples a run say nothing about how much runs differ in general, and neither do
/// frames that all samples but this many are in: `main` is the same in all runs.
const LEAST_ROOM: f64 = 10.0;
/// Spreads less likely than that many standard deviations say, by chance, count as those: programs
/// that take turns by the clock spread less than samples do, and that says nothing of those that
/// spread more.
const LEAST_DEVIATION: f64 = -1.28;

/// How much more than samples two recordings of one unchanged program spread, as far as that is not
/// measured by several of them: the variance of runs by that of samples. See docs/diff.md.
pub(crate) const ONE_RUN_SPREAD: f64 = 2.0;

/// The spread of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// Variance of the runs by that of samples.
    value: f64,
    /// Degrees of freedom: those of the sides where runs can differ in it. What only one side has, or
    /// all samples of a side, has fewer.
    freedom: f64,
    /// Samples a run in the frame or, if that is less, outside of it.
    room: f64,
}

impl Spread {
    /// Of the weights at a position with this many samples before and after, and what they are compared
    /// by; `None` without runs.
    pub(crate) fn of(
        null_model: &NullModel,
        details: &Details,
        at: usize,
        part: Part,
        (samples, margins): ([f64; 2], Margins),
    ) -> Option<Spread> {
        let number = null_model.exposures.len();
        let runs = details.runs.get(at * number..(at + 1) * number)?;
        let weight = |weights: &Weights| match part {
            Part::Own => weights.self_weight.0 as f64,
            Part::Total => weights.total.0 as f64,
        };
        let (before, after) = runs.split_at(null_model.runs_before);
        let (of_before, of_after) = null_model.exposures.split_at(null_model.runs_before);
        let (mut squares, mut freedom) = (0.0, 0.0);
        for (side, (runs, exposures)) in [(before, of_before), (after, of_after)].iter().enumerate()
        {
            let all: f64 = runs.iter().map(weight).sum();
            let exposure: f64 = exposures.iter().sum();
            let share = if null_model.are_shares() { all / exposure } else { 0.0 };
            if all == 0.0 || exposure == 0.0 || share >= 1.0 {
                continue;
            }
            freedom += (runs.len() - 1) as f64;
            // Samples a unit of weight here.
            let unit = samples[side] / all;
            for (run, part) in runs.iter().zip(*exposures) {
                let expect = all * part / exposure * unit;
                let variance = expect * (1.0 - share);
                if variance > 0.0 {
                    squares += (weight(run) * unit - expect).powi(2) / variance;
                }
            }
        }
        let room = null_model.testable(samples, margins) / number as f64;
        let value = if freedom > 0.0 { squares / freedom } else { 0.0 };
        Some(Spread { value, freedom, room })
    }
}

/// The spread of frames in general, and what that is worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    value: f64,
    /// Degrees of freedom; infinite where all frames spread alike.
    freedom: f64,
}

impl Prior {
    /// Recordings differ as samples do by chance.
    pub(crate) const SAMPLES: Prior = Prior { value: 1.0, freedom: f64::INFINITY };

    /// Nothing is known.
    pub(crate) const NONE: Prior = Prior { value: 1.0, freedom: 0.0 };

    /// What is known of recordings in general.
    pub(crate) const ONE_RUN: Prior = Prior { value: ONE_RUN_SPREAD, freedom: f64::INFINITY };

    /// What frames have in common, by the moments of the logarithms.
    pub(crate) fn of(spreads: &[Spread]) -> Prior {
        let is_usable = |spread: &&Spread| spread.room >= LEAST_ROOM && spread.freedom > 0.0;
        let usable: Vec<&Spread> = spreads.iter().filter(is_usable).collect();
        if usable.len() < 3 {
            return Prior::NONE;
        }
        let number = usable.len() as f64;
        // Logarithms of spreads, less what they are on average where the true spread is 1.
        let mut chance = 0.0;
        let mut log = |spread: &&Spread| {
            let expected = FloorLog::new(spread.freedom);
            chance += expected.variance;
            spread.value.max(expected.least).ln() - expected.mean
        };
        let logs: Vec<f64> = usable.iter().map(&mut log).collect();
        let centre = logs.iter().sum::<f64>() / number;
        let variance = logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / (number - 1.0);
        let excess = variance - chance / number;
        if excess <= 0.0 {
            return Prior { value: centre.exp(), freedom: f64::INFINITY };
        }
        let prior = 2.0 * inverse_trigamma(excess);
        let value = (centre + digamma(prior / 2.0) - (prior / 2.0).ln()).exp();
        Prior { value, freedom: prior }
    }

    /// Whether it says anything.
    pub(crate) fn is_known(&self) -> bool {
        self.freedom > 0.0
    }

    /// How many standard deviations of samples a change needs for its p-value to be at most `p`, of a
    /// frame that spreads between runs as frames usually do. `freedom`: degrees of freedom of the runs
    /// themselves. Infinite where no change is large enough.
    pub(crate) fn least_distance(&self, p: f64, freedom: f64) -> f64 {
        let spread = Spread { value: self.value, freedom, room: f64::INFINITY };
        let (mut low, mut high) = (0.0, 1e4);
        if self.p_value(high, spread) > p {
            return f64::INFINITY;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.p_value(middle, spread) > p {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The p-value of a change that is this many standard deviations of samples.
    pub(crate) fn p_value_alone(&self, distance: f64) -> f64 {
        self.p_value(distance, Spread { value: 0.0, freedom: 0.0, room: 0.0 })
    }

    /// The same for a frame whose own spread is known.
    pub(crate) fn p_value(&self, distance: f64, spread: Spread) -> f64 {
        let freedom = self.freedom + spread.freedom;
        if freedom <= 0.0 {
            return 1.0;
        }
        let value = if self.freedom.is_finite() {
            (self.freedom * self.value + spread.freedom * spread.value) / freedom
        } else {
            self.value
        };
        // Frames depend on each other, so what they have in common is less sure than their number says:
        // a frame that spreads more is judged by its own spread.
        student(distance / value.max(spread.value).max(1.0).sqrt(), freedom)
    }
}

/// The logarithm of a spread where the true one is 1, with small ones taken for larger ones.
struct FloorLog {
    /// Spreads below that count as that.
    least: f64,
    mean: f64,
    variance: f64,
}

impl FloorLog {
    /// A spread has the distribution of chi-squared by its degrees of freedom, whose cube root is
    /// nearly normal (Wilson and Hilferty 1931).
    fn new(freedom: f64) -> FloorLog {
        const STEPS: i32 = 400;
        let step = 2.0 / (9.0 * freedom);
        let spread = |z: f64| (1.0 - step + z * step.sqrt()).max(0.05).powi(3);
        let least = spread(LEAST_DEVIATION);
        let (mut all, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for at in -STEPS..=STEPS {
            let z = 5.0 * f64::from(at) / f64::from(STEPS);
            let (density, log) = ((-z * z / 2.0).exp(), spread(z).max(least).ln());
            all += density;
            sum += density * log;
            squares += density * log * log;
        }
        let mean = sum / all;
        FloorLog { least, mean, variance: squares / all - mean * mean }
    }
}

#[cfg(test)]
mod tests;
