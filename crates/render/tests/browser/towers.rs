//! Deep outliers: one box until it is looked into.

use flame_profile::{CallTree, ValueType};
use flame_render::{Direction, SvgConfig};
use serde_json::{Value, json};

use crate::graph::Graph;
use crate::redraw::check_tree;
use crate::test_trees::tree_of_value;

/// Two stacks of 150 frames with 0.3 % of all, and 0.2 % of a graph of three rows.
fn spire() -> CallTree {
    let deep = |end: &str| {
        (0..149).map(|n| format!("visit_{n}")).chain([end.to_owned()]).collect::<Vec<_>>().join(";")
    };
    let stacks = [
        ("server;parse".to_owned(), 5_000),
        ("server;read".to_owned(), 4_950),
        (deep("leaf"), 30),
        (deep("spire"), 20),
    ];
    tree_of_value(&stacks, ValueType::samples())
}

/// 150 frames and the root less the 16 rows above it: two frames are side by side at the end.
const TOWER: &str = "… 135 frames from visit_16 to leaf, 0.50%";

fn height(graph: &mut Graph) -> Value {
    graph.eval("+document.documentElement.getAttribute('height')")
}

#[test]
fn a_tower_of_few_samples_is_one_box_that_opens_on_a_click() {
    let Some(mut graph) = Graph::open("tower", &spire()) else { return };
    assert_eq!(height(&mut graph), json!(44 + 18 * 17 + 66));
    assert!(graph.names().contains(&TOWER.to_owned()), "{:?}", graph.names());
    graph.hover(TOWER);
    let expect = "135 frames from visit_16 to leaf — total 0.50% (100% of parent), 50 samples";
    assert_eq!(graph.text("details"), expect);
    graph.click(TOWER);
    let names = graph.names();
    assert!(
        ["visit_16", "visit_148", "leaf", "spire"]
            .map(str::to_owned)
            .iter()
            .all(|n| names.contains(n))
    );
    assert_eq!(height(&mut graph), json!(44 + 151 * 17 + 66));
    graph.browser.press("Escape").unwrap();
    assert_eq!(height(&mut graph), json!(44 + 18 * 17 + 66));
    graph.check_quiet();
}

#[test]
fn a_search_counts_what_is_in_a_tower_and_marks_it() {
    let Some(mut graph) = Graph::open("tower_search", &spire()) else { return };
    graph.search("visit_1[34]");
    assert_eq!(graph.text("matched"), "Matched: 0.50% (21 frames, 50 samples)");
    assert_eq!(graph.hits(), json!(["visit_13", "visit_14", TOWER]));
    graph.check_quiet();
}

#[test]
fn the_script_draws_the_boxes_of_towers_that_are_in_the_file() {
    let stacks: Vec<(String, u64)> = (0..3_u64)
        .map(|n| {
            let frames = 30 + 30 * n;
            let names: Vec<_> = (0..frames).map(|at| format!("f_{n}_{at}")).collect();
            (names.join(";"), [9_800, 190, 10][n as usize])
        })
        .collect();
    let tree = tree_of_value(&stacks, ValueType::samples());
    for (name, direction) in [("tower_up", Direction::Up), ("tower_down", Direction::Down)] {
        let config = SvgConfig { direction, ..SvgConfig::default() };
        check_tree(name, &tree, config, 100);
    }
    check_tree("tower_of_two", &spire(), SvgConfig::default(), 20);
}

#[test]
fn all_rows_are_drawn_where_that_is_asked_for() {
    let config = SvgConfig { all_rows: true, ..SvgConfig::default() };
    let Some(mut graph) = Graph::open_sized("tower_all", &spire(), &config, (1200, 900)) else {
        return;
    };
    assert!(graph.names().contains(&"spire".to_owned()));
    graph.click("server");
    graph.browser.press("Escape").unwrap();
    assert!(graph.names().contains(&"spire".to_owned()));
    graph.check_quiet();
}
