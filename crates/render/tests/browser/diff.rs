//! Pictures of two profiles: what is drawn, what is said, and how the panes hang together.

use flame_diff::{DiffConfig, DiffTree, Run, Samples, Scaling};
use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};
use flame_render::{
    ColourBy, ColourConfig, DeltaColours, DiffPicture, DiffView, Direction, SvgConfig,
    write_diff_svg,
};
use serde_json::{Value, json};

use crate::graph::{Graph, browser, write};
use crate::test_trees::Random;

/// `cache` vanished, `validate` is new, `sys_read` shrank.
const BEFORE: &str = "server;main;cache;lookup 1000\nserver;main;parse 6000\n\
                      server;main;read;sys_read_[k] 2900\nserver;main 100\n";
const AFTER: &str = "server;main;parse 6000\nserver;main;parse;validate 2000\n\
                     server;main;read;sys_read_[k] 1900\nserver;main 100\n";

fn run(name: &str, text: &str, value: ValueType) -> Run {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    assert_eq!(reader.skipped_lines(), 0);
    let tree = reader.finish(value);
    Run { name: name.to_owned(), tree, samples: Samples::PerUnit(1.0), duration: None }
}

fn diff(before: &str, after: &str, scaling: Scaling) -> DiffTree {
    let config = DiffConfig { scaling, ..DiffConfig::default() };
    let before = run("v1.folded", before, ValueType::samples());
    let after = run("v2.folded", after, ValueType::samples());
    DiffTree::new(&[before], &[after], &config).unwrap()
}

fn svg(tree: &DiffTree, picture: DiffPicture, config: &SvgConfig) -> String {
    let mut out = Vec::new();
    write_diff_svg(tree, &picture, config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn show(graph: &mut Graph, name: &str, svg: &str) {
    graph.browser.open_file(&write(&format!("{name}.svg"), svg)).unwrap();
    graph.wait_until("document.documentElement.hasAttribute('data-ready')");
    graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
}

fn view(view: DiffView) -> DiffPicture {
    DiffPicture { view, ..DiffPicture::default() }
}

fn open(name: &str, tree: &DiffTree, which: DiffView, width: u32) -> Option<Graph> {
    let config = SvgConfig { width, ..SvgConfig::default() };
    let mut graph = Graph { browser: browser(width, 900)? };
    show(&mut graph, name, &svg(tree, view(which), &config));
    Some(graph)
}

fn server(name: &str, view: DiffView) -> Option<Graph> {
    open(name, &diff(BEFORE, AFTER, Scaling::Total), view, 1200)
}

/// What both lines of details say.
fn said(graph: &mut Graph) -> [String; 2] {
    [graph.text("details"), graph.text("more")]
}

#[test]
fn pointing_tells_both_sides_the_change_and_how_sure_it_is() {
    let Some(mut graph) = server("diff_hover", DiffView::Union) else { return };
    graph.hover("sys_read");
    let real = "differs: by chance p < 0.0001";
    let expect = [
        format!(
            "Function: sys_read — total 2,900 → 1,900 samples, 29.00% → 19.00%: -10.00 points, \
             -34.5%, {real}"
        ),
        format!("self 2,900 → 1,900 samples, 29.00% → 19.00%: -10.00 points, -34.5%, {real}"),
    ];
    assert_eq!(said(&mut graph), expect);
    graph.hover("validate");
    let expect =
        format!("Function: validate — new: total 2,000 samples, 20.00%: +20.00 points, {real}");
    assert_eq!(said(&mut graph)[0], expect);
    graph.hover("parse");
    let expect = "self 6,000 samples, 60.00%: unchanged";
    assert_eq!(said(&mut graph)[1], expect);
    graph.browser.move_to(5.0, 5.0).unwrap();
    assert_eq!(said(&mut graph)[1], "");
    graph.check_quiet();
}

#[test]
fn a_path_that_vanished_is_in_the_picture() {
    let Some(mut graph) = server("diff_vanished", DiffView::Union) else { return };
    // A tenth of before beside all of after: one eleventh of 1180 pixels.
    let cache = graph.frame("cache");
    assert_eq!((&cache[0], &cache[2]), (&json!(10), &json!(106.77)));
    graph.hover("lookup");
    let expect = [
        "Function: lookup — vanished: total was 1,000 samples, 10.00%: -10.00 points, \
         differs: by chance p < 0.0001",
        "self was 1,000 samples, 10.00%: -10.00 points, differs: by chance p < 0.0001",
    ];
    assert_eq!(said(&mut graph), expect);
    let fill = |graph: &mut Graph, name: &str| {
        let fill = graph.eval(&format!(
            "{}.querySelector('rect').getAttribute('fill')",
            crate::graph::find(name)
        ));
        fill.as_str().unwrap().to_owned()
    };
    assert!(fill(&mut graph, "lookup").starts_with("url(#gone"));
    graph.click("cache");
    assert_eq!(graph.names(), ["all", "server", "main", "cache", "lookup"]);
    assert_eq!(graph.frame("lookup")[2], json!(1179.5));
    graph.check_quiet();
}

#[test]
fn without_scripts_it_is_a_whole_picture() {
    let Some(mut browser) = browser(1200, 900) else { return };
    browser.allow_scripts(false).unwrap();
    let tree = diff(BEFORE, AFTER, Scaling::Total);
    let picture = DiffPicture { view: DiffView::Both, colour_by: ColourBy::Total };
    let svg = svg(&tree, picture, &SvgConfig::default());
    browser.open_file(&write("diff_still.svg", &svg)).unwrap();
    let mut graph = Graph { browser };
    assert_eq!(panes(&mut graph).iter().map(Vec::len).collect::<Vec<_>>(), [8, 7, 9]);
    let tooltip = "sys_read (2,900 → 1,900 samples, 29.00% → 19.00%; total -10.00 points, \
                   differs: by chance p < 0.0001)";
    let found = format!("{}.firstChild.textContent", crate::graph::find("sys_read"));
    assert_eq!(graph.eval(&found), tooltip);
    let legend = "Array.from(document.querySelectorAll('#legend text'), text => text.textContent)";
    let expect = [
        "grew, a little",
        "most",
        "shrank, a little",
        "most",
        "could be noise",
        "the same",
        "new: 20.00%",
        "vanished: 10.00%",
    ];
    assert_eq!(graph.eval(legend), json!(expect));
    let footer = "document.querySelector('#footer text').textContent";
    let expect = "before: v1.folded (10,000 samples); after: v2.folded (10,000 samples); \
                  weights as they are";
    assert_eq!(graph.eval(footer), expect);
    graph.check_quiet();
}

/// Pane, name and opacity of each box.
fn panes(graph: &mut Graph) -> Vec<Vec<String>> {
    let left = graph.eval(
        "Array.from(document.querySelectorAll('#heads text'), text => +text.getAttribute('x'))",
    );
    let left: Vec<f64> = left.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let boxes = graph.eval(
        "Array.from(document.querySelectorAll('#frames g'), g => [+g.children[1].getAttribute('x'), \
         g.firstChild.textContent.replace(/ [(][^(]*[)]$/, '') + (g.children[1].getAttribute('opacity') || '')])",
    );
    let mut found = vec![Vec::new(); left.len()];
    for frame in boxes.as_array().unwrap() {
        let at = left.iter().rposition(|x| *x <= frame[0].as_f64().unwrap()).unwrap();
        found[at].push(frame[1].as_str().unwrap().to_owned());
    }
    found
}

/// Names of the boxes that are marked since they are the frame that is pointed at, with their
/// panes' positions.
fn linked(graph: &mut Graph) -> Value {
    graph.eval(
        "Array.from(document.querySelectorAll('#frames g[data-linked]'), g => \
         [g.firstChild.textContent.replace(/ [(][^(]*[)]$/, ''), \
         Math.floor(g.children[1].getBoundingClientRect().x / 400)])",
    )
}

#[test]
fn three_panes_show_the_same_frame_together() {
    let Some(mut graph) = server("diff_panes", DiffView::Both) else { return };
    assert_eq!(
        panes(&mut graph),
        [
            &["all", "server", "main", "cache", "lookup", "parse", "read", "sys_read"][..],
            &["all", "server", "main", "parse", "validate", "read", "sys_read"],
            &["all", "server", "main", "cache", "lookup", "parse", "validate", "read", "sys_read"],
        ]
    );
    // The first box of that name is the one in the first pane.
    graph.hover("sys_read");
    assert_eq!(linked(&mut graph), json!([["sys_read", 1], ["sys_read", 2]]));
    assert!(said(&mut graph)[0].contains("2,900 → 1,900 samples"));
    graph.hover("lookup");
    assert_eq!(linked(&mut graph), json!([["lookup", 2]]));
    graph.hover("validate");
    assert_eq!(linked(&mut graph), json!([["validate", 2]]));
    graph.browser.move_to(5.0, 5.0).unwrap();
    assert_eq!(linked(&mut graph), json!([]));
    graph.check_quiet();
}

#[test]
fn zoom_and_search_act_on_all_panes() {
    let Some(mut graph) = server("diff_panes_zoom", DiffView::Both) else { return };
    let before = graph.boxes();
    graph.search("^(read|lookup)$");
    assert_eq!(graph.hits(), json!(["lookup", "read", "read", "lookup", "read"]));
    assert_eq!(graph.text("matched"), "Matched: 39.00% → 19.00% (2 frames)");
    graph.browser.press("Escape").unwrap();
    graph.click("parse");
    let faded = ["all.5", "server.5", "main.5"];
    let with = |names: &[&str]| -> Vec<String> {
        faded.iter().chain(names).map(|name| (*name).to_owned()).collect()
    };
    let expect = [with(&["parse"]), with(&["parse", "validate"]), with(&["parse", "validate"])];
    assert_eq!(panes(&mut graph), expect);
    graph.browser.press("Escape").unwrap();
    graph.browser.move_to(5.0, 5.0).unwrap();
    assert_eq!(graph.boxes(), before);
    // What is not in a pane leaves only its callers there.
    graph.click("lookup");
    assert_eq!(panes(&mut graph)[1], faded);
    graph.check_quiet();
}

#[test]
fn a_narrow_page_has_the_panes_below_each_other() {
    let tree = diff(BEFORE, AFTER, Scaling::Total);
    let Some(mut graph) = open("diff_narrow", &tree, DiffView::Both, 700) else { return };
    let tops = "Array.from(document.querySelectorAll('#heads text'), text => \
                [+text.getAttribute('x'), +text.getAttribute('y')])";
    // Five rows of 17 pixels and a heading of 20 each.
    assert_eq!(graph.eval(tops), json!([[10, 57], [10, 162], [10, 267]]));
    let written = graph.boxes();
    graph.browser.resize(1200, 900).unwrap();
    graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_eq!(graph.eval(tops), json!([[10, 57], [408.66, 57], [807.32, 57]]));
    graph.browser.resize(700, 900).unwrap();
    graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_eq!(graph.boxes(), written);
    graph.check_quiet();
}

#[test]
fn the_reader_can_turn_to_other_widths_and_colours() {
    let Some(mut graph) = server("diff_turn", DiffView::Union) else { return };
    let tree = diff(BEFORE, AFTER, Scaling::Total);
    let around = "document.getElementById('strips').innerHTML + \
                  document.getElementById('heads').innerHTML";
    let mut turned = Vec::new();
    for key in ["d", "d", "#sides .row:nth-child(5)", "d", "#by", "d"] {
        match key.split_once(' ') {
            // A list of all of them.
            Some((list, row)) => {
                graph.browser.click_on(list).unwrap();
                graph.browser.click_on(&format!("#panel {row}")).unwrap();
                graph.browser.move_to(5.0, 5.0).unwrap();
            }
            None if key.starts_with('#') => graph.browser.click_on(key).unwrap(),
            None => graph.browser.press(key).unwrap(),
        }
        turned.push((graph.address(), graph.boxes(), graph.eval(around)));
    }
    let by = ColourBy::Total;
    let expect = [
        ("#d=after", DiffView::After, ColourBy::SelfWeight),
        ("#d=before", DiffView::Before, ColourBy::SelfWeight),
        ("#d=delta", DiffView::Delta, ColourBy::SelfWeight),
        ("#d=both", DiffView::Both, ColourBy::SelfWeight),
        ("#d=both&t=total", DiffView::Both, by),
        ("#t=total", DiffView::Union, by),
    ];
    for ((address, view, colour_by), turned) in expect.into_iter().zip(turned) {
        let picture = DiffPicture { view, colour_by };
        show(&mut graph, "diff_turned", &svg(&tree, picture, &SvgConfig::default()));
        let written = (address.to_owned(), graph.boxes(), graph.eval(around));
        assert_eq!(turned, written, "{address}");
    }
}

#[test]
fn nothing_overlaps_from_320_to_1600_pixels() {
    let tree = diff(BEFORE, AFTER, Scaling::Total);
    let title = "a headline that is so long that it does not fit beside the controls at all";
    let config = SvgConfig { title: title.to_owned(), ..SvgConfig::default() };
    let Some(browser) = browser(320, 900) else { return };
    let mut graph = Graph { browser };
    show(&mut graph, "diff_overlap", &svg(&tree, view(DiffView::Union), &config));
    for _ in 0..4 {
        graph.browser.press("d").unwrap();
    }
    graph.search("read");
    let parts = "#title, #subtitle, #matched, #standing, #undo, #another, #previous, #next, #unzoom, #search foreignObject, #ignorecase, #sides, \
                 #by, #help, #heads text, #frames g, #details, #more, #legend, #footer";
    let overlaps = format!(
        "(parts => parts.flatMap((one, k) => parts.slice(k + 1).map(other => [one, other])) \
         .filter(([one, other]) => {{ const a = one.getBoundingClientRect(), \
         b = other.getBoundingClientRect(); return a.width && b.width && a.left < b.right \
         && b.left < a.right && a.top < b.bottom && b.top < a.bottom \
         && !(one.localName === 'g' && one.parentNode === other.parentNode && one.parentNode.id === 'frames'); }}) \
         .map(pair => pair.map(part => part.id || part.localName)))\
         (Array.from(document.querySelectorAll('{parts}')))"
    );
    let right = "Math.max(...Array.from(document.querySelectorAll('#heads text, .button, #details'), \
                 part => part.getBoundingClientRect().right))";
    for width in [320, 400, 500].into_iter().chain((600..=1600).step_by(100)) {
        graph.browser.resize(width, 900).unwrap();
        graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        graph.hover("sys_read");
        assert_eq!(graph.eval(&overlaps), json!([]), "{width}");
        let right = graph.eval(right).as_f64().unwrap();
        assert!(right <= f64::from(width), "{width}: {right}");
    }
    graph.check_quiet();
}

/// Two sides that have some stacks in common, with weights of all sizes, and towers.
fn sides(seed: u64) -> (String, String) {
    let mut random = Random::new(seed);
    let mut sides = (String::new(), String::new());
    for n in 0..700 {
        let stack = format!("m;f{};g{};h{}", random.below(5), random.below(30), n % 90);
        let weight = 1 + random.below(4) * random.below(4) * random.below(900);
        for side in [&mut sides.0, &mut sides.1] {
            if random.below(5) > 0 {
                let factor = [1, 1, 1, 2][random.below(4) as usize];
                *side += &format!("{stack} {}\n", weight * factor);
            }
        }
    }
    let deep = |name: &str| (0..150).map(|n| format!(";{name}{n}")).collect::<String>();
    sides.0 += &format!("m{} 3000\nm{} 2500\n", deep("deep"), deep("gone"));
    sides.1 += &format!("m{} 2000\n", deep("deep"));
    sides
}

#[test]
fn what_the_file_holds_is_drawn_again() {
    let (before, after) = sides(11);
    let around = "document.getElementById('strips').innerHTML + \
                  document.getElementById('heads').innerHTML + \
                  document.getElementById('legend').innerHTML";
    let Some(browser) = browser(1200, 900) else { return };
    let mut graph = Graph { browser };
    let cases = [
        (DiffView::Union, Direction::Up, DeltaColours::RedBlue, Scaling::Total),
        (DiffView::Union, Direction::Down, DeltaColours::Safe, Scaling::None),
        (DiffView::Both, Direction::Up, DeltaColours::Safe, Scaling::Total),
    ];
    for (view, direction, delta, scaling) in cases {
        let tree = diff(&before, &after, scaling);
        let colours = ColourConfig { delta, ..ColourConfig::default() };
        let config = SvgConfig { direction, colours, ..SvgConfig::default() };
        for colour_by in [ColourBy::SelfWeight, ColourBy::Total] {
            let picture = DiffPicture { view, colour_by };
            graph.browser.resize(1200, 900).unwrap();
            show(&mut graph, "diff_redraw", &svg(&tree, picture, &config));
            let (written, beside) = (graph.boxes(), graph.eval(around));
            assert!(graph.names().len() > 300, "{view:?}");
            for width in [1100, 1200] {
                graph.browser.resize(width, 900).unwrap();
                graph.eval(
                    "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))",
                );
            }
            let drawn = graph.boxes();
            for (drawn, written) in drawn.split("</g>").zip(written.split("</g>")) {
                assert_eq!(drawn, written, "{view:?} {colour_by:?}");
            }
            assert_eq!(drawn.len(), written.len());
            assert_eq!(graph.eval(around), beside, "{view:?} {colour_by:?}");
        }
    }
    assert_eq!(graph.browser.problems(), [] as [&str; 0]);
}

#[test]
fn what_is_left_when_a_part_is_hidden_keeps_its_colours() {
    let Some(mut graph) = server("diff_hide", DiffView::Union) else { return };
    let fills = |graph: &mut Graph| {
        graph.eval(
            "Object.fromEntries(Array.from(document.querySelectorAll('#frames g'), g => \
             [g.firstChild.textContent.split(' ')[0], g.children[1].getAttribute('fill')]))",
        )
    };
    let before = fills(&mut graph);
    graph.hover("parse");
    graph.browser.press("h").unwrap();
    let hidden = fills(&mut graph);
    assert_eq!(hidden["main"], before["main"]);
    assert_eq!(hidden["sys_read"], before["sys_read"]);
    assert!(hidden["parse"].is_null());
    graph.hover("main");
    let expect = "Function: main — total 4,000 → 2,000 samples, 40.00% → 20.00%: -20.00 points, \
                  -50.0%, not tested without what is hidden";
    assert_eq!(said(&mut graph), [expect, "self 100 samples, 1.00%: unchanged"]);
    graph.browser.press("Escape").unwrap();
    graph.hover("read");
    graph.browser.press("f").unwrap();
    assert_eq!(graph.names(), ["all", "server", "main", "read", "sys_read"]);
    graph.hover("main");
    assert_eq!(said(&mut graph)[1], "self none");
    assert_eq!(fills(&mut graph)["sys_read"], before["sys_read"]);
    graph.check_quiet();
}

#[test]
fn nothing_that_files_or_functions_are_called_becomes_markup() {
    let name = "</title></svg><script>window.pwned=1</script>]]>&\"' onload=\"window.pwned=1";
    let value = || ValueType::new(name, "count");
    let before = run(name, &format!("{name} 10\n{name} 20\n"), value());
    let after = run(name, &format!("m;{name} 50\n"), ValueType::new(name, name));
    let scaling = Scaling::Total;
    let config = DiffConfig { scaling, ..DiffConfig::default() };
    let tree = DiffTree::new(&[before], &[after], &config).unwrap();
    let Some(mut graph) = open("diff_hostile", &tree, DiffView::Both, 1200) else { return };
    for _ in 0..5 {
        graph.hover("all");
        graph.click("all");
        graph.browser.press("d").unwrap();
        graph.browser.press("t").unwrap();
    }
    let injected = graph.eval(
        "[document.querySelectorAll('title *, text *:not(tspan)').length, \
          document.querySelectorAll('script').length, typeof window.pwned]",
    );
    assert_eq!(injected, json!([0, 1, "undefined"]));
    graph.check_quiet();
}

#[test]
fn two_values_of_one_profile_have_a_ratio() {
    let instructions =
        run("instructions", "m;fast 8000\nm;slow 2000\n", ValueType::new("instructions", "count"));
    let cycles = run("cycles", "m;fast 2000\nm;slow 8000\n", ValueType::new("cycles", "count"));
    let tree = DiffTree::new(&[instructions], &[cycles], &DiffConfig::default()).unwrap();
    let Some(mut graph) = open("diff_ratio", &tree, DiffView::Union, 1200) else { return };
    graph.hover("slow");
    let found = said(&mut graph);
    let total = "total 2,000 instructions → 8,000 cycles, 20.00% → 80.00%: +60.00 points, +300.0%";
    assert!(found[0].contains(total), "{found:?}");
    assert!(found[1].ends_with("; 4.000 cycles per instructions"), "{found:?}");
    graph.check_quiet();
}

#[test]
fn headings_stay_in_sight_while_a_tall_graph_scrolls() {
    let deep = (0..80).map(|n| format!("f{n}")).collect::<Vec<_>>().join(";");
    let stacks = |weight: u32| format!("{deep} {weight}\nf0;g 50\n");
    let tree = diff(&stacks(100), &stacks(150), Scaling::Total);
    let heads = "Array.from(document.querySelectorAll('#heads text'), \
                 t => Math.round(t.getBoundingClientRect().top))";
    let twice = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
    // Beside each other, and below each other, where the last one is in sight at the root.
    for (width, expect) in [(1200, vec![47; 3]), (700, vec![-1, -1, 74])] {
        let name = format!("diff_pinned_{width}");
        let Some(mut graph) = open(&name, &tree, DiffView::Both, width) else { return };
        graph.eval(twice);
        let found = graph.eval(heads);
        let found: Vec<i64> =
            found.as_array().unwrap().iter().map(|y| y.as_i64().unwrap()).collect();
        // What is above the window is there no more.
        assert_eq!(found.iter().map(|y| (*y).max(-1)).collect::<Vec<_>>(), expect, "{width}");
        graph.browser.move_to(5.0, 5.0).unwrap();
        graph.wait_until("window.scrollY > 0");
        graph.eval("window.scrollTo(0, 0)");
        graph.eval(twice);
        assert_eq!(graph.eval(heads)[0], expect[expect.len() - 1], "{width}: at home");
        graph.check_quiet();
    }
}

/// What could be noise has no hue, whichever way it went.
#[test]
fn noise_is_grey() {
    let side = |weights: [u32; 4]| {
        let [a, b, c, d] = weights;
        format!("main;up {a}\nmain;down {b}\nmain;grew {c}\nmain;rest {d}\n")
    };
    let tree = diff(&side([500, 520, 100, 8880]), &side([520, 500, 2000, 6980]), Scaling::Total);
    let Some(mut graph) = open("diff_noise", &tree, DiffView::Union, 1200) else { return };
    let fill = |graph: &mut Graph, name: &str| {
        let fill = graph.eval(&format!(
            "{}.querySelector('rect').getAttribute('fill')",
            crate::graph::find(name)
        ));
        fill.as_str().unwrap().to_owned()
    };
    assert_eq!(["up", "down"].map(|name| fill(&mut graph, name)), ["#dee0e4", "#dee0e4"]);
    assert_eq!(fill(&mut graph, "grew"), "#d73027");
    graph.hover("up");
    assert!(said(&mut graph)[1].ends_with("could be noise"), "{:?}", said(&mut graph));
    graph.check_quiet();
}
