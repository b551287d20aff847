//! Callers and callees of one function, beside what the stacks say.

use std::collections::BTreeMap;

use flame_message::{format_share, group_thousands};
use flame_profile::Weight;
use flame_render::{MinWidth, SvgConfig};
use serde_json::json;

use crate::graph::{Graph, server};
use crate::test_trees::{Random, tree_of};

/// Stacks of which the paths that lead from a function up to its callers, or on to its callees, have
/// a weight each.
fn sums(stacks: &[(String, u64)], name: &str) -> [BTreeMap<String, u64>; 2] {
    let mut sums = [BTreeMap::new(), BTreeMap::new()];
    for (stack, weight) in stacks {
        // The first name is that of a thread, whatever it ends with.
        let marked = format!("thread {stack}");
        let frames: Vec<&str> = marked.split(';').collect();
        let called = |frame: &str| frame.strip_prefix("thread ").unwrap_or(plain(frame)) == name;
        // The outermost call counts.
        let Some(at) = frames.iter().position(|frame| called(frame)) else { continue };
        let callers: Vec<&str> = frames[..=at].iter().rev().copied().collect();
        for (side, path) in [callers.as_slice(), &frames[at..]].into_iter().enumerate() {
            for length in 1..=path.len() {
                *sums[side].entry(path[..length].join(";")).or_default() += weight;
            }
        }
    }
    sums
}

/// A name without what marks kernel and inlined functions.
fn plain(frame: &str) -> &str {
    frame.strip_suffix("_[k]").or_else(|| frame.strip_suffix("_[i]")).unwrap_or(frame)
}

/// The tooltips of callers and callees, those of the function itself left out, sorted.
fn shown(graph: &mut Graph, name: &str) -> [Vec<String>; 2] {
    let middle = graph.frame(name)[1].as_f64().unwrap();
    let found = graph.eval(&format!(
        "(of => [of(y => y < {middle}), of(y => y > {middle})])(keep => \
         Array.from(document.querySelectorAll('#frames g')) \
         .filter(g => keep(+g.querySelector('rect').getAttribute('y'))) \
         .map(g => g.firstChild.textContent))"
    ));
    [0, 1].map(|side| {
        let list = found[side].as_array().unwrap().iter();
        let mut list: Vec<String> = list.map(|text| text.as_str().unwrap().to_owned()).collect();
        list.sort();
        list
    })
}

#[test]
fn callers_and_callees_are_those_of_the_stacks_with_shares_of_all() {
    // Few names, so that they are on stacks more than once; heavy, so that every frame is drawn.
    let stacks: Vec<(String, u64)> = Random::new(11).stacks(40);
    let tree = tree_of(&stacks);
    let min_width = MinWidth::Pixels(0.01);
    let config = SvgConfig { width: 20_000, fluid: false, min_width, ..SvgConfig::default() };
    let size = (1200, 900);
    let Some(mut graph) = Graph::open_sized("around", &tree, &config, size) else { return };
    let total = tree.total();
    let names: Vec<String> =
        stacks.iter().flat_map(|(stack, _)| stack.split(';')).map(str::to_owned).collect();
    let mut checked = 0;
    for name in ["abc", "a", "std::x<T>::y", "z"] {
        if !names.iter().any(|found| found == name) {
            continue;
        }
        graph.eval(&format!("(location.hash = '#a=' + encodeURIComponent({}), 0)", json!(name)));
        graph.wait_until(&format!(
            "document.getElementById('standing').textContent.startsWith({})",
            json!(format!("{name}: "))
        ));
        let expect = sums(&stacks, name).map(|side| {
            let title = |(path, weight): (&String, &u64)| {
                let (_, last) = path.rsplit_once(';')?;
                let last = last.strip_prefix("thread ").unwrap_or(plain(last));
                let share = format_share(Weight(*weight), total);
                Some(format!("{last} ({} samples, {share})", group_thousands(*weight)))
            };
            let mut titles: Vec<String> = side.iter().filter_map(title).collect();
            titles.sort();
            titles
        });
        assert_eq!(shown(&mut graph, name), expect, "{name}");
        checked += expect[0].len() + expect[1].len();
    }
    assert!(checked > 60, "{checked} boxes");
    graph.check_quiet();
}

#[test]
fn the_menu_leads_there_and_escape_back() {
    let Some(mut graph) = Graph::open("around_menu", &tree_of(&server())) else { return };
    let before = graph.boxes();
    let (x, y) = graph.middle("read");
    graph.browser.right_click(x, y).unwrap();
    graph.browser.click_on("#panel .row:nth-child(7)").unwrap();
    assert_eq!(graph.address(), "#a=read");
    assert_eq!(graph.names(), ["main", "server", "read", "sys_read"]);
    assert_eq!(graph.text("standing"), "read: 30.00%, callers above, callees below");
    let [read, caller, callee] = ["read", "main", "sys_read"].map(|name| graph.frame(name));
    assert_eq!((&read[0], &read[2]), (&json!(10), &json!(1179.5)));
    assert_eq!(caller[1].as_f64().unwrap() + 17.0, read[1].as_f64().unwrap());
    assert_eq!(callee[1].as_f64().unwrap() - 17.0, read[1].as_f64().unwrap());
    graph.hover("main");
    let said = "Function: main — total 30.00% (100% of read), 30,000 samples";
    assert_eq!(graph.text("details"), said);
    graph.browser.press("C").unwrap();
    graph.wait_until("document.getElementById('details').textContent.startsWith('Copied')");
    assert_eq!(graph.text("details"), "Copied the stack: main;read");
    graph.search("server|sys");
    let found = "Matched: 30.00% in callers, 30.00% in callees (2 frames)";
    assert_eq!(graph.text("matched"), found);
    graph.browser.press("Escape").unwrap();
    // A caller fills the width as anything else does, and comes back from the address.
    graph.click("server");
    assert_eq!(graph.names(), ["main", "server", "read", "sys_read"]);
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.boxes(), before);
    graph.check_quiet();
}

#[test]
fn keys_walk_from_callers_through_the_function_to_callees() {
    let Some(mut graph) = Graph::open("around_keys", &tree_of(&server())) else { return };
    graph.hover("read");
    graph.browser.press("a").unwrap();
    let at = "(at => at && at.localName === 'g' ? at.firstChild.textContent.split(' ')[0] : '')\
              (document.activeElement)";
    let mut walked = Vec::new();
    for key in ["Home", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"] {
        graph.browser.press(key).unwrap();
        walked.push(graph.eval(at).as_str().unwrap().to_owned());
    }
    assert_eq!(walked, ["main", "server", "main", "read", "sys_read", "read", "main"]);
    graph.check_quiet();
}

/// Boxes of the whole graph that are not drawn yet are none of this tree.
#[test]
fn a_large_file_opens_around_a_function_at_any_width() {
    let stacks: Vec<(String, u64)> =
        (0..900).map(|n| (format!("t;f{};g{};h{n}", n / 90, n / 3), 1)).collect();
    let config = SvgConfig { around: Some("f3".to_owned()), ..SvgConfig::default() };
    let tree = tree_of(&stacks);
    for width in [1200, 1300] {
        let name = format!("around_large_{width}");
        let Some(mut graph) = Graph::open_sized(&name, &tree, &config, (width, 900)) else {
            return;
        };
        let said = "f3: 10.00%, callers above, callees below";
        assert_eq!(graph.text("standing"), said, "{width}");
        // t, f3, g90 to g119 and h270 to h359.
        assert_eq!(graph.names().len(), 2 + 30 + 90, "{width}");
        graph.check_quiet();
    }
}

#[test]
fn a_file_can_open_around_a_function() {
    let config = SvgConfig { around: Some("sys_read".to_owned()), ..SvgConfig::default() };
    let tree = tree_of(&server());
    let Some(mut graph) = Graph::open_sized("around_file", &tree, &config, (1200, 900)) else {
        return;
    };
    assert_eq!(graph.names(), ["read", "main", "server", "sys_read"]);
    assert_eq!(graph.address(), "");
    graph.browser.click_on("#unzoom").unwrap();
    assert_eq!(graph.names().len(), 10);
    assert_eq!(graph.address(), "#a=");
    graph.check_quiet();
}
