//! Time off CPU: samples of context switches wait for the return of their threads.

use std::sync::Arc;

use flame_events::{EventKind, SampleEvent, SwitchTo};
use flame_profile::{Evidence, Nanos, OffCpuTime, Pid, Run, StackEnd, StackId, Tid};
use flame_sampler::Schedstat;

use super::Collector;
use crate::aggregator::{Aggregator, SeenStack, Wait};
use crate::blocks::{Block, Blocks};
use crate::location::{CodeLocation, ThreadPosition};
use crate::off_cpu::{OffCpu, Seen, Spell, SpellStack};
use crate::on_cpu::Ran;
use crate::spans::Edge;
use crate::target::TargetFiles;

/// This many times of threads on CPUs are kept, 32 bytes each: threads that are switched 100,000 times a
/// second reach that in 40 s. Of more, none are known.
const MOST_RUNS: usize = 4_000_000;

/// What the kernel says in /proc of a thread that does not wait: it runs or could run, or it has ended and is still
/// to be taken note of.
const NOT_WAITING: &[u8] = b"RZX";

/// A wait that is over, and how long it took. Its samples may not be settled.
#[derive(Debug)]
pub(super) struct Waited {
    seen: Seen<Wait>,
    /// What it was.
    marks: [Option<CodeLocation>; 2],
    /// What stands in place of a waker that is not known, where wakers are shown.
    no_waker: Option<CodeLocation>,
    thread: usize,
    duration: Nanos,
}

/// How often a thread has got a CPU.
fn turns_of(files: &dyn TargetFiles, (pid, tid): (Pid, Tid)) -> Option<u64> {
    let text = files.text(pid, &format!("task/{tid}/schedstat")).ok()?;
    Some(Schedstat::parse(&text)?.turns)
}

impl Collector {
    /// The recording begins, with these processes and threads of them; `None` for all their threads.
    pub(crate) fn begin_waits(&mut self, now: Nanos, pids: &[Pid], only: Option<&[Tid]>) {
        if self.off_cpu.is_none() && self.on_cpu.is_none() {
            return;
        }
        let files = self.locator.files();
        let is_meant = |tid: &Tid| only.is_none_or(|only| only.contains(tid));
        let of = |pid: &Pid| {
            let (pid, threads) = (*pid, files.threads(*pid));
            threads.into_iter().map(move |(tid, _)| (pid, tid))
        };
        let states = self.off_cpu.as_ref().and_then(OffCpu::states);
        let waits = |(pid, tid): &(Pid, Tid)| {
            let stat = files.text(*pid, &format!("task/{tid}/stat")).unwrap_or_default();
            let is_meant = |state| states.is_none_or(|states| states.has(state));
            state_of(&stat).is_some_and(|state| !NOT_WAITING.contains(&state) && is_meant(state))
        };
        let threads = pids.iter().flat_map(of).filter(|(_, tid)| is_meant(tid));
        // Asked first: who ran in between has got a CPU.
        let threads = threads.map(|thread| (thread, turns_of(&*files, thread)));
        let found: Vec<_> = threads.filter(|(thread, _)| waits(thread)).collect();
        let waiting: Vec<(Pid, Tid)> = found.iter().map(|(thread, _)| *thread).collect();
        if let Some(on_cpu) = &mut self.on_cpu {
            // Threads have run before the first sample, too.
            self.began = Some(now);
            on_cpu.begin(now, waiting.iter().map(|(_, tid)| *tid));
        }
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.begin(now, found.into_iter().map(|((pid, tid), turns)| (pid, tid, turns)));
            if self.wakings.as_ref().is_none_or(|wakings| !wakings.are_alone) {
                self.looks.begin(waiting);
            }
        }
    }

    /// A sample of a context switch, which the last event is then: how long it stands for is not known
    /// yet, and where it was may not be.
    pub(super) fn wait(&mut self, sample: &SampleEvent<'_>) -> Option<Wait> {
        let (pid, tid) = (sample.pid, sample.tid);
        if let Some(spans) = &mut self.spans {
            let wait = Wait::default();
            spans.sampled(self.now, tid, sample.event, Arc::clone(&wait));
            return Some(wait);
        }
        if let Some(blocks) = &mut self.blocks {
            let argument = self.arguments.get(sample.event)?;
            let registers = sample.user_registers.as_deref().unwrap_or_default();
            let bytes = argument.value(self.registers, registers).unwrap_or(0);
            let block = Block::of(sample, self.now, bytes);
            let wait = Arc::clone(&block.stack);
            blocks.entered(tid, block);
            return Some(wait);
        }
        let off_cpu = self.off_cpu.as_mut()?;
        let wait = Wait::default();
        if let Some(woken) = woken_by(sample, self.events) {
            off_cpu.woken(self.now, woken, Arc::clone(&wait));
        } else if sample.event + 1 == self.events {
            off_cpu.sampled(pid, tid, Arc::clone(&wait));
        } else {
            return None;
        }
        Some(wait)
    }

    /// Whether a sample is of no use by itself: it is of a call that frees or returns, of the end of what has not
    /// begun, of the waking of a thread of which nothing is asked, or of a wait of which only the waker is.
    pub(super) fn is_of_no_use(&mut self, sample: &SampleEvent<'_>) -> bool {
        if self.blocks.as_mut().is_some_and(|blocks| blocks.take(sample, self.registers)) {
            return true;
        }
        if let Some(spans) = &mut self.spans {
            // It began before the recording, or is none of those that are asked for.
            return !spans.between().waits(sample.tid);
        }
        let (Some(wakings), Some(off_cpu)) = (&self.wakings, &mut self.off_cpu) else {
            return false;
        };
        if let Some(tid) = woken_by(sample, self.events) {
            return !off_cpu.waits(tid);
        }
        // What it says of its thread is that this waits in a state that is asked for.
        if wakings.are_alone && off_cpu.states().is_some() {
            off_cpu.sampled(sample.pid, sample.tid, Wait::default());
        }
        wakings.are_alone
    }

    /// Who wakes, at that position of the threads, if it is a sample of that.
    pub(super) fn waking(&mut self, thread: usize, sample: &SampleEvent<'_>) -> Waking {
        let all = self.wakings.as_mut().filter(|_| woken_by(sample, self.events).is_some());
        let Some(all) = all else { return Waking::default() };
        let in_interrupt = all.interrupt_depth(sample);
        let mark = match in_interrupt {
            Some(_) => CodeLocation::WokenByInterrupt,
            None => CodeLocation::WokenBy(ThreadPosition(thread)),
        };
        Waking { mark: Some(mark), in_interrupt }
    }

    /// A thread left its CPU, or came back.
    pub(super) fn take_switch(&mut self, pid: Pid, tid: Tid, to: SwitchTo) {
        self.spans.iter_mut().for_each(|spans| spans.switched(self.now, tid, to));
        let (now, Some(off_cpu)) = (self.now, &mut self.off_cpu) else { return };
        if !off_cpu.counts(pid, tid) {
            return;
        }
        let spells = match to {
            SwitchTo::Running => off_cpu.came_back(now, tid),
            SwitchTo::Waiting | SwitchTo::Preempted => {
                off_cpu.left(now, pid, tid, to == SwitchTo::Preempted);
                Vec::new()
            }
        };
        spells.into_iter().for_each(|spell| self.take_spell(spell));
    }

    /// Follows who has a CPU.
    pub(super) fn follow_runs(&mut self, kind: &EventKind<'_>) {
        let Some(on_cpu) = &mut self.on_cpu else { return };
        let is_wait = |event| self.off_cpu.is_some() && event + 1 == self.events;
        let counts =
            |pid, tid| self.off_cpu.as_ref().map_or(pid != Pid(0), |all| all.counts(pid, tid));
        let ran = match kind {
            EventKind::Sample(SampleEvent { event, pid, tid, .. }) => {
                if !is_wait(*event) && counts(*pid, *tid) {
                    on_cpu.sampled(*pid, *tid);
                }
                return;
            }
            EventKind::Switch { pid, tid, .. } if !counts(*pid, *tid) => return,
            kind => on_cpu.apply(self.now, kind),
        };
        ran.into_iter().for_each(|ran| self.take_ran(ran));
    }

    fn take_ran(&mut self, ran: Ran) {
        if self.off_cpu.is_some() {
            let thread = self.thread_of(ran.pid, ran.tid);
            *self.ran.entry(thread).or_default() += ran.duration.0;
        } else if let Some(runs) = self.runs.as_mut().filter(|runs| runs.len() < MOST_RUNS) {
            runs.push(ran);
        } else {
            self.runs = None;
        }
    }

    /// The recording is over: who waits has waited until then.
    pub(crate) fn end_waits(&mut self, now: Option<Nanos>) {
        self.now = now.unwrap_or(self.now);
        let now = self.now;
        let files = self.locator.files();
        let turns = |pid, tid| turns_of(&*files, (pid, tid));
        let spells = self.off_cpu.as_mut().map_or_else(Vec::new, |all| all.finish(now, turns));
        spells.into_iter().for_each(|spell| self.take_spell(spell));
        let spells = self.spans.as_mut().map_or_else(Vec::new, |spans| spans.finish(now));
        spells.into_iter().for_each(|spell| self.take_spell(spell));
    }

    /// Gives the samples of each thread's time on CPUs the weight of that time, and adds up both
    /// kinds of time.
    pub(super) fn add_running(&mut self, rows: &mut Aggregator) {
        let Some(on_cpu) = self.on_cpu.as_ref().filter(|_| self.off_cpu.is_some()) else { return };
        let mut ran = self.ran.clone();
        for still in on_cpu.so_far(self.now) {
            let thread = self.thread_key(still.pid, still.tid);
            *ran.entry(rows.thread(thread)).or_default() += still.duration.0;
        }
        let unseen = rows.share_out(ran);
        for (thread, time) in unseen {
            let stack = rows.stack([CodeLocation::RanUnsampled]);
            let end = (StackEnd::NotRecorded, Evidence::Copied);
            let moment = self.moment(self.now, None);
            rows.add(SeenStack { thread, stack, end, script: None }, 0, time, moment);
        }
        rows.add_up();
    }

    /// Adds the blocks that were not freed.
    pub(super) fn add_blocks(&self, rows: &mut Aggregator) {
        for block in self.blocks.iter().flat_map(Blocks::live) {
            if let Some(seen) = block.stack.get() {
                let moment = self.moment(block.time, block.cpu);
                rows.add(*seen, block.event, block.weight, moment);
            }
        }
    }

    /// Whether a sample only says that a thread is at the beginning or the end of an interval.
    pub(super) fn is_edge(&mut self, now: Nanos, sample: &SampleEvent<'_>) -> bool {
        let (Some(spans), Some(edge)) = (&mut self.spans, Edge::of_event(sample.event)) else {
            return false;
        };
        let spells = spans.recorded(now, (sample.pid, sample.tid), edge);
        spells.into_iter().for_each(|spell| self.take_spell(spell));
        true
    }

    fn take_wait(&mut self, waited: Waited) {
        match waited.is_settled() {
            true => self.add_wait(&waited),
            false => self.unsettled.push(waited),
        }
    }

    fn take_spell(&mut self, spell: Spell<Wait>) {
        let thread = self.thread_of(spell.pid, spell.tid);
        let preempted = spell.preempted.then_some(CodeLocation::Preempted);
        let (seen, marks) = match spell.stack {
            SpellStack::Before(seen) => (seen, [Some(CodeLocation::WaitedBefore), None]),
            SpellStack::Sampled(seen) => (seen, [preempted, None]),
            SpellStack::NotSampled => {
                let nothing = Seen { stack: None, waker: None };
                let mark = match self.spans {
                    Some(_) => CodeLocation::CallsNotSampled,
                    None => CodeLocation::NotSampled,
                };
                (nothing, [Some(mark), preempted])
            }
        };
        let is_woken = !spell.preempted && marks[0] != Some(CodeLocation::NotSampled);
        let no_waker = self.wakings.as_ref().filter(|_| is_woken).map(|_| match spell.is_over {
            true => CodeLocation::NotWoken,
            false => CodeLocation::WakerNotSampled,
        });
        self.take_wait(Waited { seen, marks, no_waker, thread, duration: spell.duration });
    }

    /// Adds a wait, with marks for what it was and with who ended it.
    fn add_wait(&mut self, waited: &Waited) {
        let of = |wait: &Option<Wait>| wait.as_ref().and_then(|wait| wait.get().copied());
        let end = (StackEnd::NotRecorded, Evidence::Copied);
        let thread = waited.thread;
        let nothing = SeenStack { thread, stack: StackId::EMPTY, end, script: None };
        let mut seen = of(&waited.seen.stack).unwrap_or(nothing);
        for mark in waited.marks.into_iter().flatten() {
            seen.stack = self.aggregator.inside(seen.stack, mark);
        }
        if let (Some(no_waker), Some(wakings)) = (waited.no_waker, &self.wakings) {
            if !wakings.are_alone {
                seen.stack = self.aggregator.inside(seen.stack, CodeLocation::Waker);
            }
            match of(&waited.seen.waker) {
                Some(waker) => {
                    seen.stack = self.aggregator.on_top(seen.stack, waker.stack);
                    seen.end = if wakings.are_alone { waker.end } else { seen.end };
                }
                None => seen.stack = self.aggregator.inside(seen.stack, no_waker),
            }
        }
        let moment = self.moment(self.now, None);
        self.aggregator.add(seen, self.events - 1, waited.duration.0, moment);
    }

    /// Adds the waits of samples that have been settled meanwhile.
    pub(super) fn add_settled_waits(&mut self) {
        let settled: Vec<_> = self.unsettled.extract_if(.., |all| all.is_settled()).collect();
        settled.iter().for_each(|waited| self.add_wait(waited));
    }

    /// A thread begins or ends, or it is not known which did.
    pub(super) fn follow_waits(&mut self, kind: &EventKind<'_>) {
        self.follow_spans(kind);
        let Some(off_cpu) = &mut self.off_cpu else { return };
        match kind {
            EventKind::Fork { tid, .. } => off_cpu.started(*tid),
            EventKind::Lost { .. } => off_cpu.lost(),
            EventKind::Exit { tid, .. } => {
                let spells = off_cpu.ended(*tid);
                spells.into_iter().for_each(|spell| self.take_spell(spell));
            }
            _ => {}
        }
    }

    fn follow_spans(&mut self, kind: &EventKind<'_>) {
        let Some(spans) = &mut self.spans else { return };
        match kind {
            EventKind::Fork { tid, .. } => spans.started(*tid),
            EventKind::Lost { event, .. } => spans.lost(*event),
            EventKind::Exit { tid, .. } => {
                let spells = spans.ended(self.now, *tid);
                spells.into_iter().for_each(|spell| self.take_spell(spell));
            }
            _ => {}
        }
    }

    /// How far the sum of what was not freed may be off, where only that stays.
    pub(crate) fn deviation_of_blocks(&self) -> Option<f64> {
        self.blocks.as_ref().map(Blocks::deviation)
    }

    /// Whether samples stand for the time behind an event, and not for the event.
    pub(crate) fn measures_time(&self) -> bool {
        self.off_cpu.is_some() || self.spans.is_some()
    }

    /// When threads had a CPU, on the time of samples, where that was asked for.
    pub(crate) fn runs(&self) -> Option<Vec<Run>> {
        let on_cpu = self.on_cpu.as_ref().filter(|_| self.off_cpu.is_none())?;
        let began = self.began.unwrap_or(self.now);
        let run = |ran: &Ran| {
            let until = ran.until.saturating_since(began);
            let from = Nanos(until.0.saturating_sub(ran.duration.0));
            Run { pid: ran.pid, tid: ran.tid, from, until }
        };
        let runs = self.runs.as_ref()?;
        Some(runs.iter().chain(&on_cpu.so_far(self.now)).map(run).collect())
    }

    /// What is known of all waits, of which so much is shown in the end; `None` where samples are not of waits.
    pub(crate) fn waits(&self, shown: Option<Nanos>) -> Option<OffCpuTime> {
        let sums = self.off_cpu.as_ref()?.sums();
        let are_alone = self.wakings.as_ref().is_some_and(|wakings| wakings.are_alone);
        let shown = shown.filter(|_| are_alone).unwrap_or(sums.time);
        Some(OffCpuTime { after_wakeup: sums.time.saturating_since(shown), ..sums })
    }
}

impl Waited {
    fn is_settled(&self) -> bool {
        let mut waits = self.seen.stack.iter().chain(&self.seen.waker);
        waits.all(|wait| wait.get().is_some())
    }
}

/// What a sample says of who wakes a thread; nothing where it is none of that.
#[derive(Default)]
pub(super) struct Waking {
    pub(super) mark: Option<CodeLocation>,
    /// How many kernel frames are an interrupt's, if it was one.
    pub(super) in_interrupt: Option<usize>,
}

/// Which thread is woken, if a sample is of the event behind those of waits.
fn woken_by(sample: &SampleEvent<'_>, events: usize) -> Option<Tid> {
    let tid = sample.tracepoint.filter(|_| sample.event == events)?;
    u32::try_from(tid).ok().map(Tid)
}

/// The state of a thread, behind its name in parentheses.
fn state_of(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}
