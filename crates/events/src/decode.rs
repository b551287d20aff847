//! Record bytes decoded into events.
//!
//! The fields of a record depend on the attributes that its event was opened with. All events of a
//! live recording share one [`RecordLayout`]; those of a file have one each, made of what the file
//! says of them ([`crate::Attributes`]). The parsing of single records is that of
//! linux-perf-event-reader, which serves live rings and perf.data alike. Sources:
//! perf_event_open(2), include/uapi/linux/perf_event.h.

use flame_profile::{Cpu, FileOffset, Nanos, Pid, ProcessAddress, Tid};
use linux_perf_event_reader::constants::{
    PERF_RECORD_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_SWITCH_OUT,
    PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
};
use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, EventRecord, Mmap2FileId, Mmap2Record, MmapRecord, RawData,
    RawEventRecord, ReadFormat, RecordIdParseInfo, RecordParseInfo, RecordType, SampleFormat,
    SampleRecord,
};

use crate::addresses::Addresses;
use crate::attributes::bits;
use crate::event::{
    Event, EventKind, Interrupt, MappingEvent, Rest, SampleEvent, StackBytes, SwitchTo,
};
use crate::fields::Fields;
use crate::images::{FileBuildId, FileId};
use crate::kernel_symbol::{self, KernelSymbolEvent};

/// Where the length of its build ID stands in the body of a mapping record that has one.
const BUILD_ID_LEN_AT: usize = 32;

/// The longest build ID that a mapping record has room for, in bytes.
const MAX_BUILD_ID_LEN: u8 = 20;

/// A record could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record is shorter than its type and the layout demand.
    #[error("a record of type {record_type} and {len} bytes is cut short")]
    Short {
        /// The record's PERF_RECORD_ number.
        record_type: u32,
        /// Its length in bytes, without header.
        len: usize,
    },
    /// A mapping's build ID is longer than the kernel's field for it.
    #[error("a mapping record has a build ID of {len} bytes")]
    BuildId {
        /// How long the record says that it is, in bytes.
        len: u8,
    },
}

/// The bytes of one record behind its header, in two pieces where it wrapped around a ring's end.
#[derive(Clone, Copy, Debug)]
pub struct RecordBytes<'a> {
    /// The PERF_RECORD_ number.
    pub record_type: u32,
    /// The header's misc field.
    pub misc: u16,
    /// The body up to the end of the ring.
    pub head: &'a [u8],
    /// The rest, from the start of the ring.
    pub tail: &'a [u8],
}

impl<'a> RecordBytes<'a> {
    fn raw(&self) -> RawData<'a> {
        match self.tail {
            [] => RawData::Single(self.head),
            tail => RawData::Split(self.head, tail),
        }
    }
}

/// Where a tracepoint writes one of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracepointField {
    /// Behind this many bytes.
    pub offset: usize,
    /// How many bytes it has.
    pub size: usize,
    /// Whether it may be negative.
    pub signed: bool,
}

impl TracepointField {
    /// The number in what a tracepoint wrote; `None` where that is too short, or the number too large.
    fn read(self, written: &RawData<'_>) -> Option<i64> {
        let mut written = *written;
        written.skip(self.offset).ok()?;
        let mut bytes = [0; 8];
        let field = bytes.get_mut(..self.size)?;
        written.read_exact(field).ok()?;
        let is_negative = self.signed && field.last().is_some_and(|byte| *byte >= 0x80);
        if is_negative {
            bytes[self.size..].fill(0xff);
        }
        let number = i64::from_le_bytes(bytes);
        (self.signed || number >= 0).then_some(number)
    }
}

/// What of its header a tracepoint says of interrupts (TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ in
/// include/linux/trace_events.h).
const FLAGS_OFFSET: usize = 2;
const HARD_INTERRUPT: u8 = 0x08;
const SOFT_INTERRUPT: u8 = 0x10;

fn interrupt(written: &RawData<'_>) -> Option<Interrupt> {
    let mut written = *written;
    written.skip(FLAGS_OFFSET).ok()?;
    let mut flags = [0];
    written.read_exact(&mut flags).ok()?;
    match flags[0] {
        flags if flags & HARD_INTERRUPT != 0 => Some(Interrupt::Hard),
        flags if flags & SOFT_INTERRUPT != 0 => Some(Interrupt::Soft),
        _ => None,
    }
}

/// Which optional fields samples carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleFields {
    /// Call chains (kernel, and user where the event asks for it).
    pub callchain: bool,
    /// The mask of user registers; 0 for none.
    pub user_registers: u64,
    /// Bytes of user stack that are copied; 0 for none.
    pub user_stack: u32,
    /// What each sample stands for, where that is fixed. It is not asked for then: a software event
    /// whose samples carry a period takes one at every occurrence, whatever period it was opened
    /// with (perf_swevent_event in kernel/events/core.c).
    pub fixed_period: Option<u64>,
    /// Which field of the tracepoint is read, if it is one.
    pub tracepoint: Option<TracepointField>,
}

/// Where samples have values of counters (PERF_SAMPLE_READ).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountsPart {
    /// Behind this many bytes of the body.
    pub(crate) start: usize,
    /// Which values there are: PERF_FORMAT_ flags.
    pub(crate) format: u64,
}

impl CountsPart {
    /// How many bytes the part has in a sample; `None` where that is beyond the sample's end.
    fn len(self, body: &[u8], endian: Endianness) -> Option<usize> {
        const TIMES: u64 = 0b11;
        const ID: u64 = 1 << 2;
        const GROUP: u64 = 1 << 3;
        const LOST: u64 = 1 << 4;
        let has = |flag: u64| usize::from(self.format & flag != 0);
        let times = (self.format & TIMES).count_ones() as usize;
        let each = 1 + has(ID) + has(LOST);
        let words = match self.format & GROUP {
            0 => each + times,
            _ => {
                let number = *body.get(self.start..)?.first_chunk()?;
                let number = match endian {
                    Endianness::LittleEndian => u64::from_le_bytes(number),
                    Endianness::BigEndian => u64::from_be_bytes(number),
                };
                let members = usize::try_from(number).ok().filter(|count| *count <= body.len())?;
                1 + times + members * each
            }
        };
        Some(words * 8)
    }
}

/// What stands before the call chain of a sample, 8 bytes each, besides values of counters.
pub(crate) const BEFORE_CHAIN: SampleFormat = SampleFormat::IDENTIFIER
    .union(SampleFormat::IP)
    .union(SampleFormat::TID)
    .union(SampleFormat::TIME)
    .union(SampleFormat::ADDR)
    .union(SampleFormat::ID)
    .union(SampleFormat::STREAM_ID)
    .union(SampleFormat::CPU)
    .union(SampleFormat::PERIOD);

/// Behind how many bytes of a sample its call chain starts, where nothing of a counter is before it.
pub(crate) fn start_of_chain(format: SampleFormat) -> usize {
    8 * format.intersection(BEFORE_CHAIN).bits().count_ones() as usize
}

/// How to read the records of events that were all opened alike.
#[derive(Clone, Copy, Debug)]
pub struct RecordLayout {
    fields: SampleFields,
    parse_info: RecordParseInfo,
    /// Where samples have values of counters, which are left out.
    counts: Option<CountsPart>,
}

impl RecordLayout {
    /// The layout of events opened with [`RecordLayout::sample_type`] and `sample_id_all`.
    pub fn new(fields: SampleFields) -> RecordLayout {
        let sample_format = SampleFormat::from_bits_truncate(Self::sample_type_of(fields));
        // Every non-sample record ends with pid/tid, time, cpu and identifier, 8 bytes each.
        let id_parse_info = RecordIdParseInfo {
            nonsample_record_id_offset_from_end: Some(8),
            sample_record_id_offset_from_start: Some(0),
        };
        let parse_info = RecordParseInfo {
            endian: Endianness::LittleEndian,
            sample_format,
            branch_sample_format: BranchSampleFormat::empty(),
            read_format: ReadFormat::empty(),
            common_data_offset_from_end: Some(32),
            sample_regs_user: fields.user_registers,
            user_regs_count: bits(fields.user_registers),
            sample_regs_intr: 0,
            intr_regs_count: 0,
            id_parse_info,
            nonsample_record_time_offset_from_end: Some(24),
            // Behind identifier, ip and pid/tid.
            sample_record_time_offset_from_start: Some(24),
        };
        RecordLayout { fields, parse_info, counts: None }
    }

    /// The layout that attributes of an event make.
    pub(crate) fn of_parts(
        fields: SampleFields,
        parse_info: RecordParseInfo,
        counts: Option<CountsPart>,
    ) -> RecordLayout {
        RecordLayout { fields, parse_info, counts }
    }

    /// The `sample_type` that events must be opened with (`sample_id_all` too).
    pub fn sample_type(&self) -> u64 {
        Self::sample_type_of(self.fields)
    }

    /// Whether samples say where a thread was without what called it.
    pub fn has_no_chain(&self) -> bool {
        !self.parse_info.sample_format.contains(SampleFormat::CALLCHAIN)
    }

    fn sample_type_of(fields: SampleFields) -> u64 {
        let mut format = SampleFormat::IDENTIFIER
            | SampleFormat::IP
            | SampleFormat::TID
            | SampleFormat::TIME
            | SampleFormat::CPU;
        format.set(SampleFormat::PERIOD, fields.fixed_period.is_none());
        format.set(SampleFormat::CALLCHAIN, fields.callchain);
        format.set(SampleFormat::RAW, fields.tracepoint.is_some());
        format.set(SampleFormat::REGS_USER, fields.user_registers != 0);
        format.set(SampleFormat::STACK_USER, fields.user_stack != 0);
        format.bits()
    }

    /// The fields that samples carry.
    pub fn fields(&self) -> SampleFields {
        self.fields
    }

    fn record<'a>(&self, record: &RecordBytes<'a>) -> RawEventRecord<'a> {
        let record_type = RecordType(record.record_type);
        RawEventRecord::new(record_type, record.misc, record.raw(), self.parse_info)
    }

    /// The identifier of the event that a record is of; `None` when it has none.
    pub fn id(&self, record: &RecordBytes<'_>) -> Option<u64> {
        self.record(record).id()
    }

    /// The time of a record; `None` when it is too short to have one.
    pub fn time(&self, record: &RecordBytes<'_>) -> Option<Nanos> {
        self.record(record).timestamp().map(Nanos)
    }

    /// For how many occurrences a sample stands that flame's own events took; `None` when it is too short to say.
    pub fn period(&self, sample: &RecordBytes<'_>) -> Option<u64> {
        if let Some(period) = self.fields.fixed_period {
            return Some(period);
        }
        let at = start_of_chain(self.parse_info.sample_format).checked_sub(8)?;
        Fields::new(sample.head.get(at..)?, self.parse_info.endian).u64()
    }

    /// The event that a record says.
    ///
    /// # Errors
    /// [`DecodeError::Short`] for a record that ends before its fields do, [`DecodeError::BuildId`]
    /// for one that says more of a build ID than fits.
    pub fn decode<'a>(&self, record: &RecordBytes<'a>) -> Result<Event<'a>, DecodeError> {
        self.plain_sample(record).map_or_else(|| self.decode_any(record), Ok)
    }

    fn decode_any<'a>(&self, record: &RecordBytes<'a>) -> Result<Event<'a>, DecodeError> {
        check_build_id(record)?;
        let raw = self.record(record);
        let time = Nanos(raw.timestamp().unwrap_or(0));
        let short = || DecodeError::Short {
            record_type: record.record_type,
            len: record.head.len() + record.tail.len(),
        };
        if record.record_type == kernel_symbol::RECORD_TYPE {
            let trailer = self.parse_info.common_data_offset_from_end.unwrap_or(0);
            let endian = self.parse_info.endian;
            let symbol = KernelSymbolEvent::parse(record, trailer, endian).ok_or_else(short)?;
            return Ok(Event { time, kind: EventKind::KernelSymbol(symbol) });
        }
        let raw = match RecordType(record.record_type) {
            RecordType::SAMPLE => {
                RawEventRecord { data: self.sample_body(record).ok_or_else(short)?, ..raw }
            }
            _ => raw,
        };
        let kind = match raw.parse().map_err(|_| short())? {
            EventRecord::Sample(sample) => EventKind::Sample(self.sample(record, &sample)),
            EventRecord::Mmap2(mmap) => mapping(&mmap),
            EventRecord::Mmap(mmap) => mapping_without_file(&mmap),
            EventRecord::Comm(comm) => EventKind::Comm {
                pid: Pid(comm.pid.cast_unsigned()),
                tid: Tid(comm.tid.cast_unsigned()),
                name: comm.name.as_slice().into_owned(),
                exec: comm.is_execve,
            },
            EventRecord::Fork(fork) => EventKind::Fork {
                pid: Pid(fork.pid.cast_unsigned()),
                tid: Tid(fork.tid.cast_unsigned()),
                parent: Pid(fork.ppid.cast_unsigned()),
                parent_tid: Tid(fork.ptid.cast_unsigned()),
            },
            EventRecord::Exit(exit) => EventKind::Exit {
                pid: Pid(exit.pid.cast_unsigned()),
                tid: Tid(exit.tid.cast_unsigned()),
            },
            EventRecord::ContextSwitch(_) => {
                let task = raw.common_data().map_err(|_| short())?;
                let (Some(pid), Some(tid)) = (task.pid, task.tid) else { return Err(short()) };
                let to = switch_to(record.misc);
                EventKind::Switch {
                    pid: Pid(pid.cast_unsigned()),
                    tid: Tid(tid.cast_unsigned()),
                    to,
                }
            }
            EventRecord::Lost(lost) => EventKind::Lost { event: 0, count: lost.count },
            EventRecord::Raw(raw) if raw.record_type == RecordType::LOST_SAMPLES => {
                let count = self.first_word(&raw.data).ok_or_else(short)?;
                EventKind::of_lost_samples(time, count)
            }
            EventRecord::Throttle(_) => EventKind::Throttle,
            EventRecord::Unthrottle(_) => EventKind::Unthrottle,
            _ => EventKind::Other,
        };
        Ok(Event { time, kind })
    }

    /// The body of a sample as its parser takes it: without values of counters, and with a call
    /// chain that is no longer than the record. `None` of one that is cut short.
    fn sample_body<'a>(&self, record: &RecordBytes<'a>) -> Option<RawData<'a>> {
        let mut body = record.raw();
        if let (Some(counts), []) = (self.counts, record.tail) {
            let len = counts.len(record.head, self.parse_info.endian)?;
            let behind = record.head.get(counts.start.checked_add(len)?..)?;
            body = RawData::Split(record.head.get(..counts.start)?, behind);
        }
        if self.parse_info.sample_format.contains(SampleFormat::CALLCHAIN) {
            let mut chain = body;
            chain.skip(start_of_chain(self.parse_info.sample_format)).ok()?;
            let most = chain.len() as u64 / 8;
            self.first_word(&chain).filter(|len| *len <= most)?;
        }
        Some(body)
    }

    fn first_word(&self, data: &RawData<'_>) -> Option<u64> {
        let mut bytes = [0; 8];
        let mut data = *data;
        data.read_exact(&mut bytes).ok()?;
        Some(match self.parse_info.endian {
            Endianness::LittleEndian => u64::from_le_bytes(bytes),
            Endianness::BigEndian => u64::from_be_bytes(bytes),
        })
    }

    fn sample<'a>(&self, record: &RecordBytes<'a>, sample: &SampleRecord<'a>) -> SampleEvent<'a> {
        let [kernel_chain, user_chain] = chains(sample);
        let user_chain = self.branch_chain(record, &user_chain).unwrap_or(user_chain);
        let registers = sample.user_regs.as_ref().map(|registers| {
            let bits = (0..64).filter(|bit| self.fields.user_registers >> bit & 1 == 1);
            bits.map(|bit| registers.get(bit).unwrap_or(0)).collect()
        });
        SampleEvent {
            event: 0,
            pid: Pid(sample.pid.unwrap_or(0).cast_unsigned()),
            tid: Tid(sample.tid.unwrap_or(0).cast_unsigned()),
            cpu: sample.cpu.map(Cpu),
            period: sample.period.or(self.fields.fixed_period).unwrap_or(1),
            ip: ProcessAddress(sample.ip.unwrap_or(0)),
            kernel_chain,
            user_chain,
            tracepoint: self.fields.tracepoint.and_then(|field| field.read(sample.raw.as_ref()?)),
            interrupt: self.fields.tracepoint.and_then(|_| interrupt(sample.raw.as_ref()?)),
            user_registers: registers,
            user_stack: sample.user_stack.map(|(bytes, len)| stack_bytes(bytes, len)),
        }
    }
}

fn switch_to(misc: u16) -> SwitchTo {
    if misc & PERF_RECORD_MISC_SWITCH_OUT == 0 {
        SwitchTo::Running
    } else if misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0 {
        SwitchTo::Preempted
    } else {
        SwitchTo::Waiting
    }
}

/// Refuses a build ID that is longer than its field: the parser panics there.
fn check_build_id(record: &RecordBytes<'_>) -> Result<(), DecodeError> {
    let has_build_id = record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID != 0;
    if RecordType(record.record_type) != RecordType::MMAP2 || !has_build_id {
        return Ok(());
    }
    match record.head.iter().chain(record.tail).nth(BUILD_ID_LEN_AT) {
        Some(len) if *len > MAX_BUILD_ID_LEN => Err(DecodeError::BuildId { len: *len }),
        _ => Ok(()),
    }
}

/// The parts of the call chain of a sample that is of the kernel and of the user.
fn chains<'a>(sample: &SampleRecord<'a>) -> [Addresses<'a>; 2] {
    let Some(chain) = &sample.callchain else { return Default::default() };
    let entries = (0..chain.len()).filter_map(|index| chain.get(index));
    let words: Vec<[u8; 8]> = entries.map(u64::to_le_bytes).collect();
    // The parser has put them in this machine's byte order.
    Addresses::of_chain(&words, Endianness::LittleEndian).map(Addresses::into_owned)
}

/// The copied part of a stack field: the kernel reserves the whole size asked for, then says how
/// many bytes it could copy before the stack's mapping ended.
fn stack_bytes(bytes: RawData<'_>, copied: u64) -> StackBytes<'_> {
    let reserved = bytes.len();
    let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(reserved);
    let (head, tail): (&[u8], &[u8]) = match bytes {
        RawData::Single(all) => (all, &[]),
        RawData::Split(head, tail) => (head, tail),
    };
    let in_head = copied.min(head.len());
    StackBytes {
        head: &head[..in_head],
        tail: &tail[..copied - in_head],
        reached_limit: copied == reserved,
        rest: Rest::default(),
    }
}

fn mapping<'a>(mmap: &Mmap2Record<'a>) -> EventKind<'a> {
    let file = match &mmap.file_id {
        Mmap2FileId::BuildId(id) => FileBuildId::new(id).map_or(FileId::None, FileId::BuildId),
        Mmap2FileId::InodeAndVersion(id) => {
            FileId::of_inode([id.major, id.minor], id.inode, Some(id.inode_generation))
        }
    };
    EventKind::Mapping(MappingEvent {
        pid: Pid(mmap.pid.cast_unsigned()),
        start: ProcessAddress(mmap.address),
        end: ProcessAddress(mmap.address.saturating_add(mmap.length)),
        offset: FileOffset(mmap.page_offset),
        file,
        path: mmap.path.as_slice(),
    })
}

/// Code that a record of the older kind tells of, which does not say which file it was. Data that
/// was mapped comes in such records, too.
fn mapping_without_file<'a>(mmap: &MmapRecord<'a>) -> EventKind<'a> {
    if !mmap.is_executable {
        return EventKind::Other;
    }
    EventKind::Mapping(MappingEvent {
        pid: Pid(mmap.pid.cast_unsigned()),
        start: ProcessAddress(mmap.address),
        end: ProcessAddress(mmap.address.saturating_add(mmap.length)),
        offset: FileOffset(mmap.page_offset),
        file: FileId::None,
        path: mmap.path.as_slice(),
    })
}

mod branch_stack;
mod plain;
#[cfg(test)]
mod tests;
