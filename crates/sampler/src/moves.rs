//! Whether a thread that waits for a reader's CPU has been taken to another one, where it goes on.
//!
//! The scheduler moves a thread that was preempted where another CPU has nothing to do, though hardly one
//! that ran just now: what it had in its caches would be lost.
//!
//! Source: proc_pid_stat(5), `processor`.

use std::fs::File;
use std::io::{Cursor, Read, Write};

use flame_profile::{Cpu, Nanos, Pid, Tid};

/// A sampled thread stays on its CPU for longer than that: the scheduler's own limit is 500 us
/// (`migration_cost_ns`). A blocked one may be woken anywhere at any time.
pub(crate) const STAYS: Nanos = Nanos(200_000);

/// Which of the words behind the name has the CPU.
const PROCESSOR: usize = 36;

/// Both numbers have 10 digits at most.
const LONGEST_PATH: usize = 64;

/// All 52 numbers of a thread, of 20 digits at most, and its name.
const LONGEST: usize = 1200;

/// Whether a thread belongs to another CPU now, or has ended.
pub(crate) fn is_elsewhere(pid: Pid, tid: Tid, cpu: Cpu) -> bool {
    cpu_of(pid, tid) != Some(cpu)
}

fn cpu_of(pid: Pid, tid: Tid) -> Option<Cpu> {
    let (mut path, mut text) = (Cursor::new([0; LONGEST_PATH]), [0; LONGEST]);
    write!(path, "/proc/{}/task/{}/stat", pid.0, tid.0).ok()?;
    let written = path.get_ref().get(..usize::try_from(path.position()).ok()?)?;
    let path = std::str::from_utf8(written).ok()?;
    let len = File::open(path).and_then(|mut file| file.read(&mut text)).ok()?;
    // The name may hold brackets and anything else.
    let name_end = text.get(..len)?.iter().rposition(|byte| *byte == b')')?;
    let words = std::str::from_utf8(text.get(name_end + 1..len)?).ok()?;
    words.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok().map(Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::{getpid, gettid};

    #[test]
    fn a_thread_is_on_the_cpu_that_it_is_bound_to() {
        let (pid, all) = (Pid(getpid().as_raw() as u32), sched_getaffinity(getpid()).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = Tid(gettid().as_raw() as u32);
                for cpu in (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap()) {
                    let mut here = CpuSet::new();
                    here.set(cpu).unwrap();
                    sched_setaffinity(gettid(), &here).unwrap();
                    let cpu = cpu as u32;
                    assert!(
                        !is_elsewhere(pid, own, Cpu(cpu)) && is_elsewhere(pid, own, Cpu(cpu + 1))
                    );
                }
            });
        });
        assert!(is_elsewhere(pid, Tid(u32::MAX), Cpu(0)));
    }
}
