//! A profile's samples into a call tree.

use crate::call_tree::root_name::RootNames;
use crate::call_tree::{BuilderNode, CallTree, LabelId, Recursion, SiblingOrder};
use crate::call_tree::{TreeBuilder, TreeOptions};
use crate::frame::FrameKind;
use crate::ids::{LocationId, StackId};
use crate::image::Image;
use crate::profile::Profile;
use crate::units::{ValueType, Weight};

impl CallTree {
    /// Merges the stacks of a profile. Samples that weigh 0 leave no node.
    pub fn from_profile(profile: &Profile, options: &TreeOptions) -> CallTree {
        let value = options.value.unwrap_or(profile.default_value);
        let value_type = profile.value_types().get(value).cloned();
        let value_type = value_type.unwrap_or_else(ValueType::samples);
        let mut builder = TreeBuilder::new();
        builder.add_profile(profile, options);
        builder.finish(value_type, options.order)
    }
}

impl TreeBuilder {
    /// Adds the stacks of a profile, behind what is here. Samples that weigh 0 leave no node.
    pub fn add_profile(&mut self, profile: &Profile, options: &TreeOptions) {
        add_profile(profile, options, |_| None, self);
    }

    /// The same, with a second number for each sample, made of its values, as the weight that it
    /// had before: how many samples it stands for, say.
    pub fn add_profile_with(
        &mut self,
        profile: &Profile,
        options: &TreeOptions,
        before: impl Fn(&[u64]) -> u64,
    ) {
        add_profile(profile, options, |values| Some(Weight(before(values))), self);
    }
}

fn add_profile(
    profile: &Profile,
    options: &TreeOptions,
    before: impl Fn(&[u64]) -> Option<Weight>,
    builder: &mut TreeBuilder,
) {
    let value = options.value.unwrap_or(profile.default_value);
    let names = RootNames::new(profile, options.root);
    // For each thread its outermost box, if it has one.
    let mut threads: Vec<Option<Option<LabelId>>> = Vec::new();
    // Samples of one root together, so that each stack has at most one node at a time.
    let mut samples: Vec<(Option<LabelId>, StackId, Weight, Option<Weight>)> = Vec::new();
    for sample in profile.samples() {
        let weight = sample.values.get(value).copied().unwrap_or(0);
        if weight == 0 {
            continue;
        }
        let thread = sample.thread.index();
        if threads.len() <= thread {
            threads.resize(thread + 1, None);
        }
        let root = *threads[thread].get_or_insert_with(|| {
            names.name(sample.thread).map(|name| builder.label(&name, FrameKind::Mark))
        });
        samples.push((root, sample.stack, Weight(weight), before(sample.values)));
    }
    if options.order == SiblingOrder::Name || options.order == SiblingOrder::Weight {
        samples.sort_by_key(|(root, ..)| *root);
    }
    let mut grower = Grower::new(profile, options);
    for of_root in samples.chunk_by(|a, b| a.0 == b.0) {
        let root = of_root[0].0.map(|label| builder.child(BuilderNode::ROOT, label));
        let root = root.unwrap_or(BuilderNode::ROOT);
        for (_, stack, weight, before) in of_root {
            let node = grower.node(builder, root, *stack);
            builder.add(node, *weight);
            if let Some(before) = before {
                builder.add_before(node, *before);
            }
        }
    }
}

/// Gives stacks their nodes.
struct Grower<'p> {
    profile: &'p Profile,
    recursion: Recursion,
    /// Whether labels say source lines.
    lines: bool,
    /// For each stack the root that it was last met under, and its innermost node there.
    nodes: Vec<Option<(BuilderNode, BuilderNode)>>,
    /// For each location its labels, outermost first; empty = not met yet.
    labels: Vec<Vec<LabelId>>,
    pending: Vec<(StackId, LocationId)>,
}

impl<'p> Grower<'p> {
    fn new(profile: &'p Profile, options: &TreeOptions) -> Grower<'p> {
        Grower {
            profile,
            recursion: options.recursion,
            lines: options.lines,
            nodes: vec![None; profile.stacks().len()],
            labels: vec![Vec::new(); profile.locations().len()],
            pending: Vec::new(),
        }
    }

    /// Descends to the deepest prefix of the stack that already has a node, then comes back.
    fn node(
        &mut self,
        builder: &mut TreeBuilder,
        root: BuilderNode,
        stack: StackId,
    ) -> BuilderNode {
        let stacks = self.profile.stacks();
        let (mut at, mut node) = (stack, root);
        while let Some(location) = stacks.entry(at) {
            match self.nodes[at.index()] {
                Some((under, innermost)) if under == root => {
                    node = innermost;
                    break;
                }
                _ => self.pending.push((at, location)),
            }
            at = stacks.parent(at);
        }
        while let Some((stack, location)) = self.pending.pop() {
            let labels = &mut self.labels[location.index()];
            if labels.is_empty() {
                add_labels(self.profile, location, self.lines, builder, labels);
            }
            for label in labels {
                node = match self.recursion {
                    Recursion::Keep => builder.child(node, *label),
                    Recursion::Collapse => builder.child_or_repeated(node, *label),
                };
            }
            self.nodes[stack.index()] = Some((root, node));
        }
        node
    }
}

/// The labels of the frames at a location, outermost first.
pub(super) fn add_labels(
    profile: &Profile,
    location: LocationId,
    lines: bool,
    builder: &mut TreeBuilder,
    labels: &mut Vec<LabelId>,
) {
    let location = profile.location(location);
    let image = location.image.and_then(|image| profile.images().get(image.index()));
    let in_library = image.is_some_and(Image::is_library);
    for frame in location.frames.iter().rev() {
        let frame = profile.frame(*frame);
        let kind = match frame.kind {
            FrameKind::User if in_library => FrameKind::Library,
            kind => kind,
        };
        labels.push(builder.label(&profile.frame_label(frame, lines), kind));
    }
}
