//! Where the graph comes over the network, and where policies forbid this or that.

use flame_render::SvgConfig;
use serde_json::json;

use crate::graph::{Graph, browser, server, svg};
use crate::serve::serve;
use crate::test_trees::tree_of;

/// What Jenkins and many other servers of artefacts send.
const JENKINS: &str =
    "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';";
const GITHUB_RAW: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
/// Scripts may run, but no style sheet, no string may become code or markup.
const STRICT: &str = "default-src 'none'; script-src 'unsafe-inline'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

fn open(policy: &str) -> Option<Graph> {
    let mut browser = browser(1200, 900)?;
    let svg = svg(&tree_of(&server()), &SvgConfig::default());
    let address = serve("image/svg+xml", policy, &svg);
    browser.navigate(&format!("http://{address}/graph.svg")).unwrap();
    Some(Graph { browser })
}

#[test]
fn over_http_it_works_and_asks_for_nothing_more() {
    let Some(mut graph) = open("") else { return };
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    graph.click("parse");
    graph.search("alloc");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    assert_eq!(graph.hits(), json!(["alloc"]));
    assert!(graph.address().starts_with("#z="));
    graph.check_quiet();
}

#[test]
fn where_strings_may_not_become_code_and_styles_are_banned_it_works_too() {
    let Some(mut graph) = open(STRICT) else { return };
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    graph.click("parse");
    graph.search("alloc");
    graph.browser.press("Escape").unwrap();
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.names().len(), 10);
    graph.hover("sys_read");
    graph.browser.press("?").unwrap();
    assert_eq!(graph.eval("document.querySelectorAll('#panel .row').length"), 14);
    // The banned style sheet is all that is complained about.
    let problems = graph.browser.problems().to_vec();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains("inline style"), "{problems:?}");
}

/// No worker may be made of a text there.
#[test]
fn where_nothing_may_run_beside_the_page_a_search_takes_its_time_or_is_refused() {
    let Some(mut graph) = open(STRICT) else { return };
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    for (pattern, said) in [
        ("^([a-z]+_)+[A-Z]", "Not searched: this pattern may take too long."),
        ("t.*h.*i.*n.*_.*0.*0", "Matched: 0.23% (23 frames, 230 samples)"),
    ] {
        graph.search(pattern);
        graph.wait_until("!/^Sea/.test(document.getElementById('matched').textContent)");
        assert_eq!(graph.text("matched"), said, "{pattern}");
    }
}

#[track_caller]
fn check_still(policy: &str) {
    let Some(mut graph) = open(policy) else { return };
    assert_eq!(graph.eval("document.documentElement.hasAttribute('data-ready')"), false);
    let shown = graph.eval(
        "Array.from(document.querySelectorAll('#frames g'), g => { \
         const rect = g.querySelector('rect'), box = rect.getBoundingClientRect(); \
         return getComputedStyle(rect).fill !== 'rgb(0, 0, 0)' && box.width > 0 && box.height === 16 \
         && g.firstChild.localName === 'title'; })",
    );
    assert_eq!(shown, json!(vec![true; 10]));
    for (id, size) in [("title", "17px"), ("details", "12px"), ("legend", "11px")] {
        let found = graph.eval(&format!(
            "(style => [style.fontSize, style.fontFamily.startsWith('Verdana')])\
             (getComputedStyle(document.getElementById('{id}')))"
        ));
        assert_eq!(found, json!([size, true]), "{id}");
    }
    for control in ["unzoom", "search", "ignorecase", "matched"] {
        let width = format!("document.getElementById('{control}').getBoundingClientRect().width");
        assert_eq!(graph.eval(&width), 0, "{control} is dead, and must not be seen");
    }
    assert!(graph.text("details").starts_with("A still picture here"));
    assert_eq!(graph.requests().len(), 1);
}

#[test]
fn behind_the_policy_of_jenkins_it_is_a_readable_picture() {
    check_still(JENKINS);
}

#[test]
fn behind_the_policy_of_github_it_is_a_readable_picture() {
    check_still(GITHUB_RAW);
}
