//! Many changes tested at once: which of them count, and which are real.
//!
//! All tests of a comparison are one family, and the chance that any of them is called real by
//! accident is bounded, however they depend on each other (Holm 1979): the total of a caller holds that of
//! its callees, and a share that grows makes others shrink. What has too few samples to ever be
//! called real is not in the family (Tarone 1990): whether it is depends on the samples of both
//! sides together, which say nothing about a change.

use crate::chance::Margins;

/// Frames with at least this many samples are all testable.
const MOST: usize = 4096;

/// How many changes could be tested, by how many samples they have.
#[derive(Debug)]
pub(crate) struct TestableCounts {
    frames: Vec<u64>,
}

impl TestableCounts {
    pub(crate) fn new() -> TestableCounts {
        TestableCounts { frames: vec![0; MOST + 1] }
    }

    /// Counts a change with this many samples.
    pub(crate) fn add(&mut self, samples: f64) {
        self.frames[place(samples)] += 1;
    }

    /// Adds what another has counted.
    pub(crate) fn merge(&mut self, other: &TestableCounts) {
        for (sum, number) in self.frames.iter_mut().zip(&other.frames) {
            *sum += number;
        }
    }

    /// The least number of samples with which a change can be called real, and how many changes
    /// have as many.
    pub(crate) fn testable(&self, margins: Margins, alpha: f64) -> (f64, u64) {
        let mut number: u64 = self.frames.iter().sum();
        for (samples, frames) in self.frames.iter().enumerate() {
            if number == 0 {
                break;
            }
            if margins.least_p_value(samples as f64) * number as f64 <= alpha {
                return (samples as f64, number);
            }
            number -= frames;
        }
        (f64::INFINITY, 0)
    }
}

fn place(samples: f64) -> usize {
    (samples.max(0.0) as usize).min(MOST)
}

/// Holm's procedure over p-values: what each of them is corrected to.
#[derive(Debug)]
pub(crate) struct Holm {
    alpha: f64,
    /// Rounds, each with the largest p-value that it calls real, what p-values are multiplied by,
    /// and the least that they are corrected to.
    rounds: Vec<(f64, f64, f64)>,
    /// What all others are multiplied by.
    rest: f64,
}

impl Holm {
    /// Of `tested` p-values, of which those in `small` are all that are at most `alpha`.
    ///
    /// In each round all are real that would be if only those were left that are not real yet,
    /// until a round has none. That calls real what walking the sorted values does, and sorts
    /// nothing.
    pub(crate) fn new(mut small: Vec<f32>, tested: u64, alpha: f64) -> Holm {
        let mut left = tested;
        let mut rounds = Vec::new();
        let mut least = 0.0;
        loop {
            let factor = left.max(1) as f64;
            let real = |p: &f32| f64::from(*p) * factor <= alpha;
            let most = small.iter().copied().filter(real).max_by(f32::total_cmp);
            let Some(most) = most.map(f64::from) else { break };
            rounds.push((most, factor, least));
            least = f64::max(least, most * factor);
            let before = small.len();
            small.retain(|p| !real(p));
            left = left.saturating_sub((before - small.len()) as u64);
        }
        Holm { alpha, rounds, rest: left.max(1) as f64 }
    }

    /// A p-value corrected, and whether it is real.
    pub(crate) fn corrected(&self, p: f32) -> (f64, bool) {
        let p = f64::from(p);
        match self.rounds.iter().find(|(most, ..)| p <= *most) {
            Some((_, factor, least)) => ((p * factor).max(*least), true),
            None => ((p * self.rest).clamp(self.alpha, 1.0), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is real by Holm's paper: sorted, each against alpha by the number of those left.
    fn by_the_book(p: &[f32], alpha: f64) -> usize {
        let mut sorted = p.to_vec();
        sorted.sort_by(f32::total_cmp);
        let passes = |(at, p): &(usize, &f32)| f64::from(**p) * (sorted.len() - at) as f64 <= alpha;
        sorted.iter().enumerate().take_while(passes).count()
    }

    #[test]
    fn rounds_call_real_what_sorting_does() {
        let mut state = 7_u64;
        for case in 0..300 {
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((state >> 33) as f32 / (1_u64 << 31) as f32).powi(1 + case % 9)
            };
            let p: Vec<f32> = (0..40).map(|_| random()).collect();
            let small = p.iter().copied().filter(|p| f64::from(*p) <= 0.05).collect();
            let holm = Holm::new(small, 40, 0.05);
            let real = p.iter().filter(|p| holm.corrected(**p).1).count();
            assert_eq!(real, by_the_book(&p, 0.05), "{p:?}");
            let mut sorted = p.clone();
            sorted.sort_by(f32::total_cmp);
            let corrected: Vec<f64> = sorted.iter().map(|p| holm.corrected(*p).0).collect();
            assert!(corrected.is_sorted(), "{corrected:?}");
            for p in &p {
                let (corrected, real) = holm.corrected(*p);
                assert!(corrected >= f64::from(*p) && (corrected <= 0.05 || !real), "{p}");
            }
        }
    }

    #[test]
    fn what_can_never_be_real_is_not_counted() {
        let even = Margins::Shares { before: 500.0, after: 500.0 };
        let mut testable_counts = TestableCounts::new();
        for _ in 0..1000 {
            testable_counts.add(1.0);
        }
        assert_eq!(testable_counts.testable(even, 0.05), (f64::INFINITY, 0));
        testable_counts.add(6.0);
        // One change is left: twice 2^-6 is below 5 %. Two would need 7 samples.
        assert_eq!(testable_counts.testable(even, 0.05), (6.0, 1));
    }

    #[test]
    fn each_is_multiplied_by_how_many_were_left() {
        let holm = Holm::new(vec![0.001, 0.02, 0.024, 0.049], 10, 0.05);
        for (p, expect, is_real) in [(0.001, 0.01, true), (0.02, 0.18, false), (0.5, 1.0, false)] {
            let (corrected, real) = holm.corrected(p);
            assert!(
                (corrected - expect).abs() < 1e-6 && real == is_real,
                "{p}: {corrected} {real}"
            );
        }
    }
}
