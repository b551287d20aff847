//! JSON profiles that break off: what stands before that is shown where it is right, and that it breaks
//! off is said; elsewhere they are refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their tests")]

use std::collections::BTreeMap;

use flame_formats::{InputContent, ReadError, ReadOptions, Source, read_input};
use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

/// The stacks of a file with their weights, and what is said of it.
type Stacks = (BTreeMap<String, u64>, Vec<String>);

fn read(text: &str, strict: bool) -> Result<Stacks, ReadError> {
    let options = ReadOptions { strict, ..ReadOptions::default() };
    let read = read_input(Source::of_bytes(text.as_bytes().to_vec()).unwrap(), &options)?;
    let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
    let builder = stacks.to_builder(&TreeOptions::default());
    let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
    let mut folded = Vec::new();
    write_folded(&tree, Annotations::Write, &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let lines = lines.map(|(stack, weight)| (stack.to_owned(), weight.parse().unwrap()));
    Ok((lines.collect(), read.notes))
}

/// A file cut at each byte behind its start, by which it is recognised: all that is shown is in the whole
/// file, and that it breaks off is said; at least `shown` cuts show something.
#[track_caller]
fn check(text: &str, start: &str, shown: usize) {
    let (whole, notes) = read(text, true).unwrap();
    assert_eq!(notes, [""; 0]);
    let mut with_stacks = 0;
    for cut in text.find(start).unwrap() + start.len()..text.len() {
        let cut_short = &text[..cut];
        let broken = read(cut_short, true);
        assert!(broken.is_err(), "{cut}: {broken:?}");
        let Ok((stacks, notes)) = read(cut_short, false) else { continue };
        assert!(notes.iter().any(|note| note.contains("truncated")), "{cut}: {notes:?}");
        for (stack, weight) in &stacks {
            // Of several profiles each is a thread; there may be one only before the break.
            let of_thread = || whole.get(&format!("one;{stack}"));
            let of_whole = whole.get(stack).or_else(of_thread).copied().unwrap_or(0);
            let is_named = !stack.contains("[unknown]");
            assert!(!is_named || *weight <= of_whole, "{cut}: {stack} {weight}, not {of_whole}");
        }
        let sum: u64 = stacks.values().sum();
        assert!(sum <= whole.values().sum(), "{cut}: {stacks:?}");
        with_stacks += usize::from(!stacks.is_empty());
    }
    assert!(with_stacks >= shown, "{with_stacks} show something");
}

const SPEEDSCOPE: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
"shared":{"frames":[{"name":"main"},{"name":"work"},{"name":"rest"}]},"profiles":[
{"type":"sampled","name":"one","unit":"none","startValue":0,"endValue":700,"samples":[[0],[0,1],[0,1],[0,2]],"weights":[100,200,300,100]},
{"type":"evented","name":"two","unit":"none","startValue":0,"endValue":900,"events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":200},{"type":"C","frame":1,"at":500},{"type":"C","frame":0,"at":900}]}]}"#;

const CPU_PROFILE: &str = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
{"id":2,"callFrame":{"functionName":"main"},"hitCount":7,"children":[3]},{"id":3,"callFrame":{"functionName":"work"},"hitCount":5}],
"startTime":1000,"endTime":1900,"samples":[2,3,3,2,3],"timeDeltas":[100,100,200,100,200]}"#;

const DHAT: &str = r#"{"dhatFileVersion":2,"pps":[{"tb":4096,"tbk":2,"fs":[1,2]},{"tb":10,"tbk":1,"fs":[3,2]}],
"ftbl":["[root]","0x48417B4: malloc (vg_replace_malloc.c:381)","0x10915E: main (main.c:5)","0x109300: realloc (a.c:1)"]}"#;

#[test]
fn speedscope_has_the_samples_whose_weights_are_there() {
    check(SPEEDSCOPE, "\"profiles\"", 200);
    let at = SPEEDSCOPE.find(",300").unwrap() + 3;
    let (stacks, _) = read(&SPEEDSCOPE[..at], false).unwrap();
    let expect = [("main".to_owned(), 100), ("main;work".to_owned(), 200)];
    assert_eq!(stacks, BTreeMap::from(expect));
    // Frames that are open end with the last event that is there, not with the whole profile.
    let at = SPEEDSCOPE.find(",{\"type\":\"C\"").unwrap();
    let (stacks, _) = read(&SPEEDSCOPE[..at], false).unwrap();
    assert_eq!((stacks["two;main"], stacks.get("two;main;work")), (200, None));
}

#[test]
fn speedscope_whose_names_would_stand_at_the_end_is_refused() {
    let (head, profiles) = SPEEDSCOPE.split_once("\"shared\"").unwrap();
    let (shared, profiles) = profiles.split_once("\"profiles\"").unwrap();
    let profiles = profiles.strip_suffix('}').unwrap();
    let text = format!("{head}\"profiles\"{profiles},\"shared\"{}}}", &shared[..shared.len() - 1]);
    assert_eq!(read(&text, true).unwrap(), read(SPEEDSCOPE, true).unwrap());
    let error = read(&text[..text.len() - 90], false).unwrap_err().to_string();
    assert!(error.ends_with("it has no names of functions before that"), "{error}");
}

#[test]
fn cpu_profiles_have_the_samples_that_are_there() {
    check(CPU_PROFILE, "\"callFrame\"", 30);
    let at = CPU_PROFILE.find("\"timeDeltas\"").unwrap();
    let (stacks, notes) = read(&CPU_PROFILE[..at + 20], false).unwrap();
    assert_eq!(stacks, read(CPU_PROFILE, true).unwrap().0);
    assert!(notes[0].contains("times of its samples are missing"), "{notes:?}");
    // Functions without samples are not a part of what happened.
    let at = CPU_PROFILE.find("\"id\":3,").unwrap();
    let error = read(&CPU_PROFILE[..at], false).unwrap_err().to_string();
    assert!(error.ends_with("it has no samples before that"), "{error}");
}

#[test]
fn dhat_has_all_that_was_allocated_if_some_names_are_missing() {
    check(DHAT, "\"dhatFileVersion\"", 100);
    let (stacks, notes) = read(&DHAT[..DHAT.find(",\"0x109300").unwrap()], false).unwrap();
    let expect = [("main;[unknown]".to_owned(), 10), ("main;malloc".to_owned(), 4096)];
    assert_eq!(stacks, BTreeMap::from(expect));
    assert!(notes[0].ends_with("missing: 1; these are [unknown]"), "{notes:?}");
    let error = read(&DHAT[..DHAT.find("\"ftbl").unwrap()], false).unwrap_err().to_string();
    assert!(error.contains("before that"), "{error}");
}

#[test]
fn what_stands_behind_a_profile_is_said() {
    for text in [SPEEDSCOPE, CPU_PROFILE, DHAT] {
        let (stacks, notes) = read(&format!("{text}\n{text}"), false).unwrap();
        assert_eq!(stacks, read(text, true).unwrap().0);
        assert!(notes[0].contains("something stands behind it"), "{notes:?}");
        assert!(read(&format!("{text}\n{text}"), true).is_err());
    }
}

const TRACE: &str = r#"[{"name":"a","ph":"X","ts":1,"dur":5,"pid":1,"tid":2},
{"name":"b","ph":"X","ts":8,"dur":7,"pid":1,"tid":2}]"#;

/// The end of a list of events may be missing, and nothing else.
#[test]
fn a_list_of_trace_events_lacks_its_end_alone() {
    let (whole, notes) = read(TRACE, true).unwrap();
    assert_eq!((whole.len(), notes), (2, Vec::new()));
    let open = &TRACE[..TRACE.len() - 1];
    for end in ["", "\n", ",", " ,\n"] {
        let (stacks, notes) = read(&format!("{open}{end}"), true).unwrap();
        assert_eq!(stacks, whole, "{end:?}");
        assert!(notes[0].contains("list of events is truncated"), "{notes:?}");
    }
    let lost = [
        (format!("{open},{{\"name\":\"c\",\"ph\":\"X\",\"ts\":4"), TRACE.len() + 27),
        (format!("{open},{{\"name\":"), TRACE.len() + 8),
        (format!("{open},nul"), TRACE.len()),
        (format!("{open} {{}}]"), TRACE.len()),
        (format!("{TRACE}\n{TRACE}"), TRACE.len() + 1),
        (format!("{TRACE} garbage"), TRACE.len() + 1),
        (format!("{TRACE}]"), TRACE.len()),
    ];
    for (text, at) in lost {
        let (stacks, notes) = read(&text, false).unwrap();
        assert_eq!(stacks, whole, "{text}");
        let expect = format!(" at byte {at}; everything before that was read");
        assert!(notes.len() == 1 && notes[0].ends_with(&expect), "{text}: {notes:?}");
        assert!(read(&text, true).is_err(), "{text}");
    }
}
