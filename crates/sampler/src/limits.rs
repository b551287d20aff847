//! The kernel's limits and settings that decide what can be sampled.

use std::fs;

use flame_profile::Hz;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{SysconfVar, sysconf};

fn setting<T: std::str::FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// kernel.perf_event_paranoid: -1 allows all to everybody, 2 (the default) user code of one's own
/// processes only. `None` on a kernel without perf events.
pub fn paranoid_level() -> Option<i32> {
    setting("/proc/sys/kernel/perf_event_paranoid")
}

/// kernel.perf_event_max_sample_rate. The kernel lowers it by itself when sampling takes too long.
pub fn max_sample_rate() -> Option<Hz> {
    setting("/proc/sys/kernel/perf_event_max_sample_rate").map(Hz)
}

/// kernel.kptr_restrict: from 1 on kernel addresses are hidden from ordinary users.
pub fn kptr_restrict() -> Option<i32> {
    setting("/proc/sys/kernel/kptr_restrict")
}

/// kernel.perf_event_mlock_kb: kibibytes of ring a CPU that a user may lock.
pub(crate) fn mlock_kb() -> Option<u64> {
    setting("/proc/sys/kernel/perf_event_mlock_kb")
}

/// Bytes of memory that the machine has.
pub(crate) fn memory() -> Option<u64> {
    let of = |variable| u64::try_from(sysconf(variable).ok()??).ok();
    Some(of(SysconfVar::_PHYS_PAGES)? * of(SysconfVar::PAGE_SIZE)?)
}

/// Raises the number of descriptors that may be open to what the hard limit allows, and returns
/// it: events take one descriptor a thread and CPU.
pub(crate) fn raise_open_files() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_err() {
        return soft;
    }
    hard
}
