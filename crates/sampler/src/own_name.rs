//! What readers are called where what they do themselves must not be counted: the kernel leaves out what has that name,
//! and the thread that empties the rings by its number, since people look for that by its own name.
//!
//! That thread is woken by each sample, too. On the CPU of the target its one system call a sample, if it was counted, would
//! make each Nth call of the target each (N-1)th: that is no prime, and in step with programs that do two or four things in
//! turn. In a PID namespace its number is not the kernel's, and it is counted.
//!
//! It is another one in each recording, since a program that knew it could take it, too.

use std::ffi::CString;
use std::sync::OnceLock;

use nix::unistd::gettid;

/// The name, of 15 bytes at most.
pub(crate) fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("flame-{:08x}", fastrand::u32(..)))
}

/// Takes that name for the calling thread.
pub(crate) fn take_own_name() {
    if let Ok(name) = CString::new(own_name()) {
        let _ = nix::sys::prctl::set_name(&name);
    }
}

/// A filter of the kernel for what others do than readers and the calling thread, which opens the events and empties the rings.
pub(crate) fn by_others() -> String {
    format!("COMM != \"{}\" && common_pid != {}", own_name(), gettid())
}
