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
//! | `sure` | node of two profiles | a byte: how sure the changes of its self weight (lower four bits) and of its total are, see `diff/sides.rs` |
//!
//! Numbers are LEB128, but for `label`: all lowest bytes, then all second ones and so on, which
//! packs better. A column is raw deflate (RFC 1951) in base64. Totals, depths and positions follow
//! from these. Names are numbered as the nodes first use them, so the bytes depend on the tree
//! alone; equal subtrees have equal runs of `label` and `up`, which is what deflate finds.

mod column;
mod json;
mod look;

use std::io::{self, Write};

use flame_profile::LabelId;

use self::column::{Column, compress};
use self::json::Json;
use super::document::Picture;
use super::subject::Subject;
use crate::clean_name;
use crate::colours::{Colours, is_gap};
use crate::diff::level;

/// Whole numbers are exact in JavaScript's ordinary numbers up to here; above, the script uses
/// big integers.
const EXACT: u64 = 1 << 53;

/// Writes one JSON object that holds no `<`, `>` or `&`.
pub(super) fn write_data(picture: &Picture<'_>, out: &mut impl Write) -> io::Result<()> {
    let (subject, config) = (picture.subject, picture.config);
    let count = if subject.total() == 0 { 0 } else { subject.len() };
    let order = LabelOrder::of(subject, count);
    let title = clean_name(&config.title);
    let subtitle = clean_name(config.subtitle.as_deref().unwrap_or(""));
    write!(out, r#"{{"version":2,"title":{},"subtitle":{}"#, Json(&title), Json(&subtitle))?;
    out.write_all(br#","footer":["#)?;
    for (index, line) in picture.footer().iter().enumerate() {
        write!(out, "{}{}", comma(index), Json(line))?;
    }
    out.write_all(b"]")?;
    look::write_sizes(picture.geometry, out)?;
    look::write_amounts(picture.scale, out)?;
    look::write_colours(config, picture.colours, out)?;
    if let Some(sides) = subject.sides() {
        look::write_sides(sides, out)?;
    }
    let drawn = order.order.iter().map(|label| &subject.labels()[label.index()]);
    look::write_attributes(&config.attributes, drawn, out)?;
    let big = u8::from(subject.total() > EXACT);
    write!(out, r#","count":{count},"labels":{},"big":{big}"#, order.order.len())?;
    let columns = Columns { subject, count, order: &order, colours: picture.colours };
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
    subject: Subject<'a>,
    /// How many nodes: none of a tree without weight.
    count: usize,
    order: &'a LabelOrder,
    colours: &'a Colours,
}

impl Columns<'_> {
    /// All columns, side by side on two threads where there is enough to do.
    fn compressed(&self) -> Vec<(&'static str, Column)> {
        const WORTH_A_THREAD: usize = 20_000;
        let label = || ("label", compress(&self.labels()));
        if self.count < WORTH_A_THREAD {
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
        ];
        found.extend(self.weights().iter().map(|(name, bytes)| (*name, compress(bytes))));
        if let Some(fills) = self.colours.of_node.as_ref().filter(|_| self.count > 0) {
            let fills = column::leb(fills.iter().map(|fill| u64::from(*fill)));
            found.push(("fill", compress(&fills)));
        }
        found
    }

    fn weights(&self) -> Vec<(&'static str, Vec<u8>)> {
        match self.subject {
            Subject::One(tree) => {
                let nodes = &tree.nodes()[..self.count];
                let own = column::leb(nodes.iter().map(|node| node.self_weight.0));
                let before = tree.before().filter(|_| self.count > 0);
                let before = before
                    .map(|before| column::leb(before.iter().map(|before| before.self_weight.0)));
                let before = before.map(|before| ("before", before));
                std::iter::once(("self", own)).chain(before).collect()
            }
            Subject::Two(sides) => {
                let nodes = &sides.tree.nodes()[..self.count];
                let after = nodes.iter().map(|node| node.after.self_weight.0);
                let before = nodes.iter().map(|node| node.before.self_weight.0);
                let sure = nodes
                    .iter()
                    .map(|node| level(node.self_evidence) | level(node.total_evidence) << 4);
                vec![
                    ("self", column::leb(after)),
                    ("before", column::leb(before)),
                    ("sure", sure.collect()),
                ]
            }
        }
    }

    fn names(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for label in &self.order.order {
            let name = &self.subject.labels()[label.index()].name;
            bytes.extend_from_slice(clean_name(name).as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    fn paints(&self) -> Vec<u8> {
        let paint = |label: &LabelId| {
            let dashed = is_gap(&self.subject.labels()[label.index()]);
            // Colours of two profiles are none of names.
            let fill = self.colours.of_label.get(label.index()).copied().unwrap_or(0);
            u64::from(fill) * 2 + u64::from(dashed)
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
        column::leb((0..self.count).map(|node| {
            let depth = self.subject.depth(node);
            let up = below - depth;
            below = depth + 1;
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
    fn of(subject: Subject<'_>, count: usize) -> LabelOrder {
        // For each label of the tree its place in `order` plus 1; 0 = not met yet.
        let mut places = vec![0u32; subject.labels().len()];
        let mut order = Vec::new();
        let number = |node: usize| {
            let label = subject.label_id(node);
            let place = &mut places[label.index()];
            let number = *place;
            if number == 0 {
                order.push(label);
                *place = order.len() as u32;
            }
            number
        };
        let numbers = (0..count).map(number).collect();
        LabelOrder { order, numbers }
    }
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

#[cfg(test)]
mod tests;
