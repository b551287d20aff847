use super::*;
use crate::spread::Prior;
use crate::test_runs::{diff, path, run};
use crate::{DiffConfig, DiffError, Run};
use flame_profile::{Columns, FoldedReader, SiblingOrder};

/// A path with total and self weight, before and after.
type Row<Path> = (Path, (u64, u64), (u64, u64));

#[track_caller]
fn check(before: &str, after: &str, expect: &[Row<&str>]) {
    let tree = diff(before, after, Scaling::None);
    let found: Vec<Row<String>> = tree
        .nodes()
        .iter()
        .map(|node| {
            let pair = |weights: Weights| (weights.total.0, weights.self_weight.0);
            (path(&tree, node), pair(node.before), pair(node.after))
        })
        .collect();
    let found: Vec<Row<&str>> = found.iter().map(|(path, b, a)| (path.as_str(), *b, *a)).collect();
    assert_eq!(found, expect);
}

#[test]
fn the_union_has_each_path_once_in_order() {
    check(
        "p;a;b;c 1\np;a;b;d 2\np;e 4\nz 3\n",
        "p;a 8\np;a;b;c;d 16\np;aa;x 32\np;f 64\n",
        &[
            ("", (10, 0), (120, 0)),
            ("p", (7, 0), (120, 0)),
            ("p;a", (3, 0), (24, 8)),
            ("p;a;b", (3, 0), (16, 0)),
            ("p;a;b;c", (1, 1), (16, 0)),
            ("p;a;b;c;d", (0, 0), (16, 16)),
            ("p;a;b;d", (2, 2), (0, 0)),
            ("p;aa", (0, 0), (32, 0)),
            ("p;aa;x", (0, 0), (32, 32)),
            ("p;e", (4, 4), (0, 0)),
            ("p;f", (0, 0), (64, 64)),
            ("z", (3, 3), (0, 0)),
        ],
    );
}

#[test]
fn ends_and_children_are_those_of_a_tree() {
    let tree = diff("p;a;b 1\np;c 1\nq 1\n", "p;a;d;e 1\nq;r 1\n", Scaling::None);
    let described: Vec<(String, u32, usize)> = tree
        .nodes()
        .iter()
        .map(|node| (path(&tree, node), node.end, node.parent.index()))
        .collect();
    let expect = [
        ("", 9, 0),
        ("p", 7, 0),
        ("p;a", 6, 1),
        ("p;a;b", 4, 2),
        ("p;a;d", 6, 2),
        ("p;a;d;e", 6, 4),
        ("p;c", 7, 1),
        ("q", 9, 0),
        ("q;r", 9, 7),
    ];
    let expect = expect.map(|(path, end, parent)| (path.to_owned(), end, parent));
    assert_eq!(described, expect);
    let children: Vec<&str> =
        tree.children(NodeId::ROOT).map(|(_, node)| tree.label(node).name.as_str()).collect();
    assert_eq!(children, ["p", "q"]);
}

#[test]
fn presence_is_told_by_totals() {
    let tree = diff("p;a;b 1\n", "p;a 1\np;c 1\n", Scaling::None);
    let found: Vec<(String, Presence)> =
        tree.nodes().iter().map(|node| (path(&tree, node), node.presence())).collect();
    let expect = [
        ("", Presence::Both),
        ("p", Presence::Both),
        ("p;a", Presence::Both),
        ("p;a;b", Presence::Vanished),
        ("p;c", Presence::New),
    ];
    assert_eq!(found, expect.map(|(path, presence)| (path.to_owned(), presence)));
}

#[test]
fn several_runs_a_side_are_summed_up() {
    let runs = [run("p;a 1\n"), run("p;a 2\np;b 4\n"), run("p;c 8\n")];
    let config = DiffConfig { scaling: Scaling::None, ..DiffConfig::default() };
    let tree = DiffTree::new(&runs[..2], &runs[2..], &config).unwrap();
    assert_eq!((tree.before().total, tree.after().total), (Weight(7), Weight(8)));
    // Two runs before, one after: a run is compared with a run.
    assert_eq!(tree.scale().factor(), 0.5);
    assert_eq!(tree.total_change(tree.root().before, tree.root().after), 4.5);
}

#[test]
fn decimal_places_of_the_sides_are_made_equal() {
    let tree = diff("p;a 1.25\n", "p;a 2\n", Scaling::None);
    assert_eq!(tree.decimals(), 2);
    assert_eq!((tree.before().total, tree.after().total), (Weight(125), Weight(200)));
}

#[test]
fn scaling_by_a_function_or_time_needs_it() {
    let scaled = |scaling, durations: [Option<u64>; 2]| {
        let mut runs = [run("p;work 30\np;rest 10\n"), run("p;work 60\np;rest 60\n")];
        for (run, duration) in runs.iter_mut().zip(durations) {
            run.duration = duration.map(Nanos);
        }
        let config = DiffConfig { scaling, ..DiffConfig::default() };
        DiffTree::new(&runs[..1], &runs[1..], &config).map(|tree| tree.scale().factor())
    };
    let by = |name: &str| Scaling::Function(name.to_owned());
    assert_eq!(scaled(by("work"), [None, None]), Ok(2.0));
    assert_eq!(scaled(Scaling::Total, [None, None]), Ok(3.0));
    assert_eq!(scaled(Scaling::Time, [Some(4_000), Some(10_000)]), Ok(2.5));
    let missing = DiffError::NoFunction { side: "before", function: "wrok".to_owned() };
    assert_eq!(scaled(by("wrok"), [None, None]), Err(missing));
    let no_duration = DiffError::NoDuration { name: "test.folded".to_owned() };
    assert_eq!(scaled(Scaling::Time, [Some(1), None]), Err(no_duration));
}

#[test]
fn parts_add_up_to_the_change_of_the_whole() {
    let before = "p;a;b 13\np;a 7\np;c;b 5\nq 11\n";
    let after = "p;a;b 2\np;a;d 17\np 3\nr;s 1\n";
    for scaling in [Scaling::Total, Scaling::None] {
        let tree = diff(before, after, scaling);
        let change = |node: &DiffNode| tree.total_change(node.before, node.after);
        for (index, node) in tree.nodes().iter().enumerate() {
            let below = tree.children(NodeId::from_index(index as u32));
            let parts: f64 = below.map(|(_, child)| change(child)).sum();
            let own = tree.self_change(node.before, node.after);
            assert!((change(node) - own - parts).abs() < 1e-9, "{}", path(&tree, node));
        }
        let own = tree.nodes().iter().map(|node| tree.self_change(node.before, node.after));
        assert!((own.sum::<f64>() - change(tree.root())).abs() < 1e-9);
    }
}

#[test]
fn the_smallest_change_follows_from_samples_runs_and_tests() {
    let mut tree = diff("a 10\nb 10\n", "a 10\nb 10\n", Scaling::Total);
    (tree.before.samples, tree.after.samples) = (1_000.0, 4_000.0);
    tree.after.names = vec!["one".to_owned(), "other".to_owned()];
    // One change in twenty, of twenty that are tested: p of 0.0025, which is 3.023341 deviations.
    tree.judged = Judged { tested: 20, usual: Prior::SAMPLES };
    let close = |found: Option<f64>, expect: f64| {
        assert!((found.unwrap() / expect - 1.0).abs() < 1e-4, "{found:?} {expect}");
    };
    let points = |share: f64, before: f64, after: f64| {
        100.0 * 3.023_341 * (share * (1.0 - share) * (1.0 / before + 1.0 / after)).sqrt()
    };
    close(tree.smallest_change(0.2), points(0.2, 1_000.0, 4_000.0));
    close(tree.smallest_change(0.5), points(0.5, 1_000.0, 4_000.0));
    // Six runs of 1,000 before, six of 2,000 after.
    close(tree.smallest_change_with(0.2, 6), points(0.2, 6_000.0, 12_000.0));
    // One run says nothing of how runs differ: two are assumed at least.
    assert_eq!(tree.smallest_change_with(0.2, 1), tree.smallest_change_with(0.2, 2));
    // Where only the runs say how they differ, their degrees of freedom count: 3 runs have 1, and
    // Student's t is 254.6 there; 4 have 2, and it is 19.962.
    tree.judged.usual = Prior::NONE;
    let deviation = points(0.2, 1_000.0, 4_000.0) / 3.023_341;
    close(tree.smallest_change(0.2), 254.646 * deviation);
    let deviation = points(0.2, 2_000.0, 4_000.0) / 3.023_341;
    close(tree.smallest_change_with(0.2, 2), 19.962 * deviation);
    // With one run a side there are none.
    tree.after.names.pop();
    assert_eq!(tree.smallest_change(0.2), None);
    tree.judged = Judged { tested: 0, usual: Prior::SAMPLES };
    assert_eq!(tree.smallest_change(0.2), None, "nothing was tested");
    tree.judged.tested = 20;
    tree.scaling = Scaling::None;
    assert_eq!(tree.smallest_change(0.2), None, "rates have no share");
}

#[test]
fn one_run_a_side_is_one_of_each_recording() {
    let recording = |name: &str| Run { name: name.to_owned(), ..run("a 10\nb 5\n") };
    let is_one = |before: &[&str], after: &[&str]| {
        let [before, after] =
            [before, after].map(|names| names.iter().map(|name| recording(name)).collect());
        let (before, after): (Vec<Run>, Vec<Run>) = (before, after);
        DiffTree::new(&before, &after, &DiffConfig::default()).unwrap().is_one_run_a_side()
    };
    assert!(is_one(&["one"], &["other"]));
    assert!(!is_one(&["one", "two"], &["other"]));
    assert!(!is_one(&["one", "two"], &["other", "another"]));
    // A file and itself are two recordings, if equal ones; two values of it are one.
    assert!(is_one(&["one"], &["one"]));
    let mut cycles = diff("a 10\n", "a 12\n", Scaling::Total);
    cycles.after.value_type = flame_profile::ValueType::new("cycles", "count");
    assert!(!cycles.is_one_run_a_side());
    cycles.after.names = vec!["other".to_owned()];
    assert!(cycles.is_one_run_a_side());
}

/// A run whose siblings and labels stand in the order of the text.
fn run_as_written(text: &str) -> Run {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::First);
    reader.read(&mut text.as_bytes()).unwrap();
    Run {
        name: "written.folded".to_owned(),
        tree: reader.finish(ValueType::samples()),
        ..run(text)
    }
}

#[test]
fn labels_may_stand_in_any_order_and_siblings_may_not() {
    let compare = |before: Run, after: Run| {
        DiffTree::new(&[before], &[after], &DiffConfig::default()).map(|tree| {
            let names = tree.labels().iter().map(|label| label.name.clone()).collect::<Vec<_>>();
            (names, tree.nodes().to_vec())
        })
    };
    let (one, other) = ("z;b;a 1\nz;y;b 2\n", "c;a 4\nz;a 8\nz;y;b 16\n");
    let expect = compare(run(one), run(other));
    assert!(expect.is_ok());
    assert_eq!(compare(run_as_written(one), run_as_written(other)), expect);
    assert_eq!(compare(run(one), run_as_written(other)), expect);
    // The run that has siblings in another order is named, whichever side it is of.
    let unsorted = DiffError::Unsorted { name: "written.folded".to_owned() };
    assert_eq!(compare(run_as_written("b 1\na 1\n"), run("a 1\nb 1\n")), Err(unsorted.clone()));
    assert_eq!(compare(run("a 1\nb 1\n"), run_as_written("b 1\na 1\n")), Err(unsorted));
}

#[test]
fn the_chance_of_a_false_alarm_is_the_one_that_was_asked_for() {
    let runs = [run("a 1\n")];
    let config = DiffConfig { alpha: 0.01, ..DiffConfig::default() };
    assert_eq!(DiffTree::new(&runs, &runs, &config).unwrap().alpha(), 0.01);
    assert_eq!(diff("a 1\n", "a 1\n", Scaling::Total).alpha(), 0.05);
}
