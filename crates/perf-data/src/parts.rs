//! The parts of a recording that several threads have written (`perf record --threads`): a directory with a
//! file, `data`, and others next to it that have nothing but records.
//!
//! Each is more or less in order of time. They are read by turns, the one next that has come least far, so that
//! records wait for those of other parts no longer than need be.

use flame_profile::Nanos;

use crate::records::{End, Records};
use crate::unpack::Unpacker;

/// How many records are read of a part before another one has its turn.
const TURN: u32 = 256;

/// A file of records.
#[derive(Debug)]
pub(crate) struct Part<'s> {
    pub(crate) records: Records<'s>,
    pub(crate) unpacker: Option<Unpacker>,
    /// Unpacked bytes that are not a whole record yet.
    pub(crate) unpacked: Vec<u8>,
    /// The time of its youngest record so far.
    pub(crate) reached: Nanos,
    /// How many records were read in this turn.
    turn: u32,
}

impl<'s> Part<'s> {
    pub(crate) fn new(records: Records<'s>) -> Part<'s> {
        let (unpacker, unpacked) = (None, Vec::new());
        Part { records, unpacker, unpacked, reached: Nanos(0), turn: 0 }
    }

    /// Where it is truncated or damaged.
    pub(crate) fn cut_at(&self) -> Option<u64> {
        self.records.ended.filter(|end| *end != End::Whole).map(|_| self.records.place())
    }

    /// Whether packed records cannot be unpacked to their end.
    pub(crate) fn has_broken_packing(&self) -> bool {
        self.unpacker.as_ref().is_some_and(Unpacker::is_broken)
    }

    /// Gives one of the others its turn, if it is time for that.
    pub(crate) fn take_turns(&mut self, others: &mut [Part<'s>]) {
        self.turn += 1;
        if self.turn < TURN {
            return;
        }
        self.turn = 0;
        let least = others.iter_mut().min_by_key(|part| part.reached);
        if let Some(least) = least.filter(|least| least.reached < self.reached) {
            std::mem::swap(self, least);
        }
    }
}

#[cfg(test)]
mod tests {
    use flame_events::Endianness;

    use super::*;

    #[test]
    fn the_part_that_has_come_least_far_is_read_next() {
        let part = |reached| {
            let records = Records::new(Box::new(&[][..]), Endianness::LittleEndian, 0, None);
            Part { reached: Nanos(reached), ..Part::new(records) }
        };
        let (mut current, mut others) = (part(50), [part(70), part(20), part(60)]);
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(current.reached.0);
            current.reached.0 += 35;
            for _ in 0..TURN {
                current.take_turns(&mut others);
            }
        }
        // 20 has become 55, and is still behind the others.
        assert_eq!(order, [50, 20, 55, 60]);
    }
}
