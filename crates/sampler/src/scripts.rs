//! What runs in an interpreter, read while its thread stands still: see `flame-interpreters`.

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;

use flame_interpreters::{Catcher, Judged, Known, Memory, Part, Thread};
use flame_profile::{Pid, Tid};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use crate::rest::{Read, Wanted};

/// The most parts that are read at once.
const PARTS: usize = 64;

/// What a reader needs to read frames of interpreters.
#[derive(Debug)]
pub(crate) struct Scripts {
    known: Arc<Known>,
    catcher: Catcher,
}

impl Scripts {
    /// The most bytes that are caught.
    pub(crate) const MOST: usize = Catcher::MOST;

    pub(crate) fn new(known: Arc<Known>) -> Scripts {
        Scripts { known, catcher: Catcher::default() }
    }

    /// Whether a process has an interpreter that is read.
    pub(crate) fn reads(&self, pid: Pid) -> bool {
        self.known.interpreters_of(pid.0).next().is_some()
    }

    /// Where the interpreter of a process keeps a stack of its own within the native one.
    pub(crate) fn inner_stack(&mut self, pid: Pid, wanted: &Wanted) -> Option<Range<u64>> {
        let thread = thread_of(pid, wanted);
        let mut layouts = self.known.interpreters_of(pid.0).map(|(layout, _)| layout);
        layouts.find_map(|layout| self.catcher.inner_stack(layout, thread, &MemoryOf(thread)))
    }

    /// Adds to what was read of a stack, the first bytes of `scratch`, what runs in each interpreter of the
    /// process.
    pub(crate) fn catch(
        &mut self,
        pid: Pid,
        wanted: &Wanted,
        read: Read,
        scratch: &mut [u8],
    ) -> Read {
        if !self.reads(pid) {
            return read;
        }
        let Some(room) = scratch.get_mut(read.stacks()..) else { return read };
        self.catcher.define_again(self.known.forgotten());
        let thread = thread_of(pid, wanted);
        let all = self.known.interpreters_of(pid.0);
        let script = self.catcher.catch_all(all, thread, &MemoryOf(thread), room);
        Read { script, ..read }
    }

    /// Whether the session should look at samples soon, to find out about the process; `is_given` is
    /// whether it got what was caught last.
    pub(crate) fn wants_session(&mut self, pid: Pid, is_given: bool) -> bool {
        if !is_given {
            self.catcher.was_lost();
        }
        self.known.judged(pid.0) == Judged::NotYet
    }
}

fn thread_of(pid: Pid, wanted: &Wanted) -> Thread {
    let (tid, stack_pointer) = (wanted.tid().0, wanted.start().0);
    Thread { pid: pid.0, tid, stack_pointer, registers: wanted.registers() }
}

/// The memory of a thread's process.
struct MemoryOf(Thread);

impl Memory for MemoryOf {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        let mut remote = [RemoteIoVec { base: 0, len: 0 }; PARTS];
        let (mut count, mut len) = (0, 0);
        for (to, part) in remote.iter_mut().zip(parts) {
            // The rest has no room.
            if part.len > into.len() - len {
                break;
            }
            *to = RemoteIoVec {
                base: usize::try_from(part.address).unwrap_or(usize::MAX),
                len: part.len,
            };
            (count, len) = (count + 1, len + part.len);
        }
        let tid = nix::unistd::Pid::from_raw(i32::try_from(self.0.tid).unwrap_or(0));
        let mut local = [IoSliceMut::new(&mut into[..len])];
        process_vm_readv(tid, &mut local, &remote[..count]).unwrap_or(0)
    }

    fn own_number(&self) -> Option<u32> {
        own_number(Tid(self.0.tid))
    }
}

/// The number of a thread in its own PID namespace. It takes no memory.
pub fn own_number(tid: Tid) -> Option<u32> {
    let (mut path, mut status) = ([0; 32], [0; 4096]);
    let mut rest = &mut path[..];
    write!(rest, "/proc/{}/status", tid.0).ok()?;
    let unused = rest.len();
    let path = str::from_utf8(&path[..path.len() - unused]).ok()?;
    let len = File::open(path).and_then(|mut file| file.read(&mut status)).ok()?;
    let mut lines = status[..len].split(|byte| *byte == b'\n');
    let numbers = str::from_utf8(lines.find_map(|line| line.strip_prefix(b"NSpid:"))?).ok()?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_this_namespace_has_the_same_number_in_it() {
        let tid = nix::unistd::gettid().as_raw() as u32;
        assert_eq!((own_number(Tid(tid)), own_number(Tid(u32::MAX))), (Some(tid), None));
    }

    #[test]
    fn parts_are_read_up_to_the_one_that_is_not_there() {
        let (one, other) = ([1_u8; 8], [2_u8; 16]);
        let part = |bytes: &[u8]| Part { address: bytes.as_ptr() as u64, len: bytes.len() };
        let nowhere = Part { address: 0x1000, len: 8 };
        let tid = nix::unistd::gettid().as_raw() as u32;
        let memory = MemoryOf(Thread { pid: tid, tid, ..Thread::default() });
        let mut into = [0; 64];
        assert_eq!(memory.read(&[part(&one), part(&other), nowhere, part(&one)], &mut into), 24);
        assert_eq!((&into[..8], &into[8..24]), (&one[..], &other[..]));
        // What has no room is not read.
        assert_eq!(memory.read(&[part(&one), part(&other)], &mut into[..20]), 8);
        assert!(
            !memory.fill(0x1000, &mut into) && memory.fill(other.as_ptr() as u64, &mut into[..16])
        );
    }
}
