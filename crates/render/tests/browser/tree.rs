//! The whole tree in the page: exact to the last digit, whatever the browser can do.

use flame_message::{format_share, group_thousands};
use flame_profile::{CallTree, Weight};
use flame_render::SvgConfig;

use crate::graph::{Graph, browser, svg, write};
use crate::test_trees::{Random, tree_of};

/// Many frames, so that the data is not small.
fn many() -> CallTree {
    let mut stacks: Vec<(String, u64)> =
        (1..160).flat_map(|n| Random::new(n).stacks(400)).collect();
    let mut random = Random::new(7);
    for n in 0..30_000 {
        let (a, b) = (random.below(300), random.below(9_000));
        stacks.push((
            format!("pool;worker_{a};task::<{b}>::run_{n}"),
            1 + u64::from(random.below(90)),
        ));
    }
    tree_of(&stacks)
}

#[track_caller]
fn check(name: &str, before: &str) {
    let tree = many();
    assert!(tree.nodes().len() > 50_000, "{}", tree.nodes().len());
    let Some(mut browser) = browser(1200, 900) else { return };
    let source = serde_json::json!({ "source": before });
    browser.call("Page.addScriptToEvaluateOnNewDocument", source).unwrap();
    let svg = svg(&tree, &SvgConfig::default());
    browser.open_file(&write(&format!("{name}.svg"), &svg)).unwrap();
    let mut graph = Graph { browser };
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    for ending in ["0", "77", "_29999"] {
        let (mut weight, mut frames) = (Weight(0), 0);
        for node in tree.nodes() {
            let task = tree.label(node).name.starts_with("task");
            if task && tree.label(node).name.ends_with(ending) {
                (weight, frames) = (weight + node.total, frames + 1);
            }
        }
        graph.search(&format!("^task.*{ending}$"));
        let noun = if frames == 1 { "frame" } else { "frames" };
        let expect = format!(
            "Matched: {} ({} {noun}, {} samples)",
            format_share(weight, tree.total()),
            group_thousands(frames),
            group_thousands(weight.0)
        );
        assert_eq!(graph.text("matched"), expect, "{ending}");
    }
    graph.check_quiet();
}

#[test]
fn large_data_is_unpacked_by_the_browser() {
    check("large", "");
}

#[test]
fn a_browser_that_cannot_unpack_gets_the_same() {
    check("large_old", "delete window.DecompressionStream; delete Uint8Array.fromBase64;");
}

#[test]
fn weights_beyond_what_doubles_hold_are_whole() {
    let (large, odd) = (1u64 << 60, (1u64 << 53) + 1);
    let stacks = [("t;a;x", large + 1), ("t;a;y", odd), ("t;b", 3)];
    let tree = tree_of(&stacks);
    let Some(mut graph) = Graph::open("large_weights", &tree) else { return };
    graph.search("^(x|b)$");
    let expect = format!("Matched: 99.22% (2 frames, {} samples)", group_thousands(large + 4));
    assert_eq!(graph.text("matched"), expect);
    graph.browser.press("Escape").unwrap();
    graph.click("a");
    graph.hover("y");
    let details = graph.text("details");
    assert!(details.ends_with(", 9,007,199,254,740,993 samples"), "{details}");
    graph.browser.press("o").unwrap();
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.names(), ["all", "t", "a", "x", "y"]);
    graph.check_quiet();
}

#[test]
fn damaged_data_leaves_the_picture_as_it_is() {
    let tree = tree_of(&[("t;a", 3), ("t;b", 4)]);
    let svg = svg(&tree, &SvgConfig::default());
    let at = svg.find(r#""label":["#).unwrap();
    let text = at + svg[at..].find(",\"").unwrap() + 2;
    let damaged = format!("{}////{}", &svg[..text], &svg[text + 4..]);
    let Some(mut browser) = browser(1200, 900) else { return };
    browser.open_file(&write("damaged.svg", &damaged)).unwrap();
    let mut graph = Graph { browser };
    assert_eq!(graph.names(), ["all", "t", "a", "b"]);
    let said = "The data of this graph cannot be read; the picture is all there is.";
    assert_eq!(graph.text("details"), said);
}
