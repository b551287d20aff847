use super::super::skipped::{MOST_SHOWN, NO_COUNT, SHOWN_LINES};
use super::*;
use crate::call_tree::Node;

fn read(text: &[u8]) -> FoldedReader {
    let mut reader = FoldedReader::new(Columns::detect(text), SiblingOrder::Name);
    reader.read(&mut &*text).unwrap();
    reader
}

/// The tree as `depth name kind total self` lines, without the root; first frames are marks.
pub(crate) fn lines(tree: &CallTree) -> Vec<String> {
    let line = |node: &Node| {
        let label = tree.label(node);
        let (total, self_weight) = (node.total, node.self_weight);
        let kind = if label.kind == FrameKind::User || node.depth == 1 {
            String::new()
        } else {
            format!(" {:?}", label.kind)
        };
        format!("{} {}{kind} {total} {self_weight}", node.depth, label.name)
    };
    tree.nodes().iter().skip(1).map(line).collect()
}

#[track_caller]
fn check(text: &[u8], skipped: u64, expect: &[&str]) {
    let reader = read(text);
    assert_eq!(reader.skipped_lines(), skipped);
    assert_eq!(lines(&reader.finish(ValueType::samples())), expect);
}

#[test]
fn lines_with_common_starts_share_nodes() {
    check(
        b"a;b;c 1\na;b;d 2\na;bb 3\na 4\nz 5\n",
        0,
        &["1 a 10 4", "2 b 3 0", "3 c 1 1", "3 d 2 2", "2 bb 3 3", "1 z 5 5"],
    );
}

#[test]
fn the_order_of_the_lines_does_not_matter() {
    let sorted = b"a 100\na-b 50\na;c 100\n".as_slice();
    let expect = ["1 a 200 100", "2 c 100 100", "1 a-b 50 50"];
    check(sorted, 0, &expect);
    check(b"a;c 60\na 100\na-b 50\na;c 40\n", 0, &expect);
}

/// Lines of this many stacks in the order of their bytes, and in none.
fn stacks(count: u64) -> [Vec<String>; 2] {
    let stack = |number: u64| {
        let frames =
            |base: u64| (0..1 + number % 7).map(move |at| number / base.pow(at as u32) % base);
        let path: Vec<String> = frames(3).map(|frame| format!("f{}", frame * 7 % 10)).collect();
        format!("prog;{};g{}", path.join(";"), number % 11)
    };
    let mut sorted: Vec<String> = (0..count)
        .map(|number| format!("{} {} {}", stack(number), number % 5, 1 + number % 3))
        .collect();
    sorted.sort();
    let mut shuffled = sorted.clone();
    shuffled.sort_by_key(|line| {
        line.bytes().fold(7_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        })
    });
    [sorted, shuffled]
}

#[test]
fn unsorted_lines_are_put_in_order_before_they_become_nodes() {
    let [sorted, shuffled] = stacks(3000).map(|lines| {
        let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
        reader.read(&mut lines.join("\n").as_bytes()).unwrap();
        reader.into_builder()
    });
    // Half of the frames.
    let most = 3000 * 3;
    assert!(sorted.len() < most && shuffled.len() < most, "{}", shuffled.len());
    let [sorted, shuffled] =
        [sorted, shuffled].map(|tree| tree.finish(ValueType::samples(), SiblingOrder::Name));
    assert_eq!(sorted.nodes(), shuffled.nodes());
    assert_eq!(sorted.before(), shuffled.before());
}

#[test]
fn fractions_may_come_anywhere_in_unsorted_lines() {
    let [sorted, mut shuffled] = stacks(3000);
    shuffled.insert(1000, "prog;f0;a 0.25 3".to_owned());
    shuffled.insert(2000, "prog;f0;b 7 1.125".to_owned());
    let sorted = [&sorted[..], &shuffled[1000..1001], &shuffled[2000..2001]].concat();
    let [sorted, shuffled] = [sorted, shuffled].map(|lines| {
        let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
        reader.read(&mut lines.join("\n").as_bytes()).unwrap();
        reader.finish(ValueType::samples())
    });
    assert_eq!((sorted.decimals(), shuffled.decimals()), (3, 3));
    assert_eq!(sorted.nodes(), shuffled.nodes());
    assert_eq!(sorted.before(), shuffled.before());
}

#[test]
fn a_line_that_is_the_start_of_the_one_before_is_a_stack_of_its_own() {
    check(b"a;b;c 1\na;b 2\na;b;c 4\n", 0, &["1 a 7 0", "2 b 7 2", "3 c 5 5"]);
    check(b"a;bc 1\na;b 2\n", 0, &["1 a 3 0", "2 b 2 2", "2 bc 1 1"]);
}

#[test]
fn blanks_tabs_and_line_ends_of_other_systems_are_left_out() {
    let expect = ["1 a 6 0", "2 b c 6 6"];
    check(b"a;b c 1\r\n\r\n  a;b c\t2 \r\n\n\ta;b c   3\t\n", 0, &expect);
}

#[test]
fn comments_are_left_out_and_names_with_a_hash_are_not() {
    check(b"# made by a tool 12\n#\n#foo 13\n# \n#\t5\n", 0, &["1 #foo 13 13"]);
}

#[test]
fn lines_that_cannot_be_read_are_counted() {
    check(b"a 1\nb\n-5\n7\nc -1\nd 1x\ne nan\n", 6, &["1 a 1 1"]);
}

#[test]
fn the_first_lines_that_cannot_be_read_are_shown_with_a_reason() {
    let long = "x".repeat(2 * MOST_SHOWN);
    let text = format!("ok 1\nc -1\n7\nd 99999999999999999999\n{long} 1x\r\nwords only\nf\n");
    let reader = read(text.as_bytes());
    assert_eq!(reader.skipped_lines(), 6);
    let shown: Vec<(u64, &str, &[u8])> = reader
        .first_skipped()
        .iter()
        .map(|line| (line.number, line.reason, line.text.as_slice()))
        .collect();
    let expect: [(u64, &str, &[u8]); SHOWN_LINES] = [
        (2, "its count is negative", b"c -1"),
        (3, "no stack before the count", b"7"),
        (4, "its count is too large", b"d 99999999999999999999"),
        (5, "its count is not a number", &long.as_bytes()[..MOST_SHOWN]),
        (6, NO_COUNT, b"words only"),
    ];
    assert_eq!(shown, expect);
    assert_eq!(why_not_read(b"what is -this"), NO_COUNT);
}

#[test]
fn errors_say_what_was_wrong() {
    let failed = FoldedError::from(io::Error::other("the disk is gone"));
    assert_eq!(failed.to_string(), "folded text cannot be read");
    let source = std::error::Error::source(&failed).map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("the disk is gone"));
    assert_eq!(FoldedError::OneCount.to_string(), "not every line ends with two counts");
    assert!(std::error::Error::source(&FoldedError::OneCount).is_none());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_name() {
    let text = "\u{feff}a 1\n\u{feff}b 2\n".as_bytes();
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut Dripping(text)).unwrap();
    for reader in [read(text), reader] {
        let expect = ["1 a 1 1", "1 \u{feff}b 2 2"];
        assert_eq!(lines(&reader.finish(ValueType::samples())), expect);
    }
    check("\u{feff}a 1".as_bytes(), 0, &["1 a 1 1"]);
    assert_eq!(Columns::detect("\u{feff}# x\na 1 2\n".as_bytes()), Columns::Two);
}

#[test]
fn empty_frames_are_kept_but_for_what_a_last_semicolon_ends() {
    check(
        b"a;;b 1\n;x 2\nc; 3\nc 1\n",
        0,
        &["1  2 0", "2 x 2 2", "1 a 1 0", "2  1 0", "3 b 1 1", "1 c 4 4"],
    );
}

#[test]
fn the_first_frame_is_a_thread_unless_it_says_otherwise() {
    let tree = read(b"_start;b 1\na;a 1\nb_[k] 2\n").finish(ValueType::samples());
    let kinds: Vec<FrameKind> =
        tree.nodes()[1..].iter().map(|node| tree.label(node).kind).collect();
    let start = [FrameKind::User, FrameKind::User];
    assert_eq!(kinds[..2], start, "no thread is called _start");
    assert_eq!(kinds[2..], [FrameKind::Mark, FrameKind::User, FrameKind::Kernel]);
}

#[test]
fn a_function_that_was_read_before_is_a_thread_where_it_comes_first() {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::First);
    for mut input in [&b"x;work 1\n"[..], b"work;x 2\n"] {
        reader.read(&mut input).unwrap();
    }
    let tree = reader.finish(ValueType::samples());
    let kinds = tree.nodes()[1..].iter().map(|node| tree.label(node).kind);
    let (thread, function) = (FrameKind::Mark, FrameKind::User);
    assert_eq!(kinds.collect::<Vec<_>>(), [thread, function, thread, function]);
}

#[test]
fn annotations_are_kinds() {
    check(
        b"t;r_[k] 1\nt;r_[i] 2\nt;r_[j] 3\nt;r_[w] 4\nt;r_[x] 5\nt;[unknown] 6\n",
        0,
        &[
            "1 t 21 0",
            "2 [unknown] Mark 6 6",
            "2 r Kernel 1 1",
            "2 r Inlined 2 2",
            "2 r Jit 3 3",
            "2 r Waker 4 4",
            "2 r_[x] 5 5",
        ],
    );
}

#[test]
fn a_semicolon_in_an_array_type_parts_no_frames() {
    check(
        b"t;<[u8; 8] as Debug>::fmt;x 1\nt;<[u8; 9]>;y 2\nt;a; b 3\n",
        0,
        &[
            "1 t 6 0",
            "2 <[u8; 8] as Debug>::fmt 1 0",
            "3 x 1 1",
            "2 <[u8; 9]> 2 0",
            "3 y 2 2",
            "2 a 3 0",
            "3  b 3 3",
        ],
    );
    // Nor does it where the line before has a frame that ends there.
    check(b"t;[u8 1\nt;[u8; 4] 2\n", 0, &["1 t 3 0", "2 [u8 1 1", "2 [u8; 4] 2 2"]);
}

#[test]
fn bytes_that_are_no_text_stay_apart_and_readable() {
    check(b"gr\xf6\xdfe 1\ngr\xf6e 2\n", 0, &[r"1 gr\xf6\xdfe 1 1", r"1 gr\xf6e 2 2"]);
}

#[test]
fn fractions_give_the_tree_decimal_places() {
    let tree = read(b"a 1\na;b 0.25\nc 1e3\nd 0.5\n").finish(ValueType::samples());
    assert_eq!(tree.decimals(), 2);
    assert_eq!(lines(&tree), ["1 a 125 100", "2 b 25 25", "1 c 100000 100000", "1 d 50 50"]);
}

#[test]
fn a_fraction_changes_no_other_count_of_its_line() {
    for (line, expect) in [("a 1 0.5", (10, 5)), ("a 0.25 3", (25, 300)), ("a 0.5 0.25", (50, 25))]
    {
        let tree = read(line.as_bytes()).finish(ValueType::samples());
        assert_eq!((tree.before().unwrap()[1].total.0, tree.total().0), expect, "{line}");
    }
}

#[test]
fn a_fraction_that_the_sums_have_no_room_for_is_counted() {
    check(b"a 9000000000000000000\nb 0.5\n", 1, &["1 a 9000000000000000000 9000000000000000000"]);
}

#[test]
fn two_counts_on_every_line_are_before_and_after() {
    let tree = read(b"a;b 5 7\na;c 10 0\na 0 1\nd 0 0\n").finish(ValueType::samples());
    assert_eq!(lines(&tree), ["1 a 8 1", "2 b 7 7", "2 c 0 0"]);
    let before: Vec<_> =
        tree.before().unwrap().iter().map(|b| (b.total.0, b.self_weight.0)).collect();
    assert_eq!(before, [(15, 0), (15, 0), (5, 5), (10, 10)]);
}

#[test]
fn a_number_at_the_end_of_some_names_is_no_count() {
    check(b"a 1\nredis 7 12\n", 0, &["1 a 1 1", "1 redis 7 12 12"]);
    let text = b"redis 7 12\na 1\n";
    assert_eq!(Columns::detect(text), Columns::Two);
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
    assert!(matches!(reader.read(&mut &text[..]), Err(FoldedError::OneCount)));
    assert_eq!(Columns::detect(b"# 1 2\n\nx\nsome name 3\n"), Columns::One);
    assert_eq!(Columns::detect(b""), Columns::One);
}

#[test]
fn three_numbers_are_a_name_and_two_counts() {
    let tree = read(b"a 1 2 3\n").finish(ValueType::samples());
    assert_eq!(lines(&tree), ["1 a 1 3 3"]);
    assert!(tree.before().is_some());
}

/// One byte a call: every way in which blocks can part lines.
struct Dripping<'t>(&'t [u8]);

impl Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(&mut into[..1])
    }
}

#[test]
fn blocks_may_end_anywhere() {
    let text = b"a;b 1\na;b;c 2\r\n# x 3\na;b;d 4\nq 1.5";
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut Dripping(text)).unwrap();
    assert_eq!(
        lines(&reader.finish(ValueType::samples())),
        lines(&read(text).finish(ValueType::samples()))
    );
}

/// Fails once in a way, then goes on.
struct Failing<'t>(Option<io::ErrorKind>, &'t [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or_else(|| self.1.read(into), |kind| Err(kind.into()))
    }
}

#[test]
fn reading_goes_on_after_a_signal_and_ends_at_an_error() {
    let read = |kind| {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader
            .read(&mut Failing(Some(kind), b"a 1\n"))
            .map(|()| reader.finish(ValueType::samples()))
    };
    let tree = read(io::ErrorKind::Interrupted).unwrap();
    assert_eq!(lines(&tree), ["1 a 1 1"]);
    assert!(matches!(read(io::ErrorKind::TimedOut), Err(FoldedError::Io(_))));
}

#[test]
fn lines_longer_than_a_block_are_whole() {
    let name = "x".repeat(3 * BLOCK);
    let text = format!("a;{name} 2\na;{name};b 3\n");
    let tree = read(text.as_bytes()).finish(ValueType::samples());
    let names: Vec<usize> = tree.nodes().iter().map(|node| tree.label(node).name.len()).collect();
    assert_eq!(names, [3, 1, 3 * BLOCK, 1]);
    assert_eq!(tree.total(), Weight(5));
}

#[test]
fn time_order_merges_neighbours_only() {
    let text = b"t;b 1\nt;a 2\nt;b 3\nt;b;c 4\n";
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Time);
    reader.read(&mut &text[..]).unwrap();
    let tree = reader.finish(ValueType::samples());
    assert_eq!(lines(&tree), ["1 t 10 0", "2 b 1 1", "2 a 2 2", "2 b 7 3", "3 c 4 4"]);
}

#[test]
fn folded_recursion_keeps_time_in_order() {
    let tree = |text: &[u8], recursion| {
        let reader = FoldedReader::new(Columns::One, SiblingOrder::Time);
        let mut reader = reader.with_recursion(recursion);
        reader.read(&mut &*text).unwrap();
        reader.finish(ValueType::samples())
    };
    let folded = tree(b"t;f;f 1\nt;f;f;g 2\nt;f;f 4\n", Recursion::Collapse);
    let plain = tree(b"t;f 1\nt;f;g 2\nt;f 4\n", Recursion::Keep);
    assert_eq!((folded.nodes(), folded.gaps()), (plain.nodes(), plain.gaps()));
    assert_eq!(plain.gaps().map(|gaps| gaps[3]), Some(Weight(1)));
}

#[test]
fn first_order_merges_all_and_weight_order_sorts() {
    let text = b"t;b 1\nt;a 2\nt;c 4\nt;b 3\n";
    let tree = |order| {
        let mut reader = FoldedReader::new(Columns::One, order);
        reader.read(&mut &text[..]).unwrap();
        lines(&reader.finish(ValueType::samples()))
    };
    assert_eq!(tree(SiblingOrder::First), ["1 t 10 0", "2 b 4 4", "2 a 2 2", "2 c 4 4"]);
    assert_eq!(tree(SiblingOrder::Weight), ["1 t 10 0", "2 b 4 4", "2 c 4 4", "2 a 2 2"]);
}

/// A box of a chart: its depth and name, where it starts and where it ends.
type Span = (usize, String, u64, u64);

/// What flamegraph.pl --flamechart and inferno draw of lines from left to right: a call goes on as
/// long as the lines have it and all its callers, and one that comes again is another box.
fn spans_of_lines(lines: &[(String, u64)]) -> Vec<Span> {
    let (mut now, mut open, mut spans) = (0, Vec::<(&str, u64)>::new(), Vec::new());
    let end = [(String::new(), 0)];
    for (stack, count) in lines.iter().chain(&end) {
        let frames: Vec<&str> = stack.split(';').filter(|frame| !frame.is_empty()).collect();
        let both = open.iter().zip(&frames);
        let kept = both.take_while(|((before, _), frame)| before == *frame).count();
        while open.len() > kept {
            let depth = open.len();
            spans.extend(open.pop().map(|(name, start)| (depth, name.to_owned(), start, now)));
        }
        open.extend(frames[kept..].iter().map(|name| (*name, now)));
        now += count;
    }
    spans.sort();
    spans
}

/// The boxes of a tree where its gaps put them.
fn spans_of(tree: &CallTree) -> Vec<Span> {
    let mut spans = Vec::new();
    // For each level where its next node starts.
    let mut next = vec![0];
    for (index, node) in tree.nodes().iter().enumerate() {
        let depth = node.depth as usize;
        next.truncate(depth + 1);
        let start = next[depth] + tree.gaps().map_or(0, |gaps| gaps[index].0);
        let end = start + node.total.0;
        next[depth] = end;
        next.push(start);
        if depth > 0 {
            spans.push((depth, tree.label(node).name.clone(), start, end));
        }
    }
    spans.sort();
    spans
}

fn in_time(lines: &[(String, u64)], parts: usize) -> CallTree {
    let text = |lines: &[(String, u64)]| -> String {
        lines.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
    };
    let part = |lines: &[(String, u64)]| {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Time);
        reader.read(&mut text(lines).as_bytes()).unwrap();
        reader.into_part(parts == 1)
    };
    let parts = crate::FoldedParts::new(lines.chunks(lines.len().div_ceil(parts)).map(part));
    parts.unwrap().finish(ValueType::samples(), SiblingOrder::Time)
}

#[test]
fn self_time_stays_between_the_calls_that_it_was_between() {
    let lines = [("a;b", 1), ("a", 1), ("a;b", 1), ("a;b;c", 2), ("a;b", 1), ("a", 4)];
    let lines = lines.map(|(stack, count)| (stack.to_owned(), count));
    let tree = in_time(&lines, 1);
    assert_eq!(super::tests::lines(&tree), ["1 a 10 5", "2 b 1 1", "2 b 4 2", "3 c 2 2"]);
    let gaps: Vec<u64> = tree.gaps().unwrap().iter().map(|gap| gap.0).collect();
    assert_eq!(gaps, [0, 0, 0, 1, 1]);
    assert_eq!(spans_of(&tree), spans_of_lines(&lines));
    // Without anything in between there are no gaps to keep.
    assert_eq!(in_time(&lines[..1], 1).gaps(), None);
}

#[test]
fn charts_are_drawn_as_the_lines_follow_each_other() {
    let stacks = ["a", "a;b", "a;b;c", "a;c", "a;b;a", "b", "b;a", "a;b;c;b", "a;a"];
    let mut state = 5_u64;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % limit
    };
    for case in 0..400 {
        let lines: Vec<(String, u64)> = (0..1 + random(25))
            .map(|_| (stacks[random(stacks.len() as u64) as usize].to_owned(), 1 + random(3)))
            .collect();
        let expect = spans_of_lines(&lines);
        for parts in [1, 2, 5] {
            let tree = in_time(&lines, parts);
            assert_eq!(spans_of(&tree), expect, "case {case} in {parts} parts: {lines:?}");
            // Turned round twice it is the same chart.
            let there = tree.reversed(SiblingOrder::Time);
            let back = there.reversed(SiblingOrder::Time);
            assert_eq!(spans_of(&back), expect, "case {case} turned: {lines:?}");
        }
    }
}

#[test]
fn a_chart_of_two_profiles_turned_round_weighs_as_much_before() {
    let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Time);
    reader.read(&mut &b"a 1 1\na;b 2 2\na 4 4\n"[..]).unwrap();
    let tree = reader.finish(ValueType::samples());
    let before = |tree: &CallTree| tree.before().unwrap()[0].total;
    assert_eq!(before(&tree), Weight(7));
    assert_eq!(before(&tree.reversed(SiblingOrder::Time)), Weight(7));
}

/// The stacks of a text, and the lines of it that are left out with their reasons.
fn left_out(text: &[u8]) -> (Vec<String>, Vec<(u64, &'static str)>) {
    let reader = read(text);
    let left_out = reader.first_skipped().iter().map(|line| (line.number, line.reason)).collect();
    assert!(reader.skipped_lines() >= reader.first_skipped().len() as u64);
    let mut stacks = Vec::new();
    let tree = reader.finish(ValueType::samples());
    crate::write_folded(&tree, crate::Annotations::Write, &mut stacks).unwrap();
    (String::from_utf8(stacks).unwrap().lines().map(str::to_owned).collect(), left_out)
}

#[test]
fn a_line_that_is_too_long_is_counted_and_not_kept() {
    let long = "x".repeat(MAX_LINE + 5);
    for long in [long.clone(), format!("{long};y 7")] {
        let text = format!("a;b 1\n{long}\na;c 2\n{long}\n{long}\nnone\na;d 4");
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader.read(&mut text.as_bytes()).unwrap();
        let skipped: Vec<_> = reader.first_skipped().iter().map(|l| (l.number, l.reason)).collect();
        let expect = [(2, TOO_LONG), (4, TOO_LONG), (5, TOO_LONG), (6, NO_COUNT)];
        assert_eq!((skipped.as_slice(), reader.skipped_lines()), (&expect[..], 4));
        assert_eq!(reader.finish(ValueType::samples()).total(), Weight(7));
    }
    // The longest that is read, at the end of the text and before others.
    let longest = format!("{} 1", "x".repeat(MAX_LINE - 3));
    let text = format!("{longest}\na 2\n{longest}");
    assert_eq!(read(text.as_bytes()).skipped_lines(), 0);
}

#[test]
fn a_count_that_the_sum_has_no_room_for_is_left_out_and_named() {
    let (stacks, skipped) = left_out(b"a 18446744073709551610\n\na;b 7\na;c 4\na;d 1\n");
    assert_eq!(skipped, [(3, NO_ROOM), (5, NO_ROOM)]);
    assert_eq!(stacks, ["a 18446744073709551610", "a;c 4"]);
    // Of two columns, either; and places that the sum has no room for.
    let (stacks, skipped) = left_out(b"a 18446744073709551610 1\na;b 7 0\na;c 4 2\n");
    assert_eq!((stacks.len(), skipped), (2, vec![(2, NO_ROOM)]));
    let (stacks, skipped) = left_out(b"a 18446744073709551610\na;b 0.5\na;c 4\n");
    assert_eq!((stacks.len(), skipped), (2, vec![(2, NO_ROOM)]));
    let (stacks, skipped) = left_out(b"a 0.5\na;b 1844674407370955161\na;c 4\n");
    assert_eq!((stacks.len(), skipped), (2, vec![(2, NO_ROOM)]));
}

#[test]
fn a_count_that_rounding_takes_away_is_left_out_and_said() {
    let reason = "its count is below a billionth, and is rounded to 0";
    let (stacks, skipped) = left_out(b"a 1e-30\na;b 3\na;c 0.0000000004\na;d 0.000\na;e 0\n");
    assert_eq!((stacks, skipped), (vec!["a;b 3".to_owned()], vec![(1, reason), (3, reason)]));
    let (stacks, skipped) = left_out(b"a 1e-30 5\na;b 0 1e-30\n");
    assert_eq!((stacks.len(), skipped), (1, vec![(2, reason)]));
}
