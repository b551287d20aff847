//! What the options of `flame render` make of a picture: sizes, colours, texts, links, and which way
//! the tree stands.

use std::fs;

use roxmltree::{Document, Node};

use crate::render::{FOLDED, by_id, render, scratch_with, svg_of, titles};

/// The attribute of the rectangle whose tooltip starts so.
#[track_caller]
fn of_box(svg: &str, name: &str, attribute: &str) -> String {
    let document = Document::parse(svg).unwrap();
    let named = |node: &Node| node.text().is_some_and(|text| text.starts_with(name));
    let mut titles = document.descendants().filter(|node| node.has_tag_name("title"));
    let rect = titles.find(named).and_then(|title| title.next_sibling_element());
    rect.and_then(|rect| rect.attribute(attribute)).unwrap_or_default().to_owned()
}

#[test]
fn sizes_and_texts_are_as_asked_for() {
    let svg = svg_of(
        FOLDED,
        &[
            "--title",
            "a <title>",
            "--subtitle",
            "under & it",
            "--width",
            "640",
            "--height",
            "20",
            "--fonttype",
            "\"Fira\" Code",
            "--fontsize",
            "14",
            "--countname",
            "ticks",
            "--notes",
            "a--b > c",
            "--uicolor",
            "#123456",
            "--stroke-color",
            "#abcdef",
            "--search-color",
            "rgb(1,2,3)",
            "--bgcolors",
            "blue",
        ],
    );
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("width"), Some("640"));
    assert_eq!(root.attribute("font-family"), Some("\"Fira\" Code"));
    assert_eq!(by_id(&document, "title").unwrap().text(), Some("a <title>"));
    assert_eq!(by_id(&document, "subtitle").unwrap().text(), Some("under & it"));
    assert_eq!(by_id(&document, "title").unwrap().attribute("fill"), Some("#123456"));
    assert_eq!(by_id(&document, "frames").unwrap().attribute("font-size"), Some("14"));
    let ground = by_id(&document, "background").unwrap().attribute("fill").unwrap();
    let ground = ground.strip_prefix("url(#").and_then(|fill| fill.strip_suffix(')')).unwrap();
    assert!(by_id(&document, ground).unwrap().has_tag_name("linearGradient"));
    assert_eq!(titles(&svg)[3], "parse (600 ticks, 60.00%)");
    assert_eq!(of_box(&svg, "parse", "height"), "19");
    assert_eq!(of_box(&svg, "parse", "stroke"), "#abcdef");
    assert!(svg.contains("<!-- NOTES: a- -b &gt; c -->"));
    assert!(svg.contains("#010203"));
}

#[test]
fn the_root_stands_below_or_on_top() {
    let y = |svg: &str, name| of_box(svg, name, "y").parse::<i32>().unwrap();
    let up = svg_of(FOLDED, &[]);
    assert!(y(&up, "all") > y(&up, "server") && y(&up, "read") > y(&up, "sys_read"));
    let down = svg_of(FOLDED, &["--inverted"]);
    assert_eq!(y(&down, "server") - y(&down, "all"), 17);
    assert_eq!(y(&down, "all"), y(&up, "sys_read"));
    assert_eq!(
        by_id(&Document::parse(&down).unwrap(), "title").unwrap().text(),
        Some("Icicle Graph")
    );
}

#[test]
fn trees_are_turned_cut_and_ordered() {
    let names = |text: &str, options: &[&str]| -> Vec<String> {
        let name = |title: String| title.split(" (").next().unwrap_or_default().to_owned();
        titles(&svg_of(text, options)).into_iter().map(name).collect()
    };
    assert_eq!(names("a;b;x 1\na;c;x 2\n", &["--reverse"]), ["all", "x", "b", "a", "c", "a"]);
    assert_eq!(names("a;b;x 1\na;c;y 2\n", &["--base", "b"]), ["all", "b", "x"]);
    let text = "t;b 1\nt;a 1\nt;b 1\n";
    assert_eq!(names(text, &[]), ["all", "t", "a", "b"]);
    assert_eq!(names(text, &["--no-sort"]), ["all", "t", "b", "a"]);
    assert_eq!(names(text, &["--flamechart"]), ["all", "t", "b", "a", "b"]);
    assert_eq!(names("a;b_[k];x 1\na;c;y 2\n", &["--base", "b_[k]"]), ["all", "b", "x"]);
    render(&scratch_with(FOLDED), &["--base", "nowhere", "--base", "nobody"])
        .error(1, &["no function nowhere or nobody in this profile", "try: "]);
}

#[test]
fn totals_and_factors_change_what_is_shown() {
    let total = svg_of("a 25\n", &["--total", "100"]);
    assert_eq!(titles(&total), ["all (100 samples, 100%)", "a (25 samples, 25.00%)"]);
    let small = render(&scratch_with("a 25\n"), &["--total", "3"]).success();
    assert_eq!(small.stderr, "warning: --total 3 is left out: the samples weigh 25\n");
    assert_eq!(titles(&small.stdout)[0], "all (25 samples, 100%)");
    // Two profiles: the change of all is that of the samples, not of what --total adds.
    let two = svg_of("a 20 25\n", &["--total", "100"]);
    let of_two = titles(&two);
    assert_eq!(of_two, ["all (100 samples, 100%)", "a (25 samples, 25.00%; +5.00%)"]);
    let factor = svg_of("a 99\nb 1\n", &["--factor", "0.1", "--countname", "ms"]);
    assert_eq!(titles(&factor)[1], "a (9.90 ms, 99.00%)");
    let thousand = svg_of("a 1.5\n", &["--factor", "1000"]);
    assert_eq!(titles(&thousand)[1], "a (1,500 samples, 100%)");
}

#[test]
fn two_counts_a_line_are_a_differential_graph() {
    let text = "a;grew 10 20\na;shrank 20 15\na;same 5 5\na;gone 7 0\n";
    let svg = svg_of(text, &[]);
    let title =
        |name: &str| titles(&svg).into_iter().find(|title| title.starts_with(name)).unwrap();
    assert_eq!(title("grew"), "grew (20 samples, 50.00%; +25.00%)");
    assert_eq!(title("shrank"), "shrank (15 samples, 37.50%; -12.50%)");
    assert_eq!(title("same"), "same (5 samples, 12.50%)");
    assert_eq!(of_box(&svg, "grew", "fill"), "#ff0000");
    assert!(svg.contains("1 stack is gone"));
    let negated = svg_of(text, &["--negate"]);
    assert_eq!(of_box(&negated, "grew", "fill"), "#0000ff");
    let safe = svg_of(text, &["--colors-diff", "safe"]);
    assert_eq!(of_box(&safe, "grew", "fill"), "#e66100");
    let fill = of_box(&safe, "shrank", "fill");
    let id = fill.strip_prefix("url(#").and_then(|id| id.strip_suffix(')')).unwrap();
    assert!(by_id(&Document::parse(&safe).unwrap(), id).is_some(), "{id}");
}

#[test]
fn palettes_are_chosen_by_both_spellings() {
    let colour = |options: &[&str]| of_box(&svg_of("main 1\n", options), "main", "fill");
    // What flamegraph.pl --hash gives.
    assert_eq!(colour(&["--colors", "hot", "--hash"]), "#f7532e");
    assert_eq!(colour(&["--color=java", "--hash"]), "#db4f4f");
    assert_eq!(colour(&["--color", "never"]), colour(&[]));
    assert_ne!(colour(&["--random"]), "");
}

#[test]
fn consistent_colours_are_kept_in_a_file() {
    let scratch = scratch_with("a;b->c 1\n");
    let map = scratch.file("palette.map");
    fs::write(&map, "b->c->rgb(1,2,3)\nold->rgb(4,5,6)\nbroken\n").unwrap();
    let ended = render(&scratch, &["--cp", "--colors", "hot", "--hash"]).success();
    assert_eq!(of_box(&ended.stdout, "b->c", "fill"), "#010203");
    assert!(ended.stderr.contains("1 line of palette.map left out"), "{}", ended.stderr);
    let expect = "a->rgb(235,140,33)\nb->c->rgb(1,2,3)\nold->rgb(4,5,6)\n";
    assert_eq!(fs::read_to_string(&map).unwrap(), expect);
}

#[test]
fn functions_can_be_links() {
    let scratch = scratch_with("main;<b> 1\n");
    let lines = "<b>\thref=https://example.com/?a=1&b=2\ttitle=see \"it\"\tclass=x\tg_extra=onclick=\"x()\"\n";
    fs::write(scratch.file("attributes"), lines).unwrap();
    let ended = render(&scratch, &["--nameattr", "attributes"]).success();
    assert!(ended.stderr.contains("attributes, line 1: the attribute onclick is left out"));
    let document = Document::parse(&ended.stdout).unwrap();
    let link = document.descendants().find(|node| node.has_tag_name("a")).unwrap();
    assert_eq!(link.attribute("href"), Some("https://example.com/?a=1&b=2"));
    assert_eq!(link.attribute("target"), Some("_top"));
    let group = link.parent().unwrap();
    assert_eq!(group.attribute("class"), Some("x"));
    assert_eq!(group.first_element_child().unwrap().text(), Some("see \"it\""));
    assert!(!group.has_attribute("onclick"));
}

#[test]
fn thin_boxes_are_one_run_in_pixels_and_percent() {
    let text = "a 970\nb 10\nc;d 10\ne 10\n";
    for width in ["20", "1.5%"] {
        let svg = svg_of(text, &["--minwidth", width]);
        assert_eq!(titles(&svg)[2], "… 4 frames, 3.00%", "{width}");
    }
}

#[test]
fn labels_fit_in_fonts_of_one_width() {
    let text = "app;illlillillilillilililli 12\napp;fill_list_iterator 15\napp;other 100\n";
    for font in ["monospace", "Courier New, serif"] {
        let svg = svg_of(text, &["--fonttype", font]);
        let document = Document::parse(&svg).unwrap();
        let frames = by_id(&document, "frames").unwrap();
        let mut labels = 0;
        for frame in frames.children() {
            let width: f64 =
                frame.children().nth(1).unwrap().attribute("width").unwrap().parse().unwrap();
            let Some(label) = frame.children().nth(2).and_then(|text| text.text()) else {
                continue;
            };
            labels += 1;
            // 12 pixels, of which a character takes six tenths, behind a margin of three.
            assert!(
                3.0 + label.chars().count() as f64 * 7.2 <= width,
                "{font}: {label} in {width}"
            );
        }
        assert_eq!(labels, 5);
    }
}

#[test]
fn a_picture_of_a_part_says_so() {
    let subtitle = |options: &[&str]| {
        let ended = render(&scratch_with("a;b;x 1\na;c;y 2\n"), options).success();
        let document = Document::parse(&ended.stdout).unwrap();
        by_id(&document, "subtitle").unwrap().text().unwrap_or_default().to_owned()
    };
    assert_eq!(subtitle(&[]), "");
    let part = "Part of the profile: no stacks with y; hidden: b";
    assert_eq!(subtitle(&["--hide", "b", "--exclude", "y"]), part);
    assert_eq!(subtitle(&["--focus", "b"]), "Part of the profile: only below b");
    assert_eq!(subtitle(&["--focus", "b", "--subtitle", "mine"]), "mine");
}
