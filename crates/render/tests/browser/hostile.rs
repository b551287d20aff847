//! Names, titles and footers that try to be more than text.

use flame_render::{NameAttributes, SvgConfig};
use serde_json::Value;

use crate::graph::{Graph, browser, svg, write};
use crate::test_trees::tree_of;

const CORPUS: [&str; 24] = [
    "<script>window.pwned=1</script>",
    "</title><script>window.pwned=1</script>",
    "</text></g></g></svg><script>window.pwned=1</script>",
    "</metadata><script>window.pwned=1</script>",
    "]]></script><script>window.pwned=1</script>",
    "]]>",
    "<![CDATA[x",
    "<!--",
    "-->",
    "<?xml-stylesheet href='data:text/css,*{display:none}'?>",
    "<!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>&x;",
    "<img src=x onerror=window.pwned=1>",
    "<image href='http://127.0.0.1:1/x.png'/>",
    "\" onload=\"window.pwned=1",
    "' onmouseover='window.pwned=1",
    "&lt;b&gt;&#x3c;",
    "${window.pwned=1}",
    "'+(window.pwned=1)+'",
    "\\u003cscript\\u003e",
    "\\\";window.pwned=1;//",
    "nul\0 esc\u{1b}[31m bell\u{7} newline\n tab\t",
    "gpj.\u{202e}exe \u{2066}x\u{2069} \u{feff}",
    "\u{fffe}\u{ffff} \u{10ffff} \u{2028}\u{2029}",
    "__proto__",
];

fn hostile_svg() -> String {
    let all = CORPUS.join(" ");
    let mut stacks: Vec<(String, u64)> =
        CORPUS.iter().map(|name| (format!("{0};{0}", name.replace(';', ":")), 10)).collect();
    stacks.push((format!("t;{}", "<&>\"'".repeat(20_000)), 10));
    let attributes: String = CORPUS
        .iter()
        .map(|name| {
            let value = name.replace(['\t', '\n'], " ");
            let function = value.replace(';', ":");
            format!("{function}\ttitle={value}\thref={value}\tclass={value}\tid={value}\ttarget={value}\n")
        })
        .collect();
    let config = SvgConfig {
        title: all.clone(),
        subtitle: Some(all.clone()),
        notes: Some(all.clone()),
        name_type: all.clone(),
        count_name: Some(all.clone()),
        attributes: NameAttributes::parse(&attributes).0,
        footer: CORPUS.iter().map(|name| (*name).to_owned()).collect(),
        ..SvgConfig::default()
    };
    svg(&tree_of(&stacks), &config)
}

/// Hovers over everything, zooms into everything and searches.
#[track_caller]
fn exercise(graph: &mut Graph) {
    let count = graph.names().len();
    assert!(count >= 2 * CORPUS.len(), "{count} frames");
    let handled = graph.eval(
        "(() => { const frames = document.getElementById('frames'); let handled = 0; \
         const send = (at, type) => at.dispatchEvent(new MouseEvent(type, { bubbles: true })); \
         for (let k = 0; k < frames.children.length; k++) { \
           send(frames.children[k].querySelector('rect'), 'mouseover'); \
           send(frames.children[k].querySelector('rect'), 'click'); \
           send(frames.firstChild.querySelector('rect'), 'click'); handled++; } \
         return handled; })()",
    );
    assert_eq!(handled, count);
    graph.search("script");
    assert!(graph.text("matched").starts_with("Matched: "));
    let injected = graph.eval(
        "[document.querySelectorAll('img, image, text script, title *').length, \
          document.querySelectorAll('script').length, typeof window.pwned]",
    );
    assert_eq!(injected, serde_json::json!([0, 1, "undefined"]));
    graph.check_quiet();
}

#[test]
fn no_name_runs_a_script_in_a_file_of_its_own() {
    let Some(mut browser) = browser(1200, 900) else { return };
    browser.open_file(&write("hostile.svg", &hostile_svg())).unwrap();
    assert_eq!(browser.eval("document.querySelectorAll('parsererror').length").unwrap(), 0);
    exercise(&mut Graph { browser });
}

#[test]
fn no_name_runs_a_script_inside_a_page() {
    let Some(mut browser) = browser(1200, 900) else { return };
    let svg = hostile_svg();
    let (_, svg) = svg.split_once("?>\n").unwrap();
    let html = format!("<!DOCTYPE html><meta charset=utf-8><body>{svg}");
    browser.open_file(&write("hostile.html", &html)).unwrap();
    // In a page the keys belong to the page until the pointer is over the graph.
    browser.hover("#title").unwrap();
    exercise(&mut Graph { browser });
}

#[test]
fn names_are_shown_as_the_text_that_they_are() {
    let name = "<b>&\"']]>";
    let Some(mut graph) = Graph::open("as_text", &tree_of(&[(format!("t;{name}"), 1)])) else {
        return;
    };
    graph.hover(name);
    let details = graph.text("details");
    assert_eq!(
        details,
        format!("Function: {name} — total 100% (100% of parent), self 100%, 1 samples")
    );
    let label: Value =
        graph.eval("document.querySelector('#frames g:last-child text').textContent");
    assert_eq!(label, name);
    graph.check_quiet();
}
