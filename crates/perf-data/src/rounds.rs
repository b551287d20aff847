//! Records in order of time.
//!
//! perf writes what each CPU's ring has, one ring after the other, and says when it has been at all of
//! them once: a round. A record that one round has not is younger than what the round before it
//! had, so what is up to the youngest of that one can be handed on at the end of a round:
//!
//! ```text
//!   CPU 0: 1 4 | CPU 1: 2 5 | round     youngest: 5; nothing is handed on yet
//!   CPU 0: 7 8 | CPU 1: 3 6 | round     handed on: 1 2 3 4 5
//! ```
//!
//! Where a file says no rounds, or those are of no use, records wait until many are there.

use flame_profile::Nanos;

use crate::records::{HEADER, Record};

/// How many bytes of records wait at most before the older half is handed on.
const MAX_WAITING: u64 = 256 << 20;

/// A record with its time and the event that it is of.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub(crate) time: Nanos,
    pub(crate) event: usize,
    pub(crate) record: Record,
}

/// Records that wait for others that are older.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    waiting: Vec<Timed>,
    /// How many bytes they have.
    len: u64,
    youngest: Nanos,
    /// The youngest of the round before.
    limit: Nanos,
    /// The youngest that was handed on.
    handed_on: Nanos,
    /// How many came later than younger ones were handed on.
    pub(crate) late: u64,
}

impl Rounds {
    /// Takes in a record; one that has no time comes with those before it. Those that were to wait
    /// no longer are in `out`, which is emptied first.
    pub(crate) fn push(
        &mut self,
        time: Option<Nanos>,
        event: usize,
        record: Record,
        out: &mut Vec<Timed>,
    ) {
        out.clear();
        let time = time.unwrap_or(self.youngest);
        self.late += u64::from(time < self.handed_on && time != Nanos(0));
        self.youngest = self.youngest.max(time);
        self.len += size(&record);
        self.waiting.push(Timed { time, event, record });
        if self.len > MAX_WAITING {
            let count = self.waiting.len() / 2;
            self.hand_on(count.max(1), out);
        }
    }

    /// Ends a round.
    pub(crate) fn end_round(&mut self, out: &mut Vec<Timed>) {
        out.clear();
        let limit = std::mem::replace(&mut self.limit, self.youngest);
        self.sort();
        let count = self.waiting.partition_point(|waiting| waiting.time <= limit);
        self.take(count, out);
    }

    /// Ends them all.
    pub(crate) fn end(&mut self, out: &mut Vec<Timed>) {
        out.clear();
        self.hand_on(self.waiting.len(), out);
    }

    fn hand_on(&mut self, count: usize, out: &mut Vec<Timed>) {
        self.sort();
        self.take(count, out);
    }

    /// Those of the same time stay in their order.
    fn sort(&mut self) {
        if !self.waiting.is_sorted_by_key(|waiting| waiting.time) {
            self.waiting.sort_by_key(|waiting| waiting.time);
        }
    }

    fn take(&mut self, count: usize, out: &mut Vec<Timed>) {
        out.extend(self.waiting.drain(..count));
        self.len -= out.iter().map(|timed| size(&timed.record)).sum::<u64>();
        self.handed_on = out.last().map_or(self.handed_on, |last| last.time.max(self.handed_on));
    }
}

fn size(record: &Record) -> u64 {
    (record.body().len() + HEADER) as u64
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use flame_events::Endianness;

    use super::*;
    use crate::records::{Next, record_at};

    fn record() -> Record {
        let block = Rc::new(vec![4, 0, 0, 0, 0, 0, 8, 0]);
        let Next::Record(record) = record_at(&block, 0, Endianness::LittleEndian) else {
            panic!("no record")
        };
        record
    }

    #[test]
    fn what_a_round_has_is_handed_on_at_the_end_of_the_next() {
        let (mut rounds, mut out) = (Rounds::default(), Vec::new());
        let mut found = Vec::new();
        for round in [&[1, 4, 2, 5][..], &[7, 8, 3, 6], &[0, 9], &[]] {
            for time in round {
                rounds.push(Some(Nanos(*time)), 0, record(), &mut out);
                assert!(out.is_empty());
            }
            rounds.end_round(&mut out);
            found.push(out.iter().map(|timed| timed.time.0).collect::<Vec<u64>>());
        }
        assert_eq!(found, [&[][..], &[1, 2, 3, 4, 5], &[0, 6, 7, 8], &[9]]);
        assert_eq!(rounds.late, 0);
        rounds.push(Some(Nanos(3)), 0, record(), &mut out);
        rounds.push(None, 0, record(), &mut out);
        rounds.end(&mut out);
        assert_eq!(out.iter().map(|timed| timed.time.0).collect::<Vec<u64>>(), [3, 9]);
        assert_eq!(rounds.late, 1);
    }
}
