//! Scheduling classes: a reader goes before everything that did not ask to be real-time.
//!
//! Sources: sched(7), sched_setscheduler(2).
#![expect(unsafe_code, reason = "nix has no call for scheduling classes")]

use std::io;

use flame_profile::Tid;
use nix::libc;

/// The lowest of the real-time priorities: ahead of every task of the normal classes, behind every
/// real-time one.
const LOWEST: i32 = 1;

/// The shortest turn that the kernel takes, in nanoseconds.
const SHORT_TURN: u64 = 100_000;

/// Puts this thread into the real-time class. What it starts is not in it.
///
/// # Errors
/// CAP_SYS_NICE and RLIMIT_RTPRIO say who may, and a control group may have no time for that class.
pub(crate) fn enter() -> io::Result<()> {
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = LOWEST;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the kernel only reads the parameters.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has this thread of the normal class go soon before others of it, as far as that is fair: it asks for a short turn,
/// which the kernel gives sooner (since 6.12).
pub(crate) fn hurry() {
    // SAFETY: a structure of numbers, for which zero is a value: the normal class.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    attributes.sched_runtime = SHORT_TURN;
    // SAFETY: a system call that takes numbers; 0 is the calling thread.
    attributes.sched_nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: 0 is the calling thread, and the kernel only reads the attributes.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    tracing::debug!(set, "a short turn");
}

/// Whether this process may have readers that run before what they look at.
pub fn may_go_first() -> bool {
    let tried = std::thread::spawn(|| enter().is_ok()).join();
    tried.unwrap_or(false)
}

/// Whether a thread may run before a reader does. One that has ended may not.
pub(crate) fn is_ahead(tid: Tid) -> bool {
    let Ok(tid) = libc::pid_t::try_from(tid.0) else { return false };
    // SAFETY: a system call that takes a number.
    let policy = unsafe { libc::sched_getscheduler(tid) } & !libc::SCHED_RESET_ON_FORK;
    matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_normal_class_is_not_ahead() {
        assert!(!is_ahead(Tid(nix::unistd::gettid().as_raw() as u32)));
        assert!(!is_ahead(Tid(u32::MAX)));
    }

    /// Where the kernel lets it, as it does root.
    #[test]
    fn a_reader_is_ahead_and_what_it_starts_is_not() {
        let own = || Tid(nix::unistd::gettid().as_raw() as u32);
        let reader = std::thread::spawn(move || {
            let entered = enter().is_ok();
            assert_eq!(is_ahead(own()), entered);
            std::thread::spawn(move || is_ahead(own())).join().unwrap()
        });
        assert!(!reader.join().unwrap());
    }
}
