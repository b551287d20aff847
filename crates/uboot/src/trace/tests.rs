use std::io::Cursor;

use super::*;
use crate::layout::ByteOrder;
use crate::record::RecordKind;
use crate::test_traces::{DO_TRACE, Event, In, MAIN, Out, PARSE, PUTS, calls, header, list};

const EVENTS: [Event; 6] =
    [In(MAIN, 10), In(PARSE, 11), Out(PARSE, 15), In(PUTS, 15), Out(PUTS, 16), Out(MAIN, 20)];

fn open(bytes: &[u8]) -> Result<Trace<Cursor<Vec<u8>>>, UbootError> {
    Trace::open(Cursor::new(bytes.to_vec()))
}

fn times(trace: &mut Trace<Cursor<Vec<u8>>>, chunk: Chunk) -> Vec<u32> {
    let mut times = Vec::new();
    let take = |record: Record| {
        times.extend((record.kind != RecordKind::TextBase).then_some(record.time));
        Ok(())
    };
    trace.records::<UbootError>(chunk, take).unwrap();
    times
}

#[test]
fn files_of_all_versions_are_recognised_in_both_byte_orders() {
    for layout in Layout::ALL {
        let mut trace = open(&calls(layout, &EVENTS)).unwrap();
        assert_eq!(trace.layout(), layout);
        let chunk = trace.calls(None).unwrap();
        assert_eq!(times(&mut trace, chunk), [10, 11, 15, 15, 16, 20], "{layout:?}");
    }
}

#[test]
fn lists_of_functions_are_skipped_wherever_they_are() {
    let listed = [(MAIN, 1), (PARSE, 1), (PUTS, 1)];
    for layout in Layout::ALL {
        let mut bytes = list(layout, &listed);
        bytes.extend(calls(layout, &EVENTS));
        bytes.extend(list(layout, &listed));
        let mut trace = open(&bytes).unwrap();
        assert_eq!(trace.layout(), layout);
        assert_eq!((trace.chunks().len(), trace.left_over()), (3, 0));
        let chunk = trace.calls(None).unwrap();
        assert_eq!(times(&mut trace, chunk).len(), 6, "{layout:?}");
        let last = trace.chunks()[2];
        let mut functions = Vec::new();
        trace.functions(last, |function, count| functions.push((function, count))).unwrap();
        assert_eq!(functions, listed);
    }
}

#[test]
fn the_last_calls_chunk_counts_unless_another_is_asked_for() {
    let mut bytes = calls(Layout::CURRENT, &EVENTS);
    bytes.extend(calls(Layout::CURRENT, &[In(DO_TRACE, 30)]));
    let mut trace = open(&bytes).unwrap();
    let (last, first) = (trace.calls(None).unwrap(), trace.calls(Some(1)).unwrap());
    assert_eq!(times(&mut trace, last), [30]);
    assert_eq!(times(&mut trace, first).len(), 6);
    for asked in [0, 3] {
        let error = trace.calls(Some(asked)).unwrap_err();
        assert!(matches!(error, UbootError::NoSuchChunk { have: 2, .. }), "{error:?}");
    }
}

/// Whole records are used, whatever is cut off; nothing else is taken for a record.
#[test]
fn a_file_cut_at_any_byte_has_the_records_that_are_whole() {
    for layout in Layout::ALL {
        let listed = list(layout, &[(MAIN, 1), (PARSE, 1)]);
        let recorded = calls(layout, &EVENTS);
        let bytes = [listed.clone(), recorded.clone()].concat();
        for len in 0..bytes.len() {
            let Ok(mut trace) = open(&bytes[..len]) else {
                assert!(len < layout.header_len() + 8, "{layout:?}: refused at {len}");
                continue;
            };
            let start = listed.len() + layout.header_len();
            match trace.calls(None) {
                Ok(chunk) if trace.layout() == layout => {
                    assert_eq!(chunk.whole, (len.saturating_sub(start) / 12) as u64);
                    let is_old = layout.header != HeaderFormat::Versioned;
                    let calls = chunk.whole.saturating_sub(u64::from(is_old));
                    assert_eq!(times(&mut trace, chunk).len() as u64, calls);
                    assert!(chunk.whole < chunk.declared);
                }
                Ok(_) => panic!("{layout:?} cut at {len} is taken for {:?}", trace.layout()),
                Err(_) => assert!(len < start, "{layout:?}: no calls at {len}"),
            }
        }
        for len in 0..recorded.len() {
            if let Ok(trace) = open(&recorded[..len]) {
                assert_eq!(trace.layout(), layout, "{layout:?} cut at {len}");
            }
        }
    }
}

#[test]
fn what_follows_the_last_chunk_is_counted() {
    let mut bytes = calls(Layout::CURRENT, &EVENTS);
    bytes.extend([0x55; 12]);
    assert_eq!(open(&bytes).unwrap().left_over(), 12);
    bytes.extend([0x55; 100]);
    let trace = open(&bytes).unwrap();
    assert_eq!((trace.left_over(), trace.chunks().len()), (112, 1));
}

#[test]
fn the_unused_end_of_a_buffer_is_no_chunk() {
    let mut bytes = calls(Layout::CURRENT, &EVENTS);
    bytes.extend([0; 1000]);
    let trace = open(&bytes).unwrap();
    assert_eq!((trace.left_over(), trace.chunks().len()), (1000 % 32, 1));
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let version_2 = {
        let mut bytes = calls(Layout::CURRENT, &EVENTS);
        bytes[4] = 2;
        bytes
    };
    let short = header(Layout::CURRENT, 1, 10, 0)[..20].to_vec();
    let cases: [(&[u8], &str); 6] = [
        (b"", "it is empty"),
        (b"U-Boot 2026.10-rc2 (Nov 22 2026)\nDRAM: 256 MiB\n", "it does not start with a chunk"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0", "it does not start with a chunk"),
        (&[0; 64], "it starts with zeros only"),
        (&version_2, "it has version 2; flame knows version 1"),
        (&short, "it ends within its first header, after 20 bytes"),
    ];
    for (bytes, why) in cases {
        let error = open(bytes).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn a_count_beyond_the_file_is_no_reason_to_take_memory() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let layout = Layout { order, ..Layout::CURRENT };
        let mut bytes = header(layout, 1, u32::MAX, 0);
        bytes.extend([0; 30]);
        let chunk = open(&bytes).unwrap().calls(None).unwrap();
        assert_eq!((chunk.declared, chunk.whole), (u64::from(u32::MAX), 2));
    }
}
