use super::*;
use crate::code_log::{CodeLog, CodeLogKind, CodeNames, WantedCode};

/// A dump with a header like that of the specification, and these records.
fn dump(padding: u32, flags: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for word in [VERSION, HEADER_LEN as u32, NATIVE_MACHINE, padding, 4242] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    [bytes, records.concat()].concat()
}

fn record(id: u32, time: u64, body: &[u8]) -> Vec<u8> {
    let len = (PREFIX_LEN + body.len()) as u32;
    [&id.to_le_bytes()[..], &len.to_le_bytes(), &time.to_le_bytes(), body].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn loaded(time: u64, start: u64, size: u64, index: u64, name: &str) -> Vec<u8> {
    let mut body = words(&[4242 | 4243 << 32, start, start, size, index]);
    body.extend(name.as_bytes());
    body.push(0);
    body.resize(body.len() + size as usize, 0x90);
    record(CODE_LOAD, time, &body)
}

fn moved_to(time: u64, from: u64, to: u64, size: u64, index: u64) -> Vec<u8> {
    record(CODE_MOVE, time, &words(&[4242 | 4243 << 32, to, from, to, size, index]))
}

fn source_lines(code: u64, lines: &[(u64, u32, &[u8])]) -> Vec<u8> {
    let mut body = words(&[code, lines.len() as u64]);
    for (address, line, file) in lines {
        body.extend(address.to_le_bytes());
        body.extend(line.to_le_bytes());
        body.extend(7_u32.to_le_bytes());
        body.extend_from_slice(file);
        body.push(0);
    }
    record(CODE_DEBUG_INFO, 5, &body)
}

/// A dump with everything: lines, loads, a move, unwinding tables, a close.
fn whole(padding: u32, shift: u64) -> Vec<u8> {
    let lines: [(u64, u32, &[u8]); 3] = [
        (0x1000 + shift, 10, b"a.js"),
        (0x1004 + shift, 11, b"\xff"),
        (0x1008 + shift, 90, b"b.js"),
    ];
    dump(
        padding,
        0,
        &[
            source_lines(0x1000, &lines),
            record(4, 6, &words(&[0, 0, 0])),
            loaded(100, 0x1000, 0x10, 1, "first"),
            loaded(200, 0x2000, 0x10, 2, "second two"),
            moved_to(300, 0x1000, 0x3000, 0x10, 1),
            loaded(400, 0x1000, 0x08, 3, "third"),
            record(3, 500, &[]),
        ],
    )
}

fn names(bytes: Vec<u8>, wanted: &[(u64, u64)]) -> CodeNames {
    let log = CodeLog::from_bytes(bytes, CodeLogKind::JitDump).unwrap();
    let to_wanted = |(address, before): &(u64, u64)| WantedCode {
        address: ProcessAddress(*address),
        before: FileOffset(*before),
    };
    log.names(&wanted.iter().map(to_wanted).collect::<Vec<_>>()).unwrap()
}

/// Each answer as `name file:line`.
fn texts(found: &CodeNames) -> Vec<String> {
    let text = |name: &Option<crate::code_log::CodeName>| match name {
        Some(name) => match (&name.file, name.line) {
            (Some(file), Some(line)) => format!("{} {file}:{line}", name.name),
            _ => name.name.to_string(),
        },
        None => "-".to_owned(),
    };
    found.names.iter().map(text).collect()
}

#[test]
fn loads_moves_and_lines_are_followed() {
    for (padding, shift) in [(0, 0), (V8_PADDING, V8_LINES_SHIFT)] {
        let all = u64::MAX;
        let wanted = [0x1000, 0x1007, 0x1008, 0x2005, 0x300f, 0x3010].map(|at| (at, all));
        let found = names(whole(padding, shift), &wanted);
        let expect = ["third", "third", "first b.js:90", "second two", "first", "-"];
        assert_eq!((texts(&found), found.skipped), (expect.map(str::to_owned).to_vec(), 0));
    }
}

#[test]
fn entries_come_with_their_times_and_places() {
    let log = CodeLog::from_bytes(whole(0, 0), CodeLogKind::JitDump).unwrap();
    let mut seen = Vec::new();
    let mut each = |entry: CodeEntry| seen.push((entry.time.unwrap().0, entry.start.0, entry.at));
    let scanned = log.scan(FileOffset(0), FileOffset(u64::MAX), &mut each).unwrap();
    let times: Vec<(u64, u64)> = seen.iter().map(|(time, start, _)| (*time, *start)).collect();
    assert_eq!(times, [(100, 0x1000), (200, 0x2000), (300, 0x3000), (400, 0x1000)]);
    assert_eq!(scanned.next, log.state().unwrap().0);
    // What was so before the third code came to be.
    let third = seen[3].2.0;
    let found = names(whole(0, 0), &[(0x1000, third), (0x1004, third), (0x3000, third)]);
    assert_eq!(texts(&found), ["first a.js:10", "first a.js:11", "first"]);
}

#[test]
fn times_of_another_clock_are_none() {
    let bytes = dump(0, ARCH_TIMESTAMP, &[loaded(100, 0x1000, 0x10, 1, "first")]);
    let log = CodeLog::from_bytes(bytes, CodeLogKind::JitDump).unwrap();
    let mut times = Vec::new();
    log.scan(FileOffset(0), FileOffset(u64::MAX), &mut |entry| times.push(entry.time)).unwrap();
    assert_eq!(times, [None]);
}

#[test]
fn a_dump_cut_at_any_byte_has_the_whole_records_before_the_cut() {
    let bytes = whole(0, 0);
    for len in 0..bytes.len() {
        let Ok(log) = CodeLog::from_bytes(bytes[..len].to_vec(), CodeLogKind::JitDump) else {
            assert!(len < HEADER_LEN, "{len}");
            continue;
        };
        let mut ends = 0;
        let scanned = log.scan(FileOffset(0), FileOffset(u64::MAX), &mut |_| ends += 1).unwrap();
        assert!(scanned.next.0 <= len as u64 && scanned.skipped == 0, "{len}: {scanned:?}");
        let found = names(bytes[..len].to_vec(), &[(0x2000, u64::MAX)]);
        let expect = if ends >= 2 { "second two" } else { "-" };
        assert_eq!(texts(&found), [expect], "{len}");
    }
}

#[test]
fn a_record_without_length_ends_the_scan() {
    let first = loaded(1, 0x1000, 0x10, 1, "first");
    let bytes = dump(0, 0, &[first.clone(), vec![0; 64], first]);
    let log = CodeLog::from_bytes(bytes, CodeLogKind::JitDump).unwrap();
    let mut count = 0;
    let scanned = log.scan(FileOffset(0), FileOffset(u64::MAX), &mut |_| count += 1).unwrap();
    assert_eq!((count, scanned.skipped, scanned.next.0), (1, 1, u64::MAX));
}

#[test]
fn other_kinds_of_dumps_are_refused_with_the_reason() {
    #[track_caller]
    fn check(change: impl Fn(&mut Vec<u8>), expect: &str) {
        let mut bytes = dump(0, 0, &[]);
        change(&mut bytes);
        match CodeLog::from_bytes(bytes, CodeLogKind::JitDump) {
            Err(CodeLogError::Unsupported { why, .. }) => assert!(why.contains(expect), "{why}"),
            other => panic!("{expect}: {other:?}"),
        }
    }
    check(|bytes| bytes[..4].copy_from_slice(FOREIGN_MAGIC), "another byte order");
    check(|bytes| bytes[0] = 0, "does not start");
    check(|bytes| bytes[4] = 2, "version");
    check(|bytes| bytes[8] = 39, "header is too short");
    check(|bytes| bytes[12] = 3, "another kind of machine");
    check(|bytes| bytes.truncate(39), "cut short");
}

/// Tables of that many bytes, with a sorted one of 4 bytes behind them.
fn tables(len: u64) -> Vec<u8> {
    let mut body = words(&[len + 4, 4, 0]);
    body.resize(body.len() + len as usize, 0xee);
    body.extend([0x1d; 4]);
    record(CODE_UNWINDING, 6, &body)
}

/// The entries of a dump, and what their tables are.
fn unwinding(bytes: Vec<u8>) -> Vec<Option<CodeUnwinding>> {
    let log = CodeLog::from_bytes(bytes, CodeLogKind::JitDump).unwrap();
    let mut entries = Vec::new();
    log.scan(FileOffset(0), FileOffset(u64::MAX), &mut |entry| entries.push(entry)).unwrap();
    entries.iter().map(|entry| log.unwinding(entry)).collect()
}

#[test]
fn tables_belong_to_the_code_that_comes_next() {
    let records = [
        loaded(1, 0x1000, 13, 1, "without"),
        tables(40),
        source_lines(0x2000, &[]),
        loaded(2, 0x2000, 13, 2, "with"),
        loaded(3, 0x3000, 13, 3, "without again"),
        tables(0),
        loaded(4, 0x4000, 13, 4, "with empty ones"),
    ];
    let found = unwinding(dump(0, 0, &records));
    let expect = CodeUnwinding { code: vec![0x90; 13], eh_frame: vec![0xee; 40], eh_frame_at: 16 };
    assert_eq!(found, [None, Some(expect), None, None]);
}

#[test]
fn tables_that_lie_about_their_length_are_none() {
    for (at, word) in [(0, 1_u64 << 40), (0, 2), (8, 1 << 40)] {
        let mut record = tables(40);
        record[PREFIX_LEN + at..][..8].copy_from_slice(&word.to_le_bytes());
        let found = unwinding(dump(0, 0, &[record, loaded(2, 0x2000, 13, 2, "with")]));
        assert_eq!(found, [None], "{at} {word:#x}");
    }
    // Code that is longer than its record.
    let mut code = loaded(2, 0x2000, 13, 2, "with");
    code[PREFIX_LEN + 24..][..8].copy_from_slice(&(1_u64 << 30).to_le_bytes());
    assert_eq!(unwinding(dump(0, 0, &[tables(40), code])), [None]);
}

#[test]
fn what_is_said_ahead_of_code_is_read_with_it() {
    let whole = dump(0, 0, &[tables(40), loaded(2, 0x2000, 13, 2, "with")]);
    let first = HEADER_LEN + tables(40).len();
    let log = CodeLog::from_bytes(whole[..first].to_vec(), CodeLogKind::JitDump).unwrap();
    let scanned = log.scan(FileOffset(0), FileOffset(u64::MAX), &mut |_| {}).unwrap();
    assert_eq!(scanned.next, FileOffset(HEADER_LEN as u64));
}

#[test]
fn a_dump_that_names_no_machine_is_read() {
    let mut bytes = whole(0, 0);
    bytes[12..16].fill(0);
    assert_eq!(texts(&names(bytes.clone(), &[(0x2005, u64::MAX)])), ["second two"]);
    bytes[12] = 8;
    assert!(CodeLog::from_bytes(bytes, CodeLogKind::JitDump).is_err());
}
