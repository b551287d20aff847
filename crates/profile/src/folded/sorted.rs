//! The lines of a call tree in the order of their bytes, made one by one.
//!
//! A line of `main` comes before those of `main-loop`, and those before the lines below `main`: a
//! node has its own line at its name, and what is below it at its name with a `;`. Sorted by that,
//! siblings give sorted lines, and none but the current one is in memory.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::count::Count;
use super::write::FoldedTree;
use crate::units::Weight;

/// What stands at the end of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// What a stack weighed in the earlier of two profiles.
    pub before: Weight,
    /// What it weighs.
    pub after: Weight,
}

/// A line, or all lines below a node, at their place among siblings.
struct Item<'t> {
    text: Cow<'t, str>,
    /// Whether this is what is below the node, not its own line.
    is_below: bool,
    node: usize,
    counts: LineCounts,
}

impl Item<'_> {
    /// The order of what the items' lines have behind those of the caller: the text, and a `;` where they
    /// are below it.
    fn order(&self, other: &Item<'_>) -> Ordering {
        // Nearly always the two items of one node.
        if std::ptr::eq(&*self.text, &*other.text) {
            return self.is_below.cmp(&other.is_below);
        }
        let (one, two) = (self.text.as_bytes(), other.text.as_bytes());
        let len = one.len().min(two.len());
        let rest = |item: &Item<'_>| {
            item.text.as_bytes()[len..].first().copied().or(item.is_below.then_some(b';'))
        };
        // No text has a `;` but at its end, so that nothing is left to compare behind one.
        let order = one[..len].cmp(&two[..len]).then_with(|| rest(self).cmp(&rest(other)));
        order.then_with(|| self.is_below.cmp(&other.is_below))
    }

    fn is_same(&self, other: &Item<'_>) -> bool {
        self.is_below == other.is_below && self.text == other.text
    }
}

/// What is still to be written, last thing first.
enum Step<'t> {
    Line(usize, Cow<'t, str>, LineCounts),
    /// What is below nodes of one name, the last this many of [`Lines::groups`].
    Below(usize, Cow<'t, str>, usize),
}

/// The lines that are left of a tree.
pub(super) struct Lines<'t, T> {
    tree: &'t T,
    /// For each label the text of its frame.
    names: &'t [String],
    /// The same where that is the last of a line.
    last_names: Vec<Cow<'t, str>>,
    path: String,
    steps: Vec<Step<'t>>,
    groups: Vec<usize>,
    items: Vec<Item<'t>>,
}

impl<'t, T: FoldedTree> Lines<'t, T> {
    pub(super) fn new(tree: &'t T, names: &'t [String]) -> Lines<'t, T> {
        let (path, steps, groups) = (String::new(), Vec::new(), Vec::new());
        let last_names = names.iter().map(|name| own(name, false)).collect();
        let mut lines = Lines { tree, names, last_names, path, steps, groups, items: Vec::new() };
        lines.list(0);
        lines.plan();
        lines
    }

    /// The next line: its stack and its counts.
    pub(super) fn next_line(&mut self) -> Option<(&str, LineCounts)> {
        loop {
            match self.steps.pop()? {
                Step::Line(length, text, counts) => {
                    self.path.truncate(length);
                    self.path.push_str(&text);
                    return Some((&self.path, counts));
                }
                Step::Below(length, text, nodes) => {
                    self.path.truncate(length);
                    self.path.push_str(&text);
                    self.path.push(';');
                    for node in self.groups.split_off(self.groups.len() - nodes) {
                        self.list(node);
                    }
                    self.plan();
                }
            }
        }
    }

    /// Lists what the children of a node have to be written.
    fn list(&mut self, node: usize) {
        let (tree, names) = (self.tree, self.names);
        let is_first = node == 0;
        let (mut child, end) = (node + 1, tree.end(node));
        while child < end {
            let (node, next, label) = (child, tree.end(child), tree.label(child));
            let (text, counts) = (&*names[label], tree.counts(child));
            if counts != LineCounts::default() {
                let text = if is_first { own(text, true) } else { self.last_names[label].clone() };
                self.items.push(Item { text, is_below: false, node, counts });
            }
            if next > child + 1 {
                let text = if is_first { first(text) } else { Cow::Borrowed(text) };
                self.items.push(Item { text, is_below: true, node, counts });
            }
            child = next;
        }
    }

    /// Sorts what was listed and puts it before all other steps. Equal names are one.
    fn plan(&mut self) {
        let mut items = std::mem::take(&mut self.items);
        items.sort_by(Item::order);
        let length = self.path.len();
        while let Some(item) = items.pop() {
            let mut nodes = 1;
            let mut counts = item.counts;
            self.groups.extend(item.is_below.then_some(item.node));
            while let Some(same) = items.pop_if(|last| last.is_same(&item)) {
                counts.before += same.counts.before;
                counts.after += same.counts.after;
                nodes += 1;
                self.groups.extend(same.is_below.then_some(same.node));
            }
            self.steps.push(match item.is_below {
                true => Step::Below(length, item.text, nodes),
                false => Step::Line(length, item.text, counts),
            });
        }
        self.items = items;
    }
}

/// The last frame of a line: blanks at its end belong to none. `redis 7` would be read as `redis` with a
/// count, and one without a name as the end of the frame before: a `;` behind them ends them.
fn own(text: &str, is_first: bool) -> Cow<'_, str> {
    let text = text.trim_end();
    let count = text.rsplit_once(' ').map(|(_, word)| word.as_bytes());
    let is_counted = count.is_some_and(|word| Count::parse(word).is_some());
    let text = match is_counted || (text.is_empty() && !is_first) {
        true => Cow::Owned(format!("{text};")),
        false => Cow::Borrowed(text),
    };
    match (is_first, text.trim()) {
        (false, _) => text,
        (true, "") => Cow::Borrowed("-"),
        (true, "#") => Cow::Borrowed("#_"),
        (true, _) => Cow::Owned(first(&text).into_owned()),
    }
}

/// The first frame of a line: blanks before it are not part of it, and a line that starts like a
/// comment would be lost.
fn first(text: &str) -> Cow<'_, str> {
    let text = text.trim_start();
    match text.strip_prefix('#') {
        Some(rest) if rest.starts_with(' ') => Cow::Owned(format!("#_{}", rest.trim_start())),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::{CallTree, SiblingOrder, TreeBuilder};
    use crate::frame::FrameKind;
    use crate::units::ValueType;

    /// The lines of a tree, each path put together and all of them sorted.
    fn by_sorting(tree: &CallTree, names: &[String]) -> Vec<(String, LineCounts)> {
        let mut lines: Vec<(String, LineCounts)> = Vec::new();
        let mut path: Vec<&str> = Vec::new();
        for (index, node) in tree.nodes().iter().enumerate().skip(1) {
            path.truncate(node.depth as usize - 1);
            path.push(&names[node.label.index()]);
            let (last, callers) = path.split_last().unwrap();
            let mut line: Vec<Cow<'_, str>> = callers.iter().map(|name| (*name).into()).collect();
            if let Some(outermost) = line.first_mut() {
                *outermost = Cow::Owned(first(outermost).into_owned());
            }
            line.push(own(last, callers.is_empty()));
            let before = tree.before().map_or(Weight(0), |before| before[index].self_weight);
            lines.push((line.join(";"), LineCounts { before, after: node.self_weight }));
        }
        lines.retain(|(_, counts)| *counts != LineCounts::default());
        lines.sort_by(|a, b| a.0.cmp(&b.0));
        lines.dedup_by(|next, line| {
            let is_same = next.0 == line.0;
            if is_same {
                line.1.before += next.1.before;
                line.1.after += next.1.after;
            }
            is_same
        });
        lines
    }

    #[test]
    fn lines_come_as_sorting_has_them() {
        let names =
            ["a", "a-b", "a b", "a<", "a 1", "a:", "", " ", "#", "# x", "b ", "12", "é", "\u{1}"];
        let mut state = 11_u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % limit) as usize
        };
        for case in 0..300 {
            let mut builder = TreeBuilder::new();
            let mut nodes = vec![crate::BuilderNode::ROOT];
            for _ in 0..1 + random(60) {
                // The same name as a user's and as the kernel's function: two nodes, one line.
                let kind = [FrameKind::User, FrameKind::Kernel][random(2)];
                let label = builder.label(names[random(names.len() as u64)], kind);
                let parent = nodes[random(nodes.len() as u64)];
                let node = builder.child(parent, label);
                builder.add(node, Weight(random(3) as u64));
                builder.add_before(node, Weight(random(3) as u64));
                nodes.push(node);
            }
            let order = [SiblingOrder::Name, SiblingOrder::First][case % 2];
            let tree = builder.finish(ValueType::samples(), order);
            let names: Vec<String> = tree.labels().iter().map(|label| label.name.clone()).collect();
            let mut lines = Lines::new(&tree, &names);
            let mut found = Vec::new();
            while let Some((path, counts)) = lines.next_line() {
                found.push((path.to_owned(), counts));
            }
            assert_eq!(found, by_sorting(&tree, &names), "case {case}");
        }
    }

    #[test]
    fn frames_at_the_ends_of_lines_can_be_read_back() {
        for (text, expect) in [
            ("x 12", "x 12;"),
            ("x 12 ", "x 12;"),
            ("x 1.5e3", "x 1.5e3;"),
            (" 7", "7;"),
            ("  ", "-"),
            ("#", "#_"),
            ("# x", "#_x"),
            ("#x", "#x"),
            (" a b ", "a b"),
        ] {
            assert_eq!(own(text, true), expect, "{text:?}");
        }
        let found = [" a ", " 7", " "].map(|text| own(text, false));
        assert_eq!(found, [" a", " 7;", ";"]);
        assert_eq!(
            (first("# x"), first("#"), first(" a ")),
            ("#_x".into(), "#".into(), "a ".into())
        );
    }
}
