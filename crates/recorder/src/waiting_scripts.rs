//! What the interpreter of a thread that waits was doing, read from its process while events come.

use std::time::{Duration, Instant};

use flame_interpreters::{Catcher, Known, Layout, Memory, Part, SampledRegisters, Thread};
use flame_profile::{Pid, ProcessAddress, Tid};
use flame_sampler::own_number;

use crate::target::TargetMemory;

/// How long one thread is read. Memory of other users' processes comes by way of another process, piece by piece.
const PATIENCE: Duration = Duration::from_millis(20);

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
        let (layout, runtime) = known.interpreter_of(pid.0)?;
        if matches!(layout, Layout::LuaJit(_)) || self.took >= IN_ALL {
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
        let len = catcher.catch(layout, runtime, thread, &memory, &mut self.caught);
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

impl Memory for MemoryOf<'_> {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        let mut len = 0;
        for part in parts {
            let Some(bytes) = into.get_mut(len..len + part.len) else { break };
            let is_read = Instant::now() < self.deadline
                && self.memory.read(self.pid, ProcessAddress(part.address), bytes).is_ok();
            if !is_read {
                break;
            }
            len += part.len;
        }
        len
    }

    fn own_number(&self) -> Option<u32> {
        own_number(self.tid)
    }
}
