//! Functions of programs and libraries as events (uprobes): each call of one is an occurrence.
//!
//! The kernel puts a breakpoint into the memory of the processes that are recorded, and of no others.
//!
//! Sources: perf_event_open(2); `kernel/trace/trace_event_perf.c` and `kernel/events/uprobes.c` of Linux.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flame_profile::FileOffset;
use nix::errno::Errno;

/// Where the kernel says which type of event they are.
const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Where the code of a function starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uprobe {
    path: CString,
    offset: FileOffset,
}

impl Uprobe {
    pub(crate) fn new(path: &Path, offset: FileOffset) -> io::Result<Uprobe> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
        Ok(Uprobe { path, offset })
    }

    /// The two words of the event's attributes: where the name of the file stands in memory, which the
    /// kernel reads when the event is opened, and the place in it.
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.path.as_ptr() as u64, self.offset.0]
    }
}

/// The kernel's number for this type of event.
pub(crate) fn kind() -> io::Result<u32> {
    let text = fs::read_to_string(TYPE)?;
    text.trim().parse().map_err(|_| Errno::ENODEV.into())
}
