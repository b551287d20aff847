//! Reads the code behind calls in code without a file: where that is the end of its function, it says
//! where the caller's frame is.

use flame_events::Found;
use flame_profile::{Nanos, Pid, ProcessAddress};
use flame_unwind::{Architecture, Code, Epilogue};
use rustc_hash::FxHashMap;

use crate::SharedMemory;

/// For how long what was read is believed: runtimes put other code in its place.
const FRESH: Nanos = Nanos(1_000_000_000);

/// How often memory is read in that time at most, of all processes, 2 us each.
const MAX_READS: u32 = 5000;

/// How many addresses are known at most; then all are read anew.
const MAX_KNOWN: usize = 1 << 16;

/// What stands behind calls of generated code.
#[derive(Debug)]
pub(crate) struct Epilogues {
    memory: SharedMemory,
    known: FxHashMap<(Pid, u64), (Nanos, Code)>,
    /// When reading was last counted from 0, and how often there was some since.
    counted_from: Nanos,
    reads: u32,
}

impl Epilogues {
    pub(crate) fn new(memory: SharedMemory) -> Epilogues {
        Epilogues { memory, known: FxHashMap::default(), counted_from: Nanos(0), reads: 0 }
    }

    /// A process is another program now.
    pub(crate) fn forget(&mut self, pid: Pid) {
        if !self.known.is_empty() {
            self.known.retain(|(other, _), _| *other != pid);
        }
    }

    /// What the unwinder is to know of an address in generated code: the byte before a return address,
    /// if it is one.
    pub(crate) fn code(&mut self, pid: Pid, found: &Found, now: Nanos) -> Code {
        let key = (pid, found.address.0);
        let is_fresh = |since: Nanos| now.0.saturating_sub(since.0) < FRESH.0;
        if let Some((_, code)) = self.known.get(&key).filter(|(read, _)| is_fresh(*read)) {
            return *code;
        }
        if !is_fresh(self.counted_from) {
            (self.counted_from, self.reads) = (now, 0);
        }
        if self.reads >= MAX_READS {
            return Code::Executable;
        }
        self.reads += 1;
        let code = self.read(pid, found).map_or(Code::Executable, Code::Epilogue);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, (now, code));
        code
    }

    fn read(&self, pid: Pid, found: &Found) -> Option<Epilogue> {
        let at = found.address.0.checked_add(1)?;
        let start = at.saturating_sub(Epilogue::BEFORE as u64).max(found.mapping.start.0);
        let end = at.saturating_add(Epilogue::BEHIND as u64).min(found.mapping.end.0);
        let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
        self.memory.read(pid, ProcessAddress(start), &mut bytes).ok()?;
        let (before, at) = bytes.split_at_checked(usize::try_from(at.checked_sub(start)?).ok()?)?;
        Epilogue::decode(Architecture::NATIVE, before, at)
    }
}
