//! What a recording of waits knows of all time that its threads spent off their CPUs.

use std::fmt;

use crate::units::Nanos;

/// Sums over all waits, whether they were sampled or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffCpuTime {
    /// Of all waits that are shown.
    pub time: Nanos,
    /// Of that, what began before the recording.
    pub before: Nanos,
    /// Of that, what threads were preempted for: they could have gone on.
    pub preempted: Nanos,
    /// How many waits began in the recording.
    pub waits: u64,
    /// How many of those were sampled.
    pub sampled: u64,
    /// How many waits were left out because they were shorter or longer than asked for.
    pub left_out: u64,
    /// Of how many it is not known when the thread came back.
    pub unpaired: u64,
    /// At most that long they were, as far as that is known.
    pub missed: Nanos,
    /// How far the time of a part of the picture may be off, since not all waits were sampled: about one standard deviation.
    pub deviation: Nanos,
    /// Of the time of all waits, what is not shown: it passed after the wakeup, until there was a CPU.
    pub after_wakeup: Nanos,
    /// How much of the time has no stack, since none of the waits of about that length was sampled.
    pub not_sampled: Nanos,
}

impl OffCpuTime {
    /// The numbers, in the order of the fields.
    pub fn to_numbers(self) -> [u64; 11] {
        let (OffCpuTime { waits, sampled, left_out, unpaired, .. }, time) = (self, self.time.0);
        let (before, preempted, missed) = (self.before.0, self.preempted.0, self.missed.0);
        let (off, after, unknown) = (self.deviation.0, self.after_wakeup.0, self.not_sampled.0);
        [time, before, preempted, waits, sampled, left_out, unpaired, missed, off, after, unknown]
    }

    /// What [`OffCpuTime::to_numbers`] gave, with all or fewer of them: older files lack the last ones. `None` of more.
    pub fn from_numbers(numbers: &[u64]) -> Option<OffCpuTime> {
        let mut all = [0; 11];
        all.get_mut(..numbers.len())?.copy_from_slice(numbers);
        let [
            time,
            before,
            preempted,
            waits,
            sampled,
            left_out,
            unpaired,
            missed,
            off,
            after,
            unknown,
        ] = all;
        Some(OffCpuTime {
            time: Nanos(time),
            before: Nanos(before),
            preempted: Nanos(preempted),
            waits,
            sampled,
            left_out,
            unpaired,
            missed: Nanos(missed),
            deviation: Nanos(off),
            after_wakeup: Nanos(after),
            not_sampled: Nanos(unknown),
        })
    }

    /// The deviation as a share of all time; `None` where it is too small to matter.
    pub fn deviation_share(self) -> Option<f64> {
        let share = self.deviation.0 as f64 / self.time.0.max(1) as f64;
        // A hundredth of a second is a small part of many threads' time, and may be all of a box.
        (share >= 0.005 || self.deviation >= Nanos(10_000_000)).then_some(share)
    }
}

impl fmt::Display for OffCpuTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Nanos| format!("{:.3} s", time.as_secs_f64());
        write!(f, "{}", seconds(self.time))?;
        match self.waits {
            // All that there is began before.
            0 if self.before > Nanos(0) => {}
            1 => write!(f, " in 1 wait")?,
            waits => write!(f, " in {waits} waits")?,
        }
        if self.preempted > Nanos(0) {
            write!(f, ", {} of it preempted", seconds(self.preempted))?;
        }
        if self.after_wakeup > Nanos(0) {
            let after = seconds(self.after_wakeup);
            write!(f, ", {after} of it after the wakeup, waiting for a CPU: not shown")?;
        }
        if self.before > Nanos(0) {
            write!(f, ", {} since before the recording", seconds(self.before))?;
        }
        if self.sampled < self.waits && self.sampled > 0 {
            write!(f, ", {} waits sampled", self.sampled)?;
        }
        if self.not_sampled.as_secs_f64() >= 0.0005 {
            write!(f, ", {} without a stack ([waits not sampled])", seconds(self.not_sampled))?;
        }
        if self.left_out > 0 {
            write!(f, ", {} of other lengths left out", self.left_out)?;
        }
        if self.unpaired > 0 {
            write!(f, ", {} whose end is not known left out", self.unpaired)?;
        }
        if self.missed > Nanos(0) {
            write!(f, " (at most {})", seconds(self.missed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_said_and_numbers_survive() {
        let mut all = OffCpuTime { time: Nanos(1_500_000_000), waits: 3, ..OffCpuTime::default() };
        assert_eq!(all.to_string(), "1.500 s in 3 waits");
        (all.preempted, all.sampled, all.unpaired) = (Nanos(2_000_000), 2, 1);
        assert_eq!(all.deviation_share(), None);
        all.deviation = Nanos(150_000_000);
        assert_eq!(all.deviation_share(), Some(0.1));
        let expect = "1.500 s in 3 waits, 0.002 s of it preempted, 2 waits sampled, \
                      1 whose end is not known left out";
        assert_eq!(all.to_string(), expect);
        assert_eq!(OffCpuTime::from_numbers(&all.to_numbers()), Some(all));
        (all.before, all.left_out, all.sampled) = (Nanos(1_000_000), 4, 3);
        all.missed = Nanos(250_000_000);
        let expect = "1.500 s in 3 waits, 0.002 s of it preempted, 0.001 s since before the \
                      recording, 4 of other lengths left out, 1 whose end is not known left out \
                      (at most 0.250 s)";
        assert_eq!(all.to_string(), expect, "that all were sampled goes without saying");
    }

    #[test]
    fn what_follows_wakeups_is_said_and_not_in_files_that_are_older() {
        let time = Nanos(14_623_000_000);
        let mut all = OffCpuTime { time, waits: 3, sampled: 3, ..OffCpuTime::default() };
        let older = all.to_numbers();
        all.after_wakeup = Nanos(2_397_000_000);
        let expect =
            "14.623 s in 3 waits, 2.397 s of it after the wakeup, waiting for a CPU: not shown";
        assert_eq!(all.to_string(), expect);
        assert_eq!(OffCpuTime::from_numbers(&all.to_numbers()), Some(all));
        let without = OffCpuTime { after_wakeup: Nanos(0), ..all };
        assert_eq!(OffCpuTime::from_numbers(&older[..9]), Some(without));
        assert_eq!(OffCpuTime::from_numbers(&[0; 12]), None);
        all = OffCpuTime { waits: 9, not_sampled: Nanos(1_217_000_000), ..without };
        let expect =
            "14.623 s in 9 waits, 3 waits sampled, 1.217 s without a stack ([waits not sampled])";
        assert_eq!(all.to_string(), expect);
        assert_eq!(OffCpuTime::from_numbers(&all.to_numbers()), Some(all));
    }
}
