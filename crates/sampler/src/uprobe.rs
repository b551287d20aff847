//! Functions of programs and libraries as events (uprobes): each call of one is an occurrence.
//!
//! The kernel puts a breakpoint into the memory of the processes that are recorded, and of no others.
//!
//! They are tracepoints of flame's own, in tracefs, and not the events of the type `uprobe`: the kernel reads
//! the file's name of those from memory, and once more for each task that inherits them, from the memory of
//! who starts it. It is not there: fork and pthread_create of the target failed with EFAULT.
//!
//! Sources: perf_event_open(2); `kernel/trace/trace_event_perf.c`, `kernel/trace/trace_uprobe.c` and
//! `kernel/events/uprobes.c` of Linux; Documentation/trace/uprobetracer.rst.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flame_profile::FileOffset;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::probe::first_success;
use crate::tracepoints::TRACEFS;

/// The group of flame's tracepoints.
const GROUP: &str = "flame";

/// The first arguments of a function as fields, which filters choose by.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: &str = " arg1=%di:u64 arg2=%si:u64 arg3=%dx:u64";
#[cfg(target_arch = "aarch64")]
const ARGUMENTS: &str = " arg1=%x0:u64 arg2=%x1:u64 arg3=%x2:u64";

/// Numbers of those of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Where the code of a function starts.
#[derive(Clone, Debug)]
pub(crate) struct Uprobe {
    path: PathBuf,
    offset: FileOffset,
    is_return: bool,
    /// Its tracepoint, which is made when it is first asked for and goes with the last copy.
    tracepoint: Arc<Mutex<Option<Tracepoint>>>,
}

impl PartialEq for Uprobe {
    fn eq(&self, other: &Uprobe) -> bool {
        let of = |it: &Uprobe| (it.path.clone(), it.offset, it.is_return);
        of(self) == of(other)
    }
}

impl Eq for Uprobe {}

impl Uprobe {
    pub(crate) fn new(path: &Path, offset: FileOffset) -> Uprobe {
        let path = path.to_owned();
        Uprobe { path, offset, is_return: false, tracepoint: Arc::default() }
    }

    /// The same function where it returns.
    pub(crate) fn at_return(self) -> Uprobe {
        Uprobe { is_return: true, tracepoint: Arc::default(), ..self }
    }

    /// The kernel's number for its tracepoint.
    pub(crate) fn number(&self) -> io::Result<u64> {
        let mut made = self.tracepoint.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            *made = Some(Tracepoint::make(&self.path, self.offset, self.is_return)?);
        }
        made.as_ref().map(|tracepoint| tracepoint.number).ok_or_else(|| Errno::ENOENT.into())
    }
}

/// A tracepoint of flame's own.
#[derive(Debug)]
struct Tracepoint {
    tracefs: PathBuf,
    name: String,
    number: u64,
}

impl Tracepoint {
    fn make(path: &Path, offset: FileOffset, is_return: bool) -> io::Result<Tracepoint> {
        // tracefs takes no name with blanks in it.
        let file = OpenOptions::new().read(true).custom_flags(OFlag::O_PATH.bits()).open(path)?;
        let (file, offset) = (file.as_raw_fd(), offset.0);
        let kind = if is_return { 'r' } else { 'p' };
        let tracefs =
            first_success(TRACEFS, |tracefs| all(Path::new(tracefs)).map(|_| tracefs.to_owned()))?;
        let tracefs = PathBuf::from(tracefs);
        remove_left(&tracefs);
        let name = format!("f{}_{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let fields = if is_return { "" } else { ARGUMENTS };
        let line = format!("{kind}:{GROUP}/{name} /proc/self/fd/{file}:{offset:#x}{fields}\n");
        all(&tracefs)?.write_all(line.as_bytes())?;
        let mut made = Tracepoint { tracefs, name, number: 0 };
        let text = fs::read_to_string(
            made.tracefs.join("events").join(GROUP).join(&made.name).join("id"),
        )?;
        made.number = text.trim().parse().map_err(|_| Errno::ENODEV)?;
        Ok(made)
    }
}

impl Drop for Tracepoint {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.tracefs, &self.name) {
            // Events of it are open still: the next recording removes it.
            tracing::debug!(name = self.name, %error, "a tracepoint is left");
        }
    }
}

/// The list of such tracepoints, to which lines are written.
fn all(tracefs: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(tracefs.join("uprobe_events"))
}

fn remove(tracefs: &Path, name: &str) -> io::Result<()> {
    all(tracefs)?.write_all(format!("-:{GROUP}/{name}\n").as_bytes())
}

/// Removes what recordings have left that were killed.
fn remove_left(tracefs: &Path) {
    let text = fs::read_to_string(tracefs.join("uprobe_events")).unwrap_or_default();
    let names = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.strip_prefix(GROUP)?.strip_prefix('/')?.split(' ').next()
    });
    let is_left = |name: &&str| {
        let pid = name.strip_prefix('f').and_then(|name| name.split('_').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    names.filter(is_left).for_each(|name| drop(remove(tracefs, name)));
}
