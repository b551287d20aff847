//! The readers of all CPUs: started with the recording, ended with it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flame_events::Rest;
use flame_interpreters::Known;
use flame_profile::{Cpu, Nanos};
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::descriptor::Descriptor;
use crate::hand_over::{self, Taker};
use crate::open::Plan;
use crate::pacer::Pacer;
use crate::pacing;
use crate::reader::Reader;
use crate::ring::Ring;
use crate::session::monotonic_now;
use crate::shared::{Bell, Shared};
use crate::stack_roots::StackRoots;
use crate::strangers::Strangers;
use crate::task_intervals::TaskIntervals;

/// How long samples wait for a reader that has not seen them yet.
const PATIENCE: Nanos = Nanos(20_000_000);

/// How long a reader may be in one look before it counts as one that waits for a target's memory. What
/// it reads takes some milliseconds at most.
const STUCK: Nanos = Nanos(1_000_000_000);

/// How long readers get to end.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// All readers, in the order of the rings.
#[derive(Debug)]
pub(crate) struct Readers {
    bell: Arc<Bell>,
    /// For how long they have run, in nanoseconds.
    ran: Arc<AtomicU64>,
    /// What counters of the CPUs counted meanwhile.
    counted: Arc<AtomicU64>,
    /// Whether one of them was kept away from samples.
    were_kept_away: bool,
    /// Its closing ends the readers that have the other end.
    end: Option<(OwnedFd, Arc<OwnedFd>)>,
    lanes: Vec<Lane>,
}

/// The reader of one ring.
#[derive(Debug, Default)]
struct Lane {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// What the reader hands over; nothing before it is started.
    taker: Option<Taker>,
    /// The time of the newest sample that is in the ring.
    newest: Nanos,
    /// The event whose intervals are drawn after each sample, and their mean.
    paced: Option<(Arc<Descriptor>, Nanos)>,
    /// When the session set the mean, and what was set before: samples until then are asked about later.
    stood_in: (Nanos, u64),
    /// Which part of a sample those have left over that nobody looked at.
    credit: f64,
    /// What the reader was done with when the last sample came that nobody looked at.
    unseen_since: Nanos,
}

impl Lane {
    fn runs(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Whether a real-time task, or a busy machine, keeps the reader from looking at samples.
    fn is_kept_away(&self) -> bool {
        self.newest.saturating_since(self.shared.done_until()) > PATIENCE
    }

    /// Whether a sample is one too many, of those that came by the interval that was set last and that nobody looked at.
    fn is_surplus(&mut self, time: Nanos) -> bool {
        let mean = self.paced.as_ref().map(|(_, mean)| *mean);
        mean.is_some_and(|mean| self.is_beyond(mean, time))
    }

    fn is_beyond(&mut self, mean: Nanos, time: Nanos) -> bool {
        let interval = match time < self.stood_in.0 {
            true => self.stood_in.1,
            false => self.shared.interval(),
        };
        let done = self.shared.done_until();
        if interval == 0 || interval >= mean.0 || time <= done {
            return false;
        }
        // The first one came by an interval that was drawn for it.
        if std::mem::replace(&mut self.unseen_since, done) != done {
            return false;
        }
        self.credit += interval as f64 / mean.0 as f64;
        let stands = self.credit >= 1.0;
        self.credit -= if stands { 1.0 } else { 0.0 };
        !stands
    }

    /// Whether the reader waits for something else than samples, which it has not looked at.
    fn is_stuck(&self) -> bool {
        let behind = self.newest.saturating_since(self.shared.done_until());
        behind > STUCK && self.shared.reads_stacks() && self.shared.waits()
    }
}

/// What the events of one CPU are, for its reader.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) cpu: Cpu,
    pub(crate) woken_by: Arc<Descriptor>,
    pub(crate) paced: Option<(Arc<Descriptor>, Pacer)>,
    pub(crate) tasks: Option<TaskIntervals>,
    pub(crate) timer_rests: bool,
    /// Whether stacks are read, if the reader may go first.
    pub(crate) may_read: bool,
    /// Whose stacks nobody wants.
    pub(crate) strangers: Arc<Strangers>,
    /// Where stacks were seen to end.
    pub(crate) stack_roots: Arc<StackRoots>,
    /// Where there are interpreters, if that is of interest.
    pub(crate) interpreters: Option<Arc<Known>>,
}

impl Readers {
    /// None yet.
    pub(crate) fn new() -> Readers {
        let (bell, ran, counted) = (Arc::default(), Arc::default(), Arc::default());
        Readers { bell, ran, counted, were_kept_away: false, end: None, lanes: Vec::new() }
    }

    /// Whether the reader of the ring at that position reads stacks: it has the right to go first.
    pub(crate) fn reads_stacks(&self, position: usize) -> bool {
        self.lanes.get(position).is_some_and(|lane| lane.shared.reads_stacks())
    }

    /// Whether the target may go before one of them.
    pub(crate) fn yield_to_target(&self) -> bool {
        self.lanes.iter().any(|lane| lane.shared.yields.load(Ordering::Relaxed))
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Whether one of them was kept away from samples, for longer than a busy machine does.
    pub(crate) fn were_kept_away(&self) -> bool {
        self.were_kept_away
    }

    /// For how long all of them together have run.
    pub(crate) fn ran(&self) -> Nanos {
        Nanos(self.ran.load(Ordering::Relaxed))
    }

    /// What counters of the CPUs counted while their readers looked at their samples.
    pub(crate) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// The readers that wait for memory of a target, which may never come.
    pub(crate) fn stuck(&self) -> Vec<usize> {
        let stuck = self.lanes.iter().enumerate().filter(|(_, lane)| lane.is_stuck());
        stuck.map(|(position, _)| position).collect()
    }

    /// Sets the mean for readers that are kept away: else samples come by the interval that was drawn last, be it an eighth
    /// of the mean or eight times as long, for as long as a real-time task has the CPU.
    pub(crate) fn stand_in(&mut self, plan: &Plan) {
        let lanes = self.lanes.iter_mut();
        for lane in lanes.filter(|lane| lane.thread.is_some() && lane.is_kept_away()) {
            // Who has no right to go first is late on any busy machine.
            self.were_kept_away |= !lane.shared.yields.load(Ordering::Relaxed);
            let interval = lane.shared.interval();
            if let Some((event, mean)) = &lane.paced
                && ![0, mean.0].contains(&interval)
            {
                lane.shared.set_interval(*mean);
                pacing::set(plan, event, *mean);
                lane.stood_in = (monotonic_now(), interval);
            }
        }
    }

    /// Starts the reader of the ring at that position, or another one in its place.
    pub(crate) fn start(&mut self, position: usize, post: Post, plan: &Arc<Plan>, ring: &mut Ring) {
        let Some(end) = self.end() else { return };
        if self.lanes.len() <= position {
            self.lanes.resize_with(position + 1, Lane::default);
        }
        let lane = &mut self.lanes[position];
        let (giver, taker) = hand_over::ends();
        let each =
            post.paced.as_ref().filter(|(_, pacer)| pacer.is_for_each() && !post.timer_rests);
        lane.paced = each.map(|(event, pacer)| (Arc::clone(event), pacer.mean()));
        (lane.shared, lane.taker) = (Arc::new(Shared::starting()), Some(taker));
        let reader = Reader {
            cpu: post.cpu,
            woken_by: post.woken_by,
            paced: post.paced,
            tasks: post.tasks,
            timer_rests: post.timer_rests,
            may_read: post.may_read,
            plan: Arc::clone(plan),
            lookout: ring.lookout(),
            end,
            bell: Arc::clone(&self.bell),
            ran: Arc::clone(&self.ran),
            counted: Arc::clone(&self.counted),
            shared: Arc::clone(&lane.shared),
            strangers: post.strangers,
            stack_roots: post.stack_roots,
            interpreters: post.interpreters,
            giver,
        };
        // The kernel keeps 15 bytes of a name.
        let named = thread::Builder::new().name(format!("flame-cpu{}", post.cpu.0));
        match named.spawn(move || reader.run_apart()) {
            Ok(thread) => lane.thread = Some(thread),
            Err(error) => tracing::debug!(%error, "no reader"),
        }
    }

    fn end(&mut self) -> Option<Arc<OwnedFd>> {
        if self.end.is_none() {
            let (theirs, ours) = pipe2(OFlag::O_CLOEXEC).ok()?;
            self.end = Some((ours, Arc::new(theirs)));
        }
        self.end.as_ref().map(|(_, theirs)| Arc::clone(theirs))
    }

    /// Ends them all. One that waits for the memory of a target is left behind.
    pub(crate) fn finish(&mut self) {
        self.end = None;
        for _ in 0..2 {
            let deadline = Instant::now() + LAST_LOOK;
            while self.lanes.iter().any(Lane::runs) && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(100));
            }
            self.lanes.iter().filter(|lane| lane.runs()).for_each(|lane| lane.shared.unpin());
        }
        self.lanes.iter_mut().for_each(|lane| drop(lane.thread.take()));
        self.lanes.iter_mut().for_each(|lane| lane.newest = Nanos(0));
    }

    /// Waits until a ring is to be emptied, or `timeout` is over.
    pub(crate) fn wait(&self, timeout: Duration) {
        self.bell.wait(timeout);
    }

    /// Takes note of a sample in the ring at that position.
    pub(crate) fn note(&mut self, position: usize, time: Nanos) {
        if let Some(lane) = self.lanes.get_mut(position) {
            lane.newest = lane.newest.max(time);
        }
    }

    /// Up to when samples may be released that have settled until then: those that a reader is done
    /// with, or had its time for.
    pub(crate) fn horizon(&self, settled: Nanos) -> Nanos {
        let behind = self.lanes.iter().filter(|lane| lane.thread.is_some());
        let behind = behind.map(|lane| (lane.shared.done_until(), lane.newest));
        let behind = behind.filter(|(done, newest)| done < newest).map(|(done, _)| done);
        let given_up = settled.saturating_since(PATIENCE);
        behind.min().map_or(settled, |done| done.clamp(given_up, settled))
    }

    /// Leaves what was read for samples up to that time and not asked about.
    pub(crate) fn forget_until(&mut self, time: Nanos) {
        self.lanes.iter_mut().filter_map(|lane| lane.taker.as_mut()).for_each(|taker| {
            taker.forget_until(time);
        });
    }

    /// Whether nothing stands behind the sample of that time; it is asked about once.
    pub(crate) fn is_stray(&mut self, position: usize, time: Nanos) -> bool {
        let Some(lane) = self.lanes.get_mut(position) else { return false };
        lane.taker.as_mut().is_some_and(|taker| taker.is_stray(time)) || lane.is_surplus(time)
    }

    /// What was read for the sample of that time, if it `holds` that was read until then; samples of a ring are
    /// asked about in their order.
    pub(crate) fn rest(
        &mut self,
        position: usize,
        time: Nanos,
        holds: impl FnOnce(Nanos) -> bool,
    ) -> Rest<'_> {
        self.taker(position).map_or_else(Rest::default, |taker| taker.rest(time, holds))
    }

    fn taker(&mut self, position: usize) -> Option<&mut Taker> {
        self.lanes.get_mut(position)?.taker.as_mut()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.finish();
        self.lanes.iter().for_each(|lane| lane.shared.fetch());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Nanos = Nanos(8_000);

    /// How many of 80 samples stand that came by an interval of a tenth of the mean, the reader kept away since 1,000.
    fn stand(lane: &mut Lane) -> usize {
        (0..80).filter(|n| !lane.is_beyond(MEAN, Nanos(2_000 + 800 * n))).count()
    }

    #[test]
    fn samples_of_a_short_interval_are_thinned() {
        let mut lane = Lane::default();
        lane.shared.done_until.store(1_000, std::sync::atomic::Ordering::Relaxed);
        lane.shared.set_interval(Nanos(800));
        // The first one is drawn.
        assert_eq!(stand(&mut lane), 8);
    }

    /// They are asked about when the mean is set already.
    #[test]
    fn samples_until_the_session_stood_in_are_thinned() {
        let mut lane = Lane::default();
        lane.shared.done_until.store(1_000, std::sync::atomic::Ordering::Relaxed);
        lane.shared.set_interval(MEAN);
        lane.stood_in = (Nanos(2_000 + 800 * 40), 800);
        // Half of them, and all behind.
        assert_eq!(stand(&mut lane), 44);
    }
}
