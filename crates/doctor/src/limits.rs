//! The kernel's limits, held against what a recording with the defaults needs.

use std::fs;
use std::str::FromStr;

use flame_message::{group_thousands, reason};
use flame_profile::{Hz, Tid};
use flame_sampler::{
    Concession, DEFAULT_FREQUENCY, Feature, Privilege, SamplerConfig, SamplerError, Session,
    Target, max_sample_rate, paranoid_level, probe,
};
use flame_unwind::Architecture;
use nix::sys::resource::{Resource, getrlimit};

use crate::check::Check;
use crate::process::Process;
use crate::rights::{by_root, needs_admin};

/// Fewer frames of a kernel stack than this cut ordinary ones.
const KERNEL_FRAMES: u64 = 64;

/// A process with as many threads should be within the limit of open files.
const MANY_THREADS: u64 = 1000;

/// The rings of a recording of flame's own thread, as they came out.
pub(crate) struct Rings(Result<Vec<Concession>, SamplerError>);

impl Rings {
    /// Opens events with their rings, and closes them.
    pub(crate) fn open() -> Rings {
        let own = Tid(nix::unistd::gettid().as_raw().cast_unsigned());
        let mask = Architecture::NATIVE.perf_register_mask();
        let config = SamplerConfig::new(Target::Threads(vec![own]), mask);
        Rings(Session::open(&config).map(|session| session.concessions().to_vec()))
    }

    fn check(&self) -> Check {
        let name = "ring memory";
        match &self.0 {
            Ok(concessions) => {
                let smaller = concessions.iter().find_map(|concession| match concession {
                    Concession::SmallerRing { ring, wanted } => Some((ring.0, wanted.0)),
                    _ => None,
                });
                match smaller {
                    None => Check::ok(name, format!("may be locked ({})", lockable())),
                    Some((ring, wanted)) => Check::limited(
                        name,
                        format!(
                            "{} KiB per CPU instead of {}, samples may be lost ({})",
                            ring / 1024,
                            wanted / 1024,
                            lockable()
                        ),
                    )
                    .fix(mlock_fix(wanted / 1024 + 4)),
                }
            }
            Err(SamplerError::LockedMemory { needed_kb, .. }) => {
                let why = format!("not even the smallest may be locked ({})", lockable());
                Check::missing(name, why).fix(mlock_fix(*needed_kb))
            }
            Err(SamplerError::Io { source, .. }) => Check::missing(name, reason(source)),
            Err(_) => Check::missing(name, "no event can be opened"),
        }
    }
}

fn mlock_fix(kib: u64) -> String {
    by_root(&format!("sysctl kernel.perf_event_mlock_kb={kib}"))
}

fn lockable() -> String {
    let kib: Option<u64> = setting("perf_event_mlock_kb");
    let kib = kib.map_or_else(|| "unknown".to_owned(), |kib| kib.to_string());
    let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((u64::MAX, _)) => "unlimited".to_owned(),
        Ok((soft, _)) => format!("{} KiB", soft / 1024),
        Err(_) => "unknown".to_owned(),
    };
    format!("perf_event_mlock_kb {kib}, RLIMIT_MEMLOCK {limit}")
}

/// The value of `kernel.NAME`.
pub(crate) fn setting<T: FromStr>(name: &str) -> Option<T> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// The checks of all limits.
pub(crate) fn examine(rings: &Rings, target: Option<&Process>) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    checks.extend(paranoid_level().map(paranoid));
    checks.push(rings.check());
    checks.extend(max_sample_rate().map(sample_rate));
    checks.extend(setting("perf_cpu_time_max_percent").map(cpu_time));
    checks.extend(setting("perf_event_max_stack").map(kernel_frames));
    checks.push(open_files(target));
    checks
}

/// Only the setting: what it allows was tried.
fn paranoid(level: i32) -> Check {
    let meaning = match level {
        ..=-1 => "everybody may sample everything",
        0 => "everybody may sample whole CPUs, and the kernel",
        1 => "everybody may sample their own processes, including the kernel",
        3.. if needs_admin() => "only processes with CAP_SYS_ADMIN may sample",
        _ => "everybody may sample user code of their own processes",
    };
    Check::ok("paranoid level", format!("{level}: {meaning}")).optional()
}

fn sample_rate(limit: Hz) -> Check {
    let name = "sampling rate";
    if limit >= DEFAULT_FREQUENCY {
        return Check::ok(name, format!("up to {} Hz", group_thousands(limit.0)));
    }
    let why = format!("up to {} Hz only; the default is {}", limit.0, DEFAULT_FREQUENCY.0);
    Check::limited(name, why).fix(by_root("sysctl kernel.perf_event_max_sample_rate=100000"))
}

fn cpu_time(percent: u64) -> Check {
    let found = match percent {
        0 | 100 => "the kernel does not lower the rate by itself".to_owned(),
        _ => format!("the kernel lowers the rate when sampling takes over {percent} % of a CPU"),
    };
    Check::ok("sampling time", found)
}

fn kernel_frames(frames: u64) -> Check {
    let found = format!("up to {frames} frames");
    if frames >= KERNEL_FRAMES {
        return Check::ok("kernel stack depth", found);
    }
    Check::limited("kernel stack depth", found)
        .fix(by_root("sysctl kernel.perf_event_max_stack=127"))
}

/// Where sampling by CPU is allowed, events do not grow with the threads.
fn open_files(target: Option<&Process>) -> Check {
    let name = "open files";
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(_, hard)| hard);
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let threads = target.map_or(MANY_THREADS, |process| process.threads() as u64);
    let needed = threads.saturating_mul(cpus + 1) + 64;
    let found = format!("{} allowed, {threads} threads take {needed}", group_thousands(limit));
    if needed <= limit {
        return Check::ok(name, found);
    }
    let by_cpu = probe(Feature::AllTasks, Privilege::All).is_ok();
    let check = Check::limited(name, found)
        .fix(format!("{} --nofile=1048576 --pid $$", by_root("prlimit")));
    if by_cpu || target.is_none() { check.optional() } else { check }
}
