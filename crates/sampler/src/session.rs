//! A live session: all events of a target open, one ring a CPU, drained in time order.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use flame_events::{Event, EventKind, EventSource, Horizon, RecordLayout, drain_in_order};
use flame_profile::{ByteLen, Cpu, Nanos, Pid, Tid};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use crate::accounting::{CpuTime, TaskClock};
use crate::config::{Privilege, Rate, SamplerConfig, Target};
use crate::cpus;
use crate::descriptor::Descriptor;
use crate::error::SamplerError;
use crate::event_type::EventType;
use crate::limits;
use crate::open::{Plan, Who};
use crate::ring::{Ring, page_size};
use crate::threads;

/// How old a record must be before it is released: by then the others of its time are written.
/// A record becomes visible some microseconds after its time was taken.
const SETTLE: Nanos = Nanos(1_000_000);

/// How often threads are listed at most while a target is attached to: a process that starts threads
/// faster than they can be listed must not keep flame from starting.
const ATTACH_ROUNDS: usize = 100;

/// Between the moment when a new thread can be listed and the moment when the kernel has written
/// the record of its start lie some instructions of the thread that started it.
const FORK_SETTLE: Duration = Duration::from_millis(1);

/// How long to wait at most when a CPU's ring cannot be watched, because the task of the event that
/// owns it has ended: at 999 Hz and the default stack copy a ring takes 100 ms to fill.
const UNWATCHED_PAUSE: Duration = Duration::from_millis(20);

/// Something that was asked for and could not be had; the session goes on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concession {
    /// No PMU: cpu-clock instead of cycles.
    NoPmu,
    /// No permission for kernel code: user code only.
    UserOnly,
    /// No permission to lock that much memory.
    SmallerRing {
        /// Bytes of ring a CPU that it became.
        ring: ByteLen,
        /// Bytes of ring a CPU that it should have been.
        wanted: ByteLen,
    },
}

/// Open events and their rings.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    concessions: Vec<Concession>,
    /// The first event of each CPU, which owns the CPU's ring, in the order of `rings`.
    anchors: Vec<Anchor>,
    rings: Vec<Ring>,
    others: Vec<Descriptor>,
    cpu_time: CpuTime,
    ring_size: usize,
    finished: bool,
}

#[derive(Debug)]
struct Anchor {
    cpu: Cpu,
    event: Descriptor,
    /// Its task has ended: polling it would return at once for ever.
    hung_up: bool,
}

impl Session {
    /// Opens the events of a target. Sampling begins as they are opened; for a launched program,
    /// which must still be held back, at its exec.
    ///
    /// # Errors
    /// See [`SamplerError`]; nothing stays open then.
    pub fn open(config: &SamplerConfig) -> Result<Session, SamplerError> {
        limits::raise_open_files();
        let cpus = chosen_cpus(config)?;
        let first = first_task(&config.target)?;
        let (mut plan, concessions) = Plan::probe(config, first, cpus[0])?;
        let wanted = config.ring_len(cpus.len());
        let mut ring = usize::try_from(wanted.0).unwrap_or(usize::MAX / 4).max(page_size());
        // A sample with its stack copy must fit, with another beside it.
        let smallest = (4 * page_size()).max(2 * plan.layout.fields().user_stack as usize);
        loop {
            plan.wake_after = ring / 4;
            let mut session = Session::empty(plan.clone(), concessions.clone(), ring);
            match session.attach(config, &cpus) {
                Ok(()) => {
                    let (ring, wanted) = (ByteLen(ring as u64), wanted);
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

    fn empty(plan: Plan, concessions: Vec<Concession>, ring_size: usize) -> Session {
        Session {
            plan,
            concessions,
            anchors: Vec::new(),
            rings: Vec::new(),
            others: Vec::new(),
            cpu_time: CpuTime::Tasks(Vec::new()),
            ring_size,
            finished: false,
        }
    }

    fn attach(&mut self, config: &SamplerConfig, cpus: &[Cpu]) -> Result<(), SamplerError> {
        match &config.target {
            Target::System => {
                cpus.iter().try_for_each(|cpu| self.add(Who::Everyone, *cpu))?;
                self.cpu_time = CpuTime::of_machine(cpus);
            }
            Target::Launched(pid) => self.add_task(Tid(pid.0), cpus)?,
            Target::Threads(tids) => tids.iter().try_for_each(|tid| self.add_task(*tid, cpus))?,
            Target::Processes(pids) => {
                pids.iter().try_for_each(|pid| self.add_process(*pid, cpus))?;
            }
        }
        Ok(())
    }

    /// Opens events for all threads of a process, without stopping it.
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
                    // It ended between the listing and now; the main thread must be there.
                    Err(SamplerError::NoSuchThread { .. }) if tid.0 != pid.0 => {}
                    Err(SamplerError::NoSuchThread { .. }) => {
                        return Err(SamplerError::NoSuchProcess { pid });
                    }
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
    fn started_threads(&mut self) -> BTreeSet<Tid> {
        std::thread::sleep(FORK_SETTLE);
        let mut started = BTreeSet::new();
        for ring in &mut self.rings {
            ring.refresh();
            ring.for_each_unread(|record| {
                if let Ok(Event { kind: EventKind::Fork { tid, .. }, .. }) =
                    self.plan.layout.decode(&record)
                {
                    started.insert(tid);
                }
            });
        }
        started
    }

    fn add_task(&mut self, tid: Tid, cpus: &[Cpu]) -> Result<(), SamplerError> {
        cpus.iter().try_for_each(|cpu| self.add(Who::Task(tid), *cpu))?;
        let (inherit, on_exec) = (self.plan.inherit, self.plan.on_exec);
        if let CpuTime::Tasks(clocks) = &mut self.cpu_time {
            clocks.extend(TaskClock::open(tid, inherit, on_exec));
        }
        Ok(())
    }

    fn add(&mut self, who: Who, cpu: Cpu) -> Result<(), SamplerError> {
        let event = self.open_event(who, cpu)?;
        let Some(anchor) = self.anchors.iter().find(|anchor| anchor.cpu == cpu) else {
            return self.add_anchor(event, cpu);
        };
        let shared = event.redirect_to(&anchor.event);
        shared.map_err(|source| SamplerError::Io { doing: "share a ring".to_owned(), source })?;
        self.others.push(event);
        Ok(())
    }

    fn open_event(&self, who: Who, cpu: Cpu) -> Result<Descriptor, SamplerError> {
        self.plan.open(who, cpu).map_err(|error| match self.plan.refusal(error, who) {
            SamplerError::TooManyFiles { limit, .. } => {
                let needed = (self.anchors.len() + self.others.len()) as u64 + 1;
                SamplerError::TooManyFiles { needed, limit }
            }
            error => error,
        })
    }

    /// Maps the ring of a CPU.
    fn add_anchor(&mut self, event: Descriptor, cpu: Cpu) -> Result<(), SamplerError> {
        let ring = Ring::map(&event, self.ring_size).map_err(|source| {
            match Errno::from_raw(source.raw_os_error().unwrap_or(0)) {
                Errno::EPERM | Errno::ENOMEM => SamplerError::LockedMemory {
                    ring: ByteLen(self.ring_size as u64),
                    mlock_kb: limits::mlock_kb(),
                    needed_kb: 0,
                },
                _ => SamplerError::Io { doing: "map a ring".to_owned(), source },
            }
        })?;
        self.rings.push(ring);
        self.anchors.push(Anchor { cpu, event, hung_up: false });
        Ok(())
    }

    /// Stops sampling. What was recorded until then is still to be drained, once.
    pub fn finish(&mut self) {
        // An event whose task has ended cannot be stopped and need not be.
        self.events().for_each(|event| drop(event.disable()));
        self.cpu_time.disable();
        self.finished = true;
    }

    fn events(&self) -> impl Iterator<Item = &Descriptor> {
        self.anchors.iter().map(|anchor| &anchor.event).chain(&self.others)
    }

    /// What could not be had.
    pub fn concessions(&self) -> &[Concession] {
        &self.concessions
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

    /// CPU time that the kernel accounted to the target since sampling began.
    pub fn accounted(&self) -> Nanos {
        self.cpu_time.read()
    }

    /// Records that the kernel says it dropped, by reading the events: it counts those, too, for
    /// which no LOST record could be written any more. `None` on kernels before 6.0.
    pub fn lost_records(&self) -> Option<u64> {
        let lost = |event: &Descriptor| event.read::<2>().map_or(0, |[_, lost]| lost);
        self.plan.counts_lost.then(|| self.events().map(lost).sum())
    }

    /// Waits until a ring is a quarter full, `timeout` is over, or a signal came.
    pub fn wait(&mut self, timeout: Duration) {
        let watched = || self.anchors.iter().filter(|anchor| !anchor.hung_up);
        let all_watched = watched().count() == self.anchors.len();
        let timeout = if all_watched { timeout } else { timeout.min(UNWATCHED_PAUSE) };
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let wait_for = |anchor| PollFd::new(Anchor::as_fd(anchor), PollFlags::POLLIN);
        let mut waiting: Vec<PollFd<'_>> = watched().map(wait_for).collect();
        if poll(&mut waiting, timeout).is_err() {
            return;
        }
        let ended = PollFlags::POLLHUP | PollFlags::POLLERR;
        let answers = waiting.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let answers: Vec<bool> = answers.map(|events| events.intersects(ended)).collect();
        let watched = self.anchors.iter_mut().filter(|anchor| !anchor.hung_up);
        watched.zip(answers).for_each(|(anchor, ended)| anchor.hung_up = ended);
    }
}

impl AsFd for Anchor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl EventSource for Session {
    type Error = SamplerError;

    /// Live, the last millisecond is kept back; after [`Session::finish`] nothing is. Records that
    /// cannot be decoded are handed over as [`EventKind::Undecodable`].
    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), SamplerError> {
        // The clock is read first: what is written from now on is younger.
        let horizon = match self.finished {
            true => Horizon::End,
            false => Horizon::Until(monotonic_now().saturating_since(SETTLE)),
        };
        self.rings.iter_mut().for_each(Ring::refresh);
        drain_in_order(&mut self.rings, &self.plan.layout, horizon, sink);
        self.rings.iter_mut().for_each(Ring::publish);
        Ok(())
    }
}

/// Now, on the clock of the records.
fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    Nanos::from(now.unwrap_or_default())
}

/// The task that shows what may be opened at all.
fn first_task(target: &Target) -> Result<Who, SamplerError> {
    match target {
        Target::System => Ok(Who::Everyone),
        Target::Launched(pid) => Ok(Who::Task(Tid(pid.0))),
        Target::Processes(pids) => {
            for pid in pids {
                // A thread that is not the main one has a /proc directory, too, but no process.
                if !threads::is_alive(Tid(pid.0))
                    || !threads::threads_of(*pid).contains(&Tid(pid.0))
                {
                    return Err(SamplerError::NoSuchProcess { pid: *pid });
                }
            }
            Ok(Who::Task(Tid(pids.first().map_or(0, |pid| pid.0))))
        }
        Target::Threads(tids) => match tids.iter().find(|tid| !threads::is_alive(**tid)) {
            Some(tid) => Err(SamplerError::NoSuchThread { tid: *tid }),
            None => Ok(Who::Task(tids.first().copied().unwrap_or(Tid(0)))),
        },
    }
}

fn chosen_cpus(config: &SamplerConfig) -> Result<Vec<Cpu>, SamplerError> {
    let online = cpus::online()?;
    let Some(asked) = &config.cpus else {
        return Ok(online);
    };
    match asked.iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => {
            let online: Vec<String> = online.iter().map(Cpu::to_string).collect();
            Err(SamplerError::NoSuchCpu { cpu: *cpu, online: online.join(",") })
        }
    }
}
