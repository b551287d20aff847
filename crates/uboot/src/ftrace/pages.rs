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
/// The length of an event that only says that time has passed, and its bytes.
const TIME_EXTEND: usize = 30;
const EXTEND_LEN: usize = 8;
/// Bytes that are written at once, at least.
const BLOCK: usize = 1 << 16;
/// The process of the name `u-boot`.
const PROCESS: u32 = 1;

/// The contents of an event for a function and its caller.
pub(super) fn function(function: u64, caller: u64) -> [u32; FUNCTION] {
    let ([f, g], [c, d]) = (halves(function), halves(caller));
    [1, PROCESS, f, g, c, d]
}

/// The contents of an event for an entry.
pub(super) fn entry(function: u64, depth: u32) -> [u32; ENTRY] {
    let [f, g] = halves(function);
    [11, PROCESS, f, g, depth]
}

/// The contents of an event for an exit after this many nanoseconds.
pub(super) fn exit(function: u64, depth: u32, nanos: u64) -> [u32; EXIT] {
    let ([f, g], [n, o]) = (halves(function), halves(nanos));
    [10, PROCESS, f, g, depth, 0, 0, 0, n, o]
}

/// How many words these are.
pub(super) const FUNCTION: usize = 6;
pub(super) const ENTRY: usize = 5;
pub(super) const EXIT: usize = 10;

/// The words of a number, the lower one first.
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// Pages on their way out, and how many bytes they have.
pub(super) struct Pages<'w> {
    /// Nowhere if only their size is asked for.
    out: Option<&'w mut dyn Write>,
    /// How far a page may be filled.
    room: usize,
    /// The longest time between two events that needs no event of its own.
    longest_delta: u64,
    /// Whole pages, and the open one from `start` on; empty if only the size is asked for.
    buffer: Vec<u8>,
    start: usize,
    /// The bytes of the open page, 0 if there is none.
    used: usize,
    /// The time of the last event.
    time: u64,
    /// The bytes of all pages that were closed.
    len: u64,
}

impl<'w> Pages<'w> {
    pub(super) fn new(out: &'w mut dyn Write, is_proftool: bool) -> Pages<'w> {
        // What proftool takes for a page may be longer by a word, and fills two then.
        let buffer = vec![0; BLOCK + 2 * PAGE];
        Pages { out: Some(out), buffer, ..Pages::only_size(is_proftool) }
    }

    /// Pages that are written nowhere. proftool forgets the 4 bytes of an event's head when it asks
    /// whether the event fits, and knows no events of nothing but time.
    pub(super) fn only_size(is_proftool: bool) -> Pages<'w> {
        let (room, longest_delta) =
            if is_proftool { (PAGE + 4, u64::MAX) } else { (PAGE, MAX_DELTA) };
        let buffer = Vec::new();
        Pages { out: None, room, longest_delta, buffer, start: 0, used: 0, time: 0, len: 0 }
    }

    /// Makes room for an event of this many words at a time; microseconds from the last event of
    /// the page, 0 on a new one. The number is negative where time goes back.
    #[inline]
    pub(super) fn make_room(&mut self, words: usize, time: u64) -> io::Result<i64> {
        let delta = time.wrapping_sub(self.time);
        if self.used > 0 && self.used + self.len_of(words, delta) <= self.room {
            return Ok(delta as i64);
        }
        self.turn(time).map(|()| 0)
    }

    /// The bytes of an event with its head, and of one before it where much time has passed.
    fn len_of(&self, words: usize, delta: u64) -> usize {
        let extend = if delta > self.longest_delta { EXTEND_LEN } else { 0 };
        extend + 4 + 4 * words
    }

    /// Begins a page at a time, and ends the one before.
    #[cold]
    fn turn(&mut self, time: u64) -> io::Result<()> {
        if self.used > 0 {
            self.close()?;
        }
        self.used = PAGE_HEADER;
        self.time = time;
        if let Some(header) = self.buffer.get_mut(self.start..self.start + PAGE_HEADER) {
            header[..8].copy_from_slice(&time.to_le_bytes());
            header[8..].fill(0);
        }
        Ok(())
    }

    /// Counts the bytes of an event for which there is room.
    #[inline]
    pub(super) fn count(&mut self, words: usize, time: u64) {
        self.used += self.len_of(words, time.wrapping_sub(self.time));
        self.time = time;
    }

    /// Writes an event for which there is room.
    #[inline]
    pub(super) fn push<const WORDS: usize>(&mut self, event: [u32; WORDS], time: u64) {
        let (at, mut delta) = (self.start + self.used, time.wrapping_sub(self.time));
        self.count(WORDS, time);
        let Some(mut out) = self.buffer.get_mut(at..self.start + self.used) else { return };
        if out.len() > 4 + 4 * WORDS {
            let (extend, rest) = out.split_at_mut(EXTEND_LEN);
            put([head(TIME_EXTEND, delta), (delta >> 27) as u32], extend);
            (out, delta) = (rest, 0);
        }
        let (bytes, rest) = out.split_at_mut(4);
        put([head(WORDS, delta)], bytes);
        put(event, rest);
    }

    /// Ends the open page.
    fn close(&mut self) -> io::Result<()> {
        let whole = self.used.next_multiple_of(PAGE);
        if let Some(page) = self.buffer.get_mut(self.start..self.start + whole) {
            let events = (self.used - PAGE_HEADER) as u64;
            page[8..PAGE_HEADER].copy_from_slice(&events.to_le_bytes());
            page[self.used..].fill(0);
            self.start += whole;
        }
        self.len += whole as u64;
        self.used = 0;
        if self.start >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(out) = &mut self.out {
            out.write_all(&self.buffer[..self.start])?;
        }
        self.start = 0;
        Ok(())
    }

    /// Closes the last page, unless proftool gave up in it. How many bytes the pages have.
    pub(super) fn finish(mut self, is_whole: bool) -> io::Result<u64> {
        match is_whole {
            true if self.used > 0 => self.close()?,
            true => {}
            false => {
                self.start += self.used;
                self.len += self.used as u64;
            }
        }
        self.flush()?;
        Ok(self.len)
    }
}

fn head(length: usize, delta: u64) -> u32 {
    length as u32 | (delta as u32) << 5
}

/// Fills bytes with as many words.
fn put<const WORDS: usize>(words: [u32; WORDS], out: &mut [u8]) {
    for (bytes, word) in out[..4 * WORDS].as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}
