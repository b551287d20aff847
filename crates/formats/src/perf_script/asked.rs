//! Which samples are read, and what is left out.

use std::collections::BTreeMap;

use super::layout::Layout;

/// Which samples are taken, and what they weigh.
#[derive(Debug)]
pub(super) struct Asked {
    /// The event; empty = all.
    pub(super) event: Vec<u8>,
    /// Whether a user named it.
    pub(super) is_given: bool,
    /// Whether samples weigh their period, and count besides.
    pub(super) has_period: bool,
    /// How the lines above stacks look.
    pub(super) layout: Layout,
    /// Whether frames stand in the columns that perf gives them.
    pub(super) is_aligned: bool,
}

/// What was not taken.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Samples of other events.
    pub(super) events: BTreeMap<Vec<u8>, u64>,
    /// Samples of the event that is asked for.
    pub(super) taken: u64,
    /// Events that perf says it has lost.
    pub(super) lost: u64,
    /// Samples that have a period, and the line of the first.
    pub(super) periods: u64,
    pub(super) first_period: Option<u64>,
}

impl Left {
    pub(super) fn merge(&mut self, other: Left) {
        for (event, count) in other.events {
            *self.events.entry(event).or_default() += count;
        }
        self.taken += other.taken;
        self.lost += other.lost;
        self.periods += other.periods;
        self.first_period = match (self.first_period, other.first_period) {
            (Some(of_this), Some(of_other)) => Some(of_this.min(of_other)),
            (of_this, of_other) => of_this.or(of_other),
        };
    }
}
