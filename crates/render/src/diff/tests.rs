use flame_diff::{DiffConfig, DiffTree, Run, Samples, Scaling};
use flame_message::clean_name;
use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};
use roxmltree::{Document, Node};

use super::*;
use crate::layout::Narrow;
use crate::test_trees::Random;
use crate::{SvgConfig, write_diff_svg};

fn run(name: &str, text: &str) -> Run {
    run_of(ValueType::samples(), name, text)
}

fn run_of(value: ValueType, name: &str, text: &str) -> Run {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    let tree = reader.finish(value);
    Run { name: name.to_owned(), tree, samples: Samples::PerUnit(1.0), duration: None }
}

fn diff(before: &str, after: &str, scaling: Scaling) -> DiffTree {
    let config = DiffConfig { scaling, ..DiffConfig::default() };
    let sides = [run("v1.folded", before), run("v2.folded", after)];
    DiffTree::new(&sides[..1], &sides[1..], &config).unwrap()
}

fn svg(tree: &DiffTree, view: DiffView, colour_by: ColourBy) -> String {
    let mut out = Vec::new();
    let config = SvgConfig { width: 220, ..SvgConfig::default() };
    write_diff_svg(tree, &DiffPicture { view, colour_by }, &config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn by_id<'a, 'i>(document: &'a Document<'i>, id: &str) -> Node<'a, 'i> {
    document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap()
}

/// Tooltip, left edge, width and fill of each box.
fn boxes(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let describe = |g: Node| {
        let (title, rect) = (g.first_element_child().unwrap(), g.children().nth(1).unwrap());
        let of = |name| rect.attribute(name).unwrap_or("-");
        format!("{} | {} {}", title.text().unwrap(), of("x"), of("width"))
    };
    by_id(&document, "frames").children().map(describe).collect()
}

const BEFORE: &str = "m;a;x 20\nm;b 60\nm;b;y 20\n";
const AFTER: &str = "m;b 40\nm;b;y 20\nm;c;z 40\n";

#[track_caller]
fn check(view: DiffView, expect: &[&str]) {
    let svg = svg(&diff(BEFORE, AFTER, Scaling::Total), view, ColourBy::SelfWeight);
    let found = boxes(&svg);
    // How sure a change is belongs to the model and has tests there.
    let shown = found.iter().map(|text| {
        let (title, place) = text.rsplit_once(" | ").unwrap();
        let title = title.split(", could be").next().unwrap().split(", differs").next().unwrap();
        format!("{} | {place}", title.trim_end_matches(')'))
    });
    assert_eq!(shown.collect::<Vec<_>>(), expect);
}

#[test]
fn vanished_paths_stand_beside_their_siblings_as_wide_as_they_were() {
    // 200 pixels for 100 samples after and 20 that vanished.
    check(
        DiffView::Union,
        &[
            "all (100 samples, 100%; self unchanged | 10 199.5",
            "m (100 samples, 100%; self unchanged | 10 199.5",
            "a (vanished: was 20 samples, 20.00%; self unchanged | 10 32.83",
            "x (vanished: was 20 samples, 20.00%; self -20.00 points | 10 32.83",
            "b (80 → 60 samples, 80.00% → 60.00%; self -20.00 points | 43.33 99.5",
            "y (20 samples, 20.00%; self unchanged | 43.33 32.84",
            "c (new: 40 samples, 40.00%; self unchanged | 143.33 66.17",
            "z (new: 40 samples, 40.00%; self +40.00 points | 143.33 66.17",
        ],
    );
}

#[test]
fn the_other_views_have_the_widths_of_their_side() {
    check(
        DiffView::After,
        &[
            "all (100 samples, 100%; self unchanged | 10 199.5",
            "m (100 samples, 100%; self unchanged | 10 199.5",
            "b (80 → 60 samples, 80.00% → 60.00%; self -20.00 points | 10 119.5",
            "y (20 samples, 20.00%; self unchanged | 10 39.5",
            "c (new: 40 samples, 40.00%; self unchanged | 130 79.5",
            "z (new: 40 samples, 40.00%; self +40.00 points | 130 79.5",
        ],
    );
    check(
        DiffView::Before,
        &[
            "all (100 samples, 100%; self unchanged | 10 199.5",
            "m (100 samples, 100%; self unchanged | 10 199.5",
            "a (vanished: was 20 samples, 20.00%; self unchanged | 10 39.5",
            "x (vanished: was 20 samples, 20.00%; self -20.00 points | 10 39.5",
            "b (80 → 60 samples, 80.00% → 60.00%; self -20.00 points | 50 159.5",
            "y (20 samples, 20.00%; self unchanged | 50 39.5",
        ],
    );
    // 200 pixels for 20 + 20 + 40 samples of change; y did not change and has no width.
    check(
        DiffView::Delta,
        &[
            "all (100 samples, 100%; self unchanged | 10 199.5",
            "m (100 samples, 100%; self unchanged | 10 199.5",
            "a (vanished: was 20 samples, 20.00%; self unchanged | 10 49.5",
            "x (vanished: was 20 samples, 20.00%; self -20.00 points | 10 49.5",
            "b (80 → 60 samples, 80.00% → 60.00%; self -20.00 points | 60 49.5",
            "c (new: 40 samples, 40.00%; self unchanged | 110 99.5",
            "z (new: 40 samples, 40.00%; self +40.00 points | 110 99.5",
        ],
    );
}

#[test]
fn columns_lead_from_what_vanished_to_the_root() {
    let tree = diff(BEFORE, AFTER, Scaling::Total);
    let svg = svg(&tree, DiffView::Union, ColourBy::SelfWeight);
    let document = Document::parse(&svg).unwrap();
    let strips: Vec<_> = by_id(&document, "strips")
        .children()
        .map(|rect| ["x", "y", "width", "height"].map(|name| rect.attribute(name).unwrap()))
        .collect();
    // Four rows below the heading: from the row of `m` to the lower edge of `all`.
    assert_eq!(strips, [["10", "98", "33.33", "33"]]);
    assert_eq!(
        heading(&Sides::new(&tree, DiffPicture::default(), None), DiffView::Union),
        "after: 100 samples; hatched: what vanished, as wide as it was (20.00%)"
    );
}

#[test]
fn nothing_changed_is_said_and_drawn_as_nothing() {
    let tree = diff(BEFORE, BEFORE, Scaling::Total);
    for text in boxes(&svg(&tree, DiffView::Union, ColourBy::SelfWeight)) {
        assert!(text.contains("; self unchanged)"), "{text}");
    }
    assert_eq!(boxes(&svg(&tree, DiffView::Delta, ColourBy::SelfWeight)), [""; 0]);
}

#[test]
fn what_is_compared_in_other_measures_is_scaled() {
    let before = "m;a 10\nm;b 10\n";
    let after = "m;a 100\nm;b 300\n";
    let normalised =
        boxes(&svg(&diff(before, after, Scaling::Total), DiffView::Union, ColourBy::Total));
    assert!(normalised[2].starts_with("a (10 → 100 samples, 50.00% → 25.00%; total -25.00 points"));
    let raw = boxes(&svg(&diff(before, after, Scaling::None), DiffView::Union, ColourBy::Total));
    assert!(raw[2].starts_with("a (10 → 100 samples, 50.00% → 500.00%; total +450.00 points"));
    assert!(raw[0].starts_with("all (20 → 400 samples, 100% → 2,000.00%; total +1,900.00 points"));
}

/// Positions and fills of the boxes of a graph.
fn places(tree: &DiffTree, view: DiffView) -> Vec<(String, usize)> {
    let picture = DiffPicture { view, ..DiffPicture::default() };
    let sides = Sides::new(tree, picture, None);
    let cells =
        crate::layout::layout(&Pane::new(&sides, view), 100_000, Narrow { frame: 1, run: 1 });
    let place = |cell: &crate::layout::Cell| {
        let node = cell.content.run(|node| tree.nodes()[node].end as usize).start;
        let at = format!("{:?} {} {}", cell.content, cell.left, cell.right);
        (at, look(&sides, sides.node(node)))
    };
    cells.iter().map(place).collect()
}

/// The fill of what changed the other way round.
fn mirrored(look: usize) -> usize {
    let (noise, gone) = (2 * STEPS + 1, 3 * STEPS + 4);
    match look {
        0 => 0,
        _ if look <= STEPS => look + STEPS,
        _ if look <= 2 * STEPS => look - STEPS,
        _ if look == noise => noise,
        _ if look < gone => look + STEPS + 2,
        _ => look - STEPS - 2,
    }
}

#[test]
fn swapping_the_sides_swaps_the_colours_and_nothing_else() {
    let mut stacks = (String::new(), String::new());
    let mut random = Random::new(3);
    for n in 0..300 {
        let stack = format!("m;f{};g{};h{n}", random.below(9), random.below(40));
        for side in [&mut stacks.0, &mut stacks.1] {
            let weight = random.below(60);
            if weight > 20 {
                *side += &format!("{stack} {}\n", weight * weight * (1 + random.below(4)));
            }
        }
    }
    for scaling in [Scaling::Total, Scaling::None] {
        let forth = diff(&stacks.0, &stacks.1, scaling.clone());
        let back = diff(&stacks.1, &stacks.0, scaling);
        let views = [
            (DiffView::Delta, DiffView::Delta),
            (DiffView::Before, DiffView::After),
            (DiffView::After, DiffView::Before),
        ];
        for (view, other) in views {
            let mut found = places(&back, other);
            assert!(found.len() > 200, "{view:?}: {} boxes", found.len());
            found.iter_mut().for_each(|(_, look)| *look = mirrored(*look));
            assert_eq!(places(&forth, view), found, "{view:?}");
        }
    }
}

#[test]
fn the_changes_that_are_drawn_add_up_to_that_of_the_whole() {
    let tree = diff("m;a 30\nm;b;x 50\nm 20\n", "m;a 40\nm;c 75\nm 10\n", Scaling::None);
    let points = |by| -> Vec<f64> {
        let boxes = boxes(&svg(&tree, DiffView::Union, by));
        let number = |text: &String| -> f64 {
            let (_, change) = text.split_once("; ").unwrap();
            let change = change.split_once(' ').unwrap().1;
            change.split_once(" points").map_or(0.0, |(points, _)| points.parse().unwrap())
        };
        boxes.iter().map(number).collect()
    };
    let own = points(ColourBy::SelfWeight);
    assert_eq!(own, [0.0, -10.0, 10.0, 0.0, -50.0, 75.0]);
    assert_eq!(own.iter().sum::<f64>(), points(ColourBy::Total)[0]);
    assert_eq!(points(ColourBy::Total), [25.0, 25.0, 10.0, -50.0, -50.0, 75.0]);
}

#[test]
fn legends_say_which_side_has_more() {
    let legend = |after: ValueType| -> Vec<String> {
        let sides = [
            run_of(ValueType::new("instructions", "count"), "cpu.pb.gz", BEFORE),
            run_of(after, "cpu.pb.gz", AFTER),
        ];
        let tree = DiffTree::new(&sides[..1], &sides[1..], &DiffConfig::default()).unwrap();
        let svg = svg(&tree, DiffView::Union, ColourBy::SelfWeight);
        let document = Document::parse(&svg).unwrap();
        let entries = by_id(&document, "legend").children();
        entries.filter_map(|entry| entry.text().map(str::to_owned)).collect()
    };
    let check = |after: ValueType, [more, less, new, vanished]: [&str; 4]| {
        let expect = [more, "most", less, "most", "could be noise", "the same", new, vanished];
        assert_eq!(legend(after), expect);
    };
    check(
        ValueType::new("instructions", "count"),
        ["grew, a little", "shrank, a little", "new: 40.00%", "vanished: 20.00%"],
    );
    let more = ["more cycles, a little", "more instructions, a little"];
    let only = ["only cycles: 40.00%", "only instructions: 20.00%"];
    check(ValueType::new("cycles", "count"), [more[0], more[1], only[0], only[1]]);
}

#[test]
fn any_characters_give_well_formed_xml() {
    let pool: Vec<char> = ('\x20'..='\u{ff}')
        .chain(['\0', '\x1b', '\u{202e}', '\u{fffe}', '\u{ffff}', '\u{1f525}', '日'])
        .chain("]]><!--&amp;\"'</svg></script>".chars())
        .filter(|c| *c != ';')
        .collect();
    for seed in 1..60 {
        let mut random = Random::new(seed);
        let mut name = || -> String {
            let length = 1 + random.below(30);
            let name = (0..length).map(|_| pool[random.below(pool.len() as u32) as usize]);
            format!("<{}>", name.collect::<String>())
        };
        let mut side = || format!("t;{} 10\nt;{} 20\nt;both 5\n", name(), name());
        let (before, after) = (side(), side());
        for view in [DiffView::Union, DiffView::Both] {
            let svg = svg(&diff(&before, &after, Scaling::Total), view, ColourBy::SelfWeight);
            let shown = boxes(&svg);
            for line in before.lines().chain(after.lines()) {
                let stack = line.rsplit_once(' ').unwrap().0;
                let expect = format!("{} (", clean_name(stack.rsplit_once(';').unwrap().1));
                assert!(shown.iter().any(|text| text.starts_with(&expect)), "{seed}: {expect}");
            }
        }
    }
}
