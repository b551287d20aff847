//! A live session of one event: open for all of a target, with one ring a CPU.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flame_events::{Glance, Horizon, RecordLayout};
use flame_profile::{ByteLen, Cpu, Nanos, Tid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

use crate::accounting::Accounted;
use crate::attach::{chosen_cpus, first_task, of_process};
use crate::by_cpu::CpuSamplers;
use crate::config::{
    BURST_STACK_COPY, DEFAULT_STACK_COPY, MAX_STACK_COPY, Privilege, Rate, SamplerConfig, Target,
};
use crate::descriptor::Descriptor;
use crate::error::{Refusal, SamplerError};
use crate::event_type::EventType;
use crate::filter::Filter;
use crate::limits;
use crate::losses::{Losses, Throttling, for_each_new};
use crate::occurrences::Occurrences;
use crate::open::{Plan, Records, Who};
use crate::pacing::{self, Offbeat, Pace};
use crate::readers::Readers;
use crate::returns::Returns;
use crate::ring::page_size;
use crate::rings::Rings;
pub use crate::scope::{Concession, PerTask, Scope, Taken};
use crate::task_intervals;

/// How long a stack may stay unread at most: what its copy does not hold is read from the process,
/// which goes on meanwhile.
pub(crate) const FRESH: Duration = Duration::from_millis(10);

/// The rings of all CPUs together take at most this fraction (1/16) of the machine's memory.
const PART_OF_MEMORY: u64 = 16;

/// How often CPUs are looked for that came online: until then nothing that runs there is sampled.
const HOTPLUG: Duration = Duration::from_millis(100);

/// The open events that own no ring.
#[derive(Debug)]
pub(crate) enum Events {
    Tasks(Vec<Arc<Descriptor>>),
    Cpus(CpuSamplers),
}

/// Open events and their rings.
#[derive(Debug)]
pub struct Session {
    pub(crate) plan: Plan,
    pub(crate) scope: Scope,
    pub(crate) rings: Rings,
    pub(crate) events: Events,
    /// The events of each task whose intervals are drawn.
    pub(crate) drawn: Vec<(Cpu, Tid, Arc<Descriptor>)>,
    /// What keeps those theirs, see [`Plan::open_mark`].
    pub(crate) marks: Vec<Descriptor>,
    pub(crate) filter: Option<Filter>,
    /// One for each ring, where events are bound to CPUs; and where the switches of threads are, see `posts`.
    pub(crate) readers: Readers,
    /// What wakes readers up where events are bound to tasks, which end.
    pub(crate) bells: Vec<Arc<Descriptor>>,
    /// When threads got a CPU, where the stacks of those that wait are read.
    pub(crate) returns: Option<Returns>,
    pub(crate) config: SamplerConfig,
    /// Draws the intervals of events that are bound to tasks, and of counters.
    pub(crate) offbeat: Option<Offbeat>,
    /// Follows how often the event happens, where flame chooses the period.
    pub(crate) occurrences: Option<Occurrences>,
    pub(crate) accounted: Accounted,
    /// Whether what happens to the target is counted wherever it runs.
    pub(crate) counts_all_cpus: bool,
    pub(crate) taken: Taken,
    /// Samples that are older are not the recording's.
    pub(crate) since: Nanos,
    /// What was lost before the recording began.
    lost_before: Losses,
    /// How many of those lost records are still to be told of, where they do not matter.
    pub(crate) lost_untold: u64,
    pub(crate) stray_samples: u64,
    /// What samples of any process stand for, of a counter of the CPU.
    pub(crate) sampled: u64,
    /// What was counted when the recording ended.
    pub(crate) counted: Option<Option<u64>>,
    pub(crate) pace: Pace,
    throttling: Throttling,
    pub(crate) concessions: Vec<Concession>,
    pub(crate) refusals: Vec<Refusal>,
    /// Whether CPUs that come online are sampled, too.
    all_cpus: bool,
    next_hotplug: Instant,
    pub(crate) finished: bool,
}

/// Whether functions of scripts are read where what is counted happens.
fn reads_counted(config: &SamplerConfig, plan: &Plan) -> bool {
    // Readers would wait for each other at the breakpoints of all calls of an allocator.
    let is_read = plan.is_counted() && !plan.event.is_function() && plan.stack_copy > 0;
    let are_named = !matches!(config.target, Target::System | Target::Cgroup(_));
    is_read && are_named && !config.wakes && config.interpreters.is_some()
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
        let probed = Plan::probe(config, first, cpus[0]);
        let (mut plan, concessions) = probed.map_err(|error| of_process(error, &config.target))?;
        let scope = Scope::of(config, &plan, cpus[0]);
        let pace = match scope {
            Scope::Cpus => Pace::of(config, &plan.event),
            Scope::Tasks(_) => Pace::of_tasks(config, &plan.event),
        };
        let wakes = pacing::wakes_at_samples(config, &plan.event);
        plan.wake_at_samples = scope == Scope::Cpus && wakes;
        plan.reads_waits = matches!(scope, Scope::Tasks(_))
            && config.samples_by_thread()
            && plan.stack_copy > 0
            && config.interpreters.is_some()
            && plan.open_bell(cpus[0]).is_ok();
        plan.reads_tasks = matches!(scope, Scope::Tasks(_))
            && wakes
            && plan.stack_copy > 0
            && config.interpreters.is_some();
        plan.draws_tasks = matches!(scope, Scope::Tasks(_)) && pace == Pace::EachSample;
        plan.interval = plan.asked_of_tasks().map(task_intervals::mean_of);
        plan.reads_counted = scope == Scope::Cpus && reads_counted(config, &plan);
        // Old kernels cannot leave out what readers do.
        plan.reads_counted =
            plan.reads_counted && plan.open(&Who::Everyone, cpus[0], Records::Samples).is_ok();
        if config.copy_may_be_larger && plan.stack_copy > 0 && !plan.wake_at_samples {
            plan.set_stack_copy(match (plan.event.is_occurrence(), scope) {
                (true, _) => BURST_STACK_COPY,
                (false, Scope::Cpus) => DEFAULT_STACK_COPY,
                (false, Scope::Tasks(_)) => MAX_STACK_COPY,
            });
        }
        let wanted = ring_len(config, cpus.len());
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
            drawn: Vec::new(),
            marks: Vec::new(),
            filter: None,
            readers: Readers::new(),
            bells: Vec::new(),
            returns: None,
            config: config.clone(),
            accounted: Accounted::Tasks { counters: Vec::new(), start: 0 },
            counts_all_cpus: config.cpus.is_none(),
            taken: Taken::default(),
            since: Nanos(0),
            lost_before: Losses::default(),
            lost_untold: 0,
            stray_samples: 0,
            sampled: 0,
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
        self.since = now;
        // What functions are that were met until now is dropped with the samples that they were told with.
        if let Some(known) = &self.config.interpreters {
            known.define_again();
        }
        self.accounted.begin(self.count_of_samplers(), self.readers.ran());
        if let Some(occurrences) = &mut self.occurrences {
            occurrences.begin(now);
        }
        self.lost_before = self.losses();
        // Breakpoints take so long to set that the first fill their rings meanwhile.
        if self.plan.event.is_function() {
            self.lost_untold = self.lost_before.lost.total();
        }
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
        // Now: what counts goes on, since to stop each thread's own would take a message to a CPU each.
        self.counted = Some(self.count());
        self.readers.finish();
        self.finished = true;
    }

    /// Whether it is told of all tasks of the machine.
    pub(crate) fn sees_all(&self) -> bool {
        self.config.target == Target::System
    }

    /// All open events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Descriptor> {
        self.events_by_records().map(|(event, _)| event)
    }

    /// All open events, and what each of them writes.
    fn events_by_records(&self) -> impl Iterator<Item = (&Descriptor, Records)> {
        let (tasks, cpus) = match &self.events {
            Events::Tasks(events) => (Some(events.iter()), None),
            Events::Cpus(samplers) => (None, Some(samplers.all())),
        };
        // Those that sample occurrences are events of their own, as those of CPUs are.
        let first = match &self.events {
            Events::Tasks(_) if self.occurrences.is_none() => Records::All,
            _ => Records::SideBand,
        };
        let counted = self.occurrences.iter().flat_map(Occurrences::events);
        let tasks = tasks.into_iter().flatten().map(Arc::as_ref);
        let firsts = self.rings.events().chain(tasks);
        let firsts = firsts.map(move |event| (event, first));
        let counted = counted.map(|event| (event, Records::Samples));
        firsts.chain(cpus.into_iter().flatten()).chain(counted)
    }

    /// What could not be had.
    pub fn concessions(&self) -> &[Concession] {
        &self.concessions
    }

    /// What was refused since sampling began.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// Whether the kernel would let this process, with the rights that it has now, open events for
    /// CPUs that come online, or for calls of functions. Where neither is sampled, it would.
    pub fn may_reopen(&self) -> bool {
        let Some(cpu) = self.rings.cpus().next() else { return true };
        match &self.events {
            Events::Cpus(samplers) => samplers.may_reopen(&self.plan, cpu),
            // Those of functions are opened anew when too many calls come, and take more rights.
            Events::Tasks(_) if self.plan.event.is_function() => {
                let own = Who::Task(Tid(gettid().as_raw().unsigned_abs()));
                self.plan.open(&own, cpu, Records::Samples).is_ok()
            }
            Events::Tasks(_) => true,
        }
    }

    /// What the events are bound to.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// How many CPUs have a ring: those that are sampled.
    pub fn cpu_count(&self) -> usize {
        self.rings.cpus().count()
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

    /// Bytes of user stack that samples copy at most.
    pub fn stack_copy(&self) -> ByteLen {
        ByteLen(self.plan.stack_copy.into())
    }

    /// Whether something that goes before flame kept it from its CPUs.
    pub fn was_kept_away(&self) -> bool {
        self.readers.were_kept_away()
    }

    /// Whether readers have no right to go before the target, so that which samples they read in time is not by chance.
    pub fn readers_yield(&self) -> bool {
        self.readers.yield_to_target()
    }

    /// Whether flame or the kernel chooses N, of which every Nth occurrence of the event is sampled.
    pub fn chooses_period(&self) -> bool {
        !self.plan.event.is_clock() && matches!(self.plan.rate, Rate::Frequency(_))
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
        for (event, records) in self.events_by_records() {
            losses.add(self.plan.read(event), records);
        }
        losses.throttled = self.throttling.total(monotonic_now());
        losses.stray_samples = self.stray_samples;
        losses.count = losses.count.saturating_sub(self.readers.counted());
        losses.without(self.lost_before)
    }

    /// Whether readers look after the rings.
    pub(crate) fn has_readers(&self) -> bool {
        self.readers.are_there()
    }

    /// Waits until there is something to do, or `timeout` is over: a ring is a quarter full, or,
    /// where no reader looks after the rings, a stack is to be read on while it may still stand.
    pub fn wait(&mut self, timeout: Duration) {
        if self.readers.are_there() || !self.bells.is_empty() {
            let is_unread = self.plan.reads_tasks && !self.readers.are_there();
            let soon = self.occurrences.is_some() || is_unread;
            self.readers.wait(if soon { timeout.min(FRESH) } else { timeout });
        } else if self.plan.stack_copy > 0 || self.occurrences.is_some() {
            self.rings.wait(timeout.min(FRESH));
        } else {
            self.rings.wait(timeout);
        }
    }

    /// Looks at what the kernel has written, and changes what is sampled where too much comes.
    pub(crate) fn look_at_rings(&mut self) {
        self.rings.refresh();
        if !self.finished || self.occurrences.is_some() {
            self.look();
        }
        self.follow_occurrences();
    }

    /// What was released is done with.
    pub(crate) fn end_drain(&mut self, horizon: Horizon) {
        if let Horizon::Until(time) = horizon {
            self.readers.forget_until(time);
            self.returns.iter_mut().for_each(|returns| returns.forget_until(time));
        }
        self.rings.publish();
        if !self.finished {
            self.start_needed_readers();
            self.replace_stuck_readers();
            self.follow_hotplug();
        }
        if let Some(filter) = &mut self.filter {
            filter.fill_gaps();
        }
    }

    /// Looks at what came since the last time, ring by ring.
    fn look(&mut self) {
        let layout = self.plan.layout;
        for (position, ring) in self.rings.queues().iter_mut().enumerate() {
            for_each_new(ring, &layout, |glance, time| {
                self.throttling.look(position, glance, time);
                if let Glance::Sample { .. } = glance {
                    self.readers.note(position, time);
                    if let Some(occurrences) = &mut self.occurrences {
                        occurrences.see(position, time);
                    }
                }
                if let Glance::Switch { tid, runs, .. } = glance {
                    self.occurrences.iter_mut().for_each(|all| all.switched(tid));
                    let returns = self.returns.as_mut().filter(|_| runs);
                    returns.into_iter().for_each(|returns| returns.note(tid, time));
                }
            });
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
            self.start_reader(position);
        }
    }
}

/// Bytes of ring for each of this many CPUs: a small part of the machine's memory, unless more was asked
/// for.
fn ring_len(config: &SamplerConfig, cpus: usize) -> ByteLen {
    let most = limits::memory().map_or(u64::MAX, |memory| memory / PART_OF_MEMORY / cpus as u64);
    let wanted = config.ring_len(cpus);
    // A power of two, as what is wanted.
    let most = most.checked_ilog2().map_or(0, |log| 1 << log);
    if config.ring.is_some() { wanted } else { wanted.min(ByteLen(most)) }
}

/// Now, on the clock of the records.
pub(crate) fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    Nanos::from(now.unwrap_or_default())
}
