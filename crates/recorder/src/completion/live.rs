//! Memory of live processes, a page at a time, kept for as long as a batch of samples is drained.

use std::io::IoSliceMut;

use flame_profile::{Pid, ProcessAddress, Tid};
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is read and kept at once; a page on x86-64, and a part of one on some AArch64 kernels.
const PAGE: usize = 4096;

/// The most pages that are read for a batch: the 8 MiB that a stack may grow to by default. Beyond
/// that stacks stay cut, so that no program can keep flame busy with reading it.
const MOST_PAGES: usize = 2048;

/// The most pages that are read at once when a walk goes through one after the other.
const MOST_AT_ONCE: usize = 16;

/// Why memory cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not there (any more), or the batch has read enough.
    Gone,
    /// This user may not read it.
    Denied,
}

/// A thread whose memory is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) pid: Pid,
    /// A process whose main thread has ended can be read through the others only.
    pub(crate) tid: Tid,
}

/// Pages read so far.
#[derive(Debug, Default)]
pub(crate) struct LiveMemory {
    /// By page number, the position in `bytes`; `None` = not readable.
    pages: FxHashMap<(Pid, u64), Option<usize>>,
    bytes: Vec<u8>,
    denied: FxHashSet<Pid>,
    last: Option<(Pid, u64)>,
    at_once: usize,
}

impl LiveMemory {
    /// Forgets all pages: what is drained next is to be compared with newer ones.
    pub(crate) fn start_batch(&mut self) {
        self.pages.clear();
        self.bytes.clear();
        self.last = None;
    }

    /// The 8 bytes at `address` as they were when the batch first asked for their page.
    pub(super) fn word(&mut self, reader: Reader, address: ProcessAddress) -> Result<u64, Unread> {
        let page = address.0 / PAGE as u64;
        let within = (address.0 % PAGE as u64) as usize;
        let start = self.page(reader, page)?;
        let bytes = self.bytes.get(start + within..start + PAGE).ok_or(Unread::Gone)?;
        // Words that lie across pages are no part of a stack that a compiler laid out.
        bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or(Unread::Gone)
    }

    fn page(&mut self, reader: Reader, page: u64) -> Result<usize, Unread> {
        if let Some(known) = self.pages.get(&(reader.pid, page)) {
            return known.ok_or(Unread::Gone);
        }
        if self.denied.contains(&reader.pid) {
            return Err(Unread::Denied);
        }
        let room = MOST_PAGES.saturating_sub(self.pages.len());
        let follows = self.last == page.checked_sub(1).map(|before| (reader.pid, before));
        self.at_once = if follows { (self.at_once * 2).clamp(1, MOST_AT_ONCE) } else { 1 };
        let read = self.read(reader, page, self.at_once.min(room))?;
        self.last = Some((reader.pid, page + (read as u64).saturating_sub(1)));
        self.pages.get(&(reader.pid, page)).copied().flatten().ok_or(Unread::Gone)
    }

    /// Reads up to `count` pages from `page` on, and returns how many it got.
    fn read(&mut self, reader: Reader, page: u64, count: usize) -> Result<usize, Unread> {
        let base = usize::try_from(page).ok().and_then(|page| page.checked_mul(PAGE));
        let (Some(base), true) = (base, count > 0) else { return Err(Unread::Gone) };
        let start = self.bytes.len();
        self.bytes.resize(start + count * PAGE, 0);
        let local = &mut [IoSliceMut::new(&mut self.bytes[start..])];
        let remote = [RemoteIoVec { base, len: count * PAGE }];
        let read = process_vm_readv(task(reader), local, &remote).map_err(|errno| {
            if errno == Errno::EPERM {
                self.denied.insert(reader.pid);
            }
            unread(errno)
        });
        let whole = read.unwrap_or(0) / PAGE;
        self.bytes.truncate(start + whole * PAGE);
        for index in 0..whole {
            let key = (reader.pid, page + index as u64);
            self.pages.insert(key, Some(start + index * PAGE));
        }
        if whole == 0 {
            self.pages.insert((reader.pid, page), None);
        }
        read.map(|_| whole)
    }

    /// Whether all these words of memory have these values now, whatever was read before.
    pub(super) fn has_now(&self, reader: Reader, words: &[(ProcessAddress, u64)]) -> bool {
        // The kernel takes no more pieces at once (UIO_MAXIOV).
        let words = &words[words.len().saturating_sub(1024)..];
        let base = |address: ProcessAddress| usize::try_from(address.0).unwrap_or(0);
        let remote: Vec<RemoteIoVec> =
            words.iter().map(|(address, _)| RemoteIoVec { base: base(*address), len: 8 }).collect();
        let mut bytes = vec![0; words.len() * 8];
        let len = bytes.len();
        let local = &mut [IoSliceMut::new(&mut bytes)];
        let whole = len == 0 || process_vm_readv(task(reader), local, &remote) == Ok(len);
        let now = bytes.chunks_exact(8);
        whole && now.zip(words).all(|(now, (_, value))| now == value.to_le_bytes())
    }
}

fn task(reader: Reader) -> nix::unistd::Pid {
    // Numbers of tasks are below 2^22.
    nix::unistd::Pid::from_raw(i32::try_from(reader.tid.0).unwrap_or(0))
}

fn unread(errno: Errno) -> Unread {
    match errno {
        Errno::EPERM => Unread::Denied,
        _ => Unread::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Reader {
        let pid = std::process::id();
        Reader { pid: Pid(pid), tid: Tid(pid) }
    }

    fn address_of(word: &u64) -> ProcessAddress {
        ProcessAddress(std::ptr::from_ref(word) as u64)
    }

    #[test]
    fn words_are_read_and_kept_for_the_batch() {
        let mut memory = LiveMemory::default();
        let mut word = Box::new(0x1122_3344_5566_7788_u64);
        let address = address_of(&word);
        assert_eq!(memory.word(own(), address), Ok(0x1122_3344_5566_7788));
        *word = 5;
        assert_eq!(memory.word(own(), address), Ok(0x1122_3344_5566_7788));
        assert!(memory.has_now(own(), &[(address, 5)]));
        assert!(!memory.has_now(own(), &[(address, 5), (address, 6)]));
        memory.start_batch();
        assert_eq!(memory.word(own(), address), Ok(5));
    }

    #[test]
    fn memory_that_is_not_there_is_gone() {
        let mut memory = LiveMemory::default();
        assert_eq!(memory.word(own(), ProcessAddress(0x10)), Err(Unread::Gone));
        assert_eq!(memory.word(own(), ProcessAddress(u64::MAX - 3)), Err(Unread::Gone));
        assert!(!memory.has_now(own(), &[(ProcessAddress(0x10), 0)]));
        let nobody = Reader { pid: Pid(0x7fff_ffff), tid: Tid(0x7fff_ffff) };
        assert_eq!(memory.word(nobody, address_of(&7)), Err(Unread::Gone));
    }

    #[test]
    fn pages_in_a_row_are_read_ahead_up_to_the_limit_of_a_batch() {
        let mut memory = LiveMemory::default();
        let block = vec![1_u8; (MOST_PAGES + 20) * PAGE];
        let first = (block.as_ptr() as u64).next_multiple_of(PAGE as u64);
        let word = |memory: &mut LiveMemory, page: usize| {
            memory.word(own(), ProcessAddress(first + (page * PAGE) as u64))
        };
        for page in 0..4 {
            assert_eq!(word(&mut memory, page), Ok(0x0101_0101_0101_0101));
        }
        // One, then two, then four.
        assert_eq!(memory.pages.len(), 7);
        for page in 4..MOST_PAGES {
            assert_eq!(word(&mut memory, page), Ok(0x0101_0101_0101_0101), "page {page}");
        }
        assert_eq!(word(&mut memory, MOST_PAGES), Err(Unread::Gone));
        assert_eq!(memory.pages.len(), MOST_PAGES);
        memory.start_batch();
        assert_eq!(word(&mut memory, MOST_PAGES), Ok(0x0101_0101_0101_0101));
    }
}
