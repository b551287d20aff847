//! A ring over a memory file: the test plays the kernel.

use std::os::fd::OwnedFd;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;

use super::*;

const SIZE: usize = 4096;

/// The kernel's side: the same memory mapped once more.
struct Kernel {
    view: Ring,
    head: u64,
}

fn ring_and_kernel() -> (Ring, Kernel) {
    let file: OwnedFd = memfd_create(c"ring", MFdFlags::MFD_CLOEXEC).unwrap();
    ftruncate(&file, (page_size() + SIZE) as i64).unwrap();
    let map = || Ring::map(&file, SIZE).unwrap();
    (map(), Kernel { view: map(), head: 0 })
}

impl Kernel {
    /// Writes a record of `size` bytes in all whose body repeats `fill`, if there is room.
    fn write(&mut self, fill: u8, size: usize) -> bool {
        let page = self.view.memory.page.as_ptr();
        // SAFETY: the page is mapped as long as the view lives.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*page).data_tail) };
        if self.head + size as u64 - tail.load(Ordering::Acquire) > SIZE as u64 {
            return false;
        }
        let header = 9u64 | 1 << 32 | (size as u64) << 48;
        let body = std::iter::repeat_n(fill, size - HEADER);
        for byte in header.to_ne_bytes().into_iter().chain(body) {
            let at = (self.head & (SIZE as u64 - 1)) as usize;
            // SAFETY: `at` is inside the data pages, in the part that the reader gave back.
            unsafe { self.view.memory.data.start.as_ptr().add(at).write(byte) };
            self.head += 1;
        }
        // SAFETY: as above.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*page).data_head) };
        head.store(self.head, Ordering::Release);
        true
    }
}

/// The fill and length of each record that can be read.
fn read_all(ring: &mut Ring) -> Vec<(u8, usize)> {
    let mut records = Vec::new();
    ring.refresh();
    while let Some(record) = ring.peek() {
        let body = [record.head, record.tail].concat();
        assert_eq!((record.record_type, record.misc), (9, 1));
        assert!(body.iter().all(|byte| *byte == body[0]), "a torn record");
        records.push((body[0], body.len() + HEADER));
        ring.advance();
    }
    ring.publish();
    records
}

#[test]
fn records_come_back_whole_wherever_they_wrap() {
    let (mut ring, mut kernel) = ring_and_kernel();
    let mut fill = 0u8;
    // 136 does not divide the ring, so that the wrap falls on every possible place in turn.
    for _ in 0..200 {
        let mut written = Vec::new();
        while kernel.write(fill, 136) {
            written.push((fill, 136));
            fill = fill.wrapping_add(1);
        }
        assert_eq!(written.len(), SIZE / 136);
        assert_eq!(read_all(&mut ring), written);
    }
}

#[test]
fn nothing_is_visible_before_a_refresh() {
    let (mut ring, mut kernel) = ring_and_kernel();
    assert!(kernel.write(7, 64));
    assert!(ring.peek().is_none());
    assert_eq!(read_all(&mut ring), [(7, 64)]);
}

#[test]
fn space_is_given_back_during_a_long_drain() {
    let (mut ring, mut kernel) = ring_and_kernel();
    while kernel.write(1, 512) {}
    ring.refresh();
    (0..2).for_each(|_| ring.advance());
    assert!(kernel.write(2, 512));
}

#[test]
fn a_record_of_impossible_size_ends_the_reading_of_what_is_there() {
    let (mut ring, mut kernel) = ring_and_kernel();
    assert!(kernel.write(1, 64));
    // SAFETY: the size field of the first record's header is inside the data pages.
    unsafe { kernel.view.memory.data.start.as_ptr().add(6).write(0) };
    assert_eq!(read_all(&mut ring), []);
    ring.advance();
    assert!(kernel.write(2, 64));
    assert_eq!(read_all(&mut ring), [(2, 64)]);
}

#[test]
fn a_writer_on_another_thread_loses_and_tears_nothing() {
    let (mut ring, mut kernel) = ring_and_kernel();
    let size_of = |number: u32| 72 + (number as usize % 5) * 8;
    let count = 20_000;
    let writer = std::thread::spawn(move || {
        for number in 0..count {
            while !kernel.write(number as u8, size_of(number)) {
                std::thread::yield_now();
            }
        }
    });
    let mut next = 0;
    while next < count {
        for record in read_all(&mut ring) {
            assert_eq!(record, (next as u8, size_of(next)));
            next += 1;
        }
    }
    writer.join().unwrap();
}
