//! Samples that are nothing but numbers and a call chain, read in one pass: most of those in files are.

use flame_profile::{Cpu, Nanos, Pid, ProcessAddress, Tid};
use linux_perf_event_reader::{RecordType, SampleFormat};

use super::{BEFORE_CHAIN, RecordBytes, RecordLayout};
use crate::addresses::Addresses;
use crate::event::{Event, EventKind, SampleEvent};
use crate::fields::Fields;

impl RecordLayout {
    /// A sample that is all in one piece and has nothing behind its call chain, which most of those
    /// in files are: read in one pass. `None` of others, and of what is cut short.
    pub(super) fn plain_sample<'a>(&self, record: &RecordBytes<'a>) -> Option<Event<'a>> {
        let format = self.parse_info.sample_format;
        let is_plain = format.contains(SampleFormat::CALLCHAIN)
            && BEFORE_CHAIN.union(SampleFormat::CALLCHAIN).contains(format)
            && self.counts.is_none();
        let is_sample = RecordType(record.record_type) == RecordType::SAMPLE;
        if !is_plain || !is_sample || !record.tail.is_empty() {
            return None;
        }
        let endian = self.parse_info.endian;
        let mut fields = Fields::new(record.head, endian);
        // Eight bytes each, as far as samples have them.
        let mut part = |part| match format.contains(part) {
            true => fields.bytes(8).map(|bytes| Some(Fields::new(bytes, endian))),
            false => Some(None),
        };
        let word = |mut part: Fields<'_>| part.u64();
        part(SampleFormat::IDENTIFIER)?;
        let ip = part(SampleFormat::IP)?.and_then(word);
        let task = part(SampleFormat::TID)?;
        let task = task.and_then(|mut task| Some((task.u32()?, task.u32()?)));
        let time = part(SampleFormat::TIME)?.and_then(word);
        part(SampleFormat::ADDR)?;
        part(SampleFormat::ID)?;
        part(SampleFormat::STREAM_ID)?;
        let cpu = part(SampleFormat::CPU)?.and_then(|mut cpu| cpu.u32());
        let period = part(SampleFormat::PERIOD)?.and_then(word);
        let (pid, tid) = task.unwrap_or((0, 0));
        let len = usize::try_from(fields.u64()?).ok()?;
        let (chain, _) = fields.bytes(len.checked_mul(8)?)?.as_chunks::<8>();
        let [kernel_chain, user_chain] = Addresses::of_chain(chain, endian);
        let sample = SampleEvent {
            event: 0,
            pid: Pid(pid),
            tid: Tid(tid),
            cpu: cpu.map(Cpu),
            period: period.or(self.fields.fixed_period).unwrap_or(1),
            ip: ProcessAddress(ip.unwrap_or(0)),
            kernel_chain,
            user_chain,
            tracepoint: None,
            interrupt: None,
            user_registers: None,
            user_stack: None,
        };
        Some(Event { time: Nanos(time.unwrap_or(0)), kind: EventKind::Sample(sample) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{RecordLayout, SampleFields};

    /// The same as by the parser that knows all kinds of samples, which records in two pieces go to.
    #[test]
    fn a_sample_in_one_piece_is_the_same_as_in_two() {
        for fixed_period in [None, Some(77)] {
            let fields = SampleFields { callchain: true, fixed_period, ..SampleFields::default() };
            let layout = RecordLayout::new(fields);
            let mut words = vec![7, 0x401000, 42 | 43 << 32, 1_000, 3];
            words.extend(fixed_period.is_none().then_some(10_101_010));
            words.extend([4, -128i64 as u64, 0xffff_0001, -512i64 as u64, 0x401000_u64]);
            let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let decode = |head, tail| {
                let record = RecordBytes { record_type: 9, misc: 2, head, tail };
                let event = layout.decode(&record);
                event.map(|event| format!("{event:?}").replace("Owned", "Borrowed"))
            };
            let expect = decode(&body, &[]).unwrap();
            for at in 1..body.len() {
                let (head, tail) = body.split_at(at);
                assert_eq!(decode(head, tail).unwrap(), expect, "{at}");
                assert!(decode(head, &[]).is_err(), "{at}");
            }
        }
    }
}
