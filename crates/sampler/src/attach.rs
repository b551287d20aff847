//! How a session takes hold of its target, without stopping it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flame_events::{Event, EventKind};
use flame_profile::{Cpu, Hz, Pid, Tid};
use nix::errno::Errno;

use crate::accounting::{Accounted, Counter};
use crate::by_cpu::CpuSamplers;
use crate::config::{Rate, SamplerConfig, Target};
use crate::cpus;
use crate::descriptor::Descriptor;
use crate::error::SamplerError;
use crate::filter::Filter;
use crate::limits;
use crate::occurrences::{MOST_DRAWN, Occurrences};
use crate::open::{Plan, Records, Who};
use crate::pacing::Offbeat;
use crate::rings::with_count;
use crate::session::{Concession, Events, PerTask, Scope, Session};
use crate::threads;

/// How often threads are listed at most while a target is attached to: a process that starts threads
/// faster than they can be listed must not keep flame from starting.
const ATTACH_ROUNDS: usize = 100;

/// Between the moment when a new thread can be listed and the moment when the kernel has written
/// the record of its start lie some instructions of the thread that started it.
const FORK_SETTLE: Duration = Duration::from_millis(1);

/// Above that, no task is short by the interval between samples, and a timer on every CPU would leave
/// nothing of them: one tick takes 15 us.
const FASTEST_BY_CPU: Hz = Hz(20_000);

impl Scope {
    /// What events are bound to. Being bound to CPUs sees everything, but takes the right to sample
    /// all tasks, and costs the others a little; where every Nth
    /// occurrence of an event is sampled, it is the target's, not that of whatever runs on the CPU.
    pub(crate) fn of(config: &SamplerConfig, plan: &Plan, cpu: Cpu) -> Scope {
        if matches!(config.target, Target::System | Target::Cgroup(_)) {
            return Scope::Cpus;
        }
        if config.per_task {
            return Scope::Tasks(PerTask::AskedFor);
        }
        let is_fast = matches!(config.rate, Rate::Frequency(hz) if hz > FASTEST_BY_CPU);
        if plan.counts_occurrences() || is_fast || config.samples_by_thread() {
            return Scope::Tasks(PerTask::NothingMissed);
        }
        match plan.open(&Who::Everyone, cpu, Records::All) {
            Ok(_) => Scope::Cpus,
            Err(error) => {
                tracing::debug!(%error, "sampling by task");
                Scope::Tasks(PerTask::NoPermission)
            }
        }
    }
}

impl Session {
    /// Opens everything.
    pub(crate) fn attach(
        &mut self,
        config: &SamplerConfig,
        cpus: &[Cpu],
    ) -> Result<(), SamplerError> {
        let by_cpu = self.scope == Scope::Cpus;
        if by_cpu || self.occurrences.is_some() {
            // Whom the filter knows before the first event is open cannot be missed.
            self.filter = filter_of(config);
        }
        if by_cpu {
            let who = match &config.target {
                Target::Cgroup(group) => Who::Cgroup(group.clone()),
                _ => Who::Everyone,
            };
            let samplers = CpuSamplers::open(who, cpus, &self.plan, &mut self.rings)?;
            self.events = Events::Cpus(samplers);
        }
        let is_clock = self.plan.event.is_clock();
        match &config.target {
            Target::System if is_clock => self.accounted = Accounted::of_machine(cpus),
            Target::Cgroup(group) if is_clock => self.accounted = Accounted::of_group(group),
            Target::System | Target::Cgroup(_) => self.accounted = Accounted::Samplers { start: 0 },
            Target::Launched(pid) => self.add_task(Tid(pid.0), cpus)?,
            Target::Threads(tids) => {
                tids.iter().try_for_each(|tid| self.add_task(*tid, cpus))?;
                let processes = tids.iter().filter_map(|tid| threads::process_of(*tid));
                self.taken.processes = processes.collect::<BTreeSet<Pid>>().into_iter().collect();
            }
            Target::Processes(pids) => {
                let descendants = config.descendants && config.inherit;
                if config.samples_by_thread() {
                    self.prepare_periods(pids, descendants, cpus);
                }
                self.add_processes(pids, descendants, cpus)?;
            }
        }
        // All tasks are meant: there are none to sample each occurrence in.
        if let (Target::System | Target::Cgroup(_), Some(occurrences)) =
            (&config.target, &mut self.occurrences)
        {
            occurrences.start_with_cpus(&mut self.plan, config);
        }
        Ok(())
    }

    /// Has the periods of threads ready where they are so many that their events cannot be opened anew on the way.
    fn prepare_periods(&mut self, pids: &[Pid], descendants: bool, cpus: &[Cpu]) {
        let below = if descendants { threads::descendants_of(pids) } else { Vec::new() };
        let threads = pids.iter().chain(&below).flat_map(|pid| threads::threads_of(*pid));
        let threads: Vec<Tid> = threads.collect();
        if threads.len() * cpus.len() > MOST_DRAWN
            && let Some(occurrences) = &mut self.occurrences
        {
            occurrences.start_with_threads(&threads);
        }
    }

    /// Takes in processes and, if that is asked for, those below them.
    fn add_processes(
        &mut self,
        pids: &[Pid],
        descendants: bool,
        cpus: &[Cpu],
    ) -> Result<(), SamplerError> {
        for pid in pids {
            self.add_process(*pid, cpus)?;
            self.taken.processes.push(*pid);
        }
        let mut seen: BTreeSet<Pid> = pids.iter().copied().collect();
        let mut denied = 0;
        for _ in 0..ATTACH_ROUNDS {
            let listed = if descendants { threads::descendants_of(pids) } else { Vec::new() };
            let new: Vec<Pid> = listed.into_iter().filter(|pid| seen.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            // What is started from now on has the events of who started it.
            let inherited = self.started_threads();
            for pid in new {
                let result = match inherited.contains(&Tid(pid.0)) {
                    true => Ok(()),
                    false => self.add_process(pid, cpus),
                };
                match result {
                    // It has ended meanwhile.
                    Err(SamplerError::NoSuchProcess { .. }) => continue,
                    Err(SamplerError::TaskDenied { .. }) => {
                        denied += 1;
                        continue;
                    }
                    result => result?,
                }
                self.taken.processes.push(pid);
                self.taken.descendants += 1;
                self.filter.iter_mut().for_each(|filter| filter.add(pid));
            }
        }
        if denied > 0 {
            self.concessions.push(Concession::DescendantsDenied { count: denied });
        }
        Ok(())
    }

    /// Starts to sample where that is not done task by task: last, since nobody looks after the
    /// rings while the clocks of thousands of threads are opened.
    pub(crate) fn start_samplers(&mut self) -> Result<(), SamplerError> {
        // Where each occurrence is sampled at first, that is done task by task.
        let is_by_task = self.occurrences.as_ref().is_some_and(Occurrences::samples_tasks);
        if let (Events::Cpus(samplers), true) = (&mut self.events, is_by_task) {
            return samplers.prepare(&self.plan, &mut self.rings);
        }
        if self.plan.event.is_hardware() {
            self.plan.interval = self.offbeat.as_mut().map(Offbeat::draw);
        }
        let cpus: Vec<Cpu> = self.rings.cpus().collect();
        for (position, cpu) in cpus.into_iter().enumerate() {
            let Events::Cpus(samplers) = &mut self.events else { break };
            samplers.add_sampler(cpu, &self.plan, &mut self.rings)?;
            // At once: until the events of many CPUs are open, its ring would be full.
            self.start_reader(position);
        }
        self.open_bells()?;
        self.start_needed_readers();
        Ok(())
    }

    /// Takes in all threads of a process.
    ///
    /// A thread that starts meanwhile has events already if the thread that started it had: then
    /// there is a record of its start in the rings. If not, it needs its own; opened twice, its
    /// samples would come twice. So threads are listed again until no new one shows up.
    fn add_process(&mut self, pid: Pid, cpus: &[Cpu]) -> Result<(), SamplerError> {
        let mut known = BTreeSet::new();
        for round in 0..ATTACH_ROUNDS {
            let listed = threads::threads_of(pid);
            let new: Vec<Tid> = listed.into_iter().filter(|tid| known.insert(*tid)).collect();
            if new.is_empty() {
                break;
            }
            let inherited = if round == 0 { BTreeSet::new() } else { self.started_threads() };
            for tid in new.into_iter().filter(|tid| !inherited.contains(tid)) {
                match self.add_task(tid, cpus) {
                    // It ended between the listing and now, or is a main thread that ended before others.
                    Err(SamplerError::NoSuchThread { .. }) => {}
                    result => result?,
                }
            }
            if !self.plan.inherit {
                break;
            }
        }
        let any = known.iter().any(|tid| threads::is_alive(*tid));
        if any { Ok(()) } else { Err(SamplerError::NoSuchProcess { pid }) }
    }

    /// The tasks whose start is recorded in the rings so far; the records stay where they are.
    pub(crate) fn started_threads(&mut self) -> BTreeSet<Tid> {
        std::thread::sleep(FORK_SETTLE);
        self.rings.refresh();
        let mut started = BTreeSet::new();
        let layout = self.plan.layout;
        for ring in self.rings.queues() {
            ring.for_each_unread(|record| {
                if let Ok(Event { kind: EventKind::Fork { tid, .. }, .. }) = layout.decode(&record)
                {
                    started.insert(tid);
                }
            });
        }
        started
    }

    /// Opens what is needed for one task: what counts, and its events where they are bound to it.
    fn add_task(&mut self, tid: Tid, cpus: &[Cpu]) -> Result<(), SamplerError> {
        let is_counted = self.occurrences.is_some();
        for cpu in cpus {
            if let Events::Tasks(_) = self.events {
                let records = if is_counted { Records::SideBand } else { Records::All };
                let event = self.open_task_event(tid, *cpu, records)?;
                if let (Some(event), Events::Tasks(events)) = (event, &mut self.events) {
                    events.push(event);
                }
            }
            if is_counted {
                self.add_sampler_of(tid, *cpu)?;
            }
        }
        if self.plan.draws_tasks && self.plan.inherit {
            self.marks.extend(self.plan.open_mark(tid));
        }
        self.add_counters(tid, cpus);
        self.taken.threads += 1;
        Ok(())
    }

    /// Opens an event that samples occurrences in one task.
    pub(crate) fn add_sampler_of(&mut self, tid: Tid, cpu: Cpu) -> Result<(), SamplerError> {
        let own = self.occurrences.as_ref().and_then(|occurrences| occurrences.period_of(tid));
        self.plan.period = own.unwrap_or(self.plan.period);
        let event = self.open_task_event(tid, cpu, Records::Samples)?;
        if let (Some(event), Some(occurrences)) = (event, &mut self.occurrences) {
            occurrences.add_sampler(event);
        }
        Ok(())
    }

    /// An event of a task in its place; `None` for one that owns a ring now.
    fn open_task_event(
        &mut self,
        tid: Tid,
        cpu: Cpu,
        records: Records,
    ) -> Result<Option<Arc<Descriptor>>, SamplerError> {
        let who = Who::Task(tid);
        if !self.plan.draws_tasks {
            self.plan.interval = self.offbeat.as_mut().map(Offbeat::draw);
        }
        let event = self.plan.open(&who, cpu, records);
        let open = self.events().count();
        let event = event.map_err(|error| with_count(self.plan.refusal(error, &who), open))?;
        let event = Arc::new(event);
        if self.plan.draws_tasks {
            self.drawn.push((cpu, tid, Arc::clone(&event)));
        }
        self.rings.add(event, cpu)
    }

    /// A task of which nothing can be counted makes what all counted unknown, unless it has ended.
    fn add_counters(&mut self, tid: Tid, cpus: &[Cpu]) {
        if self.plan.event.is_hardware() {
            // There are few counters in a CPU, and the sampling events want them.
            self.accounted = Accounted::Unknown;
            return;
        }
        let cpus: Vec<Option<Cpu>> = match self.counts_all_cpus {
            true => vec![None],
            false => cpus.iter().copied().map(Some).collect(),
        };
        for cpu in cpus {
            match (self.plan.open_counter(tid, cpu), &mut self.accounted) {
                (Ok(counter), Accounted::Tasks { counters, .. }) => counters.push(Counter(counter)),
                (Err(error), accounted) if error.raw_os_error() != Some(Errno::ESRCH as i32) => {
                    tracing::debug!(%error, %tid, "what happens is not counted");
                    *accounted = Accounted::Unknown;
                }
                _ => {}
            }
        }
    }
}

/// Whose records are kept where all tasks are seen.
fn filter_of(config: &SamplerConfig) -> Option<Filter> {
    match &config.target {
        // The kernel keeps a group's tasks apart.
        Target::System | Target::Cgroup(_) => None,
        Target::Launched(pid) => Some(Filter::of_launched(*pid, config.inherit)),
        Target::Processes(pids) if config.inherit => Some(Filter::of_processes(pids, true)),
        Target::Processes(pids) => {
            let tids: Vec<Tid> = pids.iter().flat_map(|pid| threads::threads_of(*pid)).collect();
            Some(Filter::of_threads(&tids, pids))
        }
        Target::Threads(tids) => {
            let pids: Vec<Pid> = tids.iter().filter_map(|tid| threads::process_of(*tid)).collect();
            Some(Filter::of_threads(tids, &pids))
        }
    }
}

/// The task that shows what may be opened at all.
pub(crate) fn first_task(target: &Target) -> Result<Who, SamplerError> {
    match target {
        Target::System => Ok(Who::Everyone),
        Target::Cgroup(group) => Ok(Who::Cgroup(group.clone())),
        Target::Launched(pid) => Ok(Who::Task(Tid(pid.0))),
        Target::Processes(pids) => {
            for pid in pids {
                // A thread that is not the main one has a /proc directory, too, but no process.
                let process = threads::process_of(Tid(pid.0));
                // It is there, but there is no descriptor left to read of it.
                if process.is_none() && Path::new(&format!("/proc/{pid}")).exists() {
                    let limit = limits::raise_open_files();
                    return Err(SamplerError::TooManyFiles { needed: limit + 1, limit });
                }
                if process != Some(*pid) || !threads::is_alive(threads::live_task_of(*pid)) {
                    return Err(SamplerError::NoSuchProcess { pid: *pid });
                }
            }
            let first = pids.first().ok_or(SamplerError::NothingNamed { what: "processes" })?;
            Ok(Who::Task(threads::live_task_of(*first)))
        }
        Target::Threads(tids) => match tids.iter().find(|tid| !threads::is_alive(**tid)) {
            Some(tid) => Err(SamplerError::NoSuchThread { tid: *tid }),
            None => {
                let first = tids.first().ok_or(SamplerError::NothingNamed { what: "threads" })?;
                Ok(Who::Task(*first))
            }
        },
    }
}

/// The same failure, of the process that was asked for: it has ended meanwhile.
pub(crate) fn of_process(error: SamplerError, target: &Target) -> SamplerError {
    match (error, target) {
        (SamplerError::NoSuchThread { tid }, Target::Processes(pids)) => {
            let pid = threads::process_of(tid).or(pids.first().copied());
            SamplerError::NoSuchProcess { pid: pid.unwrap_or(Pid(tid.0)) }
        }
        (error, _) => error,
    }
}

/// The CPUs to sample on.
pub(crate) fn chosen_cpus(config: &SamplerConfig) -> Result<Vec<Cpu>, SamplerError> {
    let online = cpus::online()?;
    let Some(asked) = &config.cpus else {
        return Ok(online);
    };
    if asked.is_empty() {
        return Err(SamplerError::NothingNamed { what: "CPUs" });
    }
    match asked.iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => {
            let online: Vec<String> = online.iter().map(Cpu::to_string).collect();
            Err(SamplerError::NoSuchCpu { cpu: *cpu, online: online.join(",") })
        }
    }
}
