use super::*;

const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// pid/tid, time, cpu, identifier: what stands at the end of every record but samples.
fn trailer(time: u64) -> Vec<u8> {
    words(&[pair(42, 43), time, pair(1, 0), 7])
}

/// Registers 7 (sp) and 8 (ip), and 16 bytes of stack.
const FIELDS: SampleFields = SampleFields {
    callchain: true,
    user_registers: 0x180,
    user_stack: 16,
    fixed_period: None,
    tracepoint: None,
};

fn sample_body(copied: u64) -> Vec<u8> {
    let kernel = -128i64 as u64;
    let user = -512i64 as u64;
    words(&[
        7,            // identifier
        0xffff_0001,  // ip
        pair(42, 43), // pid, tid
        1_000,        // time
        pair(1, 0),   // cpu
        10_101_010,   // period
        5,            // length of the call chain
        kernel,
        0xffff_0001,
        0xffff_0002,
        user,
        0x401_000,
        2,           // register ABI: 64 bit
        0x7ffe_0000, // sp
        0x401_000,   // ip
        16,          // bytes of stack reserved
        0x1111,
        0x2222,
        copied,
    ])
}

#[test]
fn a_sample_has_its_fields_in_the_kernels_order() {
    let body = sample_body(16);
    let layout = RecordLayout::new(FIELDS);
    let record = RecordBytes { record_type: SAMPLE, misc: 1, head: &body, tail: &[] };
    let event = layout.decode(&record).unwrap();
    let EventKind::Sample(sample) = event.kind else { panic!("not a sample") };
    assert_eq!((event.time, layout.time(&record)), (Nanos(1_000), Some(Nanos(1_000))));
    assert_eq!((sample.pid, sample.tid, sample.cpu), (Pid(42), Tid(43), Some(Cpu(1))));
    assert_eq!((sample.period, sample.ip), (10_101_010, ProcessAddress(0xffff_0001)));
    assert_eq!(layout.period(&record), Some(10_101_010));
    let addresses = |chain: &Addresses<'_>| chain.iter().map(|a| a.0).collect::<Vec<_>>();
    assert_eq!(addresses(&sample.kernel_chain), [0xffff_0001, 0xffff_0002]);
    assert_eq!(addresses(&sample.user_chain), [0x401_000]);
    assert_eq!(sample.user_registers, Some(vec![0x7ffe_0000, 0x401_000]));
    let stack = sample.user_stack.unwrap();
    assert_eq!((stack.head, stack.tail), (&*words(&[0x1111, 0x2222]), &[][..]));
    assert!(stack.reached_limit);
}

#[test]
fn a_stack_that_ended_before_the_limit_says_so() {
    let body = sample_body(8);
    let record = RecordBytes { record_type: SAMPLE, misc: 1, head: &body, tail: &[] };
    let event = RecordLayout::new(FIELDS).decode(&record).unwrap();
    let EventKind::Sample(sample) = event.kind else { panic!("not a sample") };
    let stack = sample.user_stack.unwrap();
    assert_eq!((stack.head, stack.reached_limit), (&*words(&[0x1111]), false));
}

#[test]
fn a_record_that_wraps_anywhere_decodes_the_same() {
    let body = sample_body(16);
    let layout = RecordLayout::new(FIELDS);
    for at in (0..body.len()).step_by(8) {
        let (head, tail) = body.split_at(at);
        let record = RecordBytes { record_type: SAMPLE, misc: 1, head, tail };
        let EventKind::Sample(sample) = layout.decode(&record).unwrap().kind else {
            panic!("not a sample")
        };
        let stack = sample.user_stack.unwrap();
        let bytes: Vec<u8> = [stack.head, stack.tail].concat();
        assert_eq!(bytes, words(&[0x1111, 0x2222]));
        assert_eq!(sample.user_registers, Some(vec![0x7ffe_0000, 0x401_000]));
        assert_eq!(layout.time(&record), Some(Nanos(1_000)));
    }
}

#[test]
fn a_record_cut_anywhere_is_an_error_or_an_event_but_no_panic() {
    let layout = RecordLayout::new(FIELDS);
    let body = sample_body(16);
    for end in 0..body.len() {
        let record = RecordBytes { record_type: SAMPLE, misc: 1, head: &body[..end], tail: &[] };
        assert!(layout.decode(&record).is_err(), "{end} bytes of {}", body.len());
    }
    for record_type in 0..25 {
        for end in 0..body.len() {
            let record = RecordBytes { record_type, misc: 0, head: &body[..end], tail: &[] };
            let _ = layout.decode(&record);
        }
    }
}

/// Linux 6.19 has 22 of them. Whatever comes later is of no interest, and no error.
#[test]
fn records_of_kernels_to_come_are_others() {
    let layout = RecordLayout::new(FIELDS);
    let mut body = words(&[1, 2]);
    body.extend(trailer(77));
    for record_type in 22..64 {
        let record = RecordBytes { record_type, misc: 0, head: &body, tail: &[] };
        let event = layout.decode(&record).unwrap();
        assert!(matches!(event.kind, EventKind::Other), "{record_type}");
        assert_eq!(event.time, Nanos(77), "{record_type}");
    }
}

#[test]
fn a_mapping_names_its_file_and_range() {
    let mut body = words(&[pair(42, 42), 0x7f00_0000, 0x2000, 0x1000, pair(0xfe, 1), 4711, 99]);
    body.extend(words(&[pair(5, 2)]));
    body.extend(b"/lib/a.so\0\0\0\0\0\0\0");
    body.extend(trailer(5));
    let record = RecordBytes { record_type: MMAP2, misc: 2, head: &body, tail: &[] };
    let event = RecordLayout::new(FIELDS).decode(&record).unwrap();
    let EventKind::Mapping(mapping) = event.kind else { panic!("not a mapping") };
    assert_eq!(event.time, Nanos(5));
    assert_eq!(
        (mapping.start, mapping.end),
        (ProcessAddress(0x7f00_0000), ProcessAddress(0x7f00_2000))
    );
    assert_eq!(mapping.offset, FileOffset(0x1000));
    let generation = Some(99);
    assert_eq!(mapping.file, FileId::Inode { major: 0xfe, minor: 1, inode: 4711, generation });
    assert_eq!(&*mapping.path, b"/lib/a.so");
}

#[test]
fn a_build_id_that_is_longer_than_its_field_is_refused() {
    const WITH_BUILD_ID: u16 = 1 << 14;
    let mut body = words(&[pair(42, 42), 0x7f00_0000, 0x2000, 0x1000, 21, 0, 0, pair(5, 2)]);
    body.extend(b"/lib/a\0\0");
    body.extend(trailer(5));
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        let record = RecordBytes { record_type: MMAP2, misc: WITH_BUILD_ID, head, tail };
        let error = RecordLayout::new(FIELDS).decode(&record).unwrap_err();
        assert_eq!(error.to_string(), "a mapping record has a build ID of 21 bytes");
    }
}

#[test]
fn a_fixed_period_is_not_in_the_record() {
    let fields = SampleFields { fixed_period: Some(10), ..SampleFields::default() };
    let layout = RecordLayout::new(fields);
    let body = words(&[7, 0x401_000, pair(42, 43), 1_000, pair(1, 0)]);
    let record = RecordBytes { record_type: SAMPLE, misc: 2, head: &body, tail: &[] };
    let EventKind::Sample(sample) = layout.decode(&record).unwrap().kind else {
        panic!("not a sample")
    };
    assert_eq!((sample.period, sample.ip), (10, ProcessAddress(0x401_000)));
}
