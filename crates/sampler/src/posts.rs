//! Which readers a session has: one a CPU, of its timer; or of what is counted in the target's threads or of their
//! switches, where there are frames of interpreters to be read.
//!
//! What is counted is sampled in the target's tasks first, and only in a flood on whole CPUs. There a reader would be woken
//! by what it does itself (it reads files, it waits), and that would be counted: the kernel's filter leaves it out, see
//! `own_name`. Where all CPUs are meant from the start there are no such readers.

use std::sync::Arc;

use flame_profile::{Cpu, Nanos};
use nix::errno::Errno;

use crate::error::{Refusal, Refused, SamplerError};
use crate::filter::Filter;
use crate::open::Plan;
use crate::readers::Post;
use crate::returns::Returns;
use crate::session::{Events, Session};
use crate::task_intervals::TaskIntervals;

impl Session {
    /// Up to when samples may be released of those that have settled until then.
    pub(crate) fn horizon(&mut self, now: Nanos, settled: Nanos) -> Nanos {
        let done = self.readers.horizon(settled);
        self.returns.as_mut().map_or(done, |returns| returns.horizon(now, settled, done))
    }

    /// Starts the reader of the ring at that position, if its samples come from a timer or a counter
    /// of the CPU.
    pub(crate) fn start_reader(&mut self, position: usize) {
        // Of what is counted, one on a CPU that is back.
        if self.occurrences.is_none() || self.readers.are_there() {
            self.put_reader(position, true);
        }
    }

    /// Opens what wakes readers of tasks.
    pub(crate) fn open_bells(&mut self) -> Result<(), SamplerError> {
        if !(self.plan.reads_waits || self.plan.reads_tasks || self.plan.draws_tasks) {
            return Ok(());
        }
        let cpus: Vec<_> = self.rings.cpus().collect();
        for cpu in cpus {
            let opened = self.plan.open_bell(cpu);
            let Ok(bell) = opened.inspect_err(|error| tracing::debug!(%error, "tasks unread"))
            else {
                self.bells.clear();
                return Ok(());
            };
            self.bells.extend(self.rings.add(Arc::new(bell), cpu)?);
        }
        Ok(())
    }

    /// Starts the readers of tasks or of what is counted, once there is something to be read or drawn: scripts, stacks of
    /// tasks beyond their copies, intervals.
    pub(crate) fn start_needed_readers(&mut self) {
        let has_script = self.config.interpreters.as_ref().is_some_and(|known| known.has_any());
        let has_long = !self.bells.is_empty() && self.config.stack_roots.want_some();
        let has_any = has_script || has_long || self.plan.draws_tasks;
        let is_wanted = !self.bells.is_empty() || self.plan.reads_counted;
        if !is_wanted || self.readers.are_there() || !has_any {
            return;
        }
        (0..self.rings.cpus().count()).for_each(|position| self.put_reader(position, true));
        self.returns = self.plan.reads_waits.then(Returns::default);
    }

    fn put_reader(&mut self, position: usize, may_read: bool) {
        let Some(cpu) = self.rings.cpus().nth(position) else { return };
        let (woken_by, pacer, timer_rests) = match &self.events {
            Events::Cpus(samplers) if self.occurrences.is_some() => {
                (samplers.event(position), None, false)
            }
            Events::Cpus(samplers) => {
                let pacer = self.pace.pacer(&self.config, cpu);
                (samplers.event(position), pacer, !samplers.timer_always_runs())
            }
            Events::Tasks(_) => (self.bells.get(position), None, false),
        };
        let Some(woken_by) = woken_by else { return };
        let post = Post {
            cpu,
            woken_by: Arc::clone(woken_by),
            paced: pacer.map(|pacer| (Arc::clone(woken_by), pacer)),
            tasks: self.tasks_on(cpu),
            timer_rests,
            may_read,
            strangers: self.filter.as_ref().map_or_else(Arc::default, Filter::told),
            stack_roots: self.config.stack_roots.clone(),
            interpreters: self.config.interpreters.clone(),
        };
        let plan: Arc<Plan> = Arc::new(self.plan.clone());
        if let Some(ring) = self.rings.queues().get_mut(position) {
            self.readers.start(position, post, &plan, ring);
        }
    }

    /// What draws the intervals of tasks on a CPU.
    fn tasks_on(&self, cpu: Cpu) -> Option<TaskIntervals> {
        let asked = self.plan.asked_of_tasks()?;
        let drawn = self.drawn.iter().filter(|(of, ..)| *of == cpu);
        let events = drawn.map(|(_, tid, event)| (*tid, Arc::clone(event))).collect();
        Some(TaskIntervals::new(events, cpu, asked, self.config.seed))
    }

    /// Has those left behind that wait for memory which may never come. The others that take their
    /// places draw intervals and read no stacks: the next one would be there as soon.
    pub(crate) fn replace_stuck_readers(&mut self) {
        self.readers.stand_in(&self.plan);
        for position in self.readers.stuck() {
            if let Some(cpu) = self.rings.cpus().nth(position) {
                let (doing, source) = ("read a stack".to_owned(), Errno::ETIMEDOUT.into());
                let error = SamplerError::Io { doing, source };
                self.refusals.push(Refusal { what: Refused::Stacks(cpu), error });
            }
            self.put_reader(position, false);
        }
    }
}
