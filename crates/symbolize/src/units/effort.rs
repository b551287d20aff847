//! A bound on work that a file can ask for out of proportion to its size.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of all efforts, counted where the code is checked as it runs: fuzz targets look at them.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// This many steps were spent in this process.
pub(crate) fn spent() -> u64 {
    SPENT.load(Ordering::Relaxed)
}

/// What is left of an amount of work, in steps of some nanoseconds each.
#[derive(Debug)]
pub(crate) struct Effort {
    left: AtomicU64,
}

/// The work was used up: what asked for it makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Effort {
    /// This many steps.
    pub(crate) fn new(steps: u64) -> Effort {
        Effort { left: AtomicU64::new(steps) }
    }

    /// For what may cost `factor` steps for each of `len` bytes, and some for very small files.
    pub(crate) fn for_bytes(len: usize, factor: u64) -> Effort {
        Effort::new((len as u64).saturating_mul(factor).saturating_add(1 << 20))
    }

    /// Takes steps from what is left.
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Exhausted> {
        self.take(steps, |left, steps| left.checked_sub(steps))
    }

    /// Takes steps that were spent already, as far as there are so many.
    pub(crate) fn charge(&self, steps: usize) {
        let _ = self.take(steps, |left, steps| Some(left.saturating_sub(steps)));
    }

    fn take(&self, steps: usize, rest: fn(u64, u64) -> Option<u64>) -> Result<(), Exhausted> {
        let steps = steps as u64;
        if cfg!(debug_assertions) {
            SPENT.fetch_add(steps, Ordering::Relaxed);
        }
        let rest = |left: u64| rest(left, steps);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        taken.map(|_| ()).map_err(|_| Exhausted)
    }
}

/// Why reading DWARF ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It makes no sense.
    #[error(transparent)]
    Dwarf(#[from] gimli::Error),
    /// It asks for more work than its size is worth.
    #[error("debug information that would take too long to read")]
    Exhausted,
}

impl From<Exhausted> for Unreadable {
    fn from(_: Exhausted) -> Unreadable {
        Unreadable::Exhausted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone() {
        let effort = Effort::new(10);
        assert_eq!(effort.spend(6), Ok(()));
        assert_eq!(effort.spend(5), Err(Exhausted));
        assert_eq!(effort.spend(4), Ok(()));
        assert_eq!(effort.spend(1), Err(Exhausted));
        let effort = Effort::new(10);
        effort.charge(9);
        effort.charge(9);
        assert_eq!(effort.spend(1), Err(Exhausted));
    }
}
