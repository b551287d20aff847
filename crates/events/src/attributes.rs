//! What an event was opened with, as a file keeps it: perf_event_attr of any size and byte order.
//!
//! Sources: `struct perf_event_attr` in include/uapi/linux/perf_event.h of Linux 6.18; sizes from
//! PERF_ATTR_SIZE_VER0 (64 bytes) on, each version a longer one.

use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, ReadFormat, RecordIdParseInfo, RecordParseInfo, SampleFormat,
};

use crate::decode::{BEFORE_CHAIN, CountsPart, RecordLayout, SampleFields, start_of_chain};
use crate::fields::Fields;

/// The shortest that there is.
const MIN_LEN: usize = 64;

const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK: u64 = 1 << 25;

/// How often an event makes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// So often a second, about.
    Frequency(u64),
    /// Each time that it has happened so often; 0 = never.
    Period(u64),
}

/// The attributes of an event, as far as they say what it is and how its records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// PERF_TYPE_: who counts.
    pub kind: u32,
    /// What is counted.
    pub config: u64,
    /// How often it makes a sample.
    pub sampling: Sampling,
    /// PERF_SAMPLE_ flags.
    pub sample_type: u64,
    /// PERF_FORMAT_ flags.
    pub read_format: u64,
    /// The bits behind `read_format`, the first of them the lowest.
    pub flags: u64,
    /// PERF_SAMPLE_BRANCH_ flags.
    pub branch_sample_type: u64,
    /// The mask of user registers in a sample.
    pub user_registers: u64,
    /// Bytes of user stack in a sample.
    pub user_stack: u32,
    /// The clock of its times, by the numbers of clock_gettime(2); `None` = that of the scheduler.
    pub clock: Option<u32>,
}

impl Attributes {
    /// Reads attributes, which say their own length; `None` where they are cut short.
    pub fn parse(bytes: &[u8], endian: Endianness) -> Option<Attributes> {
        let mut fields = Fields::new(bytes, endian);
        let (kind, len) = (fields.u32()?, fields.u32()?);
        let len = usize::try_from(len).ok().filter(|len| *len >= MIN_LEN)?;
        // What a shorter version lacks is zero.
        let mut fields = Fields::new(bytes.get(8..len)?, endian);
        let config = fields.u64()?;
        let rate = fields.u64()?;
        let (sample_type, read_format) = (fields.u64()?, fields.u64()?);
        let flags = u64::from_le_bytes(*fields.bytes(8)?.first_chunk()?);
        // Compilers fill bytes from their highest bit on where the highest byte comes first.
        let flags = match endian {
            Endianness::LittleEndian => flags,
            Endianness::BigEndian => flags.swap_bytes().reverse_bits(),
        };
        // Wake-ups, breakpoints, and what else there is to count; its last part from version 1 on.
        fields.bytes(16)?;
        fields.u64();
        let branch_sample_type = fields.u64().unwrap_or(0);
        let user_registers = fields.u64().unwrap_or(0);
        let (user_stack, clock) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
        let sampling = match flags & FREQUENCY {
            0 => Sampling::Period(rate),
            _ => Sampling::Frequency(rate),
        };
        Some(Attributes {
            kind,
            config,
            sampling,
            sample_type,
            read_format,
            flags,
            branch_sample_type,
            user_registers,
            user_stack,
            clock: (flags & USE_CLOCK != 0).then_some(clock),
        })
    }

    /// How records of the event are laid out.
    pub fn layout(&self, endian: Endianness) -> RecordLayout {
        let all = SampleFormat::from_bits_truncate(self.sample_type);
        // What stands behind the copied stack is of no use here, and changes with each kernel.
        let read = BEFORE_CHAIN
            | SampleFormat::CALLCHAIN
            | SampleFormat::RAW
            | SampleFormat::BRANCH_STACK
            | SampleFormat::REGS_USER
            | SampleFormat::STACK_USER;
        let sample_format = all.intersection(read);
        let has = |format| sample_format.contains(format);
        let given = |has: bool, mask: u64| if has { mask } else { 0 };
        let fixed_period = match self.sampling {
            Sampling::Period(period) if !has(SampleFormat::PERIOD) => Some(period.max(1)),
            _ => None,
        };
        let fields = SampleFields {
            callchain: has(SampleFormat::CALLCHAIN),
            user_registers: given(has(SampleFormat::REGS_USER), self.user_registers),
            user_stack: if has(SampleFormat::STACK_USER) { self.user_stack } else { 0 },
            fixed_period,
            tracepoint: None,
        };
        let counts = all
            .contains(SampleFormat::READ)
            .then(|| CountsPart { start: start_of_chain(sample_format), format: self.read_format });
        RecordLayout::of_parts(fields, self.parse_info(sample_format, endian), counts)
    }

    fn parse_info(&self, sample_format: SampleFormat, endian: Endianness) -> RecordParseInfo {
        let words = |set: SampleFormat| {
            8 * bits(sample_format.intersection(set).bits()) // At most 6 bits.
        };
        let has = |format| sample_format.contains(format);
        // pid/tid, time, id, stream, cpu, identifier, as far as samples have them.
        let late = SampleFormat::ID
            | SampleFormat::STREAM_ID
            | SampleFormat::CPU
            | SampleFormat::IDENTIFIER;
        let timed = late | SampleFormat::TIME;
        let early = SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID;
        let has_trailer = self.flags & SAMPLE_ID_ALL != 0;
        let behind =
            |last: SampleFormat, set: SampleFormat| (has_trailer && has(last)).then(|| words(set));
        let id_parse_info = RecordIdParseInfo {
            nonsample_record_id_offset_from_end: if has(SampleFormat::IDENTIFIER) {
                has_trailer.then_some(8)
            } else {
                behind(SampleFormat::ID, late)
            },
            sample_record_id_offset_from_start: if has(SampleFormat::IDENTIFIER) {
                Some(0)
            } else {
                let before = early | SampleFormat::TIME | SampleFormat::ADDR;
                has(SampleFormat::ID).then(|| words(before))
            },
        };
        RecordParseInfo {
            endian,
            sample_format,
            branch_sample_format: BranchSampleFormat::from_bits_truncate(self.branch_sample_type),
            read_format: ReadFormat::empty(),
            common_data_offset_from_end: has_trailer.then(|| words(timed | SampleFormat::TID)),
            sample_regs_user: self.user_registers,
            user_regs_count: bits(self.user_registers),
            sample_regs_intr: 0,
            intr_regs_count: 0,
            id_parse_info,
            nonsample_record_time_offset_from_end: behind(SampleFormat::TIME, timed),
            sample_record_time_offset_from_start: has(SampleFormat::TIME).then(|| words(early)),
        }
    }
}

/// How many bits are set, of which a number of 64 has at most as many.
pub(crate) fn bits(mask: u64) -> u8 {
    u8::try_from(mask.count_ones()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, EventKind, RecordBytes};
    use flame_profile::{Cpu, Nanos, Pid, ProcessAddress, Tid};

    /// Attributes of 64 bytes, with those bits of `flags` set and everything else as named.
    fn attributes(sample_type: u64, read_format: u64, flags: u64, endian: Endianness) -> Vec<u8> {
        let big = endian == Endianness::BigEndian;
        let word = |word: u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let half = |half: u32| if big { half.to_be_bytes() } else { half.to_le_bytes() };
        let flags = if big { flags.reverse_bits().to_be_bytes() } else { flags.to_le_bytes() };
        let mut bytes = [half(1), half(64)].concat();
        bytes.extend([0, 4000, sample_type, read_format].map(word).concat());
        bytes.extend(flags);
        bytes.resize(64, 0);
        bytes
    }

    const BOTH: [Endianness; 2] = [Endianness::LittleEndian, Endianness::BigEndian];

    #[test]
    fn attributes_say_the_same_in_both_byte_orders_and_are_none_when_cut() {
        for endian in BOTH {
            let bytes = attributes(0x127, 4, FREQUENCY | SAMPLE_ID_ALL, endian);
            let found = Attributes::parse(&bytes, endian).unwrap();
            assert_eq!((found.kind, found.sample_type, found.read_format), (1, 0x127, 4));
            assert_eq!(found.flags, FREQUENCY | SAMPLE_ID_ALL);
            assert_eq!((found.sampling, found.clock), (Sampling::Frequency(4000), None));
            for len in 0..bytes.len() {
                assert_eq!(Attributes::parse(&bytes[..len], endian), None, "{len}");
            }
        }
    }

    /// `{cycles,instructions}:S`: values of a group stand between the period and the call chain.
    #[test]
    fn values_of_counters_are_stepped_over_in_both_byte_orders() {
        // IP, TID, TIME, READ, CALLCHAIN, ID, CPU, PERIOD; the group with ids and lost samples.
        let (sample_type, read_format) =
            (0x1 | 0x2 | 0x4 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100, 0x1c);
        for endian in BOTH {
            let big = endian == Endianness::BigEndian;
            let word = |word: u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
            let pair = |a: u32, b: u32| match big {
                true => u64::from(a) << 32 | u64::from(b),
                false => u64::from(b) << 32 | u64::from(a),
            };
            let bytes = attributes(sample_type, read_format, FREQUENCY, endian);
            let layout = Attributes::parse(&bytes, endian).unwrap().layout(endian);
            let values = [2, 100, 7, 0, 200, 8, 0];
            let chain = [3, -512i64 as u64, 0x401000, 0x402000];
            let mut body = vec![0x401000, pair(42, 43), 9_000, 7, pair(1, 0), 12];
            body.extend(values.iter().chain(&chain));
            let body: Vec<u8> = body.iter().flat_map(|value| word(*value)).collect();
            let record = RecordBytes { record_type: 9, misc: 2, head: &body, tail: &[] };
            assert_eq!((layout.id(&record), layout.time(&record)), (Some(7), Some(Nanos(9_000))));
            let Event { kind: EventKind::Sample(sample), .. } = layout.decode(&record).unwrap()
            else {
                panic!("no sample")
            };
            assert_eq!((sample.pid, sample.tid, sample.cpu), (Pid(42), Tid(43), Some(Cpu(1))));
            let chain = [0x401000, 0x402000].map(ProcessAddress);
            let found: Vec<ProcessAddress> = sample.user_chain.iter().collect();
            assert_eq!((sample.period, &*found), (12, &chain[..]));
            for len in 0..body.len() {
                let record = RecordBytes { head: &body[..len], ..record };
                assert!(layout.decode(&record).is_err(), "{len}");
            }
        }
    }
}
