//! One open perf_event: the system calls on its descriptor.
//!
//! perf-event builds the attributes and opens; it leaves the close-on-exec flag off and knows
//! nothing of output redirection, both are done here.
#![expect(unsafe_code, reason = "perf_event ioctls take a descriptor by number and raw arguments")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use perf_event::Builder;
use perf_event_open_sys::ioctls;

/// An open event. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Descriptor(File);

impl Descriptor {
    /// Opens the event that `builder` describes; it is not inherited by programs that flame runs.
    pub(crate) fn open(builder: Builder<'_>) -> io::Result<Descriptor> {
        let counter = builder.build()?;
        // SAFETY: the counter gives up its descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) };
        fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok(Descriptor(File::from(fd)))
    }

    /// Starts counting.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event, and the request takes no pointer.
        check(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    /// Stops counting.
    pub(crate) fn disable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event, and the request takes no pointer.
        check(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }

    /// Sets what lies between two samples: nanoseconds for clocks, occurrences else, a frequency for
    /// events that were opened with one. A clock's interval begins anew at once.
    pub(crate) fn set_period(&self, period: u64) -> io::Result<()> {
        // The binding takes a number; what the kernel takes is where the number stands.
        let address = (&raw const period).expose_provenance() as u64;
        // SAFETY: the descriptor is an open perf event, and the kernel only reads the eight bytes
        // at that address, which live until the call is over.
        check(unsafe { ioctls::PERIOD(self.0.as_raw_fd(), address) })
    }

    /// Only occurrences of a tracepoint for which the filter holds are counted and sampled.
    ///
    /// # Errors
    /// EINVAL where the kernel does not understand it, or the event takes none.
    pub(crate) fn set_filter(&self, filter: &str) -> io::Result<()> {
        let mut text = CString::new(filter)?.into_bytes_with_nul();
        // SAFETY: the descriptor is an open perf event, and the kernel copies the text up to its end.
        check(unsafe { ioctls::SET_FILTER(self.0.as_raw_fd(), text.as_mut_ptr().cast()) })
    }

    /// Lets this event write into the ring of `other`, which must be of the same CPU.
    pub(crate) fn redirect_to(&self, other: &Descriptor) -> io::Result<()> {
        // SAFETY: both descriptors are open perf events; the request takes one by number.
        check(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) })
    }

    /// What `read` gives: the count, then what the event's read_format names, in its order.
    pub(crate) fn read<const WORDS: usize>(&self) -> io::Result<[u64; WORDS]> {
        let mut words = [0; WORDS];
        let mut bytes = vec![0; WORDS * 8];
        (&self.0).read_exact(&mut bytes)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight bytes"));
        }
        Ok(words)
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
