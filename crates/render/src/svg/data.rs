//! The whole tree for the script: a JSON object of sizes and texts, and compressed columns.
//!
//! | column | one for each | holds |
//! |---|---|---|
//! | `names` | name | the text, each ended by a line feed (which no clean name holds) |
//! | `paint` | name | twice the place of its fill in `palette`, plus 1 for a dashed edge |
//! | `label` | node in pre-order | 0 for a name that was not met before, else its place plus 1 |
//! | `up` | node | how many levels to climb from the node before to find the parent |
//! | `self` | node | the self weight |
//! | `before` | node | the self weight before, in a tree that has one |
//! | `fill` | node | the place of its fill, where nodes of one name differ |
//!
//! Numbers are LEB128, but for `label`: all lowest bytes, then all second ones and so on, which
//! packs better. A column is raw deflate (RFC 1951) in base64. Totals, depths and positions follow
//! from these. Names are numbered as the nodes first use them, so the bytes depend on the tree
//! alone; equal subtrees have equal runs of `label` and `up`, which is what deflate finds.

mod column;
mod json;
mod look;

use std::io::{self, Write};

use flame_profile::{CallTree, LabelId, Node};

use self::column::{Column, compress};
use self::json::Json;
use super::document::Picture;
use crate::clean_name;
use crate::colours::{Colours, is_gap};

/// Whole numbers are exact in JavaScript's ordinary numbers up to here; above, the script uses
/// big integers.
const EXACT: u64 = 1 << 53;

/// Writes one JSON object that holds no `<`, `>` or `&`.
pub(super) fn write_data(picture: &Picture<'_>, out: &mut impl Write) -> io::Result<()> {
    let (tree, config) = (picture.tree, picture.config);
    let nodes = if tree.total().0 == 0 { &[] } else { tree.nodes() };
    let order = LabelOrder::of(tree, nodes);
    let title = clean_name(&config.title);
    let subtitle = clean_name(config.subtitle.as_deref().unwrap_or(""));
    write!(out, r#"{{"version":2,"title":{},"subtitle":{}"#, Json(&title), Json(&subtitle))?;
    out.write_all(br#","footer":["#)?;
    for (index, line) in config.footer.iter().enumerate() {
        write!(out, "{}{}", comma(index), Json(&clean_name(line)))?;
    }
    out.write_all(b"]")?;
    look::write_sizes(picture.geometry, out)?;
    look::write_amounts(picture.scale, out)?;
    look::write_colours(config, picture.colours, out)?;
    let drawn = order.order.iter().map(|label| &tree.labels()[label.index()]);
    look::write_attributes(&config.attributes, drawn, out)?;
    let big = u8::from(tree.total().0 > EXACT);
    write!(out, r#","count":{},"labels":{},"big":{big}"#, nodes.len(), order.order.len())?;
    let columns = Columns { tree, nodes, order: &order, colours: picture.colours };
    out.write_all(br#","columns":{"#)?;
    for (index, (name, column)) in columns.compressed().iter().enumerate() {
        write!(out, r#"{}"{name}":[{},""#, comma(index), column.size)?;
        out.write_all(column.text.as_bytes())?;
        out.write_all(b"\"]")?;
    }
    out.write_all(b"}}")
}

/// What the columns are made of.
struct Columns<'a> {
    tree: &'a CallTree,
    /// None in a tree without weight.
    nodes: &'a [Node],
    order: &'a LabelOrder,
    colours: &'a Colours,
}

impl Columns<'_> {
    /// All columns, side by side on two threads where there is enough to do.
    fn compressed(&self) -> Vec<(&'static str, Column)> {
        const WORTH_A_THREAD: usize = 20_000;
        let label = || ("label", compress(&self.labels()));
        if self.nodes.len() < WORTH_A_THREAD {
            return std::iter::once(label()).chain(self.others()).collect();
        }
        std::thread::scope(|scope| {
            let label = scope.spawn(label);
            let others = self.others();
            let label = label.join().expect("compressing bytes in memory cannot fail");
            std::iter::once(label).chain(others).collect()
        })
    }

    /// All but `label`, which takes as long as they do together.
    fn others(&self) -> Vec<(&'static str, Column)> {
        let mut found = vec![
            ("names", compress(&self.names())),
            ("paint", compress(&self.paints())),
            ("up", compress(&self.ups())),
            ("self", compress(&column::leb(self.nodes.iter().map(|node| node.self_weight.0)))),
        ];
        if let Some(before) = self.tree.before().filter(|_| !self.nodes.is_empty()) {
            let before = column::leb(before.iter().map(|before| before.self_weight.0));
            found.push(("before", compress(&before)));
        }
        if let Some(fills) = self.colours.of_node.as_ref().filter(|_| !self.nodes.is_empty()) {
            let fills = column::leb(fills.iter().map(|fill| u64::from(*fill)));
            found.push(("fill", compress(&fills)));
        }
        found
    }

    fn names(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for label in &self.order.order {
            let name = &self.tree.labels()[label.index()].name;
            bytes.extend_from_slice(clean_name(name).as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    fn paints(&self) -> Vec<u8> {
        let paint = |label: &LabelId| {
            let dashed = is_gap(&self.tree.labels()[label.index()]);
            u64::from(self.colours.of_label[label.index()]) * 2 + u64::from(dashed)
        };
        column::leb(self.order.order.iter().map(paint))
    }

    fn labels(&self) -> Vec<u8> {
        let numbers = &self.order.numbers;
        let mut bytes = Vec::with_capacity(2 * numbers.len());
        let most = self.order.order.len() as u32;
        for plane in (0..4).filter(|plane| *plane == 0 || most >> (8 * plane) > 0) {
            bytes.extend(numbers.iter().map(|number| (number >> (8 * plane)) as u8));
        }
        bytes
    }

    fn ups(&self) -> Vec<u8> {
        // The root's own parent would be one level above it.
        let mut below = 0;
        column::leb(self.nodes.iter().map(|node| {
            let up = below - node.depth;
            below = node.depth + 1;
            u64::from(up)
        }))
    }
}

/// Labels in the order in which the nodes first use them, so that the file does not depend on
/// the order in which the profile met them.
struct LabelOrder {
    order: Vec<LabelId>,
    /// The column `label`.
    numbers: Vec<u32>,
}

impl LabelOrder {
    fn of(tree: &CallTree, nodes: &[Node]) -> LabelOrder {
        // For each label of the tree its place in `order` plus 1; 0 = not met yet.
        let mut places = vec![0u32; tree.labels().len()];
        let mut order = Vec::new();
        let mut number = |node: &Node| {
            let place = &mut places[node.label.index()];
            let number = *place;
            if number == 0 {
                order.push(node.label);
                *place = order.len() as u32;
            }
            number
        };
        let numbers = nodes.iter().map(&mut number).collect();
        LabelOrder { order, numbers }
    }
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

#[cfg(test)]
mod tests;
