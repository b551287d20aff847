use flame_render::{Background, ColourConfig, Rgb, SvgConfig};
use serde_json::json;

use crate::graph::{Graph, server};
use crate::test_trees::tree_of;

const THIN: &str = "… 1,000 frames, 5.00%";

#[test]
fn hovering_tells_total_and_self_and_leaving_clears_it() {
    let Some(mut graph) = Graph::open("hover", &tree_of(&server())) else { return };
    graph.hover("parse");
    let expect = "Function: parse — total 60.00% (63.16% of parent), self 50.00%, 60,000 samples";
    assert_eq!(graph.text("details"), expect);
    graph.hover(THIN);
    let expect = "1,000 frames too thin to draw — total 5.00% (5.26% of parent), 5,000 samples";
    assert_eq!(graph.text("details"), expect);
    graph.browser.move_to(5.0, 5.0).unwrap();
    assert_eq!(
        graph.text("details"),
        "Hover for details, click to zoom, right-click for more, ? for all keys."
    );
    graph.check_quiet();
}

/// They are only covered, which nobody must notice: no mouse, no keys, no screen reader, no script.
#[test]
fn the_boxes_of_the_whole_graph_wait_out_of_sight() {
    let Some(mut graph) = Graph::open("aside", &tree_of(&server())) else { return };
    graph.wait_until("document.querySelector('#frames[role=tree]')");
    let all = graph.names();
    let state = "(() => { const aside = document.querySelector('.frames[aria-hidden=true]'); \
                 const reached = box => { const at = box.getBoundingClientRect(); \
                 return aside.contains(document.elementFromPoint(at.x + at.width / 2, at.y + 8)); }; \
                 return [document.querySelectorAll('[id=frames]').length, \
                 aside && !Array.from(aside.children).some(reached), \
                 aside && aside.querySelectorAll('[tabindex]').length]; })()";
    assert_eq!(graph.eval(state), json!([1, null, null]));
    graph.click("parse");
    assert_eq!(graph.eval(state), json!([1, true, 0]));
    // Another part of the graph, and a page of another width, at which they are of no use.
    graph.click("alloc");
    assert_eq!(graph.eval(state), json!([1, true, 0]));
    graph.browser.resize(900, 900).unwrap();
    graph.wait_until("document.querySelectorAll('.frames').length === 1");
    graph.browser.click_on("#unzoom").unwrap();
    assert_eq!(graph.eval(state), json!([1, null, null]));
    assert_eq!(graph.names(), all);
    graph.check_quiet();
}

/// What covers them is as large as the page and looks like the background, whatever that is.
#[test]
fn nothing_shines_through_a_zoomed_graph() {
    let background = Some(Background { top: Rgb(0xee, 0xf2, 0xee), bottom: Rgb(0xe0, 0xff, 0xe0) });
    let cases = [
        ("shine", None, ["rgb(255, 255, 255)", "rgb(27, 31, 36)"]),
        ("shine_background", background, ["url(\"#ground-1f2328-eef2ee-e0ffe0\")"; 2]),
    ];
    for (name, background, fills) in cases {
        let colours = ColourConfig { background, ..ColourConfig::default() };
        let config = SvgConfig { colours, ..SvgConfig::default() };
        let tree = tree_of(&server());
        let Some(mut graph) = Graph::open_sized(name, &tree, &config, (1200, 900)) else { return };
        graph.click("sys_read");
        for (scheme, fill) in ["light", "dark"].into_iter().zip(fills) {
            graph.browser.emulate_media("prefers-color-scheme", scheme).unwrap();
            for sheet in ["#background", ".frames[aria-hidden=true] + .ground"] {
                let look = graph.eval(&format!(
                    "(sheet => {{ const look = getComputedStyle(sheet), size = sheet.getBBox(); \
                     return [look.fill, look.fillOpacity, look.opacity, size.width, size.height]; \
                     }})(document.querySelector('{sheet}'))"
                ));
                let height = graph.eval("+document.documentElement.getAttribute('height')");
                assert_eq!(
                    look,
                    json!([fill, "1", "1", 1200, height]),
                    "{name}, {scheme}, {sheet}"
                );
            }
        }
        graph.check_quiet();
    }
}

#[test]
fn a_click_widens_the_frame_and_fades_its_callers() {
    let Some(mut graph) = Graph::open("click", &tree_of(&server())) else { return };
    let before = graph.boxes();
    assert_eq!(graph.text("unzoom"), "");
    graph.click("parse");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    for caller in ["all", "server", "main"] {
        let found = graph.frame(caller);
        assert_eq!((&found[0], &found[2], &found[3]), (&json!(10), &json!(1179.5), &json!(".5")));
    }
    let parse = graph.frame("parse");
    assert_eq!((&parse[0], &parse[2], &parse[3]), (&json!(10), &json!(1179.5), &json!("1")));
    // A sixth of 1180, half a pixel given up to the gap.
    let alloc = graph.frame("alloc");
    assert_eq!((&alloc[0], &alloc[2]), (&json!(10), &json!(196.17)));
    graph.hover("alloc");
    let expect = "Function: alloc — total 10.00% (16.67% of view, 16.67% of parent), self 10.00%, \
                  10,000 samples";
    assert_eq!(graph.text("details"), expect);

    graph.browser.click_on("#unzoom").unwrap();
    assert_eq!(graph.boxes(), before);
    assert_eq!(graph.text("unzoom"), "");
    graph.check_quiet();
}

#[test]
fn callers_can_be_clicked_and_escape_shows_everything() {
    let Some(mut graph) = Graph::open("callers", &tree_of(&server())) else { return };
    let before = graph.names();
    graph.click("sys_read");
    assert_eq!(graph.names(), ["all", "server", "main", "read", "sys_read"]);
    graph.click("main");
    let found = ["all", "server", "main", "parse", "alloc", "read", "sys_read", THIN];
    assert_eq!(graph.names(), found);
    assert_eq!(graph.frame("main")[3], "1");
    graph.click("all");
    assert_eq!(graph.names(), before);
    graph.click("parse");
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.names(), before);
    graph.check_quiet();
}

#[test]
fn a_click_on_what_is_too_thin_shows_it() {
    let Some(mut graph) = Graph::open("thin", &tree_of(&server())) else { return };
    graph.click(THIN);
    let names = graph.names();
    assert_eq!(names.len(), 3 + 1_000);
    assert_eq!(names[..5], ["all", "server", "main", "thin_000", "leaf_0"]);
    assert_eq!(names[1_002], "leaf_9");
    // 1180 pixels for 500 frames; each starts where the sum of those before it ends.
    let third = graph.frame("thin_002");
    assert_eq!((&third[0], &third[2]), (&json!(14.72), &json!(1.86)));
    graph.hover("thin_002");
    let expect =
        "Function: thin_002 — total 0.01% (0.20% of view, 0.01% of parent), self 0.00%, 10 samples";
    assert_eq!(graph.text("details"), expect);
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.names().len(), 10);
    graph.check_quiet();
}

#[test]
fn frames_that_round_to_no_width_at_all_are_still_found() {
    let chain: String = (0..3_000).map(|n| format!(";f{n}")).collect();
    let stacks = [(format!("t{chain}"), 1), ("t;wide".to_owned(), 1_000_000)];
    let Some(mut graph) = Graph::open("deep", &tree_of(&stacks)) else { return };
    assert_eq!(graph.names(), ["all", "t", "wide"]);
    assert_eq!(graph.eval("document.documentElement.getAttribute('height')"), "161");
    // The chain weighs less than a hundredth of a pixel: it can only be found by searching.
    graph.search("^f2999$");
    assert_eq!(graph.text("matched"), "Matched: <0.01% (1 frame, 1 samples)");
    graph.check_quiet();
}

/// However many siblings there are, each can be reached.
#[test]
fn a_run_of_which_nothing_can_be_drawn_alone_is_parted() {
    let stacks: Vec<_> = (0..100_000).map(|n| (format!("m;s{n:05}"), 1)).collect();
    let Some(mut graph) = Graph::open("parted", &tree_of(&stacks)) else { return };
    let all = "… 100,000 frames, 100%";
    assert_eq!(graph.names(), ["all", "m", all]);
    graph.click(all);
    let parts = graph.names().split_off(2);
    assert!((50..=51).contains(&parts.len()), "{parts:?}");
    assert!(parts.iter().all(|part| part.starts_with("… ")), "{parts:?}");
    graph.click(&parts[0]);
    graph.wait_until("!document.querySelector('[data-drawing]')");
    let names = graph.names().split_off(2);
    assert_eq!(names[..2], ["s00000", "s00001"]);
    assert!(names.len() > 1_900, "{}", names.len());
    graph.check_quiet();
}
