//! The script must draw what the file says: same boxes, same labels, same colours, same numbers.

use flame_profile::{CallTree, Columns, FoldedReader, SiblingOrder, ValueType};
use flame_render::{
    ColourConfig, DeltaColours, Direction, MinWidth, NameAttributes, Shorten, SvgConfig,
};

use serde_json::json;

use crate::graph::Graph;
use crate::test_trees::{Random, tree_of_value};

const NAMES: [&str; 19] = [
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
    "<module>",
    "site-packages/app.py:<lambda>",
    "block (2 levels) in <main>",
    "decltype(auto) detail::invoke<int, char>(int&&)",
    "<fn(A) -> B<C> as Call>::call",
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
    check_tree(test, &tree, SvgConfig { width, ..SvgConfig::default() }, 500);
}

/// Makes the page narrower and as wide as before again, so that all is drawn anew.
#[track_caller]
pub(crate) fn check_tree(test: &str, tree: &CallTree, config: SvgConfig, at_least: usize) {
    let footer = vec!["a line that says what was lost and what is uncertain ".repeat(9)];
    let (width, config) = (config.width, SvgConfig { footer, ..config });
    let Some(mut graph) = Graph::open_sized(test, tree, &config, (width, 900)) else { return };
    let footer = "document.getElementById('footer').innerHTML";
    let picture = |graph: &mut Graph| graph.boxes() + graph.eval(footer).as_str().unwrap();
    let written = picture(&mut graph);
    let count = graph.names().len();
    assert!(count > at_least, "{count} boxes");
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

fn folded(text: &str, columns: Columns, order: SiblingOrder) -> CallTree {
    let mut reader = FoldedReader::new(columns, order);
    reader.read(&mut text.as_bytes()).unwrap();
    assert_eq!(reader.skipped_lines(), 0);
    reader.finish(ValueType::samples())
}

/// Colours, sizes and what else can be chosen, all at once.
#[test]
fn what_was_chosen_is_drawn_again_as_it_was_chosen() {
    let (attributes, complaints) = NameAttributes::parse(
        "f::<fn(A) -> B>::g\thref=https://example.com/?a=1&b=<2>\ttitle=a \"link\"\tclass=own\n\
         ::::\tg_extra=data-x=\"1\"\ta_extra=rel=\"nofollow\"\thref=#x\ttarget=_blank\n",
    );
    assert_eq!(complaints, [""; 0]);
    let config = SvgConfig {
        direction: Direction::Down,
        row_height: 24,
        font_size: 14,
        font_width: Some(601),
        shorten: Shorten::Right,
        min_width: MinWidth::Pixels(1.5),
        stroke_colour: Some("#123456".parse().unwrap()),
        count_name: Some("<b>ticks</b>".to_owned()),
        colours: ColourConfig { palette: "blue".parse().unwrap(), ..ColourConfig::default() },
        attributes,
        ..SvgConfig::default()
    };
    check_tree("redraw_chosen", &tree_of_value(&stacks(3), ValueType::samples()), config, 300);
}

#[test]
fn a_picture_of_two_profiles_is_drawn_again_with_what_changed() {
    let text: String = stacks(5)
        .iter()
        .enumerate()
        .map(|(n, (stack, weight))| {
            let before = if n % 3 == 0 { *weight } else { weight * (n as u64 % 5) };
            format!("{stack} {before} {weight}\n")
        })
        .collect();
    let tree = folded(&text, Columns::Two, SiblingOrder::Name);
    for (name, delta, negate) in
        [("delta", DeltaColours::RedBlue, false), ("delta_safe", DeltaColours::Safe, true)]
    {
        let colours = ColourConfig { delta, negate, ..ColourConfig::default() };
        check_tree(name, &tree, SvgConfig { colours, ..SvgConfig::default() }, 300);
    }
}

#[test]
fn fractions_and_the_order_of_time_are_drawn_again() {
    let text: String =
        stacks(6).iter().map(|(stack, weight)| format!("{stack} {weight}.25\n")).collect();
    let tree = folded(&text, Columns::One, SiblingOrder::Time);
    let colours = ColourConfig { by_width: true, ..ColourConfig::default() };
    check_tree("redraw_time_order", &tree, SvgConfig { colours, ..SvgConfig::default() }, 300);
    let text =
        "t;a 1\nt;a;b 3.5\nt;a 2\nt;a;b 4\nt;a;c 0.01\nt;a 0.5\nt;a;c 0.01\nt;a 9\nt 1\nt;a 2\n";
    let tree = folded(text, Columns::One, SiblingOrder::Time);
    assert!(tree.gaps().is_some());
    check_tree("redraw_gaps", &tree, SvgConfig::default(), 4);
}

/// Beyond 2^53 floating-point numbers have gaps, which must not show in hundredths either.
#[test]
fn fractions_of_any_size_are_drawn_again() {
    for (name, text) in [
        ("redraw_large", "t;a 9007199254740.995\nt;b 17000000000000000.005\nt;b;c 3.115\n"),
        ("redraw_below", "t;a 8007199254740.995\nt;b 900000000000.005\nt;b;c 900000003.115\n"),
    ] {
        let tree = folded(text, Columns::One, SiblingOrder::Name);
        check_tree(name, &tree, SvgConfig::default(), 3);
    }
}

/// A flame chart becomes a flame graph, and a chart again.
#[test]
fn a_chart_in_the_order_of_time_can_be_put_together_by_name() {
    let text = "t;a;x 3\nt;b 2\nt;a;x 4\nt;a;y 1\n";
    let tree = folded(text, Columns::One, SiblingOrder::Time);
    let Some(mut graph) = Graph::open("chart", &tree) else { return };
    let chart = graph.names();
    assert_eq!(chart, ["all", "t", "a", "x", "b", "a", "x", "y"]);
    graph.browser.press("o").unwrap();
    assert_eq!(graph.address(), "#o=name");
    assert_eq!(graph.names(), ["all", "t", "a", "x", "y", "b"]);
    graph.hover("x");
    let expect = "Function: x — total 70.00% (87.50% of parent), self 70.00%, 7 samples";
    assert_eq!(graph.text("details"), expect);
    for (hash, names) in
        [("#o=weight", &["all", "t", "a", "x", "y", "b"][..]), ("", &chart_names())]
    {
        graph.browser.press("o").unwrap();
        assert_eq!(
            (graph.address(), graph.names()),
            (hash.into(), names.iter().map(|n| (*n).to_owned()).collect())
        );
    }
    graph.check_quiet();
}

fn chart_names() -> [&'static str; 8] {
    ["all", "t", "a", "x", "b", "a", "x", "y"]
}

#[test]
fn a_link_is_followed_and_zooms_with_the_control_key() {
    let (attributes, _) = NameAttributes::parse("parse\thref=#linked\ttarget=_self\n");
    let config = SvgConfig { attributes, ..SvgConfig::default() };
    let tree = crate::test_trees::tree_of(&crate::graph::server());
    let Some(mut graph) = Graph::open_sized("link", &tree, &config, (1200, 900)) else { return };
    let count = graph.names().len();
    graph.click("parse");
    graph.wait_until("location.hash === '#linked'");
    assert_eq!(graph.names().len(), count);
    let (x, y) = graph.middle("parse");
    graph.browser.click_control(x, y).unwrap();
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    graph.search("parse");
    assert_eq!(graph.hits(), serde_json::json!(["parse"]));
    graph.check_quiet();
}

/// A window that the file was not written for, as most are.
#[test]
fn a_picture_opens_as_wide_as_the_window_with_the_boxes_of_that_width() {
    let tree = tree_of_value(&stacks(8), ValueType::samples());
    for width in [700, 1_440] {
        let fitting = SvgConfig { width, ..SvgConfig::default() };
        let size = (width, 900);
        let Some(mut graph) = Graph::open_sized("fitting", &tree, &fitting, size) else { return };
        let expect = graph.boxes();
        let config = SvgConfig::default();
        let Some(mut graph) = Graph::open_sized("other_width", &tree, &config, size) else {
            return;
        };
        graph.wait_until("!document.querySelector('[data-drawing]')");
        assert_eq!(
            graph.eval("document.querySelector('#frames').getAttribute('display')"),
            json!(null)
        );
        let found = graph.boxes();
        for (found, expect) in found.split("</g>").zip(expect.split("</g>")) {
            assert_eq!(found, expect, "{width}");
        }
        assert_eq!(found.len(), expect.len());
        graph.check_quiet();
    }
}

/// Runs that are too narrow for a hatch have its mean colour, in the file and drawn again.
#[test]
fn thin_runs_are_hatched_where_a_hatch_can_be_seen() {
    let mut stacks = vec![("t;wide".to_owned(), 100_000)];
    stacks.extend((0..20).map(|n| (format!("t;narrow;n{n}"), 10)));
    stacks.extend((0..200).map(|n| (format!("t;broad;b{n}"), 10)));
    let tree = tree_of_value(&stacks, ValueType::samples());
    let Some(mut graph) = Graph::open("hatch", &tree) else { return };
    let fills = "Array.from(document.querySelectorAll('#frames rect')).filter(box => \
                 box.previousSibling.textContent.startsWith('…')).map(box => \
                 [+box.getAttribute('width'), box.getAttribute('fill')])";
    // 200 and 2,000 of 102,200 samples on 1,180 pixels; half a pixel is given up to the gap.
    let expect = json!([[22.59, "url(#thin)"], [1.81, "#d4d8de"]]);
    assert_eq!(graph.eval(fills), expect);
    graph.search("b7");
    assert_eq!(graph.eval(fills), json!([[22.59, "url(#thin-hit)"], [1.81, "#d4d8de"]]));
    graph.search("n7");
    assert_eq!(graph.eval(fills), json!([[22.59, "url(#thin)"], [1.81, "#f05fd8"]]));
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
