//! The places where a graph is looked at.

use flame_browser::Browser;
use serde_json::{Value, json};

use crate::graph::{Graph, browser, server, svg, write};
use crate::serve::serve;
use crate::test_trees::tree_of;
use flame_render::SvgConfig;

/// The graph without its XML declaration, as it stands in a page.
fn inline_svg() -> String {
    let svg = svg(&tree_of(&server()), &SvgConfig::default());
    svg.split_once("?>\n").unwrap().1.to_owned()
}

#[test]
fn it_works_in_a_srcdoc_frame() {
    let Some(mut browser) = browser(1000, 700) else { return };
    let escaped = inline_svg().replace('&', "&amp;").replace('"', "&quot;");
    let html = format!(
        "<!DOCTYPE html><meta charset=utf-8><body><iframe width=900 height=400 \
         srcdoc=\"{escaped}\"></iframe>"
    );
    browser.open_file(&write("srcdoc.html", &html)).unwrap();
    let use_it = format!("{USE} used(document.querySelector('iframe').contentDocument)");
    let found = browser.eval(&use_it).unwrap();
    check_used(&mut browser, &found);
}

/// Zooms into `parse` and searches in a document; the boxes and the share then.
const USE: &str = "const used = inside => { \
    const boxes = () => inside.getElementById('frames').children; \
    const parse = Array.from(boxes()).find(g => /^parse/.test(g.textContent)); \
    parse.querySelector('rect').dispatchEvent(new MouseEvent('click', { bubbles: true })); \
    const input = inside.querySelector('input'); \
    input.value = 'alloc'; \
    input.dispatchEvent(new Event('input')); \
    return [boxes().length, inside.getElementById('matched').textContent]; };";

/// What [`USE`] finds in the graph, wherever that is.
#[track_caller]
fn check_used(browser: &mut Browser, found: &Value) {
    let matched = "Matched: 16.67% of view, 10.00% of all (1 frame, 10,000 samples)";
    assert_eq!(*found, json!([5, matched]));
    assert_eq!(browser.problems(), [] as [&str; 0]);
}

#[test]
fn it_works_in_a_frame_made_of_a_blob() {
    let Some(mut browser) = browser(1000, 700) else { return };
    // Files have no origin that a blob could share.
    let address = serve("text/html", "", "<!DOCTYPE html><meta charset=utf-8><body>");
    browser.navigate(&format!("http://{address}/")).unwrap();
    let svg = json!(svg(&tree_of(&server()), &SvgConfig::default()));
    let found = browser
        .eval(&format!(
            "{USE} new Promise(done => {{ const frame = document.createElement('iframe'); \
             frame.width = 900; frame.onload = () => done(used(frame.contentDocument)); \
             frame.src = URL.createObjectURL(new Blob([{svg}], {{ type: 'image/svg+xml' }})); \
             document.body.append(frame); }})"
        ))
        .unwrap();
    check_used(&mut browser, &found);
}

#[test]
fn it_works_in_a_sandbox_that_allows_scripts_alone() {
    let Some(mut browser) = browser(1000, 700) else { return };
    // The frame has an origin of its own: it has to send what it found.
    let inside = format!(
        "<!DOCTYPE html><meta charset=utf-8><body>{}<script>{USE} \
         parent.postMessage(used(document), '*');</script>",
        inline_svg()
    );
    browser.open_file(&write("sandbox.html", "<!DOCTYPE html><meta charset=utf-8><body>")).unwrap();
    let found = browser
        .eval(&format!(
            "new Promise(done => {{ addEventListener('message', event => done(event.data)); \
             const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts'; \
             frame.width = 900; frame.srcdoc = {}; document.body.append(frame); }})",
            json!(inside)
        ))
        .unwrap();
    check_used(&mut browser, &found);
}

#[test]
fn one_sample_is_a_graph() {
    let Some(mut graph) = Graph::open("one", &tree_of(&[("t;f", 1)])) else { return };
    assert_eq!(graph.names(), ["all", "t", "f"]);
    graph.click("f");
    graph.search("f");
    assert_eq!(graph.text("matched"), "Matched: 100% of view, 100% of all (1 frame, 1 samples)");
    graph.check_quiet();
}

#[test]
fn screens_of_any_density_and_readers_of_any_taste_are_served() {
    let Some(mut graph) = Graph::open("density", &tree_of(&server())) else { return };
    let features = [("forced-colors", "active"), ("prefers-reduced-motion", "reduce")];
    for density in [1, 2, 3] {
        let metrics =
            json!({ "width": 1200, "height": 900, "deviceScaleFactor": density, "mobile": false });
        graph.browser.call("Emulation.setDeviceMetricsOverride", metrics).unwrap();
        for (feature, value) in features {
            graph.browser.emulate_media(feature, value).unwrap();
            graph.click("parse");
            assert_eq!(graph.names(), ["all", "server", "main", "parse", "alloc"]);
            graph.browser.press("Escape").unwrap();
            assert_eq!(graph.names().len(), 10);
        }
    }
    graph.check_quiet();
}

#[test]
fn several_in_one_page_do_not_touch_each_other() {
    let Some(mut browser) = browser(1000, 1200) else { return };
    let html = format!("<!DOCTYPE html><meta charset=utf-8><body>{0}{0}", inline_svg());
    browser.open_file(&write("several.html", &html)).unwrap();
    let counts = "Array.from(document.querySelectorAll('svg.flame-graph'), \
                  svg => svg.querySelector('#frames').children.length)";
    assert_eq!(browser.eval(counts).unwrap(), json!([10, 10]));
    browser.click_on("svg:nth-of-type(2) #frames g:nth-child(6) rect").unwrap();
    let after = browser.eval(counts).unwrap();
    assert_eq!(after[0], 10);
    assert_ne!(after[1], 10);
    browser.press_control("f").unwrap();
    let focused = "Array.from(document.querySelectorAll('input')).indexOf(document.activeElement)";
    assert_eq!(browser.eval(focused).unwrap(), 1, "the pointer is over the second");
    assert_eq!(browser.problems(), [] as [&str; 0]);
}

#[test]
fn colours_of_one_in_a_page_are_not_those_of_the_others() {
    let Some(mut browser) = browser(1000, 1200) else { return };
    let one = |ground: &str, ui: &str| {
        let mut config = SvgConfig { ui_colour: ui.parse().ok(), ..SvgConfig::default() };
        config.colours.background = ground.parse().ok();
        svg(&tree_of(&server()), &config).split_once("?>\n").unwrap().1.to_owned()
    };
    let html = format!(
        "<!DOCTYPE html><meta charset=utf-8><body><p id=title class=chip>page</p>{}{}{}",
        one("yellow", "#ff0000"),
        one("#202020", ""),
        inline_svg(),
    );
    browser.open_file(&write("colours.html", &html)).unwrap();
    let titles =
        "Array.from(document.querySelectorAll('svg #title'), e => getComputedStyle(e).fill)";
    let expect = json!(["rgb(255, 0, 0)", "rgb(230, 237, 243)", "rgb(31, 35, 40)"]);
    assert_eq!(browser.eval(titles).unwrap(), expect);
    let grounds = "Array.from(document.querySelectorAll('svg #background'), e => { \
        const fill = getComputedStyle(e).fill, id = fill.match(/#([^\")]*)/); \
        return id ? getComputedStyle(document.getElementById(id[1]).lastChild).stopColor : fill; })";
    let expect = json!(["rgb(238, 238, 176)", "rgb(32, 32, 32)", "rgb(255, 255, 255)"]);
    assert_eq!(browser.eval(grounds).unwrap(), expect);
    let of_page = "getComputedStyle(document.querySelector('p.chip')).cursor";
    assert_eq!(browser.eval(of_page).unwrap(), "auto");
    assert_eq!(browser.problems(), [] as [&str; 0]);
}

#[test]
fn a_width_that_was_chosen_stays() {
    let config = SvgConfig { width: 500, fluid: false, ..SvgConfig::default() };
    let name = "fixed";
    let Some(mut graph) = Graph::open_sized(name, &tree_of(&server()), &config, (900, 700)) else {
        return;
    };
    for width in [900, 400, 900] {
        graph.browser.resize(width, 700).unwrap();
        assert_eq!(graph.eval("document.documentElement.getBoundingClientRect().width"), 500);
        // Half a pixel is given up to the gap.
        assert_eq!(graph.frame("all")[2], json!(479.5));
    }
    graph.click("parse");
    assert_eq!(graph.frame("parse")[2], json!(479.5));
    graph.check_quiet();
}

#[test]
fn without_scripts_it_is_a_still_picture_without_dead_buttons() {
    let Some(mut browser) = browser(1200, 900) else { return };
    browser.allow_scripts(false).unwrap();
    let svg = svg(&tree_of(&server()), &SvgConfig::default());
    browser.open_file(&write("still.svg", &svg)).unwrap();
    let mut graph = Graph { browser };
    assert_eq!(graph.names().len(), 10);
    for control in ["unzoom", "search", "ignorecase", "matched"] {
        let size = graph
            .eval(&format!("document.getElementById('{control}').getBoundingClientRect().width"));
        assert_eq!(size, 0, "{control}");
    }
    assert!(graph.text("details").starts_with("A still picture here"));
    graph.check_quiet();
}

#[test]
fn an_empty_graph_has_nothing_to_complain_about() {
    let Some(mut graph) = Graph::open("empty", &tree_of::<&str>(&[])) else { return };
    graph.search("x");
    assert_eq!(graph.text("matched"), "Matched: 0.00% (0 frames, 0 samples)");
    graph.check_quiet();
}

#[test]
fn a_dark_page_has_light_text() {
    let Some(mut graph) = Graph::open("dark", &tree_of(&server())) else { return };
    let colours = "['background', 'title', 'subtitle'].map(id => \
                   getComputedStyle(document.getElementById(id)).fill)";
    let light = json!(["rgb(255, 255, 255)", "rgb(31, 35, 40)", "rgb(89, 99, 110)"]);
    assert_eq!(graph.eval(colours), light);
    graph.browser.emulate_media("prefers-color-scheme", "dark").unwrap();
    let dark = json!(["rgb(27, 31, 36)", "rgb(230, 237, 243)", "rgb(157, 167, 179)"]);
    assert_eq!(graph.eval(colours), dark);
    let below = "getComputedStyle(document.documentElement).backgroundColor";
    assert_eq!(graph.eval(below), "rgb(27, 31, 36)", "where the window is higher than the graph");
    graph.check_quiet();
}
