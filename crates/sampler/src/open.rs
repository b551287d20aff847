//! Opening one event, and finding out what this machine and this user can have.

use std::io;

use flame_events::{RecordLayout, SampleFields};
use flame_profile::{Cpu, Tid};
use nix::errno::Errno;
use nix::libc;
use perf_event::events::Software;
use perf_event::{Builder, ReadFormat};

use crate::config::{CallGraph, MAX_STACK_COPY, Privilege, Rate, SamplerConfig, Target};
use crate::descriptor::Descriptor;
use crate::error::SamplerError;
use crate::event_type::EventType;
use crate::limits;
use crate::session::Concession;
use crate::threads;

/// CLOCK_MONOTONIC: the clock of all record times, so that they compare with flame's own.
pub(crate) const CLOCK: i32 = libc::CLOCK_MONOTONIC;

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
    /// Bytes in a ring that make a reader be woken up.
    pub(crate) wake_after: usize,
    user_chain: bool,
}

/// Whom an event watches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    Task(Tid),
    Everyone,
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
        let fields = SampleFields {
            callchain: config.call_graph != CallGraph::None,
            user_registers: if user_stack > 0 { config.user_registers } else { 0 },
            user_stack,
            fixed_period: match config.rate {
                Rate::Period(period) => Some(period),
                Rate::Frequency(_) => None,
            },
        };
        Plan {
            privilege,
            rate: config.rate,
            layout: RecordLayout::new(fields),
            counts_lost: true,
            // A thread that was named is meant alone.
            inherit: config.inherit && !matches!(config.target, Target::Threads(_)),
            on_exec: matches!(config.target, Target::Launched(_)),
            user_chain: config.call_graph == CallGraph::FramePointers
                && privilege != Privilege::Kernel,
            wake_after: 0,
            event,
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
        loop {
            let error = match plan.open(who, cpu) {
                Ok(_) => return Ok((plan, concessions)),
                Err(error) => error,
            };
            match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EACCES | Errno::EPERM if plan.privilege == Privilege::All => {
                    plan.privilege = Privilege::User;
                    concessions.push(Concession::UserOnly);
                }
                Errno::EACCES | Errno::EPERM if plan.privilege == Privilege::Kernel => {
                    return Err(SamplerError::Denied { what: "kernel code", level: 1 });
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

    /// Opens the event for one task (or all) on one CPU.
    pub(crate) fn open(&self, who: Who, cpu: Cpu) -> io::Result<Descriptor> {
        let mut builder = Builder::new().kind(Software::CPU_CLOCK).one_cpu(cpu.0 as usize);
        builder = match who {
            Who::Task(tid) => builder.observe_pid(tid.0 as i32),
            Who::Everyone => builder.any_pid(),
        };
        builder
            .enabled(!self.on_exec)
            .enable_on_exec(self.on_exec)
            .inherit(self.inherit && matches!(who, Who::Task(_)))
            .exclude_kernel(self.privilege == Privilege::User)
            .exclude_user(self.privilege == Privilege::Kernel)
            .exclude_callchain_kernel(self.privilege == Privilege::User)
            .exclude_callchain_user(!self.user_chain)
            .exclude_hv(true)
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .sample_id_all(true)
            .wakeup_watermark(self.wake_after)
            .read_format(ReadFormat::empty());
        let fields = self.layout.fields();
        builder.sample_regs_user(fields.user_registers).sample_stack_user(fields.user_stack);
        match self.rate {
            Rate::Frequency(hz) => builder.sample_frequency(hz.0),
            Rate::Period(period) => builder.sample_period(period),
        };
        let attributes = builder.attrs_mut();
        attributes.type_ = self.event.kind;
        attributes.config = self.event.config;
        attributes.sample_type = self.layout.sample_type();
        attributes.read_format = if self.counts_lost { FORMAT_LOST } else { 0 };
        // Since 5.1, and so wherever PERF_FORMAT_LOST is.
        attributes.set_ksymbol(u64::from(self.counts_lost));
        attributes.set_use_clockid(1);
        attributes.clockid = CLOCK;
        Descriptor::open(builder)
    }

    /// The kernel's answer to [`Plan::open`] as an error that says what was meant.
    pub(crate) fn refusal(&self, error: io::Error, who: Who) -> SamplerError {
        match (Errno::from_raw(error.raw_os_error().unwrap_or(0)), who) {
            (Errno::ESRCH, Who::Task(tid)) => SamplerError::NoSuchThread { tid },
            (Errno::EACCES | Errno::EPERM, Who::Task(tid)) => {
                SamplerError::TaskDenied { tid, owner: threads::owner_of(tid) }
            }
            (Errno::EACCES | Errno::EPERM, Who::Everyone) => {
                SamplerError::Denied { what: "all processes", level: 0 }
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
