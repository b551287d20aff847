use std::collections::BTreeSet;

use flame_message::clean_name;
use flame_profile::{
    Annotations, Columns, FoldedReader, FrameKind, Label, SiblingOrder, ValueType, Weight,
    write_folded,
};
use roxmltree::{Document, Node};

use super::*;
use crate::test_trees::{Random, tree_of, tree_of_value};

fn svg_of<S: AsRef<str>>(stacks: &[(S, u64)], config: &SvgConfig) -> String {
    let mut out = Vec::new();
    write_svg(&tree_of(stacks), config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn by_id<'a, 'i>(document: &'a Document<'i>, id: &str) -> Node<'a, 'i> {
    let found: Vec<_> =
        document.descendants().filter(|node| node.attribute("id") == Some(id)).collect();
    assert_eq!(found.len(), 1, "elements with id {id}");
    found[0]
}

const SERVER: &[(&str, u64)] = &[
    ("server;main;parse", 600),
    ("server;main;read;sys_read_[k]", 390),
    ("server;main;read;sys_read_[k];tiny_a", 1),
    ("server;main;read;sys_read_[k];tiny_b;c", 1),
    ("server;[truncated stack];f_[i]", 8),
];

fn boxes(document: &Document) -> Vec<String> {
    let describe = |g: Node| {
        let children: Vec<Node> = g.children().collect();
        let names: Vec<&str> = children.iter().map(|child| child.tag_name().name()).collect();
        assert!(names == ["title", "rect"] || names == ["title", "rect", "text"], "{names:?}");
        let rect = |name| children[1].attribute(name).unwrap();
        format!(
            "{} | {} {} {} | {}",
            children[0].text().unwrap(),
            rect("x"),
            rect("y"),
            rect("width"),
            children.get(2).and_then(|text| text.text()).unwrap_or("-"),
        )
    };
    by_id(document, "frames").children().map(describe).collect()
}

#[test]
fn boxes_stand_upwards_with_tooltip_rectangle_and_label() {
    let svg = svg_of(SERVER, &SvgConfig { width: 220, ..SvgConfig::default() });
    let document = Document::parse(&svg).unwrap();
    let expect = [
        "all (1,000 samples, 100%) | 10 129 199.5 | all",
        "server (1,000 samples, 100%) | 10 112 199.5 | server",
        "[truncated stack] (8 samples, 0.80%) | 10 95 1.6 | -",
        "f (8 samples, 0.80%) | 10 78 1.6 | -",
        "main (992 samples, 99.20%) | 11.6 95 197.9 | main",
        "parse (600 samples, 60.00%) | 11.6 78 119.5 | parse",
        "read (392 samples, 39.20%) | 131.6 78 77.9 | read",
        "sys_read (392 samples, 39.20%) | 131.6 61 77.9 | sys_read",
        "… 3 frames, 0.20% | 131.6 44 0.4 | -",
    ];
    assert_eq!(boxes(&document), expect);
}

#[test]
fn the_ids_that_scripts_rely_on_are_there_once() {
    let svg = svg_of(SERVER, &SvgConfig::default());
    let document = Document::parse(&svg).unwrap();
    for id in "title subtitle details unzoom search ignorecase matched frames".split(' ') {
        by_id(&document, id);
    }
    let hidden: Vec<&str> = document
        .descendants()
        .filter(|node| node.attribute("display") == Some("none"))
        .filter_map(|node| node.attribute("id"))
        .collect();
    assert_eq!(hidden, ["matched", "unzoom", "search", "ignorecase"], "dead without the script");
}

#[test]
fn what_must_be_readable_does_not_depend_on_the_style_sheet() {
    let svg = svg_of(SERVER, &SvgConfig::default());
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    for attribute in ["font-family", "font-size", "fill", "width", "height", "viewBox"] {
        assert!(root.has_attribute(attribute), "{attribute}");
    }
    let all_filled = document
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .all(|rect| rect.has_attribute("fill") && rect.has_attribute("width"));
    assert!(all_filled);
    assert!(!document.descendants().any(|node| node.has_attribute("style")));
}

#[test]
fn title_subtitle_and_footer_are_shown() {
    let config = SvgConfig {
        title: "server, <before>".to_owned(),
        subtitle: Some("99 Hz & 30 s".to_owned()),
        footer: vec!["1,000 samples, 0 lost".to_owned(), "flame 0.1.0".to_owned()],
        width: 400,
        ..SvgConfig::default()
    };
    let svg = svg_of(SERVER, &config);
    let document = Document::parse(&svg).unwrap();
    assert_eq!(by_id(&document, "title").text(), Some("server, <before>"));
    assert_eq!(by_id(&document, "subtitle").text(), Some("99 Hz & 30 s"));
    let footer: Vec<_> = by_id(&document, "footer").children().filter_map(|l| l.text()).collect();
    assert_eq!(footer, ["1,000 samples, 0 lost", "flame 0.1.0"]);
    let legend: Vec<_> = by_id(&document, "legend").children().filter_map(|l| l.text()).collect();
    assert_eq!(legend, ["user", "inlined", "kernel", "thread, mark", "too thin to draw"]);
    // The last line of the footer is inside the picture.
    let height: u32 = document.root_element().attribute("height").unwrap().parse().unwrap();
    assert_eq!(height, 62 + 6 * 17 + 66 + 2 * 16);
}

#[test]
fn marks_of_what_is_missing_have_a_dashed_edge() {
    let svg = svg_of(SERVER, &SvgConfig::default());
    let document = Document::parse(&svg).unwrap();
    let dashed: Vec<_> = document
        .descendants()
        .filter(|node| node.has_attribute("stroke-dasharray"))
        .filter_map(|rect| rect.prev_sibling().and_then(|title| title.text()))
        .collect();
    assert_eq!(dashed, ["[truncated stack] (8 samples, 0.80%)"]);
}

#[test]
fn a_profile_without_samples_says_so() {
    let svg = svg_of::<&str>(&[], &SvgConfig::default());
    let document = Document::parse(&svg).unwrap();
    assert_eq!(boxes(&document), [""; 0]);
    assert!(svg.contains("no samples: nothing was recorded"));
}

#[test]
fn the_same_tree_gives_the_same_bytes_in_whatever_order_it_was_met() {
    let mut reversed = SERVER.to_vec();
    reversed.reverse();
    let config = SvgConfig::default();
    assert_eq!(svg_of(SERVER, &config), svg_of(&reversed, &config));
}

#[test]
fn sizes_that_make_no_sense_are_brought_into_range() {
    for (width, min_width) in
        [(0, 0.5), (u32::MAX, 0.5), (1200, 0.0), (1200, -1.0), (1200, f64::NAN)]
    {
        let svg = svg_of(
            SERVER,
            &SvgConfig { width, min_width: MinWidth::Pixels(min_width), ..SvgConfig::default() },
        );
        assert!(boxes(&Document::parse(&svg).unwrap()).len() >= 4, "{width} {min_width}");
    }
    let svg = svg_of(
        SERVER,
        &SvgConfig { min_width: MinWidth::Pixels(f64::INFINITY), ..SvgConfig::default() },
    );
    assert_eq!(boxes(&Document::parse(&svg).unwrap()).len(), 2);
}

#[test]
fn time_is_shown_as_time() {
    let tree = tree_of_value(&[("t;f", 2_500_000_000)], ValueType::new("cpu", "nanoseconds"));
    let mut out = Vec::new();
    write_svg(&tree, &SvgConfig::default(), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("<title>f (2.50 s, 100%)</title>"));
}

#[test]
fn script_and_style_cannot_end_early() {
    let svg = svg_of(SERVER, &SvgConfig::default());
    assert_eq!(svg.matches("]]>").count(), 1, "the end of the script");
    assert!(!script::STYLE.contains(['<', '&']));
    assert!(!script::script().contains("</script"));
    assert!(svg.contains(script::script()) && svg.contains(script::STYLE));
}

#[test]
fn any_characters_give_well_formed_xml() {
    let pool: Vec<char> = ('\0'..='\u{ff}')
        .chain(['\u{202e}', '\u{2028}', '\u{fffe}', '\u{ffff}', '\u{1f525}', '\u{10ffff}', '日'])
        .chain("]]><!--&amp;\"'</svg></script>;".chars())
        .collect();
    for seed in 1..60 {
        let mut random = Random::new(seed);
        let mut name = || -> String {
            let length = 1 + random.below(40);
            (0..length).map(|_| pool[random.below(pool.len() as u32) as usize]).collect()
        };
        let config = SvgConfig {
            title: name(),
            subtitle: Some(name()),
            footer: vec![name()],
            ..SvgConfig::default()
        };
        let stacks: Vec<(String, u64)> = (0..8).map(|_| (format!("t;{}", name()), 10)).collect();
        let svg = svg_of(&stacks, &config);
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let shown: BTreeSet<String> = boxes(&document).into_iter().collect();
        for name in stacks.iter().flat_map(|(stack, _)| stack.split(';')) {
            let expect = format!("{} (", clean_name(strip_kind(name)));
            assert!(shown.iter().any(|title| title.starts_with(&expect)), "{seed}: {expect:?}");
        }
    }
}

/// Folded text of random bytes, most of them such as have a meaning somewhere.
fn hostile_text(random: &mut Random) -> Vec<u8> {
    const PIECES: [&[u8]; 20] = [
        b"a",
        b"bc",
        b";",
        b";;",
        b" 1\n",
        b" 2 3\n",
        b" 0.5\r\n",
        b" 1e2\n",
        b"\n",
        b" ",
        b"\t7\n",
        b"# x 5\n",
        b"_[k]",
        b"<b>&\"']]>",
        b"\xff\xc3",
        b"\x00\x1b[m",
        b"[u8; 8]",
        b"--",
        b"-",
        "\u{202e}\u{ffff}日".as_bytes(),
    ];
    let count = random.below(200);
    (0..count).flat_map(|_| PIECES[random.below(PIECES.len() as u32) as usize].to_vec()).collect()
}

#[test]
fn any_bytes_give_well_formed_xml_of_all_weight() {
    let mut drawn = 0;
    for seed in 1..300 {
        let mut random = Random::new(seed);
        let text = hostile_text(&mut random);
        let read = |columns| {
            let mut reader = FoldedReader::new(columns, SiblingOrder::Name);
            reader.read(&mut &text[..]).map(|()| reader)
        };
        let reader = read(Columns::detect(&text)).or_else(|_| read(Columns::One)).unwrap();
        let tree = reader.finish(ValueType::samples());
        let self_weights: Weight = tree.nodes().iter().map(|node| node.self_weight).sum();
        assert_eq!(tree.total(), self_weights, "seed {seed}");
        let mut out = Vec::new();
        write_svg(&tree, &SvgConfig { width: 300, ..SvgConfig::default() }, &mut out).unwrap();
        let svg = String::from_utf8(out).unwrap();
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{seed}: {error}"));
        drawn += by_id(&document, "frames").children().count();

        // What is written as folded text is the same tree again, if its names can be written.
        let mut folded = Vec::new();
        write_folded(&tree, Annotations::Write, &mut folded).unwrap();
        let columns = if tree.before().is_some() { Columns::Two } else { Columns::One };
        let mut again = FoldedReader::new(columns, SiblingOrder::Name);
        again.read(&mut &folded[..]).unwrap();
        let shown = String::from_utf8_lossy(&folded);
        assert_eq!(again.skipped_lines(), 0, "seed {seed}: {shown}");
        let again = again.finish(ValueType::samples());
        let exact = |tree: &CallTree| u128::from(tree.total().0) * 10_u128.pow(9 - tree.decimals());
        assert_eq!(exact(&again), exact(&tree), "seed {seed}: {shown}");
    }
    assert!(drawn > 3000, "{drawn} boxes");
}

fn strip_kind(name: &str) -> &str {
    ["_[k]", "_[i]", "_[j]"].iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(name)
}

/// The viewer would take a box of such an id for its own title, or for its data.
#[test]
fn boxes_cannot_have_the_identifiers_of_the_picture() {
    let mut config = SvgConfig::default();
    config.colours.background = "blue".parse().ok();
    config.colours.delta = crate::DeltaColours::Safe;
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    reader.read(&mut &b"a;b 9 1\na;c 1 9\n"[..]).unwrap();
    let mut out = Vec::new();
    write_svg(&reader.finish(ValueType::samples()), &config, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let document = Document::parse(&text).unwrap();
    let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    assert!(ids.len() > 15, "{ids:?}");
    for id in ids {
        for line in [format!("f\tid={id}"), format!("f\tg_extra=id=\"{id}\"")] {
            let (attributes, complaints) = NameAttributes::parse(&line);
            let f = Label { name: "f".to_owned(), kind: FrameKind::User };
            assert!(attributes.of(&f).unwrap().group.is_empty(), "{line}");
            assert_eq!(complaints.len(), 1, "{line}");
        }
    }
}
