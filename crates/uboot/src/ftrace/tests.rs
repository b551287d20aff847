use std::io::Cursor;

use super::*;
use crate::layout::Layout;
use crate::test_traces::{Event, In, MAIN, MAP, Out, PARSE, PUTS, RUN, calls};
use crate::{Functions, Making, Reading, Rules, SymbolMap, Trace, follow};

fn write(events: &[Event], kind: FtraceKind, rules: &str) -> (Vec<u8>, Written) {
    let mut trace = Trace::open(Cursor::new(calls(Layout::CURRENT, events))).unwrap();
    let map = SymbolMap::parse(MAP.as_bytes(), 16).unwrap();
    let rules = Rules::parse(rules.as_bytes(), Reading::Whole).unwrap();
    let chunk = trace.calls(None).unwrap();
    let mut out = Vec::new();
    let mut functions = Functions::new(Some(&map), Some(&rules));
    let followed = follow(&mut trace, chunk, &mut functions, Making::Events(kind)).unwrap();
    let plan = followed.plan.unwrap();
    let written = write_ftrace(&mut trace, chunk, &mut functions, plan, &mut out).unwrap();
    (out, written)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Time, event id, function, and depth and duration or the caller.
fn events(file: &[u8]) -> Vec<(u64, u16, u64, u64, u64)> {
    let at = file.windows(10).position(|window| window == b"flyrecord\0").unwrap() + 10;
    let (start, size) = (number(file, at) as usize, number(file, at + 8) as usize);
    assert_eq!(file.len(), start + size);
    let mut events = Vec::new();
    for page in file[start..].chunks(4096) {
        let (mut time, len) = (number(page, 0), number(page, 8) as usize);
        assert!(len <= 4080, "an event beyond its page");
        let mut at = 16;
        while at < 16 + len {
            let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
            let head = word(at);
            time += u64::from(head >> 5);
            if head & 31 == 30 {
                time += u64::from(word(at + 4)) << 27;
                at += 8;
                continue;
            }
            let id = word(at + 4) as u16;
            let last = match id {
                1 => (number(page, at + 20), 0),
                11 => (u64::from(word(at + 20)), 0),
                _ => (u64::from(word(at + 20)), number(page, at + 36)),
            };
            events.push((time, id, number(page, at + 12), last.0, last.1));
            at += 4 + 4 * (head & 31) as usize;
        }
    }
    events
}

const CALLS: [Event; 6] =
    [Out(RUN, 5), In(MAIN, 10), In(PUTS, 11), Out(PUTS, 14), Out(MAIN, 20), In(PARSE, 21)];

const TEXT: u64 = crate::test_traces::TEXT;

#[test]
fn functions_have_their_callers() {
    let (file, written) = write(&CALLS, FtraceKind::Function, "");
    let found = events(&file);
    // The return address of all is 16 bytes into the text.
    assert_eq!(found[1], (10, 1, TEXT + u64::from(MAIN), TEXT, 0));
    assert_eq!((found.len(), written.events), (6, 6));
}

#[test]
fn calls_have_depths_and_durations() {
    let (file, _) = write(&CALLS, FtraceKind::FuncGraph, "");
    let expect = [
        (5, 10, TEXT + u64::from(RUN), 1, 0),
        (10, 11, TEXT + u64::from(MAIN), 0, 0),
        (11, 11, TEXT + u64::from(PUTS), 1, 0),
        (14, 10, TEXT + u64::from(PUTS), 2, 3000),
        (20, 10, TEXT + u64::from(MAIN), 1, 10_000),
        (21, 11, TEXT + u64::from(PARSE), 0, 0),
    ];
    assert_eq!(events(&file), expect);
}

#[test]
fn excluded_functions_leave_their_callees_one_level_up() {
    let (file, written) = write(&CALLS, FtraceKind::FuncGraph, "exclude-func ^main$");
    let found = events(&file);
    assert_eq!(found[1], (11, 11, TEXT + u64::from(PUTS), 0, 0));
    assert_eq!(found[2], (14, 10, TEXT + u64::from(PUTS), 1, 3000));
    assert_eq!((written.events, written.excluded), (4, 2));
}

#[test]
fn any_gap_depth_and_start_of_the_clock_is_written() {
    // 2^27 microseconds is the most that an event has room for.
    let gaps = [In(MAIN, 0), In(PUTS, (1 << 27) - 1), Out(PUTS, 900_000_000), Out(MAIN, 5)];
    let times: Vec<u64> =
        events(&write(&gaps, FtraceKind::Function, "").0).iter().map(|event| event.0).collect();
    assert_eq!(times, [0, (1 << 27) - 1, 900_000_000, (1 << 30) + 5]);
    let mut deep: Vec<Event> = (0..300).map(|time| In(PARSE, time)).collect();
    deep.extend((0..300).map(|time| Out(PARSE, 300 + time)));
    let found = events(&write(&deep, FtraceKind::FuncGraph, "").0);
    assert_eq!((found.len(), found[299].3, found[300].3), (600, 299, 300));
    assert_eq!(found[599].4, 599_000);
}

#[test]
fn pages_hold_as_much_as_fits() {
    let many: Vec<Event> = (0..1000).flat_map(|time| [In(PUTS, time), Out(PUTS, time)]).collect();
    for kind in [FtraceKind::Function, FtraceKind::FuncGraph] {
        assert_eq!(events(&write(&many, kind, "").0).len(), 2000);
    }
}

#[test]
fn without_events_there_are_no_pages() {
    let (file, written) = write(&CALLS, FtraceKind::Function, "exclude-func .");
    assert_eq!((events(&file).len(), written.events, written.excluded), (0, 0, 6));
    assert_eq!(file.len() % 4096, 0);
}

#[test]
fn a_file_that_changes_between_both_readings_is_refused() {
    let map = SymbolMap::parse(MAP.as_bytes(), 16).unwrap();
    let open = |events: &[Event]| Trace::open(Cursor::new(calls(Layout::CURRENT, events))).unwrap();
    let mut functions = Functions::new(Some(&map), None);
    let (mut before, mut after) = (open(&CALLS), open(&[In(MAIN, 0); 300]));
    let making = Making::Events(FtraceKind::Function);
    let chunk = before.calls(None).unwrap();
    let plan = follow(&mut before, chunk, &mut functions, making).unwrap().plan.unwrap();
    let chunk = after.calls(None).unwrap();
    let error = write_ftrace(&mut after, chunk, &mut functions, plan, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "it changed while it was read");
}
