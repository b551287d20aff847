//! Nothing in the picture covers anything else.

use flame_render::SvgConfig;
use serde_json::Value;

use crate::graph::{Graph, server};
use crate::test_trees::tree_of;

const PARTS: [&str; 10] = [
    "title",
    "subtitle",
    "unzoom",
    "another",
    "search",
    "ignorecase",
    "help",
    "matched",
    "details",
    "legend",
];

fn config() -> SvgConfig {
    SvgConfig {
        title: "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -O2 -quiet sqlite3.c ".repeat(3),
        subtitle: Some("cpu-clock at 999 Hz for 13.2 s, on build-machine-17 ".repeat(4)),
        footer: vec!["12,987 samples, 99.9 % of stacks complete, 0 lost ".repeat(5)],
        ..SvgConfig::default()
    }
}

/// Each part's box, and the footer's.
fn boxes(graph: &mut Graph) -> Vec<(String, [f64; 4])> {
    let parts = PARTS.iter().chain(&["footer"]);
    let mut boxes = Vec::new();
    for part in parts {
        let edges = graph.eval(&format!(
            "(e => {{ const r = e.getBoundingClientRect(); \
             return [r.left, r.top, r.right, r.bottom]; }})(document.getElementById('{part}'))"
        ));
        let edge = |at: usize| edges[at].as_f64().unwrap();
        boxes.push(((*part).to_owned(), [0, 1, 2, 3].map(edge)));
    }
    boxes
}

#[test]
fn nothing_overlaps_from_320_to_1600_pixels() {
    let tree = tree_of(&server());
    let Some(mut graph) = Graph::open_sized("overlap", &tree, &config(), (320, 900)) else {
        return;
    };
    graph.click("parse");
    graph.search("alloc");
    for width in [320, 400, 500].into_iter().chain((600..=1600).step_by(200)) {
        graph.browser.resize(width, 900).unwrap();
        graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        graph.hover("alloc");
        let boxes = boxes(&mut graph);
        for (index, (name, one)) in boxes.iter().enumerate() {
            assert!(one[0] >= 0.0 && one[2] <= f64::from(width), "{width}: {name} {one:?}");
            // A narrow page has no room for titles beside the controls.
            let shown = one[2] > one[0];
            assert!(
                shown || width < 600 && name.ends_with("title"),
                "{width}: {name} is not shown"
            );
            for (other_name, other) in &boxes[index + 1..] {
                let apart = one[2] <= other[0]
                    || other[2] <= one[0]
                    || one[3] <= other[1]
                    || other[3] <= one[1];
                assert!(apart, "{width}: {name} {one:?} covers {other_name} {other:?}");
            }
        }
    }
    graph.check_quiet();
}

#[test]
fn a_graph_taller_than_the_window_opens_at_its_root_with_the_controls_in_sight() {
    let stack: String = (0..200).map(|n| format!(";f{n}")).collect();
    let tree = tree_of(&[(format!("t{stack}"), 1)]);
    let Some(mut graph) = Graph::open("tall", &tree) else { return };
    let top = |graph: &mut Graph, id: &str| -> Value {
        graph.eval(&format!(
            "Math.round(document.getElementById('{id}').getBoundingClientRect().top)"
        ))
    };
    let root = graph.eval("document.querySelector('#frames g rect').getBoundingClientRect().top");
    assert!((500.0..900.0).contains(&root.as_f64().unwrap()), "{root}");
    let title = top(&mut graph, "title");
    assert!((0..30).contains(&title.as_i64().unwrap()), "{title}");
    graph.eval("window.scrollTo(0, 0)");
    graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    graph.hover("f195");
    assert_eq!(
        graph.text("details"),
        "Function: f195 — total 100% (100% of parent), self 0.00%, 1 samples"
    );
    let details = top(&mut graph, "details");
    assert!((850..900).contains(&details.as_i64().unwrap()), "{details}");
    graph.check_quiet();
}
