//! Events in pages, as the kernel's ring buffer has them.
//!
//! A page has its time and its length in 8 bytes each, and events behind: 32 bits of which the lower
//! 5 are the length in words and the others the microseconds since the event before, then the words.

use std::io::{self, Write};

/// The bytes of a page.
pub(super) const PAGE: usize = 4096;
/// The bytes before the first event.
const PAGE_HEADER: usize = 16;
/// Times that fit into an event.
const MAX_DELTA: u64 = (1 << 27) - 1;
/// The length of an event that only says that time has passed.
const TIME_EXTEND: u32 = 30;

/// What is in an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload {
    Function { function: u64, caller: u64 },
    Entry { function: u64, depth: u32 },
    Exit { function: u64, depth: u32, nanos: u64 },
}

impl Payload {
    pub(super) fn words(&self) -> usize {
        match self {
            Payload::Function { .. } => 6,
            Payload::Entry { .. } => 5,
            Payload::Exit { .. } => 10,
        }
    }

    fn push(&self, out: &mut Vec<u8>) {
        let id: u16 = match self {
            Payload::Function { .. } => 1,
            Payload::Entry { .. } => 11,
            Payload::Exit { .. } => 10,
        };
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        // The process of the name `u-boot`.
        out.extend_from_slice(&1_u32.to_le_bytes());
        match *self {
            Payload::Function { function, caller } => {
                out.extend_from_slice(&function.to_le_bytes());
                out.extend_from_slice(&caller.to_le_bytes());
            }
            Payload::Entry { function, depth } => {
                out.extend_from_slice(&function.to_le_bytes());
                out.extend_from_slice(&depth.to_le_bytes());
            }
            Payload::Exit { function, depth, nanos } => {
                out.extend_from_slice(&function.to_le_bytes());
                out.extend_from_slice(&depth.to_le_bytes());
                out.extend_from_slice(&[0; 12]);
                out.extend_from_slice(&nanos.to_le_bytes());
            }
        }
    }
}

/// Pages on their way out, and how many bytes they have.
pub(super) struct Counted<'w> {
    out: &'w mut dyn Write,
    /// proftool forgets the 4 bytes of an event's header when it asks whether the event fits.
    is_proftool: bool,
    page: Vec<u8>,
    /// The time of the last event.
    time: u64,
    len: u64,
}

impl<'w> Counted<'w> {
    pub(super) fn new(out: &'w mut dyn Write, is_proftool: bool) -> Counted<'w> {
        Counted { out, is_proftool, page: Vec::with_capacity(2 * PAGE), time: 0, len: 0 }
    }

    /// Makes room for an event of so many words at a time; microseconds from the last event of
    /// the page, 0 on a new one. The number is negative where time goes back.
    pub(super) fn make_room(&mut self, words: usize, time: u64) -> io::Result<i64> {
        let forgotten = if self.is_proftool { 0 } else { 4 };
        let extend =
            if time.saturating_sub(self.time) > MAX_DELTA && !self.is_proftool { 8 } else { 0 };
        let is_full = self.page.len() + extend + forgotten + 4 * words > PAGE;
        if !self.page.is_empty() && is_full {
            self.close()?;
        }
        if self.page.is_empty() {
            self.page.extend_from_slice(&time.to_le_bytes());
            self.page.extend_from_slice(&[0; 8]);
            self.time = time;
        }
        Ok(time.wrapping_sub(self.time) as i64)
    }

    /// Writes an event for which there is room.
    pub(super) fn push(&mut self, payload: &Payload, time: u64) {
        let delta = time.wrapping_sub(self.time);
        self.time = time;
        if delta > MAX_DELTA && !self.is_proftool {
            self.push_head(TIME_EXTEND, delta & MAX_DELTA);
            self.page.extend_from_slice(&((delta >> 27) as u32).to_le_bytes());
            self.push_head(payload.words() as u32, 0);
        } else {
            self.push_head(payload.words() as u32, delta & MAX_DELTA);
        }
        payload.push(&mut self.page);
    }

    fn push_head(&mut self, length: u32, delta: u64) {
        self.page.extend_from_slice(&(length | (delta as u32) << 5).to_le_bytes());
    }

    fn close(&mut self) -> io::Result<()> {
        let events = (self.page.len() - PAGE_HEADER) as u64;
        self.page[8..16].copy_from_slice(&events.to_le_bytes());
        self.page.resize(self.page.len().next_multiple_of(PAGE), 0);
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.page)?;
        self.len += self.page.len() as u64;
        self.page.clear();
        Ok(())
    }

    /// Closes the last page, unless proftool gave up in it. How many bytes the pages have.
    pub(super) fn finish(mut self, is_whole: bool) -> io::Result<u64> {
        if self.page.is_empty() {
            return Ok(self.len);
        }
        if is_whole {
            self.close()?
        } else {
            self.flush()?
        }
        Ok(self.len)
    }
}
