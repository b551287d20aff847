use super::*;
use crate::folded::{Annotations, Columns, FoldedReader, write_folded};
use crate::units::ValueType;

fn tree(text: &str, columns: Columns) -> CallTree {
    let mut reader = FoldedReader::new(columns, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    reader.finish(ValueType::samples())
}

/// Cuts a text between all of its lines, and compares what comes of the halves with the whole.
#[track_caller]
fn check(text: &str, columns: Columns, is_quick: bool) {
    let whole = tree(text, columns);
    for (cut, _) in text.match_indices('\n') {
        let (one, other) = text.split_at(cut + 1);
        if one.is_empty() || other.is_empty() {
            continue;
        }
        let (one, other) = (tree(one, columns), tree(other, columns));
        assert_eq!(one.shared(&one.last_path(), &other).is_some(), is_quick, "{cut}");
        let both = one.followed_by(other);
        assert_eq!(both.nodes(), whole.nodes(), "{cut}");
        assert_eq!(both.labels(), whole.labels(), "{cut}");
        assert_eq!(both.before(), whole.before(), "{cut}");
        assert_eq!(both.decimals(), whole.decimals(), "{cut}");
    }
}

const SORTED: &str =
    "a 1\na;b 2\na;b;c;d 4\na;b;c;e 8\na;b;f 16\na;g;c;d 32\nh;a 64\nh;b;a;b 128\n";

#[test]
fn halves_of_sorted_text_follow_each_other() {
    check(SORTED, Columns::One, true);
}

#[test]
fn so_do_those_with_two_counts() {
    check("a 1 0\na;b 2 3\na;b;c 0 4\na;d 5 5\ne;a 7 0\n", Columns::Two, true);
}

#[test]
fn one_stack_in_both_halves_is_one() {
    check("a;b;c 1\na;b;c 2\na;b;c 4\n", Columns::One, true);
}

#[test]
fn what_is_out_of_order_is_merged() {
    let (one, other) = ("a;c 1\nb;x;y 2\n", "a;b 4\na;c 8\nb;x 16\nc 32\n");
    let (first, second) = (tree(one, Columns::One), tree(other, Columns::One));
    assert_eq!(first.shared(&first.last_path(), &second), None);
    let both = first.followed_by(second);
    assert_eq!(both.nodes(), tree(&format!("{one}{other}"), Columns::One).nodes());
    check("b 1\na 2\n", Columns::One, false);
    check("a;b;c 1\na;b;a 2\n", Columns::One, false);
}

#[test]
fn weights_of_before_are_merged_with_their_nodes() {
    check("b;x 1 2\na;y 3 4\n", Columns::Two, false);
    // One of the two has none: it weighs nothing before.
    let (one, two) = ("b;x 1\nc 2\n", "a;y 4 8\nb;x 16 32\n");
    let expect = tree("b;x 0 1\nc 0 2\na;y 4 8\nb;x 16 32\n", Columns::Two);
    for is_first in [true, false] {
        let (one, two) = (tree(one, Columns::One), tree(two, Columns::Two));
        let both = if is_first { one.followed_by(two) } else { two.followed_by(one) };
        assert_eq!((both.nodes(), both.before()), (expect.nodes(), expect.before()));
    }
}

#[test]
fn decimal_places_of_both_are_kept() {
    let both = tree("a 0.5\n", Columns::One).followed_by(tree("b 0.25\n", Columns::One));
    assert_eq!(both.nodes(), tree("a 0.5\nb 0.25\n", Columns::One).nodes());
    assert_eq!(both.decimals(), 2);
}

#[test]
fn random_texts_are_the_same_in_two_parts() {
    let mut state = 1_u64;
    for _ in 0..200 {
        let mut next = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut lines: Vec<String> = (0..12)
            .map(|_| {
                let depth = 1 + next(4);
                let frames: Vec<String> = (0..depth).map(|_| format!("f{}", next(3))).collect();
                format!("{} {}\n", frames.join(";"), 1 + next(9))
            })
            .collect();
        lines.sort();
        let text = lines.concat();
        let whole = tree(&text, Columns::One);
        let (one, other) = (lines[..6].concat(), lines[6..].concat());
        let both = tree(&one, Columns::One).followed_by(tree(&other, Columns::One));
        assert_eq!(both.nodes(), whole.nodes(), "{text}");
        let mut written = Vec::new();
        write_folded(&both, Annotations::Write, &mut written).unwrap();
        assert_eq!(
            tree(std::str::from_utf8(&written).unwrap(), Columns::One).nodes(),
            whole.nodes()
        );
    }
}
