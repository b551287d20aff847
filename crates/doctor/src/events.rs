//! Which events can be had: each is opened.

use std::fs;
use std::io;
use std::path::Path;

use flame_sampler::{Feature, Privilege, probe};
use nix::errno::Errno;

use crate::check::Check;
use crate::rights::{by_root, paranoid_fix, why_refused};
use flame_message::reason;

/// How much of an event works.
enum Answer {
    /// For kernel and user code.
    All,
    /// For user code only.
    User,
    No(io::Error),
}

fn ask(feature: Feature) -> Answer {
    match probe(feature, Privilege::All) {
        Ok(()) => Answer::All,
        Err(error) if is_refusal(&error) => match probe(feature, Privilege::User) {
            Ok(()) => Answer::User,
            Err(error) => Answer::No(error),
        },
        Err(error) => Answer::No(error),
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The checks of all events.
pub(crate) fn examine() -> Vec<Check> {
    let clock = ask(Feature::CpuClock);
    let mut checks = vec![cpu_clock(&clock), kernel_stacks(&clock), stack_copies()];
    checks.push(cycles());
    checks.push(plain("task-clock", Feature::TaskClock, "CPU time, to compare samples with"));
    checks.push(plain("page-faults", Feature::PageFaults, "where memory is first touched"));
    checks.push(context_switches());
    checks.push(plain("switch records", Feature::SwitchRecords, "when a thread leaves its CPU"));
    checks.push(all_tasks());
    checks.push(cgroups());
    checks.push(tracepoints());
    checks.push(uprobes());
    checks.push(lost_counts());
    checks
}

fn cpu_clock(clock: &Answer) -> Check {
    match clock {
        Answer::All => Check::ok("cpu-clock", "samples by CPU time, user and kernel code"),
        Answer::User => Check::ok("cpu-clock", "samples by CPU time, user code only"),
        Answer::No(error) => refused("cpu-clock", error, 2),
    }
}

fn kernel_stacks(clock: &Answer) -> Check {
    let name = "kernel stacks";
    match clock {
        Answer::All => Check::ok(name, "recorded with each sample"),
        Answer::User => Check::missing(name, why_refused(1)).fix(paranoid_fix(1)),
        Answer::No(_) => Check::missing(name, "no event can be opened at all").fix(paranoid_fix(1)),
    }
}

fn stack_copies() -> Check {
    match ask(Feature::StackCopies) {
        Answer::No(error) => refused("user stacks", &error, 2),
        _ => Check::ok("user stacks", "registers and up to 65,528 bytes of stack with each sample"),
    }
}

fn cycles() -> Check {
    match ask(Feature::Cycles) {
        Answer::All => Check::ok("cycles (PMU)", "hardware counters, user and kernel code"),
        Answer::User => Check::ok("cycles (PMU)", "hardware counters, user code only"),
        Answer::No(error) if is_refusal(&error) => refused("cycles (PMU)", &error, 2).optional(),
        Answer::No(_) => {
            let why = "no hardware counters, as in most virtual machines: cpu-clock is sampled";
            Check::missing("cycles (PMU)", why).optional()
        }
    }
}

/// An event that works for user code alone as well.
fn plain(name: &str, feature: Feature, what: &str) -> Check {
    match ask(feature) {
        Answer::All => Check::ok(name, what),
        Answer::User => Check::ok(name, format!("{what}, user code only")),
        Answer::No(error) => refused(name, &error, 2).optional(),
    }
}

/// They happen in the kernel: restricted to user code there are none.
fn context_switches() -> Check {
    let name = "context-switches";
    match probe(Feature::ContextSwitches, Privilege::All) {
        Ok(()) => Check::ok(name, "where threads wait"),
        Err(error) => refused(name, &error, 1).optional(),
    }
}

fn all_tasks() -> Check {
    match probe(Feature::AllTasks, Privilege::All) {
        Ok(()) => Check::ok("by CPU (-a)", "even tasks shorter than a sampling period are seen"),
        Err(error) if is_refusal(&error) => {
            let why =
                format!("{}. Tasks shorter than a sampling period are not seen", why_refused(0));
            Check::missing("by CPU (-a)", why).fix(paranoid_fix(0)).optional()
        }
        Err(error) => refused("by CPU (-a)", &error, 0).optional(),
    }
}

fn cgroups() -> Check {
    match probe(Feature::Cgroups, Privilege::All) {
        Ok(()) => Check::ok("control groups", "one container can be sampled"),
        Err(error) if is_refusal(&error) => refused("control groups", &error, 0).optional(),
        Err(_) => {
            let mount = "mount -t cgroup -o perf_event,x-mount.mkdir perf_event \
                         /sys/fs/cgroup/perf_event";
            Check::missing("control groups", "no hierarchy with perf_event is mounted")
                .fix(by_root(mount))
                .optional()
        }
    }
}

fn tracepoints() -> Check {
    let check = match probe(Feature::Tracepoints, Privilege::All) {
        Ok(()) => Check::ok("tracepoints", "through tracefs"),
        Err(_) if !Path::new("/sys/kernel/tracing/events").exists() && !is_hidden() => {
            Check::missing("tracepoints", "tracefs is not mounted")
                .fix(by_root("mount -t tracefs tracefs /sys/kernel/tracing"))
        }
        Err(_) if is_hidden() => Check::missing("tracepoints", "you may not read tracefs")
            .fix(by_root("mount -o remount,mode=0755 /sys/kernel/tracing")),
        Err(error) => refused("tracepoints", &error, 1),
    };
    check.optional()
}

/// Whether tracefs is there for others only.
fn is_hidden() -> bool {
    fs::read_dir("/sys/kernel/tracing").is_err_and(|error| is_refusal(&error))
}

fn uprobes() -> Check {
    let check = match probe(Feature::Uprobes, Privilege::All) {
        Ok(()) => Check::ok("uprobes", "function calls, and memory requested from malloc"),
        Err(error) if is_refusal(&error) => {
            Check::missing("uprobes", "only root may set them").fix(by_root("flame record"))
        }
        Err(error) => refused("uprobes", &error, 1),
    };
    check.optional()
}

fn lost_counts() -> Check {
    let name = "lost records";
    match ask(Feature::LostCounts) {
        Answer::No(error) if is_refusal(&error) => refused(name, &error, 2).optional(),
        Answer::No(_) => {
            let why = "this kernel (before 6.0) does not count those lost at the end";
            Check::limited(name, why).optional()
        }
        _ => Check::ok(name, "all are counted"),
    }
}

/// An event that the kernel does not open, and the highest perf_event_paranoid that allows it.
pub(crate) fn refused(name: &str, error: &io::Error, level: i32) -> Check {
    match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
        // The kernel's own check says EACCES; EPERM is what filters of containers say.
        Errno::EPERM if is_filtered() => {
            let why = "a seccomp filter, as used by containers, forbids perf_event_open";
            let fix = "docker run --security-opt seccomp=unconfined --cap-add PERFMON ...";
            Check::missing(name, why).fix(fix)
        }
        Errno::EACCES | Errno::EPERM => {
            Check::missing(name, why_refused(level)).fix(paranoid_fix(level))
        }
        Errno::ENOSYS => {
            Check::missing(name, "this kernel has no perf events (CONFIG_PERF_EVENTS)")
        }
        _ => Check::missing(name, reason(error)),
    }
}

fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    lines.any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}
