//! Waits of about the same length, of which the sampled stand for the others.

use std::collections::BTreeMap;

use super::Seen;

/// By whether the thread was preempted, and by the logarithm of the length.
pub(super) type Classes<S> = BTreeMap<(bool, u32), Class<S>>;

/// This many samples of a class share what was not sampled meanwhile.
pub(super) const BATCH: usize = 16;

/// Times of about the same length.
#[derive(Debug)]
pub(super) struct Class<S> {
    /// What was not sampled since the last batch.
    pub(super) unsampled: u64,
    /// Samples since the last batch, with their own times.
    pub(super) batch: Vec<Sampled<S>>,
    /// The last sample of the last batch, or else one whose waker is not known.
    pub(super) last: Option<Sampled<S>>,
}

/// A wait of which all was sampled that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Sampled<S> {
    pub(super) seen: Seen<S>,
    /// For how long the thread had no CPU.
    pub(super) time: u64,
    /// That without what it was kept from its CPU for: its length.
    pub(super) own: u64,
    /// How much of that is shown.
    pub(super) shown: u64,
}

impl<S> Sampled<S> {
    /// The same, for this much time without a CPU.
    pub(super) fn of(self, time: u64) -> (Seen<S>, u64) {
        let shown = u128::from(self.shown) * u128::from(time) / u128::from(self.time.max(1));
        (self.seen, u64::try_from(shown).unwrap_or(u64::MAX))
    }
}

impl<S> Default for Class<S> {
    fn default() -> Self {
        Class { unsampled: 0, batch: Vec::new(), last: None }
    }
}

impl<S: Clone> Class<S> {
    /// The samples of a batch, each with its part of what was not sampled.
    pub(super) fn shared_out(&mut self) -> Vec<(Seen<S>, u64)> {
        let sampled: u128 = self.batch.iter().map(|sample| u128::from(sample.time)).sum();
        let total = sampled + u128::from(std::mem::take(&mut self.unsampled));
        let (mut seen, mut given) = (0, 0);
        let batch = std::mem::take(&mut self.batch);
        self.last = batch.last().cloned();
        let share = |sample: Sampled<S>| {
            seen += u128::from(sample.time);
            let until = u64::try_from(total * seen / sampled.max(1)).unwrap_or(u64::MAX);
            let time = until - std::mem::replace(&mut given, until);
            sample.of(time)
        };
        batch.into_iter().map(share).collect()
    }
}
