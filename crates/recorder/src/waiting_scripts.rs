//! What the interpreter of a thread that waits was doing, read from its process while events come.

use std::time::{Duration, Instant};

use flame_interpreters::{Catcher, Known, Layout, Memory, Part, SampledRegisters, Thread};
use flame_profile::{Pid, ProcessAddress, Tid};
use flame_sampler::own_number;

use crate::target::TargetMemory;

/// How long one thread is read. Memory of other users' processes comes by way of another process, piece by piece.
const PATIENCE: Duration = Duration::from_millis(20);

/// How much is read at once where a larger part is not there as a whole.
const PAGE: u64 = 4096;

/// How long all of them are in a recording: events come meanwhile, and files of who owns the processes are waited for by the
/// same patience.
const IN_ALL: Duration = Duration::from_secs(2);

/// Reads frames of interpreters.
#[derive(Debug, Default)]
pub(crate) struct WaitingScripts {
    catcher: Option<Box<Catcher>>,
    caught: Vec<u8>,
    /// What was spent on it.
    took: Duration,
}

impl WaitingScripts {
    /// What [`flame_interpreters::Caught`] reads; nothing where there is no interpreter, and where one is known by
    /// registers, which nobody has of a thread that waits; or when it has taken too long already.
    pub(crate) fn read(
        &mut self,
        known: &Known,
        (pid, tid, stack): (Pid, Tid, ProcessAddress),
        memory: &dyn TargetMemory,
    ) -> Option<&[u8]> {
        let is_read = |(layout, _): &(&Layout, u64)| !matches!(layout, Layout::LuaJit(_));
        let mut all = known.interpreters_of(pid.0).filter(is_read).peekable();
        if all.peek().is_none() || self.took >= IN_ALL {
            return None;
        }
        let catcher = self.catcher.get_or_insert_with(|| Box::new(Catcher::default().patient()));
        // Each thread waits once, and all that it runs is to be told of.
        catcher.was_lost();
        self.caught.resize(Catcher::MOST, 0);
        let registers = SampledRegisters::default();
        let thread = Thread { pid: pid.0, tid: tid.0, stack_pointer: stack.0, registers };
        let begun = Instant::now();
        let memory = MemoryOf { pid, tid, memory, deadline: begun + PATIENCE };
        let len = catcher.catch_all(all, thread, &memory, &mut self.caught);
        self.took += begun.elapsed();
        self.caught.get(..len)
    }
}

/// The memory of a process, as long as there is patience.
struct MemoryOf<'m> {
    pid: Pid,
    tid: Tid,
    memory: &'m dyn TargetMemory,
    deadline: Instant,
}

impl MemoryOf<'_> {
    /// Reads one part, as far as it is there: a stack may end before what is asked for does. How many bytes that is.
    fn read_part(&self, part: &Part, bytes: &mut [u8]) -> usize {
        if self.fills(part.address, bytes) {
            return part.len;
        }
        let (mut at, mut len) = (part.address, 0);
        while len < part.len {
            let step = usize::try_from(PAGE - at % PAGE).unwrap_or(0).min(part.len - len);
            let is_all = step == part.len;
            if is_all || !bytes.get_mut(len..len + step).is_some_and(|page| self.fills(at, page)) {
                break;
            }
            (at, len) = (at.saturating_add(step as u64), len + step);
        }
        len
    }

    fn fills(&self, address: u64, bytes: &mut [u8]) -> bool {
        Instant::now() < self.deadline
            && self.memory.read(self.pid, ProcessAddress(address), bytes).is_ok()
    }
}

impl Memory for MemoryOf<'_> {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        let mut len = 0;
        for part in parts {
            let Some(bytes) = into.get_mut(len..len + part.len) else { break };
            let read = self.read_part(part, bytes);
            len += read;
            if read < part.len {
                break;
            }
        }
        len
    }

    fn own_number(&self) -> Option<u32> {
        own_number(self.tid)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Memory that ends at an address, and has there what its addresses end in.
    #[derive(Debug)]
    struct Ending(u64);

    impl TargetMemory for Ending {
        fn read(
            &self,
            _: Pid,
            ProcessAddress(at): ProcessAddress,
            to: &mut [u8],
        ) -> io::Result<()> {
            if at + to.len() as u64 > self.0 {
                return Err(io::ErrorKind::NotFound.into());
            }
            to.iter_mut().zip(at..).for_each(|(byte, at)| *byte = at as u8);
            Ok(())
        }
    }

    /// The stack of a first thread has a few KiB only where it waits near its root.
    #[test]
    fn a_part_is_read_up_to_where_memory_ends() {
        let (pid, tid, memory) = (Pid(7), Tid(7), &Ending(0x7000));
        let deadline = Instant::now() + Duration::from_secs(600);
        let memory = MemoryOf { pid, tid, memory, deadline };
        let mut into = vec![0; 0x8000];
        let stack = Part { address: 0x4ff8, len: 0x4000 };
        let other = Part { address: 0x1000, len: 8 };
        assert_eq!(memory.read(&[other, stack, other], &mut into), 8 + 0x2008);
        assert_eq!((into[8], into[0x200f], into[0x2010]), (0xf8, 0xff, 0));
        for (address, len, read) in [(0x6ff8, 8, 8), (0x7000, 0x2000, 0), (0x6ffc, 8, 4)] {
            let part = Part { address, len };
            assert_eq!(memory.read(&[part], &mut into), read, "{address:#x}");
        }
    }
}
