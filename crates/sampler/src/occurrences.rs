//! Samples of an event that is counted: which events are open for them, and when others are.
//!
//! [`Counting`] says what to do; this does it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use flame_events::{Event, EventKind, Glance};
use flame_profile::{Cpu, Hz, Nanos, Tid};

use crate::config::{Rate, SamplerConfig, Target};
use crate::counting::{Counting, FIRST_MEAN, Stage};
use crate::descriptor::Descriptor;
use crate::error::{Refusal, Refused, SamplerError};
use crate::losses::{Losses, for_each_new};
use crate::open::{Plan, Records, Who};
use crate::pacing;
use crate::schedstat::Schedstat;
use crate::session::{Events, Session, monotonic_now};
use crate::switch_rates::SwitchRates;

/// How long switches are counted, to know how many come.
const SWITCHES_SEEN: Duration = Duration::from_millis(20);

/// How often threads are listed at most while their events are opened anew.
const ROUNDS: usize = 10;

/// More events than that are not opened anew just to draw another period: it takes 50 us each.
pub(crate) const MOST_DRAWN: usize = 200;

/// The sampling events of tasks, and what all samples of the session stand for.
#[derive(Debug)]
pub(crate) struct Occurrences {
    counting: Counting,
    /// Bound to the target's tasks.
    samplers: Vec<Arc<Descriptor>>,
    /// Those that sample no more.
    retired: Vec<Arc<Descriptor>>,
    /// What was lost by them.
    closed: Losses,
    /// Where each thread has its own period.
    by_thread: Option<SwitchRates>,
}

impl Occurrences {
    /// `None` where the kernel or the user chooses the period.
    pub(crate) fn of(plan: &Plan, config: &SamplerConfig) -> Option<Occurrences> {
        let Rate::Frequency(Hz(hz)) = plan.rate else { return None };
        let mut counting = Counting::new(hz, config.seed);
        if plan.event.is_function() {
            counting.draw_rarely();
        }
        plan.is_counted().then(|| Occurrences {
            counting,
            samplers: Vec::new(),
            retired: Vec::new(),
            closed: Losses::default(),
            by_thread: config.samples_by_thread().then(|| SwitchRates::new(hz, config.seed)),
        })
    }

    /// All tasks are meant: events are bound to CPUs from the start. A period that turns out to be too
    /// long is only left behind by as many occurrences, so that the first one matters where they are
    /// rare.
    pub(crate) fn start_with_cpus(&mut self, plan: &mut Plan, config: &SamplerConfig) {
        let is_of_all = plan.event.filter.is_none();
        let mean = match (&config.target, config.switches || config.wakes) {
            // Few are of the target's threads.
            (Target::System, true) if !is_of_all => 1.0,
            (Target::System, true) => switches_a_second() / self.counting.frequency() as f64,
            (_, true) => 1.0,
            _ if plan.event.is_rare => 1.0,
            _ => FIRST_MEAN,
        };
        plan.period = self.counting.start_anywhere(mean, monotonic_now());
    }

    /// So many threads are there already that a flood would come before anybody could look after it: each gets its own
    /// period from the start.
    pub(crate) fn start_with_threads(&mut self, threads: &[Tid]) {
        let Some(rates) = &mut self.by_thread else { return };
        let (before, since) = (turns_of(threads), monotonic_now());
        thread::sleep(SWITCHES_SEEN);
        rates.begin(since);
        for (thread, turns) in turns_of(threads) {
            let came = before.get(&thread).map_or(0, |before| turns.saturating_sub(*before));
            // Away, and back.
            (0..2 * came).for_each(|_| rates.see(thread));
        }
        let now = monotonic_now();
        rates.draw(now);
        self.counting.start(Stage::Tasks, Some(0), now);
    }

    /// N, where every Nth switch of a thread is sampled, if each thread has its own.
    pub(crate) fn period_of(&self, thread: Tid) -> Option<u64> {
        self.by_thread.as_ref().map(|rates| rates.period(thread))
    }

    /// Counts from now on.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.counting.begin(now);
        self.by_thread.iter_mut().for_each(|rates| rates.begin(now));
    }

    /// Whether each occurrence in the target's tasks is sampled now.
    pub(crate) fn samples_tasks(&self) -> bool {
        self.counting.stage() == Stage::Every
    }

    /// Keeps an event that samples a task.
    pub(crate) fn add_sampler(&mut self, event: Arc<Descriptor>) {
        self.samplers.push(event);
    }

    /// The events that sample tasks.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Descriptor> {
        self.samplers.iter().map(Arc::as_ref)
    }

    /// What was lost by events that are closed.
    pub(crate) fn closed(&self) -> Losses {
        self.closed
    }

    /// Takes in a sample of the ring at that position.
    pub(crate) fn see(&mut self, position: usize, time: Nanos) {
        self.counting.see(position, time);
    }

    /// A thread was switched, away from its CPU or back.
    pub(crate) fn switched(&mut self, tid: Tid) {
        self.by_thread.iter_mut().for_each(|rates| rates.see(tid));
    }

    /// Says what a sample of the ring at that position stands for; whether it is to be kept.
    pub(crate) fn weigh(&mut self, event: &mut Event<'_>, position: usize) -> bool {
        // What a switch stands for is known by its time, and by those of the others.
        if self.by_thread.is_some() {
            return true;
        }
        let EventKind::Sample(sample) = &mut event.kind else { return true };
        sample.period = self.counting.weight_of(position, event.time);
        sample.period > 0
    }

    fn close_samplers(&mut self, plan: &Plan) {
        self.samplers.iter().for_each(|sampler| drop(sampler.disable()));
        let readings = self.samplers.iter().map(|sampler| plan.read(sampler));
        readings.for_each(|reading| self.closed.add(reading, Records::Samples));
        self.retired.append(&mut self.samplers);
    }
}

/// How often each thread was given a CPU so far.
fn turns_of(threads: &[Tid]) -> BTreeMap<Tid, u64> {
    let of_thread = |thread: &Tid| {
        let text = fs::read(format!("/proc/{thread}/schedstat")).ok()?;
        Some((*thread, Schedstat::parse(&text)?.turns))
    };
    threads.iter().filter_map(of_thread).collect()
}

/// Context switches of the machine, as they come now.
fn switches_a_second() -> f64 {
    let all = || {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("ctxt "));
        line.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let (before, since) = (all(), Instant::now());
    thread::sleep(SWITCHES_SEEN);
    all().saturating_sub(before) as f64 / since.elapsed().as_secs_f64()
}

impl Session {
    /// Looks whether the samples that came are too many or too few. To be called after a look.
    pub(crate) fn follow_occurrences(&mut self) {
        let now = monotonic_now();
        let Some(occurrences) = &mut self.occurrences else { return };
        let counting = &mut occurrences.counting;
        if !self.finished {
            let result = match counting.stage() {
                Stage::Every if counting.is_flooded(now) => self.choose_occurrences(),
                Stage::Every => {
                    occurrences.by_thread.iter_mut().for_each(|rates| rates.forget(now));
                    Ok(())
                }
                Stage::Cpus | Stage::Tasks => self.change_periods(now),
            };
            if let Err(error) = result {
                self.refusals.push(Refusal { what: Refused::Occurrences, error });
            }
        }
        if let Some(occurrences) = &mut self.occurrences {
            occurrences.counting.end_look();
            let retired = mem::take(&mut occurrences.retired);
            // The kernel takes up to a tenth of a second for each breakpoint that goes, in which nobody
            // would empty the rings; until then it lets nobody set others.
            if self.plan.event.is_function() && !retired.is_empty() {
                thread::spawn(move || drop(retired));
            }
        }
    }

    /// From now on some of the occurrences are sampled.
    fn choose_occurrences(&mut self) -> Result<(), SamplerError> {
        let Some(occurrences) = &mut self.occurrences else { return Ok(()) };
        occurrences.close_samplers(&self.plan);
        // Nothing samples any more: what is in the rings now is all that was seen.
        let layout = self.plan.layout;
        self.rings.refresh();
        for (position, ring) in self.rings.queues().iter_mut().enumerate() {
            for_each_new(ring, &layout, |glance, time| {
                if let Glance::Sample { .. } = glance {
                    occurrences.see(position, time);
                }
            });
        }
        let count = self.count();
        let Some(occurrences) = &mut self.occurrences else { return Ok(()) };
        if let Some(count) = count {
            occurrences.counting.spread(count);
        }
        occurrences.by_thread.iter_mut().for_each(|rates| rates.draw(monotonic_now()));
        let by_cpu = matches!(self.events, Events::Cpus(_));
        let stage = if by_cpu { Stage::Cpus } else { Stage::Tasks };
        self.plan.period = occurrences.counting.start(stage, count, monotonic_now());
        tracing::info!(?stage, period = self.plan.period, count, "samples of some occurrences");
        match &mut self.events {
            Events::Cpus(samplers) => {
                let started = samplers.start_at(self.plan.period);
                started.map_err(|error| self.plan.refusal(error, &Who::Everyone))
            }
            Events::Tasks(_) => self.open_samplers_of_tasks(),
        }
    }

    /// Sets the periods of CPUs, or opens the events of tasks anew with another one.
    fn change_periods(&mut self, now: Nanos) -> Result<(), SamplerError> {
        let is_due = self.occurrences.as_ref().is_some_and(|all| all.counting.is_due(now));
        let count = is_due.then(|| self.count());
        let Some(occurrences) = &mut self.occurrences else { return Ok(()) };
        if let Some(count) = count {
            occurrences.counting.measure(count, now);
        }
        if let Events::Cpus(samplers) = &self.events {
            for (position, event) in samplers.events().enumerate() {
                if let Some(period) = occurrences.counting.next_period(position, monotonic_now()) {
                    pacing::set(&self.plan, event, Nanos(period));
                }
            }
            return Ok(());
        }
        let events = occurrences.samplers.len();
        if let Some(rates) = &mut occurrences.by_thread {
            if !rates.is_time(now, events) {
                return Ok(());
            }
            rates.draw(now);
        } else if events > MOST_DRAWN {
            return Ok(());
        } else {
            let Some(period) = occurrences.counting.next_opening(now) else { return Ok(()) };
            self.plan.period = period;
        }
        occurrences.close_samplers(&self.plan);
        self.open_samplers_of_tasks()
    }

    /// Opens sampling events for all of the target's tasks, those that were started since the
    /// recording began included. Tasks that appear meanwhile inherit them from who started them.
    fn open_samplers_of_tasks(&mut self) -> Result<(), SamplerError> {
        // It runs: samples came.
        self.plan.on_exec = false;
        let cpus: Vec<Cpu> = self.rings.cpus().collect();
        let mut known: BTreeSet<Tid> = BTreeSet::new();
        for round in 0..ROUNDS {
            let listed = self.filter.iter().flat_map(|filter| filter.tasks());
            let new: Vec<Tid> = listed.filter(|tid| known.insert(*tid)).collect();
            if new.is_empty() {
                break;
            }
            let inherited = if round == 0 { BTreeSet::new() } else { self.started_threads() };
            for tid in new.into_iter().filter(|tid| !inherited.contains(tid)) {
                for cpu in &cpus {
                    match self.add_sampler_of(tid, *cpu) {
                        Err(SamplerError::NoSuchThread { .. }) => break,
                        result => result?,
                    }
                }
            }
        }
        Ok(())
    }
}
