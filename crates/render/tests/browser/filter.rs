//! Order, hiding and focus, beside what the model says of the same stacks.

use flame_profile::{CallTree, Columns, FoldedReader, SiblingOrder, ValueType};
use flame_render::SvgConfig;
use serde_json::json;

use crate::graph::{Graph, server, svg, write};
use crate::test_trees::{Random, tree_of};

/// The boxes that the writer draws for stacks.
fn written(graph: &mut Graph, name: &str, tree: &CallTree) -> String {
    let path = write(&format!("{name}.svg"), &svg(tree, &SvgConfig::default()));
    graph.browser.open_file(&path).unwrap();
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    graph.boxes()
}

#[test]
fn siblings_can_stand_by_weight() {
    let Some(mut graph) = Graph::open("by_weight", &tree_of(&server())) else { return };
    let before = graph.boxes();
    graph.browser.press("o").unwrap();
    assert_eq!(graph.address(), "#o=weight");
    let names = graph.names();
    let expect = [
        "all",
        "server",
        "main",
        "parse",
        "alloc",
        "read",
        "sys_read",
        "… 1,000 frames, 5.00%",
        "idle",
        "sys_wait",
    ];
    assert_eq!(names, expect);
    assert_eq!(graph.frame("server")[0], 10);
    graph.browser.press("o").unwrap();
    assert_eq!(graph.boxes(), before);
    graph.check_quiet();
}

#[test]
fn a_hidden_frame_leaves_what_the_model_draws_without_it() {
    let Some(mut graph) = Graph::open("hide", &tree_of(&server())) else { return };
    let before = graph.boxes();
    graph.hover("parse");
    graph.browser.press("h").unwrap();
    assert_eq!(
        graph.names(),
        ["all", "idle", "sys_wait", "server", "main", "read", "sys_read", "… 1,000 frames, 5.00%"]
            .map(|name| name.replace("5.00%", "12.50%"))
    );
    let hidden = graph.boxes();
    graph.hover("read");
    assert_eq!(graph.text("standing"), "40.00% of all is shown");
    let expect = "Function: read — total 75.00% (85.71% of parent, 30.00% of everything), \
                  self 0.00%, 30,000 samples";
    assert_eq!(graph.text("details"), expect);
    graph.browser.press("u").unwrap();
    graph.wait_until("location.hash === ''");
    assert_eq!(graph.boxes(), before);
    graph.check_quiet();
    let left: Vec<_> = server().into_iter().filter(|(stack, _)| !stack.contains("parse")).collect();
    assert_eq!(written(&mut graph, "hide_model", &tree_of(&left)), hidden);
}

#[test]
fn a_focus_leaves_the_stacks_that_hold_the_function() {
    let stacks: Vec<(String, u64)> = (1..20).flat_map(|n| Random::new(n).stacks(60)).collect();
    let Some(mut graph) = Graph::open("focus", &tree_of(&stacks)) else { return };
    graph.hover("abc");
    graph.browser.press("f").unwrap();
    assert_eq!(graph.address(), "#f=abc");
    let focused = graph.boxes();
    graph.check_quiet();
    // The first name is the thread's; `abc` may be that, too.
    let left: Vec<_> = stacks
        .into_iter()
        .filter(|(stack, _)| stack.split(';').any(|name| name == "abc"))
        .collect();
    assert_eq!(written(&mut graph, "focus_model", &tree_of(&left)), focused);
}

/// The largest change is in none of what goes away, so that the colours mean the same.
const TWO: [(&str, u64, u64); 5] = [
    ("m", 30, 50),
    ("m;parse", 10, 40),
    ("m;parse;alloc", 50, 20),
    ("m;read;sys_read", 100, 300),
    ("m;send;alloc", 7, 7),
];

fn differential(keep: impl Fn(&str) -> bool) -> CallTree {
    let text: String = TWO
        .iter()
        .filter(|(stack, ..)| keep(stack))
        .map(|(stack, before, after)| format!("{stack} {before} {after}\n"))
        .collect();
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    reader.finish(ValueType::samples())
}

#[test]
fn colours_of_changes_are_those_of_what_is_left() {
    let Some(mut graph) = Graph::open("delta_filter", &differential(|_| true)) else { return };
    graph.hover("parse");
    graph.browser.press("h").unwrap();
    graph.browser.move_to(5.0, 5.0).unwrap();
    let hidden = graph.boxes();
    graph.browser.press("Escape").unwrap();
    graph.hover("read");
    graph.browser.press("f").unwrap();
    graph.browser.move_to(5.0, 5.0).unwrap();
    let focused = graph.boxes();
    graph.check_quiet();
    let left = differential(|stack| !stack.contains("parse"));
    assert_eq!(written(&mut graph, "delta_hide_model", &left), hidden);
    // `m` has no weight of its own any more, so it has not changed either.
    let left = differential(|stack| stack.contains("read"));
    assert_eq!(written(&mut graph, "delta_focus_model", &left), focused);
}

#[test]
fn hidden_frames_come_back_all_at_once() {
    let Some(mut graph) = Graph::open("hide_all", &tree_of(&server())) else { return };
    let before = graph.boxes();
    for name in ["idle", "parse"] {
        graph.hover(name);
        graph.browser.press("h").unwrap();
    }
    assert_eq!(graph.frame("read")[2], json!(1010.93));
    graph.browser.click_on("#unzoom").unwrap();
    assert_eq!(graph.boxes(), before);
    graph.check_quiet();
}

#[test]
fn the_menu_of_a_box_does_the_same() {
    let Some(mut graph) = Graph::open("menu", &tree_of(&server())) else { return };
    let (x, y) = graph.middle("idle");
    graph.browser.right_click(x, y).unwrap();
    let rows = "Array.from(document.querySelectorAll('#panel .row text:nth-child(2)'), t => t.textContent)";
    let expect = json!([
        "Zoom",
        "Copy name",
        "Copy stack",
        "Hide",
        "Focus: only stacks with this function",
        "Callers and callees of this function",
        "Search for this function"
    ]);
    assert_eq!(graph.eval(rows), expect);
    graph.browser.click_on("#panel .row:nth-of-type(4)").unwrap();
    assert_eq!(graph.eval("document.getElementById('panel') === null"), true);
    assert_eq!(graph.names()[..2], ["all", "server"]);
    graph.check_quiet();
}
