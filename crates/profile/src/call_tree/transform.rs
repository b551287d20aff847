//! Call trees made from call trees: reversed, cut at a base, reordered, scaled.

use super::{Before, BuilderNode, CallTree, Label, LabelId, NodeId, SiblingOrder, TreeBuilder};
use crate::frame::Location;
use crate::ids::{StackId, ThreadId, narrow};
use crate::profile::{Profile, Thread};
use crate::units::{ValueType, Weight};

/// Weights that were to be multiplied would not fit into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the weights would be larger than 64 bits")
    }
}

impl std::error::Error for TooLarge {}

impl CallTree {
    /// A profile of the same stacks: the outermost frames become threads, weights are rounded to
    /// whole units. What each node weighed before is not in it.
    pub fn to_profile(&self) -> Profile {
        let mut profile = Profile::new(vec![self.value_type.clone()]);
        let unit = 10_u64.saturating_pow(self.decimals);
        let mut path: Vec<(ThreadId, StackId)> = Vec::new();
        for node in &self.nodes[1..] {
            path.truncate(node.depth as usize - 1);
            let label = self.label(node);
            let (thread, stack) = match path.last() {
                None => {
                    let name = profile.intern(&label.name);
                    let thread = Thread { name, process: None, pid: None, tid: None };
                    (profile.add_whole_thread(thread), StackId::EMPTY)
                }
                Some((thread, above)) => {
                    let frame = profile.add_frame(&label.name, label.kind);
                    let location = profile.add_location(Location::named(frame));
                    (*thread, profile.push_stack(*above, location))
                }
            };
            path.push((thread, stack));
            let weight = node.self_weight.0.saturating_add(unit / 2) / unit;
            if weight > 0 {
                profile.add_sample(thread, stack, &[weight]);
            }
        }
        profile
    }

    /// The tree of the stacks turned round: leaves stand at the root, their callers above them.
    #[must_use]
    pub fn reversed(&self, order: SiblingOrder) -> CallTree {
        let mut tree = self.with_paths(order, |path, _| path.reverse());
        tree.is_turned = !self.is_turned;
        tree
    }

    /// Only the stacks that have a function of one of those names, without what called it: where a
    /// stack has several of them, or one that calls itself, without what called the innermost. Everything when there is no name.
    #[must_use]
    pub fn from_bases(&self, names: &[String], order: SiblingOrder) -> CallTree {
        if names.is_empty() {
            return self.clone();
        }
        let is_base: Vec<bool> =
            self.labels.iter().map(|label| names.iter().any(|n| label.is_called(n))).collect();
        self.with_paths(order, |path, _| {
            match path.iter().rposition(|label| is_base[label.index()]) {
                Some(at) => drop(path.drain(..at)),
                None => path.clear(),
            }
        })
    }

    /// The only outermost frame, if there is one only.
    pub fn single_root(&self) -> Option<&Label> {
        let first = self.nodes.get(1)?;
        (first.end as usize == self.nodes.len()).then(|| self.label(first))
    }

    /// The same tree, siblings in the order of their names, with another name for its only outermost
    /// frame; unchanged where it has several.
    #[must_use]
    pub fn with_single_root(self, name: &str) -> CallTree {
        if self.single_root().is_none() {
            return self;
        }
        let (value_type, is_turned) = (self.value_type.clone(), self.is_turned);
        let mut builder = TreeBuilder::of_tree(self);
        builder.rename_first(name);
        CallTree { is_turned, ..builder.finish(value_type, SiblingOrder::Name) }
    }

    /// Who calls a function: the function at the root, its callers above it, with the weight that
    /// they bring. Where it calls itself, the outermost call counts.
    #[must_use]
    pub fn callers(&self, name: &str, order: SiblingOrder) -> CallTree {
        let mut builder = TreeBuilder::new();
        let is_it: Vec<bool> = self.labels.iter().map(|label| label.is_called(name)).collect();
        let mut index = 1;
        while let Some(node) = self.nodes.get(index) {
            if !is_it[node.label.index()] {
                index += 1;
                continue;
            }
            let before = self.before.as_ref().map(|before| before[index].total);
            let mut at = NodeId(narrow(index));
            let mut to = BuilderNode::ROOT;
            while at != NodeId::ROOT {
                let node = &self.nodes[at.index()];
                let Label { name, kind } = self.label(node);
                let label = builder.label(name, *kind);
                to = builder.child(to, label);
                at = node.parent;
            }
            builder.add(to, node.total);
            if let Some(before) = before {
                builder.add_before(to, before);
            }
            index = node.end as usize;
        }
        let mut tree = builder.finish(self.value_type.clone(), order);
        (tree.decimals, tree.is_turned) = (self.decimals, true);
        tree
    }

    /// The tree with each stack changed, of which the labels, outermost first, and the weight are
    /// given; stacks that become empty are left out.
    #[must_use]
    pub fn with_paths(
        &self,
        order: SiblingOrder,
        change: impl Fn(&mut Vec<LabelId>, Weight),
    ) -> CallTree {
        let mut builder = TreeBuilder::new();
        let one = |label: &Label| vec![builder.label(&label.name, label.kind)];
        let labels: Vec<Vec<LabelId>> = self.labels.iter().map(one).collect();
        self.regrown(order, builder, &labels, change)
    }

    /// The tree with functions of Java below frames of their packages: `com/example/Server.run` is `com`,
    /// `example`, `Server.run`. Of samples without callers it shows which packages they are of.
    #[must_use]
    pub fn with_packages(&self, order: SiblingOrder) -> CallTree {
        let mut builder = TreeBuilder::new();
        let parts = |label: &Label| -> Vec<LabelId> {
            package_parts(&label.name).map(|part| builder.label(part, label.kind)).collect()
        };
        let labels: Vec<Vec<LabelId>> = self.labels.iter().map(parts).collect();
        self.regrown(order, builder, &labels, |_, _| {})
    }

    /// The tree grown anew with these labels in place of each of its own.
    fn regrown(
        &self,
        order: SiblingOrder,
        mut builder: TreeBuilder,
        labels: &[Vec<LabelId>],
        change: impl Fn(&mut Vec<LabelId>, Weight),
    ) -> CallTree {
        let mut stack: Vec<LabelId> = Vec::new();
        let pieces = match order {
            SiblingOrder::Time => self.pieces(),
            _ => (0..).map(NodeId).zip(self.nodes.iter().map(|node| node.self_weight)).collect(),
        };
        // A node that has several pieces has one weight before.
        let own = |before: &Vec<Before>| before.iter().map(|before| before.self_weight).collect();
        let mut left: Option<Vec<Weight>> = self.before.as_ref().map(own);
        for (id, weight) in pieces {
            let before = left.as_mut().map(|left| std::mem::take(&mut left[id.index()]));
            if id == NodeId::ROOT || weight.max(before.unwrap_or_default()) == Weight(0) {
                continue;
            }
            stack.clear();
            stack.extend(self.path(id).into_iter().map(|id| self.nodes[id.index()].label));
            change(&mut stack, weight.max(before.unwrap_or_default()));
            if stack.is_empty() {
                continue;
            }
            let frames = stack.iter().flat_map(|label| &labels[label.index()]);
            let leaf = frames.fold(BuilderNode::ROOT, |at, label| builder.child(at, *label));
            builder.add(leaf, weight);
            if let Some(before) = before {
                builder.add_before(leaf, before);
            }
            if builder.is_crowded() && order != SiblingOrder::Time {
                builder.compact();
            }
        }
        let mut tree = builder.finish(self.value_type.clone(), order);
        (tree.decimals, tree.is_turned) = (self.decimals, self.is_turned);
        tree
    }

    /// The same tree with weights that mean something else, its siblings from the order of their
    /// names into another: names or weights.
    pub(crate) fn with(self, value_type: ValueType, order: SiblingOrder) -> CallTree {
        let tree = CallTree { value_type, ..self };
        if order == SiblingOrder::Weight { tree.heaviest_first() } else { tree }
    }

    /// The same tree with the heaviest of siblings first.
    pub(super) fn heaviest_first(self) -> CallTree {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut before = self.before.as_ref().map(|_| Vec::with_capacity(self.nodes.len()));
        let mut pending = vec![(NodeId::ROOT, NodeId::ROOT)];
        let mut children: Vec<(NodeId, Weight)> = Vec::new();
        while let Some((old, parent)) = pending.pop() {
            let id = NodeId(narrow(nodes.len()));
            let node = self.nodes[old.index()];
            // The nodes below keep their number, so the end moves with the start.
            nodes.push(super::Node { parent, end: id.0 + (node.end - old.0), ..node });
            if let (Some(to), Some(from)) = (&mut before, &self.before) {
                to.push(from[old.index()]);
            }
            children.extend(self.children(old).map(|(child, node)| (child, node.total)));
            children.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
            pending.extend(children.drain(..).rev().map(|(child, _)| (child, id)));
        }
        CallTree { nodes, before, gaps: None, ..self }
    }

    /// Widens the root so that it weighs `total`: shares are then shares of that. In a tree of two
    /// profiles the root before gets as much more, so that its change stays that of the samples.
    /// False, and nothing happens, when the samples weigh more.
    pub fn widen(&mut self, total: Weight) -> bool {
        let Some(missing) = total.0.checked_sub(self.total().0).map(Weight) else { return false };
        let root = &mut self.nodes[0];
        root.self_weight += missing;
        root.total = total;
        if let Some(before) = self.before.as_mut().and_then(|before| before.first_mut()) {
            before.self_weight += missing;
            before.total += missing;
        }
        true
    }

    /// Multiplies all weights by `factor` and takes `decimals` of their digits for decimal places:
    /// 25 and 2 multiply by 0.25.
    ///
    /// # Errors
    /// When a weight would not fit; the tree is as it was then.
    pub fn scale(&mut self, factor: u64, decimals: u32) -> Result<(), TooLarge> {
        let before = self.before.as_ref().and_then(|before| before.first());
        let most = self.total().max(before.map_or(Weight(0), |before| before.total));
        most.0.checked_mul(factor).ok_or(TooLarge)?;
        for node in &mut self.nodes {
            node.total.0 *= factor;
            node.self_weight.0 *= factor;
        }
        self.gaps.iter_mut().flatten().for_each(|gap| gap.0 *= factor);
        for before in self.before.iter_mut().flatten() {
            before.total.0 *= factor;
            before.self_weight.0 *= factor;
        }
        self.decimals += decimals;
        self.drop_needless_decimals();
        Ok(())
    }

    /// Takes off decimal places that are zero in all weights.
    fn drop_needless_decimals(&mut self) {
        let ends_in_zero = |tree: &CallTree| {
            let before = tree.before.iter().flatten().map(|before| before.self_weight);
            let gaps = tree.gaps.iter().flatten().copied();
            let mut weights =
                tree.nodes.iter().map(|node| node.self_weight).chain(before).chain(gaps);
            weights.all(|weight| weight.0.is_multiple_of(10))
        };
        while self.decimals > 0 && ends_in_zero(self) {
            for node in &mut self.nodes {
                node.total.0 /= 10;
                node.self_weight.0 /= 10;
            }
            self.gaps.iter_mut().flatten().for_each(|gap| gap.0 /= 10);
            for before in self.before.iter_mut().flatten() {
                before.total.0 /= 10;
                before.self_weight.0 /= 10;
            }
            self.decimals -= 1;
        }
    }
}

/// The packages of a function of Java, outermost first, and the function with its class; the name alone of
/// what is none. Packages are lower case and classes upper case: `com.example.Server$Pool.run`.
fn package_parts(name: &str) -> impl Iterator<Item = &str> {
    let separator = if name.contains('/') { '/' } else { '.' };
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = name;
    while let Some((part, behind)) = rest.split_once(separator) {
        let is_package = part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_package {
            break;
        }
        parts.push(part);
        rest = behind;
    }
    let is_class = rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.contains('.');
    if !is_class {
        parts.clear();
        rest = name;
    }
    parts.into_iter().chain([rest])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeOptions;
    use crate::folded::{Columns, FoldedReader};

    fn tree(text: &str, columns: Columns, order: SiblingOrder) -> CallTree {
        let mut reader = FoldedReader::new(columns, order);
        reader.read(&mut text.as_bytes()).unwrap();
        reader.finish(ValueType::samples())
    }

    /// Each node with its total and self weight, those of before first.
    fn rows(tree: &CallTree) -> Vec<(&str, [u64; 4])> {
        let before = tree.before().unwrap();
        let row = |(node, before): (&super::super::Node, &Before)| {
            let weights = [before.total, before.self_weight, node.total, node.self_weight];
            (tree.label(node).name.as_str(), weights.map(|weight| weight.0))
        };
        tree.nodes().iter().zip(before).map(row).collect()
    }

    const TWO: &str = "c;a 1 8\nc;a;f 2 4\nc;b;f 4 2\n";

    #[test]
    fn weights_of_both_profiles_go_with_their_nodes() {
        let by_name = tree(TWO, Columns::Two, SiblingOrder::Name);
        let reversed = by_name.reversed(SiblingOrder::Name);
        let expect = [
            ("all", [7, 0, 14, 0]),
            ("a", [1, 0, 8, 0]),
            ("c", [1, 1, 8, 8]),
            ("f", [6, 0, 6, 0]),
            ("a", [2, 0, 4, 0]),
            ("c", [2, 2, 4, 4]),
            ("b", [4, 0, 2, 0]),
            ("c", [4, 4, 2, 2]),
        ];
        assert_eq!(rows(&reversed), expect);
        let renamed =
            tree("c;a 1\n", Columns::One, SiblingOrder::Name).reversed(SiblingOrder::Name);
        assert!(renamed.with_single_root("b").is_turned());
        assert!(reversed.is_turned() && !reversed.reversed(SiblingOrder::Name).is_turned());
        let callers = by_name.callers("f", SiblingOrder::Name);
        assert_eq!(rows(&callers)[1..], expect[3..]);
        assert!(callers.is_turned());
        let light = TWO.replace("c;a 1 8", "c;a 1 0").replace("c;b;f 4 2", "c;b;f 4 9");
        let by_weight = tree(&light, Columns::Two, SiblingOrder::Weight);
        let expect = [
            ("all", [7, 0, 13, 0]),
            ("c", [7, 0, 13, 0]),
            ("b", [4, 0, 9, 0]),
            ("f", [4, 4, 9, 9]),
            ("a", [3, 1, 4, 0]),
            ("f", [2, 2, 4, 4]),
        ];
        assert_eq!(rows(&by_weight), expect);
    }

    #[test]
    fn a_wider_root_leaves_the_change_of_the_samples() {
        let mut wide = tree(TWO, Columns::Two, SiblingOrder::Name);
        assert!(wide.widen(Weight(20)));
        assert_eq!(rows(&wide)[..2], [("all", [13, 6, 20, 6]), ("c", [7, 0, 14, 0])]);
    }

    #[test]
    fn scaled_weights_of_before_and_between_calls_keep_their_proportion() {
        let mut scaled = tree(TWO, Columns::Two, SiblingOrder::Name);
        scaled.scale(3, 0).unwrap();
        assert_eq!(rows(&scaled)[2], ("a", [9, 3, 36, 24]));
        let large = format!("c {} 1\n", u64::MAX / 2);
        let mut large = tree(&large, Columns::Two, SiblingOrder::Name);
        assert_eq!(large.scale(3, 0), Err(TooLarge));
        assert_eq!(TooLarge.to_string(), "the weights would be larger than 64 bits");

        // A decimal place goes when none of the weights needs it: before, of a node, or between calls.
        let mut halves = tree("c 0.5 1\n", Columns::Two, SiblingOrder::Name);
        halves.scale(1, 0).unwrap();
        assert_eq!((halves.decimals(), rows(&halves)[1]), (1, ("c", [5, 5, 10, 10])));
        halves.scale(2, 0).unwrap();
        assert_eq!((halves.decimals(), rows(&halves)[1]), (0, ("c", [1, 1, 2, 2])));
        let gap = |chart: &CallTree| chart.gaps().map(|gaps| gaps.iter().map(|gap| gap.0).sum());
        let mut chart = tree("c 0.5\nc;a 1\nc 0.5\n", Columns::One, SiblingOrder::Time);
        chart.scale(1, 0).unwrap();
        assert_eq!((chart.decimals(), gap(&chart)), (1, Some(5_u64)));
        chart.scale(4, 0).unwrap();
        assert_eq!((chart.decimals(), gap(&chart), chart.total()), (0, Some(2), Weight(8)));
        chart.scale(5, 0).unwrap();
        assert_eq!((chart.decimals(), gap(&chart), chart.total()), (0, Some(10), Weight(40)));
    }

    #[test]
    fn a_profile_has_whole_samples_of_fractions() {
        let halves = tree("c;a 2.5\nc;b 2.4\nc;d 0.4\n", Columns::One, SiblingOrder::Name);
        let whole = CallTree::from_profile(&halves.to_profile(), &TreeOptions::default());
        assert_eq!(halves.to_profile().samples().len(), 2, "callers without weight are no samples");
        let rounded = tree("c;a 3\nc;b 2\n", Columns::One, SiblingOrder::Name);
        assert_eq!((whole.nodes(), whole.labels()), (rounded.nodes(), rounded.labels()));
    }

    #[test]
    fn functions_of_one_package_stand_below_it() {
        let flat = "x;org/a/One.run 1.5\nx;org/a/Two.run 2\nx;main 4\n";
        let flat = tree(flat, Columns::One, SiblingOrder::Name);
        let below = "x;org;a;One.run 1.5\nx;org;a;Two.run 2\nx;main 4\n";
        let below = tree(below, Columns::One, SiblingOrder::Name);
        let packages = flat.with_packages(SiblingOrder::Name);
        assert_eq!((packages.nodes(), packages.labels()), (below.nodes(), below.labels()));
        assert_eq!(packages.decimals(), 1);
    }

    #[test]
    fn packages_are_told_from_classes_and_other_names() {
        let check = |name: &str, expect: &[&str]| {
            assert_eq!(package_parts(name).collect::<Vec<_>>(), expect, "{name}");
        };
        check("com/example/Server$Pool.run", &["com", "example", "Server$Pool.run"]);
        check("java.util.HashMap.get", &["java", "util", "HashMap.get"]);
        check("org/x_1/A.lambda$b.c", &["org", "x_1", "A.lambda$b.c"]);
        for name in
            ["main", "std::map", "a.b", "net/http.(*conn).serve", "/usr/lib/X.so", "A.f", ""]
        {
            check(name, &[name]);
        }
    }
}
