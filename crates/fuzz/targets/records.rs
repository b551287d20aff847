//! Records of a ring: any bytes decode or are counted, and processes follow what they say.
#![no_main]

use std::collections::VecDeque;

use flame_events::drain_in_order;
use flame_events::{
    Horizon, Processes, RecordBytes, RecordLayout, RecordQueue, SampleFields, TracepointField,
};

/// Parts as records: type, misc, where the ring's end cuts the body, and the body.
struct Parts<'a>(VecDeque<&'a [u8]>);

impl RecordQueue for Parts<'_> {
    fn peek(&self) -> Option<RecordBytes<'_>> {
        let (header, body) = self.0.front()?.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        let [record_type, misc_low, misc_high, cut] = *header;
        // Rings and records are aligned to 8 bytes.
        let (head, tail) = body.split_at((usize::from(cut) * 8).min(body.len()));
        let misc = u16::from_le_bytes([misc_low, misc_high]);
        Some(RecordBytes { record_type: u32::from(record_type), misc, head, tail })
    }

    fn advance(&mut self) {
        self.0.pop_front();
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut parts = flame_fuzz::parts(input);
    let flags = parts.next().and_then(|part| part.first().copied()).unwrap_or(0);
    let layout = RecordLayout::new(SampleFields {
        callchain: flags & 1 != 0,
        user_registers: if flags & 2 != 0 { 0x180 } else { 0 },
        user_stack: if flags & 2 != 0 { 16 } else { 0 },
        fixed_period: (flags & 4 != 0).then_some(1),
        tracepoint: (flags & 8 != 0).then_some(TracepointField {
            offset: 3,
            size: usize::from(flags >> 4),
            signed: flags & 1 != 0,
        }),
    });
    let (mut even, mut odd) = (VecDeque::new(), VecDeque::new());
    for part in parts {
        even.push_back(part);
        std::mem::swap(&mut even, &mut odd);
    }
    let count = even.len() + odd.len();
    let mut queues = [Parts(even), Parts(odd)];
    let mut processes = Processes::default();
    let mut seen = 0;
    drain_in_order(&mut queues, &layout, Horizon::End, &mut |event| {
        seen += 1;
        processes.apply(event.time, &event.kind);
    });
    assert_eq!(seen, count);
});
