//! The sessions of all events of a recording, as one source of events in time order.

use std::time::Duration;

use flame_events::{
    Event, EventKind, EventSource, Glance, Horizon, Lane, RecordBytes, RecordLayout, Rest,
    SampleEvent, Sieve, drain_lanes,
};
use flame_profile::{Hz, Nanos, whole};

use crate::config::{EventSpec, Rate, SamplerConfig};
use crate::error::SamplerError;
use crate::filter::Filter;
use crate::occurrences::Occurrences;
use crate::readers::Readers;
use crate::returns::Returns;
use crate::session::{Events, FRESH, Session, monotonic_now};
use crate::task_intervals;
use crate::wakings;

/// How old a record must be before it is released: by then the others of its time are written.
/// A record becomes visible some microseconds after its time was taken.
const SETTLE: Nanos = Nanos(1_000_000);

/// Sessions of one target, one an event. What happens to tasks and their memory is told of by one
/// alone.
#[derive(Debug)]
pub struct Sessions(Vec<Session>);

impl Sessions {
    /// Opens the event of a config, and others besides: none where one cannot be opened.
    ///
    /// # Errors
    /// See [`Session::open`].
    pub fn open(config: &SamplerConfig, others: &[EventSpec]) -> Result<Sessions, SamplerError> {
        let mut all = vec![Session::open(config)?];
        for (position, spec) in (1..).zip(others) {
            let mut config_of_event = config.of_event(spec);
            if spec.event.is_hardware() {
                config_of_event.rate = out_of_step(spec.rate, position);
            }
            if spec.wakes {
                let event = wakings::of_target(spec.event.clone(), &config.target, all[0].taken())?;
                config_of_event.event = Some(event);
            }
            all.push(Session::open(&config_of_event)?);
        }
        Ok(Sessions(all))
    }

    /// Which session tells of tasks and their memory: one that sees all, or else the first.
    fn teller(&self) -> usize {
        self.0.iter().position(Session::sees_all).unwrap_or(0)
    }

    /// Whether samples are taken of all tasks of the machine, the target's or not.
    pub fn see_all(&self) -> bool {
        self.0.iter().any(Session::sees_all)
    }

    /// Starts the recording, see [`Session::begin`].
    ///
    /// # Errors
    /// The events that sample could not be opened.
    pub fn begin(&mut self) -> Result<(), SamplerError> {
        self.0.iter_mut().try_for_each(Session::begin)
    }

    /// That of the config's own event.
    pub fn first(&self) -> &Session {
        &self.0[0]
    }

    /// All of them, in the order of the events; samples say the position.
    pub fn all(&self) -> &[Session] {
        &self.0
    }

    /// Whether all may open events for CPUs that come online, see [`Session::may_reopen`].
    pub fn may_reopen(&self) -> bool {
        self.0.iter().all(Session::may_reopen)
    }
}

/// The frequency of one more counter in parts of that of the one before. Two of one frequency would be in step wherever
/// their quotient stays the same, so that samples of one always come while flame looks at the other's, or never: 1.5
/// cycles an instruction came out for 2. Each is off its frequency by up to 6 % besides.
const APART: f64 = 0.87;

/// The rate at which the counter at that position is sampled.
fn out_of_step(rate: Rate, position: i32) -> Rate {
    match rate {
        Rate::Frequency(Hz(hz)) => {
            Rate::Frequency(Hz(whole(hz as f64 * APART.powi(position)).max(1)))
        }
        period @ Rate::Period(_) => period,
    }
}

impl EventSource for Sessions {
    type Error = SamplerError;

    fn wait(&mut self, timeout: Duration) {
        if let [only] = &mut self.0[..] {
            return only.wait(timeout);
        }
        // Only one can be waited for; what no reader looks after fills up fastest.
        let unread = self.0.iter().rposition(|session| !session.has_readers());
        self.0[unread.unwrap_or(0)].wait(timeout.min(FRESH));
    }

    fn now(&self) -> Option<Nanos> {
        Some(monotonic_now())
    }

    fn stop(&mut self) {
        self.0.iter_mut().for_each(Session::finish);
    }

    /// Live, the last millisecond is kept back; once stopped nothing is. Records that cannot be
    /// decoded are handed over as [`EventKind::Undecodable`]. Where all tasks are seen, only the
    /// target's records are handed over.
    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), SamplerError> {
        // The clock is read first: what is written from now on is younger.
        let now = monotonic_now();
        let settled = now.saturating_since(SETTLE);
        self.0.iter_mut().for_each(Session::look_at_rings);
        let is_over = self.0[0].finished;
        let horizons = self.0.iter_mut().map(|session| session.horizon(now, settled));
        let horizon = match (is_over, horizons.min()) {
            (false, Some(time)) => Horizon::Until(time),
            _ => Horizon::End,
        };
        let teller = self.teller();
        let (mut lanes, mut owners, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for (event, session) in self.0.iter_mut().enumerate() {
            let layout = session.plan.layout;
            for (position, queue) in session.rings.queues().iter_mut().enumerate() {
                lanes.push(Lane { queue, layout });
                owners.push((event, position));
            }
            parts.push(Part {
                // Events of tasks see nobody else; the filter knows their processes.
                by_task: matches!(session.events, Events::Tasks(_)),
                filter: session.filter.as_mut(),
                readers: &mut session.readers,
                returns: session.returns.as_ref(),
                occurrences: session.occurrences.as_mut(),
                stands_for: session.plan.asked_of_tasks().map(|asked| (asked, layout)),
                since: session.since,
                stray_samples: &mut session.stray_samples,
                sampled: session.plan.event.is_hardware().then_some((&mut session.sampled, layout)),
                lost_untold: &mut session.lost_untold,
            });
        }
        drain_lanes(&mut lanes, horizon, &mut Merged { owners, parts, teller, settled, sink });
        self.0.iter_mut().for_each(|session| session.end_drain(horizon));
        Ok(())
    }
}

/// What decides about the records of one session.
struct Part<'s> {
    by_task: bool,
    filter: Option<&'s mut Filter>,
    readers: &'s mut Readers,
    returns: Option<&'s Returns>,
    occurrences: Option<&'s mut Occurrences>,
    /// What each sample stands for, where some are left out that there should not be, and how it is read what they say.
    stands_for: Option<(Nanos, RecordLayout)>,
    since: Nanos,
    stray_samples: &'s mut u64,
    /// The sum of what samples stand for, of a counter of the CPU, and how that is read.
    sampled: Option<(&'s mut u64, RecordLayout)>,
    lost_untold: &'s mut u64,
}

impl Part<'_> {
    /// Whether a sample of a task came by an interval that is shorter than asked for, and is left out for that.
    fn is_surplus(&self, time: Nanos, record: &RecordBytes<'_>) -> bool {
        let surplus = |(asked, layout): (Nanos, RecordLayout)| {
            task_intervals::is_surplus(asked, time, layout.period(record))
        };
        self.stands_for.is_some_and(surplus)
    }
}

/// The records of all rings as they are released.
struct Merged<'s> {
    /// For each lane the session, and the position of its ring there.
    owners: Vec<(usize, usize)>,
    parts: Vec<Part<'s>>,
    teller: usize,
    /// All records of until then are there.
    settled: Nanos,
    sink: &'s mut dyn FnMut(Event<'_>),
}

impl Sieve for Merged<'_> {
    fn keep(&mut self, lane: usize, time: Nanos, record: &RecordBytes<'_>) -> bool {
        let (event, position) = self.owners[lane];
        let part = &mut self.parts[event];
        let of_target =
            part.filter.as_mut().is_none_or(|filter| filter.keep(record)) || part.by_task;
        let glance = Glance::at(record);
        if let (Glance::Sample { .. }, Some((sum, layout))) = (glance, &mut part.sampled)
            && time >= part.since
        {
            **sum += layout.period(record).unwrap_or(0);
        }
        match glance {
            Glance::Sample { .. } if of_target => {
                let stray = part.readers.is_stray(position, time) || part.is_surplus(time, record);
                *part.stray_samples += u64::from(stray);
                !stray && time >= part.since
            }
            // One session tells of it.
            Glance::Mapping { .. }
            | Glance::Comm { .. }
            | Glance::Fork { .. }
            | Glance::Exit { .. } => of_target && event == self.teller,
            _ => of_target,
        }
    }

    fn take(&mut self, lane: usize, mut event: Event<'_>) {
        let (number, position) = self.owners[lane];
        let (part, settled) = (&mut self.parts[number], self.settled);
        if part.occurrences.as_mut().is_some_and(|all| !all.weigh(&mut event, position)) {
            return;
        }
        let time = event.time;
        match &mut event.kind {
            EventKind::Sample(sample) => {
                sample.event = number;
                sample.period = part.stands_for.map_or(sample.period, |(asked, _)| asked.0);
                if part.readers.reads_stacks(position) {
                    let tid = sample.tid;
                    let holds = |until| {
                        let rested =
                            |all: &Returns| until <= settled && all.rested(tid, time, until);
                        part.returns.is_none_or(rested)
                    };
                    return with_rest(event, part.readers.rest(position, time, holds), self.sink);
                }
            }
            EventKind::Lost { event, count } => {
                let before = (*part.lost_untold).min(*count);
                *part.lost_untold -= before;
                (*event, *count) = (number, *count - before);
                if *count == 0 {
                    return;
                }
            }
            _ => {}
        }
        (self.sink)(event);
    }
}

/// Hands a sample over with what was read of its stack.
fn with_rest(event: Event<'_>, rest: Rest<'_>, sink: &mut dyn FnMut(Event<'_>)) {
    let mut event: Event<'_> = event;
    if let EventKind::Sample(SampleEvent { user_stack: Some(stack), .. }) = &mut event.kind {
        stack.rest = rest;
    }
    sink(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_one_recording_are_out_of_step() {
        let rates = [1, 2].map(|position| out_of_step(Rate::Frequency(Hz(499)), position));
        assert_eq!(rates, [Rate::Frequency(Hz(434)), Rate::Frequency(Hz(377))]);
        assert_eq!(out_of_step(Rate::Frequency(Hz(1)), 1), Rate::Frequency(Hz(1)));
        assert_eq!(out_of_step(Rate::Period(1000), 1), Rate::Period(1000), "asked for");
    }
}
