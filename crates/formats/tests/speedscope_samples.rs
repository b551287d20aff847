//! Files that other tools wrote: speedscope's own samples, where `FLAME_SPEEDSCOPE_SAMPLES` names their
//! directory.

use std::path::Path;

use flame_formats::{InputContent, ReadOptions, Source, read_input};
use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

/// Each file with its format, the sum of its weights, and how many of its parts cannot be read.
const FILES: &[(&str, &str, u64, u64)] = &[
    ("Instruments/13.4/cycles-example-deep-copy.txt", "instruments", 96086420532, 0),
    ("Instruments/16.0/simple-time-profile-deep-copy.txt", "instruments", 4930000000, 0),
    ("Instruments/7.3.1/random-allocations-deep-copy.txt", "instruments", 450814279, 0),
    ("Instruments/7.3.1/simple-time-profile-deep-copy.txt", "instruments", 4273000000, 0),
    // Its functions cost 40 themselves; of calls it says more than gamma has.
    ("callgrind/callgrind.cfn-reset.log", "callgrind", 40, 0),
    ("callgrind/callgrind.example.log", "callgrind", 820, 0),
    // In units of 10 ns.
    ("callgrind/callgrind.multiple-event-types.log", "callgrind", 8200, 0),
    ("callgrind/callgrind.name-compression.log", "callgrind", 820, 0),
    ("callgrind/callgrind.subposition-compression.log", "callgrind", 820, 0),
    ("haskell/simple.prof", "ghc-json", 798000000, 0),
    ("speedscope/0.0.1/simple-no-pretty-print.speedscope.json", "speedscope", 14, 0),
    ("speedscope/0.0.1/simple.speedscope.json", "speedscope", 14, 0),
    ("speedscope/0.1.2/simple-sampled.speedscope.json", "speedscope", 14000000000, 0),
    ("speedscope/0.6.0/two-sampled.speedscope.json", "speedscope", 28000000000, 0),
    ("speedscope/invalid/incomplete-trace.json", "speedscope", 100, 0),
    ("speedscope/invalid/out-of-order-events.json", "speedscope", 4, 1),
    ("trace-event/bex-interaction.json", "chrome-trace", 12000, 0),
    ("trace-event/end-event-with-empty-stack.json", "chrome-trace", 1000, 1),
    ("trace-event/end-non-top-of-stack.json", "chrome-trace", 11000, 0),
    ("trace-event/event-reordering-name-match.json", "chrome-trace", 10000, 0),
    ("trace-event/hermes-multiple-frames.json", "chrome-trace", 14000, 0),
    ("trace-event/invalid-x-nesting.json", "chrome-trace", 10000, 0),
    ("trace-event/matching-x.json", "chrome-trace", 10000, 0),
    ("trace-event/mismatched-args.json", "chrome-trace", 10000, 0),
    ("trace-event/mismatched-name.json", "chrome-trace", 10000, 1),
    ("trace-event/multi-thread-with-samples.json", "chrome-trace", 8, 0),
    ("trace-event/multiprocess.json", "chrome-trace", 8000, 0),
    ("trace-event/must-retain-original-order.json", "chrome-trace", 9000, 0),
    ("trace-event/not-enough-end-events.json", "chrome-trace", 11000, 0),
    ("trace-event/only-begin-events.json", "chrome-trace", 2000, 0),
    ("trace-event/out-of-order-unbalanced-name.json", "chrome-trace", 9000, 0),
    ("trace-event/out-of-order.json", "chrome-trace", 10000, 0),
    ("trace-event/simple-hermes.json", "chrome-trace", 14000, 0),
    ("trace-event/simple-object.json", "chrome-trace", 14000, 0),
    ("trace-event/simple-partial-trailing-comma.json", "chrome-trace", 14000, 0),
    ("trace-event/simple-partial-whitespace.json", "chrome-trace", 14000, 0),
    ("trace-event/simple-partial.json", "chrome-trace", 14000, 0),
    ("trace-event/simple-with-samples.json", "chrome-trace", 7, 0),
    ("trace-event/simple.json", "chrome-trace", 14000, 0),
    ("trace-event/simultaneous-anonymous-calls.json", "chrome-trace", 5000, 0),
    ("trace-event/too-many-end-events.json", "chrome-trace", 14000, 2),
    ("trace-event/unbalanced-args.json", "chrome-trace", 10000, 0),
    ("trace-event/unbalanced-name.json", "chrome-trace", 9000, 0),
    ("trace-event/x-events-matching-end.json", "chrome-trace", 20000, 0),
    ("trace-event/x-events-matching-start.json", "chrome-trace", 20000, 0),
    ("trace-event/zero-duration-events.json", "chrome-trace", 10000, 0),
];

/// The folded text of a file, with its format and the number of parts that cannot be read.
fn read(path: &Path) -> (String, &'static str, u64) {
    let bytes = std::fs::read(path).expect("the samples can be read");
    let source = Source::of_bytes(bytes).expect("nothing is packed");
    let read = read_input(source, &ReadOptions::default()).expect("the format is known");
    let InputContent::Stacks(stacks) = &read.content else { panic!("{path:?} has no stacks") };
    let builder = stacks.to_builder(&TreeOptions::default());
    let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
    let mut text = Vec::new();
    write_folded(&tree, Annotations::Write, &mut text).expect("memory can be written");
    (String::from_utf8(text).expect("folded text is UTF-8"), read.format.name, read.skipped.count())
}

#[test]
fn files_of_other_tools_are_read_whole() {
    let Some(directory) = std::env::var_os("FLAME_SPEEDSCOPE_SAMPLES") else {
        println!("SKIP files of other tools: FLAME_SPEEDSCOPE_SAMPLES names no directory");
        return;
    };
    for (name, format, total, skipped) in FILES {
        let (text, found, count) = read(&Path::new(&directory).join(name));
        let weight = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        let sum = text.lines().map(weight).sum();
        assert_eq!((found, sum, count), (*format, *total, *skipped), "{name}:\n{text}");
    }
}
