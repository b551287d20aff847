//! The call tree with box drawing: heaviest branch first, chains on one line, the rest summed up.

use std::io::{self, Write};

use flame_message::{format_share, group_thousands};
use flame_profile::{CallTree, Node, NodeId, Weight};

use super::{TextConfig, shown};

const CALLS: &str = " → ";
const CALLED_BY: &str = " ← ";
/// Branch names get at least this much room, however deep they stand.
const MIN_NAME_COLUMNS: usize = 40;
/// `100%` and so on, right-aligned, for total and self, with the gaps behind.
const SHARE_COLUMNS: usize = 18;

/// Writes the branches of at least `min_share`; what is left out is said where it would stand. In a
/// tree that is turned round callers follow their callees, and no weight is anybody's own.
pub(super) fn write_tree(
    tree: &CallTree,
    config: &TextConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    let (own, what) = if tree.is_turned() { ("", "callers") } else { ("self", "call tree") };
    writeln!(out, "{:>7}  {own:>7}  {what}", "total")?;
    let writer = TreeWriter { tree, config, names: tree.labels().iter().map(shown).collect() };
    let mut pending: Vec<Line> = Vec::new();
    writer.push_children(NodeId::ROOT, "", &mut pending);
    for line in &mut pending {
        // Threads stand at the left edge.
        line.is_top = true;
    }
    while let Some(line) = pending.pop() {
        match line.content {
            Content::Branch(node) => writer.write_branch(node, &line, &mut pending, out)?,
            Content::Pruned(pruned) => writer.write_pruned(&pruned, &line, out)?,
        }
    }
    Ok(())
}

struct TreeWriter<'a> {
    tree: &'a CallTree,
    config: &'a TextConfig,
    names: Vec<String>,
}

/// A line still to be written.
struct Line {
    content: Content,
    /// What stands before the branch's own corner.
    indent: String,
    is_top: bool,
    is_last: bool,
}

enum Content {
    Branch(NodeId),
    Pruned(Pruned),
}

/// Children that were left out.
#[derive(Clone, Copy, Default)]
struct Pruned {
    branches: u64,
    frames: u64,
    weight: Weight,
}

impl Line {
    fn corner(&self) -> &'static str {
        match (self.is_top, self.is_last) {
            (true, _) => "",
            (false, true) => "└─ ",
            (false, false) => "├─ ",
        }
    }

    /// What stands below the corner.
    fn below(&self) -> String {
        let bar = match (self.is_top, self.is_last) {
            (true, _) => "",
            (false, true) => "   ",
            (false, false) => "│  ",
        };
        format!("{}{bar}", self.indent)
    }
}

impl TreeWriter<'_> {
    fn node(&self, id: NodeId) -> &Node {
        &self.tree.nodes()[id.index()]
    }

    /// Puts a node's children on the stack of lines, so that the heaviest is popped first and
    /// what was left out last.
    fn push_children(&self, id: NodeId, indent: &str, pending: &mut Vec<Line>) {
        let mut shown: Vec<(NodeId, &Node)> = Vec::new();
        let mut pruned = Pruned::default();
        for (child_id, child) in self.tree.children(id) {
            if child.total.share_of(self.tree.total()) >= self.config.min_share {
                shown.push((child_id, child));
            } else {
                pruned.branches += 1;
                pruned.frames += u64::from(child.end) - child_id.index() as u64;
                pruned.weight += child.total;
            }
        }
        // A stable sort: equal weights stay in name order.
        shown.sort_by_key(|(_, child)| std::cmp::Reverse(child.total));
        let branches = shown.into_iter().map(|(child, _)| Content::Branch(child));
        let rest = (pruned.branches > 0).then_some(Content::Pruned(pruned));
        let first = pending.len();
        for content in branches.chain(rest) {
            pending.push(Line {
                content,
                indent: indent.to_owned(),
                is_top: false,
                is_last: false,
            });
        }
        if let Some(last) = pending[first..].last_mut() {
            last.is_last = true;
        }
        pending[first..].reverse();
    }

    fn write_branch(
        &self,
        id: NodeId,
        line: &Line,
        pending: &mut Vec<Line>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let chain = self.chain(id);
        let end = chain.last().copied().unwrap_or(id);
        let total = format_share(self.node(id).total, self.tree.total());
        let own = match self.node(end).self_weight {
            _ if self.tree.is_turned() => String::new(),
            Weight(0) => String::new(),
            weight => format_share(weight, self.tree.total()),
        };
        write!(out, "{total:>7}  {own:>7}  {}{}", line.indent, line.corner())?;
        let below = line.below();
        // Where the tree goes on below this line, its bar passes by the wrapped rest of the chain.
        let goes_on = self.node(end).end as usize > end.index() + 1;
        let wrapped = format!("{below}{}", if goes_on { "│ " } else { "  " });
        let used = SHARE_COLUMNS + below.chars().count();
        let room = self.config.columns.saturating_sub(used).max(MIN_NAME_COLUMNS);
        self.write_chain(&chain, &wrapped, room, out)?;
        self.push_children(end, &below, pending);
        Ok(())
    }

    /// The node and, as long as all of its weight goes on to an only child, that child.
    fn chain(&self, id: NodeId) -> Vec<NodeId> {
        let mut chain = vec![id];
        let mut at = id;
        while let Some((child_id, child)) = self.tree.children(at).next()
            && child.total == self.node(at).total
        {
            chain.push(child_id);
            at = child_id;
        }
        chain
    }

    fn write_chain(
        &self,
        chain: &[NodeId],
        wrapped: &str,
        room: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let between = if self.tree.is_turned() { CALLED_BY } else { CALLS };
        let mut used = 0;
        for (index, id) in chain.iter().enumerate() {
            let name = &self.names[self.node(*id).label.index()];
            let length = name.chars().count();
            let arrow = if index == 0 { "" } else { between };
            if index > 0 && used + between.len() + length > room {
                write!(out, "\n{:SHARE_COLUMNS$}{wrapped}{}", "", arrow.trim_start())?;
                used = 4;
            } else {
                out.write_all(arrow.as_bytes())?;
                used += arrow.chars().count();
            }
            out.write_all(name.as_bytes())?;
            used += length;
        }
        writeln!(out)
    }

    fn write_pruned(&self, pruned: &Pruned, line: &Line, out: &mut impl Write) -> io::Result<()> {
        let share = format_share(pruned.weight, self.tree.total());
        let noun = if pruned.branches == 1 { "branch" } else { "branches" };
        let frame_noun = if pruned.frames == 1 { "frame" } else { "frames" };
        let (branches, frames) = (group_thousands(pruned.branches), group_thousands(pruned.frames));
        let least = (self.config.min_share * 10_000.0).round() / 100.0;
        write!(out, "{share:>7}  {:>7}  {}{}", "", line.indent, line.corner())?;
        writeln!(out, "… {branches} {noun} below {least}% each ({frames} {frame_noun})")
    }
}
