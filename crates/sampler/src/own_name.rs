//! What readers are called where what they do themselves must not be counted: the kernel leaves out what has that name.
//!
//! It is another one in each recording, since a program that knew it could take it, too.

use std::ffi::CString;
use std::sync::OnceLock;

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

/// A filter of the kernel for what others do.
pub(crate) fn by_others() -> String {
    format!("COMM != \"{}\"", own_name())
}
