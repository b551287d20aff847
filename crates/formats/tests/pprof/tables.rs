//! Every table of a written file, taken apart without the crate's own decoder.

use std::collections::BTreeSet;

use flame_formats::read_pprof;
use flame_profile::{Profile, ValueType};

use crate::describe::describe;
use crate::round_trip::written;
use crate::samples::{random, server};
use crate::wire::{Message, gunzip};

const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;

struct File {
    message: Message,
    strings: Vec<String>,
}

impl File {
    fn of_server() -> File {
        File::decode(&written(&server()))
    }

    fn decode(bytes: &[u8]) -> File {
        let message = Message::decode(&gunzip(bytes));
        let strings = message.texts(STRING);
        File { message, strings }
    }

    fn text(&self, index: u64) -> &str {
        &self.strings[index as usize]
    }

    fn value_type(&self, message: &Message) -> (&str, &str) {
        (self.text(message.number(1)), self.text(message.number(2)))
    }
}

#[test]
fn the_gzip_header_has_no_time_and_no_name() {
    let file = written(&server());
    assert_eq!(&file[..8], &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    assert!(file == written(&server()), "the same profile gives the same bytes");
}

#[test]
fn value_types_and_circumstances() {
    let file = File::of_server();
    let types = file.message.messages(1);
    let types: Vec<_> = types.iter().map(|message| file.value_type(message)).collect();
    assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!(file.message.number(9), 1_700_000_000_000_000_000);
    assert_eq!(file.message.number(10), 30_000_000_000);
    assert_eq!(file.value_type(&file.message.messages(11)[0]), ("cpu", "nanoseconds"));
    assert_eq!(file.message.number(12), 10_101_010);
    assert_eq!(file.text(file.message.number(14)), "cpu");
    let comments = file.message.numbers(13);
    let comments: Vec<_> = comments.iter().map(|index| file.text(*index)).take(3).collect();
    let summary = "flame: 7 samples, 71.4 % of stacks complete, 2 lost, coverage 98.3 %";
    assert_eq!(comments, [summary, "flame: the ring was halved", "#flame.format 1"]);
    assert_eq!(file.message.field_numbers(), [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14]);
}

#[test]
fn samples_are_innermost_first_with_threads_as_labels() {
    let file = File::of_server();
    let mut rows = Vec::new();
    for sample in file.message.messages(SAMPLE) {
        let mut labels = Vec::new();
        for label in sample.messages(3) {
            let (key, text) = (file.text(label.number(1)), file.text(label.number(2)));
            labels.push(format!("{key}={text}{}", label.number(3)));
        }
        rows.push((sample.numbers(1), sample.numbers(2), labels.join(" ")));
    }
    let worker = "thread=worker 10 process=server0 pid=4242 tid=4243";
    let main = "thread=server0 pid=4242 tid=4242";
    let expect = [
        (vec![4, 3, 1, 2], vec![3, 30_303_030], worker),
        (vec![1, 2], vec![1, 10_101_010], main),
        (vec![5, 6], vec![2, 20_202_020], worker),
        (vec![7], vec![0, 5], main),
        (vec![8], vec![1, 0], "thread=0"),
    ];
    assert_eq!(rows, expect.map(|(stack, values, labels)| (stack, values, labels.to_owned())));
}

#[test]
fn mappings_are_images_then_what_has_none() {
    let file = File::of_server();
    let mut rows = Vec::new();
    for mapping in file.message.messages(MAPPING) {
        let flags: Vec<u64> = (7..=10).map(|field| mapping.number(field)).collect();
        let range = mapping.messages(1001);
        let range = range.first().map(|range| [range.number(1), range.number(2), range.number(3)]);
        let names = (file.text(mapping.number(5)), file.text(mapping.number(6)));
        rows.push((mapping.number(1), names, flags, range));
        let whole_space = [mapping.number(2), mapping.number(3), mapping.number(4)];
        assert_eq!(whole_space, [0, u64::MAX, 0]);
    }
    let server = [0x5555_5555_5000, 0x5555_5555_7000, 0x1000];
    let libc = [0x7fff_f7d0_0000, 0x7fff_f7d0_2000, 0x1000];
    let expect = [
        (1, ("/opt/server", "ab01"), vec![1, 1, 1, 1], Some(server)),
        (2, ("/usr/lib/libc.so.6", ""), vec![1, 0, 0, 0], Some(libc)),
        (3, ("[kernel]", ""), vec![1, 0, 0, 0], None),
        (4, ("[jit]", ""), vec![1, 0, 0, 0], None),
        (5, ("[mark]", ""), vec![1, 0, 0, 0], None),
    ];
    assert_eq!(rows, expect);
}

#[test]
fn locations_have_addresses_and_lines_innermost_first() {
    let file = File::of_server();
    let mut rows = Vec::new();
    for location in file.message.messages(LOCATION) {
        let lines = location.messages(4);
        let lines: Vec<_> = lines.iter().map(|line| (line.number(1), line.number(2))).collect();
        rows.push((location.number(1), location.number(2), location.number(3), lines));
    }
    let expect = [
        (1, 1, 0x1234, vec![(1, 12), (2, 40)]),
        (2, 1, 0x1000, vec![(3, 0)]),
        (3, 2, 0x114_980, vec![(4, 0)]),
        (4, 3, 0xffff_ffff_8120_0000, vec![(5, 0)]),
        (5, 4, 0x7f00_dead_0000, vec![(6, 0)]),
        (6, 5, 0, vec![(7, 0)]),
        (7, 0, 0xbad, vec![(8, 0)]),
        (8, 0, 0, vec![(9, 0)]),
    ];
    assert_eq!(rows, expect);
}

#[test]
fn functions_have_names_files_and_kinds() {
    let file = File::of_server();
    let mut rows = Vec::new();
    for function in file.message.messages(FUNCTION) {
        assert_eq!((function.number(3), function.number(5)), (0, 0));
        let (name, source) = (file.text(function.number(2)), file.text(function.number(4)));
        rows.push((function.number(1), name, source, function.number(1001)));
    }
    let expect = [
        (1, "parse_json", "src/main.rs", 3),
        (2, "core::ops::Fn<(A,)>::call", "src/main.rs", 1),
        (3, "_start", "", 1),
        (4, "read", "", 1),
        (5, "vfs_read", "", 2),
        (6, "LazyCompile:*render", "", 4),
        (7, "[truncated stack]", "", 5),
        (8, "[0xbad]", "", 1),
        (9, "[no stack]", "", 5),
    ];
    assert_eq!(rows, expect);
}

/// Stores of profiles make metric names of them.
#[test]
fn names_of_values_are_portable_in_the_file_and_come_back() {
    let check = |names: [&str; 2], in_file: [&str; 2]| {
        let types = names.map(|name| ValueType::new(name, "count")).to_vec();
        let mut profile = Profile::new(types);
        profile.default_value = 1;
        profile.meta.event = Some(names[1].to_owned());
        let bytes = written(&profile);
        assert_eq!(describe(&read_pprof(&bytes).unwrap()), describe(&profile));
        let file = File::decode(&bytes);
        let types = file.message.messages(1);
        let types: Vec<&str> = types.iter().map(|kind| file.text(kind.number(1))).collect();
        assert_eq!(types, in_file);
        assert_eq!(file.text(file.message.number(14)), in_file[1]);
    };
    check(["samples", "context-switches"], ["samples", "context_switches"]);
    check(["samples", "sched:sched_switch"], ["samples", "sched_sched_switch"]);
    // Two names must not become one.
    check(["page_faults", "page-faults"], ["page_faults", "page-faults"]);
}

/// The rules of `Profile.CheckValid` and of `profile.proto`'s comments.
#[test]
fn files_keep_pprofs_rules() {
    for seed in 0..200 {
        let file = File::decode(&written(&random(seed)));
        let message = &file.message;
        assert_eq!(file.text(0), "");
        assert_eq!(file.strings.iter().collect::<BTreeSet<_>>().len(), file.strings.len());
        let ids = |field| {
            let ids: Vec<u64> = message.messages(field).iter().map(|m| m.number(1)).collect();
            let unique: BTreeSet<u64> = ids.iter().copied().collect();
            assert!(unique.len() == ids.len() && !unique.contains(&0), "seed {seed}: {ids:?}");
            unique
        };
        let (mappings, locations, functions) = (ids(MAPPING), ids(LOCATION), ids(FUNCTION));
        // Some readers take ids for positions.
        for ids in [&mappings, &locations, &functions] {
            assert!(ids.iter().copied().eq(1..=ids.len() as u64), "seed {seed}: {ids:?}");
        }
        for sample in message.messages(SAMPLE) {
            assert_eq!(sample.numbers(2).len(), message.messages(1).len());
            assert!(sample.numbers(1).iter().all(|id| locations.contains(id)));
        }
        for location in message.messages(LOCATION) {
            let mapping = location.number(2);
            assert!(mapping == 0 || mappings.contains(&mapping));
            assert!(location.messages(4).iter().all(|l| functions.contains(&l.number(1))));
        }
    }
}
