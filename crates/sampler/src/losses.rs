//! What the kernel did not record, by its own word.

use std::ops::AddAssign;

use flame_events::{Glance, RecordLayout};
use flame_profile::Nanos;

use crate::open::{Reading, Records};
use crate::ring::Ring;
use crate::scope::Scope;
use crate::session::Session;

/// What events did not see although they were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records that did not fit into their ring: the events count those, too, for which no LOST
    /// record could be written any more. None on kernels before 6.0, which do not count them.
    pub lost: LostRecords,
    /// For how long events were enabled, all together.
    pub enabled: Nanos,
    /// Of that, for how long they really ran: less where more events are open than the CPU has
    /// counters for.
    pub running: Nanos,
    /// Samples of the target that were left out: an idle CPU's timer had gone on at an interval that
    /// was over, so that nothing stands behind them.
    pub stray_samples: u64,
    /// For how long events were stopped because their samples came too fast.
    pub throttled: Nanos,
    /// How often it happened what is sampled, by the same events' own count, without flame's looks at samples.
    pub(crate) count: u64,
}

/// Lost records by what they would have said. The kernel counts them by event, so that is known
/// where an event writes records of one kind only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostRecords {
    /// Samples: where CPUs are sampled those of any task, and not of the target alone.
    pub samples: u64,
    /// What happened to tasks and their memory.
    pub side_band: u64,
    /// Of events that write both, which is those of tasks.
    pub either: u64,
}

impl LostRecords {
    /// All of them.
    pub fn total(self) -> u64 {
        self.samples + self.side_band + self.either
    }
}

impl Losses {
    /// Adds what the kernel says of an event that writes such records.
    pub(crate) fn add(&mut self, reading: Reading, records: Records) {
        let lost = match records {
            Records::All => &mut self.lost.either,
            Records::Samples => &mut self.lost.samples,
            Records::SideBand => &mut self.lost.side_band,
        };
        *lost += reading.lost;
        if records != Records::SideBand {
            self.count += reading.count;
        }
        self.enabled.0 += reading.enabled.0;
        self.running.0 += reading.running.0;
    }

    /// What was lost since it was `before`.
    pub(crate) fn without(self, before: Losses) -> Losses {
        Losses {
            lost: LostRecords {
                samples: self.lost.samples.saturating_sub(before.lost.samples),
                side_band: self.lost.side_band.saturating_sub(before.lost.side_band),
                either: self.lost.either.saturating_sub(before.lost.either),
            },
            stray_samples: self.stray_samples.saturating_sub(before.stray_samples),
            enabled: self.enabled.saturating_since(before.enabled),
            running: self.running.saturating_since(before.running),
            throttled: self.throttled.saturating_since(before.throttled),
            count: self.count.saturating_sub(before.count),
        }
    }
}

impl Session {
    /// For how long other events had the counters, so that nothing was sampled. An event of a task that is bound to a CPU
    /// is enabled while the task runs on another one, too.
    pub fn multiplexed(&self) -> Nanos {
        let Losses { enabled, running, .. } = self.losses();
        match (self.event().is_hardware(), self.scope()) {
            (false, _) => Nanos(0),
            (true, Scope::Cpus) => enabled.saturating_since(running),
            (true, _) => {
                Nanos(enabled.0 / self.cpu_count().max(1) as u64).saturating_since(running)
            }
        }
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, others: Losses) {
        self.lost.samples += others.lost.samples;
        self.lost.side_band += others.lost.side_band;
        self.lost.either += others.lost.either;
        self.stray_samples += others.stray_samples;
        self.enabled.0 += others.enabled.0;
        self.running.0 += others.running.0;
        self.throttled.0 += others.throttled.0;
        self.count += others.count;
    }
}

/// Follows the records that say when an event was stopped and went on, CPU by CPU.
#[derive(Debug, Default)]
pub(crate) struct Throttling {
    /// Since when each CPU's event is stopped.
    since: Vec<Option<Nanos>>,
    total: Nanos,
}

impl Throttling {
    /// Looks at a record of the ring at that position.
    pub(crate) fn look(&mut self, ring: usize, glance: Glance, time: Nanos) {
        if self.since.len() <= ring {
            self.since.resize(ring + 1, None);
        }
        match glance {
            Glance::Throttle => _ = self.since[ring].get_or_insert(time),
            Glance::Unthrottle => {
                let since = self.since[ring].take();
                self.total.0 += since.map_or(0, |since| time.saturating_since(since).0);
            }
            _ => {}
        }
    }

    /// The time so far, up to now for what is stopped still.
    pub(crate) fn total(&self, now: Nanos) -> Nanos {
        let open = self.since.iter().flatten().map(|since| now.saturating_since(*since).0);
        Nanos(self.total.0 + open.sum::<u64>())
    }
}

/// Shows every new record of a ring with its time.
pub(crate) fn for_each_new(
    ring: &mut Ring,
    layout: &RecordLayout,
    mut each: impl FnMut(Glance, Nanos),
) {
    ring.for_each_new(|record| {
        each(Glance::at(&record), layout.time(&record).unwrap_or(Nanos(0)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttled_time_is_summed_over_cpus_and_goes_on_until_now() {
        let mut throttling = Throttling::default();
        throttling.look(0, Glance::Throttle, Nanos(100));
        throttling.look(1, Glance::Throttle, Nanos(150));
        throttling.look(0, Glance::Throttle, Nanos(160));
        throttling.look(0, Glance::Unthrottle, Nanos(200));
        throttling.look(0, Glance::Unthrottle, Nanos(210));
        assert_eq!(throttling.total(Nanos(180)), Nanos(130));
    }
}
