//! Several queues of records merged into one stream in time order.
//!
//! The kernel writes one ring a CPU, each nearly in time order by itself. A record that is visible
//! in one ring says nothing of an older one that another CPU is still writing, so only records
//! older than a *horizon* are released:
//!
//! ```text
//!   CPU 0  | m1   s3      s6 |
//!   CPU 1  |    s2    s5     | s8       s8 is younger than the horizon: it waits
//!                            ^ horizon = now - SETTLE
//!   out      m1 s2 s3 s5 s6
//! ```
//!
//! Records stay where they are (in the ring) until they are released, so nothing is copied.

use flame_profile::Nanos;

use crate::decode::{RecordBytes, RecordLayout};
use crate::event::{Event, EventKind};

/// Up to when records may be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// Records up to that time: others may still be written.
    Until(Nanos),
    /// All: nothing writes any more.
    End,
}

/// A queue of records, oldest first.
pub trait RecordQueue {
    /// The record at the front; `None` when there is none now.
    fn peek(&self) -> Option<RecordBytes<'_>>;

    /// Drops the record at the front.
    fn advance(&mut self);
}

/// A queue among those that are merged.
#[derive(Debug)]
pub struct Lane<'q, Q> {
    /// The queue.
    pub queue: &'q mut Q,
    /// How its records are laid out.
    pub layout: RecordLayout,
}

/// What becomes of the records of merged queues.
pub trait Sieve {
    /// Whether the record of that time, at the front of the queue at that position, is to be decoded
    /// and handed over. It is shown all of them, in the order in which they are released.
    fn keep(&mut self, lane: usize, time: Nanos, record: &RecordBytes<'_>) -> bool;

    /// Takes a record of the queue at that position that was kept.
    fn take(&mut self, lane: usize, event: Event<'_>);
}

/// All records are kept.
struct Everything<'s>(&'s mut dyn FnMut(Event<'_>));

impl Sieve for Everything<'_> {
    fn keep(&mut self, _lane: usize, _time: Nanos, _record: &RecordBytes<'_>) -> bool {
        true
    }

    fn take(&mut self, _lane: usize, event: Event<'_>) {
        (self.0)(event);
    }
}

/// Releases the records of all queues up to the horizon, in time order; those of equal time in the
/// order of the queues. A record that cannot be decoded comes as [`EventKind::Undecodable`].
pub fn drain_in_order<Q: RecordQueue>(
    queues: &mut [Q],
    layout: &RecordLayout,
    horizon: Horizon,
    sink: &mut dyn FnMut(Event<'_>),
) {
    let lanes = queues.iter_mut().map(|queue| Lane { queue, layout: *layout });
    drain_lanes(&mut lanes.collect::<Vec<_>>(), horizon, &mut Everything(sink));
}

/// Like [`drain_in_order`], of queues with layouts of their own, and only what the sieve keeps is
/// decoded.
pub fn drain_lanes<Q: RecordQueue>(
    lanes: &mut [Lane<'_, Q>],
    horizon: Horizon,
    sieve: &mut dyn Sieve,
) {
    let next_time = |lane: &Lane<'_, Q>| {
        lane.queue.peek().map(|record| lane.layout.time(&record).unwrap_or(Nanos(0)))
    };
    let mut times: Vec<Option<Nanos>> = lanes.iter().map(next_time).collect();
    let released = |time: Nanos| match horizon {
        Horizon::Until(limit) => time <= limit,
        Horizon::End => true,
    };
    loop {
        let ready = times.iter().enumerate().filter_map(|(index, time)| Some(((*time)?, index)));
        let Some((time, index)) = ready.filter(|(time, _)| released(*time)).min() else {
            return;
        };
        let lane = &mut lanes[index];
        if let Some(record) = lane.queue.peek().filter(|record| sieve.keep(index, time, record)) {
            let event = lane.layout.decode(&record);
            let undecodable = |error| Event { time, kind: EventKind::Undecodable(error) };
            sieve.take(index, event.unwrap_or_else(undecodable));
        }
        lane.queue.advance();
        times[index] = next_time(lane);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::decode::SampleFields;

    const EXIT: u32 = 4;

    /// Records that say nothing but their time; the tid tells them apart.
    struct Script(VecDeque<Vec<u8>>);

    impl Script {
        fn new(times: &[u64]) -> Script {
            let body = |time: &u64| {
                let exit = [time << 32, 0, *time];
                let trailer = [0, *time, 0, 0];
                exit.iter().chain(&trailer).flat_map(|word| word.to_le_bytes()).collect()
            };
            Script(times.iter().map(body).collect())
        }
    }

    impl RecordQueue for Script {
        fn peek(&self) -> Option<RecordBytes<'_>> {
            let head = self.0.front()?;
            Some(RecordBytes { record_type: EXIT, misc: 0, head, tail: &[] })
        }

        fn advance(&mut self) {
            self.0.pop_front();
        }
    }

    #[track_caller]
    fn check(queues: &[&[u64]], horizon: Horizon, expect: &[u64]) {
        let mut queues: Vec<Script> = queues.iter().map(|times| Script::new(times)).collect();
        let layout = RecordLayout::new(SampleFields::default());
        let mut times = Vec::new();
        drain_in_order(&mut queues, &layout, horizon, &mut |event| {
            assert!(matches!(event.kind, EventKind::Exit { .. }));
            times.push(event.time.0);
        });
        assert_eq!(times, expect);
    }

    #[test]
    fn queues_are_merged_by_time_up_to_the_horizon() {
        check(&[&[1, 3, 6], &[2, 5, 8], &[]], Horizon::Until(Nanos(6)), &[1, 2, 3, 5, 6]);
    }

    /// Keeps all but the second record.
    #[derive(Default)]
    struct AllButSecond {
        shown: Vec<(usize, Nanos)>,
        kept: Vec<(usize, Nanos)>,
    }

    impl Sieve for AllButSecond {
        fn keep(&mut self, lane: usize, time: Nanos, _record: &RecordBytes<'_>) -> bool {
            self.shown.push((lane, time));
            self.shown.len() != 2
        }

        fn take(&mut self, lane: usize, event: Event<'_>) {
            self.kept.push((lane, event.time));
        }
    }

    #[test]
    fn records_that_are_not_kept_are_shown_and_left_out() {
        let mut queues = [Script::new(&[1, 3]), Script::new(&[2])];
        let layout = RecordLayout::new(SampleFields::default());
        let lanes = queues.iter_mut().map(|queue| Lane { queue, layout });
        let mut sieve = AllButSecond::default();
        drain_lanes(&mut lanes.collect::<Vec<_>>(), Horizon::End, &mut sieve);
        assert_eq!(sieve.shown, [(0, Nanos(1)), (1, Nanos(2)), (0, Nanos(3))]);
        assert_eq!(sieve.kept, [(0, Nanos(1)), (0, Nanos(3))]);
    }

    #[test]
    fn at_the_end_everything_is_released() {
        check(&[&[1, 9], &[2]], Horizon::End, &[1, 2, 9]);
    }

    #[test]
    fn a_record_out_of_order_in_its_queue_is_released_with_its_neighbours() {
        check(&[&[5, 4, 7], &[6]], Horizon::End, &[5, 4, 6, 7]);
    }
}
