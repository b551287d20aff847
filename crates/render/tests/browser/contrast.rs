//! Text can be read: in light and dark pages, on every background, of callers and matches, too.

use flame_profile::{CallTree, Columns, FoldedReader, SiblingOrder, ValueType};
use flame_render::{ColourConfig, DeltaColours, SvgConfig};

use crate::graph::{Graph, server};
use crate::test_trees::tree_of;

/// How many texts there are, and the least contrast (WCAG 2.1) of any with what is behind it, and the text; what is behind
/// a box shows through it as far as it is faded.
const LEAST: &str = "(() => { \
    const channels = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number); \
    const luminance = colour => colour.map(c => c / 255) \
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4) \
        .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0); \
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); \
    const style = e => getComputedStyle(e); \
    const shown = (e, of) => e === document.documentElement ? of \
        : shown(e.parentNode, of * style(e).opacity); \
    const over = (colour, share, ground) => colour.map((c, k) => c * share + ground[k] * (1 - share)); \
    const ground = style(document.getElementById('background')).fill; \
    const grounds = ground.startsWith('url') \
        ? Array.from(document.querySelectorAll('linearGradient stop'), s => channels(style(s).stopColor)) \
        : [channels(ground)]; \
    const found = []; \
    const look = (text, behind) => grounds.forEach(ground => { \
        const fill = behind && style(behind).fill; \
        if (fill && fill.startsWith('url')) return; \
        const under = fill ? over(channels(fill), shown(behind, 1), ground) : ground; \
        const ink = over(channels(style(text).fill), shown(text, 1), under); \
        found.push([ratio(luminance(ink), luminance(under)), text.textContent]); \
    }); \
    for (const text of document.querySelectorAll('#frames text')) look(text, text.parentNode.querySelector('rect')); \
    for (const text of document.querySelectorAll('#title, #subtitle, #details, #matched, #legend text, #footer text')) { \
        if (text.textContent && style(text).display !== 'none') look(text, null); \
    } \
    found.sort((a, b) => a[0] - b[0]); \
    return [found.length].concat(found[0]); })()";

#[track_caller]
fn check_readable(graph: &mut Graph, what: &str) {
    let found = graph.eval(LEAST);
    assert!(found[0].as_u64().unwrap() >= 7, "{what}: {found}");
    assert!(found[1].as_f64().unwrap() >= 4.5, "{what}: {found}");
}

/// At rest, zoomed, and searched, in a light page and in a dark one.
#[track_caller]
fn check(name: &str, tree: &CallTree, config: SvgConfig, frame: &str) {
    let config = SvgConfig {
        subtitle: Some("below".to_owned()),
        footer: vec!["at the foot".to_owned()],
        ..config
    };
    let name = format!("contrast_{name}");
    let Some(mut graph) = Graph::open_sized(&name, tree, &config, (1200, 900)) else { return };
    for scheme in ["light", "dark"] {
        graph.browser.emulate_media("prefers-color-scheme", scheme).unwrap();
        check_readable(&mut graph, &format!("{name}, {scheme}"));
        graph.hover(frame);
        check_readable(&mut graph, &format!("{name}, {scheme}, pointed at"));
        graph.click(frame);
        check_readable(&mut graph, &format!("{name}, {scheme}, zoomed"));
        graph.search(".");
        check_readable(&mut graph, &format!("{name}, {scheme}, zoomed and searched"));
        graph.browser.press("Escape").unwrap();
        graph.browser.press("Escape").unwrap();
        assert_eq!(graph.text("matched"), "");
    }
    graph.check_quiet();
}

fn with_colours(palette: &str) -> SvgConfig {
    let palette = palette.parse().unwrap();
    SvgConfig { colours: ColourConfig { palette, ..Default::default() }, ..Default::default() }
}

#[test]
fn text_is_readable_in_every_palette() {
    for palette in ["kinds", "hot", "java", "blue", "purple", "chain"] {
        check(palette, &tree_of(&server()), with_colours(palette), "parse");
    }
}

#[test]
fn text_is_readable_on_every_background() {
    for background in ["yellow", "blue", "#202020", "#000080", "#ffff00"] {
        let mut config = with_colours("kinds");
        config.colours.background = Some(background.parse().unwrap());
        check(background.trim_start_matches('#'), &tree_of(&server()), config, "parse");
    }
}

#[test]
fn text_is_readable_on_what_changed() {
    let text = b"t;m;less 90 20\nt;m;more 5 90\nt;m;more;above 1 40\n";
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    reader.read(&mut &text[..]).unwrap();
    let tree = reader.finish(ValueType::samples());
    for delta in [DeltaColours::RedBlue, DeltaColours::Safe] {
        let mut config = with_colours("kinds");
        config.colours.delta = delta;
        check(&format!("{delta:?}"), &tree, config, "more");
    }
}

#[test]
fn text_is_readable_on_matches_of_any_colour() {
    for colour in ["#e600e6", "#000080", "#ffff00"] {
        let config = SvgConfig { search_colour: colour.parse().unwrap(), ..with_colours("blue") };
        check(&format!("match_{}", &colour[1..]), &tree_of(&server()), config, "parse");
    }
}
