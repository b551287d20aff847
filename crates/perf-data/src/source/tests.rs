use flame_profile::{Pid, Tid, ValueType};

use super::*;

const BOTH: [Endianness; 2] = [Endianness::LittleEndian, Endianness::BigEndian];

/// IP, TID, TIME, CALLCHAIN, ID, PERIOD.
const SAMPLE_TYPE: u64 = 0x1 | 0x2 | 0x4 | 0x20 | 0x40 | 0x100;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USER: u64 = -512i64 as u64;

/// Files in the byte order of a machine.
#[derive(Clone, Copy)]
struct Writer(Endianness);

impl Writer {
    fn number<const N: usize>(self, mut bytes: [u8; N]) -> Vec<u8> {
        if self.0 == Endianness::BigEndian {
            bytes.reverse();
        }
        bytes.to_vec()
    }

    fn word(self, word: u64) -> Vec<u8> {
        self.number(word.to_le_bytes())
    }

    fn half(self, half: u32) -> Vec<u8> {
        self.number(half.to_le_bytes())
    }

    fn words(self, words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| self.word(*word)).collect()
    }

    fn halves(self, halves: &[u32]) -> Vec<u8> {
        halves.iter().flat_map(|half| self.half(*half)).collect()
    }

    fn record(self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut record = self.half(kind);
        record.extend(self.number(misc.to_le_bytes()));
        record.extend(self.number((body.len() as u16 + 8).to_le_bytes()));
        record.extend(body);
        record
    }

    fn magic(self) -> Vec<u8> {
        let text = *b"PERFILE2";
        self.number(text)
    }

    /// Attributes of 64 bytes of cpu-clock or another event of the kernel's own.
    fn attributes(self, config: u64) -> Vec<u8> {
        let mut bytes = self.halves(&[1, 64]);
        bytes.extend(self.words(&[config, 1000, SAMPLE_TYPE, 0]));
        let flags = match self.0 {
            Endianness::BigEndian => SAMPLE_ID_ALL.reverse_bits(),
            Endianness::LittleEndian => SAMPLE_ID_ALL,
        };
        bytes.extend(self.word(flags));
        bytes.extend([0; 16]);
        bytes
    }

    fn text(self, text: &str) -> Vec<u8> {
        let mut bytes = self.half(text.len() as u32 + 4);
        bytes.extend(text.as_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    fn sample(self, id: u64, time: u64, chain: &[u64], misc: u16) -> Vec<u8> {
        let mut body = self.word(chain[0]);
        body.extend(self.halves(&[42, 43]));
        body.extend(self.words(&[time, id, 7, chain.len() as u64 + 1, USER]));
        body.extend(self.words(chain));
        self.record(kernel::SAMPLE, misc, &body)
    }

    fn trailer(self, id: u64, time: u64) -> Vec<u8> {
        [self.halves(&[42, 43]), self.words(&[time, id])].concat()
    }

    fn comm(self, id: u64, time: u64) -> Vec<u8> {
        let body = [self.halves(&[42, 43]), b"server\0\0".to_vec(), self.trailer(id, time)];
        self.record(3, 0, &body.concat())
    }

    /// What both kinds of files hold: two rounds out of order, two events, kinds that nobody knows.
    fn records(self) -> Vec<Vec<u8>> {
        vec![
            self.comm(0, 0),
            self.sample(1, 50, &[0x1000, 0x2000], 2),
            self.sample(1, 30, &[0x1000, 0x3000], 2),
            self.record(own::FINISHED_ROUND, 0, &[]),
            self.sample(2, 40, &[0x5000], 2),
            self.record(9999, 0, b"from the future."),
            // A user's stack that the kernel wrote later.
            self.record(22, 0, &self.words(&[7, 2, 0x1000, 0x2000])),
            self.sample(1, 45, &[0x1000], 2),
            self.sample(1, 46, &[0x1000], misc::GUEST_USER),
            self.sample(99, 47, &[0x1000], 2),
            self.record(own::AUXTRACE, 0, &self.words(&[24, 0, 0, 0, 0])),
            vec![0; 24],
            self.record(own::FINISHED_ROUND, 0, &[]),
            self.record(13, 0, &[self.word(12), self.trailer(1, 60)].concat()),
            // What perf has counted in all, without a time.
            self.record(13, 0, &[self.word(20), self.trailer(1, 0)].concat()),
        ]
    }

    fn stream(self) -> Vec<u8> {
        let mut file = [self.magic(), self.word(16)].concat();
        for (config, id) in [(9, 3), (0, 1), (2, 2)] {
            let body = [self.attributes(config), self.word(id)].concat();
            file.extend(self.record(own::ATTRIBUTES, 0, &body));
        }
        let host = [self.word(3), self.text("a-host")].concat();
        file.extend(self.record(own::FEATURE, 0, &host));
        file.extend(self.records().concat());
        file
    }

    fn file(self) -> Vec<u8> {
        const HEADER: u64 = 104;
        let records = self.records().concat();
        // The identifiers of three events, their attributes, the records.
        let (ids, entry) = (HEADER, 64 + 16);
        let attributes = ids + 3 * 8;
        let data = attributes + 3 * entry;
        let mut file = [self.magic(), self.words(&[HEADER, entry, attributes, 3 * entry])].concat();
        file.extend(self.words(&[data, records.len() as u64, 0, 0]));
        // The host's name and the names of events.
        file.extend(self.words(&[1 << 3 | 1 << 12, 0, 0, 0]));
        file.extend(self.words(&[3, 1, 2]));
        for (position, config) in [9, 0, 2].into_iter().enumerate() {
            file.extend(self.attributes(config));
            file.extend(self.words(&[ids + 8 * position as u64, 8]));
        }
        file.extend(records);
        let host = self.text("a-host");
        let mut events = self.halves(&[3, 64]);
        for (config, id, name) in [(9, 3, "dummy:u"), (0, 1, "cpu-clock:u"), (2, 2, "faults")] {
            events.extend(self.attributes(config));
            events.extend([self.half(1), self.text(name), self.word(id)].concat());
        }
        let at = file.len() as u64 + 32;
        let lens = [host.len() as u64, events.len() as u64];
        file.extend(self.words(&[at, lens[0], at + lens[0], lens[1]]));
        file.extend([host, events].concat());
        file
    }
}

/// Time, pid, tid, period and the innermost addresses of samples, and how many were lost, by records
/// of the kernel and in all.
type Found = (Vec<(u64, Pid, Tid, u64, Vec<u64>)>, [u64; 2], Left);

fn drain(bytes: &[u8], event: Option<&str>) -> Result<Found, PerfDataError> {
    let mut file = PerfData::open(Box::new(bytes))?;
    if let Some(event) = event {
        file.choose(event)?;
    }
    let (mut samples, mut lost) = (Vec::new(), [0; 2]);
    file.drain(&mut |event| match event.kind {
        EventKind::Sample(sample) => {
            let chain = sample.user_chain.iter().map(|address| address.0).collect();
            samples.push((event.time.0, sample.pid, sample.tid, sample.period, chain));
        }
        EventKind::Lost { count, .. } => lost[0] += count,
        EventKind::LostInAll { count } => lost[1] += count,
        _ => {}
    })?;
    Ok((samples, lost, file.left()))
}

#[test]
fn files_and_streams_of_both_byte_orders_have_their_samples_in_order_of_time() {
    for endian in BOTH {
        for file in [Writer(endian).file(), Writer(endian).stream()] {
            let (samples, lost, left) = drain(&file, Some("cpu-clock")).unwrap();
            let sample = |time, chain: &[u64]| (time, Pid(42), Tid(43), 7, chain.to_vec());
            let expect = [
                sample(30, &[0x1000, 0x3000]),
                sample(45, &[0x1000]),
                sample(50, &[0x1000, 0x2000]),
            ];
            assert_eq!((&*samples, lost), (&expect[..], [12, 20]), "{endian:?}");
            let unknown = BTreeMap::from([(22, 1), (9999, 1)]);
            assert_eq!(left, Left { unknown, guests: 1, nobodys: 1, ..Left::default() });
            let data = PerfData::open(Box::new(&*file)).unwrap();
            assert_eq!(data.facts().host.as_deref(), Some("a-host"));
        }
    }
}

#[test]
fn samples_of_several_events_have_the_positions_of_their_values() {
    for file in [Writer(BOTH[0]).file(), Writer(BOTH[1]).stream()] {
        let mut data = PerfData::open(Box::new(&*file)).unwrap();
        let mut samples = Vec::new();
        data.drain(&mut |event| {
            if let EventKind::Sample(sample) = event.kind {
                samples.push((event.time.0, sample.event));
            }
        })
        .unwrap();
        assert_eq!(samples, [(30, 0), (40, 1), (45, 0), (50, 0)]);
        let values = data.values();
        let counts: Vec<u64> = values.iter().map(|(_, samples)| *samples).collect();
        assert_eq!(counts, [4, 1], "those that were left out included");
        assert_eq!(values[0].0.value_type(false), ValueType::new("cpu-clock", "nanoseconds"));
        assert_eq!(values[0].0.value_type(true), ValueType::new("cpu", "nanoseconds"));
    }
}

#[test]
fn a_file_has_so_many_values_at_most() {
    let writer = Writer(BOTH[0]);
    let mut file = [writer.magic(), writer.word(16)].concat();
    for config in 100..300 {
        let body = [writer.attributes(config), writer.word(config)].concat();
        file.extend(writer.record(own::ATTRIBUTES, 0, &body));
    }
    let data = PerfData::open(Box::new(&*file)).unwrap();
    assert_eq!(data.values().len(), MOST_VALUES);
    assert_eq!(data.events().filter(|(_, value)| value.is_none()).count(), 200 - MOST_VALUES);
}

#[test]
fn files_of_a_directory_are_one_recording() {
    let writer = Writer(BOTH[0]);
    let main = writer.stream();
    let part = |times: std::ops::Range<u64>| -> Vec<u8> {
        times.flat_map(|time| writer.sample(1, 100 + 2 * time, &[0x1000], 2)).collect()
    };
    let parts = [part(0..700), part(300..1500), [part(0..3), vec![9, 0]].concat()];
    let mut data = PerfData::open(Box::new(&*main)).unwrap();
    data.choose("cpu-clock").unwrap();
    data.add_parts(parts.iter().map(|part| Box::new(&**part) as Box<dyn ReadAt>));
    let mut times = Vec::new();
    data.drain(&mut |event| {
        if let EventKind::Sample(_) = event.kind {
            times.push(event.time.0);
        }
    })
    .unwrap();
    assert_eq!((times.len(), times.is_sorted()), (3 + 700 + 1200 + 3, true));
    let left = data.left();
    assert_eq!((left.late, left.cut_at), (0, Some(parts[2].len() as u64 - 2)));
}

#[test]
fn another_event_is_taken_by_its_name_with_or_without_modifiers() {
    let file = Writer(Endianness::LittleEndian).file();
    assert_eq!(drain(&file, Some("cpu-clock")).unwrap().0.len(), 3);
    assert_eq!(drain(&file, Some("faults")).unwrap().0[0].0, 40);
    let error = drain(&file, Some("cycles")).unwrap_err().to_string();
    assert_eq!(error, "no event cycles in it: it has dummy:u, cpu-clock:u, faults");
}

/// What stands before the cut is read, whatever is missing; where it is noticed depends on the cut.
#[test]
fn a_file_that_is_cut_anywhere_has_what_stands_before() {
    for whole in [Writer(Endianness::LittleEndian).file(), Writer(Endianness::BigEndian).stream()] {
        let mut most = 0;
        for len in 0..whole.len() {
            let Ok((samples, _, left)) = drain(&whole[..len], Some("cpu-clock")) else {
                assert_eq!(most, 0, "{len}: an error, although there were samples before");
                continue;
            };
            assert!(samples.len() >= most, "{len}: fewer than of less");
            assert!(samples.is_sorted());
            most = samples.len();
            assert!(most == 0 || left.cut_at.is_none_or(|at| at <= len as u64), "{len}");
        }
        assert_eq!(most, 3);
    }
}

/// Any byte changed to several others, one at a time: nothing panics, and memory stays bounded.
#[test]
fn damaged_files_are_read_or_refused() {
    for whole in [Writer(Endianness::LittleEndian).file(), Writer(Endianness::BigEndian).stream()] {
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = drain(&damaged, None);
            }
        }
    }
}

#[test]
fn a_record_without_a_length_ends_the_file() {
    let writer = Writer(Endianness::LittleEndian);
    let mut file = writer.stream();
    let end = file.len() as u64;
    file.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(writer.sample(1, 70, &[0x1000], 2));
    let (samples, _, left) = drain(&file, Some("cpu-clock")).unwrap();
    assert_eq!((samples.len(), left.cut_at), (3, Some(end)));
}

#[test]
fn what_stands_behind_a_file_is_told_and_not_read() {
    for endian in BOTH {
        let (file, stream) = (Writer(endian).file(), Writer(endian).stream());
        for behind in [&*file, &*stream, b"#"] {
            let (samples, _, left) = drain(&[&*file, behind].concat(), Some("cpu-clock")).unwrap();
            assert_eq!((samples.len(), left.behind), (3, Some(file.len() as u64)));
            let both = [&*stream, behind].concat();
            let (samples, _, left) = drain(&both, Some("cpu-clock")).unwrap();
            assert_eq!((samples.len(), left.cut_at), (3, Some(stream.len() as u64)));
        }
    }
}
