use std::collections::BTreeMap;

use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType, Weight};

use super::*;
use crate::chance::Margins;
use crate::test_runs::{diff, path, run};
use crate::{DiffConfig, DiffTree, Run, Samples, Scaling};

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Stacks with their samples.
type Stacks = BTreeMap<String, u64>;

/// A program of some hundred stacks, of which few are hot: so many samples of it.
fn sampled(samples: u64, random: &mut Random) -> Stacks {
    let mut stacks = Stacks::new();
    for _ in 0..samples {
        let mut stack = "server;main".to_owned();
        // Each step inwards has a choice of functions, the first far more likely than the last.
        for level in 0..2 + random.below(4) {
            let limit = 1 + random.below(6);
            stack += &format!(";f{level}_{}", random.below(limit));
        }
        *stacks.entry(stack).or_default() += 1;
    }
    stacks
}

fn text(stacks: &Stacks) -> String {
    stacks.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
}

/// Whether anything at all is real.
fn any_real(tree: &DiffTree) -> bool {
    let evidence = |own: Evidence, total: Evidence| own.is_real() || total.is_real();
    let nodes = tree.nodes().iter();
    nodes.clone().any(|node| evidence(node.self_evidence, node.total_evidence))
        || tree.functions().iter().any(|f| evidence(f.self_evidence, f.total_evidence))
}

/// The functions whose self weight really changed, what matters first.
fn real(tree: &DiffTree) -> Vec<&str> {
    let real = tree.functions().iter().filter(|function| function.self_evidence.is_real());
    real.map(|function| tree.labels()[function.label.index()].name.as_str()).collect()
}

#[test]
fn a_profile_and_itself_differ_in_nothing() {
    let stacks = text(&sampled(5_000, &mut Random::new(1)));
    for scaling in [Scaling::Total, Scaling::None, Scaling::Function("f1_0".to_owned())] {
        let tree = diff(&stacks, &stacks, scaling);
        assert!(tree.tested() > 50, "{}", tree.tested());
        assert!(tree.nodes().iter().all(|node| node.self_evidence == Evidence::NONE));
        assert!(tree.nodes().iter().all(|node| node.total_evidence == Evidence::NONE));
        assert!(!any_real(&tree));
    }
}

/// Of 100 comparisons of what did not change 5 may call something real.
#[track_caller]
fn check_false_alarms(compare: impl Fn(&mut Random) -> DiffTree) {
    let alarms = (0..100).filter(|seed| any_real(&compare(&mut Random::new(seed + 17)))).count();
    assert!(alarms <= 5, "{alarms} of 100");
}

#[test]
fn random_halves_of_a_recording_do_not_differ() {
    let all = sampled(5_000, &mut Random::new(2));
    check_false_alarms(|random| {
        let (mut one, mut other) = (Stacks::new(), Stacks::new());
        for (stack, samples) in &all {
            for _ in 0..*samples {
                let half = if random.below(2) == 0 { &mut one } else { &mut other };
                *half.entry(stack.clone()).or_default() += 1;
            }
        }
        diff(&text(&one), &text(&other), Scaling::Total)
    });
}

#[test]
fn recordings_of_one_program_do_not_differ() {
    for scaling in [Scaling::Total, Scaling::Function("f0_0".to_owned())] {
        check_false_alarms(|random| {
            let (one, other) = (sampled(1_000, random), sampled(3_000, random));
            diff(&text(&one), &text(&other), scaling.clone())
        });
    }
    check_false_alarms(|random| {
        // Samples come by chance, too, where they are not shares.
        let noise =
            |random: &mut Random| (0..20_000).filter(|_| random.below(10) == 0).count() as u64;
        let (one, other) = (noise(random), noise(random));
        diff(&text(&sampled(one, random)), &text(&sampled(other, random)), Scaling::None)
    });
}

/// A profile of 5,000 samples in which `planted` has moved from one function to another.
fn with_planted(planted: u64, random: &mut Random) -> DiffTree {
    let before = sampled(5_000, random);
    let mut after = sampled(5_000 - planted, random);
    *after.entry("server;main;f0_0;encode".to_owned()).or_default() += planted;
    diff(&text(&before), &text(&after), Scaling::Total)
}

/// The same with about `base` samples in that function before, and about `planted` more after.
fn with_base(base: u64, planted: u64, random: &mut Random) -> DiffTree {
    let mut side = |expect: u64| {
        // As many samples of 5,000 as chance brings.
        let hot = (0..5_000).filter(|_| random.below(5_000) < expect).count() as u64;
        let mut stacks = sampled(5_000 - hot, random);
        stacks.insert("server;main;f0_0;encode".to_owned(), hot);
        text(&stacks)
    };
    diff(&side(base), &side(base + planted), Scaling::Total)
}

#[test]
fn five_points_are_found_and_a_fifth_of_a_point_is_not() {
    let mut hits = 0;
    for seed in 0..20 {
        let found = with_planted(250, &mut Random::new(seed));
        hits += u32::from(real(&found).first() == Some(&"encode"));
        let missed = with_planted(10, &mut Random::new(seed));
        assert!(!real(&missed).contains(&"encode"), "seed {seed}");
    }
    assert!(hits >= 18, "{hits} of 20");
}

#[test]
fn the_smallest_change_that_is_found_is_about_what_is_said() {
    let tree = with_planted(0, &mut Random::new(4));
    let points = tree.smallest_change(0.1).unwrap();
    // 400 changes tested: 3.8 deviations of 0.6 points, times the usual spread of recordings.
    assert!((3.0..3.5).contains(&points), "{points}");
    let found = |planted: u64| {
        let hot = |seed: u64| with_base(500, planted, &mut Random::new(seed));
        (0..20).filter(|seed| real(&hot(*seed)).contains(&"encode")).count()
    };
    // Of 5,000 samples: half of it is found seldom, one and a half times of it nearly always.
    assert!(found((points * 25.0) as u64) <= 5);
    assert!(found((points * 75.0) as u64) >= 15);
    assert_eq!(diff("a 10\n", "b 10\n", Scaling::None).smallest_change(0.1), None);
}

#[test]
fn swapping_the_sides_swaps_signs_and_nothing_else() {
    let mut random = Random::new(5);
    let (mut one, other) = (sampled(2_000, &mut random), sampled(3_100, &mut random));
    one.insert("server;main;gone".to_owned(), 300);
    for scaling in [Scaling::Total, Scaling::None] {
        let forth = diff(&text(&one), &text(&other), scaling.clone());
        let back = diff(&text(&other), &text(&one), scaling);
        assert_eq!(forth.tested(), back.tested());
        assert!(real(&forth).contains(&"gone"));
        for (a, b) in forth.nodes().iter().zip(back.nodes()) {
            assert_eq!(path(&forth, a), path(&back, b));
            assert_eq!((a.before, a.after), (b.after, b.before));
            let signs = [&forth, &back].map(|tree| {
                let node = if std::ptr::eq(tree, &forth) { a } else { b };
                tree.self_change(node.before, node.after).partial_cmp(&0.0)
            });
            assert_eq!(signs[0], signs[1].map(std::cmp::Ordering::reverse));
            for (p, q) in [(a.self_evidence, b.self_evidence), (a.total_evidence, b.total_evidence)]
            {
                assert_eq!(p.is_real(), q.is_real(), "{}", path(&forth, a));
                assert!((p.p() - q.p()).abs() <= 1e-4 * q.p(), "{p:?} {q:?}");
            }
        }
    }
}

/// Runs of which each has a load of its own on one function.
fn runs(
    number: usize,
    samples: u64,
    load: impl Fn(&mut Random) -> u64,
    random: &mut Random,
) -> Vec<Run> {
    let one = |_| {
        let mut stacks = sampled(samples, random);
        stacks.insert("server;main;gc".to_owned(), load(random));
        run(&text(&stacks))
    };
    (0..number).map(one).collect()
}

#[test]
fn what_runs_of_one_side_differ_by_is_noise() {
    let load = |random: &mut Random| random.below(600);
    check_false_alarms(|random| {
        let before = runs(3, 1_000, load, random);
        let after = runs(3, 1_000, load, random);
        DiffTree::new(&before, &after, &DiffConfig::default()).unwrap()
    });
    // The same loads as one run a side would be a change without doubt.
    let random = &mut Random::new(3);
    let (before, after) = (runs(1, 1_000, |_| 50, random), runs(1, 1_000, |_| 550, random));
    let tree = DiffTree::new(&before, &after, &DiffConfig::default()).unwrap();
    assert_eq!(real(&tree)[..1], ["gc"]);
}

/// A run of 11,000 samples: three functions of the program, and twenty of the kernel, in which the
/// load of the machine shows.
fn busy_run(second: u64, random: &mut Random) -> Run {
    let load = random.below(300);
    let mut stacks = Stacks::new();
    for _ in 0..11_000 {
        let stack = match random.below(10_000) {
            at if at < load => format!("server;main;read;kernel_{}_[k]", at % 20),
            at if at < 5_000 => "server;main;first".to_owned(),
            at if at < 5_000 + second => "server;main;second".to_owned(),
            _ => "server;main;third".to_owned(),
        };
        *stacks.entry(stack).or_default() += 1;
    }
    run(&text(&stacks))
}

#[test]
fn two_points_are_found_beside_a_kernel_that_does_more_or_less() {
    let compare = |seed: u64, second: u64| {
        let random = &mut Random::new(seed);
        let before = [(); 3].map(|()| busy_run(2_000, random));
        let after = [(); 3].map(|()| busy_run(second, random));
        DiffTree::new(&before, &after, &DiffConfig::default()).unwrap()
    };
    let found = (0..20).filter(|seed| real(&compare(*seed, 2_200)).contains(&"second")).count();
    assert!(found >= 16, "{found} of 20");
    let alarms = (0..20).filter(|seed| any_real(&compare(*seed, 2_000))).count();
    assert!(alarms <= 2, "{alarms} of 20");
}

#[test]
fn the_smallest_change_between_several_runs_is_about_what_is_said() {
    let compare = |seed: u64, points: f64| {
        let random = &mut Random::new(seed);
        let before = [(); 3].map(|()| busy_run(2_000, random));
        let after = [(); 3].map(|()| busy_run(2_000 + (points * 100.0) as u64, random));
        DiffTree::new(&before, &after, &DiffConfig::default()).unwrap()
    };
    let tree = compare(1, 0.0);
    let points = tree.smallest_change(0.2).unwrap();
    // Of 33,000 samples a side, a share of 20 % has a standard deviation of 0.31 points.
    assert!((0.9..2.0).contains(&points), "{points}");
    let found = |points: f64| {
        (0..20).filter(|seed| real(&compare(*seed, points)).contains(&"second")).count()
    };
    assert!(found(points * 0.5) <= 5);
    assert!(found(points * 1.5) >= 15);
    // As many as there are; four times as many tell half as much at least.
    assert_eq!(tree.smallest_change_with(0.2, 3), Some(points));
    let less = tree.smallest_change_with(0.2, 12).unwrap();
    assert!((0.3..=0.5).contains(&(less / points)), "{less} {points}");
    // Most is needed where a function has half of all.
    assert!(tree.smallest_change(0.5) > tree.smallest_change(0.2));
}

#[test]
fn a_change_of_all_runs_is_found() {
    for seed in 0..10 {
        let random = &mut Random::new(seed);
        let before = runs(3, 1_000, |_| 50, random);
        let after = runs(3, 1_000, |_| 200, random);
        let tree = DiffTree::new(&before, &after, &DiffConfig::default()).unwrap();
        assert_eq!(real(&tree)[..1], ["gc"], "seed {seed}");
    }
}

#[test]
fn a_root_of_another_name_hides_no_change() {
    // All samples of a side are in its root: no two runs can differ in it.
    let run_of = |root: &str, load: u64, random: &mut Random| {
        let mut stacks = sampled(1_000, random);
        stacks.insert("server;main;gc".to_owned(), load);
        run(&text(&stacks).replace("server;", root))
    };
    for seed in 0..10 {
        let random = &mut Random::new(seed);
        let before = [(); 3].map(|()| run_of("server;", 50, random));
        let after = [(); 3].map(|()| run_of("server-2;", 120, random));
        let tree = DiffTree::new(&before, &after, &DiffConfig::default()).unwrap();
        assert!(real(&tree).contains(&"gc"), "seed {seed}: {:?}", real(&tree));
    }
}

/// A run in which each sample weighs that much.
fn weighed(stacks: &Stacks, weight: impl Fn(&str) -> u64) -> Run {
    let mut builder = flame_profile::TreeBuilder::new();
    for (stack, samples) in stacks {
        let mut node = flame_profile::BuilderNode::ROOT;
        for name in stack.split(';') {
            let label = builder.label(name, flame_profile::FrameKind::User);
            node = builder.child(node, label);
        }
        builder.add(node, flame_profile::Weight(samples * weight(stack)));
        builder.add_before(node, flame_profile::Weight(*samples));
    }
    let value = flame_profile::ValueType::new("cpu", "nanoseconds");
    let tree = builder.finish(value, flame_profile::SiblingOrder::Name);
    Run { tree, samples: Samples::Counted, ..run("a 1\n") }
}

#[test]
fn weights_are_as_sure_as_the_samples_behind_them() {
    let random = &mut Random::new(8);
    let (before, mut after) = (sampled(3_000, random), sampled(3_000, random));
    after.insert("server;main;encode".to_owned(), 120);
    let counts = diff(&text(&before), &text(&after), Scaling::Total);
    let compare = |weight: fn(&str) -> u64| {
        let runs = (weighed(&before, weight), weighed(&after, weight));
        DiffTree::new(&[runs.0], &[runs.1], &DiffConfig::default()).unwrap()
    };
    let equal = compare(|_| 10_101_010);
    assert_eq!((equal.before().samples, equal.after().samples), (3_000.0, 3_120.0));
    assert_eq!(equal.tested(), counts.tested());
    for (a, b) in equal.nodes().iter().zip(counts.nodes()) {
        assert_eq!(a.self_evidence.is_real(), b.self_evidence.is_real());
        assert!((a.self_evidence.p() - b.self_evidence.p()).abs() < 1e-6);
    }
    assert!(real(&equal).contains(&"encode"));
}

#[test]
fn few_heavy_samples_are_no_sign() {
    check_false_alarms(|random| {
        // Two of three allocations are of some bytes, the others of a mebibyte.
        let weight = |stack: &str| if stack.ends_with('0') { 1 << 20 } else { 64 };
        let runs =
            (weighed(&sampled(2_000, random), weight), weighed(&sampled(2_000, random), weight));
        DiffTree::new(&[runs.0], &[runs.1], &DiffConfig::default()).unwrap()
    });
}

#[test]
fn callers_of_one_callee_are_as_sure_as_it_is_however_many_they_are() {
    // More than are judged in one go, twice.
    let deep: Vec<String> = (0..2 * CHUNK + 100).map(|depth| format!("f{depth}")).collect();
    let deep = deep.join(";");
    let side = |weight: u64| format!("{deep} {weight}\nother {}\n", 1000 - weight);
    let tree = diff(&side(100), &side(500), Scaling::Total);
    let leaf = tree.nodes().iter().find(|node| node.depth as usize == deep.split(';').count());
    let leaf = leaf.unwrap();
    assert!(leaf.self_evidence.is_real());
    let path =
        tree.nodes().iter().filter(|node| node.depth > 0 && node.before.total == Weight(100));
    let sure = path.map(|node| node.total_evidence);
    let sure: Vec<_> = sure.filter(|evidence| *evidence == leaf.self_evidence).collect();
    assert_eq!(sure.len(), 2 * CHUNK + 100);
}

#[test]
fn a_function_is_known_by_its_place_only_where_it_has_one() {
    let tree = diff("a;x 10\nb;x 20\nc;x 5\nc;y;y 5\n", "a;x 10\nb;x 9\n", Scaling::None);
    let places = places(tree.labels().len(), tree.nodes());
    let place = |name: &str| {
        let label = tree.labels().iter().position(|label| label.name == name).unwrap();
        let place = places[label];
        (place != SEVERAL).then(|| path(&tree, &tree.nodes()[place as usize]))
    };
    // Of three places the last one is as little its only one as of two.
    assert_eq!((place("x"), place("y")), (None, None));
    assert_eq!((place("a").as_deref(), place("c").as_deref()), (Some("a"), Some("c")));
}

#[test]
fn a_path_has_the_samples_of_its_first_callee_where_that_has_all_of_them() {
    // The root has those of its callee, too, and is tested for itself.
    let tree = diff("m;p;q 10\nm;r 5\nm;r;s 5\n", "m;p;q 10\nm;r;s 9\n", Scaling::None);
    let is_same = |name: &str| {
        let nodes = tree.nodes();
        let at = nodes.iter().position(|node| path(&tree, node) == name).unwrap();
        is_its_callee(nodes, at)
    };
    let found = ["", "m", "m;p", "m;p;q", "m;r", "m;r;s"].map(is_same);
    // `q` is not a caller of `r`, which is the next node.
    assert_eq!(found, [false, false, true, false, false, false]);
    // As many before, and other ones after; and the other way round.
    for (before, after) in [("p 1\np;q 9\n", "p;q 9\n"), ("p;q 9\n", "p 1\np;q 9\n")] {
        let tree = diff(before, after, Scaling::None);
        assert!(!is_its_callee(tree.nodes(), 1), "{before}");
    }
}

/// What one set of samples shows is one test, whatever has these samples.
#[test]
fn each_set_of_samples_is_tested_once() {
    let tested = |text: &str| diff(text, text, Scaling::None).tested();
    // The totals of the root and of what has samples.
    assert_eq!(tested("a 1000\n"), 2);
    assert_eq!(tested("a;b;c 1000\n"), 2);
    // Root, `m`, both places of `x`, and `x` by itself and with what it calls.
    assert_eq!(tested("m;a;x 500\nm;b;x 500\n"), 6);
}

/// A value of a recording, of which nothing is known but samples.
fn value(text: &str, name: &str) -> Run {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    let tree = reader.finish(ValueType { name: name.into(), unit: "count".into() });
    Run { tree, ..run("") }
}

/// Of two values of one recording nothing is known but samples.
#[test]
fn a_change_that_is_hardly_real_has_its_exact_chance() {
    let before = value("x 407\nrest 9593\n", "hits");
    let after = value("x 493\nrest 9507\n", "misses");
    let tree = DiffTree::new(&[before], &[after], &DiffConfig::default()).unwrap();
    assert!(!tree.is_one_run_a_side());
    let margins = Margins::Shares { before: 10_000.0, after: 10_000.0 };
    // Two changes were tested, of `x` and of the rest.
    let critical = deviations(tree.alpha() / tree.tested() as f64);
    let [exact, normal] =
        [critical, 100.0].map(|at| 2.0 * margins.p_value(407.0, 493.0, at, || 0.0));
    assert!((exact - normal).abs() > 0.005 * exact, "{exact} {normal}");
    let found = tree.functions().iter().map(|function| function.self_evidence.p());
    found.for_each(|p| assert!((p - exact).abs() < 1e-4 * exact, "{p} {exact}"));
}

/// The change would be real if it were the only one; but the rest, of which it makes a smaller share,
/// changed by as many samples, so that neither can be.
#[test]
fn what_has_too_few_samples_to_be_real_is_not_tested() {
    let alpha = DiffConfig::default().alpha;
    let margins = Margins::Shares { before: 10_000.0, after: 10_000.0 };
    let few = (1..100_u32).find(|few| margins.least_p_value(f64::from(*few)) <= alpha).unwrap();
    let after = format!("rest {}\nx {few}\n", 10_000 - few);
    let both = [value("rest 10000\n", "hits"), value(&after, "misses")];
    let tree = DiffTree::new(&both[..1], &both[1..], &DiffConfig::default()).unwrap();
    assert_eq!(tree.tested(), 0);
    assert_eq!(real(&tree), [""; 0]);
    assert!(tree.functions().iter().all(|function| function.self_evidence.p() >= 1.0));
}

/// Nodes are judged in chunks: a caller that is the last of its chunk has the evidence of its only callee,
/// the first of the next one.
#[test]
fn a_caller_at_the_end_of_a_chunk_has_the_evidence_of_its_callee() {
    let text = |callee: u64| {
        // The root is the first node.
        let leaves = (0..CHUNK - 2).map(|leaf| format!("leaf{leaf:05} 10\n"));
        leaves.chain([format!("zcaller;callee {callee}\n")]).collect::<String>()
    };
    let both = [value(&text(20_000), "hits"), value(&text(30_000), "misses")];
    let tree = DiffTree::new(&both[..1], &both[1..], &DiffConfig::default()).unwrap();
    let [caller, callee] = [CHUNK - 1, CHUNK].map(|at| tree.nodes()[at]);
    assert_eq!(path(&tree, &callee), "zcaller;callee");
    assert!(callee.total_evidence.is_real());
    assert!(caller.total_evidence.is_real());
    assert_eq!(caller.total_evidence.p(), callee.total_evidence.p());
    let leaf = &tree.nodes()[CHUNK - 2];
    assert!(!leaf.total_evidence.is_real());
}

/// Recordings of one program differ by more than samples do, so a change that is none by chance of samples
/// alone may be one by that of recordings.
#[test]
fn one_recording_a_side_is_as_sure_as_recordings_in_general_are() {
    let tree = diff("x 407\nrest 9593\n", "x 493\nrest 9507\n", Scaling::Total);
    assert!(tree.is_one_run_a_side());
    let margins = Margins::Shares { before: 10_000.0, after: 10_000.0 };
    let of_samples = 2.0 * margins.p_value(407.0, 493.0, 100.0, || 0.0);
    let general = 2.0 * Prior::ONE_RUN.p_value_alone(margins.distance(407.0, 493.0));
    assert!(of_samples < tree.alpha() && general > tree.alpha(), "{of_samples} {general}");
    for p in tree.functions().iter().map(|function| function.self_evidence.p()) {
        assert!((p - general).abs() < 1e-4 * general, "{p} {general}");
    }
}
