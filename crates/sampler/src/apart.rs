//! Threads that can be left behind: what they do is done by a process of its own in the same memory.
//!
//! ```text
//!   thread of flame ── clone(CLONE_VM | CLONE_VFORK) ──▶ process: does the work
//!     │ waits, until a signal kills it                     │ may wait in the kernel for ever
//!     ◀ ────────────────────────────────────────────────── ends
//! ```
//!
//! Memory of a target may be a file on a file system that never answers. Whoever reads it waits then
//! where no signal is heard, and a process does not end before each of its threads has. The thread
//! here does: nothing but the death of flame is needed for that.
//!
//! The process shares the memory, the thread-local values of the thread that waits for it included,
//! and has its own files: those that it is given, so that nobody waits for the end of flame's output.
//!
//! Sources: clone(2), vfork(2); kernel/fork.c (`wait_for_vfork_done` is killable).
#![expect(unsafe_code, reason = "clone")]

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sched::{CloneFlags, clone};
use nix::sys::prctl::set_name;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::spawn::ignore_endings;

/// The stack of such a process, in bytes.
const STACK: usize = 256 << 10;

/// For how many microseconds such a process may run at a stretch where it goes before all others: then the
/// kernel ends it. A reader runs for one in a thousand of that and rests.
const LONGEST_RUN: u64 = 1_000_000;

/// The bit of CAP_SYS_PTRACE (linux/capability.h).
const SYS_PTRACE: u32 = 19;

/// Whether this thread may read the memory of other users' processes. Who may not keeps nobody waiting
/// but itself, and where Yama restricts ptrace it reads that of its descendants only, which those of
/// another process of flame's are not.
pub fn may_read_others() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    effective.is_some_and(|set| set >> SYS_PTRACE & 1 == 1)
}

/// Does `work` in a process of its own with these files, and waits for its end. What is left of the
/// process then has to be fetched ([`fetch`]): at once, its CPU time would count as that of a program
/// that flame has launched.
///
/// # Errors
/// There is no room for another process.
pub(crate) fn run_apart(files: &[RawFd], mut work: impl FnMut()) -> io::Result<()> {
    let mut stack = vec![0; STACK];
    let child = || {
        let _ = set_name(c"flame");
        ignore_endings();
        close_all_but(files);
        let _ = setrlimit(Resource::RLIMIT_RTTIME, LONGEST_RUN, LONGEST_RUN);
        let _ = catch_unwind(AssertUnwindSafe(&mut work));
        0
    };
    let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
    // SAFETY: the calling thread waits in the kernel until the child has ended or flame has, so its
    // stack with `work` and `files`, and its thread-local values, are the child's alone; memory stays
    // as long as one of them lives. Panics do not leave the child.
    unsafe { clone(Box::new(child), &mut stack, flags, None) }?;
    Ok(())
}

/// Fetches what is left of such a process, if it has ended.
pub(crate) fn fetch(process: Pid) {
    // It may have been a thread.
    let _ = waitpid(process, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG));
}

/// Closes what is this process's, and leaves it open for flame.
fn close_all_but(files: &[RawFd]) {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = open.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    let others: Vec<RawFd> = numbers.filter(|number| !files.contains(number)).collect();
    for number in others {
        // One of them was the directory's.
        let _ = nix::unistd::close(number);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::realtime;

    #[test]
    fn work_has_the_memory_and_the_files_that_it_is_given() {
        let (first, second) = (fs::File::open("/").unwrap(), fs::File::open("/").unwrap());
        let (mut pid, mut open) = (0, [true; 2]);
        let own = std::process::id();
        run_apart(&[first.as_raw_fd()], || {
            pid = std::process::id();
            open = [&first, &second].map(|file| file.metadata().is_ok());
        })
        .unwrap();
        assert!(pid != 0 && pid != own);
        let is_there = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok();
        assert!(is_there());
        // Its memory is given back a moment before it has ended.
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_there() && Instant::now() < deadline {
            fetch(Pid::from_raw(pid as i32));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_there());
        assert_eq!(open, [true, false]);
        assert!(second.metadata().is_ok());
    }

    /// Real-time work that does not rest would keep its CPU from everybody.
    #[test]
    fn work_that_never_rests_is_ended() {
        let mut entered = true;
        run_apart(&[], || {
            if realtime::enter().is_ok() {
                loop {
                    std::hint::spin_loop();
                }
            }
            entered = false;
        })
        .unwrap();
        if !entered {
            eprintln!("SKIP: no real-time class");
        }
    }

    #[test]
    fn a_panic_ends_the_work_alone() {
        let mut begun = false;
        run_apart(&[], || {
            begun = true;
            std::panic::resume_unwind(Box::new(()));
        })
        .unwrap();
        assert!(begun);
    }
}
