//! `flame diff -o x.svg`: the real binary draws both sides; what it writes is parsed.

use std::fs;

use roxmltree::Document;

use crate::support::{Ended, Scratch, finish, flame};

const BEFORE: &str = "server;main;cache;lookup 1000\nserver;main;parse 6000\nserver;main 3000\n";
/// A tenth is new, and one line is not a stack.
const AFTER: &str = "server;main;parse 6000\nserver;main;verify 1000\nserver;main 3000\nrubbish\n";

fn diff(scratch: &Scratch, options: &[&str]) -> Ended {
    fs::write(scratch.file("v1.folded"), BEFORE).unwrap();
    fs::write(scratch.file("v2.folded"), AFTER).unwrap();
    // The weights have a common divisor, but each is a sample.
    let files = ["diff", "v1.folded", "v2.folded", "--samples-per-unit", "1"];
    let command = [&files[..], &["-q", "-o", "diff.svg"], options].concat();
    finish(flame().current_dir(scratch.path()).args(command))
}

/// The picture that `flame diff OPTIONS` makes.
#[track_caller]
fn svg_of(options: &[&str]) -> String {
    let scratch = Scratch::new();
    diff(&scratch, options).success();
    fs::read_to_string(scratch.file("diff.svg")).unwrap()
}

/// The texts in the group of that id.
fn texts(svg: &str, id: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let group = document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
    let lines = group.descendants().filter(|node| node.has_tag_name("text"));
    lines.map(|line| line.text().unwrap_or_default().to_owned()).collect()
}

/// The tooltips of the boxes of that function.
fn boxes(svg: &str, function: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let titles = document.descendants().filter(|node| node.has_tag_name("title"));
    let titles = titles.filter_map(|title| title.text().map(str::to_owned));
    titles.filter(|text| text.starts_with(&format!("{function} ("))).collect()
}

#[test]
fn a_path_of_ten_percent_that_vanished_is_in_the_picture() {
    let svg = svg_of(&[]);
    let expect = "lookup (vanished: was 1,000 samples, 10.00%; self -10.00 points, differs: by chance p < 0.0001)";
    assert_eq!(boxes(&svg, "lookup"), [expect]);
    let expect =
        "verify (new: 1,000 samples, 10.00%; self +10.00 points, differs: by chance p < 0.0001)";
    assert_eq!(boxes(&svg, "verify"), [expect]);
    let heading = "after: 10,000 samples; hatched: what vanished, as wide as it was (10.00%); \
                   colours: change of self";
    assert_eq!(texts(&svg, "heads"), [heading]);
}

#[test]
fn the_foot_names_both_sides_and_what_is_wrong_with_them() {
    let foot = texts(&svg_of(&[]), "footer");
    let expect = "before: v1.folded (10,000 samples); after: v2.folded (10,000 samples); \
                  weights as they are";
    assert_eq!(foot[0], expect);
    assert_eq!(foot.last().unwrap(), "v2.folded: 1 line not readable");
}

#[test]
fn views_and_colours_are_those_that_were_asked_for() {
    let svg = svg_of(&["--view", "both", "--color-by", "total"]);
    let expect = [
        "before: 10,000 samples; colours: change of total",
        "after: 10,000 samples",
        "change: by how much self weight grew or shrank",
    ];
    assert_eq!(texts(&svg, "heads"), expect);
    assert_eq!([boxes(&svg, "lookup").len(), boxes(&svg, "verify").len()], [2, 2]);
    assert!(boxes(&svg, "main")[0].ends_with("; total unchanged)"));
    let svg = svg_of(&["--view", "after"]);
    assert_eq!([boxes(&svg, "lookup").len(), boxes(&svg, "verify").len()], [0, 1]);
}

#[test]
fn a_view_that_does_not_exist_is_a_usage_error_that_lists_those_that_do() {
    let ended = diff(&Scratch::new(), &["--view", "sideways"]);
    assert_eq!(ended.code(), 2);
    let expect = "views are union, after, before, delta and both";
    assert!(ended.stderr.contains(expect), "{}", ended.stderr);
}
