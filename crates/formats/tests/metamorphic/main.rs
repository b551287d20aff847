//! The same stacks on many ways into flame: written as many tools write them, in another order, packed,
//! in another encoding, split and summed up, read on several threads, cut off. What comes out is known,
//! since the stacks are made here.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their tests")]

mod writers;

use std::collections::BTreeMap;
use std::io::Write;

use fastrand::Rng;
use flame_formats::{
    Content, InputContent, InputFormat, Merge, ReadError, ReadInput, ReadOptions, Source,
    read_input,
};
use flame_profile::{Annotations, CallTree, SiblingOrder, TreeOptions, Weight, write_folded};
use flate2::Compression;
use flate2::write::GzEncoder;
use writers::{Stack, WRITERS, Writer};

const NAMES: [&str; 8] = ["main", "parse", "read", "write_all", "poll", "hash", "insert", "x"];
const THREADS: [&str; 2] = ["server", "worker"];

/// What folded text says of stacks.
type Folded = BTreeMap<String, u64>;

fn stacks(rng: &mut Rng, count: usize) -> Vec<Stack> {
    let frame = |rng: &mut Rng| *rng.choice(&NAMES).unwrap();
    let stack = |rng: &mut Rng| Stack {
        thread: rng.choice(&THREADS).unwrap(),
        frames: (0..rng.usize(1..7)).map(|_| frame(rng)).collect(),
        weight: rng.u64(1..9),
    };
    (0..count).map(|_| stack(rng)).collect()
}

/// What is to be read of stacks.
fn truth(writer: &Writer, stacks: &[Stack]) -> Folded {
    let mut truth = Folded::new();
    for stack in stacks {
        let frames: Vec<String> = stack.frames.iter().map(|name| (writer.frame)(name)).collect();
        let thread = if writer.has_threads { format!("{};", stack.thread) } else { String::new() };
        let line = thread + &frames.join(";");
        *truth.entry(line).or_default() += stack.weight * writer.unit;
    }
    truth
}

fn read(bytes: &[u8], from: Option<&str>, threads: usize) -> Result<ReadInput, ReadError> {
    let format = from.map(|name| InputFormat::named(name).unwrap());
    let options = ReadOptions { format, threads, ..ReadOptions::default() };
    read_input(Source::of_bytes(bytes.to_vec())?, &options)
}

/// The sum of inputs.
fn sum(inputs: Vec<ReadInput>) -> CallTree {
    let (mut merge, options) = (Merge::default(), TreeOptions::default());
    for input in inputs {
        match input.content {
            InputContent::Folded(parts, columns) => merge.add_folded(*parts, columns).unwrap(),
            InputContent::Profile(profile) => merge.add_profile(&profile, &options).unwrap(),
            InputContent::Stacks(stacks) => merge.add_stacks(&stacks, &options).unwrap(),
        }
    }
    merge.finish(SiblingOrder::Name)
}

fn folded(tree: &CallTree) -> Folded {
    let mut text = Vec::new();
    write_folded(tree, Annotations::Write, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// Reads it, and compares what is in it.
#[track_caller]
fn check(bytes: &[u8], from: Option<&str>, threads: usize, expect: &Folded, what: &str) {
    let input = read(bytes, from, threads).unwrap_or_else(|error| panic!("{what}: {error}"));
    let skipped = input.skipped.first().to_vec();
    same(&folded(&sum(vec![input])), expect, what);
    assert!(skipped.is_empty(), "{what}: {skipped:?}");
}

/// Says what only one of them has.
#[track_caller]
fn same(found: &Folded, expect: &Folded, what: &str) {
    let only = |a: &Folded, b: &Folded| -> Folded {
        a.iter().filter(|(k, v)| b.get(*k) != Some(v)).map(|(k, v)| (k.clone(), *v)).collect()
    };
    let (more, less) = (only(found, expect), only(expect, found));
    assert!(more.is_empty() && less.is_empty(), "{what}: found {more:?}, not {less:?}");
}

/// Each writer with some stacks of its own.
fn for_all(mut test: impl FnMut(&Writer, &[Stack], &mut Rng)) {
    for writer in WRITERS {
        for seed in 0..12 {
            let mut rng = Rng::with_seed(seed);
            let count = rng.usize(1..30);
            test(writer, &stacks(&mut rng, count), &mut rng);
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_format_gives_the_stacks_that_were_written() {
    for_all(|writer, stacks, _| {
        let (bytes, expect) = ((writer.write)(stacks), truth(writer, stacks));
        // Recognised by what is in it, too.
        check(&bytes, None, 1, &expect, writer.format);
        assert_eq!(read(&bytes, None, 1).unwrap().format.name, writer.format);
        for threads in [2, 5] {
            check(&bytes, Some(writer.format), threads, &expect, writer.format);
        }
    });
}

#[test]
fn the_order_of_stacks_changes_nothing() {
    for_all(|writer, stacks, rng| {
        let expect = truth(writer, stacks);
        let mut shuffled = stacks.to_vec();
        rng.shuffle(&mut shuffled);
        check(&(writer.write)(&shuffled), Some(writer.format), 3, &expect, writer.format);
    });
}

#[test]
fn packing_line_ends_and_encodings_change_nothing() {
    for_all(|writer, stacks, rng| {
        let (bytes, expect) = ((writer.write)(stacks), truth(writer, stacks));
        let unchanged = |bytes: &[u8], what: &str| {
            check(bytes, None, 2, &expect, &format!("{}, {what}", writer.format));
        };
        unchanged(&gzip(&bytes), "gzip");
        let (start, end) = bytes.split_at(rng.usize(0..bytes.len()));
        unchanged(&[gzip(start), gzip(end)].concat(), "two gzip members");
        if InputFormat::named(writer.format).unwrap().content == Content::Binary {
            return;
        }
        let text = String::from_utf8(bytes.clone()).unwrap();
        unchanged(text.replace('\n', "\r\n").as_bytes(), "CRLF");
        unchanged(&["\u{feff}".as_bytes(), &bytes].concat(), "a byte order mark");
        let utf16 = || "\u{feff}".encode_utf16().chain(text.encode_utf16());
        unchanged(&utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(), "UTF-16");
        unchanged(
            &utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>(),
            "UTF-16, big end first",
        );
        if writer.format != "pprof" {
            unchanged(text.trim_end().as_bytes(), "without the last line end");
        }
    });
}

#[test]
fn what_is_read_twice_counts_twice_and_parts_add_up() {
    for_all(|writer, stacks, rng| {
        let bytes = (writer.write)(stacks);
        let input = |bytes: &[u8]| read(bytes, Some(writer.format), 2).unwrap();
        let expect = truth(writer, stacks);
        let double = truth(writer, &[stacks, stacks].concat());
        same(&folded(&sum(vec![input(&bytes), input(&bytes)])), &double, writer.format);
        if writer.is_stream {
            let what = "one file behind the other";
            check(&bytes.repeat(2), Some(writer.format), 2, &double, what);
        }
        let (a, b) = stacks.split_at(rng.usize(0..stacks.len()));
        if !a.is_empty() {
            let parts = vec![input(&(writer.write)(a)), input(&(writer.write)(b))];
            same(&folded(&sum(parts)), &expect, writer.format);
        }
        // Equal stacks that the writer had summed up.
        let apart: Vec<Stack> = stacks
            .iter()
            .flat_map(|stack| vec![Stack { weight: 1, ..stack.clone() }; stack.weight as usize])
            .collect();
        check(&(writer.write)(&apart), Some(writer.format), 2, &expect, "stacks one by one");
    });
}

#[test]
fn what_is_cut_off_holds_no_more_than_the_whole_and_packed_data_says_so() {
    for writer in WRITERS {
        let stacks = stacks(&mut Rng::with_seed(7), 6);
        let bytes = (writer.write)(&stacks);
        let whole = folded(&sum(vec![read(&bytes, Some(writer.format), 1).unwrap()]));
        let total: u64 = whole.values().sum();
        for cut in 0..bytes.len() {
            let what = || format!("{}, cut at {cut} of {}", writer.format, bytes.len());
            let Ok(input) = read(&bytes[..cut], Some(writer.format), 2) else { continue };
            let is_tree = input.format.name == writer.format;
            assert!(is_tree, "{}", what());
            // What is left of the line above a stack says something else: `server 40/41 [000] 10`.
            let last = bytes[..cut].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            if writer.format == "perf-script" && !last.is_empty() && !last.starts_with(b"\t") {
                continue;
            }
            let found = folded(&sum(vec![input]));
            assert!(found.values().sum::<u64>() <= total, "{}: {found:?}", what());
        }
        let packed = gzip(&bytes);
        // Two bytes are not known to be gzip yet.
        for cut in 3..packed.len() {
            if let Ok(input) = read(&packed[..cut], Some(writer.format), 1) {
                let said = input.notes.iter().any(|note| note.contains("damaged or truncated"));
                assert!(said, "{}, gzip cut at {cut}: {:?}", writer.format, input.notes);
                assert!(sum(vec![input]).total() <= Weight(total));
            }
        }
    }
}

#[test]
fn turned_twice_it_is_what_it_was() {
    for_all(|writer, stacks, _| {
        let bytes = (writer.write)(stacks);
        let tree = sum(vec![read(&bytes, Some(writer.format), 1).unwrap()]);
        let twice = tree.reversed(SiblingOrder::Name).reversed(SiblingOrder::Name);
        same(&folded(&twice), &folded(&tree), writer.format);
    });
}

#[test]
fn lines_that_cannot_be_read_cost_nothing_but_themselves() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let stacks = stacks(&mut rng, 40);
        let expect: u64 = stacks.iter().map(|stack| stack.weight).sum();
        // A count that is none: the sample is lost and counted.
        let (mut text, mut lost, mut broken) = (String::new(), 0, 0);
        for line in String::from_utf8((WRITERS[0].write)(&stacks)).unwrap().lines() {
            text += line;
            if rng.u8(..4) == 0 {
                lost += line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
                broken += 1;
                text.push('x');
            }
            text.push('\n');
        }
        let input = read(text.as_bytes(), Some("folded"), 3).unwrap();
        assert_eq!(input.skipped.count(), broken);
        assert_eq!(sum(vec![input]).total(), Weight(expect - lost));
        // A frame that is none: the rest of the stack stays, and so does its weight.
        let (mut text, mut broken) = (String::new(), 0);
        for line in String::from_utf8((WRITERS[1].write)(&stacks)).unwrap().lines() {
            if line.starts_with('\t') && rng.u8(..8) == 0 {
                broken += 1;
                text += "\twhat is this\n";
            } else {
                text += line;
                text.push('\n');
            }
        }
        let input = read(text.as_bytes(), Some("perf-script"), 3).unwrap();
        assert_eq!(input.skipped.count(), broken);
        assert_eq!(sum(vec![input]).total(), Weight(expect));
    }
}
