use std::io::Cursor;

use flame_profile::{Annotations, CallTree, SiblingOrder, write_folded};

use super::*;
use crate::layout::Layout;
use crate::test_traces::{DO_TRACE, Event, In, MAIN, MAP, Out, PARSE, PUTS, RUN, Raw, calls};
use crate::{Making, Measure, Rules, SymbolMap, Trace, follow};

struct Outcome {
    calls: String,
    time: String,
    /// The boxes of the flame chart from left to right: name, start, width.
    chart: Vec<(String, u64, u64)>,
    facts: Facts,
}

fn folded(tree: &CallTree) -> String {
    let mut text = Vec::new();
    write_folded(tree, Annotations::Write, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn boxes(tree: &CallTree) -> Vec<(String, u64, u64)> {
    let mut starts: Vec<u64> = vec![0; tree.nodes().len()];
    let mut filled: Vec<u64> = vec![0; tree.nodes().len()];
    let mut boxes = Vec::new();
    let gap = |at: usize| tree.gaps().map_or(0, |gaps| gaps[at].0);
    for (at, node) in tree.nodes().iter().enumerate().skip(1) {
        let parent = node.parent.index();
        starts[at] = starts[parent] + filled[parent] + gap(at);
        filled[parent] += gap(at) + node.total.0;
        boxes.push((tree.label(node).name.clone(), starts[at], node.total.0));
    }
    boxes
}

fn follow_with(events: &[Event], rules: Option<&str>) -> Outcome {
    let mut trace = Trace::open(Cursor::new(calls(Layout::CURRENT, events))).unwrap();
    let map = SymbolMap::parse(MAP.as_bytes(), trace.layout().site_len()).unwrap();
    let rules = rules.map(|rules| Rules::parse(rules.as_bytes(), crate::Reading::Whole).unwrap());
    let mut functions = Functions::new(Some(&map), rules.as_ref());
    let chunk = trace.calls(None).unwrap();
    let followed = follow(&mut trace, chunk, &mut functions, Making::Chart).unwrap();
    let tree = |measure| followed.graph.tree(measure, &functions, SiblingOrder::Name);
    let (calls, time) = (folded(&tree(Measure::Calls)), folded(&tree(Measure::Time)));
    let chart = boxes(&followed.chart.unwrap().finish());
    Outcome { calls, time, chart, facts: followed.facts }
}

fn follow_all(events: &[Event]) -> Outcome {
    follow_with(events, None)
}

fn named(chart: &[(String, u64, u64)]) -> Vec<(&str, u64, u64)> {
    chart.iter().map(|(name, start, width)| (name.as_str(), *start, *width)).collect()
}

#[test]
fn time_is_charged_to_the_innermost_call() {
    let outcome = follow_all(&[
        In(MAIN, 100),
        In(PARSE, 103),
        In(PUTS, 105),
        Out(PUTS, 105),
        Out(PARSE, 110),
        Out(MAIN, 111),
    ]);
    assert_eq!(outcome.calls, "main 1\nmain;parse 1\nmain;parse;puts 1\n");
    // What took no time has none.
    assert_eq!(outcome.time, "main 4\nmain;parse 7\n");
    let chart = [("main", 0, 11), ("parse", 3, 7), ("puts", 5, 0)];
    assert_eq!(named(&outcome.chart), chart);
    assert_eq!((outcome.facts.span, outcome.facts.max_depth), (11, 3));
}

#[test]
fn calls_that_follow_each_other_at_once_are_one_box_of_a_chart() {
    let outcome = follow_all(&[
        In(MAIN, 0),
        In(PUTS, 0),
        Out(PUTS, 2),
        In(PUTS, 2),
        Out(PUTS, 5),
        In(PUTS, 6),
        Out(PUTS, 7),
        Out(MAIN, 8),
        In(RUN, 9),
        Out(RUN, 10),
    ]);
    assert_eq!(outcome.time, "main 2\nmain;puts 6\nrun 1\n");
    let chart =
        [("main", 0, 8), ("puts", 0, 5), ("puts", 6, 1), ("[outside]", 8, 1), ("run", 9, 1)];
    assert_eq!(named(&outcome.chart), chart);
}

#[test]
fn exits_from_before_the_trace_and_calls_that_never_end_do_no_harm() {
    let outcome = follow_all(&[
        Out(DO_TRACE, 5),
        Out(RUN, 6),
        In(MAIN, 10),
        In(PUTS, 11),
        Out(PUTS, 14),
        In(PARSE, 15),
    ]);
    assert_eq!(outcome.time, "main 2\nmain;puts 3\n");
    assert_eq!((outcome.facts.unmatched_exits, outcome.facts.open_at_end), (2, 2));
}

#[test]
fn an_exit_ends_the_calls_above_that_have_none() {
    let outcome = follow_all(&[
        In(MAIN, 0),
        In(RUN, 1),
        In(PARSE, 2),
        In(PUTS, 4),
        Out(RUN, 7),
        In(PUTS, 8),
        Out(PUTS, 9),
        Out(MAIN, 10),
    ]);
    assert_eq!(
        outcome.time,
        "main 3\nmain;puts 1\nmain;run 1\nmain;run;parse 2\nmain;run;parse;puts 3\n"
    );
    assert_eq!((outcome.facts.resyncs, outcome.facts.unwound_calls), (1, 2));
}

#[test]
fn an_exit_of_what_is_not_open_changes_nothing() {
    let outcome =
        follow_all(&[In(MAIN, 0), Out(PARSE, 3), In(PUTS, 4), Out(PUTS, 6), Out(MAIN, 9)]);
    assert_eq!(outcome.time, "main 7\nmain;puts 2\n");
    assert_eq!(outcome.facts.unmatched_exits, 1);
}

#[test]
fn recursion_ends_its_innermost_call() {
    let outcome = follow_all(&[
        In(PARSE, 0),
        In(PARSE, 1),
        Out(PARSE, 3),
        In(PUTS, 3),
        Out(PUTS, 4),
        Out(PARSE, 9),
    ]);
    assert_eq!(outcome.time, "parse 6\nparse;parse 2\nparse;puts 1\n");
}

#[test]
fn the_time_of_a_pause_is_no_functions() {
    let outcome = follow_all(&[
        In(RUN, 0),
        In(DO_TRACE, 2),
        Out(DO_TRACE, 9_000_002),
        Out(RUN, 9_000_005),
        In(MAIN, 9_000_006),
        Out(MAIN, 9_000_008),
    ]);
    assert_eq!(outcome.time, "[paused] 9000000\nmain 2\nrun 5\n");
    assert_eq!(outcome.calls, "main 1\nrun 1\nrun;do_trace 1\n");
    let chart = [
        ("run", 0, 2),
        ("do_trace", 2, 0),
        ("[paused]", 2, 9_000_000),
        ("run", 9_000_002, 3),
        ("do_trace", 9_000_002, 0),
        ("[outside]", 9_000_005, 1),
        ("main", 9_000_006, 2),
    ];
    assert_eq!(named(&outcome.chart), chart);
    assert_eq!((outcome.facts.pauses, outcome.facts.paused), (1, 9_000_000));
}

#[test]
fn a_pause_that_ends_in_another_call_is_one_as_well() {
    let outcome =
        follow_all(&[In(RUN, 0), In(MAIN, 1), Out(DO_TRACE, 5_000_001), Out(RUN, 5_000_002)]);
    assert_eq!(outcome.time, "[paused] 5000000\nrun 1\nrun;main 1\n");
}

#[test]
fn a_command_of_trace_that_calls_something_is_no_pause() {
    let outcome = follow_all(&[In(DO_TRACE, 0), In(PUTS, 1), Out(PUTS, 5), Out(DO_TRACE, 7)]);
    assert_eq!(outcome.time, "do_trace 3\ndo_trace;puts 4\n");
}

#[test]
fn the_clock_may_start_over_and_may_be_set_back() {
    let outcome = follow_all(&[In(MAIN, (1 << 30) - 5), In(PUTS, 2), Out(PUTS, 4), Out(MAIN, 5)]);
    assert_eq!(outcome.time, "main 8\nmain;puts 2\n");
    assert_eq!((outcome.facts.wraps, outcome.facts.steps_back), (1, 0));
    let outcome = follow_all(&[
        In(MAIN, 3_000_000),
        In(PUTS, 1_000_000),
        Out(PUTS, 1_000_004),
        Out(MAIN, 1_000_005),
    ]);
    assert_eq!(outcome.time, "main 1\nmain;puts 4\n");
    assert_eq!((outcome.facts.wraps, outcome.facts.steps_back), (0, 1));
}

#[test]
fn any_depth_is_followed() {
    let depth = 1000;
    let mut events: Vec<Event> = (0..depth).map(|time| In(PARSE, time)).collect();
    events.extend((0..depth).map(|time| Out(PARSE, depth + time)));
    let outcome = follow_all(&events);
    assert_eq!(outcome.facts.max_depth, depth as usize);
    assert_eq!(outcome.facts.span, u64::from(depth) * 2 - 1);
    assert_eq!(outcome.facts.unmatched_exits + outcome.facts.open_at_end, 0);
}

#[test]
fn excluded_functions_give_their_time_to_their_callers() {
    let events = [
        In(MAIN, 0),
        In(PARSE, 1),
        In(PUTS, 3),
        Out(PUTS, 6),
        Out(PARSE, 8),
        Out(MAIN, 9),
        In(PARSE, 9),
        Out(PARSE, 12),
    ];
    let outcome = follow_with(&events, Some("exclude-func ^parse$"));
    assert_eq!(outcome.time, "main 6\nmain;puts 3\n");
    assert_eq!(outcome.calls, "main 1\nmain;puts 1\n");
    assert_eq!(named(&outcome.chart), [("main", 0, 9), ("puts", 3, 3)]);
    assert_eq!(follow_with(&events, Some("exclude-func .")).time, "");
}

#[test]
fn functions_that_the_map_lacks_keep_their_place() {
    let outcome = follow_all(&[
        In(MAIN, 0),
        In(0x90, 1),
        In(PUTS, 3),
        Out(PUTS, 4),
        Out(0x90, 5),
        Out(MAIN, 6),
    ]);
    let expect = "main 2\nmain;[unknown 0x80000090] 3\nmain;[unknown 0x80000090];puts 1\n";
    assert_eq!(outcome.time, expect);
}

#[test]
fn records_that_are_no_calls_are_counted() {
    let outcome = follow_all(&[In(MAIN, 7), Raw(2, 0), Raw(3, 99), Out(MAIN, 9)]);
    assert_eq!(outcome.time, "main 2\n");
    assert_eq!(outcome.facts.others, 2);
}
