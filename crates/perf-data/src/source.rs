//! The records of a file as events in order of time.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use flame_events::{DecodeError, Endianness, Event, EventKind, EventSource, Fields, SampleEvent};
use flame_profile::{Nanos, ProcessAddress};

use crate::PerfDataError;
use crate::bytes::ReadAt;
use crate::event_names::is_meant;
use crate::facts::{Facts, KERNEL};
use crate::header::Header;
use crate::parts::Part;
use crate::recorded_events::{RecordedEvent, RecordedEvents};
use crate::records::{End, Next, Record, Records, record_at};
use crate::rounds::{Rounds, Timed};
use crate::unpack::Unpacker;

/// Records of the kernel. Source: enum perf_event_type of Linux 6.18.
mod kernel {
    pub(super) const MMAP: u32 = 1;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    /// The last that is known: the next is of user stacks that come later (Linux 6.19).
    pub(super) const LAST: u32 = 21;
}

/// Records of perf itself. Source: enum perf_user_event_type of perf 6.18.
mod own {
    pub(super) const ATTRIBUTES: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const BUILD_ID: u32 = 67;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const EVENT_UPDATE: u32 = 78;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED_WITH_LEN: u32 = 83;
    /// The last that there is.
    pub(super) const LAST: u32 = 84;
}

/// Bits of a record's misc field, some of which mean different things for different records.
mod misc {
    pub(super) const CPU_MODE: u16 = 7;
    pub(super) const GUEST_KERNEL: u16 = 4;
    pub(super) const GUEST_USER: u16 = 5;
    pub(super) const MMAP_DATA: u16 = 1 << 13;
    /// perf made up the record for a task that was there before.
    pub(super) const FORK_EXEC: u16 = 1 << 13;
}

/// An update of an event's name, among others.
const UPDATE_NAME: u64 = 2;

/// A file may describe any number of events, and each row of a profile has all values.
const MOST_VALUES: usize = 64;

/// From here on addresses are the kernel's.
const KERNEL_START: u64 = 1 << 63;

/// What a file has that becomes no event, or was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Records of kinds that are not known, by their number.
    pub unknown: BTreeMap<u32, u64>,
    /// Samples of virtual machines that ran on the machine.
    pub guests: u64,
    /// Records of an event that the file does not tell of.
    pub nobodys: u64,
    /// Records that came too late to be put in order.
    pub late: u64,
    /// Where the file ends within a record, or is not a file of records any more.
    pub cut_at: Option<u64>,
    /// Where something stands behind all that the file says it has.
    pub behind: Option<u64>,
    /// Whether what perf writes when the recording ends is missing, or a part of it.
    pub has_no_facts: bool,
    /// Whether packed records cannot be unpacked to their end.
    pub broken_packing: bool,
}

/// Where the kernel was while the recording ran: its first address by its own symbol of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace {
    /// `_text` or `_stext`.
    pub symbol: Vec<u8>,
    /// Where that was.
    pub address: ProcessAddress,
}

/// A file that is read.
///
/// ```
/// use flame_perf_data::PerfData;
///
/// // The start of what `perf record -o -` writes, and nothing behind it.
/// let file: &[u8] = b"PERFILE2\x10\0\0\0\0\0\0\0";
/// let error = PerfData::open(Box::new(file)).unwrap_err();
/// assert_eq!(error.to_string(), "it is not a perf.data file that can be read: it has no event");
/// ```
#[derive(Debug)]
pub struct PerfData<'s> {
    endian: Endianness,
    /// What is read now, and the others of a directory.
    part: Part<'s>,
    other_parts: Vec<Part<'s>>,
    events: RecordedEvents,
    /// For each event the position of its value, if its samples are taken.
    value_of: Vec<Option<usize>>,
    facts: Facts,
    kernel: Option<KernelPlace>,
    rounds: Rounds,
    /// Whether other files of a directory are read, too.
    pub(crate) has_parts: bool,
    has_user_registers: bool,
    left: Left,
}

impl<'s> PerfData<'s> {
    /// Reads what stands before the first record, and chooses all events that are recorded as the first
    /// one is.
    ///
    /// # Errors
    /// It cannot be read, or has no event.
    pub fn open(mut input: Box<dyn ReadAt + 's>) -> Result<PerfData<'s>, PerfDataError> {
        let header = Header::read(&mut *input)?;
        let endian = header.endian;
        let (mut events, mut facts) = (RecordedEvents::default(), Facts::default());
        let (mut end, mut left) = (None, Left::default());
        if let Some(file) = &header.file {
            events = RecordedEvents::read(file, endian, &mut *input)?;
            left.has_no_facts = file.data.len == 0;
            end = (file.data.len > 0).then(|| file.data.start.saturating_add(file.data.len));
            let sections = file.feature_sections(endian, &mut *input)?;
            left.behind = file.behind(&sections, &mut *input)?;
            for (number, section) in sections {
                let bytes = section.read(&mut *input)?;
                left.has_no_facts |= (bytes.len() as u64) < section.len && !section.is_too_long();
                facts.take(number, &bytes, endian, &mut events);
            }
        }
        let records = Records::new(input, endian, header.records, end);
        let mut file = PerfData {
            endian,
            part: Part::new(records),
            other_parts: Vec::new(),
            events,
            value_of: Vec::new(),
            facts,
            kernel: None,
            rounds: Rounds::default(),
            has_parts: false,
            has_user_registers: true,
            left,
        };
        if header.file.is_none() {
            file.read_stream_header()?;
        }
        file.choose_all()?;
        Ok(file)
    }

    /// Takes the samples of all events whose stacks are recorded as those of the first: registers and
    /// copies are of one kind. Parts of one event have one value.
    fn choose_all(&mut self) -> Result<(), PerfDataError> {
        let all = &self.events.all;
        let first = all.iter().find(|event| !event.is_dummy()).or(all.first());
        let first = first.ok_or(PerfDataError::Broken("it has no event"))?;
        let (first_base, registers) = (first.base_name(), first.layout.fields().user_registers);
        let mut bases = vec![first_base];
        let mut value_of = Vec::with_capacity(all.len());
        for event in all {
            let base = event.base_name();
            let known = bases.iter().position(|known| *known == base);
            let is_alike = event.layout.fields().user_registers == registers;
            let is_new = known.is_none() && !event.is_dummy() && bases.len() < MOST_VALUES;
            if is_new && is_alike {
                value_of.push(Some(bases.len()));
                bases.push(base);
            } else {
                value_of.push(known.filter(|_| is_alike));
            }
        }
        self.value_of = value_of;
        Ok(())
    }

    /// Reads the records before the first one of the kernel: they say what is a header elsewhere.
    fn read_stream_header(&mut self) -> Result<(), PerfDataError> {
        while let Some(record) = self.part.records.peek()? {
            let is_packed = matches!(record.kind, own::COMPRESSED | own::COMPRESSED_WITH_LEN);
            if record.kind < own::ATTRIBUTES || record.kind == own::FINISHED_ROUND || is_packed {
                break;
            }
            self.part.records.next()?;
            self.take_own(&record)?;
        }
        Ok(())
    }

    /// Takes the samples of the events of that name: `cycles` means `cycles:u`, too.
    ///
    /// # Errors
    /// There is none.
    pub fn choose(&mut self, asked: &str) -> Result<(), PerfDataError> {
        let is_meant = |event: &RecordedEvent| is_meant(asked.as_bytes(), event.name.as_bytes());
        self.value_of = self.events.all.iter().map(|event| is_meant(event).then_some(0)).collect();
        match self.value_of.contains(&Some(0)) {
            true => Ok(()),
            false => {
                let others = self.events.names();
                Err(PerfDataError::NoSuchEvent { asked: asked.to_owned(), others })
            }
        }
    }

    /// Adds the other files of a directory that `perf record --threads` wrote, of which this one is `data`.
    pub fn add_parts(&mut self, parts: impl IntoIterator<Item = Box<dyn ReadAt + 's>>) {
        let part = |input| Part::new(Records::new(input, self.endian, 0, None));
        self.other_parts.extend(parts.into_iter().map(part));
        self.has_parts = !self.other_parts.is_empty();
    }

    /// Leaves the user's registers and stacks out of samples: they are of another kind of machine.
    pub fn leave_out_registers(&mut self) {
        self.has_user_registers = false;
    }

    /// In which order the machine that recorded has the bytes of a number.
    pub fn endian(&self) -> Endianness {
        self.endian
    }

    /// What the file says about the recording.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The events, each with how many samples were read, and with the position of its value if its
    /// samples are taken.
    pub fn events(&self) -> impl Iterator<Item = (&RecordedEvent, Option<usize>)> {
        self.events.all.iter().zip(self.value_of.iter().copied())
    }

    /// Of each value the event that it is of, and how many samples of that were read; the first of its
    /// parts where it has several.
    pub fn values(&self) -> Vec<(&RecordedEvent, u64)> {
        let mut values: Vec<(&RecordedEvent, u64)> = Vec::new();
        for (event, value) in self.events() {
            match value.map(|value| values.get_mut(value)) {
                Some(Some((_, samples))) => *samples += event.samples,
                Some(None) => values.push((event, event.samples)),
                None => {}
            }
        }
        values
    }

    /// Where the kernel was, once its record was read.
    pub fn kernel(&self) -> Option<&KernelPlace> {
        self.kernel.as_ref()
    }

    /// What became no event so far.
    pub fn left(&self) -> Left {
        Left {
            late: self.rounds.late,
            broken_packing: self.left.broken_packing || self.part.has_broken_packing(),
            cut_at: self.left.cut_at.or(self.part.cut_at()),
            ..self.left.clone()
        }
    }

    /// Takes in a record of perf's own; what it says of the recording is taken over.
    fn take_own(&mut self, record: &Record) -> io::Result<()> {
        let body = record.body();
        let mut fields = Fields::new(body, self.endian);
        match record.kind {
            own::ATTRIBUTES => {
                self.events.add_record(body, self.endian);
                self.value_of.resize(self.events.all.len(), None);
            }
            own::FEATURE => {
                let number = fields.u64().and_then(|number| u32::try_from(number).ok());
                let (bytes, endian) = (fields.rest(), self.endian);
                self.facts.take(number.unwrap_or(u32::MAX), bytes, endian, &mut self.events);
            }
            own::BUILD_ID => self.facts.take_build_id(record.misc, body, self.endian),
            own::EVENT_UPDATE => {
                if let (Some(UPDATE_NAME), Some(id)) = (fields.u64(), fields.u64()) {
                    let name = fields.rest().split(|byte| *byte == 0).next().unwrap_or_default();
                    let name = String::from_utf8_lossy(name).into_owned();
                    self.events.set_name(usize::MAX, &[id], name);
                }
            }
            // What these tell the length of stands behind them.
            own::AUXTRACE => return self.part.records.skip(fields.u64().unwrap_or(0)),
            own::TRACING_DATA => {
                let len = u64::from(fields.u32().unwrap_or(0));
                return self.part.records.skip(len.next_multiple_of(8));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes in a record. Those that waited for it, or not for it any more, are in `ready`.
    fn take(&mut self, record: Record, ready: &mut Vec<Timed>) -> io::Result<()> {
        ready.clear();
        match record.kind {
            own::FINISHED_ROUND => {
                // What is packed is behind what is not, by what the unpacker keeps; and of other parts
                // nothing is said.
                if self.part.unpacker.is_none() && !self.has_parts {
                    self.rounds.end_round(ready);
                }
            }
            1..=kernel::LAST => self.queue(record, ready),
            own::ATTRIBUTES..=own::LAST => self.take_own(&record)?,
            kind => *self.left.unknown.entry(kind).or_default() += 1,
        }
        Ok(())
    }

    /// Has a record of the kernel's wait for its time, unless nobody wants it.
    fn queue(&mut self, record: Record, ready: &mut Vec<Timed>) {
        let Some(event) = self.events.of_record(&record.bytes()) else {
            self.left.nobodys += 1;
            return;
        };
        if record.kind == kernel::SAMPLE {
            self.events.all[event].samples += 1;
            if self.value_of[event].is_none() {
                return;
            }
            let mode = record.misc & misc::CPU_MODE;
            if matches!(mode, misc::GUEST_KERNEL | misc::GUEST_USER) {
                self.left.guests += 1;
                return;
            }
        }
        if matches!(record.kind, kernel::MMAP | kernel::MMAP2) && !self.is_of_process(&record) {
            return;
        }
        // Those of a task that was there before do not share its parent's memory: all that it has
        // is told of.
        if record.kind == kernel::FORK && record.misc & misc::FORK_EXEC != 0 {
            return;
        }
        let time = self.events.all[event].layout.time(&record.bytes());
        self.part.reached = self.part.reached.max(time.unwrap_or_default());
        self.rounds.push(time, event, record, ready);
    }

    /// Whether a mapping is code of a process; where the kernel is, is noted.
    fn is_of_process(&mut self, record: &Record) -> bool {
        const KERNELS: u32 = u32::MAX;
        let mut fields = Fields::new(record.body(), self.endian);
        let (pid, _tid) = (fields.u32(), fields.u32());
        if pid != Some(KERNELS) {
            return record.misc & misc::MMAP_DATA == 0;
        }
        let (_start, _len, address) = (fields.u64(), fields.u64(), fields.u64());
        let name = fields.rest().split(|byte| *byte == 0).next().unwrap_or_default();
        if let (Some(symbol), Some(address)) = (name.strip_prefix(KERNEL), address) {
            let address = ProcessAddress(address);
            self.kernel.get_or_insert(KernelPlace { symbol: symbol.to_vec(), address });
        }
        false
    }

    fn take_packed(
        &mut self,
        record: &Record,
        sink: &mut dyn FnMut(Event<'_>),
        ready: &mut Vec<Timed>,
    ) -> io::Result<()> {
        let mut packed = record.body();
        if record.kind == own::COMPRESSED_WITH_LEN {
            let mut fields = Fields::new(packed, self.endian);
            let len = fields.u64().and_then(|len| usize::try_from(len).ok());
            packed = len.and_then(|len| fields.bytes(len)).unwrap_or_default();
        }
        let mut unpacker = self.part.unpacker.take().unwrap_or_else(Unpacker::new);
        unpacker.push(packed);
        while let Some(bytes) = unpacker.unpack() {
            self.part.unpacker = Some(unpacker);
            self.take_unpacked(&bytes, sink, ready)?;
            let Some(same) = self.part.unpacker.take() else { return Ok(()) };
            unpacker = same;
        }
        self.part.unpacker = Some(unpacker);
        Ok(())
    }

    /// Takes in the records that unpacked bytes complete.
    fn take_unpacked(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn FnMut(Event<'_>),
        ready: &mut Vec<Timed>,
    ) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.part.unpacked);
        block.extend_from_slice(bytes);
        let block = Rc::new(block);
        let mut at = 0;
        loop {
            match record_at(&block, at, self.endian) {
                Next::Record(record) => {
                    at += record.len();
                    self.take(record, ready)?;
                    self.hand_on(ready, sink);
                }
                Next::Cut => break,
                Next::Broken => {
                    self.left.cut_at.get_or_insert(self.part.records.place());
                    self.part.records.ended = Some(End::Broken);
                    return Ok(());
                }
            }
        }
        self.part.unpacked.extend_from_slice(block.get(at..).unwrap_or_default());
        Ok(())
    }

    fn hand_on(&self, ready: &mut Vec<Timed>, sink: &mut dyn FnMut(Event<'_>)) {
        for timed in ready.drain(..) {
            let layout = &self.events.all[timed.event].layout;
            let event = layout.decode(&timed.record.bytes());
            sink(match event {
                Ok(event) => self.completed(event, timed.event),
                Err(error) => undecodable(timed.time, error),
            });
        }
    }

    /// A sample with what its attributes did not ask for, and the position of its value.
    fn completed<'e>(&self, mut event: Event<'e>, position: usize) -> Event<'e> {
        if let EventKind::Sample(sample) = &mut event.kind {
            sample.event = self.value_of[position].unwrap_or(0);
            if self.events.all[position].layout.has_no_chain() && sample.ip.0 >= KERNEL_START {
                sample.kernel_chain = [sample.ip].into_iter().collect();
            }
            if !self.has_user_registers {
                without_registers(sample);
            }
        }
        event
    }
}

fn without_registers(sample: &mut SampleEvent<'_>) {
    (sample.user_registers, sample.user_stack) = (None, None);
}

fn undecodable(time: Nanos, error: DecodeError) -> Event<'static> {
    Event { time, kind: EventKind::Undecodable(error) }
}

impl EventSource for PerfData<'_> {
    type Error = PerfDataError;

    /// Hands on all that the file has.
    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), PerfDataError> {
        let mut ready = Vec::new();
        loop {
            while let Some(record) = self.part.records.next()? {
                if matches!(record.kind, own::COMPRESSED | own::COMPRESSED_WITH_LEN) {
                    self.take_packed(&record, sink, &mut ready)?;
                } else {
                    self.take(record, &mut ready)?;
                    self.hand_on(&mut ready, sink);
                }
                self.part.take_turns(&mut self.other_parts);
            }
            if let Some(mut unpacker) = self.part.unpacker.take() {
                let rest = unpacker.finish();
                self.part.unpacker = Some(unpacker);
                self.take_unpacked(&rest, sink, &mut ready)?;
            }
            let Some(next) = self.other_parts.pop() else { break };
            let ended = std::mem::replace(&mut self.part, next);
            self.left.broken_packing |= ended.has_broken_packing();
            self.left.cut_at = self.left.cut_at.or(ended.cut_at());
        }
        self.rounds.end(&mut ready);
        self.hand_on(&mut ready, sink);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
