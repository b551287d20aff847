//! Reads the code behind calls in code without a file: where that is the end of its function, it says
//! where the caller's frame is.

use std::io;

use flame_events::Found;
use flame_profile::{Nanos, Pid, ProcessAddress};
use flame_unwind::{Architecture, Code, Epilogue};
use rustc_hash::FxHashMap;

use crate::SharedMemory;

/// For how long what was read is believed: runtimes put other code in its place.
const FRESH: Nanos = Nanos(1_000_000_000);

/// When it is read again. Much earlier than it must be: the last samples of a process are looked at
/// when it has ended, on a busy machine long after that, and then there is nothing to read.
const READ_AGAIN: Nanos = Nanos(FRESH.0 / 2);

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
        let is_within = |since: Nanos, span: Nanos| now.0.saturating_sub(since.0) < span.0;
        let known = self.known.get(&key).filter(|(read, _)| is_within(*read, FRESH)).copied();
        if let Some((_, code)) = known.filter(|(read, _)| is_within(*read, READ_AGAIN)) {
            return code;
        }
        let known = known.map_or(Code::Executable, |(_, code)| code);
        if !is_within(self.counted_from, FRESH) {
            (self.counted_from, self.reads) = (now, 0);
        }
        if self.reads >= MAX_READS {
            return known;
        }
        self.reads += 1;
        let Ok(epilogue) = self.read(pid, found) else { return known };
        let code = epilogue.map_or(Code::Executable, Code::Epilogue);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, (now, code));
        code
    }

    /// The end of the function behind a call, or nothing where that is not the end.
    ///
    /// # Errors
    /// The memory cannot be read.
    fn read(&self, pid: Pid, found: &Found) -> io::Result<Option<Epilogue>> {
        let Some((start, before)) = around(found) else { return Ok(None) };
        let mut bytes = vec![0; before + Epilogue::BEHIND];
        let in_mapping = found.mapping.end.0.saturating_sub(start.0);
        bytes.truncate(usize::try_from(in_mapping).unwrap_or(usize::MAX));
        self.memory.read(pid, start, &mut bytes)?;
        let parts = bytes.split_at_checked(before);
        Ok(parts.and_then(|(before, at)| Epilogue::decode(Architecture::NATIVE, before, at)))
    }
}

/// Where to read from, and how many bytes of that stand before the return address.
fn around(found: &Found) -> Option<(ProcessAddress, usize)> {
    let at = found.address.0.checked_add(1)?;
    let start = at.saturating_sub(Epilogue::BEFORE as u64).max(found.mapping.start.0);
    Some((ProcessAddress(start), usize::try_from(at.checked_sub(start)?).ok()?))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use flame_events::Mapping;
    use flame_profile::{FileOffset, ImageId};

    use super::*;
    use crate::TargetMemory;

    /// The return address behind a `call *%rsi`, and what follows: `add $8,%rsp; ret`.
    const RETURN: u64 = 0x1100;
    const BEHIND: [u8; 5] = [0x48, 0x83, 0xc4, 8, 0xc3];

    /// The memory of a process that may have ended.
    #[derive(Debug, Default)]
    struct Ending(AtomicBool);

    impl TargetMemory for Ending {
        fn read(&self, _: Pid, address: ProcessAddress, bytes: &mut [u8]) -> io::Result<()> {
            if self.0.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let code = [&[0xff, 0xd6][..], &BEHIND].concat();
            for (byte, at) in bytes.iter_mut().zip(address.0..) {
                let within = at.checked_sub(RETURN - 2).and_then(|at| usize::try_from(at).ok());
                *byte = within.and_then(|at| code.get(at)).copied().unwrap_or(0xcc);
            }
            Ok(())
        }
    }

    #[test]
    fn what_was_read_holds_for_the_last_samples_of_a_process_that_has_ended() {
        let memory = Arc::new(Ending::default());
        let mut epilogues = Epilogues::new(memory.clone());
        let (start, end) = (ProcessAddress(0x1000), ProcessAddress(0x2000));
        let mapping = Mapping { start, end, offset: FileOffset(0), image: ImageId::from_index(0) };
        let found = Found { address: ProcessAddress(RETURN - 1), mapping };
        let mut is_known = |ms: u64| {
            let code = epilogues.code(Pid(1), &found, Nanos(ms * 1_000_000));
            matches!(code, Code::Epilogue(_))
        };
        assert!(is_known(100) && is_known(700));
        memory.0.store(true, Ordering::Relaxed);
        assert!(is_known(1150) && is_known(1250) && is_known(1699));
        // By then there may have been other code.
        assert!(!is_known(1700));
    }
}
