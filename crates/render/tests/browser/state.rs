//! The address: what is shown goes into it and comes back from it.

use flame_render::SvgConfig;
use serde_json::json;

use crate::graph::{Graph, server, svg, write};
use crate::test_trees::tree_of;

/// Loads what the browser shows once more, or another file with the same address behind it.
fn reload(graph: &mut Graph, name: &str, behind: &str) {
    let path = std::fs::canonicalize(write(name, "")).unwrap();
    let svg = svg(&tree_of(&server()), &SvgConfig::default());
    std::fs::write(&path, svg).unwrap();
    graph.browser.navigate("about:blank").unwrap();
    graph.browser.navigate(&format!("file://{}{behind}", path.display())).unwrap();
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
}

#[test]
fn a_zoom_and_a_search_survive_a_reload() {
    let Some(mut graph) = Graph::open("state", &tree_of(&server())) else { return };
    graph.click("parse");
    graph.search("ALLOC");
    graph.browser.press_control("i").unwrap();
    let (names, matched) = (graph.names(), graph.text("matched"));
    assert_eq!(matched, "Matched: 16.67% of view, 10.00% of all (1 frame, 10,000 samples)");
    let behind = graph.address();
    assert!(behind.contains("z=") && behind.contains("s=ALLOC&i=1"), "{behind}");
    reload(&mut graph, "state_again.svg", &behind);
    assert_eq!((graph.names(), graph.text("matched")), (names, matched));
    assert_eq!(graph.eval("document.querySelector('input').value"), "ALLOC");
    assert_eq!(graph.address(), behind);
    graph.check_quiet();
}

#[test]
fn back_and_forward_go_from_view_to_view() {
    let Some(mut graph) = Graph::open("back", &tree_of(&server())) else { return };
    let whole = graph.names();
    // The address follows in the frame after the one that shows a step.
    graph.click("main");
    graph.wait_until("location.hash.includes('z=')");
    let (main, address) = (graph.names(), graph.address());
    graph.click("parse");
    graph.wait_until(&format!("!location.href.endsWith('{address}')"));
    let parse = graph.names();
    for (step, expect) in [(-1, &main), (-1, &whole), (2, &parse), (-2, &whole)] {
        graph.eval(&format!(
            "new Promise(done => {{ addEventListener('popstate', done, {{ once: true }}); \
             history.go({step}); }}).then(() => 0)"
        ));
        assert_eq!(&graph.names(), expect, "{step}");
    }
    graph.check_quiet();
}

#[test]
fn undo_goes_back_one_step() {
    let Some(mut graph) = Graph::open("undo", &tree_of(&server())) else { return };
    let whole = graph.names();
    graph.click("parse");
    graph.browser.press("u").unwrap();
    graph.wait_until("!location.hash.includes('z=')");
    assert_eq!(graph.names(), whole);
    // With nothing left to undo, the page is not left.
    graph.browser.press("u").unwrap();
    assert_eq!(graph.names(), whole);
    graph.check_quiet();
}

#[test]
fn what_is_typed_reaches_the_address_once_it_pauses() {
    let Some(mut graph) = Graph::open("typed", &tree_of(&server())) else { return };
    let before = graph.eval("history.length");
    graph.search("sys_");
    graph.wait_until("location.hash === '#s=sys_'");
    assert_eq!(graph.eval("history.length"), before, "letters are no steps");
    graph.check_quiet();
}

#[test]
fn an_address_that_has_gone_stale_leads_to_what_is_left() {
    let Some(mut graph) = Graph::open("stale", &tree_of(&server())) else { return };
    graph.click("parse");
    let behind = graph.address();
    // The last four characters stand for `parse`.
    let gone = format!("{}AAAA", &behind[..behind.len() - 4]);
    reload(&mut graph, "stale_again.svg", &gone);
    assert_eq!(graph.frame("main")[3], "1", "the deepest frame that is there fills the view");
    assert_eq!(graph.frame("server")[3], ".5");
    let notice = "What the address points at is not here; this is the nearest.";
    assert_eq!(graph.text("details"), notice);
    for nonsense in ["#z=%%%", "#z=x~~1&o=odd&v=&k=(&h=zzzz&f=none", "?x=1&y=2&s=(", "#&&&"] {
        reload(&mut graph, "stale_again.svg", nonsense);
        graph.check_quiet();
    }
}

#[test]
fn addresses_of_flamegraph_pl_are_understood() {
    let Some(mut graph) = Graph::open("classic", &tree_of(&server())) else { return };
    let parse = graph.frame("parse");
    let behind = format!("?x={}&y={}&s=alloc", parse[0], parse[1]);
    reload(&mut graph, "classic_again.svg", &behind);
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    assert_eq!(graph.hits(), json!(["alloc"]));
    graph.check_quiet();
}

#[test]
fn an_address_outlives_the_file_that_it_was_made_for() {
    let Some(mut graph) = Graph::open("outlives", &tree_of(&server())) else { return };
    graph.click("parse");
    let behind = graph.address();
    let mut stacks = server();
    stacks.push(("another;main;parse".to_owned(), 70_000));
    stacks.push(("server;a;b".to_owned(), 70_000));
    let path = write("outlives_again.svg", &svg(&tree_of(&stacks), &SvgConfig::default()));
    let path = std::fs::canonicalize(path).unwrap();
    graph.browser.navigate(&format!("file://{}{behind}", path.display())).unwrap();
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    graph.check_quiet();
}

#[test]
fn the_names_that_pages_of_flamegraph_pl_have_are_there() {
    let Some(mut graph) = Graph::open("globals", &tree_of(&server())) else { return };
    let whole = graph.names();
    graph.eval("search('alloc')");
    assert_eq!(graph.hits(), json!(["alloc"]));
    graph.eval("zoom(document.querySelectorAll('#frames g')[5])");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    graph.eval("unzoom()");
    assert_eq!(graph.names(), whole);
    let own =
        graph.eval("['root', 'data', 'state', 'names', 'apply'].filter(name => name in window)");
    assert_eq!(own, json!([]), "nothing else is left in the page");
    graph.check_quiet();
}
