//! What is compared: one recording a run, one run or several a side.

use flame_profile::{
    BuilderNode, CallTree, FrameKind, Nanos, Profile, SiblingOrder, TreeBuilder, TreeOptions,
    ValueType, Weight,
};

use crate::behind::Behind;

/// One recording of a side.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is called in messages: the file's name.
    pub name: String,
    /// Its stacks, siblings in the order of their names ([`flame_profile::SiblingOrder::Name`]).
    /// What it has as weights before is not a profile of its own here: see [`Samples::Counted`].
    pub tree: CallTree,
    /// How many samples stand behind its weights.
    pub samples: Samples,
    /// How long was recorded, where that is known.
    pub duration: Option<Nanos>,
}

/// How many samples stand behind a weight: all that tells a change from noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Samples {
    /// A sample weighs the common divisor of all weights, or 1 where they have none. The default,
    /// since folded text of every tool counts either samples or periods of one length.
    #[default]
    Divisor,
    /// That many samples for each whole unit of weight; above 0.
    PerUnit(f64),
    /// [`CallTree::before`] of the run's tree has the number of samples of each node.
    Counted,
}

/// Takes the outermost frames of both sides for one where each side has a single one and they differ,
/// as those of `./old` and `./new` do: nothing could be compared otherwise. Gives back their names.
pub fn match_roots(before: Vec<&mut Run>, after: Vec<&Run>) -> Option<[String; 2]> {
    let names = [single_root(before.iter().map(|run| &**run))?, single_root(after.into_iter())?];
    if names[0] == names[1] {
        return None;
    }
    for run in before {
        let empty = TreeBuilder::new().finish(ValueType::samples(), SiblingOrder::Name);
        run.tree = std::mem::replace(&mut run.tree, empty).with_single_root(&names[1]);
    }
    Some(names)
}

/// The only outermost frame of all runs of a side, if it is a thread's name.
fn single_root<'r>(side: impl Iterator<Item = &'r Run>) -> Option<String> {
    let root = |run: &'r Run| run.tree.single_root().filter(|root| root.kind == FrameKind::Mark);
    let mut roots = side.map(|run| root(run).map(|root| &root.name));
    let first = roots.next()??;
    roots.all(|root| root == Some(first)).then(|| first.clone())
}

/// The tree of one value of a profile, with the number of samples of each node where they do not weigh
/// the same.
pub fn counted_tree(
    profile: &Profile,
    options: &TreeOptions,
    value: usize,
) -> (TreeBuilder, Samples) {
    let mut builder = TreeBuilder::new();
    let behind = Behind::of(profile, value);
    let samples = behind.per_unit(value).unwrap_or(Samples::Counted);
    match samples {
        Samples::Counted => {
            builder.add_profile_with(profile, options, |values| behind.count(values));
        }
        _ => builder.add_profile(profile, options),
    }
    (builder, samples)
}

/// The tree of one of two counts of each stack.
pub fn side_of(tree: &CallTree, is_before: bool) -> TreeBuilder {
    let mut builder = TreeBuilder::with_decimals(tree.decimals());
    let before = tree.before().unwrap_or_default();
    let mut path: Vec<BuilderNode> = vec![BuilderNode::ROOT];
    for (index, node) in tree.nodes().iter().enumerate().skip(1) {
        let before = before.get(index).copied().unwrap_or_default();
        let (total, own) = if is_before {
            (before.total, before.self_weight)
        } else {
            (node.total, node.self_weight)
        };
        if total == Weight(0) {
            continue;
        }
        // The parents of what weighs something weigh something, too.
        path.truncate(node.depth as usize);
        let label = tree.label(node);
        let label = builder.label(&label.name, label.kind);
        let parent = path.last().copied().unwrap_or(BuilderNode::ROOT);
        let child = builder.child(parent, label);
        builder.add(child, own);
        path.push(child);
    }
    builder
}

#[cfg(test)]
mod tests {
    use flame_profile::{Columns, FoldedReader, Pid, StackId, Tid, TreeOptions};

    use super::*;
    use crate::test_runs::run;

    /// Names of nodes with total and self weight.
    fn rows(tree: &CallTree) -> Vec<(&str, u64, u64)> {
        let nodes = tree.nodes().iter().skip(1);
        nodes.map(|node| (&*tree.label(node).name, node.total.0, node.self_weight.0)).collect()
    }

    #[test]
    fn roots_are_matched_where_each_side_has_one_and_they_differ() {
        let matched = |before: &[&str], after: &[&str]| {
            let mut before: Vec<Run> = before.iter().map(|text| run(text)).collect();
            let after: Vec<Run> = after.iter().map(|text| run(text)).collect();
            let names = match_roots(before.iter_mut().collect(), after.iter().collect());
            let root = before[0].tree.single_root().map(|root| root.name.clone());
            (names, root.unwrap_or_default())
        };
        let names = Some(["./old", "./new"].map(str::to_owned));
        let found = matched(&["./old;main 1\n", "./old;f 2\n"], &["./new;main 1\n"]);
        assert_eq!(found, (names, "./new".to_owned()));
        let unmatched = |before: &[&str], after: &[&str], root: &str| {
            assert_eq!(matched(before, after), (None, root.to_owned()));
        };
        unmatched(&["app;main 1\n"], &["app;f 1\n"], "app");
        unmatched(&["./old;main 1\n", "sh;main 1\n"], &["./new;main 1\n"], "./old");
        unmatched(&["./old;main 1\nsh 1\n"], &["./new;main 1\n"], "");
        unmatched(&["./old;main 1\n"], &["./new_[k];main 1\n"], "./old");
        unmatched(&["./old;main 1\n"], &[], "./old");
    }

    #[test]
    fn each_side_of_two_counts_is_a_tree_of_its_own() {
        let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
        reader.read(&mut &b"p;a 1.5 2\np;a;b 0 4\np;c;d 3 0\np;e 0 8\n"[..]).unwrap();
        let both = reader.finish(ValueType::samples());
        let side =
            |is_before| side_of(&both, is_before).finish(ValueType::samples(), SiblingOrder::Name);
        let before = side(true);
        let expect = [("p", 45, 0), ("a", 15, 15), ("c", 30, 0), ("d", 30, 30)];
        assert_eq!((rows(&before), before.decimals()), (expect.to_vec(), 1));
        let expect = [("p", 140, 0), ("a", 60, 20), ("b", 40, 40), ("e", 80, 80)];
        assert_eq!(rows(&side(false)), expect);
    }

    #[test]
    fn samples_are_counted_only_where_they_weigh_differently() {
        let values = vec![ValueType::samples(), ValueType::new("cpu", "nanoseconds")];
        let mut profile = Profile::new(values);
        let thread = profile.add_thread("app", Pid(1), Tid(1));
        profile.add_sample(thread, StackId::EMPTY, &[3, 500]);
        let counted = |value| {
            let options = TreeOptions { value: Some(value), ..TreeOptions::default() };
            let (builder, samples) = counted_tree(&profile, &options, value);
            let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
            (tree.total().0, tree.before().map(|before| before[1].total.0), samples)
        };
        assert_eq!(counted(0), (3, None, Samples::PerUnit(1.0)));
        assert_eq!(counted(1), (500, Some(3), Samples::Counted));
    }
}
