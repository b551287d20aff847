//! What screen readers are told.

use serde_json::{Value, json};

use crate::graph::{Graph, server};
use crate::test_trees::tree_of;

fn items(graph: &mut Graph) -> Vec<(String, u64)> {
    graph.wait_until("document.querySelector('#frames[role=tree]')");
    graph.browser.call("Accessibility.enable", json!({})).unwrap();
    let tree = graph.browser.call("Accessibility.getFullAXTree", json!({})).unwrap();
    let nodes = tree["nodes"].as_array().unwrap();
    let level = |node: &Value| {
        let properties = node["properties"].as_array().unwrap();
        let level = properties.iter().find(|property| property["name"] == "level").unwrap();
        level["value"]["value"].as_u64().unwrap()
    };
    let items = nodes.iter().filter(|node| node["role"]["value"] == "treeitem");
    items.map(|node| (node["name"]["value"].as_str().unwrap().to_owned(), level(node))).collect()
}

#[test]
fn the_boxes_are_a_tree_with_names_and_levels() {
    let Some(mut graph) = Graph::open("access", &tree_of(&server())) else { return };
    let expect = [
        ("all (100,000 samples, 100%)", 1),
        ("idle (5,000 samples, 5.00%)", 2),
        ("sys_wait (5,000 samples, 5.00%)", 3),
        ("server (95,000 samples, 95.00%)", 2),
        ("main (95,000 samples, 95.00%)", 3),
        ("parse (60,000 samples, 60.00%)", 4),
        ("alloc (10,000 samples, 10.00%)", 5),
        ("read (30,000 samples, 30.00%)", 4),
        ("sys_read (30,000 samples, 30.00%)", 5),
        ("… 1,000 frames, 5.00%", 4),
    ];
    let expect = expect.map(|(name, level)| (name.to_owned(), level));
    assert_eq!(items(&mut graph), expect);
    let described = "document.querySelector('desc').textContent";
    let hottest = "Most self weight: parse 50.00%, sys_read 30.00%, alloc 10.00%, sys_wait 5.00%, \
                   leaf_0 0.50%";
    assert_eq!(graph.eval(described), hottest);
    graph.click("parse");
    graph.wait_until("document.querySelectorAll('#frames g[role=treeitem]').length === 5");
    assert_eq!(items(&mut graph)[3..], expect[5..7]);
    graph.check_quiet();
}

/// A screen reader reads out what gets the focus when it gets it.
#[test]
fn a_box_is_an_item_of_the_tree_as_soon_as_it_has_the_focus() {
    let Some(mut graph) = Graph::open("focused", &tree_of(&server())) else { return };
    let keys = ["ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp", "ArrowUp", "Enter"];
    let focused =
        "(at => [at.getAttribute('role'), at.getAttribute('aria-level')])(document.activeElement)";
    for (key, level) in keys.iter().zip(["1", "2", "2", "3", "4", "4"]) {
        graph.browser.press(key).unwrap();
        assert_eq!(graph.eval(focused), json!(["treeitem", level]), "{key}");
    }
    graph.check_quiet();
}

#[test]
fn the_tabulator_reaches_the_controls_and_the_boxes() {
    let Some(mut graph) = Graph::open("tabulator", &tree_of(&server())) else { return };
    graph.wait_until("document.querySelector('#frames[role=tree]')");
    let mut reached = Vec::new();
    // The first step is into the page.
    for _ in 0..9 {
        graph.browser.press("Tab").unwrap();
        let at = graph.eval(
            "(at => at.id || at.localName + ' ' + (at.getAttribute('role') || ''))(document.activeElement)",
        );
        reached.push(at.as_str().unwrap().to_owned());
    }
    assert_eq!(
        reached[1..],
        ["g treeitem", "flip", "order", "input ", "previous", "next", "ignorecase", "help"]
    );
    graph.check_quiet();
}
