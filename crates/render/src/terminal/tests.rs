use super::*;
use crate::test_trees::{Random, tree_of};
use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};

fn config(columns: u32, depth: ColourDepth) -> TerminalConfig {
    TerminalConfig {
        title: None,
        columns,
        depth,
        colours: ColourConfig::default(),
        direction: Direction::Up,
        all_rows: false,
        count_name: None,
    }
}

fn draw<S: AsRef<str>>(stacks: &[(S, u64)], config: &TerminalConfig) -> String {
    let mut out = Vec::new();
    write_terminal(&tree_of(stacks), config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const SERVER: &[(&str, u64)] = &[
    ("server;main;parse", 600),
    ("server;main;read;sys_read_[k]", 380),
    ("server;main;zero;a", 10),
    ("server;main;zero;b", 10),
];

#[test]
fn boxes_stand_on_their_callers_with_names_and_shares() {
    let found = draw(SERVER, &config(40, ColourDepth::None));
    assert_eq!(
        found,
        "                        │sys_read──────░
│parse 60.00%───────────│read 38.00%───│
│main 100%──────────────────────────────
│server 100%────────────────────────────
│all 1,000 samples──────────────────────
"
    );
    let down = TerminalConfig { direction: Direction::Down, ..config(40, ColourDepth::None) };
    let mut lines: Vec<String> = draw(SERVER, &down).lines().map(str::to_owned).collect();
    lines.reverse();
    assert_eq!(lines, found.lines().collect::<Vec<_>>());
}

#[test]
fn a_single_deep_stack_does_not_fill_the_screen() {
    let deep = (0..150).map(|n| format!("f{n}")).collect::<Vec<_>>().join(";");
    let stacks = [("a;b", 9_930), (deep.as_str(), 70)];
    let config = config(200, ColourDepth::None);
    // The root, 16 rows, and a box of all the others.
    assert_eq!(draw(&stacks, &config).lines().count(), 18);
    let all = TerminalConfig { all_rows: true, ..config };
    assert_eq!(draw(&stacks, &all).lines().count(), 151);
}

/// The text without its colours, and whether it ended with them reset.
fn without_colours(line: &str) -> (String, bool) {
    let mut text = String::new();
    for part in line.split('\x1b') {
        text.push_str(part.split_once('m').filter(|_| part.starts_with('[')).map_or(part, |p| p.1));
    }
    (text, line.ends_with("\x1b[0m"))
}

#[test]
fn edges_within_a_column_are_blocks_of_both_colours() {
    // 20 columns of 8 parts: the edge is at 66.7 parts, three eighths into the ninth column.
    let two = [("t;a", 5), ("t;b_[k]", 7)];
    let found = draw(&two, &config(20, ColourDepth::True));
    let (top, reset) = without_colours(found.lines().next().unwrap());
    assert_eq!(top, "a 41.67%▍b 58.33%   ");
    assert!(reset);
    assert!(found.contains("\x1b[48;2;"));
    let found = draw(&two, &config(20, ColourDepth::Palette));
    assert!(found.contains("\x1b[48;5;") && !found.contains("\x1b[48;2;"));
}

#[test]
fn siblings_of_one_colour_are_told_apart() {
    // In a tree of one hue, those that hash alike; here the mark of both is grey.
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    reader.read(&mut &b"a;x 5 5\nb;x 5 5\n"[..]).unwrap();
    let tree = reader.finish(ValueType::samples());
    let mut out = Vec::new();
    write_terminal(&tree, &config(40, ColourDepth::True), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<String> = text.lines().map(|line| without_colours(line).0).collect();
    assert_eq!(lines[1], "a 50.00%            ▏b 50.00%           ");
    // Within a column the line stands where the edge would.
    let found = draw(&[("a", 5), ("b", 7)], &config(20, ColourDepth::True));
    assert_eq!(without_colours(found.lines().next().unwrap()).0, "a 41.67%▏b 58.33%   ");
}

#[test]
fn changes_are_told_by_numbers_too() {
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    reader.read(&mut &b"t;more 1 6\nt;less 4 2\n"[..]).unwrap();
    let mut out = Vec::new();
    let plain = config(60, ColourDepth::None);
    write_terminal(&reader.finish(ValueType::samples()), &plain, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text.lines().next().unwrap(),
        "│less 25.00%───│more 75.00%; +62.50%────────────────────────"
    );
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    for seed in 1..100 {
        let mut random = Random::new(seed);
        let mut stacks = random.stacks(40);
        stacks.push(("日本語の関数;größe;e\u{301}e\u{301}".to_owned(), 50));
        let columns = 20 + random.below(100);
        for depth in [ColourDepth::None, ColourDepth::Palette, ColourDepth::True] {
            for line in draw(&stacks, &config(columns, depth)).lines() {
                let width = columns_of(&without_colours(line).0);
                assert!(width <= columns, "seed {seed}: {width} > {columns}: {line}");
            }
        }
    }
}

#[test]
fn colours_of_256_are_near() {
    assert_eq!(nearest(Rgb(0, 0, 0)), 16);
    assert_eq!(nearest(Rgb(255, 255, 255)), 231);
    assert_eq!(nearest(Rgb(255, 0, 0)), 196);
}

#[test]
fn nothing_is_said_to_be_nothing() {
    assert!(draw::<&str>(&[], &config(40, ColourDepth::None)).starts_with("no samples"));
}
