use super::*;
use crate::address::{FileOffset, ProcessAddress};
use crate::frame::{Frame, Location};
use crate::ids::StackId;
use crate::ids::{Pid, Tid};
use crate::image::Image;
use crate::profile::Profile;

/// A profile of `comm;outermost;...;leaf` stacks, each with its weight.
pub(crate) fn profile_of(stacks: &[(&str, u64)]) -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for (path, weight) in stacks {
        let mut names = path.split(';');
        let thread = profile.add_thread(names.next().unwrap(), Pid(1), Tid(1));
        let mut stack = StackId::EMPTY;
        for name in names {
            let frame = profile.add_frame(name, FrameKind::User);
            let location = profile.add_location(Location::named(frame));
            stack = profile.push_stack(stack, location);
        }
        profile.add_sample(thread, stack, &[*weight]);
    }
    profile
}

/// The tree as `depth name total self` lines.
fn lines(tree: &CallTree) -> Vec<String> {
    let line =
        |n: &Node| format!("{} {} {} {}", n.depth, tree.label(n).name, n.total.0, n.self_weight.0);
    tree.nodes().iter().map(line).collect()
}

#[track_caller]
fn check(stacks: &[(&str, u64)], expect: &[&str]) {
    let profile = profile_of(stacks);
    assert_eq!(lines(&CallTree::from_profile(&profile, &TreeOptions::default())), expect);
}

#[test]
fn an_empty_profile_is_a_root_alone() {
    check(&[], &["0 all 0 0"]);
}

#[test]
fn names_that_share_a_prefix_do_not_split_a_tower() {
    check(
        &[("c;a", 100), ("c;a-b", 50), ("c;a;x", 100)],
        &["0 all 250 0", "1 c 250 0", "2 a 200 100", "3 x 100 100", "2 a-b 50 50"],
    );
}

#[test]
fn recursion_keeps_one_node_a_path() {
    check(
        &[("c;f;f;f", 2), ("c;f;f", 3)],
        &["0 all 5 0", "1 c 5 0", "2 f 5 0", "3 f 5 3", "4 f 2 2"],
    );
}

#[test]
fn samples_without_weight_leave_no_node() {
    check(&[("c;a", 0), ("c;b", 1)], &["0 all 1 0", "1 c 1 0", "2 b 1 1"]);
}

#[test]
fn inlined_frames_stand_between_their_callers() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let inner = profile.add_frame("memcmp", FrameKind::Inlined);
    let outer = profile.add_frame("find", FrameKind::User);
    let mut location = Location::named(inner);
    location.frames.push(outer);
    let location = profile.add_location(location);
    let stack = profile.push_stack(StackId::EMPTY, location);
    let thread = profile.add_thread("search", Pid(7), Tid(8));
    profile.add_sample(thread, stack, &[4]);
    let root = RootFrame { process: false, pid: true, tid: true, ..RootFrame::default() };
    let options = TreeOptions { root, ..TreeOptions::default() };
    let tree = CallTree::from_profile(&profile, &options);
    assert_eq!(lines(&tree), ["0 all 4 0", "1 search-7/8 4 0", "2 find 4 0", "3 memcmp 4 4"]);
}

#[test]
fn children_and_paths_follow_the_links() {
    let profile = profile_of(&[("c;a;x", 1), ("c;b;y", 2), ("c;b;z", 3)]);
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    let name = |id: NodeId| tree.label(&tree.nodes()[id.index()]).name.clone();
    let (thread, _) = tree.children(NodeId::ROOT).next().unwrap();
    let children: Vec<String> = tree.children(thread).map(|(id, _)| name(id)).collect();
    assert_eq!(children, ["a", "b"]);
    let last = NodeId(tree.nodes().len() as u32 - 1);
    assert_eq!(tree.path(last).into_iter().map(name).collect::<Vec<_>>(), ["c", "b", "z"]);
}

/// Collapses the recursion of one stack below the thread `c`.
#[track_caller]
fn check_collapsed(stack: &str, expect: &str) {
    let profile = profile_of(&[(&format!("c;{stack}"), 7)]);
    let options = TreeOptions { recursion: Recursion::Collapse, ..TreeOptions::default() };
    let tree = CallTree::from_profile(&profile, &options);
    let leaf = tree.nodes().iter().position(|node| node.self_weight > Weight(0)).unwrap();
    let path = tree.path(NodeId(leaf as u32));
    let names = path.iter().map(|id| tree.label(&tree.nodes()[id.index()]).name.as_str());
    assert_eq!(names.collect::<Vec<_>>().join(";"), format!("c;{expect}"), "of {stack}");
    assert_eq!(tree.total(), Weight(7));
}

#[test]
fn direct_recursion_collapses_to_one_box() {
    check_collapsed("f", "f");
    check_collapsed("f;f", "f");
    check_collapsed("main;f;f;f;f;leaf", "main;f;leaf");
    check_collapsed("f;g;g;f", "f;g;f");
    // The thread's name is not a function.
    check_collapsed("c;c;x", "c;x");
}

#[test]
fn mutual_recursion_collapses_to_one_round() {
    check_collapsed("a;b;a;b", "a;b");
    check_collapsed("a;b;a;b;a", "a;b;a");
    check_collapsed("m;a;b;c;a;b;c;a;b;c;x", "m;a;b;c;x");
    check_collapsed("eval;call;call;eval;call;eval;call;leaf", "eval;call;leaf");
    check_collapsed("a;b;c;b;a", "a;b;c;b;a");
}

#[test]
fn rounds_that_are_longer_than_the_longest_run_stay() {
    let round = |len: usize| (0..len).map(|n| format!("f{n}")).collect::<Vec<_>>().join(";");
    let (longest, longer) = (round(Recursion::LONGEST_RUN), round(Recursion::LONGEST_RUN + 1));
    check_collapsed(&format!("{longest};{longest};{longest}"), &longest);
    check_collapsed(&format!("{longer};{longer}"), &format!("{longer};{longer}"));
}

#[test]
fn collapsed_stacks_of_different_depth_share_their_boxes() {
    let profile = profile_of(&[("c;m;f;f;x", 1), ("c;m;f;x", 2), ("c;m;f;f;f", 4)]);
    let options = TreeOptions { recursion: Recursion::Collapse, ..TreeOptions::default() };
    let expect = ["0 all 7 0", "1 c 7 0", "2 m 7 0", "3 f 7 4", "4 x 3 3"];
    assert_eq!(lines(&CallTree::from_profile(&profile, &options)), expect);
}

fn tree_of(stacks: &[(&str, u64)]) -> CallTree {
    CallTree::from_profile(&profile_of(stacks), &TreeOptions::default())
}

#[test]
fn reversed_stacks_start_at_their_leaves() {
    let tree = tree_of(&[("c;a;x", 1), ("c;b;x", 2), ("c", 4)]);
    let expect = ["0 all 7 0", "1 c 4 4", "1 x 3 0", "2 a 1 0", "3 c 1 1", "2 b 2 0", "3 c 2 2"];
    assert_eq!(lines(&tree.reversed(SiblingOrder::Name)), expect);
}

#[test]
fn a_base_may_be_any_frame_and_the_innermost_counts() {
    let tree = tree_of(&[("c;a;x;a;y", 1), ("c;b;x", 2), ("a", 4), ("c;a", 8)]);
    let bases = ["a".to_owned()];
    // A function and a thread of one name are two things.
    let expect = ["0 all 13 0", "1 a 9 8", "2 y 1 1", "1 a 4 4"];
    assert_eq!(lines(&tree.from_bases(&bases, SiblingOrder::Name)), expect);
    assert_eq!(lines(&tree.from_bases(&["zz".to_owned()], SiblingOrder::Name)), ["0 all 0 0"]);
    assert_eq!(lines(&tree.from_bases(&[], SiblingOrder::Name)), lines(&tree));
}

#[test]
fn callers_of_a_function_bring_its_weight() {
    let tree = tree_of(&[("c;a;f;x", 1), ("c;b;f;f;y", 2), ("c;b;f", 4), ("c;b", 8)]);
    let expect = ["0 all 7 0", "1 f 7 0", "2 a 1 0", "3 c 1 1", "2 b 6 0", "3 c 6 6"];
    assert_eq!(lines(&tree.callers("f", SiblingOrder::Name)), expect);
    assert_eq!(lines(&tree.callers("g", SiblingOrder::Name)), ["0 all 0 0"]);
}

#[test]
fn functions_are_called_with_or_without_their_annotation() {
    let label = |kind| Label { name: "read".to_owned(), kind };
    let cases = [
        (FrameKind::Kernel, "read", true),
        (FrameKind::Kernel, "read_[k]", true),
        (FrameKind::Kernel, "read_[j]", false),
        (FrameKind::User, "read", true),
        (FrameKind::User, "read_[k]", false),
        (FrameKind::User, "reader", false),
    ];
    for (kind, name, expect) in cases {
        assert_eq!(label(kind).is_called(name), expect, "{kind:?} {name}");
    }
}

#[test]
fn siblings_can_stand_by_weight() {
    let profile = profile_of(&[("c;a", 1), ("c;b;x", 3), ("c;b;y", 4), ("c;d", 7)]);
    let options = TreeOptions { order: SiblingOrder::Weight, ..TreeOptions::default() };
    let tree = CallTree::from_profile(&profile, &options);
    let expect = ["0 all 15 0", "1 c 15 0", "2 b 7 0", "3 y 4 4", "3 x 3 3", "2 d 7 7", "2 a 1 1"];
    assert_eq!(lines(&tree), expect);
    let ends: Vec<u32> = tree.nodes().iter().map(|node| node.end).collect();
    assert_eq!(ends, [7, 7, 5, 4, 5, 6, 7]);
    let parents: Vec<u32> = tree.nodes().iter().map(|node| node.parent.0).collect();
    assert_eq!(parents, [0, 0, 1, 2, 2, 1, 1]);
}

#[test]
fn the_root_can_be_widened_and_never_narrowed() {
    let mut tree = tree_of(&[("c", 4)]);
    assert!(!tree.widen(Weight(3)));
    assert!(tree.widen(Weight(10)));
    assert_eq!(lines(&tree), ["0 all 10 6", "1 c 4 4"]);
}

#[test]
fn weights_can_be_scaled_and_never_overflow() {
    let mut tree = tree_of(&[("c", 4)]);
    assert_eq!(tree.scale(27, 2), Ok(()));
    assert_eq!((tree.decimals(), &*lines(&tree).join(", ")), (2, "0 all 108 0, 1 c 108 108"));
    assert_eq!(tree.scale(100, 1), Ok(()));
    assert_eq!((tree.decimals(), tree.total()), (1, Weight(108)));
    assert_eq!(tree.scale(5, 0), Ok(()));
    assert_eq!((tree.decimals(), tree.total()), (0, Weight(54)));
    assert_eq!(tree.scale(u64::MAX, 0), Err(TooLarge));
    assert_eq!(tree.total(), Weight(54));
}

#[test]
fn a_profile_of_a_tree_gives_the_tree_again() {
    let tree = tree_of(&[("c;a;x", 1), ("c;b;x", 2), ("c", 4), ("d;b", 8)]);
    let again = CallTree::from_profile(&tree.to_profile(), &TreeOptions::default());
    assert_eq!(lines(&again), lines(&tree));
}

#[test]
fn merging_early_changes_nothing() {
    let stacks = ["b;x", "a;y;z", "b;x", "a;y", "b", "a;y;z"];
    let grow = |compact: bool| {
        let mut builder = TreeBuilder::new();
        for (stack, weight) in stacks.iter().zip(1..) {
            let below = |at, name: &str| {
                let label = builder.label(name, FrameKind::User);
                builder.child(at, label)
            };
            let leaf = stack.split(';').fold(BuilderNode::ROOT, below);
            builder.add(leaf, Weight(weight));
            builder.add_before(leaf, Weight(1));
            if compact {
                builder.compact();
            }
        }
        builder
    };
    for order in [SiblingOrder::Name, SiblingOrder::First, SiblingOrder::Weight] {
        let (early, late) = (grow(true), grow(false));
        let early = early.finish(ValueType::samples(), order);
        let late = late.finish(ValueType::samples(), order);
        assert_eq!(lines(&early), lines(&late), "{order:?}");
        assert_eq!(early.before(), late.before(), "{order:?}");
        assert_eq!(late.total(), Weight(21));
    }
}

#[test]
fn functions_of_shared_libraries_are_told_from_the_image() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let thread = profile.add_thread("c", Pid(1), Tid(1));
    for path in ["/usr/lib/libc.so.6", "/usr/bin/prog.social", "/opt/x.so (deleted)", "[vdso]"] {
        let image = profile.add_image(Image {
            path: path.to_owned(),
            build_id: None,
            start: ProcessAddress(0),
            end: ProcessAddress(1),
            offset: FileOffset(0),
        });
        let frame = profile.add_frame(path, FrameKind::User);
        let location = Location { image: Some(image), ..Location::named(frame) };
        let location = profile.add_location(location);
        let stack = profile.push_stack(StackId::EMPTY, location);
        profile.add_sample(thread, stack, &[1]);
    }
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    let kind = |node: &Node| (tree.label(node).name.as_str(), tree.label(node).kind);
    let kinds: Vec<_> = tree.nodes().iter().skip(2).map(kind).collect();
    let expect = [
        ("/opt/x.so (deleted)", FrameKind::Library),
        ("/usr/bin/prog.social", FrameKind::User),
        ("/usr/lib/libc.so.6", FrameKind::Library),
        ("[vdso]", FrameKind::Library),
    ];
    assert_eq!(kinds, expect);
}

#[test]
fn calls_from_two_lines_are_one_box_or_two() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let thread = profile.add_thread("make", Pid(7), Tid(7));
    let (name, file) = (profile.intern("parse"), Some(profile.intern("/src/p.c")));
    for line in [Some(7), Some(12), Some(7), None] {
        let frame = Frame { name, kind: FrameKind::User, file, line };
        let frame = profile.add_whole_frame(frame);
        let location = profile.add_location(Location::named(frame));
        let stack = profile.push_stack(StackId::EMPTY, location);
        profile.add_sample(thread, stack, &[1]);
    }
    let tree =
        |lines| CallTree::from_profile(&profile, &TreeOptions { lines, ..TreeOptions::default() });
    assert_eq!(lines(&tree(false)), ["0 all 4 0", "1 make 4 0", "2 parse 4 4"]);
    let boxes = ["2 parse (p.c) 1 1", "2 parse (p.c:12) 1 1", "2 parse (p.c:7) 2 2"];
    assert_eq!(lines(&tree(true)), [&["0 all 4 0", "1 make 4 0"], &boxes[..]].concat());
}

#[test]
fn renamed_nodes_are_merged_where_their_names_become_equal() {
    let mut builder = TreeBuilder::new();
    for (name, weight) in [("f.part.1", 1), ("g", 2), ("f.part.2", 4)] {
        let label = builder.label(name, FrameKind::User);
        let node = builder.child(BuilderNode::ROOT, label);
        builder.add(node, Weight(weight));
    }
    builder.rename(|name| match name.split_once('.') {
        Some((name, _)) => name.to_owned().into(),
        None => name.into(),
    });
    let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
    let found: Vec<(&str, u64)> = tree.nodes()[1..]
        .iter()
        .map(|node| (tree.label(node).name.as_str(), node.total.0))
        .collect();
    assert_eq!(found, [("f", 5), ("g", 2)]);
    // The root stands for the whole profile, whatever functions are called.
    let mut builder = TreeBuilder::new();
    builder.rename(|name| format!("new {name}").into());
    assert_eq!(lines(&builder.finish(ValueType::samples(), SiblingOrder::Name)), ["0 all 0 0"]);
}

#[test]
fn a_second_number_of_each_sample_is_its_weight_before() {
    let mut profile =
        Profile::new(vec![ValueType::samples(), ValueType::new("cpu", "nanoseconds")]);
    let thread = profile.add_thread("server", Pid(1), Tid(1));
    let frame = profile.add_frame("main", FrameKind::User);
    let location = profile.add_location(Location::named(frame));
    let stack = profile.push_stack(StackId::EMPTY, location);
    profile.add_sample(thread, stack, &[3, 3_000]);
    let mut builder = TreeBuilder::new();
    let options = TreeOptions { value: Some(1), ..TreeOptions::default() };
    builder.add_profile_with(&profile, &options, |values| values[0]);
    let tree = builder.finish(ValueType::new("cpu", "nanoseconds"), SiblingOrder::Name);
    assert_eq!(tree.total(), Weight(3_000));
    assert_eq!(tree.before().unwrap()[0].total, Weight(3));
}

#[test]
fn a_tree_is_empty_until_something_is_added() {
    let mut builder = TreeBuilder::new();
    assert!(builder.is_empty());
    let label = builder.label("main", FrameKind::User);
    builder.child(BuilderNode::ROOT, label);
    assert!(!builder.is_empty());
    assert_eq!(builder.len(), 2);
}

#[test]
fn the_only_outermost_frame_can_have_another_name() {
    let tree = tree_of(&[("old;a", 1), ("old;b", 2)]);
    let renamed = ["0 all 3 0", "1 new 3 0", "2 a 1 1", "2 b 2 2"];
    assert_eq!(lines(&tree.with_single_root("new")), renamed);
    let several = tree_of(&[("old;a", 1), ("other;b", 2)]);
    assert_eq!(lines(&several.clone().with_single_root("new")), lines(&several));
}

#[test]
fn a_tree_of_two_profiles_and_one_of_one_have_both_weights_together() {
    let grown = |name: &str, before: Option<u64>| {
        let mut builder = TreeBuilder::new();
        let label = builder.label(name, FrameKind::User);
        let node = builder.child(BuilderNode::ROOT, label);
        builder.add(node, Weight(4));
        before.into_iter().for_each(|before| builder.add_before(node, Weight(before)));
        builder
    };
    for (one, other) in [(Some(1), Some(2)), (Some(1), None), (None, Some(2)), (None, None)] {
        let mut both = grown("a", one);
        both.append(grown("b", other));
        let tree = both.finish(ValueType::samples(), SiblingOrder::Name);
        assert_eq!(lines(&tree), ["0 all 8 0", "1 a 4 4", "1 b 4 4"]);
        let found = tree.before().map(|before| before.iter().map(|b| b.total.0).collect());
        let [of_one, of_other] = [one, other].map(Option::unwrap_or_default);
        let expect = one.or(other).map(|_| vec![of_one + of_other, of_one, of_other]);
        assert_eq!(found, expect, "{one:?} {other:?}");
    }
}

#[test]
fn sums_that_do_not_fit_are_told_from_those_that_do() {
    let tree = |before: &[u64], after: &[u64]| {
        let mut builder = TreeBuilder::new();
        let label = builder.label("main", FrameKind::User);
        let node = builder.child(BuilderNode::ROOT, label);
        after.iter().for_each(|weight| builder.add(node, Weight(*weight)));
        before.iter().for_each(|weight| builder.add_before(node, Weight(*weight)));
        builder.finish(ValueType::samples(), SiblingOrder::Name)
    };
    assert!(!tree(&[], &[u64::MAX - 2, 1]).is_too_large());
    assert!(tree(&[], &[u64::MAX - 2, 3]).is_too_large());
    assert!(!tree(&[u64::MAX - 2, 1], &[1]).is_too_large());
    assert!(tree(&[u64::MAX - 2, 3], &[1]).is_too_large());
    assert_eq!(tree(&[], &[1]).max_depth(), 1);
    assert_eq!(tree_of(&[("c;a;x", 1), ("c;b", 2)]).max_depth(), 3);
}
