use flame_message::{format_share, group_thousands};
use flame_profile::{CallTree, Weight};
use serde_json::json;

use crate::graph::{Graph, server};
use crate::test_trees::{Random, tree_of};

/// Weight of the nodes whose name is one of `names`, those above another counted once.
fn matched(tree: &CallTree, names: &[&str]) -> String {
    let (mut weight, mut frames) = (Weight(0), 0);
    let mut covered_to = 0;
    for (index, node) in tree.nodes().iter().enumerate() {
        let matches = names.contains(&tree.label(node).name.as_str());
        frames += u64::from(matches);
        if index >= covered_to && matches {
            weight += node.total;
            covered_to = node.end as usize;
        }
    }
    let (share, frames) = (format_share(weight, tree.total()), group_thousands(frames));
    format!("Matched: {share} ({frames} frames, {} samples)", group_thousands(weight.0))
}

#[test]
fn the_share_counts_frames_too_thin_to_draw() {
    let tree = tree_of(&server());
    let Some(mut graph) = Graph::open("share", &tree) else { return };
    graph.search("^leaf_[37]$");
    assert_eq!(graph.text("matched"), "Matched: 1.00% (100 frames, 1,000 samples)");
    assert_eq!(graph.text("matched"), matched(&tree, &["leaf_3", "leaf_7"]));
    assert_eq!(graph.hits(), json!(["… 1,000 frames, 5.00%"]));
    graph.check_quiet();
}

#[test]
fn names_match_and_numbers_in_tooltips_do_not() {
    let Some(mut graph) = Graph::open("names", &tree_of(&server())) else { return };
    for (pattern, share, hits) in [
        ("samples|%", "0.00% (0 frames, 0 samples)", json!([])),
        ("^main$", "95.00% (1 frame, 95,000 samples)", json!(["main"])),
        ("^mai$", "0.00% (0 frames, 0 samples)", json!([])),
        ("sys_", "35.00% (2 frames, 35,000 samples)", json!(["sys_wait", "sys_read"])),
        ("PARSE", "0.00% (0 frames, 0 samples)", json!([])),
        // One above the other: the lower one holds both.
        ("parse|alloc", "60.00% (2 frames, 60,000 samples)", json!(["parse", "alloc"])),
        ("\\-?read", "30.00% (2 frames, 30,000 samples)", json!(["read", "sys_read"])),
    ] {
        graph.search(pattern);
        assert_eq!(graph.text("matched"), format!("Matched: {share}"), "{pattern}");
        assert_eq!(graph.hits(), hits, "{pattern}");
    }
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.text("matched"), "");
    assert_eq!(graph.hits(), json!([]));
    graph.check_quiet();
}

#[test]
fn case_can_be_ignored() {
    let Some(mut graph) = Graph::open("case", &tree_of(&server())) else { return };
    graph.search("PARSE");
    graph.browser.press_control("i").unwrap();
    assert_eq!(graph.text("matched"), "Matched: 60.00% (1 frame, 60,000 samples)");
    graph.browser.click_on("#ignorecase").unwrap();
    assert_eq!(graph.text("matched"), "Matched: 0.00% (0 frames, 0 samples)");
    graph.check_quiet();
}

#[test]
fn while_zoomed_the_share_of_the_view_is_told_too() {
    let Some(mut graph) = Graph::open("zoomed_search", &tree_of(&server())) else { return };
    graph.search("alloc|read");
    assert_eq!(graph.text("matched"), "Matched: 40.00% (3 frames, 40,000 samples)");
    graph.click("parse");
    assert_eq!(
        graph.text("matched"),
        "Matched: 16.67% of view, 40.00% of all (3 frames, 40,000 samples)"
    );
    assert_eq!(graph.hits(), json!(["alloc"]));
    graph.search("main");
    assert_eq!(
        graph.text("matched"),
        "Matched: 100% of view, 95.00% of all (1 frame, 95,000 samples)"
    );
    graph.browser.click_on("#unzoom").unwrap();
    assert_eq!(graph.text("matched"), "Matched: 95.00% (1 frame, 95,000 samples)");
    graph.check_quiet();
}

#[test]
fn a_bad_pattern_is_shown_as_such() {
    let Some(mut graph) = Graph::open("bad_pattern", &tree_of(&server())) else { return };
    graph.browser.press("F3").unwrap();
    graph.browser.type_text("par(se").unwrap();
    assert_eq!(graph.text("matched"), "Bad pattern: Unterminated group");
    assert_eq!(graph.eval("document.querySelector('input').className"), "flame-input bad");
    assert_eq!(graph.hits(), json!([]));
    graph.search("par(se)");
    assert_eq!(graph.text("matched"), "Matched: 60.00% (1 frame, 60,000 samples)");
    assert_eq!(graph.eval("document.querySelector('input').className"), "flame-input");
    graph.check_quiet();
}

#[test]
fn shares_of_random_trees_are_exact() {
    let stacks: Vec<(String, u64)> = (1..80).flat_map(|n| Random::new(n).stacks(200)).collect();
    let tree = tree_of(&stacks);
    let Some(mut graph) = Graph::open("random_search", &tree) else { return };
    for names in [&["abc"][..], &["ab", "z"], &["std::x<T>::y"], &["a", "b", "i"]] {
        graph.search(&format!("^({})$", names.join("|")));
        assert_eq!(graph.text("matched"), matched(&tree, names), "{names:?}");
    }
    graph.check_quiet();
}

/// The fills of the boxes of those names.
fn fills(graph: &mut Graph, names: &[&str]) -> serde_json::Value {
    let fills = names.iter().map(|name| {
        graph.eval(&format!(
            "({}).querySelector('rect').getAttribute('fill')",
            crate::graph::find(name)
        ))
    });
    fills.collect()
}

#[test]
fn several_searches_stand_side_by_side_in_colours_of_their_own() {
    let Some(mut graph) = Graph::open("several_searches", &tree_of(&server())) else { return };
    let before = fills(&mut graph, &["parse", "sys_read"]);
    graph.search("parse");
    graph.browser.press_control("Enter").unwrap();
    assert_eq!(graph.text("matched"), "", "the box is free again");
    graph.browser.type_text("sys_").unwrap();
    assert_eq!(fills(&mut graph, &["parse", "sys_read"]), json!(["#3dc9f5", "#f05fd8"]));
    assert_eq!(graph.text("matched"), "Matched: 35.00% (2 frames, 35,000 samples)");
    let chips = "Array.from(document.querySelectorAll('#searches text'), t => t.textContent)";
    assert_eq!(graph.eval(chips), json!(["parse 60.00% ×"]));
    graph.wait_until("location.hash === '#s=sys_&k=parse'");
    graph.browser.click_on("#searches .chip").unwrap();
    assert_eq!(graph.eval(chips), json!([]));
    graph.browser.press("Escape").unwrap();
    assert_eq!(fills(&mut graph, &["parse", "sys_read"]), before);
    graph.check_quiet();
}

/// A pattern that takes a backtracking matcher some 2^40 steps to say that the name is not it.
const ENDLESS: &str = "^(([a-z/])+.)+[A-Z]([a-z])+$";

#[test]
fn a_pattern_that_takes_too_long_is_given_up_and_the_page_goes_on_meanwhile() {
    let mut stacks = server();
    stacks.push((format!("server;{}", "usr/lib/".repeat(12)), 1_000));
    let Some(mut graph) = Graph::open("endless", &tree_of(&stacks)) else { return };
    graph.search(ENDLESS);
    graph.click("parse");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    graph.wait_until("/^Given up/.test(document.getElementById('matched').textContent)");
    assert_eq!(graph.text("matched"), "Given up: this pattern takes too long.");
    assert_eq!(graph.eval("document.querySelector('input').className"), "flame-input bad");
    assert_eq!(graph.hits(), json!([]));
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.text("matched"), "");
    assert_eq!(graph.browser.problems(), [] as [&str; 0]);
}

#[test]
fn a_pattern_that_could_take_long_finds_what_it_finds() {
    let tree = tree_of(&server());
    let Some(mut graph) = Graph::open("long_pattern", &tree) else { return };
    // Each of them repeats what can match in several ways, or refers back.
    for (pattern, names) in [
        ("^(l|ea|f|_)+[37]$", &["leaf_3", "leaf_7"][..]),
        ("^(([a-z])+_)+([a-z])+$", &["sys_read", "sys_wait"]),
        ("(s)y\\1", &["sys_read", "sys_wait"]),
    ] {
        graph.search(pattern);
        let expect = json!(matched(&tree, names));
        graph.wait_until(&format!("document.getElementById('matched').textContent === {expect}"));
    }
    assert_eq!(graph.browser.problems(), [] as [&str; 0]);
}

/// What a reader sees of a box that is a pixel wide: the colour in the middle of it.
#[test]
fn matches_of_a_pixel_have_the_colour_of_a_match() {
    let stacks: Vec<(String, u64)> = (0..400)
        .map(|n| (format!("t;{}_{n}", if n % 2 == 0 { "hit" } else { "other" }), 1))
        .collect();
    let Some(mut graph) = Graph::open("pixels", &tree_of(&stacks)) else { return };
    graph.search("^hit");
    let edges = graph.eval(
        "(rects => [rects.length, rects.filter(r => r.getAttribute('width') < 4).length, \
         new Set(rects.map(r => getComputedStyle(r).stroke)).size, \
         getComputedStyle(rects[0]).stroke])\
         (Array.from(document.querySelectorAll('#frames rect[stroke-width=\".7\"]')))",
    );
    assert_eq!(edges, json!([200, 200, 1, "rgb(240, 95, 216)"]));
    graph.check_quiet();
}
