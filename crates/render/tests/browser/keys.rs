//! Everything by keys alone, and by fingers.

use flame_render::SvgConfig;
use serde_json::json;

use crate::graph::{Graph, server};
use crate::test_trees::tree_of;

/// The tooltip's name of the box that has the focus.
fn focused(graph: &mut Graph) -> String {
    let name = graph.eval(
        "(at => at && at.localName === 'g' ? at.firstChild.textContent.replace(/ [(][^(]*[)]$/, '') \
         : '')(document.activeElement)",
    );
    name.as_str().unwrap().to_owned()
}

#[test]
fn arrows_walk_from_box_to_box() {
    let Some(mut graph) = Graph::open("arrows", &tree_of(&server())) else { return };
    for (key, expect) in [
        ("ArrowUp", "all"),
        ("ArrowUp", "idle"),
        ("ArrowRight", "server"),
        ("ArrowRight", "server"),
        ("ArrowUp", "main"),
        ("ArrowUp", "parse"),
        ("ArrowRight", "read"),
        ("ArrowRight", "… 1,000 frames, 5.00%"),
        ("ArrowUp", "… 1,000 frames, 5.00%"),
        ("ArrowLeft", "read"),
        ("ArrowDown", "main"),
        ("Home", "all"),
    ] {
        graph.browser.press(key).unwrap();
        assert_eq!(focused(&mut graph), expect, "{key}");
    }
    assert_eq!(graph.text("details"), "Function: all — total 100%, self 0.00%, 100,000 samples");
    graph.check_quiet();
}

#[test]
fn enter_zooms_and_escape_goes_back() {
    let Some(mut graph) = Graph::open("enter", &tree_of(&server())) else { return };
    let whole = graph.names();
    for key in ["ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp", "ArrowUp", "Enter"] {
        graph.browser.press(key).unwrap();
    }
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    assert_eq!(focused(&mut graph), "parse", "the box keeps the focus");
    graph.browser.press("ArrowUp").unwrap();
    assert_eq!(focused(&mut graph), "alloc");
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.names(), whole);
    graph.check_quiet();
}

#[test]
fn the_root_of_an_icicle_is_left_downwards() {
    let Some(mut graph) = Graph::open("icicle_keys", &tree_of(&server())) else { return };
    let (root, top) = (graph.frame("all")[1].clone(), graph.frame("parse")[1].clone());
    graph.browser.press("i").unwrap();
    assert_eq!((&graph.frame("all")[1], graph.address()), (&json!(44), "#v=icicle".into()));
    assert_eq!(graph.frame("parse")[1], json!(44 + 3 * 17));
    for (key, expect) in [("ArrowDown", "all"), ("ArrowDown", "idle"), ("ArrowUp", "all")] {
        graph.browser.press(key).unwrap();
        assert_eq!(focused(&mut graph), expect, "{key}");
    }
    graph.browser.press("i").unwrap();
    assert_eq!((&graph.frame("all")[1], &graph.frame("parse")[1]), (&root, &top));
    graph.check_quiet();
}

#[test]
fn matches_are_walked_one_by_one_and_around() {
    let Some(mut graph) = Graph::open("next", &tree_of(&server())) else { return };
    graph.search("sys|leaf_3|alloc");
    let at = |graph: &mut Graph| {
        let details = graph.text("details");
        details.split(" — ").next().unwrap().replace("Function: ", "")
    };
    for expect in ["sys_wait", "alloc", "sys_read", "1,000 frames too thin to draw", "sys_wait"] {
        graph.browser.press("Enter").unwrap();
        assert_eq!(at(&mut graph), expect);
    }
    assert_eq!(graph.eval("document.activeElement.localName"), "input");
    graph.eval("document.activeElement.blur()");
    for (key, expect) in [("n", "alloc"), ("N", "sys_wait"), ("N", "1,000 frames too thin to draw")]
    {
        graph.browser.press(key).unwrap();
        assert_eq!(at(&mut graph), expect, "{key}");
    }
    graph.check_quiet();
}

#[test]
fn letters_that_are_typed_into_the_search_do_nothing_else() {
    let Some(mut graph) = Graph::open("letters", &tree_of(&server())) else { return };
    let before = graph.names();
    graph.browser.press("/").unwrap();
    for key in ["h", "i", "o", "u", "?", "0", "c"] {
        graph.browser.press(key).unwrap();
    }
    assert_eq!((graph.names(), graph.address()), (before, String::new()));
    assert_eq!(graph.eval("document.querySelector('#panel') === null"), true);
    graph.check_quiet();
}

#[test]
fn the_list_of_keys_says_and_does_what_there_is() {
    let Some(mut graph) = Graph::open("help", &tree_of(&server())) else { return };
    graph.browser.press("?").unwrap();
    let rows = graph.eval("document.querySelectorAll('#panel .row').length");
    assert_eq!(rows, 14);
    let inside = graph.eval(
        "Array.from(document.querySelectorAll('#panel .row')).every(row => { \
         const sheet = document.querySelector('#panel .sheet').getBoundingClientRect(); \
         const [name, key] = Array.from(row.querySelectorAll('text'), t => t.getBoundingClientRect()); \
         return name.right < key.left && name.left > sheet.left && key.right < sheet.right \
         && sheet.bottom <= document.documentElement.getBoundingClientRect().bottom; })",
    );
    assert_eq!(inside, true, "nothing in the list overlaps");
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"] {
        graph.browser.press(key).unwrap();
    }
    assert_eq!(graph.address(), "#v=icicle");
    assert_eq!(graph.eval("document.querySelector('#panel') === null"), true);
    graph.browser.click_on("#help").unwrap();
    assert_eq!(graph.eval("document.querySelectorAll('#panel').length"), 1);
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.eval("document.querySelectorAll('#panel').length"), 0);
    assert_eq!(graph.address(), "#v=icicle", "Escape closed the list and no more");
    graph.check_quiet();
}

#[test]
fn names_and_stacks_are_copied() {
    let Some(mut graph) = Graph::open("copy", &tree_of(&server())) else { return };
    graph.hover("sys_read");
    graph.browser.press("C").unwrap();
    graph.wait_until("document.getElementById('details').textContent.startsWith('Copied')");
    assert_eq!(graph.text("details"), "Copied the stack: server;main;read;sys_read");
    graph.browser.press("/").unwrap();
    graph.browser.paste().unwrap();
    assert_eq!(graph.eval("document.querySelector('input').value"), "server;main;read;sys_read");
    graph.check_quiet();
}

/// As over http: there is no clipboard to write to, and documents that are SVG have no commands.
#[test]
fn a_page_that_may_not_use_the_clipboard_says_so() {
    let Some(mut graph) = Graph::open("no_copy", &tree_of(&server())) else { return };
    graph.eval("delete Object.getPrototypeOf(navigator).clipboard");
    graph.hover("sys_read");
    graph.browser.press("c").unwrap();
    graph.wait_until("document.getElementById('details').textContent.includes('clipboard')");
    assert_eq!(graph.text("details"), "This page may not use the clipboard.");
    assert_eq!(graph.eval("document.querySelectorAll('textarea').length"), 0);
    graph.check_quiet();
}

#[test]
fn a_finger_tells_zooms_and_a_long_press_opens_the_menu() {
    let Some(mut graph) = Graph::open("touch", &tree_of(&server())) else { return };
    let (x, y) = graph.middle("parse");
    graph.browser.touch_start(x, y).unwrap();
    assert!(graph.text("details").starts_with("Function: parse — total 60.00%"));
    graph.wait_until("document.getElementById('panel')");
    graph.browser.touch_end().unwrap();
    let rows = "Array.from(document.querySelectorAll('#panel .row text:nth-child(2)'), t => t.textContent)";
    assert_eq!(graph.eval(rows)[1], "Copy name");
    assert_eq!(graph.names().len(), 10, "the long press is not a click");
    graph.browser.press("Escape").unwrap();
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("document.querySelector('#frames [aria-selected]')");
    assert_eq!(graph.names().len(), 10, "the first tap tells the numbers");
    assert!(graph.text("details").starts_with("Function: parse — total 60.00%"));
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("location.hash.includes('z=')");
    assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
    graph.check_quiet();
}

#[test]
fn the_list_of_keys_fits_into_a_narrow_window() {
    for (width, cut) in [(320, true), (1200, false)] {
        let tree = tree_of(&server());
        let config = SvgConfig::default();
        let name = format!("panel_{width}");
        let Some(mut graph) = Graph::open_sized(&name, &tree, &config, (width, 700)) else {
            return;
        };
        graph.browser.press("?").unwrap();
        let rows = "Array.from(document.querySelectorAll('#panel .row'), row => { \
            const [text, key] = Array.from(row.querySelectorAll('text'), t => t.getBoundingClientRect()); \
            return text.left >= 0 && text.right <= key.left && key.right <= innerWidth; })";
        let rows = graph.eval(rows);
        assert_eq!(rows.as_array().unwrap().len(), 14);
        assert!(rows.as_array().unwrap().iter().all(|fits| *fits == true), "{width}: {rows}");
        assert_eq!(graph.text("panel").contains('…'), cut, "{width}");
        graph.check_quiet();
    }
}
