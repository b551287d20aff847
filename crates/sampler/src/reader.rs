//! One thread a CPU, pinned to it, that is woken by each sample: it reads what the copy of the stack
//! lacks while the target stands still, and draws the next interval there and then.
//!
//! ```text
//!   sampled thread  ───────▶| sample                          |──────▶ goes on
//!   reader                  | woken: looks, reads, draws, waits |
//! ```
//!
//! A reader of the real-time class goes before every thread that is not, so the target cannot go on
//! before it waits again. Readers look at their ring and take nothing out of it: records are drained
//! by the session, to which each hands over what it read. What unwinding and names take is not done
//! here.

use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flame_events::Glance;
use flame_interpreters::{Judged, Known};
use flame_profile::{Cpu, Nanos, NotRead, Pid, Tid};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::SigSet;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

use crate::apart::{may_read_others, run_apart};
use crate::descriptor::Descriptor;
use crate::hand_over::Giver;
use crate::latest::{Latest, Sampled};
use crate::open::Plan;
use crate::own_name::take_own_name;
use crate::pacer::{GRACE, Pacer, Seen};
use crate::pacing::{self, LEAST_BATCH};
use crate::places::Places;
use crate::realtime;
use crate::rest::{Read, SCRATCH, Wanted};
use crate::ring::Lookout;
use crate::scripts::Scripts;
use crate::session::monotonic_now;
use crate::shared::{Bell, Shared};
use crate::stack_ends::StackEnds;
use crate::stack_roots::StackRoots;
use crate::strangers::Strangers;
use crate::task_intervals::{self, TaskIntervals};
use crate::task_progress::Clocks;
use crate::turns::Turns;
use crate::watch::Watch;
use crate::work::Work;

/// Nearly all stacks are shorter than that.
const MOST_STACKS: usize = 256 * 1024 + Scripts::MOST;

/// The number of all idle tasks.
const IDLE_TASK: Tid = Tid(0);

/// How long it reads at a time. In a process of a thousand threads, finding the state of one takes half a millisecond.
const MOST_AT_ONCE: Nanos = Nanos(500_000);

/// It stays away for so many times as long as a look took: a tenth of a CPU is its own at most.
const REST_PER_LOOK: u32 = 9;

/// How soon files are looked at that code is mapped of: a program that runs for a moment may be replaced behind it.
const BETWEEN_FILES: Nanos = Nanos(10_000_000);

/// Everything that a reader works with.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) cpu: Cpu,
    /// An event whose samples, and those of the ring's other events, wake the reader.
    pub(crate) woken_by: Arc<Descriptor>,
    /// The event that samples, where its intervals are drawn, and what draws them.
    pub(crate) paced: Option<(Arc<Descriptor>, Pacer)>,
    /// What draws the intervals of tasks, where events are bound to them.
    pub(crate) tasks: Option<TaskIntervals>,
    /// Whether its timer runs only while tasks of a control group do.
    pub(crate) timer_rests: bool,
    /// Whether stacks are read, if it may go first.
    pub(crate) may_read: bool,
    pub(crate) plan: Arc<Plan>,
    pub(crate) lookout: Arc<Mutex<Lookout>>,
    /// Hangs up when the recording is over.
    pub(crate) end: Arc<OwnedFd>,
    pub(crate) bell: Arc<Bell>,
    /// For how long all readers have run.
    pub(crate) ran: Arc<AtomicU64>,
    /// What the counters that wake them counted meanwhile: right after a sample, so that none hits them.
    pub(crate) counted: Arc<AtomicU64>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) strangers: Arc<Strangers>,
    /// Where stacks were seen to end.
    pub(crate) stack_roots: Arc<StackRoots>,
    /// Where there are interpreters, if somebody wants to know what runs in them.
    pub(crate) interpreters: Option<Arc<Known>>,
    pub(crate) giver: Giver,
}

impl Reader {
    /// Looks after its CPU until the recording is over: in a process of its own where flame may look
    /// into processes that mean ill, whose memory may keep it waiting.
    pub(crate) fn run_apart(mut self) {
        // Signals are for the threads that know what to do.
        let _ = SigSet::all().thread_block();
        if !may_read_others() {
            return self.run();
        }
        let paced = self.paced.as_ref().map(|(event, _)| event.as_fd());
        let files = [Some(self.woken_by.as_fd()), Some(self.end.as_fd()), paced];
        let tasks = self.tasks.iter().flat_map(|tasks| tasks.events.values());
        let tasks = tasks.map(|event| event.as_fd());
        let files = files.into_iter().flatten().chain(tasks);
        let files: Vec<RawFd> = files.map(|fd| fd.as_raw_fd()).collect();
        let mut started = false;
        let ended = run_apart(&files, || {
            started = true;
            self.run();
        });
        if let (Err(error), false) = (ended, started) {
            tracing::debug!(%error, "a reader that cannot be left behind");
            self.run();
        }
    }

    fn run(&mut self) {
        if self.plan.reads_counted {
            take_own_name();
        }
        let (mut here, own) = (CpuSet::new(), gettid());
        self.shared.thread.store(own.as_raw(), Ordering::Relaxed);
        let pinned = here.set(self.cpu.0 as usize).and_then(|()| sched_setaffinity(own, &here));
        let entered = realtime::enter();
        tracing::debug!(cpu = self.cpu.0, ?pinned, ?entered, "reader");
        // Elsewhere it would see the stack as it is later. So it does behind the target, which it is not always.
        let goes_first = pinned.is_ok() && entered.is_ok();
        // What is counted is seen in its own time only: others' calls are counted meanwhile.
        let is_in_time = goes_first || pinned.is_ok() && !self.plan.reads_counted;
        if !goes_first {
            realtime::hurry();
        }
        let reads = is_in_time && self.may_read && self.plan.reads_stacks();
        self.shared.reads.store(reads, Ordering::Relaxed);
        self.shared.yields.store(!goes_first && !self.plan.reads_waits, Ordering::Relaxed);
        // Memory that is there already: to ask for it later takes locks that others hold.
        let mut scratch = vec![0; if reads { SCRATCH } else { 0 }];
        scratch.iter_mut().take(MOST_STACKS).for_each(|byte| *byte = 1);
        let mut work = Work {
            reads,
            goes_first,
            is_counted: goes_first && self.plan.wake_at_samples && self.plan.event.is_hardware(),
            scratch,
            scripts: self.interpreters.clone().filter(|_| reads).map(Scripts::new),
            places: Places::default(),
            ends: StackEnds::default(),
            roots: Arc::clone(&self.stack_roots),
            rang_for_code: Nanos(0),
            filled: 0,
            turns: Turns::of_this_thread(),
            watch: Watch::new(&self.plan, monotonic_now()),
            clocks: Clocks::default(),
            waited: None,
            rest: Duration::ZERO,
            left: Latest::new(!self.plan.reads_waits),
            random: fastrand::Rng::new(),
            own: own_time(),
        };
        self.start_pacing();
        while self.wait(&mut work) {
            let count = |of: &Reader| of.plan.read(&of.woken_by).count;
            let before = work.is_counted.then(|| count(self));
            self.look(&mut work);
            if let Some(before) = before {
                let own = count(self).saturating_sub(before);
                self.counted.fetch_add(own, Ordering::Relaxed);
            }
            if work.reads && work.goes_first {
                work.turns.end_look();
            }
        }
        self.look(&mut work);
    }

    fn start_pacing(&mut self) {
        let now = self.timer_now();
        if let Some((event, pacer)) = &mut self.paced {
            let interval = pacer.start(now);
            self.shared.set_interval(interval);
            pacing::set(&self.plan, event, interval);
        }
        self.tasks.iter_mut().for_each(|tasks| tasks.start(&self.plan));
    }

    /// Waits for samples or for one that is overdue; `false` when the recording is over.
    fn wait(&self, work: &mut Work) -> bool {
        let timeout = match &self.paced {
            _ if work.watch.rests() || !work.left.is_empty() => Duration::ZERO,
            None => Duration::MAX,
            Some((_, pacer)) if !self.timer_rests => pacer.next_due().map_or(pacing::BATCH, until),
            Some(_) => pacing::BATCH,
        };
        let mut end = [PollFd::new(self.end.as_fd(), PollFlags::empty())];
        if !work.rest.is_zero() {
            let _ = ppoll(&mut end, Some(work.rest.into()), None);
        }
        let timeout = (timeout < Duration::MAX).then(|| TimeSpec::from(timeout));
        let mut waiting = [
            PollFd::new(self.woken_by.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.end.as_fd(), PollFlags::empty()),
        ];
        work.turns.falls_asleep();
        let _ = ppoll(&mut waiting, timeout, None);
        work.turns.wakes_up();
        // The CPU went offline, or the recording is over.
        let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR;
        waiting.iter().all(|fd| !fd.revents().is_some_and(|events| events.intersects(hung_up)))
    }

    /// Looks at what came, reads the stack that stands still, and draws the next interval.
    fn look(&mut self, work: &mut Work) {
        let now = monotonic_now();
        if !work.goes_first {
            work.waited = work.turns.waited_now();
        }
        let always = !self.timer_rests;
        let (mut seen, giver) = (Seen::default(), &mut self.giver);
        let mut pacer = self.paced.as_mut().map(|(_, pacer)| pacer).filter(|_| always);
        let (is_one, is_any) = (!self.plan.reads_waits, !self.plan.reads_counted);
        let mut latest = mem::replace(&mut work.left, Latest::new(is_one));
        let (plan, strangers, interpreters) = (&self.plan, &self.strangers, &self.interpreters);
        let (mut maps_code, mut is_needed) = (false, self.timer_rests);
        let (mut sampled, asked) = (None, self.plan.asked_of_tasks());
        work.filled += lock(&self.lookout).for_each_new(|record| {
            let (glance, time) = (Glance::at(&record), plan.layout.time(&record));
            let time = time.unwrap_or_default();
            if let Glance::Sample { pid, tid } = glance {
                sampled = Some((time, tid));
                let pacer = pacer.as_mut();
                let is_stray = pacer.is_some_and(|pacer| pacer.note(time, now, &mut seen))
                    || asked.is_some_and(|asked| {
                        task_intervals::is_surplus(asked, time, plan.layout.period(&record))
                    });
                // What is told along with a stray, such as the names of functions, is lost with it.
                let is_wanted =
                    !is_stray && work.reads && tid != IDLE_TASK && !strangers.know(pid, tid);
                let is_wanted =
                    is_wanted && (is_any || may_have_script(interpreters.as_deref(), pid));
                let wanted = match is_wanted {
                    true => Wanted::of(&record, &plan.layout, |tid, at| work.end_of(tid, at)),
                    false => None,
                };
                is_needed |= wanted.is_some_and(|wanted| wanted.lacks_some())
                    || is_wanted && may_have_script(interpreters.as_deref(), pid);
                latest.add((time, pid, wanted));
                if is_stray {
                    giver.give_stray(time);
                    return;
                }
            }
            interpreters.iter().for_each(|known| follow(known, glance));
            maps_code |= matches!(glance, Glance::Mapping { .. });
            pacing::note(&mut seen, glance, time);
        });
        // Before anything else: the target may be woken up on another CPU.
        let done = self.read_all(&latest, now, work);
        self.draw_for_task(sampled, now, work);
        // Not while the lookout is locked: memory of a target may never come.
        is_needed |= !is_needed && work.watch.may_rest() && latest.have_goroutine();
        let change = work.watch.look(now, sampled.is_some(), is_needed);
        self.draw(seen, change, &mut work.own);
        work.rest = match is_one {
            true if work.watch.rests() => pacing::BATCH,
            true => Duration::ZERO,
            false => {
                let took = Duration::from_nanos(monotonic_now().saturating_since(now).0);
                latest.rest(&mut work.random).max(took.saturating_mul(REST_PER_LOOK))
            }
        };
        if let Some(time) = done {
            self.shared.done_until.store(time.0, Ordering::Release);
        }
        self.ring(maps_code.then_some(now), work);
    }

    /// Sets when the next sample of the task comes that was sampled last, where events are bound to tasks.
    fn draw_for_task(&mut self, sampled: Option<(Nanos, Tid)>, now: Nanos, work: &mut Work) {
        if let (Some(tasks), Some((time, tid))) = (&mut self.tasks, sampled) {
            let age = now.saturating_since(time);
            let is_late = work.is_late(age);
            tasks.draw(&self.plan, &mut work.clocks, tid, (age, is_late));
        }
    }

    /// Rings where the session should look at code that was mapped, or at rings that fill.
    fn ring(&self, code_mapped: Option<Nanos>, work: &mut Work) {
        if let Some(now) = code_mapped
            && now.saturating_since(work.rang_for_code) >= BETWEEN_FILES
        {
            work.rang_for_code = now;
            self.bell.ring();
        }
        if work.filled >= self.plan.wake_after as u64 || self.giver.is_filling() {
            work.filled = 0;
            self.bell.ring();
        }
    }

    /// Reads the stacks of samples, as long as a look may take: the time of the last one.
    fn read_all(&mut self, latest: &Latest, now: Nanos, work: &mut Work) -> Option<Nanos> {
        let mut done = None;
        for sample in latest.in_order() {
            let took = || monotonic_now().saturating_since(now);
            // Who waits does so for longer, mostly.
            if self.plan.reads_waits && done.is_some() && took() > MOST_AT_ONCE {
                work.left.add(sample);
                continue;
            }
            self.read(sample, now, work);
            done = Some(sample.0);
        }
        done
    }

    /// Reads the stack of a sample, and hands it over.
    fn read(&mut self, (time, pid, wanted): Sampled, now: Nanos, work: &mut Work) {
        let Some(wanted) = wanted else { return };
        // Who waits does so for as long as the switches of its thread say.
        let is_late = work.watch.rests() || work.is_late(now.saturating_since(time));
        let is_late = is_late && !self.plan.reads_waits;
        let read = match is_late {
            true => Err(NotRead::Late),
            false => work.read((pid, self.cpu), &wanted),
        };
        // What functions are stays right, and each is told of once.
        let is_disturbed = !self.plan.reads_waits && !work.turns.is_undisturbed_since(time);
        let read = read.map(|read| Read { went_on: read.went_on || is_disturbed, ..read });
        let is_given = self.giver.give(wanted.time(), read, &work.scratch);
        if let Some(scripts) = work.scripts.as_mut()
            && scripts.wants_session(pid, is_given)
        {
            self.bell.ring();
        }
        work.note(pid, &wanted);
    }

    /// Sets when the next sample comes; the reader may rest from now on, or no longer.
    fn draw(&mut self, mut seen: Seen, rests: Option<bool>, own_before: &mut Nanos) {
        if let (Some((_, pacer)), false) = (&mut self.paced, self.timer_rests) {
            pacer.note_silence(monotonic_now(), &mut seen);
        }
        if seen == Seen::default() && rests.is_none() {
            return;
        }
        let (now, own) = (self.timer_now(), own_time());
        let ran = own.saturating_since(mem::replace(own_before, own));
        self.ran.fetch_add(ran.0, Ordering::Relaxed);
        // A control group's clock does not run meanwhile.
        if !self.timer_rests {
            seen.own = ran;
        }
        let Some((event, pacer)) = &mut self.paced else { return };
        seen.last = seen.last.min(now);
        let interval = match rests {
            Some(rests) => Some(pacer.change(if rests { LEAST_BATCH } else { 1 }, now)),
            None => pacer.next(seen, now),
        };
        if let Some(interval) = interval {
            // Of a batch no sample is one too many.
            let each = if pacer.is_for_each() { interval } else { Nanos(0) };
            self.shared.set_interval(each);
            pacing::set(&self.plan, event, interval);
            if !self.timer_rests {
                pacer.was_set(monotonic_now());
            }
        }
    }

    /// Now, on the clock by which the event's timer runs: that of a control group stands still while
    /// none of its tasks runs.
    fn timer_now(&self) -> Nanos {
        match &self.paced {
            Some((event, _)) if self.timer_rests => self.plan.read(event).running,
            _ => monotonic_now(),
        }
    }
}

/// Takes in what a record says of where interpreters are.
fn follow(known: &Known, glance: Glance) {
    match glance {
        Glance::Fork { pid, parent, .. } => known.forked(parent.0, pid.0),
        // What a fork inherited is over.
        Glance::Comm { pid, exec: true, .. } => known.forget(pid.0),
        Glance::Mapping { pid, start, offset, file } => {
            known.mapped(pid.0, file.part_at(offset), start.0);
        }
        _ => {}
    }
}

/// Whether a process has an interpreter, or nobody knows yet.
fn may_have_script(known: Option<&Known>, pid: Pid) -> bool {
    known.is_some_and(|known| known.judged(pid.0) != Judged::Nothing)
}

/// How long it takes until a sample is overdue that was due at a time.
fn until(due: Nanos) -> Duration {
    // What is overdue already is to be looked at now, and a little behind that nothing is lost.
    let left = (due.0 + GRACE.0).saturating_sub(monotonic_now().0);
    Duration::from_nanos(left + GRACE.0 / 4)
}

/// For how long this thread has run.
fn own_time() -> Nanos {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    Nanos::from(time.unwrap_or_default())
}

/// A lock whose holders do not panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
