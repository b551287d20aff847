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

use flame_events::{RecordBytes, RecordQueue};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// Length of a record's header: type (4 bytes), misc (2), size (2).
const HEADER: usize = 8;

/// A mapped ring with flame's position in it.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: NonNull<perf_event_mmap_page>,
    mapped: usize,
    data: Data,
    /// Up to where records are visible to flame.
    head: u64,
    /// Up to where flame has read; published to the kernel by [`Ring::publish`].
    tail: u64,
    published: u64,
    /// Up to where records were shown by [`Ring::for_each_new`].
    shown: u64,
}

/// The data pages.
#[derive(Clone, Copy, Debug)]
struct Data {
    start: NonNull<u8>,
    /// A power of two.
    size: usize,
}

impl Ring {
    /// Maps `size` bytes (a power of two, at least a page) of ring for an open event.
    pub(crate) fn map(event: impl AsFd, size: usize) -> io::Result<Ring> {
        let page = page_size();
        let mapped = page + size;
        let length = NonZeroUsize::new(mapped).expect("a page is not empty");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing.
        let memory = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, event, 0)? };
        // SAFETY: the mapping has `page + size` bytes, so its second page is inside.
        let start = unsafe { memory.cast::<u8>().add(page) };
        let data = Data { start, size };
        Ok(Ring { memory: memory.cast(), mapped, data, head: 0, tail: 0, published: 0, shown: 0 })
    }

    /// Makes visible what the kernel has written by now.
    pub(crate) fn refresh(&mut self) {
        // SAFETY: the first page is mapped as long as `self` lives. The kernel writes the field
        // from another CPU, hence the atomic; Acquire pairs with its write barrier, so that the
        // records behind the head are seen whole.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.memory.as_ptr()).data_head) };
        self.head = head.load(Ordering::Acquire);
    }

    /// Gives the space of the records that were read back to the kernel.
    pub(crate) fn publish(&mut self) {
        if self.published == self.tail {
            return;
        }
        // SAFETY: as in `refresh`. Only flame writes this field. Release keeps the reads of the
        // records before it.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*self.memory.as_ptr()).data_tail) };
        tail.store(self.tail, Ordering::Release);
        self.published = self.tail;
    }

    /// Shows every record between tail and head, without reading it: it will come again.
    pub(crate) fn for_each_unread(&self, mut each: impl FnMut(RecordBytes<'_>)) {
        let mut at = self.tail;
        while let Some((record_type, misc, size)) = self.header(at) {
            let (head, tail) = self.bytes(at + HEADER as u64, size - HEADER);
            each(RecordBytes { record_type, misc, head, tail });
            at += size as u64;
        }
    }

    /// Shows every record that has come since the last call, without reading it.
    pub(crate) fn for_each_new(&mut self, mut each: impl FnMut(RecordBytes<'_>)) {
        let mut at = self.shown.max(self.tail);
        while let Some((record_type, misc, size)) = self.header(at) {
            let (head, tail) = self.bytes(at + HEADER as u64, size - HEADER);
            each(RecordBytes { record_type, misc, head, tail });
            at += size as u64;
        }
        self.shown = at;
    }

    /// Whether there are records that were not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.head > self.tail
    }

    /// Bytes read but not yet given back.
    fn unpublished(&self) -> u64 {
        self.tail - self.published
    }

    /// `len` bytes from a position that counts on and on, in two pieces where they wrap. The kernel
    /// writes no byte between tail and head, which are all that callers ask for.
    fn bytes(&self, position: u64, len: usize) -> (&[u8], &[u8]) {
        let Data { start: data, size } = self.data;
        assert!(len <= size, "a record is never longer than its ring");
        let start = (position & (size as u64 - 1)) as usize;
        let first = len.min(size - start);
        // SAFETY: `start + first <= size` and `len - first <= start`, so both pieces lie inside
        // the data pages, which are mapped as long as `self` lives, from which the pieces borrow.
        unsafe {
            let head = std::slice::from_raw_parts(data.as_ptr().add(start), first);
            let tail = std::slice::from_raw_parts(data.as_ptr(), len - first);
            (head, tail)
        }
    }

    /// The header at a position: type, misc, size of the whole record. `None` when there is no
    /// whole record, or one of impossible size, which only a bug in the kernel could bring.
    fn header(&self, at: u64) -> Option<(u32, u16, usize)> {
        let unread = usize::try_from(self.head.checked_sub(at)?).ok()?;
        if unread < HEADER {
            return None;
        }
        // Records are multiples of 8 bytes, so a header never wraps.
        let (header, _) = self.bytes(at, HEADER);
        let word = u64::from_ne_bytes(header.try_into().ok()?);
        let size = (word >> 48) as usize;
        let whole = (HEADER..=unread).contains(&size);
        whole.then_some((word as u32, (word >> 32) as u16, size))
    }
}

impl RecordQueue for Ring {
    fn peek(&self) -> Option<RecordBytes<'_>> {
        let (record_type, misc, size) = self.header(self.tail)?;
        let (head, tail) = self.bytes(self.tail + HEADER as u64, size - HEADER);
        Some(RecordBytes { record_type, misc, head, tail })
    }

    fn advance(&mut self) {
        match self.header(self.tail) {
            Some((_, _, size)) => self.tail += size as u64,
            None => self.tail = self.head,
        }
        // Not once a record, which would bounce the cache line; not once a drain either, since a
        // long one would leave a full ring full.
        if self.unpublished() > self.data.size as u64 / 8 {
            self.publish();
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and no borrow of it outlives `self`. It
        // cannot fail for a mapping of ours.
        let _ = unsafe { munmap(self.memory.cast(), self.mapped) };
    }
}

// SAFETY: the ring is owned memory; nothing about it belongs to one thread.
unsafe impl Send for Ring {}

/// The size of a page of memory in bytes.
pub(crate) fn page_size() -> usize {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(4096)
}

#[cfg(test)]
mod tests;
