//! What a sample copied of a stack, without decoding anything else: for who has no time to.
//!
//! ```text
//!   identifier | ip | pid, tid | time | cpu | [period] | [n, n addresses] | [length, tracepoint] |
//!   abi, registers | size, size bytes of stack | how many of them were copied
//! ```
//!
//! Source: PERF_RECORD_SAMPLE in perf_event_open(2).

use flame_profile::{Nanos, ProcessAddress, Tid};
use linux_perf_event_reader::RecordType;

use crate::decode::{RecordBytes, RecordLayout};
use crate::event::StackBytes;

const TASK_AT: usize = 16;
const TIME_AT: usize = 24;
const PERIOD_AT: usize = 40;

/// The copied part of the stack of a sample.
#[derive(Clone, Copy, Debug)]
pub struct CopiedStack<'a> {
    /// The thread that ran.
    pub tid: Tid,
    /// When.
    pub time: Nanos,
    /// Where the copy starts.
    pub stack_pointer: ProcessAddress,
    /// The register that is a frame pointer in code that keeps one, if it was asked for.
    pub frame_pointer: Option<u64>,
    /// The other registers that were asked for, 0 where there is none.
    pub others: [u64; 4],
    /// The bytes.
    pub bytes: StackBytes<'a>,
}

impl RecordLayout {
    /// The stack of a sample of an event with user registers and a stack copy. `stack_pointer`,
    /// `frame_pointer` and `others` are the bits of these registers. `None` of other records, and of tasks without a user stack.
    pub fn copied_stack<'a>(
        &self,
        record: &RecordBytes<'a>,
        (stack_pointer, frame_pointer): (u32, u32),
        others: [u32; 4],
    ) -> Option<CopiedStack<'a>> {
        let fields = self.fields();
        let asked = fields.user_registers >> stack_pointer & 1 == 1 && fields.user_stack > 0;
        if RecordType(record.record_type) != RecordType::SAMPLE || !asked {
            return None;
        }
        let mut at = PERIOD_AT;
        at += if fields.fixed_period.is_none() { 8 } else { 0 };
        if fields.callchain {
            let addresses = usize::try_from(word(record, at)?).ok()?;
            at = addresses.checked_mul(8)?.checked_add(at + 8)?;
        }
        if fields.tracepoint.is_some() {
            let [a, b, c, d, ..] = word(record, at)?.to_ne_bytes();
            let len = usize::try_from(u32::from_ne_bytes([a, b, c, d])).ok()?;
            at = at.checked_add(4)?.checked_add(len)?;
        }
        let has_registers = word(record, at)? != 0;
        at += 8;
        let register = |bit: u32| {
            let below = fields.user_registers & ((1 << bit) - 1);
            let is_there = fields.user_registers >> bit & 1 == 1;
            word(record, at + 8 * below.count_ones() as usize).filter(|_| is_there)
        };
        let others = others.map(|bit| register(bit).unwrap_or(0));
        let (stack_pointer, frame_pointer) = (register(stack_pointer)?, register(frame_pointer));
        at += 8 * fields.user_registers.count_ones() as usize;
        let size = usize::try_from(word(record, at)?).ok()?;
        if !has_registers || size == 0 {
            return None;
        }
        at += 8;
        let copied = usize::try_from(word(record, at.checked_add(size)?)?).ok()?.min(size);
        let in_head = |position: usize| position.min(record.head.len());
        let in_tail = |position: usize| position.saturating_sub(record.head.len());
        Some(CopiedStack {
            tid: Tid((word(record, TASK_AT)? >> 32) as u32),
            time: Nanos(word(record, TIME_AT)?),
            stack_pointer: ProcessAddress(stack_pointer),
            frame_pointer,
            others,
            bytes: StackBytes {
                head: record.head.get(in_head(at)..in_head(at + copied))?,
                tail: record.tail.get(in_tail(at)..in_tail(at + copied))?,
                reached_limit: copied == size,
                ..StackBytes::default()
            },
        })
    }
}

/// Eight bytes of a record's body, in the machine's byte order.
fn word(record: &RecordBytes<'_>, at: usize) -> Option<u64> {
    if let Some(bytes) = record.head.get(at..).and_then(<[u8]>::first_chunk) {
        return Some(u64::from_ne_bytes(*bytes));
    }
    let mut bytes = record.head.iter().chain(record.tail).skip(at);
    let mut word = [0; 8];
    for byte in &mut word {
        *byte = *bytes.next()?;
    }
    Some(u64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{SampleFields, TracepointField};
    use crate::event::{Event, EventKind};

    /// Registers 6 (bp), 7 (sp) and 8 (ip) of x86-64.
    const BP_SP_AND_IP: u64 = 0x1c0;

    const FIELD: TracepointField = TracepointField { offset: 4, size: 4, signed: false };

    fn layout(callchain: bool, fixed_period: Option<u64>, is_traced: bool) -> RecordLayout {
        let fields = SampleFields {
            callchain,
            user_registers: BP_SP_AND_IP,
            user_stack: 16,
            fixed_period,
            tracepoint: is_traced.then_some(FIELD),
        };
        RecordLayout::new(fields)
    }

    fn body(callchain: bool, fixed_period: Option<u64>, is_traced: bool, copied: u64) -> Vec<u8> {
        let mut words = vec![77, 0x1000, 41 | 42 << 32, 9_000, 1];
        words.extend(fixed_period.is_none().then_some(10));
        words.extend(callchain.then_some([3, u64::MAX - 511, 1, 2]).into_iter().flatten());
        // Twelve bytes, of which four stand beside their number.
        words.extend(is_traced.then_some([12 | 7 << 32, 8]).into_iter().flatten());
        words.extend([2, 0x7ffe_0010, 0x7ffe_0000, 0x1000, 16, 0x1111, 0x2222, copied]);
        words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect()
    }

    /// It is what decoding everything gives, wherever the record wraps around the end of its ring.
    #[test]
    fn a_copy_is_that_of_the_decoded_sample() {
        for (chain, period, traced, copied) in
            [(true, None, false, 16), (false, None, true, 8), (true, Some(1), true, 0)]
        {
            let (layout, body) =
                (layout(chain, period, traced), body(chain, period, traced, copied));
            for split in 0..=body.len() {
                let (head, tail) = body.split_at(split);
                let record = RecordBytes { record_type: 9, misc: 0, head, tail };
                let stack = layout.copied_stack(&record, (7, 6), [6, 7, 5, 8]).unwrap();
                assert_eq!((stack.tid, stack.time), (Tid(42), Nanos(9_000)), "{split}");
                assert_eq!(stack.stack_pointer, ProcessAddress(0x7ffe_0000));
                assert_eq!(stack.frame_pointer, Some(0x7ffe_0010));
                let without = layout.copied_stack(&record, (7, 5), [0; 4]).unwrap();
                assert_eq!(without.frame_pointer, None);
                let bytes = [stack.bytes.head, stack.bytes.tail].concat();
                let Ok(Event { kind: EventKind::Sample(sample), .. }) = layout.decode(&record)
                else {
                    panic!("{split}")
                };
                assert_eq!(sample.tracepoint, traced.then_some(8));
                let expect = sample.user_stack.unwrap();
                assert_eq!(bytes, [expect.head, expect.tail].concat(), "{split}");
                assert_eq!(stack.bytes.reached_limit, expect.reached_limit);
            }
        }
    }

    #[test]
    fn a_record_that_ends_early_has_none() {
        let (layout, body) = (layout(true, None, true), body(true, None, true, 16));
        for len in 0..body.len() {
            let record = RecordBytes { record_type: 9, misc: 0, head: &body[..len], tail: &[] };
            assert!(layout.copied_stack(&record, (7, 6), [6, 7, 5, 8]).is_none(), "{len}");
        }
        let other = RecordBytes { record_type: 3, misc: 0, head: &body, tail: &[] };
        assert!(layout.copied_stack(&other, (7, 6), [6, 7, 5, 8]).is_none());
    }
}
