//! Time off CPU: samples of context switches wait for the return of their threads.

use std::sync::Arc;

use flame_events::{EventKind, SwitchTo};
use flame_profile::{Evidence, Nanos, OffCpuTime, Pid, StackEnd, Tid};

use super::Collector;
use crate::aggregator::{SeenStack, Wait};
use crate::location::CodeLocation;
use crate::off_cpu::{OffCpu, Spell, SpellStack};

/// What the kernel says of a process's thread in /proc that runs or could run.
const RUNNABLE: u8 = b'R';

impl Collector {
    /// The recording begins, with these processes and threads of them; `None` for all their threads.
    pub(crate) fn begin_waits(&mut self, now: Nanos, pids: &[Pid], only: Option<&[Tid]>) {
        let Some(off_cpu) = &mut self.off_cpu else { return };
        let files = self.locator.files();
        let is_meant = |tid: &Tid| only.is_none_or(|only| only.contains(tid));
        let of = |pid: &Pid| {
            let (pid, threads) = (*pid, files.threads(*pid));
            threads.into_iter().map(move |(tid, _)| (pid, tid))
        };
        let waits = |(pid, tid): &(Pid, Tid)| {
            let stat = files.text(*pid, &format!("task/{tid}/stat")).unwrap_or_default();
            state_of(&stat).is_some_and(|state| state != RUNNABLE)
        };
        let threads = pids.iter().flat_map(of).filter(|(_, tid)| is_meant(tid));
        off_cpu.begin(now, threads.filter(waits));
    }

    /// A sample of a context switch: how long it stands for is not known yet, and where it was may not
    /// be.
    pub(super) fn wait(&mut self, pid: Pid, tid: Tid) -> Option<Wait> {
        let wait = Wait::default();
        self.off_cpu.as_mut()?.sampled(pid, tid, Arc::clone(&wait));
        Some(wait)
    }

    /// A thread left its CPU, or came back.
    pub(super) fn take_switch(&mut self, pid: Pid, tid: Tid, to: SwitchTo) {
        let (now, Some(off_cpu)) = (self.now, &mut self.off_cpu) else { return };
        let spells = match to {
            SwitchTo::Running => off_cpu.came_back(now, tid),
            SwitchTo::Waiting | SwitchTo::Preempted => {
                off_cpu.left(now, pid, tid, to == SwitchTo::Preempted);
                Vec::new()
            }
        };
        spells.into_iter().for_each(|spell| self.take_spell(spell));
    }

    /// The recording is over: who waits has waited until then.
    pub(crate) fn end_waits(&mut self, now: Option<Nanos>) {
        let now = now.unwrap_or(self.now);
        let spells = self.off_cpu.as_mut().map_or_else(Vec::new, |off_cpu| off_cpu.finish(now));
        spells.into_iter().for_each(|spell| self.take_spell(spell));
    }

    fn take_spell(&mut self, spell: Spell<Wait>) {
        let mark = match spell.stack {
            SpellStack::Before => CodeLocation::WaitedBefore,
            SpellStack::NotSampled => CodeLocation::NotSampled,
            SpellStack::Sampled(wait) => {
                return match wait.get() {
                    Some(seen) => self.add_wait(*seen, spell.preempted, spell.duration),
                    None => self.unsettled.push((wait, spell.preempted, spell.duration)),
                };
            }
        };
        let thread = self.thread_of(spell.pid, spell.tid);
        let stack = self.aggregator.stack(&[mark]);
        let seen = SeenStack { thread, stack, end: (StackEnd::NotRecorded, Evidence::Copied) };
        self.add_wait(seen, spell.preempted, spell.duration);
    }

    fn add_wait(&mut self, mut seen: SeenStack, preempted: bool, duration: Nanos) {
        if preempted {
            seen.stack = self.aggregator.inside(seen.stack, CodeLocation::Preempted);
        }
        self.aggregator.add(seen, duration.0);
    }

    /// Adds the waits of samples that have been settled meanwhile.
    pub(super) fn add_settled_waits(&mut self) {
        let is_settled = |(wait, ..): &mut (Wait, bool, Nanos)| wait.get().is_some();
        let settled: Vec<_> = self.unsettled.extract_if(.., is_settled).collect();
        for (wait, preempted, duration) in settled {
            wait.get().into_iter().for_each(|seen| self.add_wait(*seen, preempted, duration));
        }
    }

    /// A thread begins or ends, or it is not known which did.
    pub(super) fn follow_waits(&mut self, kind: &EventKind<'_>) {
        let Some(off_cpu) = &mut self.off_cpu else { return };
        let spells = match kind {
            EventKind::Fork { tid, .. } => return off_cpu.started(*tid),
            EventKind::Lost { .. } => return off_cpu.lost(),
            EventKind::Exit { tid, .. } => off_cpu.ended(*tid),
            _ => return,
        };
        spells.into_iter().for_each(|spell| self.take_spell(spell));
    }

    /// What is known of all waits; `None` where samples are not of waits.
    pub(crate) fn waits(&self) -> Option<OffCpuTime> {
        self.off_cpu.as_ref().map(OffCpu::sums)
    }
}

/// The state of a thread, behind its name in parentheses.
fn state_of(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}
