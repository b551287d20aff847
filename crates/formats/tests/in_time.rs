//! What a function does itself between two calls stands between them where the order of time is kept, in any format.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their tests")]

use flame_formats::{InputContent, ReadOptions, Source, read_input};
use flame_profile::{SiblingOrder, TreeOptions, ValueType};

/// `DEPTH NAME OWN` of each box, with what stands before it.
fn boxes(text: &str) -> String {
    let tree = TreeOptions { order: SiblingOrder::Time, ..TreeOptions::default() };
    let options = ReadOptions { tree, ..ReadOptions::default() };
    let read = read_input(Source::of_bytes(text.into()).unwrap(), &options).unwrap();
    assert_eq!((read.skipped.count(), &*read.notes), (0, &[][..]), "{text}");
    let tree = match read.content {
        InputContent::Stacks(stacks) => {
            let builder = stacks.to_builder(&tree);
            builder.finish(ValueType::samples(), SiblingOrder::Time)
        }
        InputContent::Folded(parts, _) => parts.finish(ValueType::samples(), SiblingOrder::Time),
        InputContent::Profile(_) => panic!("{text}"),
    };
    let gaps = tree.gaps().unwrap();
    let shown = tree.nodes().iter().zip(gaps).skip(1).map(|(node, gap)| {
        format!("{} {} {} behind {}", node.depth, tree.label(node).name, node.self_weight.0, gap.0)
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// `a` runs from 0 to 10, and calls `b` from 2 to 4 and from 6 to 8; times are in microseconds.
fn inputs() -> [(String, u64, bool); 7] {
    let names = r#"{"name":"a"},{"name":"b"}"#;
    let event = |sign, frame, at| format!(r#"{{"type":"{sign}","frame":{frame},"at":{at}}}"#);
    let events = [("O", 0, 0), ("O", 1, 2), ("C", 1, 4), ("O", 1, 6), ("C", 1, 8), ("C", 0, 10)];
    let events = events.map(|(sign, frame, at)| event(sign, frame, at)).join(",");
    let speedscope = format!(
        r#"{{"shared":{{"frames":[{names}]}},"profiles":[{{"type":"evented","name":"t",
        "unit":"microseconds","startValue":0,"endValue":10,"events":[{events}]}}]}}"#
    );
    let span = |name, at, length| {
        format!(r#"{{"name":"{name}","ph":"X","ts":{at},"dur":{length},"pid":1,"tid":1}}"#)
    };
    let spans = [span("b", 6, 2), span("a", 0, 10), span("b", 2, 2)].join(",");
    let samples = [0, 0, 1, 1, 0, 0, 1, 1, 0, 0];
    let list = |of: &dyn Fn(usize, i32) -> String| {
        let all = samples.iter().enumerate().map(|(at, sample)| of(at, *sample));
        all.collect::<Vec<_>>().join(",")
    };
    let chrome = list(&|at, sample| format!(r#"{{"tid":1,"ts":{at},"sf":{sample}}}"#));
    let chrome = format!(
        r#"{{"traceEvents":[],"stackFrames":{{"0":{{"name":"a"}},"1":{{"name":"b","parent":"0"}}}},
        "samples":[{chrome}]}}"#
    );
    let call = |name| format!(r#""callFrame":{{"functionName":"{name}","url":""}}"#);
    let cpuprofile = format!(
        r#"{{"nodes":[{{"id":0,{},"children":[1]}},{{"id":1,{}}}],"samples":[{}]}}"#,
        call("a"),
        call("b"),
        list(&|_, sample| sample.to_string())
    );
    let firefox = format!(
        r#"{{"meta":{{"preprocessedProfileVersion":50}},"threads":[{{"name":"thread 1","samples":
        {{"stack":[{}],"length":10}},"stackTable":{{"frame":[0,1],"prefix":[null,0]}},
        "frameTable":{{"func":[0,1]}},"funcTable":{{"name":[0,1]}},"stringArray":["a","b"]}}]}}"#,
        list(&|_, sample| sample.to_string())
    );
    let perf = samples.iter().enumerate().map(|(at, sample)| {
        let inner = if *sample == 1 { "\t 2 b (/x)\n" } else { "" };
        format!("thread_1 7 1.{at:06}: 1 cycles:\n{inner}\t 1 a (/x)\n\n")
    });
    let perf: String = perf.collect();
    let folded = "a 2\na;b 2\na 2\na;b 2\na 2\n".to_owned();
    [
        (folded, 1, false),
        (speedscope, 1000, false),
        (format!("[{spans}]"), 1000, true),
        (chrome, 1, true),
        (cpuprofile, 1, false),
        (firefox, 1, true),
        (perf, 1, true),
    ]
}

#[test]
fn what_a_function_does_between_its_calls_stays_there() {
    for (text, unit, has_thread) in inputs() {
        let found = boxes(&text).replace("thread_1", "thread 1");
        let (own, call, gap) = (6 * unit, 2 * unit, 2 * unit);
        let (depth, thread) = if has_thread { (2, "1 thread 1 0 behind 0, ") } else { (1, "") };
        let below = depth + 1;
        let expect = format!(
            "{thread}{depth} a {own} behind 0, {below} b {call} behind {gap}, \
             {below} b {call} behind {gap}"
        );
        assert_eq!(found, expect, "{text}");
    }
}
