//! What a reader hands over to the session, without waiting and without asking for memory: a reader
//! that goes before everything must not wait for a thread that goes after it.

use std::collections::HashSet;

use flame_events::{InterruptedStack, Rest};
use flame_interpreters::Caught;
use flame_profile::{Nanos, NotRead, ProcessAddress};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::rest::Read;

/// How many bytes of stacks wait for the session at most. What does not fit is not handed over.
const BYTES: usize = 4 << 20;

/// How many samples wait at most: those of a second at the highest rate that is looked after one by
/// one, and some more.
const SAMPLES: usize = 2048;

/// What is known of the stack of a sample.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: Nanos,
    read: Result<Read, NotRead>,
}

/// The reader's end.
#[derive(Debug)]
pub(crate) struct Giver {
    heads: Producer<Head>,
    bytes: Producer<u8>,
    strays: Producer<Nanos>,
}

/// The session's end.
#[derive(Debug)]
pub(crate) struct Taker {
    heads: Consumer<Head>,
    bytes: Consumer<u8>,
    strays: Consumer<Nanos>,
    known_strays: HashSet<Nanos>,
    /// What was taken last is at its start; it does not shrink.
    taken: Vec<u8>,
}

/// Both ends.
pub(crate) fn ends() -> (Giver, Taker) {
    let (heads, bytes) = (RingBuffer::new(SAMPLES), RingBuffer::new(BYTES));
    let strays = RingBuffer::new(SAMPLES);
    let giver = Giver { heads: heads.0, bytes: bytes.0, strays: strays.0 };
    let known_strays = HashSet::new();
    let (heads, bytes, strays) = (heads.1, bytes.1, strays.1);
    (giver, Taker { heads, bytes, strays, known_strays, taken: Vec::new() })
}

impl Giver {
    /// Hands over what was read of a sample's stack, the first bytes of `scratch`; whether there was room.
    pub(crate) fn give(
        &mut self,
        time: Nanos,
        read: Result<Read, NotRead>,
        scratch: &[u8],
    ) -> bool {
        let bytes = read.map_or(0, len_of);
        let given = scratch.get(..bytes).unwrap_or_default();
        let fits = self.heads.slots() > 0 && self.bytes.push_entire_slice(given).is_ok();
        let read = if fits { read } else { Err(NotRead::NoRoom) };
        // Where there is no room even for that, the sample counts as one that was looked at too late.
        let has_head = self.heads.push(Head { time, read }).is_ok();
        fits && has_head
    }

    /// Hands over the time of a sample that nothing stands behind.
    pub(crate) fn give_stray(&mut self, time: Nanos) {
        let _ = self.strays.push(time);
    }

    /// Whether half of the room is taken.
    pub(crate) fn is_filling(&self) -> bool {
        self.bytes.slots() < BYTES / 2 || self.heads.slots() < SAMPLES / 2
    }
}

impl Taker {
    /// Whether nothing stands behind the sample of that time; it is asked about once.
    pub(crate) fn is_stray(&mut self, time: Nanos) -> bool {
        while let Ok(time) = self.strays.pop() {
            self.known_strays.insert(time);
        }
        // Some are of samples that were not waited for.
        if self.known_strays.len() > SAMPLES {
            self.known_strays.retain(|stray| *stray >= time);
        }
        !self.known_strays.is_empty() && self.known_strays.remove(&time)
    }

    /// What was read for the sample of that time, if it `holds` that was read until then; samples are asked
    /// about in their order.
    pub(crate) fn rest(&mut self, time: Nanos, holds: impl FnOnce(Nanos) -> bool) -> Rest<'_> {
        while let Ok(head) = self.heads.peek().copied()
            && head.time <= time
        {
            let _ = self.heads.pop();
            let read = self.take(head.read);
            if head.time == time {
                return match read {
                    Ok(read) if read.went_on || !holds(read.until) => self.outdated(read),
                    Ok(read) => self.as_event(read),
                    Err(why) => Rest::NotRead(why),
                };
            }
        }
        Rest::NotRead(NotRead::Late)
    }

    /// Leaves what was read for samples up to that time.
    pub(crate) fn forget_until(&mut self, time: Nanos) {
        while let Ok(head) = self.heads.peek().copied()
            && head.time <= time
        {
            let _ = self.heads.pop();
            if let Ok(read) = head.read
                && let Ok(bytes) = self.bytes.read_chunk(len_of(read))
            {
                bytes.commit_all();
            }
        }
    }

    fn take(&mut self, read: Result<Read, NotRead>) -> Result<Read, NotRead> {
        let read = read?;
        let len = len_of(read);
        if self.taken.len() < len {
            self.taken.resize(len, 0);
        }
        match self.bytes.pop_entire_slice(&mut self.taken[..len]) {
            Ok(()) => Ok(read),
            Err(_) => Err(NotRead::Late),
        }
    }

    /// Of what was read of a thread that has gone on, what functions are stays right: each is told of once.
    fn outdated(&mut self, read: Read) -> Rest<'_> {
        let script = &mut self.taken[read.stacks()..len_of(read)];
        if script.is_empty() {
            return Rest::NotRead(NotRead::Changed);
        }
        Caught::outdate(script);
        Rest::Read { bytes: &[], interrupted: None, script }
    }

    fn as_event(&self, read: Read) -> Rest<'_> {
        let (stacks, script) = self.taken[..len_of(read)].split_at(read.stacks());
        let (bytes, others) = stacks.split_at(read.rest);
        let of_other =
            |(start, _): (ProcessAddress, usize)| InterruptedStack { start, bytes: others };
        Rest::Read { bytes, interrupted: read.interrupted.map(of_other), script }
    }
}

/// All bytes that were read.
fn len_of(read: Read) -> usize {
    read.stacks() + read.script
}

#[cfg(test)]
mod tests {
    use flame_interpreters::Outcome;

    use super::*;

    fn read(rest: usize) -> Result<Read, NotRead> {
        Ok(Read { rest, ..Read::default() })
    }

    fn always(_: Nanos) -> bool {
        true
    }

    fn plain(bytes: &[u8]) -> Rest<'_> {
        Rest::Read { bytes, interrupted: None, script: &[] }
    }

    #[test]
    fn samples_get_what_was_read_for_them() {
        let (mut giver, mut taker) = ends();
        giver.give(Nanos(10), read(3), b"abcd");
        giver.give(Nanos(20), Err(NotRead::RealTime), b"abcd");
        giver.give(Nanos(30), read(2), b"xyz");
        let (start, bytes) = (ProcessAddress(0x5000), &b"yz"[..]);
        let other = Some((start, bytes.len()));
        let script =
            Read { rest: 1, interrupted: other, script: 1, until: Nanos(45), went_on: false };
        assert!(giver.give(Nanos(40), Ok(script), b"xyz!"));
        assert_eq!(taker.rest(Nanos(5), always), Rest::NotRead(NotRead::Late));
        assert_eq!(taker.rest(Nanos(10), always), plain(b"abc"));
        assert_eq!(taker.rest(Nanos(20), always), Rest::NotRead(NotRead::RealTime));
        // The sample of 30 was not the target's.
        taker.forget_until(Nanos(35));
        let interrupted = Some(InterruptedStack { start, bytes });
        assert_eq!(
            taker.rest(Nanos(40), always),
            Rest::Read { bytes: b"x", interrupted, script: b"!" }
        );
        assert_eq!(taker.rest(Nanos(50), always), Rest::NotRead(NotRead::Late));
        for script in [0, 24] {
            let read = Ok(Read { rest: 2, script, until: Nanos(65), ..Read::default() });
            giver.give(Nanos(60 + script as u64 / 2), read, &[0; 26]);
        }
        let gone_on = |until| until != Nanos(65);
        assert_eq!(taker.rest(Nanos(60), gone_on), Rest::NotRead(NotRead::Changed));
        let Rest::Read { bytes: &[], interrupted: None, script } = taker.rest(Nanos(72), gone_on)
        else {
            panic!("what functions are is right")
        };
        assert_eq!(Caught::parse(script).map(|caught| caught.outcome()), Some(Outcome::Late));
        // The reader knew it itself.
        giver.give(Nanos(80), read(2).map(|read| Read { went_on: true, ..read }), b"xy");
        assert_eq!(taker.rest(Nanos(80), always), Rest::NotRead(NotRead::Changed));
    }

    #[test]
    fn what_does_not_fit_is_said_and_what_follows_is_right() {
        let (mut giver, mut taker) = ends();
        let stack = vec![1; BYTES / 2];
        let given = [1, 2, 3].map(|time| giver.give(Nanos(time), read(stack.len()), &stack));
        assert_eq!(given, [true, true, false]);
        assert!(giver.is_filling());
        assert_eq!(taker.rest(Nanos(1), always), plain(&stack));
        giver.give(Nanos(4), read(2), b"hi");
        assert_eq!(taker.rest(Nanos(2), always), plain(&stack));
        assert_eq!(taker.rest(Nanos(3), always), Rest::NotRead(NotRead::NoRoom));
        assert_eq!(taker.rest(Nanos(4), always), plain(b"hi"));
        assert!(!giver.is_filling());
    }

    #[test]
    fn stray_samples_are_known_once() {
        let (mut giver, mut taker) = ends();
        giver.give_stray(Nanos(7));
        assert_eq!([6, 7, 7].map(|time| taker.is_stray(Nanos(time))), [false, true, false]);
    }
}
