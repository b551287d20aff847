//! Nothing in the picture covers anything else.

use base64::Engine;
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
    graph.browser.move_to(5.0, 5.0).unwrap();
    graph.wait_until("window.scrollY > 0");
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

/// A phone of 390 by 800 pixels, three of the screen's for each, with fingers and no mouse.
fn phone(name: &str, config: &SvgConfig) -> Option<Graph> {
    let mut browser = crate::graph::browser(390, 800)?;
    browser.emulate_phone(390, 800, 3).unwrap();
    let svg = crate::graph::svg(&tree_of(&server()), config);
    browser.open_file(&crate::graph::write(&format!("{name}.svg"), &svg)).unwrap();
    let mut graph = Graph { browser };
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    Some(graph)
}

#[test]
fn on_a_phone_everything_has_its_full_size_and_speaks_of_fingers() {
    let Some(mut graph) = phone("phone", &config()) else { return };
    let size = graph.eval(
        "[innerWidth, devicePixelRatio, visualViewport.scale, \
         Math.round(document.querySelector('#frames rect').getBoundingClientRect().width), \
         document.documentElement.scrollWidth]",
    );
    assert_eq!(size, serde_json::json!([390, 3, 1, 370, 390]));
    assert_eq!(graph.text("details"), "Tap a box for its numbers, again to zoom,");
    assert_eq!(graph.text("more"), "hold it for more.");
    let (x, y) = graph.middle("parse");
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("document.getElementById('details').textContent === 'parse'");
    assert_eq!(graph.text("more"), "total 60.00%, self 50.00%, 60,000 samples");
    assert_eq!(graph.names().len(), 10);
    graph.browser.touch_start(x, y).unwrap();
    graph.wait_until("document.getElementById('panel')");
    graph.browser.touch_end().unwrap();
    assert_eq!(graph.eval("document.querySelector('.row').textContent"), "Zoom", "without its key");
    let (row_x, row_y) = graph.middle_of(".row");
    graph.browser.tap(row_x, row_y).unwrap();
    graph.wait_until("document.querySelectorAll('#frames g').length === 5");
    let (undo_x, undo_y) = graph.middle_of("#undo");
    graph.browser.tap(undo_x, undo_y).unwrap();
    graph.wait_until("document.querySelectorAll('#frames g').length === 10");
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("document.getElementById('details').textContent === 'parse'");
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("document.querySelectorAll('#frames g').length === 5");
    // Fingers are as wide as 36 pixels.
    let small = graph.eval(
        "Array.from(document.querySelectorAll('.button:not([display]) rect, input'), \
         e => e.getBoundingClientRect()).filter(r => r.height < 36 || r.width < 28).length",
    );
    assert_eq!(small, 0);
    let (x, y) = graph.middle_of("#unzoom");
    graph.browser.tap(x, y).unwrap();
    graph.wait_until("document.querySelectorAll('#frames g').length === 10");
    graph.check_quiet();
}

#[test]
fn a_picture_as_wide_as_was_asked_for_is_shown_whole_on_a_phone() {
    let config = SvgConfig { fluid: false, ..SvgConfig::default() };
    let Some(mut graph) = phone("phone_fixed", &config) else { return };
    let scale = graph.eval("Math.round(visualViewport.width)");
    assert_eq!(scale, 1200, "the whole width is in sight");
    graph.check_quiet();
}

/// Whether each of some parts is shown, and what stands on it.
fn labels(graph: &mut Graph) -> Value {
    graph.eval(
        "Array.from(document.querySelectorAll('#head .button:not([display]) text'), \
         t => t.textContent)",
    )
}

#[test]
fn buttons_say_in_words_what_they_do_and_do_it() {
    let Some(mut graph) = Graph::open("buttons", &tree_of(&server())) else { return };
    let always = ["Icicle graph", "Order …", "‹", "›", "Ignore case", "?"];
    assert_eq!(labels(&mut graph), serde_json::json!(always));
    graph.browser.click_on("#flip").unwrap();
    assert_eq!(graph.address(), "#v=icicle");
    assert_eq!(labels(&mut graph)[0], "Undo");
    assert_eq!(labels(&mut graph)[1], "Flame graph");
    graph.browser.click_on("#order").unwrap();
    let rows = "Array.from(document.querySelectorAll('#panel .row'), row => row.textContent)";
    assert_eq!(
        graph.eval(rows),
        serde_json::json!(["Order as it was recorded✓", "Order by weight"])
    );
    graph.browser.click_on("#panel .row:nth-child(3)").unwrap();
    assert_eq!(graph.address(), "#o=weight&v=icicle");
    graph.browser.click_on("#undo").unwrap();
    graph.wait_until("location.hash === '#v=icicle'");
    graph.browser.click_on("#undo").unwrap();
    graph.wait_until("location.hash === ''");
    assert_eq!(labels(&mut graph), serde_json::json!(always), "nothing is left to undo");
    graph.check_quiet();
}

#[test]
fn what_is_left_out_and_which_match_it_is_stays_while_a_box_is_pointed_at() {
    let Some(mut graph) = Graph::open("standing", &tree_of(&server())) else { return };
    graph.hover("parse");
    graph.browser.press("h").unwrap();
    graph.search("sys_");
    assert_eq!(graph.text("standing"), "40.00% of all is shown · 2 marked");
    graph.browser.click_on("#next").unwrap();
    graph.hover("read");
    assert_eq!(graph.text("standing"), "40.00% of all is shown · 1 of 2");
    assert!(graph.text("details").starts_with("Function: read — "));
    graph.browser.click_on("#next").unwrap();
    assert_eq!(graph.text("standing"), "40.00% of all is shown · 2 of 2");
    graph.browser.click_on("#previous").unwrap();
    assert_eq!(graph.text("standing"), "40.00% of all is shown · 1 of 2");
    graph.browser.press("Escape").unwrap();
    graph.browser.press("Escape").unwrap();
    assert_eq!(graph.text("standing"), "");
    graph.check_quiet();
}

#[test]
fn turning_a_tall_graph_over_keeps_its_root_in_sight() {
    let stack: String = (0..200).map(|n| format!(";f{n}")).collect();
    let tree = tree_of(&[(format!("t{stack}"), 1)]);
    let Some(mut graph) = Graph::open("tall_flip", &tree) else { return };
    let root = "document.querySelector('#frames g rect').getBoundingClientRect().top";
    let twice = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
    for (side, least, most) in
        [("flame", 700.0, 860.0), ("icicle", 44.0, 44.0), ("flame", 700.0, 860.0)]
    {
        graph.eval(twice);
        let at = graph.eval(root).as_f64().unwrap();
        assert!((least..=most).contains(&at), "{side}: {at}");
        graph.browser.press("i").unwrap();
    }
    // The one at the far end is brought into sight.
    graph.search("^f199$");
    graph.browser.press("Enter").unwrap();
    graph.eval(twice);
    let far = graph.eval(
        "(r => [r.top >= 44, r.bottom <= innerHeight - 30])\
         (document.querySelector('#frames [aria-selected] rect').getBoundingClientRect())",
    );
    assert_eq!(far, serde_json::json!([true, true]));
    graph.check_quiet();
}

/// As CI systems take previews: no window, no reader, one picture of the page.
#[test]
fn a_preview_of_a_tall_graph_is_a_picture_of_its_root() {
    let stack: String = (0..200).map(|n| format!(";f{n}")).collect();
    let tree = tree_of(&[(format!("t{stack}"), 1)]);
    let svg = crate::graph::svg(&tree, &SvgConfig::default());
    let path = crate::graph::write("preview.svg", &svg);
    let Some(program) = flame_browser::find_or_skip() else { return };
    let png = path.with_extension("png");
    let profile = path.with_extension("profile");
    let _ = std::fs::remove_file(&png);
    let done = std::process::Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
        ])
        .args(["--disable-background-networking", "--window-size=400,600"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--screenshot={}", png.display()))
        .arg(format!("file://{}", path.display()))
        .stderr(std::process::Stdio::null())
        .status();
    let _ = std::fs::remove_dir_all(&profile);
    assert!(done.unwrap().success());
    // Read in a page: the colours in the middle of the lowest boxes, beside those of the file.
    let Some(mut graph) = Graph::open_sized("preview", &tree, &SvgConfig::default(), (400, 600))
    else {
        return;
    };
    let expect = graph.eval(
        "Array.from(document.querySelectorAll('#frames g')).slice(0, 20).map(g => { \
         const rect = g.querySelector('rect'), box = rect.getBoundingClientRect(); \
         return [Math.round(box.y) + 2, rect.getAttribute('fill')]; })",
    );
    let image = base64::engine::general_purpose::STANDARD.encode(std::fs::read(&png).unwrap());
    let shown = format!("<!DOCTYPE html><img src=\"data:image/png;base64,{image}\">");
    graph.browser.open_file(&crate::graph::write("preview.html", &shown)).unwrap();
    let found = graph.eval(&format!(
        "(image => {{ const canvas = document.createElement('canvas'); \
         canvas.width = image.naturalWidth; canvas.height = image.naturalHeight; \
         const paint = canvas.getContext('2d'); paint.drawImage(image, 0, 0); \
         const hex = y => Array.from(paint.getImageData(300, y, 1, 1).data).slice(0, 3) \
         .map(c => c.toString(16).padStart(2, '0')).join(''); \
         return {expect}.map(([y]) => [y, '#' + hex(y)]); }})(document.querySelector('img'))"
    ));
    assert_eq!(found, expect);
}
