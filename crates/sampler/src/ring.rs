//! The ring that the kernel writes records into and flame reads them from, in place.
//!
//! ```text
//!   page 0: perf_event_mmap_page     pages 1..=2^n: data, a power of two bytes
//!           data_head ──────────────▶ where the kernel writes next
//!           data_tail ◀────────────── what flame has read (it writes this one)
//!
//!   data:   | new... |   free   |tail▶ record record reco|      head = tail + unread, both count
//!             rd record ◀head                wraps around         on and on, modulo the size
//! ```
//!
//! The kernel never overwrites what lies between tail and head: a full ring loses new records.
//! Sources: perf_event_open(2), kernel/events/ring_buffer.c.
#![expect(unsafe_code, reason = "the ring is memory shared with the kernel")]

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flame_events::{RecordBytes, RecordQueue};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// Length of a record's header: type (4 bytes), misc (2), size (2).
const HEADER: usize = 8;

/// A mapped ring with flame's position in it.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Arc<Memory>,
    /// Up to where records are visible to flame.
    head: u64,
    /// Up to where flame has read; published to the kernel by [`Ring::publish`].
    tail: u64,
    published: u64,
    /// Up to where records were shown by [`Ring::for_each_new`].
    shown: u64,
    /// Who else looks at the ring.
    lookout: Option<Arc<Mutex<Lookout>>>,
}

/// A second look at a ring, by the thread that is woken by its samples: shows each record once, as
/// soon as it is there, and reads none. What it has not seen yet is never given back to the kernel
/// while it looks.
#[derive(Debug)]
pub(crate) struct Lookout {
    memory: Arc<Memory>,
    /// Up to where records were shown.
    shown: u64,
}

/// The mapped pages.
#[derive(Debug)]
struct Memory {
    page: NonNull<perf_event_mmap_page>,
    mapped: usize,
    data: Data,
}

/// The data pages.
#[derive(Clone, Copy, Debug)]
struct Data {
    start: NonNull<u8>,
    /// A power of two.
    size: usize,
}

impl Memory {
    fn map(event: impl AsFd, size: usize) -> io::Result<Memory> {
        let page = page_size();
        let mapped = page + size;
        let length = NonZeroUsize::new(mapped).expect("a page is not empty");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing.
        let memory = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, event, 0)? };
        // SAFETY: the mapping has `page + size` bytes, so its second page is inside.
        let start = unsafe { memory.cast::<u8>().add(page) };
        Ok(Memory { page: memory.cast(), mapped, data: Data { start, size } })
    }

    /// Up to where the kernel has written.
    fn head(&self) -> u64 {
        // SAFETY: the first page is mapped as long as `self` lives. The kernel writes the field
        // from another CPU, hence the atomic; Acquire pairs with its write barrier, so that the
        // records behind the head are seen whole.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_head) };
        head.load(Ordering::Acquire)
    }

    /// Tells the kernel up to where it may write anew.
    fn set_tail(&self, to: u64) {
        // SAFETY: as in `head`. Only flame writes this field. Release keeps the reads of the
        // records before it.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) };
        tail.store(to, Ordering::Release);
    }

    /// `len` bytes from a position that counts on and on, in two pieces where they wrap. The kernel
    /// writes no byte between tail and head, which are all that callers ask for.
    fn bytes(&self, position: u64, len: usize) -> (&[u8], &[u8]) {
        let Data { start: data, size } = self.data;
        assert!(len <= size, "a record is never longer than its ring");
        let start = usize::try_from(position & (size as u64 - 1)).unwrap_or(0);
        let first = len.min(size - start);
        // SAFETY: `start + first <= size` and `len - first <= start`, so both pieces lie inside
        // the data pages, which are mapped as long as `self` lives, from which the pieces borrow.
        unsafe {
            let head = std::slice::from_raw_parts(data.as_ptr().add(start), first);
            let tail = std::slice::from_raw_parts(data.as_ptr(), len - first);
            (head, tail)
        }
    }

    /// The record at a position, and its length; `None` when there is no whole record before
    /// `head`, or one of impossible size, which only a bug in the kernel could bring.
    fn record(&self, at: u64, head: u64) -> Option<(RecordBytes<'_>, usize)> {
        let unread = usize::try_from(head.checked_sub(at)?).ok()?;
        if unread < HEADER {
            return None;
        }
        // Records are multiples of 8 bytes, so a header never wraps.
        let (header, _) = self.bytes(at, HEADER);
        let (record_type, rest) = header.split_first_chunk()?;
        let (misc, size) = rest.split_first_chunk()?;
        let (record_type, misc) = (u32::from_ne_bytes(*record_type), u16::from_ne_bytes(*misc));
        let size = usize::from(u16::from_ne_bytes(*size.first_chunk()?));
        if !(HEADER..=unread).contains(&size) {
            return None;
        }
        let (head, tail) = self.bytes(at + HEADER as u64, size - HEADER);
        Some((RecordBytes { record_type, misc, head, tail }, size))
    }

    /// Shows every record from a position to the head; returns where they end.
    fn for_each(&self, mut at: u64, head: u64, mut each: impl FnMut(RecordBytes<'_>)) -> u64 {
        while let Some((record, size)) = self.record(at, head) {
            each(record);
            at += size as u64;
        }
        at
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and no borrow of it outlives `self`. It
        // cannot fail for a mapping of ours.
        let _ = unsafe { munmap(self.page.cast(), self.mapped) };
    }
}

// SAFETY: the pages belong to no thread. What the kernel writes meanwhile is read atomically (the
// head) or not before it is written (the records), and flame writes one field, atomically.
unsafe impl Send for Memory {}

// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Ring {
    /// Maps `size` bytes (a power of two, at least a page) of ring for an open event.
    pub(crate) fn map(event: impl AsFd, size: usize) -> io::Result<Ring> {
        let memory = Arc::new(Memory::map(event, size)?);
        Ok(Ring { memory, head: 0, tail: 0, published: 0, shown: 0, lookout: None })
    }

    /// A second look at the ring, for another thread: at the records that come from now on.
    pub(crate) fn lookout(&mut self) -> Arc<Mutex<Lookout>> {
        let new = || {
            let memory = Arc::clone(&self.memory);
            let shown = memory.head();
            Arc::new(Mutex::new(Lookout { memory, shown }))
        };
        Arc::clone(self.lookout.get_or_insert_with(new))
    }

    /// Makes visible what the kernel has written by now.
    pub(crate) fn refresh(&mut self) {
        self.head = self.memory.head();
    }

    /// Gives the space of the records that were read back to the kernel. While another thread looks
    /// at the ring nothing is given back, and nobody waits: it may be kept from running for long.
    pub(crate) fn publish(&mut self) {
        if self.published == self.tail {
            return;
        }
        if let Some(lookout) = &self.lookout {
            let Ok(mut lookout) = lookout.try_lock() else { return };
            lookout.shown = lookout.shown.max(self.tail);
            self.memory.set_tail(self.tail);
        } else {
            self.memory.set_tail(self.tail);
        }
        self.published = self.tail;
    }

    /// Shows every record between tail and head, without reading it: it will come again.
    pub(crate) fn for_each_unread(&self, each: impl FnMut(RecordBytes<'_>)) {
        self.memory.for_each(self.tail, self.head, each);
    }

    /// Shows every record that has come since the last call, without reading it.
    pub(crate) fn for_each_new(&mut self, each: impl FnMut(RecordBytes<'_>)) {
        self.shown = self.memory.for_each(self.shown.max(self.tail), self.head, each);
    }

    /// Bytes read but not yet given back.
    fn unpublished(&self) -> u64 {
        self.tail - self.published
    }
}

impl Lookout {
    /// Shows every record that has come since the last call; returns how many bytes of the ring
    /// they take.
    pub(crate) fn for_each_new(&mut self, each: impl FnMut(RecordBytes<'_>)) -> u64 {
        let before = self.shown;
        self.shown = self.memory.for_each(before, self.memory.head(), each);
        self.shown - before
    }
}

impl RecordQueue for Ring {
    fn peek(&self) -> Option<RecordBytes<'_>> {
        self.memory.record(self.tail, self.head).map(|(record, _)| record)
    }

    fn advance(&mut self) {
        match self.memory.record(self.tail, self.head) {
            Some((_, size)) => self.tail += size as u64,
            None => self.tail = self.head,
        }
        // Not once a record, which would bounce the cache line; not once a drain either, since a
        // long one would leave a full ring full.
        if self.unpublished() > self.memory.data.size as u64 / 8 {
            self.publish();
        }
    }
}

/// The size of a page of memory in bytes.
pub(crate) fn page_size() -> usize {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(4096)
}

#[cfg(test)]
mod tests;
