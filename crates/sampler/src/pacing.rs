//! The pacer put to work: what it is shown of the rings, and whether it is used at all.

use std::time::Duration;

use flame_events::Glance;
use flame_profile::{Cpu, Hz, Nanos, whole};

use crate::config::{Rate, SamplerConfig};
use crate::descriptor::Descriptor;
use crate::event_type::EventType;
use crate::limits::max_sample_rate;
use crate::open::Plan;
use crate::pacer::{Pacer, Seen};

/// The reader of a CPU wakes up after each sample as long as that makes no more wake-ups a second.
const WAKE_UPS: u64 = 1000;

/// Where it would make more, it wakes up at this interval.
pub(crate) const BATCH: Duration = Duration::from_millis(10);

/// What runs right after an interval was set is missed for a whole interval. On a busy machine that
/// is the target more often than others, where both run in one scheduling group: batches of 10 samples
/// had it come out with 96 % coverage, of 30 with 99.3 %.
pub(crate) const LEAST_BATCH: u64 = 30;

/// How far the intervals of counters, and of events that are bound to tasks, are off those of the frequency, in parts.
const OFF: [f64; 2] = [0.02, 0.06];

/// Draws the intervals of counters, and of clocks that are bound to tasks where no reader draws them. The
/// period of a counter is the kernel's, so that each interval stays as it is; but it is off the frequency by 2 to 6 %, one way or the other.
/// A program in step with the frequency, or with some times of it, is so seen at each moment of its
/// rhythm in turn. More would be too much: samples of all threads count alike.
#[derive(Debug)]
pub(crate) struct Offbeat {
    mean: f64,
    random: fastrand::Rng,
}

impl Offbeat {
    /// `None` where intervals are what was asked for, or drawn anew all the time.
    pub(crate) fn of(config: &SamplerConfig, event: &EventType) -> Option<Offbeat> {
        let Rate::Frequency(Hz(hz)) = config.rate else { return None };
        let random = config.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let is_off = !event.is_occurrence() && !config.fixed_period;
        let limit = max_sample_rate().filter(|_| event.is_hardware());
        let hz = limit.map_or(hz.max(1) as f64, |limit| below(limit, hz.max(1)));
        is_off.then(|| Offbeat { mean: 1e9 / hz, random })
    }

    /// The interval of one more event.
    pub(crate) fn draw(&mut self) -> Nanos {
        let off = OFF[0] + self.random.f64() * (OFF[1] - OFF[0]);
        let part = if self.random.bool() { 1.0 + off } else { 1.0 - off };
        Nanos(whole(self.mean * part))
    }
}

/// The whole frequency that an interval makes.
pub(crate) fn frequency_of(interval: Nanos) -> u64 {
    whole(1e9 / interval.0.max(1) as f64).max(1)
}

/// A frequency of which what is drawn is never above the kernel's limit, which refuses it, rounded as it is.
fn below(limit: Hz, hz: u64) -> f64 {
    (hz as f64).min(limit.0 as f64 * (1.0 - 1.2 * OFF[1]))
}

/// How often intervals are drawn anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Never.
    Fixed,
    /// After each sample.
    EachSample,
    /// Once in this many samples of a CPU.
    Batches(u64),
}

impl Pace {
    /// Only the intervals of clocks are drawn: of other events the kernel adapts the period to the
    /// frequency asked for all the time. Who asks for a period gets just that.
    pub(crate) fn of(config: &SamplerConfig, event: &EventType) -> Pace {
        let Rate::Frequency(Hz(hz)) = config.rate else { return Pace::Fixed };
        if config.fixed_period || !event.is_clock() {
            return Pace::Fixed;
        }
        if hz <= WAKE_UPS {
            return Pace::EachSample;
        }
        let samples = u128::from(hz) * BATCH.as_micros() / 1_000_000;
        Pace::Batches(u64::try_from(samples).unwrap_or(u64::MAX).max(LEAST_BATCH))
    }

    /// The same of clocks that are bound to tasks: drawn in no batches, since tasks run when they like.
    pub(crate) fn of_tasks(config: &SamplerConfig, event: &EventType) -> Pace {
        match Pace::of(config, event) {
            Pace::Batches(_) => Pace::Fixed,
            pace => pace,
        }
    }

    /// The pacer of a CPU, where there is one.
    pub(crate) fn pacer(self, config: &SamplerConfig, cpu: Cpu) -> Option<Pacer> {
        let Rate::Frequency(Hz(hz)) = config.rate else { return None };
        let mean = Nanos(1_000_000_000 / hz.max(1));
        let batch = match self {
            Pace::Fixed => return None,
            Pace::EachSample => 1,
            Pace::Batches(samples) => samples,
        };
        Some(Pacer::new(mean, batch, config.seed.map(|seed| seed.wrapping_add(cpu.0.into()))))
    }
}

/// Whether a reader is woken by each sample, to look at the stack while it stands still.
pub(crate) fn wakes_at_samples(config: &SamplerConfig, event: &EventType) -> bool {
    match config.rate {
        Rate::Frequency(Hz(hz)) => hz <= WAKE_UPS && !event.is_occurrence(),
        Rate::Period(period) => event.is_clock() && period >= 1_000_000_000 / WAKE_UPS,
    }
}

/// Adds one record of a ring to what was seen of it.
pub(crate) fn note(seen: &mut Seen, glance: Glance, time: Nanos) {
    match glance {
        Glance::Sample { .. } => {
            seen.samples += 1;
            seen.last = seen.last.max(time);
        }
        Glance::Lost | Glance::Throttle | Glance::Unthrottle => seen.disturbed = true,
        _ => {}
    }
}

/// Sets the interval of an event. One whose CPU is offline cannot be set and need not be.
pub(crate) fn set(plan: &Plan, event: &Descriptor, interval: Nanos) {
    if let Err(error) = event.set_period(interval.0) {
        tracing::debug!(%error, event = %plan.event, "interval not set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Target;

    #[track_caller]
    fn check(hz: u64, expect: Pace) {
        let rate = Rate::Frequency(Hz(hz));
        let config = SamplerConfig { rate, ..SamplerConfig::new(Target::System, 0) };
        assert_eq!(Pace::of(&config, &EventType::cpu_clock()), expect);
    }

    #[test]
    fn each_sample_is_looked_after_while_there_are_few() {
        check(99, Pace::EachSample);
        check(1000, Pace::EachSample);
        check(2000, Pace::Batches(LEAST_BATCH));
        check(9999, Pace::Batches(99));
    }

    #[test]
    fn intervals_of_tasks_are_off_the_frequency_on_either_side() {
        let config = SamplerConfig { seed: Some(1), ..SamplerConfig::new(Target::System, 0) };
        let mut offbeat = Offbeat::of(&config, &EventType::cpu_clock()).unwrap();
        let mean = 1e9 / 99.0;
        let parts: Vec<f64> = (0..1000).map(|_| offbeat.draw().0 as f64 / mean).collect();
        assert!(parts.iter().all(|part| (0.0199..0.0601).contains(&(part - 1.0).abs())));
        let sum: f64 = parts.iter().sum();
        assert!((sum / 1000.0 - 1.0).abs() < 0.006, "{sum}");
        let fixed = SamplerConfig { fixed_period: true, ..config };
        assert!(Offbeat::of(&fixed, &EventType::cpu_clock()).is_none());
    }

    #[test]
    fn frequencies_that_are_drawn_stay_below_the_kernels_limit() {
        for limit in [1000, 25_000, 70_000, 99_999, 1_000_000] {
            let random = fastrand::Rng::with_seed(limit);
            let mut offbeat = Offbeat { mean: 1e9 / below(Hz(limit), limit), random };
            let highest = (0..1000).map(|_| frequency_of(offbeat.draw())).max();
            assert!(highest.is_some_and(|hz| (limit * 97 / 100..=limit).contains(&hz)), "{limit}");
        }
        assert_eq!(below(Hz(100_000), 99), 99.0);
    }

    #[test]
    fn a_period_that_was_asked_for_is_kept() {
        let rate = Rate::Period(1000);
        let config = SamplerConfig { rate, ..SamplerConfig::new(Target::System, 0) };
        assert_eq!(Pace::of(&config, &EventType::cpu_clock()), Pace::Fixed);
    }
}
