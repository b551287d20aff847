//! Turns a question about this machine and this user into the kernel's own answer: opens an event
//! and closes it again. Nothing is inferred from a setting, and nothing is sampled.
//!
//! Sources: perf_event_open(2); `kernel/events/core.c` and `kernel/trace/trace_event_perf.c` of
//! Linux for the rights that each event takes.

use std::fs::File;
use std::io;
use std::path::Path;

use flame_profile::FileOffset;
use perf_event::events::Software;
use perf_event::{Builder, ReadFormat};
use perf_event_open_sys::bindings;

use crate::config::{MAX_STACK_COPY, Privilege};
use crate::tracepoints::{self, TracepointError};
use crate::uprobe::Uprobe;

/// Where groups may be mounted that events can be bound to: version 1's own hierarchy, version 2,
/// and version 2 beside version 1.
const CGROUPS: [&str; 3] =
    ["/sys/fs/cgroup/perf_event", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// PERF_FORMAT_LOST (6.0).
const FORMAT_LOST: u64 = 1 << 4;

/// Rare enough never to be reached while an event is open for a moment.
const PERIOD: u64 = 1_000_000_000;

/// Something that the kernel may offer for sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// cpu-clock: samples by CPU time, which every machine has.
    CpuClock,
    /// task-clock: CPU time of a task, exact to the nanosecond.
    TaskClock,
    /// cycles: the hardware counters (PMU).
    Cycles,
    /// page-faults.
    PageFaults,
    /// context-switches.
    ContextSwitches,
    /// A record of every switch to and from a task, for time off the CPU.
    SwitchRecords,
    /// User registers and the largest copy of the user stack with each sample.
    StackCopies,
    /// The number of lost records, read from the event (PERF_FORMAT_LOST, Linux 6.0).
    LostCounts,
    /// All tasks of a CPU.
    AllTasks,
    /// Events bound to a control group.
    Cgroups,
    /// Tracepoints, by the example of sched:sched_switch.
    Tracepoints,
    /// Calls of functions, by the example of the program that asks.
    Uprobes,
}

/// Opens an event of that kind for the calling thread (for all tasks of the first CPU where the
/// feature is about those), and closes it.
///
/// # Errors
/// The kernel's answer: EACCES or EPERM without the permission, ENOENT, ENODEV or EOPNOTSUPP where
/// the machine does not have it, EINVAL where the kernel is too old. For tracepoints also that of
/// reading tracefs.
pub fn probe(feature: Feature, privilege: Privilege) -> io::Result<()> {
    match feature {
        Feature::CpuClock | Feature::StackCopies | Feature::SwitchRecords | Feature::LostCounts => {
            open(software(bindings::PERF_COUNT_SW_CPU_CLOCK.into()), feature, privilege)
        }
        Feature::TaskClock => {
            open(software(bindings::PERF_COUNT_SW_TASK_CLOCK.into()), feature, privilege)
        }
        Feature::PageFaults => {
            open(software(bindings::PERF_COUNT_SW_PAGE_FAULTS.into()), feature, privilege)
        }
        Feature::ContextSwitches => {
            open(software(bindings::PERF_COUNT_SW_CONTEXT_SWITCHES.into()), feature, privilege)
        }
        Feature::Cycles => {
            let kind = (bindings::PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_CPU_CYCLES.into());
            open(Kind::plain(kind), feature, privilege)
        }
        Feature::AllTasks => {
            let kind = software(bindings::PERF_COUNT_SW_CPU_CLOCK.into());
            open(Kind { all_tasks: true, ..kind }, feature, privilege)
        }
        Feature::Cgroups => first_success(CGROUPS, |group| open_cgroup(group, privilege)),
        Feature::Uprobes => {
            // The start of the file, where no code is: it is not put in before something runs there.
            let uprobe = Uprobe::new(Path::new("/proc/self/exe"), FileOffset(0));
            let kind = Kind::plain((bindings::PERF_TYPE_TRACEPOINT, uprobe.number()?));
            open(kind, feature, privilege)
        }
        Feature::Tracepoints => {
            let id = tracepoints::number("sched:sched_switch").map_err(|error| match error {
                TracepointError::NotReadable => io::ErrorKind::PermissionDenied.into(),
                _ => io::Error::from_raw_os_error(nix::libc::ENOENT),
            })?;
            open(Kind::plain((bindings::PERF_TYPE_TRACEPOINT, id)), feature, privilege)
        }
    }
}

/// What is opened: the kernel's type and number.
#[derive(Clone, Copy, Debug)]
struct Kind {
    kind: u32,
    config: u64,
    all_tasks: bool,
}

impl Kind {
    fn plain((kind, config): (u32, u64)) -> Kind {
        Kind { kind, config, all_tasks: false }
    }
}

fn software(config: u64) -> Kind {
    Kind::plain((bindings::PERF_TYPE_SOFTWARE, config))
}

fn open(kind: Kind, feature: Feature, privilege: Privilege) -> io::Result<()> {
    let mut builder = Builder::new().kind(Software::CPU_CLOCK);
    if kind.all_tasks {
        builder = builder.any_pid().one_cpu(0);
    }
    fill(&mut builder, kind, feature, privilege);
    builder.build().map(drop)
}

fn open_cgroup(group: &str, privilege: Privilege) -> io::Result<()> {
    let group = File::open(group)?;
    let mut builder = Builder::new().kind(Software::CPU_CLOCK).observe_cgroup(&group).one_cpu(0);
    let kind = software(bindings::PERF_COUNT_SW_CPU_CLOCK.into());
    fill(&mut builder, kind, Feature::Cgroups, privilege);
    builder.build().map(drop)
}

fn fill(builder: &mut Builder<'_>, kind: Kind, feature: Feature, privilege: Privilege) {
    builder
        .enabled(false)
        .exclude_kernel(privilege == Privilege::User)
        .exclude_user(privilege == Privilege::Kernel)
        .exclude_callchain_kernel(privilege == Privilege::User)
        .exclude_hv(true)
        .context_switch(feature == Feature::SwitchRecords)
        .sample_period(PERIOD)
        .read_format(ReadFormat::empty());
    let mut sample_type = u64::from(bindings::PERF_SAMPLE_CALLCHAIN);
    if feature == Feature::StackCopies {
        builder
            .sample_regs_user(stack_registers())
            .sample_stack_user(u32::try_from(MAX_STACK_COPY.0).unwrap_or(u32::MAX));
        sample_type |= u64::from(bindings::PERF_SAMPLE_REGS_USER);
        sample_type |= u64::from(bindings::PERF_SAMPLE_STACK_USER);
    }
    let attributes = builder.attrs_mut();
    attributes.type_ = kind.kind;
    attributes.config = kind.config;
    attributes.sample_type = sample_type;
    attributes.read_format = if feature == Feature::LostCounts { FORMAT_LOST } else { 0 };
}

/// The stack pointer and the program counter, in perf's numbering.
fn stack_registers() -> u64 {
    let (stack, counter) = if cfg!(target_arch = "aarch64") { (31, 32) } else { (7, 8) };
    1 << stack | 1 << counter
}

/// The first success, or else the error that says most: a refusal, or the first that is not "no such
/// file".
pub(crate) fn first_success<'p, T>(
    paths: impl IntoIterator<Item = &'p str>,
    attempt: impl Fn(&str) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::Error::from_raw_os_error(nix::libc::ENOENT);
    for path in paths {
        match attempt(path) {
            Ok(value) => return Ok(value),
            Err(error) => {
                let refused = error.kind() == io::ErrorKind::PermissionDenied;
                if refused || failure.kind() == io::ErrorKind::NotFound {
                    failure = error;
                }
            }
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_that_says_most_is_kept() {
        let errors = [("a", 2), ("b", 22), ("c", 13), ("d", 9)];
        let paths = errors.map(|(path, _)| path);
        let number = |path: &str| errors.iter().find(|(name, _)| *name == path).unwrap().1;
        let attempt = |path: &str| Err::<(), _>(io::Error::from_raw_os_error(number(path)));
        assert_eq!(first_success(paths, attempt).unwrap_err().raw_os_error(), Some(13));
        let attempt = |path: &str| if path == "b" { Ok(7) } else { Err(io::Error::other("no")) };
        assert_eq!(first_success(paths, attempt).unwrap(), 7);
    }
}
