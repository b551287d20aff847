//! What the scheduler counts of a task: /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).

use flame_profile::Nanos;

/// Three numbers of 20 digits at most.
pub(crate) const LONGEST: usize = 64;

/// What a task has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedstat {
    /// For how long it has run. Of a task that runs, this is known again when it leaves its CPU.
    pub ran: Nanos,
    /// For how long it has waited for a CPU.
    pub waited: Nanos,
    /// How often it got one.
    pub turns: u64,
}

impl Schedstat {
    /// From the text of the file; `None` where the kernel does not count.
    pub fn parse(text: &[u8]) -> Option<Schedstat> {
        let text = std::str::from_utf8(text).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Schedstat { ran: Nanos(next()?), waited: Nanos(next()?), turns: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_read_and_less_is_nothing() {
        let expect = Schedstat { ran: Nanos(7), waited: Nanos(8), turns: 9 };
        assert_eq!(Schedstat::parse(b"7 8 9\n"), Some(expect));
        assert_eq!(
            ["", "7 8", "7 8 x", "-1 2 3"].map(|text| Schedstat::parse(text.as_bytes())),
            [None; 4]
        );
    }
}
