//! A live session: all events of a target open, one ring a CPU, drained in time order.

use std::time::{Duration, Instant};

use flame_events::{Event, EventSource, Glance, Horizon, RecordBytes, RecordLayout, drain_kept};
use flame_profile::{ByteLen, Cpu, Nanos};
use nix::time::{ClockId, clock_gettime};

use crate::accounting::Accounted;
use crate::attach::{chosen_cpus, first_task};
use crate::by_cpu::CpuSamplers;
use crate::config::{MAX_STACK_COPY, Privilege, Rate, SamplerConfig, Target};
use crate::descriptor::Descriptor;
use crate::error::{Refusal, Refused, SamplerError};
use crate::event_type::EventType;
use crate::filter::Filter;
use crate::limits;
use crate::losses::{Losses, Throttling, for_each_new};
use crate::occurrences::Occurrences;
use crate::open::Plan;
use crate::pacer::{GRACE, Pacer, Seen};
use crate::pacing::{self, Offbeat, Pace};
use crate::ring::page_size;
use crate::rings::Rings;
pub use crate::scope::{Concession, PerTask, Scope, Taken};

/// How old a record must be before it is released: by then the others of its time are written.
/// A record becomes visible some microseconds after its time was taken.
const SETTLE: Nanos = Nanos(1_000_000);

/// How long a stack may stay unread at most: what its copy does not hold is read from the process,
/// which goes on meanwhile.
const FRESH: Duration = Duration::from_millis(10);

/// How often CPUs are looked for that came online.
const HOTPLUG: Duration = Duration::from_secs(1);

/// The open events that own no ring.
#[derive(Debug)]
pub(crate) enum Events {
    Tasks(Vec<Descriptor>),
    Cpus(CpuSamplers),
}

/// Open events and their rings.
#[derive(Debug)]
pub struct Session {
    pub(crate) plan: Plan,
    pub(crate) scope: Scope,
    pub(crate) rings: Rings,
    pub(crate) events: Events,
    pub(crate) filter: Option<Filter>,
    pub(crate) pacer: Option<Pacer>,
    /// Draws the intervals of events that are bound to tasks.
    pub(crate) offbeat: Option<Offbeat>,
    /// Follows how often the event happens, where flame chooses the period.
    pub(crate) occurrences: Option<Occurrences>,
    pub(crate) accounted: Accounted,
    /// Whether what happens to the target is counted wherever it runs.
    pub(crate) counts_all_cpus: bool,
    pub(crate) taken: Taken,
    /// Samples that are older are not the recording's.
    since: Nanos,
    /// Whether the target was there before, and is not all of the machine.
    is_attached: bool,
    /// What was lost before the recording began.
    lost_before: Losses,
    stray_samples: u64,
    /// What was counted when the recording ended.
    counted: Option<Option<u64>>,
    pace: Pace,
    throttling: Throttling,
    pub(crate) concessions: Vec<Concession>,
    pub(crate) refusals: Vec<Refusal>,
    /// Whether CPUs that come online are sampled, too.
    all_cpus: bool,
    next_hotplug: Instant,
    pub(crate) finished: bool,
}

impl Session {
    /// Opens the events of a target; [`Session::begin`] starts the recording. A launched program
    /// must still be held back: its samples begin with its exec.
    ///
    /// # Errors
    /// See [`SamplerError`]; nothing stays open then.
    pub fn open(config: &SamplerConfig) -> Result<Session, SamplerError> {
        limits::raise_open_files();
        let cpus = chosen_cpus(config)?;
        let first = first_task(&config.target)?;
        let (mut plan, concessions) = Plan::probe(config, first, cpus[0])?;
        let scope = Scope::of(config, &plan, cpus[0]);
        // Of what comes in bursts a ring is to hold many.
        let is_clocked = !plan.event.is_occurrence();
        if scope != Scope::Cpus && config.copy_grows && plan.stack_copy > 0 && is_clocked {
            plan.set_stack_copy(MAX_STACK_COPY);
        }
        let pace = match scope {
            Scope::Cpus => Pace::of(config, &plan.event, cpus.len()),
            Scope::Tasks(_) => Pace::Fixed,
        };
        plan.wake_at_samples = pace == Pace::EachSample;
        let wanted = config.ring_len(cpus.len());
        let mut ring = usize::try_from(wanted.0).unwrap_or(usize::MAX / 4).max(page_size());
        // A sample with its stack copy must fit, with another beside it.
        let smallest = (4 * page_size()).max(2 * plan.stack_copy as usize).next_power_of_two();
        loop {
            plan.wake_after = ring / 4;
            let mut session = Session::empty(plan.clone(), scope, pace, config, ring);
            session.concessions.clone_from(&concessions);
            match session.attach(config, &cpus) {
                Ok(()) => {
                    let ring = ByteLen(ring as u64);
                    if ring < wanted {
                        session.concessions.push(Concession::SmallerRing { ring, wanted });
                    }
                    return Ok(session);
                }
                // What one CPU takes is missing for the next: all rings shrink together.
                Err(SamplerError::LockedMemory { .. }) if ring / 2 >= smallest => ring /= 2,
                Err(SamplerError::LockedMemory { mlock_kb, .. }) => {
                    let needed_kb = (wanted.0 + page_size() as u64) / 1024;
                    let ring = ByteLen(ring as u64);
                    return Err(SamplerError::LockedMemory { ring, mlock_kb, needed_kb });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn empty(plan: Plan, scope: Scope, pace: Pace, config: &SamplerConfig, ring: usize) -> Session {
        Session {
            occurrences: Occurrences::of(&plan, config),
            offbeat: Offbeat::of(config, &plan.event),
            plan,
            scope,
            rings: Rings::new(ring),
            events: Events::Tasks(Vec::new()),
            filter: None,
            pacer: pace.pacer(config),
            accounted: Accounted::Tasks { counters: Vec::new(), start: 0 },
            counts_all_cpus: config.cpus.is_none(),
            taken: Taken::default(),
            since: Nanos(0),
            is_attached: matches!(config.target, Target::Processes(_) | Target::Threads(_)),
            lost_before: Losses::default(),
            stray_samples: 0,
            counted: None,
            pace,
            throttling: Throttling::default(),
            concessions: Vec::new(),
            refusals: Vec::new(),
            all_cpus: scope == Scope::Cpus && config.cpus.is_none(),
            next_hotplug: Instant::now() + HOTPLUG,
            finished: false,
        }
    }

    /// Starts the recording: what came before, while the target was looked at, is not part of it.
    ///
    /// # Errors
    /// The events that sample could not be opened.
    pub fn begin(&mut self) -> Result<(), SamplerError> {
        self.start_samplers()?;
        let now = monotonic_now();
        if self.is_attached {
            self.since = now;
        }
        self.accounted.begin();
        if let Some(occurrences) = &mut self.occurrences {
            occurrences.begin(now, self.since);
        }
        self.lost_before = self.losses();
        Ok(())
    }

    /// What was found of a target that existed already.
    pub fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Stops sampling. What was recorded until then is still to be drained, once.
    pub fn finish(&mut self) {
        // An event whose task has ended cannot be stopped and need not be.
        self.events().for_each(|event| drop(event.disable()));
        self.accounted.disable();
        self.counted = Some(self.count());
        self.finished = true;
    }

    /// All open events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Descriptor> {
        let (tasks, cpus) = match &self.events {
            Events::Tasks(events) => (Some(events.iter()), None),
            Events::Cpus(samplers) => (None, Some(samplers.all())),
        };
        let counted = self.occurrences.iter().flat_map(Occurrences::events);
        let bound = tasks.into_iter().flatten().chain(cpus.into_iter().flatten());
        self.rings.events().chain(bound).chain(counted)
    }

    /// What could not be had.
    pub fn concessions(&self) -> &[Concession] {
        &self.concessions
    }

    /// What was refused since sampling began.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// Whether the kernel would let this process, with the rights that it has now, open events as
    /// they have to be for larger stack copies and for CPUs that come online. Where neither can
    /// happen, it would.
    pub fn may_reopen(&self) -> bool {
        let Events::Cpus(samplers) = &self.events else { return true };
        self.rings.cpus().next().is_none_or(|cpu| samplers.may_reopen(&self.plan, cpu))
    }

    /// What the events are bound to.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// How many CPUs have a ring: those that are sampled.
    pub fn cpu_count(&self) -> usize {
        self.rings.cpus().count()
    }

    /// Whether the intervals between samples are random.
    pub fn is_randomized(&self) -> bool {
        self.pacer.is_some()
    }

    /// The event that samples are taken of.
    pub fn event(&self) -> &EventType {
        &self.plan.event
    }

    /// Which code is sampled.
    pub fn privilege(&self) -> Privilege {
        self.plan.privilege
    }

    /// How often.
    pub fn rate(&self) -> Rate {
        self.plan.rate
    }

    /// How records are to be read.
    pub fn layout(&self) -> &RecordLayout {
        &self.plan.layout
    }

    /// Bytes of user stack that samples copy at most now.
    pub fn stack_copy(&self) -> ByteLen {
        ByteLen(self.plan.stack_copy.into())
    }

    /// Lets samples copy so many bytes of user stack from now on (rounded down to a multiple of 8).
    /// `false` = that cannot be changed: the events of tasks that were inherited are out of reach,
    /// or the kernel refused, which is among the [refusals](Session::refusals) then.
    pub fn set_stack_copy(&mut self, bytes: ByteLen) -> bool {
        let refused = |refusal: &Refusal| refusal.what == Refused::StackCopy;
        let Events::Cpus(samplers) = &mut self.events else { return false };
        if !samplers.is_sampling() {
            return false;
        }
        if self.finished || self.plan.stack_copy == 0 || self.refusals.iter().any(refused) {
            return false;
        }
        let before = self.plan.stack_copy;
        self.plan.set_stack_copy(bytes);
        let Err(error) = samplers.reopen(&self.plan, &mut self.rings) else {
            if let Some(occurrences) = &mut self.occurrences {
                occurrences.reopened(&self.plan, self.rings.cpus().count());
            }
            return true;
        };
        // What was opened before the refusal copies more; it can be relied on nowhere.
        self.plan.set_stack_copy(ByteLen(before.into()));
        self.refusals.push(Refusal { what: Refused::StackCopy, error });
        false
    }

    /// CPU time that the kernel accounted to the target since sampling began; `None` where it
    /// cannot be known.
    pub fn accounted(&self) -> Option<Nanos> {
        if self.plan.event.is_clock() { self.count().map(Nanos) } else { None }
    }

    /// How often the event happened in the target since sampling began, by the kernel's own counter;
    /// `None` for clocks and the CPU's events, and where it cannot be known.
    pub fn happened(&self) -> Option<u64> {
        if self.plan.event.is_occurrence() { self.count() } else { None }
    }

    /// Whether flame chooses every how manieth occurrence of the event is sampled.
    pub fn chooses_period(&self) -> bool {
        self.occurrences.is_some()
    }

    pub(crate) fn count(&self) -> Option<u64> {
        if let Some(counted) = self.counted {
            return counted;
        }
        self.accounted.read(|| match &self.events {
            Events::Cpus(samplers) => samplers.count(&self.plan),
            Events::Tasks(_) => 0,
        })
    }

    /// What events did not see so far although they were open.
    pub fn losses(&self) -> Losses {
        let mut losses = match &self.events {
            Events::Tasks(_) => Losses::default(),
            Events::Cpus(samplers) => samplers.closed(),
        };
        if let Some(occurrences) = &self.occurrences {
            losses += occurrences.closed();
        }
        self.events().for_each(|event| losses += self.plan.read(event));
        losses.throttled = self.throttling.total(monotonic_now());
        losses.stray_samples = self.stray_samples;
        losses.without(self.lost_before)
    }

    /// Waits until there is something to do, `timeout` is over, or a signal came: a ring is a
    /// quarter full, a sample came whose successor is to be scheduled, or is old enough to be
    /// released.
    pub fn wait(&mut self, timeout: Duration) {
        let timeout = match self.pace {
            // A sample that wakes flame up is too young to be released; the next one mostly comes
            // before that time is over, and a wake-up less a sample is half of the cost.
            Pace::EachSample if self.rings.has_unread() => timeout.min(FRESH).min(self.until_due()),
            Pace::EachSample => timeout.min(self.until_due()),
            Pace::Batches { every, .. } => timeout.min(every),
            Pace::Fixed if self.plan.stack_copy > 0 || self.occurrences.is_some() => {
                timeout.min(FRESH)
            }
            _ => timeout,
        };
        self.rings.wait(timeout);
    }

    /// How long it takes until a sample is overdue.
    fn until_due(&self) -> Duration {
        let due =
            self.pacer.as_ref().filter(|_| self.timers_always_run()).and_then(Pacer::next_due);
        let left = |due: Nanos| (due.0 + GRACE.0).saturating_sub(monotonic_now().0);
        // Whole milliseconds is what can be waited for: not less than is left.
        due.map_or(Duration::MAX, |due| Duration::from_millis(left(due) / 1_000_000 + 1))
    }

    /// Whether timers run all the time, and not just with the tasks that they are for.
    fn timers_always_run(&self) -> bool {
        matches!(&self.events, Events::Cpus(samplers) if samplers.timer_always_runs())
    }

    /// Looks at what came since the last time, ring by ring.
    pub(crate) fn look(&mut self) -> Vec<Seen> {
        let layout = self.plan.layout;
        // A clock that stands still has not passed anything by.
        let always = self.timers_always_run();
        let mut pacer = self.pacer.as_mut().filter(|_| always);
        let mut all = Vec::new();
        for (position, ring) in self.rings.queues().iter_mut().enumerate() {
            let mut seen = Seen::default();
            for_each_new(ring, &layout, |glance, time| {
                self.throttling.look(position, glance, time);
                if let (Some(occurrences), Glance::Sample { .. }) = (&mut self.occurrences, glance)
                {
                    occurrences.see(position, time);
                }
                if let (Some(pacer), Glance::Sample { .. }) = (&mut pacer, glance)
                    && pacer.note(position, time, &mut seen)
                {
                    return;
                }
                pacing::note(&mut seen, glance, time);
            });
            if let Some(pacer) = &mut pacer {
                pacer.note_silence(position, monotonic_now(), &mut seen);
            }
            all.push(seen);
        }
        all
    }

    /// Sets when the next samples come.
    fn set_intervals(&mut self, all: Vec<Seen>) {
        let (Some(pacer), Events::Cpus(samplers)) = (&mut self.pacer, &self.events) else { return };
        let new = |seen: &(usize, Seen)| seen.1 != Seen::default();
        for (position, mut seen) in all.into_iter().enumerate().filter(new) {
            let now = samplers.timer_now(position, &self.plan, monotonic_now());
            seen.last = seen.last.min(now);
            let interval = pacer.next(position, seen, now);
            if let (Some(interval), Some(event)) = (interval, samplers.event(position)) {
                pacing::set(&self.plan, event, interval);
            }
        }
    }

    fn follow_hotplug(&mut self) {
        if !self.all_cpus || Instant::now() < self.next_hotplug {
            return;
        }
        self.next_hotplug = Instant::now() + HOTPLUG;
        let (Events::Cpus(samplers), refusals) = (&mut self.events, &mut self.refusals) else {
            return;
        };
        for position in samplers.follow_hotplug(&self.plan, &mut self.rings, refusals) {
            if let Some(cpu) = self.rings.cpus().nth(position) {
                self.accounted.add_cpu(cpu);
            }
            if let (Some(pacer), Some(event)) = (&mut self.pacer, samplers.event(position)) {
                let now = samplers.timer_now(position, &self.plan, monotonic_now());
                let first = pacer.restart(position, now);
                pacing::set(&self.plan, event, first);
            }
        }
    }
}

impl EventSource for Session {
    type Error = SamplerError;

    fn wait(&mut self, timeout: Duration) {
        Session::wait(self, timeout);
    }

    fn stop(&mut self) {
        self.finish();
    }

    fn copy_stacks(&mut self, bytes: ByteLen) -> Option<ByteLen> {
        self.set_stack_copy(bytes).then(|| self.stack_copy())
    }

    /// Live, the last millisecond is kept back; after [`Session::finish`] nothing is. Records that
    /// cannot be decoded are handed over as [`flame_events::EventKind::Undecodable`]. Where all
    /// tasks are seen, only the target's records are handed over.
    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), SamplerError> {
        // The clock is read first: what is written from now on is younger.
        let horizon = match self.finished {
            true => Horizon::End,
            false => Horizon::Until(monotonic_now().saturating_since(SETTLE)),
        };
        self.rings.refresh();
        let mut seen = match self.finished && self.occurrences.is_none() {
            true => Vec::new(),
            false => self.look(),
        };
        self.follow_occurrences();
        if self.pace == Pace::EachSample {
            self.set_intervals(std::mem::take(&mut seen));
        }
        let layout = self.plan.layout;
        // Events of tasks see nobody else; the filter knows their processes.
        let by_task = matches!(self.events, Events::Tasks(_));
        let (filter, pacer) = (&mut self.filter, &mut self.pacer);
        let (since, strays) = (self.since, &mut self.stray_samples);
        let mut keep = |record: &RecordBytes<'_>| {
            let of_target = filter.as_mut().is_none_or(|filter| filter.keep(record)) || by_task;
            if !matches!(Glance::at(record), Glance::Sample { .. }) {
                return of_target;
            }
            let time = layout.time(record).unwrap_or_default();
            let stray = pacer.as_mut().is_some_and(|pacer| pacer.is_stray(time));
            *strays += u64::from(of_target && stray);
            of_target && !stray && time >= since
        };
        let lanes: Vec<Cpu> = self.rings.cpus().collect();
        let occurrences = &mut self.occurrences;
        let mut weighed = |mut event: Event<'_>| {
            let kept = occurrences.as_mut().is_none_or(|all| all.weigh(&mut event, &lanes));
            if kept {
                sink(event);
            }
        };
        drain_kept(self.rings.queues(), &layout, horizon, &mut keep, &mut weighed);
        self.rings.publish();
        // An interval that is set begins anew. Set before the work, the work would never be sampled
        // on the CPU that it is done on, and what else runs there too often: by a percent at 999 Hz.
        if !self.finished {
            self.set_intervals(seen);
            self.follow_hotplug();
        }
        if let Some(filter) = &mut self.filter {
            filter.fill_gaps();
        }
        Ok(())
    }
}

/// Now, on the clock of the records.
pub(crate) fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    Nanos::from(now.unwrap_or_default())
}
