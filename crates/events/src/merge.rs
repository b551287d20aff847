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

/// Releases the records of all queues up to the horizon, in time order; those of equal time in the
/// order of the queues. A record that cannot be decoded comes as [`EventKind::Undecodable`].
pub fn drain_in_order<Q: RecordQueue>(
    queues: &mut [Q],
    layout: &RecordLayout,
    horizon: Horizon,
    sink: &mut dyn FnMut(Event<'_>),
) {
    drain_kept(queues, layout, horizon, &mut |_, _| true, sink);
}

/// Like [`drain_in_order`], but only records that `keep` agrees to are decoded and handed over; it
/// is shown all of them, each with the position of its queue, in the same order.
pub fn drain_kept<Q: RecordQueue>(
    queues: &mut [Q],
    layout: &RecordLayout,
    horizon: Horizon,
    keep: &mut dyn FnMut(usize, &RecordBytes<'_>) -> bool,
    sink: &mut dyn FnMut(Event<'_>),
) {
    let next_time = |queue: &Q| queue.peek().map(|record| layout.time(&record).unwrap_or(Nanos(0)));
    let mut times: Vec<Option<Nanos>> = queues.iter().map(next_time).collect();
    let released = |time: Nanos| match horizon {
        Horizon::Until(limit) => time <= limit,
        Horizon::End => true,
    };
    loop {
        let ready = times.iter().enumerate().filter_map(|(index, time)| Some(((*time)?, index)));
        let Some((time, index)) = ready.filter(|(time, _)| released(*time)).min() else {
            return;
        };
        let queue = &mut queues[index];
        if let Some(record) = queue.peek().filter(|record| keep(index, record)) {
            let event = layout.decode(&record);
            sink(event.unwrap_or_else(|error| Event { time, kind: EventKind::Undecodable(error) }));
        }
        queue.advance();
        times[index] = next_time(queue);
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

    #[test]
    fn records_that_are_not_kept_are_shown_and_left_out() {
        let mut queues = [Script::new(&[1, 3]), Script::new(&[2])];
        let layout = RecordLayout::new(SampleFields::default());
        let (mut shown, mut kept) = (Vec::new(), Vec::new());
        let mut keep = |_: usize, record: &RecordBytes<'_>| {
            shown.push(layout.time(record).unwrap());
            shown.len() != 2
        };
        drain_kept(&mut queues, &layout, Horizon::End, &mut keep, &mut |event| {
            kept.push(event.time);
        });
        assert_eq!(shown, [Nanos(1), Nanos(2), Nanos(3)]);
        assert_eq!(kept, [Nanos(1), Nanos(3)]);
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
