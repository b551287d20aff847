//! On which CPUs sampled threads are, and whether they ran meanwhile.
//!
//! A thread waits for the CPU while a reader of its stack runs there, unless the scheduler moves it to
//! another CPU that has nothing to do: there it goes on. Of stacks that took 0.3 ms to be read beside an idle
//! CPU 1.4 % had been moved. It may even be back when it is looked for: of a thread that goes from one CPU to the other every
//! ten microseconds, one stack in 1,400 was of two moments, and two were not whole.
//!
//! Source: proc_pid_stat(5), `processor`, which takes 6 us; /proc/PID/task/TID/schedstat, 2 us: for how long a thread has
//! run, known again whenever it leaves a CPU, and how often it got one (Documentation/scheduler/sched-stats.rst).

use std::fs::File;
use std::io::{Cursor, Write};
use std::os::unix::fs::FileExt;

use flame_profile::{Cpu, Nanos, Pid, Tid};

use crate::schedstat::{self, Schedstat};

/// How many threads' files are kept open; to open one takes twice as long as to read it.
const FILES: usize = 32;

/// Both numbers have 10 digits at most.
const LONGEST_PATH: usize = 64;

/// Which of the words behind the name has the CPU.
const PROCESSOR: usize = 36;

/// All 52 numbers of a thread, of 20 digits at most, and its name.
const LONGEST: usize = 1200;

/// How long a thread has run, and how often it got a CPU; nothing where the kernel does not count that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs(Option<Schedstat>);

/// Says where threads are.
#[derive(Debug)]
pub(crate) struct Places {
    files: Box<[Option<Files>]>,
}

/// What the kernel says of a thread.
#[derive(Debug)]
struct Files {
    of: Tid,
    stat: File,
    runs: Option<File>,
}

impl Default for Places {
    fn default() -> Places {
        Places { files: (0..FILES).map(|_| None).collect() }
    }
}

impl Places {
    /// Whether a thread runs on a CPU, or waits there. One that has ended does not.
    pub(crate) fn is_on(&mut self, cpu: Cpu, pid: Pid, tid: Tid) -> bool {
        self.cpu_of(pid, tid) == Some(cpu)
    }

    /// What it has run so far: the same as before, if it did not run in between or still does.
    pub(crate) fn runs_of(&mut self, pid: Pid, tid: Tid) -> Runs {
        Runs(self.read(pid, tid, |files| read_runs(files.runs.as_ref()?)))
    }

    fn cpu_of(&mut self, pid: Pid, tid: Tid) -> Option<Cpu> {
        self.read(pid, tid, |files| read(&files.stat))
    }

    fn read<T>(&mut self, pid: Pid, tid: Tid, read: impl Fn(&Files) -> Option<T>) -> Option<T> {
        let kept = self.files.get_mut(tid.0 as usize % FILES)?;
        // Those of a thread that has ended cannot be read any more, whoever has its number now.
        let same = kept.as_ref().filter(|files| files.of == tid);
        if let Some(found) = same.and_then(&read) {
            return Some(found);
        }
        let stat = open(pid, tid, "stat")?;
        let files = kept.insert(Files { of: tid, stat, runs: open(pid, tid, "schedstat") });
        read(files)
    }
}

/// Opens what /proc says of a thread, without asking for memory.
pub(crate) fn open(pid: Pid, tid: Tid, name: &str) -> Option<File> {
    let mut path = Cursor::new([0; LONGEST_PATH]);
    write!(path, "/proc/{}/task/{}/{name}", pid.0, tid.0).ok()?;
    let written = path.get_ref().get(..usize::try_from(path.position()).ok()?)?;
    File::open(std::str::from_utf8(written).ok()?).ok()
}

fn read(file: &File) -> Option<Cpu> {
    let mut text = [0; LONGEST];
    let len = file.read_at(&mut text, 0).ok()?;
    // The name may hold brackets and anything else.
    let name_end = text.get(..len)?.iter().rposition(|byte| *byte == b')')?;
    let words = std::str::from_utf8(text.get(name_end + 1..len)?).ok()?;
    words.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok().map(Cpu)
}

fn read_runs(file: &File) -> Option<Schedstat> {
    let mut text = [0; schedstat::LONGEST];
    let len = file.read_at(&mut text, 0).ok()?;
    // How long it waits for its CPU goes on while it is read.
    Schedstat::parse(text.get(..len)?).map(|stat| Schedstat { waited: Nanos(0), ..stat })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::{getpid, gettid};

    #[test]
    fn a_thread_is_on_the_cpu_that_it_is_bound_to() {
        let (pid, all) = (Pid(getpid().as_raw() as u32), sched_getaffinity(getpid()).unwrap());
        let mut places = Places::default();
        let cpus = || (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap());
        let ended = std::thread::scope(|scope| {
            let bound = scope.spawn(|| {
                let own = Tid(gettid().as_raw() as u32);
                for cpu in cpus().chain(cpus()) {
                    let mut here = CpuSet::new();
                    here.set(cpu).unwrap();
                    sched_setaffinity(gettid(), &here).unwrap();
                    assert_eq!(places.cpu_of(pid, own), Some(Cpu(cpu as u32)));
                }
                own
            });
            bound.join().unwrap()
        });
        // It ends a moment behind its last word.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while places.cpu_of(pid, ended).is_some() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(places.cpu_of(pid, ended), None);
    }

    /// Where the kernel counts it, as most do.
    #[test]
    fn who_ran_meanwhile_has_run_more_and_who_did_not_has_not() {
        let (pid, mut places) = (Pid(getpid().as_raw() as u32), Places::default());
        let (say, own) = std::sync::mpsc::channel();
        let (wake, woken) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                say.send(Tid(gettid().as_raw() as u32)).unwrap();
                woken.recv().unwrap();
                say.send(Tid(0)).unwrap();
                woken.recv().unwrap();
            });
            let tid = own.recv().unwrap();
            let waits = |places: &mut Places| {
                let mut before = places.runs_of(pid, tid);
                // It may still be on its way to wait.
                loop {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    let now = places.runs_of(pid, tid);
                    if std::mem::replace(&mut before, now) == now {
                        return now;
                    }
                }
            };
            let first = waits(&mut places);
            wake.send(()).unwrap();
            own.recv().unwrap();
            let second = waits(&mut places);
            assert!(first != second || first == Runs(None), "{first:?}");
            wake.send(()).unwrap();
        });
    }
}
