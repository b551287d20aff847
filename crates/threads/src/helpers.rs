//! The threads that help.

use std::sync::OnceLock;
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// More threads than this wait for memory, not for cores.
const MAX_THREADS: usize = 8;
/// The calling thread.
const THIS: Pid = Pid::from_raw(0);

/// How many threads can run at once, the calling one included; at least 1. Quotas of CPU time do
/// not count: they are about longer times than anything takes here.
pub fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let Ok(cpus) = sched_getaffinity(THIS) else { return 1 };
        let number = (0..CpuSet::count()).filter(|cpu| cpus.is_set(*cpu) == Ok(true)).count();
        number.clamp(1, MAX_THREADS)
    })
}

/// Starts the threads before there is work for them, unless they run already: they are ready then
/// when it comes.
pub fn start() {
    let _ = helpers();
}

/// The threads besides the calling one; `None` where there is one CPU only, or when the system
/// gives no thread.
pub(crate) fn helpers() -> Option<&'static ThreadPool> {
    static HELPERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    HELPERS.get_or_init(new_helpers).as_ref()
}

fn new_helpers() -> Option<ThreadPool> {
    let number = count() - 1;
    if number == 0 {
        return None;
    }
    let here = sched_getcpu().ok();
    let builder = ThreadPoolBuilder::new().num_threads(number);
    let builder = builder.thread_name(|number| format!("flame-{number}"));
    let pool = builder.start_handler(move |_| leave(here)).build().ok()?;
    // Those that were put on this CPU get it now, to leave it.
    thread::yield_now();
    Some(pool)
}

/// Moves the calling thread away from a CPU if it runs on it, and lets it run anywhere again.
///
/// What fails does no harm: it is a hint, and there may be no other CPU that flame may use.
fn leave(cpu: Option<usize>) {
    let Some(cpu) = cpu.filter(|cpu| sched_getcpu() == Ok(*cpu)) else { return };
    let Ok(all) = sched_getaffinity(THIS) else { return };
    let mut others = all;
    if others.unset(cpu).is_ok() && sched_setaffinity(THIS, &others).is_ok() {
        let _ = sched_setaffinity(THIS, &all);
    }
}
