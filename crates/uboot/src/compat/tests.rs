use std::io::Cursor;

use super::*;
use crate::test_traces::{Event, In, MAIN, MAP, Out, PARSE, PUTS, calls, list};

fn graph(bytes: Vec<u8>, measure: Measure) -> Result<String, UbootError> {
    let mut proftool = Proftool::open(Cursor::new(bytes), MAP.as_bytes())?;
    let graph = proftool.flame_graph(measure)?;
    let mut text = Vec::new();
    graph.write(&proftool, &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

const EVENTS: [Event; 6] =
    [In(MAIN, 10), In(PUTS, 11), Out(PUTS, 11), In(PARSE, 12), Out(PARSE, 15), Out(MAIN, 20)];

#[test]
fn lines_are_in_the_order_of_the_calls_and_zero_is_one() {
    let bytes = calls(Layout::CURRENT, &EVENTS);
    assert_eq!(
        graph(bytes.clone(), Measure::Calls).unwrap(),
        "main 1\nmain;puts 1\nmain;parse 1\n"
    );
    assert_eq!(graph(bytes, Measure::Time).unwrap(), "main 7\nmain;puts 1\nmain;parse 3\n");
}

#[test]
fn lists_are_not_skipped_and_the_last_chunk_wins() {
    let mut bytes = list(Layout::CURRENT, &[(MAIN, 1), (PARSE, 1), (PUTS, 1), (0x100, 1)]);
    bytes.extend(calls(Layout::CURRENT, &EVENTS));
    // The four records of the list are taken for a header, and the calls are found by luck.
    assert_eq!(graph(bytes, Measure::Calls).unwrap().lines().count(), 3);
    let mut bytes = calls(Layout::CURRENT, &EVENTS);
    bytes.extend(calls(Layout::CURRENT, &[]));
    assert_eq!(graph(bytes, Measure::Calls).unwrap(), "");
    assert_eq!(graph(Vec::new(), Measure::Calls).unwrap(), "");
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let bytes = calls(Layout::CURRENT, &EVENTS);
    for len in 1..bytes.len() {
        let error = graph(bytes[..len].to_vec(), Measure::Calls).unwrap_err();
        assert!(matches!(error, UbootError::Proftool(_)), "{len}: {error}");
    }
}

#[test]
fn times_are_lost_once_more_than_fifty_calls_were_open() {
    let mut events: Vec<Event> = (0..51).map(|time| In(PARSE, time)).collect();
    events.extend((0..51).map(|time| Out(PARSE, 100 + time)));
    events.extend([In(MAIN, 500), Out(MAIN, 600)]);
    let text = graph(calls(Layout::CURRENT, &events), Measure::Time).unwrap();
    assert!(text.lines().all(|line| line.ends_with(" 1")), "{text}");
}
