//! The script must draw what the file says: same boxes, same labels, same colours, same numbers.

use flame_profile::ValueType;
use flame_render::SvgConfig;

use crate::graph::Graph;
use crate::test_trees::{Random, tree_of_value};

const NAMES: [&str; 14] = [
    "<alloc::vec::Vec<T, A> as core::ops::drop::Drop>::drop",
    "tokio::runtime::task::harness::Harness<T, S>::poll::{{closure}}",
    "std::map<int, std::less<int> >::at(int const&) const",
    "(anonymous namespace)::Worker::operator()(unsigned long) const",
    "std::ostream::operator<<(int)",
    "core::iter::<impl core::fmt::Debug for X>::fmt::h0123456789abcdef",
    "java/util/concurrent/ThreadPoolExecutor$Worker.<init>",
    "github.com/acme/server.(*Handler).ServeHTTP",
    "[libc.so.6+0x1f3a]",
    "größenverhältnis_日本語_🔥_long_enough_to_be_cut",
    "f::<fn(A) -> B>::g",
    "a_plain_c_function_with_a_long_name",
    "<<<a",
    "::::",
];

fn stacks(seed: u64) -> Vec<(String, u64)> {
    let mut random = Random::new(seed);
    let mut name = |limit: usize| NAMES[random.below(limit as u32) as usize];
    let mut stacks: Vec<(String, u64)> = (0..400)
        .map(|n: u64| {
            let frames: Vec<&str> = (0..2 + n % 7).map(|_| name(NAMES.len())).collect();
            (frames.join(";"), 1 + n * n * n)
        })
        .collect();
    stacks.push((format!("t;[truncated stack];{}", "long".repeat(200)), 500_000_000));
    stacks
}

#[track_caller]
fn check(test: &str, value: ValueType, width: u32) {
    let tree = tree_of_value(&stacks(7), value);
    let footer = vec!["a line that says what was lost and what is uncertain ".repeat(9)];
    let config = SvgConfig { width, footer, ..SvgConfig::default() };
    let Some(mut graph) = Graph::open_sized(test, &tree, &config, (width, 900)) else { return };
    let footer = "document.getElementById('footer').innerHTML";
    let picture = |graph: &mut Graph| graph.boxes() + graph.eval(footer).as_str().unwrap();
    let written = picture(&mut graph);
    let count = graph.names().len();
    assert!(count > 500, "{count} boxes");
    graph.browser.resize(width - 100, 900).unwrap();
    let wait = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
    graph.eval(wait);
    let narrower = picture(&mut graph);
    assert_ne!(narrower, written, "the graph follows the window");
    graph.browser.resize(width, 900).unwrap();
    graph.eval(wait);
    let drawn = picture(&mut graph);
    for (drawn, written) in drawn.split("</g>").zip(written.split("</g>")) {
        assert_eq!(drawn, written);
    }
    assert_eq!(drawn.len(), written.len());
    graph.check_quiet();
}

#[test]
fn drawing_again_gives_what_the_file_holds() {
    check("redraw", ValueType::samples(), 1200);
}

#[test]
fn drawing_again_gives_what_the_file_holds_for_time_and_another_width() {
    check("redraw_time", ValueType::new("cpu", "nanoseconds"), 1600);
}

#[test]
fn labels_stay_inside_their_boxes() {
    let tree = tree_of_value(&stacks(9), ValueType::samples());
    let Some(mut graph) = Graph::open("labels", &tree) else { return };
    let sticking_out = graph.eval(
        "Array.from(document.querySelectorAll('#frames text')).filter(text => { \
         const label = text.getBBox(), box = text.previousSibling.getBBox(); \
         return label.x < box.x || label.x + label.width > box.x + box.width; \
         }).map(text => text.textContent)",
    );
    assert_eq!(sticking_out, serde_json::json!([]));
}
