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
