//! What being recorded costs a target, as docs/modes.md has it measured.

use flame_profile::Nanos;

use crate::config::Rate;
use crate::session::{Events, Session};

/// What an occurrence costs: a breakpoint, and one that is recorded each time; a switch with its records, where the kernel has
/// a thread's own events to put aside as well, and where it has not; what the kernel only counts; and what it records each time.
const BREAKPOINT: Nanos = Nanos(2_000);
const RECORDED_BREAKPOINT: Nanos = Nanos(4_700);
const SWITCH_OF_TASK: Nanos = Nanos(3_000);
const SWITCH_OF_CPU: Nanos = Nanos(1_000);
const OCCURRENCE: Nanos = Nanos(350);
const RECORDED: Nanos = Nanos(800);

/// What a sample with its stack costs, and at most what its reader takes of the CPU besides.
const SAMPLE: Nanos = Nanos(15_000);
const LOOK: Nanos = Nanos(60_000);

/// What each event costs that a thread or process inherits when it starts and gives up when it ends.
const INHERITED: Nanos = Nanos(5_000);

impl Session {
    /// What each occurrence of the event costs whom it happens to, besides samples.
    pub fn cost_of_occurrence(&self) -> Nanos {
        match (self.config.switches, self.config.samples_by_thread()) {
            _ if self.plan.event.is_function() && self.config.rate == Rate::Period(1) => {
                RECORDED_BREAKPOINT
            }
            _ if self.plan.event.is_function() => BREAKPOINT,
            (true, true) => SWITCH_OF_TASK,
            (true, false) => SWITCH_OF_CPU,
            (false, _) if self.config.rate == Rate::Period(1) => RECORDED,
            (false, _) => OCCURRENCE,
        }
    }

    /// What so many samples cost the target: the kernel copies stacks, and readers take the CPU. Those of who leaves its CPU cost
    /// that one nothing.
    pub fn cost_of_samples(&self, samples: u64) -> Nanos {
        if self.config.switches {
            return Nanos(0);
        }
        let looks = self.readers.ran().min(Nanos(samples.saturating_mul(LOOK.0)));
        Nanos(samples.saturating_mul(SAMPLE.0).saturating_add(looks.0))
    }

    /// What each thread or process costs that the target starts.
    pub fn cost_of_start(&self) -> Nanos {
        match &self.events {
            Events::Tasks(_) if self.plan.inherit => {
                // One for what happens to it, and one that samples what is counted.
                let each = 1 + u64::from(self.occurrences.is_some());
                Nanos(self.rings.cpus().count() as u64 * each * INHERITED.0)
            }
            _ => Nanos(0),
        }
    }
}
