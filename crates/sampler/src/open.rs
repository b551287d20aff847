//! Opening one event, and finding out what this machine and this user can have.

use std::io;

use flame_events::{RecordLayout, SampleFields};
use flame_profile::{ByteLen, Cpu, Nanos, Tid};
use nix::errno::Errno;
use nix::libc;
use nix::unistd::getpid;
use perf_event::events::Software;
use perf_event::{Builder, ReadFormat};
use perf_event_open_sys::bindings::perf_event_attr;

use crate::cgroup::Cgroup;
use crate::config::{CallGraph, MAX_STACK_COPY, Privilege, Rate, SamplerConfig, Target};
use crate::descriptor::Descriptor;
use crate::error::SamplerError;
use crate::event_type::EventType;
use crate::limits;
use crate::own_name::by_others;
use crate::pacing::frequency_of;
use crate::session::Concession;
use crate::threads;

/// CLOCK_MONOTONIC: the clock of all record times, so that they compare with flame's own.
pub(crate) const CLOCK: i32 = libc::CLOCK_MONOTONIC;

/// Reading an event says for how long it was enabled, and for how long it really ran.
const FORMAT_TIMES: u64 = 0b11;

/// PERF_FORMAT_LOST (6.0): reading an event also says how many of its records were dropped.
const FORMAT_LOST: u64 = 1 << 4;

/// What exactly is opened, once it is known what can be.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) event: EventType,
    pub(crate) privilege: Privilege,
    pub(crate) rate: Rate,
    pub(crate) layout: RecordLayout,
    /// Whether the kernel knows PERF_FORMAT_LOST.
    pub(crate) counts_lost: bool,
    /// Whether what the tasks start is sampled too.
    pub(crate) inherit: bool,
    /// Whether sampling begins at the task's exec rather than at once.
    pub(crate) on_exec: bool,
    /// Whether events are opened only, to be started later.
    pub(crate) waits: bool,
    /// Whether it is recorded when threads are taken off their CPU and when they get one.
    pub(crate) switches: bool,
    /// Whether idle CPUs are sampled. What they do then is interrupts, which are nobody's but the machine's.
    pub(crate) samples_idle: bool,
    /// Bytes in a ring that make a reader be woken up.
    pub(crate) wake_after: usize,
    /// Whether each sample wakes a reader up, besides.
    pub(crate) wake_at_samples: bool,
    /// Whether readers look at threads that leave the CPU, once there is an interpreter in one of their processes.
    pub(crate) reads_waits: bool,
    /// Whether readers look at what is counted, once there is an interpreter in one of the target's processes.
    pub(crate) reads_counted: bool,
    /// Whether readers look at samples of tasks, once there is something to be read.
    pub(crate) reads_tasks: bool,
    /// Whether readers draw the intervals of tasks.
    pub(crate) draws_tasks: bool,
    /// Bytes of user stack that samples copy, a multiple of 8.
    pub(crate) stack_copy: u32,
    /// What is opened where flame chooses the period, see [`Plan::is_counted`].
    pub(crate) period: u64,
    /// The interval of a clock that is bound to a task, or of a counter of the CPU, where it is not quite the frequency's.
    pub(crate) interval: Option<Nanos>,
    user_chain: bool,
}

/// Whom an event watches.
#[derive(Clone, Debug)]
pub(crate) enum Who {
    Task(Tid),
    Everyone,
    Cgroup(Cgroup),
}

/// What an event writes into its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// Samples, and what happens to tasks and their memory.
    All,
    /// Samples only.
    Samples,
    /// What happens to tasks and their memory only.
    SideBand,
}

/// What the kernel says of an event that is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// How often it happened, or for how many nanoseconds of a clock.
    pub(crate) count: u64,
    /// How long it was enabled, and how long it really ran.
    pub(crate) enabled: Nanos,
    pub(crate) running: Nanos,
    /// Records that did not fit, where the kernel counts them.
    pub(crate) lost: u64,
}

impl Plan {
    /// The plan as asked for, before the kernel had its say.
    fn asked(config: &SamplerConfig) -> Plan {
        let event = config.event.clone().unwrap_or_else(EventType::cycles);
        let privilege = event.privilege.unwrap_or(config.privilege);
        let user_stack = match config.call_graph {
            CallGraph::Dwarf(bytes) if privilege != Privilege::Kernel => {
                bytes.0.min(MAX_STACK_COPY.0) as u32 & !7
            }
            _ => 0,
        };
        let has_registers = user_stack > 0 || config.call_graph == CallGraph::Registers;
        let fields = SampleFields {
            callchain: !matches!(config.call_graph, CallGraph::None | CallGraph::Registers),
            user_registers: if has_registers { config.user_registers } else { 0 },
            user_stack,
            fixed_period: match config.rate {
                Rate::Period(period) => Some(period),
                Rate::Frequency(_) => event.is_occurrence().then_some(1),
            },
            tracepoint: event.field,
        };
        Plan {
            privilege,
            rate: config.rate,
            layout: RecordLayout::new(fields),
            counts_lost: true,
            // A thread that was named is meant alone.
            inherit: config.inherit && !matches!(config.target, Target::Threads(_)),
            on_exec: matches!(config.target, Target::Launched(_)),
            waits: false,
            user_chain: config.call_graph == CallGraph::FramePointers
                && privilege != Privilege::Kernel,
            switches: config.switches,
            samples_idle: matches!(config.target, Target::System),
            wake_after: 0,
            wake_at_samples: false,
            reads_waits: false,
            reads_counted: false,
            reads_tasks: false,
            draws_tasks: false,
            stack_copy: user_stack,
            period: 1,
            interval: None,
            event,
        }
    }

    /// Samples copy so many bytes of stack (rounded down to a multiple of 8).
    pub(crate) fn set_stack_copy(&mut self, bytes: ByteLen) {
        self.stack_copy = u32::try_from(bytes.0).unwrap_or(u32::MAX) & !7;
    }

    /// The interval that is asked for, where readers draw those of tasks.
    pub(crate) fn asked_of_tasks(&self) -> Option<Nanos> {
        let Rate::Frequency(hz) = self.rate else { return None };
        self.draws_tasks.then(|| Nanos(1_000_000_000 / hz.0.max(1)))
    }

    /// Whether stacks are read beyond their copies, by a reader that is woken at the moment of the sample.
    pub(crate) fn reads_stacks(&self) -> bool {
        (self.wake_at_samples || self.reads_if_needed()) && self.stack_copy > 0
    }

    /// Whether that is done of tasks, of waits, or of what is counted, once there is something to be read.
    fn reads_if_needed(&self) -> bool {
        self.reads_waits || self.reads_counted || self.reads_tasks
    }

    /// Whether occurrences are counted and every Nth is sampled.
    pub(crate) fn counts_occurrences(&self) -> bool {
        matches!(self.rate, Rate::Period(_)) && !self.event.is_clock()
    }

    /// Whether flame chooses N, of which every Nth occurrence is sampled, by how often they come.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.rate, Rate::Frequency(_)) && self.event.is_occurrence()
    }

    /// Opens an event that only counts: CPU time, or how often the sampled event happens in a task
    /// and, where that is asked for, what it starts; on one CPU or on all.
    pub(crate) fn open_counter(&self, tid: Tid, cpu: Option<Cpu>) -> io::Result<Descriptor> {
        let mut builder =
            Builder::new().kind(Software::TASK_CLOCK).observe_pid(tid.0.cast_signed());
        builder = match cpu {
            Some(cpu) => builder.one_cpu(cpu.0 as usize),
            None => builder.any_cpu(),
        };
        // Counting user time only is not to be had of a clock, but a user who may not sample the
        // kernel must ask for it all the same.
        let is_clock = self.event.is_clock();
        builder
            .enabled(!self.on_exec)
            .inherit(self.inherit)
            .enable_on_exec(self.on_exec)
            .exclude_kernel(is_clock || self.privilege == Privilege::User)
            .exclude_user(!is_clock && self.privilege == Privilege::Kernel)
            .exclude_hv(true)
            .read_format(ReadFormat::empty());
        let attributes = builder.attrs_mut();
        if !is_clock {
            self.set_event(attributes)?;
        }
        attributes.read_format = 0;
        self.filtered(Descriptor::open(builder)?, self.event.filter.clone())
    }

    fn set_event(&self, attributes: &mut perf_event_attr) -> io::Result<()> {
        attributes.type_ = self.event.kind;
        let [config, config1, config2] = self.event.configs;
        attributes.config = config;
        (attributes.__bindgen_anon_3.config1, attributes.__bindgen_anon_4.config2) =
            (config1, config2);
        if let Some(uprobe) = &self.event.uprobe {
            attributes.config = uprobe.number()?;
        }
        Ok(())
    }

    fn filtered(&self, event: Descriptor, filter: Option<String>) -> io::Result<Descriptor> {
        filter.iter().try_for_each(|filter| event.set_filter(filter))?;
        Ok(event)
    }

    /// The filter of an event that samples: on whole CPUs, what flame does is left out.
    fn filter_of(&self, who: &Who) -> Option<String> {
        let sees_flame = self.reads_counted && self.event.is_tracepoint();
        let own = by_others();
        match (who, &self.event.filter) {
            (Who::Everyone, Some(filter)) if sees_flame => Some(format!("({filter}) && {own}")),
            (Who::Everyone, None) if sees_flame => Some(own),
            (_, filter) => filter.clone(),
        }
    }

    /// Finds the plan that the kernel accepts for one task, giving way step by step.
    ///
    /// The order matters: permission is checked before the event, so an event that is not there
    /// shows only once the kernel's part has been given up.
    pub(crate) fn probe(
        config: &SamplerConfig,
        who: Who,
        cpu: Cpu,
    ) -> Result<(Plan, Vec<Concession>), SamplerError> {
        check_frequency(config.rate)?;
        let mut plan = Plan::asked(config);
        let mut concessions = Vec::new();
        // Of a kernel that refuses the event anyway, its own answer is the better one.
        let filter = plan.event.filter.take();
        let found = plan.probe_event(config, &who, cpu, &mut concessions);
        found?;
        plan.event.filter = filter;
        if let (Some(filter), Err(source)) =
            (&plan.event.filter, plan.open(&who, cpu, Records::All))
        {
            // The task has ended meanwhile.
            if source.raw_os_error() == Some(Errno::ESRCH as i32) {
                return Err(plan.refusal(source, &who));
            }
            let (event, filter) = (plan.event.to_string(), filter.clone());
            return Err(SamplerError::Filter { event, filter, source });
        }
        Ok((plan, concessions))
    }

    fn probe_event(
        &mut self,
        config: &SamplerConfig,
        who: &Who,
        cpu: Cpu,
        concessions: &mut Vec<Concession>,
    ) -> Result<(), SamplerError> {
        let plan = self;
        loop {
            let error = match plan.open(who, cpu, Records::All) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EACCES | Errno::EPERM if plan.privilege == Privilege::All => {
                    plan.privilege = Privilege::User;
                    concessions.push(Concession::UserOnly);
                }
                Errno::EACCES | Errno::EPERM if plan.privilege == Privilege::Kernel => {
                    return Err(SamplerError::Denied { what: "kernel code", level: Some(1) });
                }
                Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP
                    if config.event.is_none() && plan.event == EventType::cycles() =>
                {
                    plan.event = EventType::cpu_clock();
                    concessions.push(Concession::NoPmu);
                }
                Errno::EINVAL | Errno::E2BIG if plan.counts_lost => plan.counts_lost = false,
                _ => return Err(plan.refusal(error, who)),
            }
        }
    }

    /// Opens an event of flame's own that never happens: who polls it is woken by what others write into its ring, and
    /// it goes on when tasks have ended.
    pub(crate) fn open_bell(&self, cpu: Cpu) -> io::Result<Descriptor> {
        let mut builder = Builder::new().kind(Software::DUMMY).one_cpu(cpu.0 as usize);
        builder = builder.observe_pid(getpid().as_raw());
        builder
            .exclude_kernel(self.privilege == Privilege::User)
            .exclude_hv(true)
            .read_format(ReadFormat::empty());
        let attributes = builder.attrs_mut();
        // Events of one ring have one clock.
        attributes.set_use_clockid(1);
        attributes.clockid = CLOCK;
        Descriptor::open(builder)
    }

    /// Opens an event of a task that never happens and is not inherited. Where a task has one, what it starts has other
    /// events than itself: the kernel lets two tasks with the same events exchange them when it switches from one to the other
    /// (`perf_event_context_sched_out`), and what is set of one event would be set in the midst of the other task's interval.
    pub(crate) fn open_mark(&self, tid: Tid) -> io::Result<Descriptor> {
        let mut builder = Builder::new().kind(Software::DUMMY).any_cpu();
        builder = builder.observe_pid(tid.0.cast_signed());
        builder
            .enabled(false)
            .exclude_kernel(self.privilege == Privilege::User)
            .exclude_hv(true)
            .read_format(ReadFormat::empty());
        Descriptor::open(builder)
    }

    /// Opens a clock that counts for how long a task runs on a CPU, and not what it starts.
    pub(crate) fn open_clock(&self, tid: Tid, cpu: Cpu) -> io::Result<Descriptor> {
        let mut builder = Builder::new().kind(Software::CPU_CLOCK).one_cpu(cpu.0 as usize);
        builder = builder.observe_pid(tid.0.cast_signed());
        builder
            .enabled(true)
            .exclude_kernel(self.privilege == Privilege::User)
            .exclude_hv(true)
            .read_format(ReadFormat::empty());
        Descriptor::open(builder)
    }

    /// Opens the event for one task, all of them, or those of a control group, on one CPU.
    pub(crate) fn open(&self, who: &Who, cpu: Cpu, records: Records) -> io::Result<Descriptor> {
        let kind = if records == Records::SideBand { Software::DUMMY } else { Software::CPU_CLOCK };
        let mut builder = Builder::new().kind(kind).one_cpu(cpu.0 as usize);
        builder = match who {
            Who::Task(tid) => builder.observe_pid(tid.0.cast_signed()),
            Who::Everyone => builder.any_pid(),
            Who::Cgroup(group) => builder.observe_cgroup(group.directory()),
        };
        let side_band = records != Records::Samples;
        let side_band_only = records == Records::SideBand;
        let on_exec = self.on_exec && matches!(who, Who::Task(_));
        builder
            .enabled(!on_exec && !self.waits)
            .enable_on_exec(on_exec)
            .inherit(self.inherit && matches!(who, Who::Task(_)))
            .exclude_kernel(self.privilege == Privilege::User)
            .exclude_user(self.privilege == Privilege::Kernel)
            .exclude_callchain_kernel(self.privilege == Privilege::User)
            .exclude_callchain_user(!self.user_chain)
            .exclude_hv(true)
            .mmap(side_band)
            .mmap2(side_band)
            .comm(side_band)
            .comm_exec(side_band)
            .task(side_band)
            .sample_id_all(true)
            .read_format(ReadFormat::empty());
        let registers = self.layout.fields().user_registers;
        builder.sample_regs_user(registers).sample_stack_user(self.stack_copy);
        let wakes = self.wake_at_samples || self.draws_tasks || self.reads_if_needed();
        match wakes && records != Records::SideBand {
            true => builder.wakeup_events(1),
            false => builder.wakeup_watermark(self.wake_after),
        };
        if records != Records::SideBand {
            self.sample_by_rate(&mut builder);
        }
        let attributes = builder.attrs_mut();
        if records != Records::SideBand {
            self.set_event(attributes)?;
        }
        attributes.sample_type = self.layout.sample_type();
        attributes.read_format = FORMAT_TIMES | if self.counts_lost { FORMAT_LOST } else { 0 };
        // Since 5.1, and so wherever PERF_FORMAT_LOST is.
        attributes.set_ksymbol(u64::from(self.counts_lost && side_band));
        attributes.set_context_switch(u64::from(self.switches && side_band));
        attributes.set_use_clockid(1);
        attributes.clockid = CLOCK;
        // Some counters of a PMU refuse it.
        attributes.set_exclude_idle(u64::from(self.event.is_clock() && !self.samples_idle));
        let event = Descriptor::open(builder)?;
        if side_band_only { Ok(event) } else { self.filtered(event, self.filter_of(who)) }
    }

    fn sample_by_rate(&self, builder: &mut Builder<'_>) {
        match (self.rate, self.interval) {
            (Rate::Frequency(_), _) if self.is_counted() => builder.sample_period(self.period),
            // The kernel adapts the period.
            (Rate::Frequency(_), Some(interval)) if self.event.is_hardware() => {
                builder.sample_frequency(frequency_of(interval))
            }
            (Rate::Frequency(_), Some(interval)) => builder.sample_period(interval.0),
            (Rate::Frequency(hz), None) => builder.sample_frequency(hz.0),
            (Rate::Period(period), _) => builder.sample_period(period),
        };
    }

    /// Reads an event; zeros where the kernel has none to give.
    pub(crate) fn read(&self, event: &Descriptor) -> Reading {
        let words = match self.counts_lost {
            true => event.read::<4>(),
            false => {
                event.read::<3>().map(|[count, enabled, running]| [count, enabled, running, 0])
            }
        };
        let [count, enabled, running, lost] = words.unwrap_or_default();
        Reading { count, enabled: Nanos(enabled), running: Nanos(running), lost }
    }

    /// The kernel's answer to [`Plan::open`] as an error that says what was meant.
    pub(crate) fn refusal(&self, error: io::Error, who: &Who) -> SamplerError {
        match (Errno::from_raw(error.raw_os_error().unwrap_or(0)), who) {
            // Whatever perf_event_paranoid says.
            (Errno::EACCES | Errno::EPERM, _) if self.event.is_function() => {
                SamplerError::Denied { what: "calls of functions", level: None }
            }
            (Errno::ESRCH, Who::Task(tid)) => SamplerError::NoSuchThread { tid: *tid },
            (Errno::EACCES | Errno::EPERM, Who::Task(tid)) => {
                SamplerError::TaskDenied { tid: *tid, owner: threads::owner_of(*tid) }
            }
            (Errno::EACCES | Errno::EPERM, Who::Everyone) => {
                SamplerError::Denied { what: "all processes", level: Some(0) }
            }
            (Errno::EACCES | Errno::EPERM, Who::Cgroup(_)) => {
                SamplerError::Denied { what: "control groups", level: Some(0) }
            }
            (Errno::EMFILE | Errno::ENFILE, _) => {
                SamplerError::TooManyFiles { needed: 1, limit: limits::raise_open_files() }
            }
            _ => SamplerError::EventUnsupported { event: self.event.to_string(), source: error },
        }
    }
}

fn check_frequency(rate: Rate) -> Result<(), SamplerError> {
    match (rate, limits::max_sample_rate()) {
        (Rate::Frequency(asked), Some(limit)) if asked > limit => {
            Err(SamplerError::FrequencyTooHigh { asked, limit })
        }
        _ => Ok(()),
    }
}
