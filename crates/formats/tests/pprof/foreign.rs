//! Files as other tools write them.

use flame_formats::{PprofError, ReadOptions, Source, read_input, read_pprof, read_pprof_by};
use flame_profile::{CallTree, FrameKind, Pid, Profile, Tid, TreeOptions, Weight};

use crate::wire::Build;

const STRINGS: [&str; 21] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "main.main",
    "main.work",
    "main.go",
    "/bin/app",
    "0a1B",
    "[kernel.kallsyms]_stext",
    "ksys_read",
    "thread_name",
    "thread_id",
    "17",
    "request",
    "built by ci",
    "/usr/lib/libm.so.6",
    "pid",
    "42",
    "comm",
];

fn line(function: i64, line: i64) -> Build {
    Build::default().number(1, function).number(2, line)
}

fn location(id: i64, mapping: i64, address: i64, lines: &[Build]) -> Build {
    let start = Build::default().number(1, id).number(2, mapping).number(3, address);
    lines.iter().fold(start, |build, line| build.message(4, line.clone()))
}

fn function(id: i64, name: i64, file: i64) -> Build {
    Build::default().number(1, id).number(2, name).number(3, name).number(4, file)
}

fn mapping(id: i64, [start, limit, offset]: [i64; 3], file: i64, build_id: i64) -> Build {
    let range = Build::default().number(1, id).number(2, start).number(3, limit);
    range.number(4, offset).number(5, file).number(6, build_id).number(7, 1)
}

fn label(key: i64, text: i64, number: i64) -> Build {
    Build::default().number(1, key).number(2, text).number(3, number)
}

/// In the manner of Go's runtime, with ids that leave gaps, fields out of order, an unknown field
/// and unpacked numbers, all of which protobuf allows.
fn file() -> Build {
    let sample = Build::default().numbers(1, &[70, 3]).number(2, 5).number(2, 50);
    let sample = sample.message(3, label(12, 6, 0)).message(3, label(13, 14, 0));
    let sample = sample.message(3, label(18, 0, 42)).message(3, label(15, 19, 0));
    let nameless = Build::default().numbers(1, &[71, 9, 3]).numbers(2, &[1, -10]);
    let zone = [0x40_0000, 0x50_0000, 0];
    Build::default()
        .message(2, sample)
        .message(2, nameless)
        .message(4, location(3, 1, 0x40_1000, &[line(1, 9)]))
        .message(4, location(70, 1, 0x40_1040, &[line(2, 20), line(1, 10)]))
        .message(4, location(71, 2, -0x7000_0000, &[line(900, 0)]))
        .message(4, location(9, 4, 0x7f00_0000_2010, &[]))
        .number(99, 5)
        .message(3, mapping(1, zone, 8, 9))
        .message(3, mapping(2, [-0x8000_0000, -1, 0], 10, 0))
        .message(3, mapping(4, [0x7f00_0000_0000, 0x7f00_0001_0000, 0x1000], 17, 0))
        .message(5, function(1, 5, 7))
        .message(5, function(2, 6, 7))
        .message(5, function(900, 11, 0))
        .message(1, Build::default().number(1, 1).number(2, 2))
        .message(1, Build::default().number(1, 3).number(2, 4))
        .message(11, Build::default().number(1, 3).number(2, 4))
        .number(12, 10_000_000)
        .number(9, 1_537_130_863)
        .number(13, 16)
        .texts(6, &STRINGS)
}

fn stacks(profile: &Profile) -> Vec<Vec<(String, FrameKind, Option<u32>)>> {
    let mut stacks = Vec::new();
    for sample in profile.samples() {
        let mut stack = Vec::new();
        for location in profile.stacks().entries(sample.stack) {
            for frame in &profile.location(location).frames {
                let frame = profile.frame(*frame);
                stack.push((profile.text(frame.name).to_owned(), frame.kind, frame.line));
            }
        }
        stacks.push(stack);
    }
    stacks
}

#[test]
fn labels_can_be_the_outermost_frames() {
    let labels = ["request", "zone"].map(str::to_owned);
    let profile = read_pprof_by(&file().0, &labels).unwrap();
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    let top = tree.nodes().iter().filter(|node| (1..=4).contains(&node.depth));
    let found: Vec<&str> = top.map(|node| &*tree.label(node).name).collect();
    let nameless = ["[no request]", "[no zone]", "app", "main.main"];
    let named = ["42", "[no zone]", "main.work", "main.main"];
    // The values of the first sample are 5 and 50, those of the other 1 and none.
    assert_eq!(found, named, "{nameless:?} weighs nothing in cpu");
    let counts = TreeOptions { value: Some(0), ..TreeOptions::default() };
    let tree = CallTree::from_profile(&profile, &counts);
    let top = tree.nodes().iter().filter(|node| (1..=4).contains(&node.depth));
    let found: Vec<&str> = top.map(|node| &*tree.label(node).name).collect();
    assert_eq!(found, [named, nameless].concat());
    let notes = &profile.health.notes;
    assert!(notes.contains(&"pprof: no sample has the label zone".to_owned()), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("left out: request")), "{notes:?}");
}

#[test]
fn stacks_kinds_and_lines_are_read() {
    let profile = read_pprof(&file().0).unwrap();
    let frame = |name: &str, kind, line| (name.to_owned(), kind, line);
    let main = || frame("main.main", FrameKind::User, Some(9));
    let expect = [
        vec![
            frame("main.work", FrameKind::Inlined, Some(20)),
            frame("main.main", FrameKind::User, Some(10)),
            main(),
        ],
        vec![
            frame("ksys_read", FrameKind::Kernel, None),
            frame("[libm.so.6+0x3010]", FrameKind::User, None),
            main(),
        ],
    ];
    assert_eq!(stacks(&profile), expect);
}

#[test]
fn images_and_addresses_in_them_are_read() {
    let profile = read_pprof(&file().0).unwrap();
    let app = &profile.images()[0];
    let build_id = app.build_id.as_ref().map(|id| id.to_string());
    assert_eq!((app.path.as_str(), build_id.as_deref()), ("/bin/app", Some("0a1b")));
    assert_eq!((app.start.0, app.end.0, app.offset.0), (0x40_0000, 0x50_0000, 0));
    let addresses: Vec<u64> = profile.locations().map(|location| location.address.0).collect();
    assert_eq!(addresses, [0x1000, 0x1040, 0x1000_0000, 0x3010]);
}

#[test]
fn threads_are_read_from_labels_of_several_names() {
    let profile = read_pprof(&file().0).unwrap();
    let threads = profile.samples().map(|sample| profile.thread(sample.thread));
    let threads: Vec<_> = threads.map(|t| (profile.text(t.name), t.pid, t.tid)).collect();
    let labelled = ("main.work", Some(Pid(42)), Some(Tid(17)));
    assert_eq!(threads, [labelled, ("app", None, None)]);
}

#[test]
fn circumstances_are_read_and_losses_noted() {
    let profile = read_pprof(&file().0).unwrap();
    assert_eq!((profile.total(0), profile.total(1)), (Weight(6), Weight(50)));
    assert_eq!(profile.default_value, 1);
    assert_eq!(profile.meta.event.as_deref(), Some("cpu"));
    assert_eq!(profile.meta.period, Some(10_000_000));
    assert_eq!(profile.meta.start.map(|start| start.0), Some(1_537_130_863));
    assert_eq!((profile.meta.duration, profile.health.samples), (None, 6));
    let notes = [
        "built by ci",
        "pprof: labels were left out: request",
        "pprof: 1 negative values were taken as 0",
    ];
    assert_eq!(profile.health.notes, notes);
    let read = |strict| {
        let options = ReadOptions { strict, ..ReadOptions::default() };
        read_input(Source::of_bytes(file().0).unwrap(), &options)
    };
    assert_eq!(read(false).unwrap().notes, ["1 negative values were taken as 0"]);
    assert!(read(true).unwrap_err().to_string().ends_with("1 negative values were taken as 0"));
}

/// Two names that are not UTF-8 stay two, written as folded text has them.
#[test]
fn bytes_that_are_not_utf8_are_written_out() {
    let mut bytes = Build::default()
        .message(1, Build::default().number(1, 1).number(2, 2))
        .message(5, function(1, 3, 0))
        .message(5, function(2, 4, 0))
        .message(4, location(1, 0, 1, &[line(1, 0)]))
        .message(4, location(2, 0, 2, &[line(2, 0)]))
        .message(2, Build::default().numbers(1, &[1, 2]).number(2, 7))
        .texts(6, &["", "samples", "count"])
        .0;
    for name in [b"caf\xe9", b"caf\xe8"] {
        bytes.extend([0x32, name.len() as u8]);
        bytes.extend(name);
    }
    let found = stacks(&read_pprof(&bytes).unwrap());
    let names: Vec<&str> = found[0].iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, [r"caf\xe9", r"caf\xe8"]);
}

#[track_caller]
fn check_refused(more: Build, message: &str) {
    let mut bytes = file().0;
    bytes.extend(more.0);
    assert_eq!(read_pprof(&bytes).unwrap_err().to_string(), message);
}

#[test]
fn files_that_break_the_rules_are_refused() {
    let build = Build::default;
    let sample = |ids: &[i64], values: &[i64]| build().numbers(1, ids).numbers(2, values);
    check_refused(
        build().message(2, sample(&[3, 4], &[1, 1])),
        "location 4 is referred to but not in the file",
    );
    check_refused(build().message(5, function(2, 5, 0)), "the function id 2 is 0 or not unique");
    check_refused(build().message(5, function(0, 5, 0)), "the function id 0 is 0 or not unique");
    check_refused(
        build().message(4, location(5, 0, 0, &[line(3, 0)])),
        "function 3 is referred to but not in the file",
    );
    check_refused(build().number(13, 21), "string 21 is referred to but not in the file");
    check_refused(build().number(14, -1), "string -1 is referred to but not in the file");
    let at = file().0.len();
    check_refused(
        build().message(2, sample(&[3], &[1])),
        &format!("the sample at byte {at} has 1 values, not 2"),
    );
}

#[test]
fn a_table_of_too_many_entries_is_refused() {
    // Sixteen million empty strings are 32 MiB of file, which gzip makes 32 KiB.
    let strings = [0x32, 0x00].repeat((1 << 24) + 1);
    let error = read_pprof(&strings).unwrap_err();
    assert!(matches!(error, PprofError::TooMany { table: "strings", limit: 16_777_216 }));
}

/// A few bytes make billions of functions: each location has many lines, and a sample names it often.
#[test]
fn samples_of_more_functions_than_a_stack_may_have_are_left_out_and_said() {
    let lines = [(); 1 << 10].map(|()| line(1, 0));
    let sample = |depth: usize| Build::default().numbers(1, &vec![1; depth]).numbers(2, &[1]);
    let before = Build::default()
        .message(1, Build::default().number(1, 1).number(2, 2))
        .message(5, function(1, 5, 0))
        .message(4, location(1, 0, 1, &lines))
        .texts(6, &STRINGS)
        .message(2, sample(128));
    let at = before.0.len();
    let bytes = before.message(2, sample(129)).message(2, sample(200_000)).0;
    let profile = read_pprof(&bytes).unwrap();
    assert_eq!((profile.samples().len(), profile.total(0)), (1, Weight(1)));
    let note = "pprof: 2 samples were left out: a stack may have 131072 functions at most";
    assert_eq!(profile.health.notes, [note]);
    let read = |strict| {
        let options = ReadOptions { strict, ..ReadOptions::default() };
        read_input(Source::of_bytes(bytes.clone()).unwrap(), &options)
    };
    let lenient = read(false).unwrap();
    assert_eq!((lenient.skipped.count(), lenient.skipped.first().len()), (2, 2));
    let reason = "its stack has more than 131072 functions";
    assert_eq!(lenient.skipped.first()[0].reason, reason);
    assert_eq!(lenient.skipped.first()[0].place.to_string(), format!("byte {at}"));
    assert!(read(true).unwrap_err().to_string().contains(reason));
}

/// A CPU profile that Go 1.10 wrote; `FLAME_SPEEDSCOPE_SAMPLES` is the directory
/// `sample/profiles` of speedscope's repository.
#[test]
fn a_profile_of_go_has_gos_totals() {
    let Some(samples) = std::env::var_os("FLAME_SPEEDSCOPE_SAMPLES") else {
        println!("SKIP go sample: FLAME_SPEEDSCOPE_SAMPLES names no directory");
        return;
    };
    let file = std::path::Path::new(&samples).join("pprof/simple.prof");
    let profile = read_pprof(&std::fs::read(file).unwrap()).unwrap();
    let values: Vec<(&str, u64)> = profile
        .value_types()
        .iter()
        .map(|v| v.name.as_str())
        .zip((0..).map(|i| profile.total(i).0))
        .take(2)
        .collect();
    assert_eq!(values, [("samples", 150), ("cpu", 1_500_000_000)]);
    assert_eq!(profile.samples().len(), 9);
    assert_eq!(profile.meta.period, Some(10_000_000));
    assert_eq!(stacks(&profile)[0][0], ("main.beta".to_owned(), FrameKind::User, Some(18)));
}

#[test]
fn functions_without_a_name_are_unknown() {
    let file = Build::default()
        .message(1, Build::default().number(1, 1).number(2, 2))
        .message(2, Build::default().number(1, 1).number(2, 5))
        .message(4, location(1, 0, 0, &[line(1, 9)]))
        .message(5, function(1, 0, 7))
        .texts(6, &STRINGS);
    let found = stacks(&read_pprof(&file.0).unwrap());
    assert_eq!(found, [[("[unknown]".to_owned(), FrameKind::User, Some(9))]]);
}
