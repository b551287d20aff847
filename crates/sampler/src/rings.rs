//! One ring a CPU, which all events of that CPU write into.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use flame_profile::{ByteLen, Cpu};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::descriptor::Descriptor;
use crate::error::SamplerError;
use crate::limits;
use crate::ring::Ring;

/// How long to wait at most when a CPU's ring cannot be watched, because the task of the event that
/// owns it has ended: at 999 Hz and the largest stack copy a ring takes 100 ms to fill.
const UNWATCHED_PAUSE: Duration = Duration::from_millis(20);

/// The rings of all CPUs, in the order in which the CPUs were added.
#[derive(Debug)]
pub(crate) struct Rings {
    /// The event of each CPU that owns its ring.
    anchors: Vec<Anchor>,
    rings: Vec<Ring>,
    /// Bytes of each.
    size: usize,
}

#[derive(Debug)]
struct Anchor {
    cpu: Cpu,
    event: Arc<Descriptor>,
    /// Its task has ended, or its CPU: polling it would return at once for ever.
    hung_up: bool,
}

impl AsFd for Anchor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Rings {
    /// No ring yet; each will have `size` bytes, a power of two.
    pub(crate) fn new(size: usize) -> Rings {
        Rings { anchors: Vec::new(), rings: Vec::new(), size }
    }

    /// Bytes of each ring.
    pub(crate) fn ring_len(&self) -> ByteLen {
        ByteLen(self.size as u64)
    }

    /// Gives an event of a CPU its place: the first owns the CPU's ring and stays here, another
    /// writes into it and is given back.
    pub(crate) fn add(
        &mut self,
        event: Arc<Descriptor>,
        cpu: Cpu,
    ) -> Result<Option<Arc<Descriptor>>, SamplerError> {
        let Some(anchor) = self.anchors.iter().find(|anchor| anchor.cpu == cpu) else {
            self.add_anchor(event, cpu)?;
            return Ok(None);
        };
        let shared = event.redirect_to(&anchor.event);
        shared.map_err(|source| SamplerError::Io { doing: "share a ring".to_owned(), source })?;
        Ok(Some(event))
    }

    fn add_anchor(&mut self, event: Arc<Descriptor>, cpu: Cpu) -> Result<(), SamplerError> {
        let ring = Ring::map(&event, self.size).map_err(|source| {
            match Errno::from_raw(source.raw_os_error().unwrap_or(0)) {
                Errno::EPERM | Errno::ENOMEM => SamplerError::LockedMemory {
                    ring: self.ring_len(),
                    mlock_kb: limits::mlock_kb(),
                    needed_kb: 0,
                },
                _ => SamplerError::Io { doing: "map a ring".to_owned(), source },
            }
        })?;
        self.rings.push(ring);
        self.anchors.push(Anchor { cpu, event, hung_up: false });
        Ok(())
    }

    /// The position of a CPU's ring.
    pub(crate) fn position(&self, cpu: Cpu) -> Option<usize> {
        self.anchors.iter().position(|anchor| anchor.cpu == cpu)
    }

    /// The CPUs, in the order of their rings.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.anchors.iter().map(|anchor| anchor.cpu)
    }

    /// The events that own the rings.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Descriptor> {
        self.anchors.iter().map(|anchor| anchor.event.as_ref())
    }

    /// The rings themselves.
    pub(crate) fn queues(&mut self) -> &mut [Ring] {
        &mut self.rings
    }

    /// Makes visible what the kernel has written by now.
    pub(crate) fn refresh(&mut self) {
        self.rings.iter_mut().for_each(Ring::refresh);
    }

    /// Gives the space of what was read back to the kernel.
    pub(crate) fn publish(&mut self) {
        self.rings.iter_mut().for_each(Ring::publish);
    }

    /// Waits until an event wants to be looked after, `timeout` is over, or a signal came.
    pub(crate) fn wait(&mut self, timeout: Duration) {
        let watched = || self.anchors.iter().filter(|anchor| !anchor.hung_up);
        let all_watched = watched().count() == self.anchors.len();
        let timeout = if all_watched { timeout } else { timeout.min(UNWATCHED_PAUSE) };
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let wait_for = |anchor| PollFd::new(Anchor::as_fd(anchor), PollFlags::POLLIN);
        let mut waiting: Vec<PollFd<'_>> = watched().map(wait_for).collect();
        if poll(&mut waiting, timeout).is_err() {
            return;
        }
        let ended = PollFlags::POLLHUP | PollFlags::POLLERR;
        let answers = waiting.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let answers: Vec<bool> = answers.map(|events| events.intersects(ended)).collect();
        let watched = self.anchors.iter_mut().filter(|anchor| !anchor.hung_up);
        watched.zip(answers).for_each(|(anchor, ended)| anchor.hung_up = ended);
    }
}

/// What a system call on events says of the number of descriptors.
pub(crate) fn with_count(error: SamplerError, open: usize) -> SamplerError {
    match error {
        SamplerError::TooManyFiles { limit, .. } => {
            // Those that count, and other files, are not among the open events.
            SamplerError::TooManyFiles { needed: (open as u64).max(limit) + 1, limit }
        }
        error => error,
    }
}

/// Whether the system says that a CPU is not there (any more).
pub(crate) fn is_offline(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ENODEV)
}
