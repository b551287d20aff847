//! JSON profiles of which a part is left out, or not what it should be: that is said, and an error with
//! `--strict`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their tests")]

use flame_formats::{
    InputContent, ReadError, ReadInput, ReadOptions, SampleOptions, Source, read_input,
};
use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

fn read(text: &str, strict: bool) -> Result<ReadInput, ReadError> {
    let options = ReadOptions { strict, ..ReadOptions::default() };
    read_input(Source::of_bytes(text.as_bytes().to_vec()).unwrap(), &options)
}

fn folded(read: &ReadInput) -> String {
    let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
    let tree = stacks.to_builder(&TreeOptions::default());
    let tree = tree.finish(ValueType::samples(), SiblingOrder::Name);
    let mut folded = Vec::new();
    write_folded(&tree, Annotations::Write, &mut folded).unwrap();
    String::from_utf8(folded).unwrap().trim_end().replace('\n', ", ")
}

/// What a file has, and what is said of it.
#[track_caller]
fn check_noted(text: &str, expect: &str, note: &str) {
    let read = read(text, false).unwrap();
    assert_eq!((&*folded(&read), &*read.notes), (expect, &[note.to_owned()][..]));
    assert_eq!(read.skipped.count(), 0);
}

/// The same, with an error of that record where nothing may be left out.
#[track_caller]
fn check(text: &str, expect: &str, note: &str, record: u64) {
    check_noted(text, expect, note);
    let error = read(text, true).unwrap_err().to_string();
    assert_eq!(error, format!("record {record} cannot be read: {note}"));
}

fn firefox(threads: &str) -> String {
    format!("{{\"meta\":{{\"preprocessedProfileVersion\":47}},\"threads\":[{threads}]}}")
}

fn firefox_thread(name: &str, samples: &str) -> String {
    format!(
        "{{\"name\":\"{name}\",\"samples\":{{{samples}}},\
         \"stackTable\":{{\"prefix\":[null,0],\"frame\":[0,1]}},\"frameTable\":{{\"func\":[0,1]}},\
         \"funcTable\":{{\"name\":[0,1]}},\"stringArray\":[\"a\",\"b\"]}}"
    )
}

fn speedscope(profiles: &str) -> String {
    format!(
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
         \"shared\":{{\"frames\":[{{\"name\":\"a\"}},{{\"name\":\"b\"}}]}},\"profiles\":[{profiles}]}}"
    )
}

#[test]
fn weights_that_are_rounded_are_said() {
    let weights = "\"weight\":[0.4,0.4,3,9007199254740993],\"stack\":[0,0,0,1]";
    let said = "weights that are no whole numbers were rounded: 2, 2 of them to nothing; \
                together they weigh 0, not 0.80";
    let expect = "t;a 3, t;a;b 9007199254740993";
    check(&firefox(&firefox_thread("t", weights)), expect, said, 1);
    let sample = |weight: &str, frame| format!("{{\"tid\":1,\"sf\":{frame},\"weight\":{weight}}}");
    let samples =
        [sample("0.4", 1), sample("\"0.4\"", 1), sample("3", 1), sample("9007199254740993", 2)];
    let frames = "\"1\":{\"name\":\"a\"},\"2\":{\"name\":\"b\",\"parent\":1}";
    let trace = format!(
        "{{\"traceEvents\":[],\"stackFrames\":{{{frames}}},\"samples\":[{}]}}",
        samples.join(",")
    );
    check(&trace, "thread 1;a 3, thread 1;a;b 9007199254740993", said, 1);
}

#[test]
fn parts_of_another_unit_are_said() {
    let threads = [
        firefox_thread("t", "\"stack\":[1]"),
        firefox_thread("u", "\"weightType\":\"bytes\",\"weight\":[8],\"stack\":[0]"),
    ];
    let said = "thread u is left out: its weights have another unit";
    check(&firefox(&threads.join(",")), "t;a;b 1", said, 2);
    let profile = |name, unit| {
        format!(
            "{{\"type\":\"sampled\",\"name\":\"{name}\",\"unit\":\"{unit}\",\
             \"samples\":[[0,1]],\"weights\":[5]}}"
        )
    };
    let profiles = [profile("p", "none"), profile("q", "bytes")].join(",");
    let said = "profile q is left out: its unit differs from that of the first";
    check(&speedscope(&profiles), "p;a;b 5", said, 2);
}

#[test]
fn units_that_no_format_has_keep_their_names() {
    let values = |text: &str| {
        let InputContent::Stacks(stacks) = read(text, true).unwrap().content else {
            panic!("stacks are expected")
        };
        let values = stacks.to_profile().value_types().to_vec();
        values.into_iter().map(|value| (value.name, value.unit)).collect::<Vec<_>>()
    };
    let named = |name: &str, unit: &str| vec![(name.to_owned(), unit.to_owned())];
    let sampled = |unit: &str| {
        speedscope(&format!(
            "{{\"type\":\"sampled\",\"name\":\"p\",{unit}\"samples\":[[0]],\"weights\":[5]}}"
        ))
    };
    assert_eq!(values(&sampled("\"unit\":\"kilobytes\",")), named("kilobytes", "kilobytes"));
    assert_eq!(values(&sampled("\"unit\":\"bytes\",")), named("bytes", "bytes"));
    assert_eq!(values(&sampled("\"unit\":\"none\",")), named("samples", "count"));
    assert_eq!(values(&sampled("")), named("samples", "count"));
    let thread = firefox_thread("t", "\"weightType\":\"joules\",\"weight\":[8],\"stack\":[0]");
    assert_eq!(values(&firefox(&thread)), named("joules", "joules"));
    let dhat = |mode: &str| {
        let points = "\"pps\":[{\"tb\":9,\"tbk\":2,\"fs\":[0]}],\"ftbl\":[\"0x1: parse (a.c:5)\"]";
        values(&format!("{{\"dhatFileVersion\":2,\"mode\":{mode},{points}}}"))
    };
    let two = |first, second| [first, second].concat();
    let heap = two(named("allocated", "bytes"), named("allocations", "count"));
    assert_eq!(dhat("\"heap\""), heap);
    let copies = two(named("copied", "bytes"), named("copies", "count"));
    assert_eq!(dhat("\"copy\""), copies);
    let events = two(named("units", "units"), named("events", "count"));
    assert_eq!(dhat("\"ad-hoc\",\"bsu\":\"units\""), events);
}

#[test]
fn asynchronous_spans_are_said() {
    let trace = r#"[{"name":"a","ph":"X","ts":0,"dur":5,"tid":1},{"name":"x","ph":"b","ts":1,"id":1},
        {"name":"x","ph":"e","ts":2,"id":1}]"#;
    let said = "asynchronous spans, which are of no thread: 1; left out";
    check(trace, "thread 1;a 5000", said, 2);
}

#[test]
fn samples_that_a_table_should_have_are_said() {
    let thread = firefox_thread("t", "\"length\":5,\"stack\":[0,1]");
    let said = "samples that are not in their table, by its length: 3";
    check(&firefox(&thread), "t;a 1, t;a;b 1", said, 3);
}

#[test]
fn frames_that_are_not_closed_are_said() {
    let event = |at, frame| format!("{{\"type\":\"O\",\"frame\":{frame},\"at\":{at}}}");
    let events = [event(0, 0), event(4, 1)].join(",");
    let profile = format!(
        "{{\"type\":\"evented\",\"name\":\"p\",\"unit\":\"none\",\"startValue\":0,\
         \"endValue\":9,\"events\":[{events}]}}"
    );
    let said = "frames that are not closed: 2; they are drawn to the end of their profile";
    check(&speedscope(&profile), "a 4, a;b 5", said, 1);
}

fn cpu_profile(second: u32, samples: &str, deltas: &str) -> String {
    let node = |id, name| format!("{{\"id\":{id},\"callFrame\":{{\"functionName\":\"{name}\"}}}}");
    format!(
        "{{\"nodes\":[{},{}],\"startTime\":100,\"endTime\":190,\"samples\":[{samples}],\
         \"timeDeltas\":[{deltas}]}}",
        node(1, "a"),
        node(second, "b")
    )
}

#[test]
fn cpu_profiles_that_are_not_what_they_should_be_are_said() {
    assert!(read(&cpu_profile(2, "1,2,2", "0,20,30"), true).is_ok());
    let said = "times that are negative: 2; they count as 0";
    check(&cpu_profile(2, "1,2,2", "0,-20,-30"), "a 1, b 2", said, 2);
    let said = "times that are no number or longer than the profile: 2";
    check(&cpu_profile(2, "1,2,2", "0,91,null"), "a 1, b 2", said, 2);
    let said = "nodes with the id of another one: 1; samples are of the last of them";
    check(&cpu_profile(1, "1,1", "0,20"), "b 2", said, 2);
    let said = "3 samples have 2 times: they are counted, without times";
    check(&cpu_profile(2, "1,2,2", "0,20"), "a 1, b 2", said, 3);
}

/// A node with its function, and what else is said of it.
fn v8_node(id: u32, name: &str, more: &str) -> String {
    format!("{{\"id\":{id},\"callFrame\":{{\"functionName\":{name},\"url\":\"\"}}{more}}}")
}

fn v8(nodes: &[String], samples: &str) -> String {
    format!("{{\"nodes\":[{}],\"startTime\":0,\"endTime\":9{samples}}}", nodes.join(","))
}

#[test]
fn callers_of_v8_that_contradict_each_other_are_said() {
    let nodes = |of_a: &str, of_b: &str, of_c: &str| {
        [
            v8_node(1, "\"(root)\"", ",\"children\":[2,3]"),
            v8_node(2, "\"a\"", of_a),
            v8_node(3, "\"b\"", of_b),
            v8_node(4, "\"c\"", of_c),
        ]
    };
    let children = ",\"children\":[4]";
    let said = "nodes that are called by several others: 1; the last of these counts as the caller";
    let samples = ",\"samples\":[4,4]";
    check(&v8(&nodes(children, children, ""), samples), "b;c 2", said, 4);
    check(&v8(&nodes(children, "", ",\"parent\":3"), samples), "b;c 2", said, 4);
    let said = "nodes whose caller is not in the file: 1; stacks begin with them";
    check(&v8(&nodes("", "", ",\"parent\":7"), samples), "c 2", said, 4);
    let both = v8(&nodes(children, "", ",\"parent\":2"), samples);
    assert_eq!(folded(&read(&both, true).unwrap()), "a;c 2");
    let round = v8(&nodes(",\"parent\":4", "", ",\"parent\":2"), samples);
    let error = read(&round, true).unwrap_err().to_string();
    assert!(error.starts_with("record 2 cannot be read: nodes that are called"), "{error}");
}

#[test]
fn hits_of_v8_that_are_negative_are_said() {
    let nodes = [v8_node(1, "\"a\"", ",\"hitCount\":-3"), v8_node(2, "\"b\"", ",\"hitCount\":2")];
    let said = "weights that are no number or negative: 1; they count as 0";
    check(&v8(&nodes, ""), "b 2", said, 1);
    // Where samples are there, nothing is made of them.
    assert_eq!(folded(&read(&v8(&nodes, ",\"samples\":[1]"), true).unwrap()), "a 1");
    let head = |size| {
        let call = "\"callFrame\":{\"functionName\":\"a\"}";
        format!(
            "{{\"head\":{{{call},\"selfSize\":8,\"children\":[{{{call},\"selfSize\":{size}}}]}}}}"
        )
    };
    check(&head("-8"), "a 8", said, 2);
}

#[test]
fn names_that_are_null_are_said() {
    let said = "names that are missing or no text: 1; they are [unknown]";
    let nodes = [v8_node(1, "null", ",\"hitCount\":3"), v8_node(2, "\"\"", ",\"hitCount\":2")];
    check(&v8(&nodes, ""), "(anonymous) 2, [unknown] 3", said, 1);
    let profile = "{\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"none\",\"samples\":[[0,1]],\"weights\":[5]}";
    let file = speedscope(profile).replace("{\"name\":\"b\"}", "{\"name\":null}");
    check(&file, "a;[unknown] 5", said, 2);
    let file = firefox(&firefox_thread("t", "\"stack\":[0,1]"));
    check(&file.replace("[\"a\",\"b\"]", "[\"a\",null]"), "t;a 1, t;a;[unknown] 1", said, 2);
    // What is not there is as good as null.
    check(&file.replace("[\"a\",\"b\"]", "[\"a\"]"), "t;a 1, t;a;[unknown] 1", said, 2);
    check(&file.replace("{\"func\":[0,1]}", "{\"func\":[0,9]}"), "t;a 1, t;a;[unknown] 1", said, 2);
    let span = r#"[{"name":null,"ph":"X","ts":0,"dur":5,"tid":1}]"#;
    check(span, "thread 1;[unknown] 5000", said, 1);
    let sample =
        r#"{"traceEvents":[],"stackFrames":{"1":{"name":null}},"samples":[{"tid":1,"sf":1}]}"#;
    check(sample, "thread 1;[unknown] 1", said, 1);
    let points = "{\"dhatFileVersion\":2,\"pps\":[{\"tb\":8,\"fs\":[1,2]}],\"ftbl\":[\"[root]\",\"a\",null]}";
    check(points, "[unknown];a 8", said, 3);
    let centres = "{\"rts_arguments\":[],\"cost_centres\":[{\"id\":1,\"module\":\"M\",\"label\":null}],\
                   \"profile\":{\"id\":1,\"ticks\":1,\"alloc\":8,\"children\":[]}}";
    check(centres, "M.[unknown] 1000000", said, 1);
}

#[test]
fn lengths_that_are_less_than_their_table_has_are_said() {
    let thread = firefox_thread("t", "\"length\":1,\"stack\":[0,1]");
    let said = "rows of samples beyond the length that it says: 1; they are read all the same";
    check(&firefox(&thread), "t;a 1, t;a;b 1", said, 1);
    let thread = firefox_thread("t", "\"stack\":[0,1]");
    let thread = thread.replace("\"prefix\":[null,0]", "\"length\":1,\"prefix\":[null,0]");
    let said = "rows of stackTable beyond the length that it says: 1; they are read all the same";
    check(&firefox(&thread), "t;a 1, t;a;b 1", said, 1);
}

#[test]
fn firefox_samples_without_a_stack_are_said() {
    let thread = firefox_thread("t", "\"stack\":[0,null,1]");
    check_noted(&firefox(&thread), "t;a 1, t;a;b 1", "samples without a stack, left out: 1");
}

#[test]
fn spans_that_cross_or_have_no_end_are_said() {
    let span = |name: &str, ts: &str, dur: &str| {
        format!("{{\"name\":\"{name}\",\"ph\":\"X\",\"ts\":{ts},\"dur\":{dur},\"tid\":1}}")
    };
    let trace = |spans: &[String]| format!("[{}]", spans.join(","));
    let crossing = trace(&[span("a", "0", "4"), span("b", "2", "4")]);
    let said = "spans that outlast the one they began in: 1; they are drawn to its end";
    check(&crossing, "thread 1;a 2000, thread 1;a;b 2000", said, 2);
    // Parts of a nanosecond are rounded.
    let rounded = trace(&[span("a", "0.0004", "10.0004"), span("b", "5.0006", "5.0002")]);
    read(&rounded, true).unwrap();
    let begin = r#"{"name":"b","ph":"B","ts":2,"tid":1}"#.to_owned();
    let open = trace(&[span("a", "0", "4"), begin]);
    let said = "spans without an end: 1; they are drawn to the end of the trace";
    check(&open, "thread 1;a 2000, thread 1;a;b 2000", said, 2);
}

#[test]
fn chrome_samples_of_another_kind_are_not_added_up() {
    let sample = |name: &str, frame| {
        format!("{{\"tid\":1,\"ts\":1,\"name\":\"{name}\",\"sf\":{frame},\"weight\":3}}")
    };
    let samples = [sample("cycles:HG", 1), sample("cache-misses:HG", 2), sample("cycles:HG", 2)];
    let frames = "\"1\":{\"name\":\"a\"},\"2\":{\"name\":\"b\",\"parent\":1}";
    let span = r#"{"name":"s","ph":"X","ts":0,"dur":5,"tid":1}"#;
    let trace = |spans: &str| {
        let samples = samples.join(",");
        format!(
            "{{\"traceEvents\":[{spans}],\"stackFrames\":{{{frames}}},\"samples\":[{samples}]}}"
        )
    };
    let expect = "thread 1;a 3, thread 1;a;b 3";
    let said = "samples of cycles:HG only; left out: cache-misses:HG (1); --event takes another";
    check_noted(&trace(""), expect, said);
    let read_event = |event: &str| {
        let samples = SampleOptions { event: Some(event.to_owned()), ..SampleOptions::default() };
        let options = ReadOptions { samples, ..ReadOptions::default() };
        read_input(Source::of_bytes(trace(span).into_bytes()).unwrap(), &options)
    };
    assert_eq!(folded(&read_event("samples").unwrap()), expect);
    assert_eq!(folded(&read_event("cache-misses:HG").unwrap()), "thread 1;a;b 3");
    assert_eq!(folded(&read_event("spans").unwrap()), "thread 1;s 5000");
    let error = read_event("misses").unwrap_err().to_string();
    assert!(error.contains("cycles:HG (2), cache-misses:HG (1), spans"), "{error}");
    let both = read(&trace(span), false).unwrap();
    let left_out = "left out: 1 spans; --event spans takes them".to_owned();
    assert!(both.notes.contains(&left_out), "{:?}", both.notes);
}

#[test]
fn what_no_tool_should_write_is_said() {
    let sampled =
        |more: &str| format!("{{\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"none\",{more}}}");
    let longer = sampled("\"samples\":[[0]],\"weights\":[5,6,7]");
    check(&speedscope(&longer), "a 5", "weights that no sample has: 2; left out", 2);
    let null = speedscope(&sampled("\"samples\":[null,[0]],\"weights\":[5,6]"));
    assert_eq!(
        (folded(&read(&null, false).unwrap()), read(&null, false).unwrap().skipped.count()),
        ("a 6".to_owned(), 1)
    );
    let other = format!("{longer},{}", longer.replace("sampled", "linked"));
    let other = speedscope(&other.replace("[5,6,7]", "[5]"));
    let said = "profile p is left out: it is neither sampled nor evented";
    check(&other, "p;a 5", said, 2);
    let evented = "{\"type\":\"evented\",\"name\":\"p\",\"unit\":\"none\",\"endValue\":5,\"events\":[\
                   {\"type\":\"O\",\"frame\":0,\"at\":1},{\"type\":\"C\",\"frame\":0,\"at\":9}]}";
    check(&speedscope(evented), "a 8", "a profile ends before its last event; all are read", 2);
    let said = "weights that are negative or no whole numbers: 2; they count as 0";
    let points = "{\"dhatFileVersion\":2,\"pps\":[{\"tb\":8,\"fs\":[0]},{\"tb\":-8,\"fs\":[0]},\
                  {\"tb\":8.5,\"fs\":[0]}],\"ftbl\":[\"a\"]}";
    check(points, "a 8", said, 2);
    let centres = "{\"rts_arguments\":[],\"cost_centres\":[{\"id\":1,\"module\":\"M\",\"label\":\"f\"}],\
                   \"profile\":{\"id\":1,\"ticks\":1,\"alloc\":8.5,\"children\":[{\"id\":1,\"ticks\":-1,\"alloc\":8}]}}";
    check(centres, "M.f 1000000", said, 1);
    let trace = r#"[{"name":"a","ph":"X","ts":0,"dur":5,"tid":1},null,{"name":"b","ts":2}]"#;
    let found = read(trace, false).unwrap();
    assert_eq!((folded(&found), found.skipped.count()), ("thread 1;a 5000".to_owned(), 2));
}

/// `node --trace-event-categories v8.cpu_profiler` ends each profile with a chunk that has nothing else.
#[test]
fn the_last_sample_of_a_profile_in_a_trace_lasts_to_its_end() {
    let event = |name: &str, data: &str| {
        format!(
            "{{\"name\":\"{name}\",\"ph\":\"P\",\"pid\":1,\"tid\":2,\"id\":\"0x1\",\"args\":{{\"data\":{data}}}}}"
        )
    };
    let profile = format!("{{\"nodes\":[{}],\"samples\":[1,1]}}", v8_node(1, "\"a\"", ""));
    let events = [
        event("Profile", "{\"startTime\":100}"),
        event("ProfileChunk", &format!("{{\"cpuProfile\":{profile},\"timeDeltas\":[5,7]}}")),
        event("ProfileChunk", "{\"endTime\":120}"),
    ];
    let found = read(&format!("{{\"traceEvents\":[{}]}}", events.join(",")), true).unwrap();
    let InputContent::Stacks(stacks) = &found.content else { panic!("stacks are expected") };
    let profile = stacks.to_profile();
    assert_eq!((profile.total(0).0, profile.total(1).0), (2, 15_000));
}

#[test]
fn what_refers_to_nothing_is_said() {
    let thread = firefox_thread("t", "\"stack\":[0,1]").replace("[null,0]", "[null,-1]");
    let found = read(&firefox(&thread), false).unwrap();
    assert_eq!((folded(&found), found.skipped.count()), ("t;a 1".to_owned(), 1));
    let thread = firefox_thread("t", "\"stack\":[1]").replace("\"b\"]", "\"0x1f\"]");
    let thread = thread.replace("\"funcTable\":{", "\"funcTable\":{\"resource\":[-1,5],");
    let said = "names that are missing or no text: 1; they are [unknown]";
    check(&firefox(&thread), "t;a;[[unknown]+0x1f] 1", said, 1);
    let span = r#"{"name":"a","ph":"X","ts":0,"dur":5,"tid":1}"#;
    let trace = format!("{{\"traceEvents\":[{span}],\"samples\":[{{\"sf\":1}}]}}");
    let said = "its list of samples is left out: it has no stackFrames";
    check(&trace, "thread 1;a 5000", said, 1);
    let said = "spans that say only how long they had a CPU: 1; they are as long as that";
    check(&format!("[{}]", span.replace("dur", "tdur")), "thread 1;a 5000", said, 1);
    let nodes = [v8_node(1, "\"a\"", ",\"hitCount\":2,\"children\":[7]")];
    let said = "nodes that call one that is not in the file: 1; it is left out";
    check(&v8(&nodes, ""), "a 2", said, 1);
    let times = ",\"samples\":[1],\"timeDeltas\":[1]";
    let backwards =
        v8(&[v8_node(1, "\"a\"", "")], times).replace("\"startTime\":0", "\"startTime\":20");
    check(&backwards, "a 1", "the profile ends before it starts", 1);
}

#[test]
fn old_cpu_profiles_have_the_times_of_samples_and_seconds_of_their_own() {
    let old = |start: &str, times: &str| {
        let node = r#"{"functionName":"a","url":"","lineNumber":0,"id":1,"hitCount":2}"#;
        let rest = r#""endTime":0.00002,"samples":[1,1]"#;
        format!(r#"{{"head":{node},"startTime":{start},{rest},"timestamps":[{times}]}}"#)
    };
    let weights = |text: &str| {
        let found = read(text, false).unwrap();
        let InputContent::Stacks(stacks) = found.content else { panic!("stacks are expected") };
        let profile = stacks.to_profile();
        (profile.total(0).0, profile.total(1).0)
    };
    // A sample lasts until the next one, the last to the end of the profile.
    assert_eq!(weights(&old("0.000001", "6,12")), (2, 14_000));
    check(&old("0.000001", "6,2"), "a 2", "times that are negative: 1; they count as 0", 2);
    let said = "2 samples have 1 times: they are counted, without times";
    check(&old("0.000001", "6"), "a 2", said, 2);
}
